//! One file: loaded within bounds, its tables of servers found, each entry read on its own.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use secrecy::SecretString;

use super::client::{Client, Location, syntax, workspace};
use super::entry::{self, Refused};
use super::expand::Expander;
use super::shape::{self, PLACES, ServerTable};
use super::{Expected, Imported, Importer, Input, NotUsed, Note, Origin, Problem};
use crate::foreign::{Document, Field, Node};
use crate::{NotRead, Trust};

const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
const SERVERS_MAX: usize = 1000;
/// Remarks about one server: enough to see what is the matter with it.
const NOTES_MAX: usize = 20;

/// The text of a file.
pub(super) fn load(file: &Path, trust: &Trust) -> Result<String, Problem> {
    let problem = |message: String, help: &str| Problem {
        file: file.to_owned(),
        line: 1,
        column: 1,
        message,
        help: help.to_owned(),
        is_about_trust: false,
    };
    let content = trust.read(file, FILE_BYTES_MAX);
    let content = content.map_err(|why| match why {
        NotRead::Unreadable(error) => problem(
            format!("cannot be read: {}", crate::document::plain(&error)),
            "correct the path or its permissions, or take it out of the list",
        ),
        NotRead::NoFile => problem("is no file".to_owned(), "name a regular file"),
        NotRead::TooLarge => problem(
            format!("is larger than {} MiB", FILE_BYTES_MAX / 1024 / 1024),
            "name a configuration file",
        ),
        NotRead::Untrusted(untrusted) => Problem {
            is_about_trust: true,
            ..problem(
                format!("is not used: {}", untrusted.reason),
                &untrusted.help,
            )
        },
    })?;
    String::from_utf8(content)
        .map_err(|_| problem("is not valid UTF-8".to_owned(), "save it as UTF-8"))
}

impl Importer {
    pub(super) fn read_location(
        &self,
        text: &str,
        location: &Location,
        client: Client,
        expected: Expected,
    ) -> Imported {
        let file = &location.file;
        let mut out = Imported::default();
        let document = match Document::read(text, syntax(file)) {
            Ok(document) => document,
            Err(broken) => {
                out.problems.push(Problem {
                    file: file.clone(),
                    line: broken.at.line,
                    column: broken.at.column,
                    message: broken.message,
                    help: "mend the file; nothing of it is used until then".to_owned(),
                    is_about_trust: false,
                });
                return out;
            }
        };
        let reading = FileReading {
            importer: self,
            document: &document,
            file,
        };
        let tables = shape::tables(&document.root, client, location.scope, &self.surroundings);
        if tables.is_empty() && expected == Expected::Yes {
            let message = "no MCP servers in this file".to_owned();
            let help = format!("servers stand under {PLACES}");
            out.problems
                .push(reading.problem(document.root.at, message, help));
        }
        for table in tables {
            out.add(reading.table(&table));
        }
        out
    }
}

struct FileReading<'a> {
    importer: &'a Importer,
    document: &'a Document<'a>,
    file: &'a Path,
}

