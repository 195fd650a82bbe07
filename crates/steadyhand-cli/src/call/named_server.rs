//! `call --mcp 'COMMAND ARGS'`, `call --mcp URL` and `call PROGRAM:SERVER`: an MCP server without any configuration of
//! ours.

use serde_json::{Map, Value, json};

use super::super::error::{Exit, Failed};
use super::CallArgs;
use crate::extensions::EXTENSIONS;
use steadyhand_config::import::{Client, Imported, Importer};
use steadyhand_config::settings::PolicySettings;
use steadyhand_config::words::nearest;
use steadyhand_config::{Configuration, Surroundings, ToolTable, server_table};
use steadyhand_runtime::source::mcp;

/// Programs that start others: the name of what they start tells more.
const LAUNCHERS: [&str; 12] = [
    "bun", "bunx", "deno", "docker", "node", "npx", "pipx", "python", "python3", "uv", "uvx", "env",
];
/// What launchers are told before that name.
const SUBCOMMANDS: [&str; 5] = ["run", "tool", "exec", "dlx", "x"];

/// An empty configuration, and the server beside it: its tools keep their own names.
pub(super) fn of(
    command_line: &str,
    surroundings: &Surroundings,
) -> Result<(Configuration, Vec<ToolTable>), Failed> {
    let usage = |message: String| Failed::new(Exit::Usage, "usage", message);
    if command_line.starts_with("http://") || command_line.starts_with("https://") {
        let mut own = Map::new();
        own.insert("url".to_owned(), json!(command_line));
        own.insert("prefix".to_owned(), json!(false));
        let host = url::Url::parse(command_line).ok();
        let host = host.and_then(|url| url.host_str().map(str::to_owned));
        let name = host.unwrap_or_else(|| "remote".to_owned());
        return Ok(beside_nothing(table(name, own), surroundings));
    }
    let words = shlex::split(command_line).ok_or_else(|| {
        usage(format!(
            "the command line of --mcp has an open quote: {command_line}"
        ))
    })?;
    let is_variable = |word: &&String| word.split_once('=').is_some_and(|(name, _)| is_name(name));
    let variables: Vec<&String> = words.iter().take_while(is_variable).collect();
    let Some((command, args)) = words[variables.len()..].split_first() else {
        return Err(
            usage("--mcp names no command".to_owned()).help("Such as: --mcp 'uvx mcp-server-time'")
        );
    };
    let mut own = Map::new();
    own.insert("command".to_owned(), json!(command));
    own.insert("args".to_owned(), json!(args));
    let env = variables.iter().filter_map(|word| word.split_once('='));
    let env: Map<_, _> = env
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    own.insert("env".to_owned(), json!(env));
    own.insert("prefix".to_owned(), json!(false));
    Ok(beside_nothing(
        table(name(command, args), own),
        surroundings,
    ))
}

/// `claude-code:weather get_forecast city=Oslo` is a call of `get_forecast` at that server; anything else is as it was.
pub(super) fn taken_apart(
    args: &CallArgs,
    surroundings: &Surroundings,
) -> Result<(CallArgs, Option<ToolTable>), Failed> {
    let usage = |message: String| Failed::new(Exit::Usage, "usage", message);
    let named = args.tool.split_once(':');
    let Some((program, server)) = named.filter(|(program, _)| Client::by_name(program).is_some())
    else {
        return Ok((args.clone(), None));
    };
    if args.mcp.is_some() {
        return Err(usage(format!("{} and --mcp both name a server", args.tool)));
    }
    let importer = Importer::new(surroundings.clone());
    let imported = importer.read_all(&[program], &[], &surroundings.current);
    let mut there = imported.servers.iter();
    let Some(found) = there.find(|found| found.name == server) else {
        return Err(no_such_server(program, server, &imported));
    };
    let mut table = server_table(found, &imported, surroundings, &EXTENSIONS);
    if let Some(reason) = table.unusable.take() {
        return Err(Failed::new(Exit::SignIn, "server_disabled", reason));
    }
    table.own.insert("prefix".to_owned(), json!(false));
    let Some((tool, arguments)) = args.arguments.split_first() else {
        let message = format!("which tool of {}?", args.tool);
        return Err(usage(message).help(format!("steadyhand call {} TOOL name=value", args.tool)));
    };
    let mut call = args.clone();
    call.mcp = Some(args.tool.clone());
    call.tool.clone_from(tool);
    call.arguments = arguments.to_vec();
    Ok((call, Some(table)))
}

fn no_such_server(program: &str, server: &str, imported: &Imported) -> Failed {
    let names: Vec<&str> = imported.servers.iter().map(|it| it.name.as_str()).collect();
    let help = match (nearest(server, names.iter().copied()), names.is_empty()) {
        (Some(near), _) => format!("Did you mean {program}:{near}?"),
        (None, false) => format!("There are: {}", names.join(", ")),
        (None, true) => {
            let problems = imported
                .problems
                .iter()
                .map(|problem| problem.message.clone());
            let notes = imported.notes.iter().map(|note| note.message.clone());
            problems.chain(notes).collect::<Vec<_>>().join("\n")
        }
    };
    let message = format!("{program} has no MCP server {server}");
    Failed::new(Exit::ToolError, "no_such_server", message).help(help)
}

/// An empty configuration with a server beside it.
pub(super) fn beside_nothing(
    table: ToolTable,
    surroundings: &Surroundings,
) -> (Configuration, Vec<ToolTable>) {
    let mut configuration = Configuration::empty();
    configuration.folder.clone_from(&surroundings.current);
    (configuration, vec![table])
}

fn table(name: String, own: Map<String, Value>) -> ToolTable {
    ToolTable {
        section: "mcp",
        name,
        kind: &mcp::SERVER.settings,
        own,
        policy: PolicySettings::default(),
        each: Vec::new(),
        alias: None,
        // A shell has read it already: `${…}` in it means nothing more.
        is_imported: true,
        place: None,
        shown: None,
        secrets: Vec::new(),
        unusable: None,
        imported_keys: Vec::new(),
    }
}

/// What people call it: `mcp-server-time` of `uvx mcp-server-time`.
fn name(command: &str, args: &[String]) -> String {
    let base = |word: &str| {
        let base = word.rsplit(['/', '\\']).next().unwrap_or(word);
        let base = base.trim_end_matches(".py").trim_end_matches(".js");
        base.split('@').next().unwrap_or(base).to_owned()
    };
    let program = base(command);
    let is_launched = |arg: &&String| {
        !arg.starts_with('-') && !SUBCOMMANDS.contains(&arg.as_str()) && !base(arg).is_empty()
    };
    match LAUNCHERS.contains(&program.as_str()) {
        true => args
            .iter()
            .find(is_launched)
            .map_or(program, |arg| base(arg)),
        false => program,
    }
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    let is_first = |c: char| c == '_' || c.is_ascii_alphabetic();
    letters.next().is_some_and(is_first) && letters.all(|c| c == '_' || c.is_ascii_alphanumeric())
}
