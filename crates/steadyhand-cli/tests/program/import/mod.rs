//! What the configuration takes from elsewhere: references, files of other programs, Flex Chat's tools.

mod clients;
mod files;
mod flex_chat;
mod forms;
mod never_panics;
mod reference;

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use steadyhand_config::Surroundings;
use steadyhand_config::import::{
    Client, Imported, ImportedServer, ImportedText, Importer, Transport,
};
use steadyhand_config::keyring::{Keyring, KeyringFault};

/// A key store with one entry, `steadyhand/google`.
struct OneEntry;

impl Keyring for OneEntry {
    fn password(&self, service: &str, user: &str) -> Result<SecretString, KeyringFault> {
        match (service, user) {
            ("steadyhand", "google") => Ok("ya29-from-the-keyring".into()),
            ("nowhere", _) => Err(KeyringFault::NoStore("no D-Bus session".to_owned())),
            ("locked", _) => Err(KeyringFault::NoAccess(
                "the collection is locked".to_owned(),
            )),
            _ => Err(KeyringFault::NoEntry),
        }
    }
}

const VARIABLES: [(&str, &str); 6] = [
    ("TOKEN", "tok-123456789"),
    ("GITHUB_TOKEN", "gh-abcdefghijk"),
    ("REGION", "north-europe"),
    ("EMPTY", ""),
    ("SHORT_KEY", "abc"),
    ("DATABASE", "postgres://me:hunter2@db/x"),
];

fn surroundings() -> Surroundings {
    let (home, current) = (Path::new("/home/ada"), Path::new("/work/app"));
    Surroundings::given(VARIABLES, home, current, Arc::new(OneEntry))
}

fn import(client: Client, file: &str, text: &str) -> Imported {
    Importer::new(surroundings()).read_text(text, Path::new(file), client)
}

/// Everything a server is, in one line.
fn line(server: &ImportedServer) -> String {
    let mut line = format!("{}: ", server.name);
    let list = |texts: &[ImportedText]| {
        let texts: Vec<&str> = texts.iter().map(ImportedText::expose).collect();
        texts.join(" ")
    };
    let pairs = |pairs: &[(String, ImportedText)]| {
        let pairs = pairs.iter();
        let pairs: Vec<String> = pairs
            .map(|(name, value)| format!(" {name}: {}", value.expose()))
            .collect();
        pairs.concat()
    };
    match &server.transport {
        Transport::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            let _ = write!(line, "stdio {} [{}]", command.expose(), list(args));
            for (name, value) in env {
                let _ = match value {
                    Some(value) => write!(line, " {name}={}", value.expose()),
                    None => write!(line, " -{name}"),
                };
            }
            if let Some(cwd) = cwd {
                let _ = write!(line, " in {}", cwd.expose());
            }
        }
        Transport::Http {
            url,
            headers,
            or_sse,
        } => {
            let kind = if *or_sse { "http|sse" } else { "http" };
            let _ = write!(line, "{kind} {}{}", url.expose(), pairs(headers));
        }
        Transport::Sse { url, headers } => {
            let _ = write!(line, "sse {}{}", url.expose(), pairs(headers));
        }
    }
    if !server.enabled {
        line.push_str(" off");
    }
    if let Some(start) = server.timeouts.start {
        let _ = write!(line, " start={start:?}");
    }
    if let Some(call) = server.timeouts.call {
        let _ = write!(line, " call={call:?}");
    }
    if let Some(allow) = &server.tools.allow {
        let _ = write!(line, " allow={}", allow.join(","));
    }
    if !server.tools.deny.is_empty() {
        let _ = write!(line, " deny={}", server.tools.deny.join(","));
    }
    if !server.approved.is_empty() {
        let _ = write!(line, " approved={}", server.approved.join(","));
    }
    for (field, unresolved) in &server.unresolved {
        let _ = write!(line, " !{field} {}", unresolved.reference);
    }
    line
}

fn lines(imported: &Imported) -> Vec<String> {
    imported.servers.iter().map(line).collect()
}

fn notes(imported: &Imported) -> Vec<String> {
    let notes = imported.notes.iter();
    notes
        .map(|note| format!("{}:{} {}", note.line, note.column, note.message))
        .collect()
}

fn problems(imported: &Imported) -> Vec<String> {
    let problems = imported.problems.iter();
    problems
        .map(|problem| format!("{}:{} {}", problem.line, problem.column, problem.message))
        .collect()
}

fn exposed(secrets: &[SecretString]) -> Vec<&str> {
    secrets.iter().map(ExposeSecret::expose_secret).collect()
}
