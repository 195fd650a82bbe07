//! `steadyhand init`: looks for MCP servers in other programs' files, asks which to take over, and writes one
//! `steadyhand.toml` with comments that the real loader accepts.

mod template;

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::elsewhere::{self, Found};
use super::error::{Exit, Failed};
use super::mcp::File;
use super::{Session, value};
use steadyhand_config::find;
use steadyhand_config::import::ImportedServer;
use template::{Chosen, Key};

/// Added to the name of a file that is replaced.
const BEFORE: &str = "before";
/// A person who types something else is asked again so often.
const QUESTIONS_MAX: usize = 5;

#[derive(Args)]
pub(super) struct InitArgs {
    /// Take over all MCP servers that are found, without asking
    #[arg(short, long)]
    yes: bool,
    /// Take over none of them
    #[arg(long, conflicts_with = "yes")]
    no_import: bool,
    /// Replace a file that is there; the old one is kept beside it
    #[arg(long)]
    force: bool,
}

pub(super) fn run(session: &Session<'_>, args: &InitArgs) -> Result<(), Failed> {
    let path = match &session.global.config {
        Some(path) => session.surroundings.current.join(path),
        None => session.surroundings.current.join(find::FILE_NAME),
    };
    let file = File::to_be_written(session, &path)?;
    let is_there = path.exists();
    if is_there && !args.force {
        return Err(is_there_already(&file.shown));
    }
    let found = elsewhere::everywhere(&session.surroundings, file.folder());
    tell_what_is_found(session, &found);
    let candidates = candidates(&found);
    let is_taken = choose(session, args, &found, &candidates)?;
    let chosen = chosen(session, &candidates, &is_taken);
    let kept = match is_there {
        true => Some(keep(&path, &file.shown)?),
        false => None,
    };
    let configuration = file.write(session, &template::text(&chosen))?;
    let servers = super::mcp::names(&configuration);
    let tools = configuration
        .tools
        .iter()
        .filter(|table| !table.is_server());
    let tools = tools.count();
    if session.screen.json {
        let found: Vec<Value> = candidates
            .iter()
            .zip(&is_taken)
            .map(|(one, taken)| described(session, one, *taken))
            .collect();
        session.screen.json(&json!({
            "file": file.shown,
            "tools": tools,
            "servers": servers,
            "read": chosen.read,
            "found": found,
            "kept": kept,
        }));
        return Ok(());
    }
    let of_servers = match elsewhere::in_words(&servers) {
        Some(names) => format!(
            ", {} ({names})",
            value::counted(servers.len(), "MCP server")
        ),
        None => String::new(),
    };
    session.screen.answer(&format!(
        "{} is written: {}{of_servers}. Comments in it say what else there is.",
        file.shown,
        value::counted(tools, "tool")
    ));
    if let Some(kept) = kept {
        session
            .screen
            .note(&format!("The old one is kept as {kept}"));
    }
    for warning in &configuration.warnings {
        session.screen.diagnostic(warning);
    }
    session.screen.note(&next_steps(&servers));
    Ok(())
}

/// A server that may be taken over, and where it was found.
struct Candidate<'a> {
    source: &'a str,
    place: String,
    server: &'a ImportedServer,
}

/// Each name once: the first place that has it is the one that is used.
fn candidates(found: &[Found]) -> Vec<Candidate<'_>> {
    let mut candidates: Vec<Candidate<'_>> = Vec::new();
    for one in found {
        for server in &one.imported.servers {
            if candidates
                .iter()
                .any(|other| other.server.name == server.name)
            {
                continue;
            }
            candidates.push(Candidate {
                source: &one.source,
                place: one.place(),
                server,
            });
        }
    }
    candidates
}

fn tell_what_is_found(session: &Session<'_>, found: &[Found]) {
    let screen = session.screen;
    elsewhere::tell_problems(session, found);
    let Some(summary) = elsewhere::summary(found) else {
        screen.note("No MCP servers found in the files of other programs.");
        return;
    };
    screen.note(&format!("Found {summary}:"));
    let candidates = candidates(found);
    let widths = candidates.iter().map(|one| one.server.name.chars().count());
    let width = value::column_width(widths);
    for one in &candidates {
        let name = &one.server.name;
        let command = elsewhere::command(one.server);
        screen.note(&format!("  {name:width$}  {command}  ({})", one.place));
    }
}

