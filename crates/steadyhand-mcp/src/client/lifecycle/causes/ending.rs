//! Causes by how a start ended, where nobody said anything.

use super::{Cause, base, program, setting};
use crate::client::lifecycle::failure::{StartFailure, What, is_path};

const SIGNAL_KILL: i32 = 9;
const SIGNAL_SEGV: [i32; 3] = [4, 7, 11];
const SIGNAL_TERM: [i32; 3] = [1, 2, 15];

/// Ends that say more than any words before them.
pub(super) fn speaks_for_itself(failure: &StartFailure) -> Option<Cause> {
    match &failure.what {
        What::NotFound {
            program, elsewhere, ..
        } => Some(not_found(failure, program, elsewhere)),
        What::Exited { code, signal, .. } if is_segfault(*code, *signal) => Some(Cause::new(
            format!("{} crashed: a fault in the program itself.", base(failure)),
            "Update or reinstall it; native parts may be built for another system.",
            format!("{} up to date and built for this system", base(failure)),
        )),
        _ => None,
    }
}

/// Ends that are worth a guess when no words were found.
pub(super) fn cause(failure: &StartFailure) -> Option<Cause> {
    let server = &failure.server;
    let base = base(failure);
    match &failure.what {
        What::Exited { code, signal, .. } => match (code, signal) {
            (Some(0), _) => Some(Cause::new(
                format!("{base} ended by itself, without an error: is it an MCP server?"),
                "Some need an argument to serve on stdio, such as `stdio` or `--stdio`; see its help.",
                format!("{base} is an MCP server, and whether it needs a `stdio` argument"),
            )),
            (Some(137), _) | (_, Some(SIGNAL_KILL)) => Some(out_of_memory(base)),
            (Some(126), _) => Some(not_executable(failure)),
            (Some(127), _) => Some(Cause::new(
                format!("Something that {base} runs was not found."),
                format!("Run it by hand to see what:  {}", failure.command),
                format!("all that {base} runs is installed and in PATH"),
            )),
            (_, Some(signal)) if SIGNAL_TERM.contains(signal) => Some(Cause::new(
                format!("{base} was stopped from outside."),
                format!("Start it again:  steadyhand mcp restart {server}"),
                format!("nothing stops {base}"),
            )),
            _ => None,
        },
        What::Silent { .. } if failure.noise_lines > 0 => Some(Cause::new(
            "MCP servers must keep stdout for messages. Steadyhand skips such lines, but this server then never answered.",
            "If the first start downloads packages, raise it:  start = { timeout = \"60s\" }",
            format!("{base} speaks MCP on stdout and logs to stderr"),
        )),
        What::Refused { code, message } => Some(Cause::new(
            format!("The server answered, and refused: {message} (code {code})."),
            "Its own documentation or stderr says why; a newer version of it may help.",
            format!("what {server} needs in order to start"),
        )),
        What::Malformed(how) => Some(Cause::new(
            format!("{base} does not do what an MCP server does: {how}."),
            "Check that the command starts an MCP server, and that it is up to date.",
            format!("{base} is an MCP server, and up to date"),
        )),
        What::TooMany(_) => Some(Cause::new(
            format!("{base} gave more than Steadyhand takes from one server."),
            "Update it or report it to its makers: its list of tools does not end.",
            format!("{base} is up to date"),
        )),
        What::NotFound { .. }
        | What::NotStarted(_)
        | What::Silent { .. }
        | What::Closed
        | What::Unreachable(_)
        | What::Broken(_)
        | What::Status { .. }
        | What::Redirected { .. }
        | What::NotMcp(_) => None,
    }
}

