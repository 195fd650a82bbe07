//! The table that an imported server would have in our own file.

use serde_json::{Map, Value, json};

use super::server::{ImportedServer, Transport};
use super::text::ImportedText;

impl ImportedServer {
    /// Its table, as it is used and as it may be shown.
    pub fn table(&self) -> (Map<String, Value>, Map<String, Value>) {
        let used = |text: &ImportedText| json!(text.expose());
        let seen = |text: &ImportedText| json!(text.shown());
        (fields(self, &used), fields(self, &seen))
    }
}

fn fields(server: &ImportedServer, text: &dyn Fn(&ImportedText) -> Value) -> Map<String, Value> {
    let mut table = Map::new();
    let mut put = |key: &str, value: Value| drop(table.insert(key.to_owned(), value));
    let map = |pairs: &[(String, ImportedText)]| {
        let pairs = pairs.iter().map(|(key, value)| (key.clone(), text(value)));
        Value::Object(pairs.collect())
    };
    match &server.transport {
        Transport::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            put("command", text(command));
            put("args", args.iter().map(text).collect());
            let set = env.iter().filter_map(|(key, value)| {
                let value = value.as_ref()?;
                Some((key.clone(), text(value)))
            });
            put("env", Value::Object(set.collect()));
            let without = env.iter().filter(|(_, value)| value.is_none());
            put("env_without", without.map(|(key, _)| json!(key)).collect());
            if let Some(cwd) = cwd {
                put("cwd", text(cwd));
            }
        }
        Transport::Http { url, headers, .. } => {
            put("url", text(url));
            put("headers", map(headers));
        }
        Transport::Sse { url, headers } => {
            put("url", text(url));
            put("headers", map(headers));
            put("transport", json!("sse"));
        }
    }
    let mut tools = Map::new();
    if let Some(allow) = &server.tools.allow {
        tools.insert("allow".to_owned(), json!(allow));
    }
    tools.insert("deny".to_owned(), json!(server.tools.deny));
    put("tools", Value::Object(tools));
    if let Some(start) = server.timeouts.start {
        let text = humantime::format_duration(start).to_string();
        put("start", json!({ "timeout": text }));
    }
    table
}
