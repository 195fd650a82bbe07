//! Causes in the program itself: packages, interpreters, arguments, versions.

use super::{Cause, Found, Row, arguments, base, ending, program, setting};
use crate::client::lifecycle::failure::{StartFailure, What};

/// The order matters: what is more certain comes first.
pub(super) const ROWS: &[Row] = &[
    // A first start that is merely slow says so before anything else goes wrong.
    (
        r"(?im)^\W*(?:downloading|downloaded|installing|resolving|building|preparing|fetching|collecting|installed|resolved|prepared|pulling)\b|npm (?:warn|http|info)\b|\breify:|Unable to find image",
        still_downloading,
    ),
    (r"Need to install the following packages", npx_asks),
    (
        r"(?:(?m:^)(?P<python>\S*python[\d.]*(?:\.exe)?): )?No module named '?(?P<module>[\w.]+)",
        python_module,
    ),
    (
        r"ImportError: cannot import name '(?P<name>\w+)' from (?:partially initialized module )?'(?P<module>[\w.]+)'",
        python_other_version,
    ),
    (
        r"can't open file '?(?P<file1>[^':]+)'?: \[Errno 2\]|Cannot find module '(?P<file2>(?:/|[A-Za-z]:\\|\.{1,2}/)[^']+)'|(?:Module not found|Cannot access|Unable to access jarfile) (?P<file3>\S+)",
        file_missing,
    ),
    (
        r"Cannot find (?:module|package) '(?P<module>[^']+)'|ERR_MODULE_NOT_FOUND",
        node_module,
    ),
    (
        r"(?i)\bE404\b|404 Not Found - GET \S*/(?P<package1>[\w@%.-]+)|No matching distribution found for (?P<package2>[\w.\[\]=<>~-]+)|Could not find a version that satisfies the requirement (?P<package3>[\w.\[\]=<>~-]+)|Because (?P<package4>[\w.-]+) was not found in the package registry|pull access denied for (?P<package5>\S+),",
        package_missing,
    ),
    (
        r"(?m)(?:env: |sh: |bash: |exec: |line \d+: |\d+: )[‘'\x22]?(?P<inner>[\w./+-]+)[’'\x22]?: (?:(?:command |executable file )?not found|No such file or directory)",
        inner_command,
    ),
    (
        r"(?i)requires? (?:a different )?python|requires-python|SyntaxError: invalid syntax|unsupported operand type\(s\) for \|: 'type'|Python (?P<wanted>\d[\d.]*)(?: or (?:later|newer|higher|above)|\+) is (?:required|needed)",
        python_version,
    ),
    (
        r"(?i)EBADENGINE|unsupported engine|requires? node(?:\.?js)?\b|node(?:\.?js)? (?:version )?(?:>=? ?)?v?\d[\d.]*(?: or (?:later|newer|higher|above)|\+)|unsupported node(?:\.?js)?|SyntaxError: Unexpected (?:token|identifier)|ReferenceError: (?:fetch|ReadableStream|File|crypto|Headers|structuredClone) is not defined|ERR_UNKNOWN_BUILTIN_MODULE|does not provide an export named",
        node_version,
    ),
    (
        r"(?i)(?:unsupported|unknown|invalid|incompatible|bad) (?:mcp )?protocol ?version|protocol ?version[^\n]{0,60}(?:not supported|unsupported|mismatch)",
        protocol_version,
    ),
    (
        r"(?i)unrecogni[sz]ed arguments?:? (?P<argument1>[^\n]+)|unexpected argument '(?P<argument2>[^'\n]+)'|(?:unknown|unrecogni[sz]ed|invalid|no such) (?:command[- ]line )?(?:option|argument|flag|command)s?:? ['\x22`]?(?P<argument3>[^\s'\x22`]+)|flag provided but not defined: (?P<argument4>\S+)",
        argument_unknown,
    ),
    (
        r"(?i)the following (?:required )?arguments (?:are required|were not provided):\s*(?P<missing1>[^\n]+)|missing (?:required )?(?:positional )?(?:argument|operand|parameter)s?:? ?['\x22`]?(?P<missing2>[^\n'\x22`]*)|(?m:^)\s*usage:",
        argument_missing,
    ),
    (
        r"(?i)exec format error|cannot execute binary file|bad CPU type",
        wrong_format,
    ),
];

fn still_downloading(_: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let What::Silent { .. } = failure.what else {
        return None;
    };
    let base = base(failure);
    Some(Cause::new(
        format!("{base} was still downloading or installing packages."),
        format!(
            "Give the first start more time:  start = {{ timeout = \"120s\" }}  under [mcp.{}], or install it beforehand.",
            failure.server
        ),
        format!("the download of {base}'s packages, and the start timeout"),
    ))
}

fn npx_asks(_: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    Some(Cause::new(
        "npx asks whether it may install the package, and nobody can answer.",
        format!("Let it:  npx -y {}", arguments(failure)),
        "npx is called with -y",
    ))
}

fn python_module(found: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let module = found.part("module")?.trim_end_matches('.');
    let package = python_package(module);
    let base = base(failure);
    let is_python = base.starts_with("python");
    let interpreter = found.part("python").or(failure.program.as_deref());
    let who = match interpreter {
        Some(path) if is_python && path != base && path.contains('/') => {
            format!("{base} here is {path} and has")
        }
        Some(path) if is_python => format!("{path} has"),
        _ => "Python has".to_owned(),
    };
    let next_step = match (base, is_python) {
        (_, true) => {
            // `python -m module` is a program of the package itself.
            let rest = arguments(failure);
            format!(
                "Use:  uv run --with {package} {rest}     or install it:  {base} -m pip install {package}"
            )
        }
        ("uv", _) => format!(
            "Use:  uv run --with {package} {}",
            after_run(arguments(failure))
        ),
        ("uvx", _) => format!("Use:  uvx --with {package} {}", arguments(failure)),
        _ => format!("Install it where {base} runs:  pip install {package}"),
    };
    Some(Cause::new(
        format!("{who} no package \"{module}\"."),
        next_step.trim_end(),
        format!("Python package {package} installed"),
    ))
}