impl FileReading<'_> {
    fn table(&self, servers: &ServerTable<'_>) -> Imported {
        let mut out = Imported::default();
        let Some(fields) = servers.table.fields() else {
            let message = format!(
                "expected a table of servers, found {}",
                servers.table.kind()
            );
            let help = "write { \"name\": { \"command\": \"…\" } }".to_owned();
            out.problems
                .push(self.problem(servers.table.at, message, help));
            return out;
        };
        let inputs = self.inputs(servers, &mut out);
        let expander = Expander {
            client: servers.client,
            surroundings: &self.importer.surroundings,
            workspace: workspace(self.file, servers.client, &self.importer.surroundings),
            inputs,
        };
        // Where a name stands twice in a table, the last counts, as it does for JavaScript.
        let last: HashMap<&str, usize> = fields
            .iter()
            .enumerate()
            .map(|(index, field)| (field.name.as_str(), index))
            .collect();
        for (index, field) in fields.iter().enumerate() {
            let counts = last[field.name.as_str()];
            if counts != index {
                out.not_used.push(NotUsed {
                    name: field.name.clone(),
                    origin: self.origin(field.at, servers.client),
                    used: self.origin(fields[counts].at, servers.client),
                });
                continue;
            }
            if index == SERVERS_MAX {
                let message = format!("more than {SERVERS_MAX} servers; the rest is left out");
                let help = "split the file, or remove servers nobody uses".to_owned();
                out.problems.push(self.problem(field.at, message, help));
                break;
            }
            self.entry(field, servers, &expander, &mut out);
        }
        out
    }

    fn entry(
        &self,
        field: &Field,
        servers: &ServerTable<'_>,
        expander: &Expander<'_>,
        out: &mut Imported,
    ) {
        let reading = entry::read(field, self.origin(field.at, servers.client), expander);
        out.secrets.extend(reading.secrets);
        let name = shown(&field.name);
        let more = reading.notes.len().saturating_sub(NOTES_MAX);
        for (at, message) in reading.notes.into_iter().take(NOTES_MAX) {
            out.notes.push(self.note(at, format!("{name}: {message}")));
        }
        if more > 0 {
            let message = format!("{name}: and {more} more remarks");
            out.notes.push(self.note(field.at, message));
        }
        match reading.server {
            Ok(mut server) => {
                let off = servers.switched_off.contains(&server.name);
                let on = servers.left_on.as_ref();
                server.enabled &= !off && on.is_none_or(|on| on.contains(&server.name));
                out.servers.push(server);
            }
            Err(Refused::Skipped(why)) => {
                out.notes
                    .push(self.note(field.at, format!("{name}: left out: {why}")));
            }
            Err(Refused::Faulty(at, message)) => {
                let help = "correct it there; the other servers of the file are used".to_owned();
                out.problems
                    .push(self.problem(at, format!("{name}: {message}"), help));
            }
        }
    }

    /// What the file asks for, and the answers there are: those given, else the file's own defaults.
    fn inputs(
        &self,
        servers: &ServerTable<'_>,
        out: &mut Imported,
    ) -> BTreeMap<String, SecretString> {
        let mut answers = BTreeMap::new();
        let asked = servers.inputs.and_then(Node::items).unwrap_or_default();
        for input in asked.iter().take(SERVERS_MAX) {
            let text = |key| Some(input.get(key)?.text()?.to_owned());
            let Some(id) = text("id") else {
                let message = "an input without an 'id' is passed over".to_owned();
                out.notes.push(self.note(input.at, message));
                continue;
            };
            if let Some(default) = text("default") {
                answers.insert(id.clone(), SecretString::from(default));
            }
            let options = input
                .get("options")
                .and_then(Node::items)
                .unwrap_or_default();
            let options = options.iter().filter_map(|option| {
                let option = option.text().or_else(|| option.get("value")?.text());
                Some(option?.to_owned())
            });
            out.inputs.push(Input {
                id,
                description: text("description"),
                password: input.get("password").and_then(Node::bool).unwrap_or(false),
                options: options.collect(),
                origin: self.origin(input.at, servers.client),
            });
        }
        answers.extend(self.importer.answers.clone());
        answers
    }

    fn origin(&self, at: usize, client: Client) -> Origin {
        let place = self.document.place(at);
        Origin {
            file: self.file.to_owned(),
            line: place.line,
            column: place.column,
            client,
        }
    }

    fn note(&self, at: usize, message: String) -> Note {
        let place = self.document.place(at);
        Note {
            file: self.file.to_owned(),
            line: place.line,
            column: place.column,
            message,
        }
    }

    fn problem(&self, at: usize, message: String, help: String) -> Problem {
        let place = self.document.place(at);
        Problem {
            file: self.file.to_owned(),
            line: place.line,
            column: place.column,
            message,
            help,
            is_about_trust: false,
        }
    }
}

/// A name as a message may hold it.
fn shown(name: &str) -> String {
    format!("'{}'", name.chars().take(80).collect::<String>())
}
