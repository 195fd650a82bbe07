//! One record of the audit log: who did what, when, from where, and what it changed; and the chain that joins records.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use steadyhand::redact;
use utoipa::ToSchema;

use crate::access::{By, Identity};
use crate::approvals::Approval;

/// A text in a record, in characters.
const TEXT_CHARS_MAX: usize = 300;
/// What is kept of one state before or after, in bytes of JSON.
const STATE_BYTES_MAX: usize = 8 * 1024;
/// What stands before the first record's digest.
pub(super) const FIRST_HASH: &str =
    "0000000000000000000000000000000000000000000000000000000000000000";
/// Says in the log that the log was not as it was left.
pub(super) const DAMAGED: &str = "audit.damaged";
/// The member that ends a line.
const HASH_MEMBER: &str = ",\"hash\":\"";

/// What happened, before it has a number.
#[derive(Debug, Clone, Default)]
pub struct AuditEvent {
    /// `key.create`, `breaker.reset`, …
    pub action: String,
    /// What it was done to.
    pub subject: Option<String>,
    pub who: AuditActor,
    pub from: AuditOrigin,
    pub before: Option<Value>,
    pub after: Option<Value>,
    /// `asked`, `done`, `refused`, …
    pub result: String,
}

/// Who did it
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditActor {
    /// The name of the key, the owner of the token, the user of this machine, or the program itself
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub name: Option<String>,
    /// viewer, caller, operator or admin
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub role: Option<String>,
    /// What let it in: key, token, jwt, local, nothing
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub by: Option<String>,
    /// The id of its API key
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub key: Option<String>,
}

/// Where it came from
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditOrigin {
    /// rest, dashboard, command, mcp (a person at the caller's own client), server
    pub way: String,
    /// The address of the client
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub address: Option<String>,
}

/// A record as it stands in the log
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditRecord {
    /// Counts from 1, without a gap
    pub n: u64,
    /// In milliseconds since 1970
    pub at_ms: u64,
    /// The node that wrote it
    pub node: String,
    /// What was done, such as key.create
    pub action: String,
    /// What it was done to
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub subject: Option<String>,
    pub who: AuditActor,
    pub from: AuditOrigin,
    /// The state before
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub before: Option<Value>,
    /// The state after
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub after: Option<Value>,
    /// asked (written before it was done), done, refused, and what else became of it
    pub result: String,
    /// The digest of the record before
    pub prev: String,
    /// SHA-256 of this line up to here
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hash: String,
}

impl AuditEvent {
    /// Something that this program does by itself.
    pub fn of_server(action: &str) -> AuditEvent {
        AuditEvent {
            action: action.to_owned(),
            who: AuditActor {
                name: Some("steadyhand".to_owned()),
                ..AuditActor::default()
            },
            from: AuditOrigin {
                way: "server".to_owned(),
                address: None,
            },
            result: "done".to_owned(),
            ..AuditEvent::default()
        }
    }

    /// Something that somebody does with a command on this machine.
    pub fn of_command(action: &str, user: Option<String>) -> AuditEvent {
        AuditEvent {
            action: action.to_owned(),
            who: AuditActor {
                name: user,
                by: Some(By::Local.word().to_owned()),
                role: Some("admin".to_owned()),
                key: None,
            },
            from: AuditOrigin {
                way: "command".to_owned(),
                address: None,
            },
            result: "done".to_owned(),
            ..AuditEvent::default()
        }
    }

    /// What became of an approval, whoever decided it, and wherever.
    pub fn of_approval(approval: &Approval) -> AuditEvent {
        let mut event = AuditEvent::of_server(&format!("approval.{}", approval.state.word()));
        event.who = AuditActor {
            name: approval.decided_by.clone(),
            ..AuditActor::default()
        };
        if let Some(from) = approval.decided_from {
            from.clone_into(&mut event.from.way);
        }
        event.on(&approval.id).changed(
            Some(json!({"state": "waiting"})),
            Some(json!({
                "state": approval.state.word(),
                "tool": approval.tool,
                "arguments_hash": approval.arguments_hash,
                "call_id": approval.call_id,
                "caller": approval.caller,
                "reason": approval.reason,
            })),
        )
    }

    pub fn on(mut self, subject: &str) -> AuditEvent {
        self.subject = Some(subject.to_owned());
        self
    }

    pub fn changed(mut self, before: Option<Value>, after: Option<Value>) -> AuditEvent {
        (self.before, self.after) = (before, after);
        self
    }

    pub fn result(mut self, result: &str) -> AuditEvent {
        result.clone_into(&mut self.result);
        self
    }

    /// As it goes into the log: bounded, without anything that looks like a secret.
    pub(super) fn record(self, n: u64, at_ms: u64, node: &str, prev: &str) -> AuditRecord {
        let who = AuditActor {
            name: self.who.name.as_deref().map(bounded),
            ..self.who
        };
        AuditRecord {
            n,
            at_ms,
            node: node.to_owned(),
            action: bounded(&self.action),
            subject: self.subject.as_deref().map(bounded),
            who,
            from: self.from,
            before: self.before.map(|state| bounded_state(&state)),
            after: self.after.map(|state| bounded_state(&state)),
            result: bounded(&self.result),
            prev: prev.to_owned(),
            hash: String::new(),
        }
    }
}

impl AuditActor {
    pub fn of(identity: &Identity, key: Option<String>) -> AuditActor {
        AuditActor {
            name: identity
                .name
                .as_deref()
                .map(|name| name.trim_start_matches('@').to_owned()),
            role: Some(identity.role.word().to_owned()),
            by: Some(identity.by.word().to_owned()),
            key,
        }
    }
}

impl AuditRecord {
    /// The line, and its digest.
    pub(super) fn line(&self) -> serde_json::Result<(Vec<u8>, String)> {
        let mut line = serde_json::to_vec(self)?;
        line.pop();
        let hash = digest(&line);
        line.extend_from_slice(HASH_MEMBER.as_bytes());
        line.extend_from_slice(hash.as_bytes());
        line.extend_from_slice(b"\"}\n");
        Ok((line, hash))
    }

    /// Reads a line, without its end, whose digest is right.
    pub(super) fn read(line: &[u8]) -> Result<AuditRecord, &'static str> {
        let tail = HASH_MEMBER.len() + FIRST_HASH.len() + 2;
        let split = line.len().checked_sub(tail).ok_or("it is cut")?;
        let (body, end) = line.split_at(split);
        if !end.starts_with(HASH_MEMBER.as_bytes()) || !end.ends_with(b"\"}") {
            return Err("it is no record");
        }
        let hash = &end[HASH_MEMBER.len()..end.len() - 2];
        if digest(body).as_bytes() != hash {
            return Err("it was changed: its digest does not fit");
        }
        serde_json::from_slice(line).map_err(|_| "it is no record")
    }
}

pub(super) fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bounded(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn bounded_state(state: &Value) -> Value {
    let state = redact::value(state);
    let bytes = state.to_string();
    match bytes.len() <= STATE_BYTES_MAX {
        true => state,
        false => json!({"cut": true, "bytes": bytes.len(), "sha256": digest(bytes.as_bytes())}),
    }
}