fn after_run(arguments: &str) -> &str {
    arguments.strip_prefix("run").unwrap_or(arguments).trim()
}

/// Most packages are called like what is imported from them. These are not.
fn python_package(module: &str) -> &str {
    let top = module.split('.').next().unwrap_or(module);
    match top {
        "yaml" => "pyyaml",
        "dotenv" => "python-dotenv",
        "paho" => "paho-mqtt",
        "bs4" => "beautifulsoup4",
        "PIL" => "pillow",
        "cv2" => "opencv-python",
        "sklearn" => "scikit-learn",
        "serial" => "pyserial",
        "dateutil" => "python-dateutil",
        "git" => "gitpython",
        "github" => "pygithub",
        "docx" => "python-docx",
        other => other,
    }
}

fn python_other_version(found: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let (name, module) = (found.part("name")?, found.part("module")?);
    let package = python_package(module);
    let base = base(failure);
    Some(Cause::new(
        format!(
            "The Python package {package} here is of another version than {base} was written for: it has no \"{name}\"."
        ),
        format!(
            "Pin the version it wants (for example:  pip install '{package}<2'), or update the server."
        ),
        format!("version of the Python package {package}"),
    ))
}

fn file_missing(found: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let file = found.part("file")?;
    let from = match &failure.cwd {
        Some(cwd) => format!(" (from {cwd})"),
        None => String::new(),
    };
    let built = file.contains("/dist/") || file.contains("/build/") || file.contains("/out/");
    let next_step = match built {
        true => "Build it first:  npm install && npm run build".to_owned(),
        false => format!("Correct the path or set `cwd` at {}.", setting(failure)),
    };
    Some(Cause::new(
        format!("The file {file} does not exist{from}."),
        next_step,
        format!("{file} exists"),
    ))
}

fn node_module(found: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let folder = failure.cwd.as_deref().unwrap_or("the server's folder");
    let (what, check) = match found.part("module") {
        Some(module) => (
            format!("no package \"{module}\""),
            format!("npm package {module} installed"),
        ),
        None => (
            "not all packages it needs".to_owned(),
            "npm packages installed".to_owned(),
        ),
    };
    Some(Cause::new(
        format!("Node has {what}."),
        format!("Install what it needs:  npm install   (in {folder})"),
        check,
    ))
}

fn package_missing(found: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let (what, check) = match found.part("package") {
        Some(package) => {
            let package = package.replace("%2f", "/").replace("%2F", "/");
            (
                format!("the package {package}"),
                format!("the name {package}"),
            )
        }
        None => ("the package".to_owned(), "the package's name".to_owned()),
    };
    Some(Cause::new(
        format!("The registry does not have {what}, or not in the version asked for."),
        format!("Check its name and version at {}.", setting(failure)),
        check,
    ))
}

fn inner_command(found: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let inner = found.part("inner")?;
    let base = base(failure);
    Some(Cause::new(
        format!("{base} runs {inner}, which PATH does not hold."),
        format!(
            "Install {inner}, or set  path_add = [\"…\"]  under [mcp.{}] to its folder.",
            failure.server
        ),
        format!("{inner} installed and in PATH"),
    ))
}

fn python_version(found: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let wanted = found.part("wanted").unwrap_or("version");
    let program = failure.program.as_deref().unwrap_or(program(failure));
    Some(Cause::new(
        format!("The server wants a newer Python than {program} is."),
        "Use:  uv run --python 3.12 …     or set `command` to a newer python3.",
        format!("Python {wanted}"),
    ))
}

fn node_version(_: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let program = failure.program.as_deref().unwrap_or(program(failure));
    Some(Cause::new(
        format!("The server wants a newer Node.js than the one {program} uses."),
        format!(
            "Install a newer Node.js, or set  path_add = [\"…\"]  under [mcp.{}] to its folder.",
            failure.server
        ),
        "Node.js version",
    ))
}

fn protocol_version(_: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    Some(Cause::new(
        format!(
            "{} and Steadyhand have no version of MCP in common.",
            base(failure)
        ),
        "Update the server; servers of MCP 2024-11-05 and later are understood.",
        format!("{} is up to date", base(failure)),
    ))
}

fn argument_unknown(found: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let argument = found.part("argument")?.trim();
    let base = base(failure);
    Some(Cause::new(
        format!("{base} does not know the argument {argument}."),
        format!(
            "Correct `args` at {}; its help lists what there is:  {base} --help",
            setting(failure)
        ),
        format!("arguments of {base}"),
    ))
}

fn argument_missing(found: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let base = base(failure);
    let sentence = match found.part("missing").map(str::trim) {
        Some(missing) if !missing.is_empty() => format!("{base} needs more arguments: {missing}."),
        _ => format!("{base} was called with arguments it does not take."),
    };
    Some(Cause::new(
        sentence,
        format!(
            "Correct `args` at {}; its help lists what there is:  {base} --help",
            setting(failure)
        ),
        format!("arguments of {base}"),
    ))
}

fn wrong_format(_: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let program = failure.program.as_deref().unwrap_or(program(failure));
    let mut cause = ending::not_executable(failure);
    cause.sentence = format!(
        "{program} is no program for this machine, or a script without a first line `#!…`."
    );
    cause.next_step =
        "Get the build for this machine, or start it with its interpreter (python3, node, sh)."
            .to_owned();
    cause.check = format!("{program} is built for this machine");
    Some(cause)
}
