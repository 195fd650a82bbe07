//! What makes two calls with the same idempotency key the same call.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::call::Arguments;

/// What makes two calls the same: the tool and the arguments, whatever the order of their fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint(pub(crate) [u8; 32]);

impl Fingerprint {
    /// `tool` is the tool's own name, whatever alias the call used.
    pub(crate) fn of(tool: &str, args: &Arguments) -> Fingerprint {
        let mut hash = Sha256::new();
        hash.update(tool.as_bytes());
        hash.update([0]);
        match args {
            Arguments::Json(value) => feed_args(&mut hash, value),
            Arguments::Text(text) if text.trim_ascii().is_empty() => {
                feed_args(&mut hash, &Value::Null);
            }
            Arguments::Text(text) => match serde_json::from_str::<Value>(text) {
                Ok(value) => feed_args(&mut hash, &value),
                Err(_) => hash.update(text.as_bytes()),
            },
        }
        Fingerprint(hash.finalize().into())
    }
}

/// No arguments at all are an empty object.
fn feed_args(hash: &mut Sha256, args: &Value) {
    match args {
        Value::Null => hash.update(b"{}"),
        other => feed(hash, other),
    }
}

fn feed(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            hash.update(b"{");
            for name in names {
                hash.update(name.len().to_le_bytes());
                hash.update(name.as_bytes());
                feed(hash, &fields[name]);
            }
            hash.update(b"}");
        }
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                feed(hash, item);
            }
            hash.update(b"]");
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let text = match value.as_f64() {
                // 3.0 is 3, as it is to a schema.
                Some(float) if float.fract() == 0.0 && float.abs() < 2f64.powi(53) => {
                    (float as i64).to_string()
                }
                _ => value.to_string(),
            };
            hash.update(text.len().to_le_bytes());
            hash.update(text.as_bytes());
        }
    }
}