/// For each candidate, whether it is taken over.
fn choose(
    session: &Session<'_>,
    args: &InitArgs,
    found: &[Found],
    candidates: &[Candidate<'_>],
) -> Result<Vec<bool>, Failed> {
    let all = |answer: bool| vec![answer; candidates.len()];
    if candidates.is_empty() || args.no_import {
        return Ok(all(false));
    }
    if args.yes {
        return Ok(all(true));
    }
    if !can_ask(session) {
        let summary = elsewhere::summary(found).unwrap_or_default();
        let message = format!("found {summary}, and nobody can be asked; nothing was written");
        return Err(Failed::new(Exit::Usage, "input_needed", message)
            .help("--yes takes over all of them, --no-import none"));
    }
    let question = "Take them over? They are read where they are, and never changed.  [Y] all  [n] none  [s] some  ";
    match ask(question, &['y', 'n', 's'])? {
        'y' => Ok(all(true)),
        'n' => Ok(all(false)),
        _ => candidates
            .iter()
            .map(|one| {
                let question = format!("  {} ({})?  [Y] yes  [n] no  ", one.server.name, one.place);
                Ok(ask(&question, &['y', 'n'])? == 'y')
            })
            .collect(),
    }
}

fn can_ask(session: &Session<'_>) -> bool {
    let is_there = std::io::stdin().is_terminal() && session.screen.stderr_is_terminal;
    is_there && !session.global.no_input && !session.screen.json
}

/// One letter; the first is the answer of who only presses Enter.
fn ask(question: &str, letters: &[char]) -> Result<char, Failed> {
    for _ in 0..QUESTIONS_MAX {
        let mut stderr = std::io::stderr().lock();
        let _ = write!(stderr, "{question}").and_then(|()| stderr.flush());
        drop(stderr);
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        if read.is_ok_and(|bytes| bytes == 0) {
            break;
        }
        let typed = line.trim().chars().next().map(|c| c.to_ascii_lowercase());
        match typed {
            None => return Ok(letters[0]),
            Some(letter) if letters.contains(&letter) => return Ok(letter),
            Some(_) => {}
        }
    }
    let message = "no answer; nothing was written";
    Err(Failed::new(Exit::Usage, "input_needed", message)
        .help("--yes takes over all servers that are found, --no-import none"))
}

/// What the file will say.
fn chosen(session: &Session<'_>, candidates: &[Candidate<'_>], is_taken: &[bool]) -> Chosen {
    let mut read: Vec<String> = Vec::new();
    for (one, _) in candidates.iter().zip(is_taken).filter(|(_, taken)| **taken) {
        if !read.iter().any(|source| source == one.source) {
            read.push(one.source.to_owned());
        }
    }
    let is_left = |one: &Candidate<'_>| read.iter().any(|source| source == one.source);
    let left = candidates
        .iter()
        .zip(is_taken)
        .filter(|(_, taken)| !**taken);
    let skip = left
        .filter(|(one, _)| is_left(one))
        .map(|(one, _)| one.server.name.clone())
        .collect();
    let is_set = |key: &&Key| {
        let value = session.surroundings.variable(key.variable);
        value.is_ok_and(|value| !value.is_empty())
    };
    Chosen {
        read,
        skip,
        models: template::KEYS.iter().filter(is_set).collect(),
    }
}

fn described(session: &Session<'_>, one: &Candidate<'_>, taken: bool) -> Value {
    let file = session.surroundings.shown(&one.server.origin.file);
    json!({
        "name": one.server.name,
        "source": one.source,
        "program": one.place,
        "command": elsewhere::command(one.server),
        "place": format!("{}:{}", file.display(), one.server.origin.line),
        "taken": taken,
    })
}

fn is_there_already(shown: &str) -> Failed {
    let message = format!("{shown} is there already; nothing was changed");
    Failed::new(Exit::Usage, "config_exists", message).help(format!(
        "To replace it, and keep it as {shown}.{BEFORE}: steadyhand init --force\nTo take servers over into it: steadyhand mcp import"
    ))
}

/// Keeps a file that will be replaced; its name then.
fn keep(path: &Path, shown: &str) -> Result<String, Failed> {
    // What an earlier one kept stays.
    let kept_as = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let (mut end, mut number) = (format!(".{BEFORE}"), 1);
    while kept_as(&end).exists() {
        number += 1;
        end = format!(".{BEFORE}-{number}");
    }
    std::fs::copy(path, kept_as(&end)).map_err(|error| {
        let reason = steadyhand_config::document::plain(&error);
        let message =
            format!("{shown} cannot be kept as {shown}{end}: {reason}; nothing was changed");
        Failed::new(Exit::Config, "config_file", message)
    })?;
    Ok(format!("{shown}{end}"))
}

fn next_steps(servers: &[String]) -> String {
    let mut steps = "Next: steadyhand config check\n      steadyhand serve".to_owned();
    if let Some(first) = servers.first() {
        steps.push_str(&format!("\n      steadyhand mcp test {first}"));
    }
    steps.push_str("\n      steadyhand connect claude-code");
    steps
}
