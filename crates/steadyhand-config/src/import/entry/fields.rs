//! Single fields of an entry, each of the type it must have.

use std::time::Duration;

use super::{Entry, Refused};
use crate::foreign::{Field, Held, Node};
use crate::import::client::{Client, TimeoutUnit, Variables};
use crate::import::server::Timeouts;
use crate::import::text::ImportedText;
use crate::reference::Unresolved;
use crate::secret::{is_secret, keep_secret};
use crate::units::Span;

/// What a key of an entry is to us.
pub(super) enum Known {
    /// Its meaning is taken over
    Read,
    /// It changes nothing for us
    Kept,
    /// Nobody told us of it
    No,
}

pub(super) fn known(key: &str) -> Known {
    match key {
        "type"
        | "transport"
        | "transportType"
        | "command"
        | "cmd"
        | "args"
        | "env"
        | "envs"
        | "environment"
        | "env_keys"
        | "env_vars"
        | "envFile"
        | "env_file"
        | "cwd"
        | "url"
        | "httpUrl"
        | "serverUrl"
        | "uri"
        | "headers"
        | "http_headers"
        | "env_http_headers"
        | "bearer_token_env_var"
        | "disabled"
        | "enabled"
        | "timeout"
        | "startup_timeout_sec"
        | "startup_timeout_ms"
        | "tool_timeout_sec"
        | "autoApprove"
        | "alwaysAllow"
        | "trust"
        | "enabled_tools"
        | "includeTools"
        | "available_tools"
        | "tools"
        | "disabled_tools"
        | "disabledTools"
        | "excludeTools" => Known::Read,
        "name" | "display_name" | "description" | "bundled" | "dev" | "gallery" | "version"
        | "icon" => Known::Kept,
        _ => Known::No,
    }
}

/// A year: whoever writes more made a mistake.
const TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

