//! `call --mcp 'COMMAND ARGS'` or `call --mcp URL`: an MCP server without any configuration.

use serde_json::{Map, Value, json};

use super::super::error::{Exit, Failed};
use crate::config::settings::PolicySettings;
use crate::config::{Configuration, Surroundings, ToolTable};
use crate::source::mcp;

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
        return Ok(beside_nothing(name, own, surroundings));
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
    Ok(beside_nothing(name(command, args), own, surroundings))
}

fn beside_nothing(
    name: String,
    own: Map<String, Value>,
    surroundings: &Surroundings,
) -> (Configuration, Vec<ToolTable>) {
    let table = ToolTable {
        section: "mcp",
        name,
        kind: &mcp::SERVER,
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
    };
    let mut configuration = Configuration::empty();
    configuration.folder.clone_from(&surroundings.current);
    (configuration, vec![table])
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
