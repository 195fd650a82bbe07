//! What a yes is a yes to: one number for a tool and its arguments, whatever the order of their names.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// `sha256:…` of the tool and its arguments.
pub fn of(tool: &str, args: &Value) -> String {
    let mut digest = Sha256::new();
    text(tool, &mut digest);
    add(args, &mut digest);
    let hex: String = digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}

/// Every value with its kind and its length: no two that differ look alike.
fn add(value: &Value, digest: &mut Sha256) {
    match value {
        Value::Null => digest.update(b"n"),
        Value::Bool(true) => digest.update(b"t"),
        Value::Bool(false) => digest.update(b"f"),
        Value::Number(number) => {
            digest.update(b"#");
            text(&number.to_string(), digest);
        }
        Value::String(string) => {
            digest.update(b"s");
            text(string, digest);
        }
        Value::Array(items) => {
            digest.update(b"[");
            digest.update((items.len() as u64).to_be_bytes());
            items.iter().for_each(|item| add(item, digest));
        }
        Value::Object(fields) => {
            digest.update(b"{");
            digest.update((fields.len() as u64).to_be_bytes());
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            for (name, field) in fields {
                text(name, digest);
                add(field, digest);
            }
        }
    }
}

fn text(text: &str, digest: &mut Sha256) {
    digest.update((text.len() as u64).to_be_bytes());
    digest.update(text.as_bytes());
}
