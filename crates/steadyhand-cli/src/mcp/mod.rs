//! `steadyhand mcp`: the MCP servers: how they fare, why one does not start, and which there are.

mod add;
pub(super) mod file;
mod import;
mod list;
mod login;
mod logs;
mod remove;
mod restart;
mod test;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;

use super::error::{Exit, Failed};
use super::{Session, complete};
pub(super) use file::File;
use steadyhand_config::Configuration;
use steadyhand_config::words::nearest;
use steadyhand_runtime::audit::AuditEvent;

#[derive(Subcommand)]
pub(super) enum McpCommand {
    /// All servers: whether they run, their tools, where they are configured
    List,
    /// Start a server once and show every step of it, then its tools
    Test {
        /// The server
        #[arg(add = ArgValueCandidates::new(complete::server_names))]
        server: String,
    },
    /// Log in at a server over HTTP, with a browser
    Login {
        /// The server
        #[arg(add = ArgValueCandidates::new(complete::server_names))]
        server: String,
        /// What is asked for, beside nothing else; what the server names if not said
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
    },
    /// Forget a login
    Logout {
        /// The server
        #[arg(add = ArgValueCandidates::new(complete::server_names))]
        server: String,
    },
    /// What a server printed last
    Logs {
        /// The server
        #[arg(add = ArgValueCandidates::new(complete::server_names))]
        server: String,
        /// Go on with what it prints from now on
        #[arg(short, long)]
        follow: bool,
    },
    /// Start a server of the running steadyhand serve anew
    Restart {
        /// The server
        #[arg(add = ArgValueCandidates::new(complete::server_names))]
        server: String,
    },
    /// Write a server into steadyhand.toml
    Add(AddArgs),
    /// Take over servers from the files of other programs
    Import(ImportArgs),
    /// Take a server out of steadyhand.toml
    Remove {
        /// The server
        #[arg(add = ArgValueCandidates::new(complete::server_names))]
        server: String,
    },
}

#[derive(Args)]
pub(super) struct AddArgs {
    /// Its name: its tools will be called NAME__tool
    name: String,
    /// A variable it gets: NAME=value, or NAME alone for the one of the environment (${env:NAME})
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// The folder it runs in
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// A header that goes with every request to a URL: 'Authorization: Bearer ${env:TOKEN}'
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// The address of a server over HTTP, or a program and its arguments
    #[arg(value_name = "URL|PROGRAM", conflicts_with = "command")]
    target: Vec<String>,
    /// The program and its arguments, behind --: needed where an argument begins with a dash
    #[arg(
        last = true,
        required_unless_present = "target",
        value_name = "COMMAND"
    )]
    command: Vec<String>,
}

#[derive(Args)]
pub(super) struct ImportArgs {
    /// A file such as .mcp.json, or a program: claude-desktop, claude-code, cursor, vscode, windsurf, gemini, goose, codex, crush
    #[arg(value_name = "FILE|PROGRAM")]
    source: Option<String>,
    /// The servers to take over
    #[arg(value_name = "SERVER", conflicts_with = "all")]
    servers: Vec<String>,
    /// Take over all of them
    #[arg(long)]
    all: bool,
}

pub(super) async fn run(session: &Session<'_>, command: Option<&McpCommand>) -> Result<(), Failed> {
    match command.unwrap_or(&McpCommand::List) {
        McpCommand::List => list::run(session).await,
        McpCommand::Test { server } => test::run(session, server).await,
        McpCommand::Login { server, scopes } => {
            let ended = login::login(session, server, scopes).await;
            let event = AuditEvent::of_command("server.login", session.user());
            session.written_down(event.on(server), ended).await
        }
        McpCommand::Logout { server } => {
            let ended = login::logout(session, server).await;
            let event = AuditEvent::of_command("server.logout", session.user());
            session.written_down(event.on(server), ended).await
        }
        McpCommand::Logs { server, follow } => logs::run(session, server, *follow).await,
        McpCommand::Restart { server } => restart::run(session, server).await,
        McpCommand::Add(args) => {
            let event = AuditEvent::of_command("server.add", session.user()).on(&args.name);
            session.edited(event, || add::run(session, args)).await
        }
        // It only lists what there is.
        McpCommand::Import(args) if args.servers.is_empty() && !args.all => {
            import::run(session, args)
        }
        McpCommand::Import(args) => {
            let event = AuditEvent::of_command("server.import", session.user());
            let event = match &args.source {
                Some(source) => event.on(source),
                None => event,
            };
            session.edited(event, || import::run(session, args)).await
        }
        McpCommand::Remove { server } => {
            let event = AuditEvent::of_command("server.remove", session.user()).on(server);
            session.edited(event, || remove::run(session, server)).await
        }
    }
}

/// The names of all servers of a configuration, those that are switched off too.
pub(super) fn names(configuration: &Configuration) -> Vec<String> {
    let tables = configuration.tools.iter().filter(|table| table.is_server());
    let mut names: Vec<String> = tables.map(|table| table.name.clone()).collect();
    for imported in &configuration.imported.servers {
        if !names.contains(&imported.name) {
            names.push(imported.name.clone());
        }
    }
    names
}

fn no_such_server(configuration: &Configuration, name: &str) -> Failed {
    let names = names(configuration);
    let near = nearest(name, names.iter().map(String::as_str));
    let help = match (near, names.is_empty()) {
        (Some(near), _) => format!("Did you mean {near}?\nsteadyhand mcp list"),
        (None, true) => {
            "No MCP servers are configured: steadyhand mcp add NAME -- COMMAND ARGS, or: steadyhand mcp add NAME URL".to_owned()
        }
        (None, false) => format!("There are: {}", names.join(", ")),
    };
    let message = format!("there is no MCP server {name}");
    Failed::new(Exit::ToolError, "no_such_server", message)
        .detail("server", name.into())
        .help(help)
}
