//! `steadyhand config`: is the configuration right, what does it say, and where does each value come from.

use clap::Subcommand;
use serde_json::{Value, json};
use steadyhand::redact;

use super::error::Failed;
use super::{Session, value};
use crate::config::document::{Document, escaped};
use crate::config::schema;

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
}

pub(super) async fn run(session: &Session<'_>, command: &ConfigCommand) -> Result<(), Failed> {
    match command {
        ConfigCommand::Check => check(session).await,
        ConfigCommand::Show => show(session),
        ConfigCommand::Path => path(session),
        ConfigCommand::Schema => {
            let schema = serde_json::to_string_pretty(&schema::whole()).unwrap_or_default();
            session.screen.answer(&schema);
            Ok(())
        }
    }
}

/// Reads the file, and loads what it names: a document that is not there is found now, not at the first call.
async fn check(session: &Session<'_>) -> Result<(), Failed> {
    let runtime = match session.runtime(|_| {}).await {
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
            "note: {} found in other programs' files, for a later version to connect: {}",
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
            value::counted(tools, "tool"),
            value::counted(configuration.warnings.len() + remarks.len(), "warning"),
        ),
        None => "No configuration file; the builtins are used.".to_owned(),
    });
    Ok(())
}

fn show(session: &Session<'_>) -> Result<(), Failed> {
    let configuration = session.configuration()?;
    let mut rows = Vec::new();
    leaves(
        &configuration.document.value,
        "",
        &configuration.document,
        &mut rows,
    );
    let set: Vec<&str> = rows.iter().map(|row| row.pointer.as_str()).collect();
    let defaults = builtin_defaults();
    let missing: Vec<Row> = defaults
        .into_iter()
        .filter(|row| !set.contains(&row.pointer.as_str()))
        .collect();
    rows.extend(missing);
    if session.screen.json {
        let settings: Vec<Value> = rows
            .iter()
            .map(|row| json!({"setting": row.name(), "value": row.value, "origin": row.origin}))
            .collect();
        session
            .screen
            .json(&json!({"file": configuration.file.as_ref().map(|file| file.display().to_string()), "settings": settings}));
        return Ok(());
    }
    let shown = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let rows = rows
        .iter()
        .map(|row| vec![row.name(), shown(&row.value), row.origin.clone()]);
    session
        .screen
        .answer(&value::columns(session.screen, rows.collect()));
    Ok(())
}

struct Row {
    pointer: String,
    value: Value,
    origin: String,
}

impl Row {
    fn name(&self) -> String {
        crate::config::words::dotted(&self.pointer)
    }
}

/// Every single value, secrets hidden; references are shown as they are written.
fn leaves(value: &Value, pointer: &str, document: &Document, rows: &mut Vec<Row>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, field) in fields {
                leaves(
                    field,
                    &format!("{pointer}/{}", escaped(key)),
                    document,
                    rows,
                );
            }
        }
        _ if pointer.is_empty() => {}
        value => {
            let origin = document.nearest_origin(pointer);
            rows.push(Row {
                pointer: pointer.to_owned(),
                value: hidden(value, pointer),
                origin: origin.map_or("default".to_owned(), |origin| origin.short()),
            });
        }
    }
}

/// A literal below a secret name is not shown; a reference is, since it holds nothing.
fn hidden(value: &Value, pointer: &str) -> Value {
    let is_reference = |text: &str| text.contains("${");
    let name = pointer.rsplit('/').next().unwrap_or_default();
    match value {
        Value::String(text) if !is_reference(text) && redact::is_secret_name(name) => {
            json!("[hidden]")
        }
        Value::String(text) if is_reference(text) => json!(text),
        value => redact::value(value),
    }
}

fn builtin_defaults() -> Vec<Row> {
    let policy = steadyhand::Policy::default();
    let breaker = policy.breaker.unwrap_or_default();
    let time = |duration| json!(humantime::format_duration(duration).to_string());
    let size = |bytes: usize| json!(bytesize::ByteSize(bytes as u64).display().iec().to_string());
    let rows = [
        ("/server/listen", json!("127.0.0.1:7400")),
        ("/defaults/timeout", time(policy.timeout)),
        ("/defaults/deadline", time(policy.deadline)),
        ("/defaults/retry/attempts", json!(policy.retry.attempts)),
        ("/defaults/retry/backoff", time(policy.retry.first_wait)),
        ("/defaults/breaker/failures", json!(breaker.failures)),
        (
            "/defaults/breaker/cooldown",
            time(std::time::Duration::from_millis(breaker.cooldown_ms)),
        ),
        (
            "/defaults/limits/concurrency",
            json!(policy.limit.concurrent),
        ),
        ("/defaults/limits/queue", json!(policy.limit.queue)),
        ("/defaults/limits/result", size(policy.output_bytes_max)),
    ];
    rows.map(|(pointer, value)| Row {
        pointer: pointer.to_owned(),
        value,
        origin: "default".to_owned(),
    })
    .into()
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
        None => session.screen.note("No configuration file: not by --config, not by $STEADYHAND_CONFIG, not here or above, not in the user's configuration folder."),
    }
    Ok(())
}
