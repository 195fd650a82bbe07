//! Conversations that are kept for the dashboard, where that is configured: the latest state of each, without secrets.

use std::path::Path;
use std::sync::Arc;

use axum::body::Bytes;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use steadyhand::clock;
use steadyhand::conversation::{Fix, Provider, messages};
use steadyhand::redact::Secrets;
use tokio::sync::Semaphore;

use super::folder::Folder;
use crate::history::Exchange;
use crate::scrub::Scrubber;

const FOLDER: &str = "proxy-conversations";
const KEPT_MAX: usize = 200;
const BYTES_MAX: usize = 1024 * 1024;
/// Conversations that are written at the same time; the next ones are not kept.
const WRITES_MAX: usize = 8;

/// The folder of conversations.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    folder: Arc<Folder>,
    writes: Arc<Semaphore>,
}

/// A conversation that is to be kept.
pub(super) struct Keeping {
    provider: Provider,
    request: Bytes,
    /// Of the request's own keys.
    scrubber: Scrubber,
    answer: Option<Value>,
}

impl Kept {
    pub(super) fn new(state: &Path) -> Kept {
        Kept {
            folder: Arc::new(Folder::new(state.join(FOLDER), KEPT_MAX, BYTES_MAX)),
            writes: Arc::new(Semaphore::new(WRITES_MAX)),
        }
    }
}

impl Keeping {
    pub(super) fn new(provider: Provider, request: Bytes, scrubber: Scrubber) -> Keeping {
        Keeping {
            provider,
            request,
            scrubber,
            answer: None,
        }
    }

    pub(super) fn answered(&mut self, answer: Value) {
        self.answer = Some(answer);
    }

    /// Writes it, on a thread where that is no harm.
    pub(super) fn put(self, kept: &Kept, exchange: &Exchange, fixes: &[Fix]) {
        let Ok(turn) = Arc::clone(&kept.writes).try_acquire_owned() else {
            tracing::debug!("a conversation is not kept: others are being written");
            return;
        };
        let folder = Arc::clone(&kept.folder);
        let about = json!({
            "at_ms": clock::wall_ms(),
            "provider": exchange.provider,
            "model": exchange.model,
            "caller": exchange.caller,
            "status": exchange.status,
            "fixes": fixes,
        });
        let caller = exchange.caller.clone().unwrap_or_default();
        let write = move || {
            let _turn = turn;
            let Some((name, text)) = self.text(about, &caller, folder.bytes_max()) else {
                return;
            };
            if let Err(error) = folder.put(&name, text.as_bytes()) {
                tracing::warn!(%error, "a conversation cannot be kept in {}", folder.path().display());
            }
        };
        // A report may be told while the runtime is going down.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(write);
        }
    }

    fn text(self, mut about: Value, caller: &str, bytes_max: usize) -> Option<(String, String)> {
        let request: Value = serde_json::from_slice(&self.request).ok()?;
        let said = messages(self.provider, &request)?;
        let first = said.first().map(Value::to_string).unwrap_or_default();
        let mut digest = Sha256::new();
        for part in [self.provider.as_str(), caller, &first] {
            digest.update(part.as_bytes());
            digest.update([0]);
        }
        let digest = digest.finalize();
        let id: String = digest[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let shown = |value: &Value| {
            let mut shown = Secrets::default().hide_in(value);
            self.scrubber.value(&mut shown);
            shown
        };
        about["id"] = json!(id);
        about["answer"] = self.answer.as_ref().map(&shown).unwrap_or_default();
        // The end is what people look for: the beginning makes room.
        let mut from = 0;
        loop {
            let part: Vec<Value> = said[from..].iter().map(&shown).collect();
            about["messages"] = Value::Array(part);
            about["messages_left_out"] = json!(from);
            let text = about.to_string();
            if text.len() <= bytes_max {
                return Some((format!("{id}.json"), text));
            }
            if from == said.len() {
                return None;
            }
            from += (said.len() - from).div_ceil(2);
        }
    }
}