impl Entry<'_> {
    /// A text with its variables replaced; what is missing is remembered under the field.
    pub(super) fn text(&mut self, field: &str, names: &[&str], written: &str) -> ImportedText {
        let expanded = self.expander.expand(names, written);
        self.secrets.extend(expanded.secrets);
        let unresolved = expanded.unresolved.into_iter();
        self.unresolved
            .extend(unresolved.map(|one| (field.to_owned(), one)));
        expanded.text
    }

    /// A text, number or truth value as it is written.
    pub(super) fn required_text(&mut self, field: &str, node: &Node) -> Result<String, Refused> {
        let Some(written) = node.as_written() else {
            return faulty(
                node.at,
                format!("'{field}' must be a text, not {}", node.kind()),
            );
        };
        if self.client.variables() == Variables::Literal && written.contains("${") {
            let message = format!(
                "'{field}' holds a variable, but {} replaces none: it is taken as it stands",
                self.client
            );
            self.notes.push((node.at, message));
        }
        Ok(written.into_owned())
    }

    /// A variable of the environment.
    pub(super) fn variable(&mut self, name: &str) -> Option<ImportedText> {
        let value = self.expander.surroundings.variable(name).ok()?;
        if is_secret(&[name], &value) {
            keep_secret(&mut self.secrets, &value);
        }
        Some(ImportedText::new(format!("${{{name}}}"), &value))
    }

    pub(super) fn must_be_set(&mut self, field: &str, variable: &str) {
        let reason = format!("the environment variable {variable} is not set");
        let unresolved = Unresolved::at(variable, 1, reason, "set it before Steadyhand starts");
        self.unresolved.push((field.to_owned(), unresolved));
    }

    pub(super) fn bool(&self, node: &Node, key: &str) -> Result<Option<bool>, Refused> {
        let Some(value) = node.get(key).filter(|value| !is_null(value)) else {
            return Ok(None);
        };
        match value.bool() {
            Some(value) => Ok(Some(value)),
            None => faulty(
                value.at,
                format!("'{key}' must be true or false, not {}", value.kind()),
            ),
        }
    }

    pub(super) fn table<'n>(&self, node: &'n Node, key: &str) -> Result<&'n [Field], Refused> {
        let Some(table) = node.get(key).filter(|table| !is_null(table)) else {
            return Ok(&[]);
        };
        match table.fields() {
            Some(fields) => Ok(fields),
            None => faulty(
                table.at,
                format!("'{key}' must be a table, not {}", table.kind()),
            ),
        }
    }

    /// The names under these keys, in one list.
    pub(super) fn names(&self, node: &Node, keys: &[&str]) -> Result<Vec<String>, Refused> {
        let mut names = Vec::new();
        for key in keys {
            let Some(list) = node.get(key).filter(|list| !is_null(list)) else {
                continue;
            };
            let Some(items) = list.items() else {
                return faulty(
                    list.at,
                    format!("'{key}' must be a list, not {}", list.kind()),
                );
            };
            for item in items {
                // Codex may write `{ name = "X", source = "…" }`.
                let name = item.text().or_else(|| item.get("name")?.text());
                let Some(name) = name else {
                    let message = format!("'{key}' must hold names, not {}", item.kind());
                    return faulty(item.at, message);
                };
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    pub(super) fn allowed(&self, node: &Node) -> Result<Option<Vec<String>>, Refused> {
        let keys = ["enabled_tools", "includeTools", "available_tools", "tools"];
        let given = keys
            .iter()
            .any(|key| node.get(key).is_some_and(|list| !is_null(list)));
        let names = self.names(node, &keys)?;
        // An empty list of goose stands for all.
        match given && !(names.is_empty() && self.client == Client::Goose) {
            true => Ok(Some(names)),
            false => Ok(None),
        }
    }

    pub(super) fn timeouts(&mut self, node: &Node) -> Timeouts {
        let mut timeouts = Timeouts {
            start: self
                .timeout(node, "startup_timeout_sec", TimeoutUnit::Seconds)
                .or_else(|| self.timeout(node, "startup_timeout_ms", TimeoutUnit::Milliseconds)),
            call: self.timeout(node, "tool_timeout_sec", TimeoutUnit::Seconds),
        };
        let general = self.timeout(node, "timeout", self.client.timeout_unit());
        // Crush means the connection, everyone else a request.
        match self.client {
            Client::Crush => timeouts.start = timeouts.start.or(general),
            _ => timeouts.call = timeouts.call.or(general),
        }
        timeouts
    }

    /// A wrong timeout is no reason to lose the server: it is said, and ours applies.
    fn timeout(&mut self, node: &Node, key: &str, unit: TimeoutUnit) -> Option<Duration> {
        let value = node.get(key).filter(|value| !is_null(value))?;
        let number = match (value.number(), value.text()) {
            (Some(number), _) => Some(number),
            (None, Some(text)) => match text.parse::<Span>() {
                Ok(span) => return Some(span.0),
                Err(_) => text.parse().ok(),
            },
            (None, None) => None,
        };
        let seconds = number.map(|number| match unit {
            TimeoutUnit::Milliseconds => number / 1000.0,
            TimeoutUnit::Seconds => number,
            TimeoutUnit::BySize if number >= 1000.0 => number / 1000.0,
            TimeoutUnit::BySize => number,
        });
        let span = seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .filter(|span| !span.is_zero() && *span <= TIMEOUT_MAX);
        let Some(span) = span else {
            self.notes.push((
                value.at,
                format!("'{key}' is no time that can be used: it is ignored"),
            ));
            return None;
        };
        if unit == TimeoutUnit::BySize {
            let message = format!(
                "'{key}' is taken as {span:?}: below 1000 it counts seconds, from there on milliseconds"
            );
            self.notes.push((value.at, message));
        }
        Some(span)
    }
}

/// The first of these keys that has a value.
pub(super) fn first<'n, 'k>(node: &'n Node, keys: &[&'k str]) -> Option<(&'k str, &'n Node)> {
    let mut found = keys.iter().filter_map(|key| Some((*key, node.get(key)?)));
    found.find(|(_, value)| !is_null(value))
}

pub(super) fn is_null(node: &Node) -> bool {
    matches!(node.held, Held::Null)
}

pub(super) fn faulty<T>(at: usize, message: String) -> Result<T, Refused> {
    Err(Refused::Faulty(at, message))
}
