//! Reads one entry of a table of servers: many spellings in, one meaning out.

mod fields;
mod program;
mod remote;

use secrecy::SecretString;
use serde_json::Map;

use super::client::Client;
use super::expand::Expander;
use super::server::{ImportedServer, Origin, ToolLists, Transport};
use crate::foreign::{Field, Node};
use crate::reference::Unresolved;
use fields::{Known, faulty, first, known};

/// What reading one entry gave.
pub(super) struct Reading {
    /// The server, the reason why it is skipped, or the faults that keep it from being one.
    pub(super) server: Result<ImportedServer, Refused>,
    /// Remarks, each with the byte it is about.
    pub(super) notes: Vec<(usize, String)>,
    pub(super) secrets: Vec<SecretString>,
}

/// Why an entry is no server for us.
pub(super) enum Refused {
    /// It is fine, but of a kind only its own program can run
    Skipped(String),
    /// Something is wrong at this byte
    Faulty(usize, String),
}

/// Reads an entry.
pub(super) fn read(field: &Field, origin: Origin, expander: &Expander<'_>) -> Reading {
    let mut entry = Entry {
        client: origin.client,
        expander,
        notes: Vec::new(),
        secrets: Vec::new(),
        unresolved: Vec::new(),
    };
    let server = entry.read(field, origin);
    Reading {
        server,
        notes: entry.notes,
        secrets: entry.secrets,
    }
}

struct Entry<'a> {
    client: Client,
    expander: &'a Expander<'a>,
    notes: Vec<(usize, String)>,
    secrets: Vec<SecretString>,
    unresolved: Vec<(String, Unresolved)>,
}

/// The kinds of transport a file can name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Stdio,
    Http,
    Sse,
}

impl Entry<'_> {
    fn read(&mut self, field: &Field, origin: Origin) -> Result<ImportedServer, Refused> {
        let (name, node) = (&field.name, &field.node);
        if name.trim().is_empty() {
            return faulty(field.at, "a server without a name".to_owned());
        }
        if node.fields().is_none() {
            return faulty(node.at, format!("expected a table, found {}", node.kind()));
        }
        let enabled = self.enabled(node)?;
        let transport = self.transport(node)?;
        let timeouts = self.timeouts(node);
        let tools = ToolLists {
            allow: self.allowed(node)?,
            deny: self.names(node, &["disabled_tools", "disabledTools", "excludeTools"])?,
        };
        let mut approved = self.names(node, &["autoApprove", "alwaysAllow"])?;
        if self.bool(node, "trust")? == Some(true) {
            approved = vec!["*".to_owned()];
        }
        let mut extra = Map::new();
        for field in node.fields().unwrap_or_default() {
            match known(&field.name) {
                Known::Read => continue,
                Known::Kept => {}
                Known::No => {
                    let message = format!("'{}' means nothing to Steadyhand", field.name);
                    self.notes.push((field.at, message));
                }
            }
            extra.insert(field.name.clone(), field.node.value());
        }
        Ok(ImportedServer {
            name: name.clone(),
            transport,
            enabled,
            timeouts,
            tools,
            approved,
            origin,
            unresolved: std::mem::take(&mut self.unresolved),
            extra,
        })
    }

    fn enabled(&self, node: &Node) -> Result<bool, Refused> {
        let disabled = self.bool(node, "disabled")?.unwrap_or(false);
        Ok(!disabled && self.bool(node, "enabled")?.unwrap_or(true))
    }

    fn transport(&mut self, node: &Node) -> Result<Transport, Refused> {
        let named = self.named_transport(node)?;
        let command = first(node, &["command", "cmd"]);
        let url = first(node, &["httpUrl", "url", "serverUrl", "uri"]);
        match (named, command, url) {
            (Some(Named::Http | Named::Sse), _, Some((key, url))) => {
                self.remote(node, named, key, url)
            }
            (_, Some((key, command)), url) => {
                if let Some((url, node)) = url {
                    let message = format!("'{url}' is not used: '{key}' says it is a program");
                    self.notes.push((node.at, message));
                }
                self.program(node, key, command)
            }
            (_, None, Some((key, url))) => self.remote(node, named, key, url),
            (Some(Named::Http | Named::Sse), None, None) => {
                faulty(node.at, "it has no 'url'".to_owned())
            }
            (Some(Named::Stdio), None, None) => faulty(node.at, "it has no 'command'".to_owned()),
            (None, None, None) => faulty(node.at, "it has neither 'command' nor 'url'".to_owned()),
        }
    }

    fn named_transport(&mut self, node: &Node) -> Result<Option<Named>, Refused> {
        let Some((key, named)) = first(node, &["type", "transport", "transportType"]) else {
            return Ok(None);
        };
        let Some(kind) = named.text() else {
            return faulty(
                named.at,
                format!("'{key}' must be a text, not {}", named.kind()),
            );
        };
        match kind.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
            "stdio" | "local" => Ok(Some(Named::Stdio)),
            "http" | "streamablehttp" | "remote" => Ok(Some(Named::Http)),
            "sse" => Ok(Some(Named::Sse)),
            "builtin" | "platform" | "frontend" | "inlinepython"
                if self.client == Client::Goose =>
            {
                Err(Refused::Skipped(format!(
                    "type '{kind}' is a part of goose, not a server"
                )))
            }
            "ws" | "websocket" => faulty(
                named.at,
                format!("{key} '{kind}' is not supported; there are stdio, http and sse"),
            ),
            _ => {
                let message = format!(
                    "unknown {key} '{kind}': taken by 'command' or 'url'; there are stdio, http and sse"
                );
                self.notes.push((named.at, message));
                Ok(None)
            }
        }
    }
}
