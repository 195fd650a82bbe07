//! `steadyhand config`: is the configuration right, what does it say, and where does each value come from.

use clap::Subcommand;
use serde_json::{Value, json};

use super::error::Failed;
use super::{Session, value};
use crate::config::schema;
use crate::views;

#[derive(Subcommand)]
pub(super) enum ConfigCommand {
    /// Check the file and say everything that is wrong with it
    Check,
    /// Every setting with its value and where it comes from; secrets are not shown
    Show,
    /// The JSON Schema of the file, for editors
    Schema,
    /// Which file applies
    Path,
    /// Keep a secret in the key store of this system, read from stdin or asked for
    SetSecret {
        /// Its name: ${keyring:steadyhand/NAME} stands for it
        name: String,
    },
}

pub(super) async fn run(session: &Session<'_>, command: &ConfigCommand) -> Result<(), Failed> {
    match command {
        ConfigCommand::Check => check(session).await,
        ConfigCommand::Show => show(session),
        ConfigCommand::Path => path(session),
        ConfigCommand::SetSecret { name } => super::secret::set(session, name).await,
        ConfigCommand::Schema => {
            let schema = serde_json::to_string_pretty(&schema::whole()).unwrap_or_default();
            session.screen.answer(&schema);
            Ok(())
        }
    }
}

/// Reads the file, and loads what it names: a document that is not there is found now, not at the first call.
async fn check(session: &Session<'_>) -> Result<(), Failed> {
    // Nothing is started for it.
    let looking = session.runtime(|options| options.only_look = true);
    let runtime = match looking.await {
        Ok(runtime) => runtime,
        Err(failed) => {
            if session.screen.json {
                session
                    .screen
                    .json(&json!({"valid": false, "problems": failed.problems()}));
            }
            return Err(failed);
        }
    };
    let generation = runtime.generation();
    let configuration = &generation.configuration;
    let mut remarks: Vec<String> = generation
        .problems
        .iter()
        .map(ToString::to_string)
        .collect();
    for (_, reason) in runtime.disabled() {
        if !remarks.iter().any(|remark| remark.ends_with(&reason)) {
            remarks.push(reason);
        }
    }
    remarks.extend(runtime.remarks().iter().map(ToString::to_string));
    let servers: Vec<&str> = configuration
        .imported
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .collect();
    let inactive = configuration.inactive();
    let tools = runtime.manager().len();
    let tables = configuration.tools.iter();
    let configured = tables.filter(|table| table.is_server()).count();
    if session.screen.json {
        let warnings: Vec<Value> = configuration
            .warnings
            .iter()
            .map(|warning| warning.to_json())
            .collect();
        session.screen.json(&json!({
            "valid": true,
            "file": configuration.file.as_ref().map(|file| file.display().to_string()),
            "tools": tools,
            "mcp_servers": configured,
            "warnings": warnings,
            "remarks": remarks,
            "imported_servers": servers,
            "not_active_yet": inactive,
        }));
        return Ok(());
    }
    for warning in &configuration.warnings {
        session.screen.diagnostic(warning);
    }
    for remark in &remarks {
        session.screen.note(&format!("warning: {remark}"));
    }
    if !servers.is_empty() {
        session.screen.note(&format!(
            "note: {} from other programs' files: {}",
            value::counted(servers.len(), "MCP server"),
            servers.join(", ")
        ));
    }
    for section in &inactive {
        session.screen.note(&format!(
            "note: {section} is understood, but not active yet in this version"
        ));
    }
    session.screen.answer(&match &configuration.file {
        Some(file) => format!(
            "{} is right: {}, {}",
            session.surroundings.shown(file).display(),
            counted(tools, configured),
            value::counted(configuration.warnings.len() + remarks.len(), "warning"),
        ),
        None => format!(
            "No configuration file, so this is the demo set: {}. Your own: steadyhand init",
            counted(tools, configured)
        ),
    });
    Ok(())
}

/// Tools that are known, and servers that bring more when they are started.
fn counted(tools: usize, servers: usize) -> String {
    let tools = value::counted(tools, "tool");
    match servers {
        0 => tools,
        _ => format!("{tools}, {}", value::counted(servers, "MCP server")),
    }
}

fn show(session: &Session<'_>) -> Result<(), Failed> {
    let view = views::settings::effective(&session.configuration()?);
    if session.screen.json {
        session.screen.json(&view);
        return Ok(());
    }
    let shown = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let rows = view["settings"].as_array().into_iter().flatten();
    let rows = rows.map(|row| {
        ["setting", "value", "origin"]
            .map(|name| shown(&row[name]))
            .into()
    });
    session
        .screen
        .answer(&value::columns(session.screen, rows.collect()));
    Ok(())
}

fn path(session: &Session<'_>) -> Result<(), Failed> {
    let found = session.found();
    if session.screen.json {
        let by = found.as_ref().map(|found| found.by.clone());
        let path = found.map(|found| found.path.display().to_string());
        session.screen.json(&json!({"path": path, "by": by}));
        return Ok(());
    }
    match found {
        Some(found) => {
            session.screen.answer(&found.path.display().to_string());
            session.screen.note(&format!("({})", found.by));
        }
        None => session.screen.note("No configuration file: not by --config, not by $STEADYHAND_CONFIG, not here or above, not in the user's configuration folder. The demo set is used; steadyhand init writes a file."),
    }
    Ok(())
}
