//! The settings in force, each with its value and where it comes from; secrets are not shown.

use serde_json::{Value, json};
use steadyhand::redact;

use steadyhand_config::Configuration;
use steadyhand_config::document::{Document, escaped};

/// Every setting of a configuration, and the defaults of what it does not say.
pub fn effective(configuration: &Configuration) -> Value {
    let settings: Vec<Value> = rows(configuration)
        .iter()
        .map(|row| json!({"setting": row.name(), "value": row.value, "origin": row.origin}))
        .collect();
    let file = configuration.file.as_ref();
    json!({"file": file.map(|file| file.display().to_string()), "settings": settings})
}

fn rows(configuration: &Configuration) -> Vec<Row> {
    let mut rows = Vec::new();
    let document = &configuration.document;
    leaves(&document.value, "", document, &mut rows);
    let set: Vec<&str> = rows.iter().map(|row| row.pointer.as_str()).collect();
    let missing: Vec<Row> = builtin_defaults()
        .into_iter()
        .filter(|row| !set.contains(&row.pointer.as_str()))
        .collect();
    rows.extend(missing);
    rows
}

struct Row {
    pointer: String,
    value: Value,
    origin: String,
}

impl Row {
    fn name(&self) -> String {
        steadyhand_config::words::dotted(&self.pointer)
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
    // `pin` of an MCP server is a word of ours, and no number that opens something.
    let is_pin = name == "pin" && ["off", "warn", "quarantine"].iter().any(|it| value == it);
    match value {
        value if is_pin => value.clone(),
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
