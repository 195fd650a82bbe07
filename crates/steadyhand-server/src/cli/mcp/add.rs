//! `steadyhand mcp add`: a server is written into the configuration.

use std::path::Path;

use serde_json::json;

use super::super::Session;
use super::super::error::{Exit, Failed};
use super::AddArgs;
use super::file::File;
use super::names;
use crate::config::edit::{self, NewServer, NotChanged};
use crate::config::secret;

pub(super) fn run(session: &Session<'_>, args: &AddArgs) -> Result<(), Failed> {
    let file = File::find(session)?;
    if names(&file.configuration).contains(&args.name) {
        return Err(exists(&file, &args.name));
    }
    let server = server(session, args, &file)?;
    let text = edit::add_server(&file.text, &server).map_err(|why| match why {
        NotChanged::Exists(name) => exists(&file, &name),
        other => Failed::new(
            Exit::Config,
            "config_file",
            format!("{}: {other}", file.shown),
        ),
    })?;
    file.write(session, &text)?;
    let (name, shown) = (&args.name, &file.shown);
    if session.screen.json {
        session
            .screen
            .json(&json!({"file": shown, "server": name, "created": file.is_new}));
        return Ok(());
    }
    let what = if file.is_new { "Made" } else { "Added to" };
    session
        .screen
        .answer(&format!("{what} {shown}:\n\n{}", server.written()));
    for (variable, value) in &server.env {
        if secret::is_secret(&[variable.as_str()], value) && !value.contains("${") {
            session.screen.note(&format!(
                "{variable} stands in the file as it is. --env {variable} alone would take it from the environment."
            ));
        }
    }
    session
        .screen
        .note(&format!("Next: steadyhand mcp test {name}"));
    Ok(())
}

fn server(session: &Session<'_>, args: &AddArgs, file: &File) -> Result<NewServer, Failed> {
    let mut words = args.command.iter().cloned();
    let command = words.next().unwrap_or_default();
    if command.starts_with("http://") || command.starts_with("https://") {
        let message = format!("{command} is a server over HTTP");
        return Err(Failed::new(Exit::Usage, "not_supported", message)
            .help("They come with a later version; a server on stdio is a command"));
    }
    let env = args.env.iter().map(|given| variable(given));
    Ok(NewServer {
        name: args.name.clone(),
        command,
        args: words.collect(),
        cwd: cwd(
            args.cwd.as_deref(),
            &session.surroundings.current,
            file.folder(),
        ),
        env: env.collect::<Result<_, _>>()?,
    })
}

fn variable(given: &str) -> Result<(String, String), Failed> {
    let (name, value) = match given.split_once('=') {
        Some((name, value)) => (name, value.to_owned()),
        None => (given, format!("${{env:{given}}}")),
    };
    let is_name = !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    match is_name {
        true => Ok((name.to_owned(), value)),
        false => Err(Failed::new(
            Exit::Usage,
            "usage",
            format!("\"{name}\" is no name of a variable"),
        )
        .help("--env NAME=value, or --env NAME for the one of the environment")),
    }
}

/// A server runs where its command was typed, wherever the file is.
fn cwd(given: Option<&Path>, here: &Path, folder: &Path) -> Option<String> {
    let here = std::fs::canonicalize(here).unwrap_or_else(|_| here.to_owned());
    let wanted = match given {
        Some(given) => here.join(given),
        None if here == folder => return None,
        None => here,
    };
    let below = wanted.strip_prefix(folder).unwrap_or(&wanted);
    let text = below.display().to_string();
    (!text.is_empty()).then_some(text)
}

fn exists(file: &File, name: &str) -> Failed {
    let tables = file.configuration.tools.iter();
    let mut place = tables.filter(|table| table.is_server() && table.name == name);
    let place = place.find_map(|table| table.place.clone());
    let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
    let message = format!("there is an MCP server {name} already{place}; nothing was changed");
    Failed::new(Exit::Usage, "server_exists", message).help(format!(
        "Take another name, or remove it first: steadyhand mcp remove {name}"
    ))
}
