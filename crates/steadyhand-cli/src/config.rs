//! `steadyhand config`: is the configuration right, what does it say, and where does each value come from.

use std::sync::Arc;

use clap::Subcommand;
use serde_json::{Value, json};

use super::error::Failed;
use super::{Session, value};
use crate::extensions::EXTENSIONS;
use steadyhand_config::words::dotted;
use steadyhand_config::{Configuration, Resolver, Surroundings};
use steadyhand_runtime::runtime::Runtime;
use steadyhand_server::views;

#[derive(Subcommand)]
pub(super) enum ConfigCommand {
    /// Check the file and say everything that is wrong with it
    Check,
    /// Every setting with its value and where it comes from; secrets are not shown
    Show,
    /// Let the running server read the file again; with a problem it stays as it is
    Reload,
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
        ConfigCommand::Reload => reload(session).await,
        ConfigCommand::Path => path(session),
        ConfigCommand::SetSecret { name } => super::secret::set(session, name).await,
        ConfigCommand::Schema => {
            let schema = serde_json::to_string_pretty(&EXTENSIONS.schema()).unwrap_or_default();
            session.screen.exact(&schema);
            Ok(())
        }
    }
}

/// Reads the file, and loads what it names: a document that is not there is found now, not at the first call. That goes
/// for the rest of a file with errors, too: one look finds everything.
async fn check(session: &Session<'_>) -> Result<(), Failed> {
    let found = session.found();
    let path = found.as_ref().map(|found| found.path.as_path());
    let (configuration, problems) = session.load_what_is_right(path);
    let report = problems
        .iter()
        .any(|problem| !problem.is_warning)
        .then(|| configuration.report(problems, &session.surroundings));
    // Nothing is started for it.
    let runtime = session
        .runtime_of(configuration, |options| options.only_look = true)
        .await?;
    let remarks = remarks(session, &runtime).await;
    if let Some(report) = report {
        let failed = Failed::from(report);
        match session.screen.json {
            true => session
                .screen
                .json(&json!({"valid": false, "problems": failed.problems(), "remarks": remarks})),
            false => tell_remarks(session, &remarks),
        }
        return Err(failed);
    }
    let generation = runtime.generation();
    let configuration = &generation.configuration;
    let servers: Vec<&str> = configuration
        .imported
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .collect();
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
        }));
        return Ok(());
    }
    for warning in &configuration.warnings {
        session.screen.diagnostic(warning);
    }
    tell_remarks(session, &remarks);
    if !servers.is_empty() {
        session.screen.note(&format!(
            "note: {} from other programs' files: {}",
            value::counted(servers.len(), "MCP server"),
            servers.join(", ")
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

fn tell_remarks(session: &Session<'_>, remarks: &[String]) {
    for remark in remarks {
        session.screen.note(&format!("warning: {remark}"));
    }
}

/// What does not show before sources are loaded and references replaced.
async fn remarks(session: &Session<'_>, runtime: &Runtime) -> Vec<String> {
    let generation = runtime.generation();
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
    let configuration = Arc::clone(&generation.configuration);
    let surroundings = session.surroundings.clone();
    // Files and key stores are read.
    let looking = tokio::task::spawn_blocking(move || unresolved(&configuration, surroundings));
    remarks.extend(looking.await.unwrap_or_default());
    remarks
}

/// References that stand for nothing, outside of the tools and servers that are loaded: those have told of theirs.
fn unresolved(configuration: &Configuration, surroundings: Surroundings) -> Vec<String> {
    let resolver = Resolver::new(surroundings, configuration.folder.clone());
    let sections = configuration.document.value.as_object();
    let mut remarks = Vec::new();
    for (name, section) in sections.into_iter().flatten() {
        let resolution = resolver.resolve_tree_of(name, &mut section.clone());
        let is_of_tools = matches!(name.as_str(), "tools" | "mcp");
        for (pointer, unresolved) in resolution.unresolved {
            let mut faulty = configuration.faulty_tables.iter();
            let is_faulty = faulty.any(|table| pointer.starts_with(&format!("{table}/")));
            if is_of_tools && !is_faulty {
                continue;
            }
            let origin = configuration.document.nearest_origin(&pointer);
            let place = origin.map(|origin| format!(" ({})", origin.short()));
            let place = place.unwrap_or_default();
            remarks.push(format!("{}{place}: {unresolved}", dotted(&pointer)));
        }
    }
    remarks
}

/// Tools that are known, and servers that bring more when they are started.
fn counted(tools: usize, servers: usize) -> String {
    let tools = value::counted(tools, "tool");
    match servers {
        0 => tools,
        _ => format!("{tools}, {}", value::counted(servers, "MCP server")),
    }
}

async fn reload(session: &Session<'_>) -> Result<(), Failed> {
    // What is wrong with the file is told here in its place; the server would say the same.
    let configuration = session.configuration()?;
    let remote = super::alerts::server(session, "a configuration is in force").await?;
    let reloaded = remote.post("/v1/config/reload", None).await?.body;
    if session.screen.json {
        session.screen.json(&reloaded);
        return Ok(());
    }
    let tools = remote.get("/v1/tools").await?;
    let file = configuration.file.as_deref();
    let file = file.map_or("the demo set".into(), |file| {
        session.surroundings.shown(file).display().to_string()
    });
    session.screen.answer(&format!(
        "Reloaded: {file} is in force at {}, {}",
        remote.address(),
        value::counted(tools["count"].as_u64().unwrap_or(0) as usize, "tool")
    ));
    Ok(())
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
