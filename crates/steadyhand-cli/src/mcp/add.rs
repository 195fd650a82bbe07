//! `steadyhand mcp add`: a server is written into the configuration.

use std::path::Path;

use serde_json::json;

use super::super::Session;
use super::super::error::{Exit, Failed};
use super::AddArgs;
use super::file::File;
use super::names;
use steadyhand_config::edit::{self, NewServer, NotChanged};
use steadyhand_config::secret;

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
        .answer(&format!("{what} {shown}:\n\n{}", hidden(&server).written()));
    for (header, _) in server.headers.iter().filter(is_in_the_clear) {
        session.screen.note(&format!(
            "{header} stands in the file as it is. --header '{header}: Bearer ${{env:TOKEN}}' would take it from the environment."
        ));
    }
    for (variable, _) in server.env.iter().filter(is_in_the_clear) {
        session.screen.note(&format!(
            "{variable} stands in the file as it is. --env {variable} alone would take it from the environment."
        ));
    }
    session
        .screen
        .note(&format!("Next: steadyhand mcp test {name}"));
    Ok(())
}

/// The server as it is shown: a secret that was typed stands in the file alone.
fn hidden(server: &NewServer) -> NewServer {
    let mut shown = server.clone();
    let values = shown.headers.iter_mut().chain(&mut shown.env);
    for given in values {
        if is_in_the_clear(&&*given) {
            given.1 = "…".to_owned();
        }
    }
    shown
}

fn is_in_the_clear((name, value): &&(String, String)) -> bool {
    secret::is_secret(&[name.as_str()], value) && !value.contains("${")
}

fn server(session: &Session<'_>, args: &AddArgs, file: &File) -> Result<NewServer, Failed> {
    let mut words = args.target.iter().chain(&args.command).cloned();
    let command = words.next().unwrap_or_default();
    let is_reference = command.starts_with("${") && args.target.len() == 1;
    if command.contains("://") || is_reference {
        return match words.next() {
            None => over_http(args, command),
            Some(more) => Err(usage(format!("\"{more}\" stands behind an address"))
                .help("An address has no arguments: steadyhand mcp add NAME https://host/mcp")),
        };
    }
    if let Some(address) = address_without_scheme(session, &command) {
        return Err(usage(format!(
            "\"{command}\" is no program here, and has no scheme"
        ))
        .help(format!(
            "If it is an address: steadyhand mcp add {} {address}",
            args.name
        )));
    }
    if let Some(header) = args.header.first() {
        let name = header.split(':').next().unwrap_or_default();
        let message = format!("--header {name} is for a server over HTTP");
        return Err(
            Failed::new(Exit::Usage, "usage", message).help("A program gets its secrets by --env")
        );
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
        ..NewServer::default()
    })
}

fn usage(message: String) -> Failed {
    Failed::new(Exit::Usage, "usage", message)
}

/// What looks like an address and is no program: as an address.
fn address_without_scheme(session: &Session<'_>, text: &str) -> Option<String> {
    let here = &session.surroundings.current;
    let path = session.surroundings.variable("PATH").unwrap_or_default();
    if steadyhand_process::find_command(text, here, path.as_ref(), here).is_ok() {
        return None;
    }
    let (host, _) = text.split_once(['/', ':'])?;
    let is_here = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok();
    let is_name =
        host.contains('.') && !host.starts_with('.') && !host.contains(char::is_whitespace);
    let scheme = if is_here { "http" } else { "https" };
    (is_here || is_name).then(|| format!("{scheme}://{text}"))
}

fn over_http(args: &AddArgs, url: String) -> Result<NewServer, Failed> {
    if !args.env.is_empty() || args.cwd.is_some() {
        let message = "--env and --cwd are for a program, and this is an address".to_owned();
        return Err(usage(message).help("--header 'NAME: VALUE' goes with every request"));
    }
    let headers = args.header.iter().map(|given| {
        let parts = given
            .split_once(':')
            .map(|(name, value)| (name.trim(), value.trim()));
        match parts {
            Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
            _ => Err(usage(format!("\"{given}\" is no header"))
                .help("--header 'Authorization: Bearer ${env:TOKEN}'")),
        }
    });
    let headers: Vec<_> = headers.collect::<Result<_, _>>()?;
    if !url.contains("${") {
        let mut settings = steadyhand_mcp::ServerSettings::http(&args.name, &url);
        let http = settings.as_http();
        http.headers.clone_from(&headers);
        http.check()
            .map_err(|why| usage(why).help("Such as: steadyhand mcp add NAME https://host/mcp"))?;
    }
    Ok(NewServer {
        name: args.name.clone(),
        url: Some(url),
        headers,
        ..NewServer::default()
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