pub(super) fn unknown(failure: &StartFailure) -> Cause {
    let base = base(failure);
    let installed = format!("{base} installed, its arguments and environment right");
    match &failure.what {
        What::Silent { .. } => Cause::new(
            format!("{base} runs, but has not said anything yet."),
            "If the first start downloads packages, raise it:  start = { timeout = \"60s\" }",
            format!("{base} is an MCP server on stdio, and how long its start takes"),
        ),
        What::Closed => Cause::new(
            format!("{base} runs, but has closed its stdout: nothing can come from it."),
            "Check that it is told to serve on stdio.",
            format!("{base} serves on stdio"),
        ),
        _ if failure.command.is_empty() => Cause::new(
            "",
            format!("Look at its settings: {}", setting(failure)),
            installed,
        ),
        _ => Cause::new(
            "",
            format!("Run it by hand to see more:  {}", failure.command),
            installed,
        ),
    }
}

pub(super) fn out_of_memory(base: &str) -> Cause {
    Cause::new(
        format!("{base} ran out of memory, or was killed to save some."),
        "Free some memory, or raise the limit it runs under (container, cgroup, --max-old-space-size).",
        "free memory and memory limits",
    )
}

pub(super) fn not_executable(failure: &StartFailure) -> Cause {
    let program = failure.program.as_deref().unwrap_or(program(failure));
    Cause::new(
        format!("{program} may not be executed."),
        format!(
            "Allow it:  chmod +x {program}     or start it with its interpreter (python3, node, sh)."
        ),
        format!("{program} is executable"),
    )
}

fn is_segfault(code: Option<i32>, signal: Option<i32>) -> bool {
    signal.is_some_and(|signal| SIGNAL_SEGV.contains(&signal)) || code == Some(139)
}

fn not_found(failure: &StartFailure, program: &str, elsewhere: &[String]) -> Cause {
    let base = base(failure);
    if let Some(found) = elsewhere.first() {
        let folder = found
            .rsplit_once('/')
            .map_or(found.as_str(), |(folder, _)| folder);
        let maker = maker_of(found).map(|maker| format!(" ({maker})"));
        return Cause::new(
            format!(
                "{base} exists at {found}{}, but PATH does not hold it.",
                maker.unwrap_or_default()
            ),
            format!(
                "Set  path_add = [\"{folder}\"]  under [mcp.{}], or give the full path.",
                failure.server
            ),
            format!("PATH holds {folder}"),
        );
    }
    if is_path(program) {
        return Cause::new(
            format!("There is no file {program}."),
            format!(
                "Correct `command` at {}; relative paths start at its cwd.",
                setting(failure)
            ),
            format!("{program} exists"),
        );
    }
    let install = match base {
        "npx" | "npm" | "node" => "Install Node.js, which brings it",
        "uvx" | "uv" => "Install uv",
        "python" | "python3" | "pip" | "pip3" | "pipx" => "Install Python 3",
        "docker" | "podman" => "Install it and start its daemon",
        "bun" | "bunx" => "Install Bun",
        "deno" => "Install Deno",
        "dotnet" | "dnx" => "Install the .NET SDK",
        "java" => "Install a Java runtime",
        _ => "Install it",
    };
    Cause::new(
        format!("{base} is not installed, or PATH does not hold it."),
        format!(
            "{install}, or set `command` at {} to its full path.",
            setting(failure)
        ),
        format!("{base} installed and in PATH"),
    )
}

/// Who keeps programs in a folder of their own.
fn maker_of(path: &str) -> Option<&'static str> {
    const MAKERS: [(&str, &str); 12] = [
        ("/.nvm/", "nvm"),
        ("/fnm", "fnm"),
        ("/.volta/", "Volta"),
        ("/.asdf/", "asdf"),
        ("/mise/", "mise"),
        ("/.pyenv/", "pyenv"),
        ("/.cargo/", "cargo"),
        ("/.bun/", "Bun"),
        ("/.deno/", "Deno"),
        ("/homebrew/", "Homebrew"),
        ("/linuxbrew/", "Homebrew"),
        ("/snap/", "snap"),
    ];
    let maker = MAKERS.iter().find(|(folder, _)| path.contains(folder));
    maker.map(|(_, maker)| *maker)
}
