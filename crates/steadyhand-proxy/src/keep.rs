//! Conversations that are kept for the dashboard, where that is configured: the latest state of each, without secrets.
//! `conversations/proxied.rs` reads them.

use std::path::Path;
use std::sync::Arc;

use axum::body::Bytes;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use steadyhand::redact::Secrets;
use steadyhand_conversation::{Fix, Provider, messages, messages_key};
use tokio::sync::Semaphore;

use super::folder::Folder;
use super::report::finding;
use steadyhand_runtime::scrub::Scrubber;
use steadyhand_server::conversations::proxied::{self, BYTES_MAX, FOLDER, Head};
use steadyhand_store::history::{Exchange, LISTED_MAX};

const KEPT_MAX: usize = 200;
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
        let listed = fixes.iter().take(LISTED_MAX);
        let head = Head {
            provider: exchange.provider.clone(),
            format: self.provider,
            model: exchange.model.clone(),
            caller: exchange.caller.clone(),
            status: exchange.status,
            title: String::new(),
            fixes: listed
                .map(|fix| finding(&fix.at, fix.code.as_str(), &fix.message))
                .collect(),
            fix_count: fixes.len(),
            messages_left_out: 0,
            answered: 0,
        };
        let write = move || {
            let _turn = turn;
            let Some((name, text)) = self.text(head, folder.bytes_max()) else {
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

    fn text(self, mut head: Head, bytes_max: usize) -> Option<(String, String)> {
        let mut request: Value = serde_json::from_slice(&self.request).ok()?;
        let key = messages_key(self.provider);
        if request[key].is_string() {
            // A question alone stands for a message.
            request[key] = json!([{"role": "user", "content": request[key].take()}]);
        }
        let said = messages(self.provider, &request)?;
        let first = said.first().map(Value::to_string).unwrap_or_default();
        let mut digest = Sha256::new();
        let caller = head.caller.as_deref().unwrap_or_default();
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
        let answer = self
            .answer
            .as_ref()
            .map(|it| self.provider.format().answer_messages(it));
        let answer: Vec<Value> = answer.iter().flatten().map(&shown).collect();
        let said: Vec<Value> = said.iter().map(&shown).collect();
        head.title = proxied::title(self.provider, &said);
        head.answered = answer.len();
        // The end is what people look for: the beginning makes room.
        let mut from = 0;
        loop {
            head.messages_left_out = from;
            let mut text = serde_json::to_string(&head).ok()?;
            for message in said[from..].iter().chain(&answer) {
                text.push('\n');
                text.push_str(&message.to_string());
            }
            text.push('\n');
            if text.len() <= bytes_max {
                return Some((format!("{id}.jsonl"), text));
            }
            if from == said.len() {
                return None;
            }
            from += (said.len() - from).div_ceil(2);
        }
    }
}
