//! `steadyhand mcp import`: what other programs' files have, and taking it over. Those files are read, never
//! written, and nothing is copied out of them: ours says where to look.

use std::path::Path;

use serde_json::{Value, json};

use super::super::elsewhere::{self, Found};
use super::super::error::{Exit, Failed};
use super::super::{Session, value};
use super::ImportArgs;
use super::file::File;
use steadyhand_config::edit::{self, Imports};
use steadyhand_config::import::{Client, ImportedServer, Importer};
use steadyhand_config::words::nearest;

pub(super) fn run(session: &Session<'_>, args: &ImportArgs) -> Result<(), Failed> {
    let file = File::find(session)?;
    let found = match &args.source {
        Some(source) => vec![look(session, &file, source)?],
        None => elsewhere::everywhere(&session.surroundings, file.folder()),
    };
    if !args.all && args.servers.is_empty() {
        return show(session, &file, &found);
    }
    take(session, args, &file, &found)
}

fn look(session: &Session<'_>, file: &File, source: &str) -> Result<Found, Failed> {
    let importer = Importer::new(session.surroundings.clone());
    // A path is typed relative to where one is, and written relative to the file.
    let source = match Client::by_name(source) {
        Some(_) => source.to_owned(),
        None => {
            let path = session
                .surroundings
                .path(source, &session.surroundings.current);
            let path = std::fs::canonicalize(&path).unwrap_or(path);
            if !path.is_file() {
                return Err(no_such_source(source));
            }
            let below = path.strip_prefix(file.folder()).unwrap_or(&path);
            below.display().to_string()
        }
    };
    let imported = importer
        .read_all(&[source.as_str()], &[], file.folder())
        .without_ourselves();
    Ok(Found { source, imported })
}

fn show(session: &Session<'_>, file: &File, found: &[Found]) -> Result<(), Failed> {
    let screen = session.screen;
    let servers = |found: &Found| -> Vec<Value> {
        let servers = found.imported.servers.iter();
        let described = |server: &ImportedServer| described(session, file, &found.source, server);
        servers.map(described).collect()
    };
    let all: Vec<Value> = found.iter().flat_map(servers).collect();
    elsewhere::tell_problems(session, found);
    if screen.json {
        screen.json(&json!({"count": all.len(), "servers": all}));
        return Ok(());
    }
    if all.is_empty() {
        screen.note("No MCP servers found in other programs' files.");
        return Ok(());
    }
    let cell = |server: &Value, name: &str| server[name].as_str().unwrap_or_default().to_owned();
    let rows = all.iter().map(|server| {
        ["name", "state", "command", "place"]
            .map(|name| cell(server, name))
            .into()
    });
    screen.answer(&value::columns(screen, rows.collect()));
    let first = found.iter().find(|found| {
        let used = &file.configuration.root.import.mcp;
        !found.imported.servers.is_empty() && !used.contains(&found.source)
    });
    if let Some(first) = first {
        let name = &first.imported.servers[0].name;
        screen.note(&format!(
            "\nTake over all of {0}: steadyhand mcp import {0} --all\nOr some of them:    steadyhand mcp import {0} {name}",
            first.source
        ));
    }
    Ok(())
}

fn described(session: &Session<'_>, file: &File, source: &str, server: &ImportedServer) -> Value {
    let import = &file.configuration.root.import;
    let is_read = import.mcp.iter().any(|read| read == source);
    let state = match () {
        () if !server.enabled => "switched off",
        () if !server.unresolved.is_empty() => "a variable is not set",
        () if import.skip.contains(&server.name) => "left out",
        () if is_read => "in use",
        () => "found",
    };
    let place = session.surroundings.shown(&server.origin.file);
    json!({
        "name": server.name,
        "source": source,
        "state": state,
        "command": elsewhere::command(server),
        "place": format!("{}:{}", place.display(), server.origin.line),
        "program": server.origin.client.to_string(),
    })
}

/// Ours says from now on where to look, and what to leave out there.
fn take(
    session: &Session<'_>,
    args: &ImportArgs,
    file: &File,
    found: &[Found],
) -> Result<(), Failed> {
    let names = |found: &Found| -> Vec<String> {
        let servers = found.imported.servers.iter();
        servers.map(|server| server.name.clone()).collect()
    };
    let there: Vec<String> = found.iter().flat_map(names).collect();
    if there.is_empty() {
        let where_ = args.source.as_deref().unwrap_or("other programs' files");
        let message = format!("there are no MCP servers in {where_}; nothing was changed");
        return Err(Failed::new(Exit::Usage, "nothing_to_import", message));
    }
    if let Some(missing) = args.servers.iter().find(|name| !there.contains(name)) {
        let near = nearest(missing, there.iter().map(String::as_str));
        let help = match near {
            Some(near) => format!("Did you mean {near}?"),
            None => format!("There are: {}", there.join(", ")),
        };
        let message = format!("there is no server {missing} there; nothing was changed");
        return Err(Failed::new(Exit::Usage, "no_such_server", message).help(help));
    }
    let wanted: Vec<String> = match args.all {
        true => there.clone(),
        false => args.servers.clone(),
    };
    let taken = super::names(&file.configuration);
    let is_left = |name: &&String| !wanted.contains(name) && !taken.contains(name);
    let imports = Imports {
        read: found.iter().map(|found| found.source.clone()).collect(),
        skip: there.iter().filter(is_left).cloned().collect(),
        unskip: wanted.clone(),
    };
    let text = edit::change_imports(&file.text, &imports).map_err(|why| {
        let message = format!("{} was not changed: {why}", file.shown);
        Failed::new(Exit::Config, "config_file", message)
    })?;
    let configuration = file.write(session, &text)?;
    let now = super::names(&configuration);
    let (used, unused): (Vec<&String>, Vec<&String>) =
        wanted.iter().partition(|name| now.contains(name));
    if session.screen.json {
        session
            .screen
            .json(&json!({"file": file.shown, "read": imports.read, "servers": used}));
        return Ok(());
    }
    let joined = |names: &[&String]| {
        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        names.join(", ")
    };
    session.screen.answer(&format!(
        "{} now reads {}: {} ({})",
        file.shown,
        imports.read.join(", "),
        value::counted(used.len(), "server"),
        joined(&used)
    ));
    if !unused.is_empty() {
        session
            .screen
            .note(&format!("not used: {}", joined(&unused)));
    }
    for warning in &configuration.warnings {
        session.screen.diagnostic(warning);
    }
    session.screen.note("Next: steadyhand mcp list");
    Ok(())
}

fn no_such_source(source: &str) -> Failed {
    let known: Vec<&str> = Client::KNOWN.iter().map(|(name, _)| *name).collect();
    let looks_like_a_path = Path::new(source).extension().is_some() || source.contains('/');
    let help = match nearest(source, known.iter().copied()) {
        Some(near) if !looks_like_a_path => format!("Did you mean {near}?"),
        _ => format!("A file, or one of: {}", known.join(", ")),
    };
    let message = format!("{source} is neither a file nor a known program");
    Failed::new(Exit::Usage, "no_such_source", message).help(help)
}
