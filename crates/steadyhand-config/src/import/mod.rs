//! MCP servers from the configuration files of other programs: read, never written.

mod client;
mod entry;
mod env_file;
mod expand;
mod read;
mod server;
mod shape;
mod table;
mod text;

use crate::words::nearest;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use secrecy::SecretString;

pub use client::Client;
pub use server::ImportedServer;
pub use server::Origin;
pub use server::Timeouts;
pub use server::ToolLists;
pub use server::Transport;
pub use shape::holds_servers;
pub use text::ImportedText;

use super::surroundings::Surroundings;
use client::{Location, Scope};

/// Reads configuration files of other programs.
#[derive(Debug, Clone)]
pub struct Importer {
    surroundings: Surroundings,
    answers: BTreeMap<String, SecretString>,
}

/// What was found in one file or in several.
#[derive(Debug, Clone, Default)]
pub struct Imported {
    /// The servers, each name once.
    pub servers: Vec<ImportedServer>,
    /// Servers whose name something before them had taken.
    pub not_used: Vec<NotUsed>,
    /// What `${input:…}` asks for.
    pub inputs: Vec<Input>,
    /// Remarks: nothing needs to be done.
    pub notes: Vec<Note>,
    /// What kept a file or a server from being read.
    pub problems: Vec<Problem>,
    /// What must be hidden wherever it turns up later.
    pub secrets: Vec<SecretString>,
}

/// A server that lost its name to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotUsed {
    /// The name.
    pub name: String,
    /// Where the one that is not used stands.
    pub origin: Origin,
    /// Where the one that is used stands.
    pub used: Origin,
}

/// A value that VS Code asks its user for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// What `${input:id}` names.
    pub id: String,
    /// What is asked.
    pub description: Option<String>,
    /// Whether the answer must not be seen.
    pub password: bool,
    /// The answers to choose from, if it is a choice.
    pub options: Vec<String>,
    /// Where it stands.
    pub origin: Origin,
}

/// A remark about a place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What there is to say.
    pub message: String,
}

/// Something in a file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
    /// The file is not used because somebody else could have written it.
    pub is_about_trust: bool,
}

impl Importer {
    /// An importer for a user, in a folder.
    pub fn new(surroundings: Surroundings) -> Importer {
        Importer {
            surroundings,
            answers: BTreeMap::new(),
        }
    }

    /// The same, knowing what `${input:id}` stands for.
    pub fn answering(mut self, id: impl Into<String>, answer: impl Into<SecretString>) -> Importer {
        self.answers.insert(id.into(), answer.into());
        self
    }

    /// Reads everything `[import] mcp` lists: known names of programs, and paths relative to `folder`.
    /// A name taken twice belongs to the first in the list. `skip` are names to leave out.
    pub fn read_all<S: AsRef<str>>(&self, wanted: &[S], skip: &[S], folder: &Path) -> Imported {
        let mut all = Imported::default();
        for wanted in wanted {
            let wanted = wanted.as_ref();
            match Client::by_name(wanted) {
                Some(client) => all.add(self.read_known(wanted, client)),
                None => {
                    let mut imported = self.read(&self.surroundings.path(wanted, folder));
                    let near = nearest(wanted, Client::KNOWN.iter().map(|(known, _)| *known));
                    if let (Some(near), Some(problem)) = (near, imported.problems.first_mut()) {
                        problem.help = format!("did you mean {near}? Otherwise {}", problem.help);
                    }
                    all.add(imported);
                }
            }
        }
        let skipped = |name: &str| skip.iter().any(|skip| skip.as_ref() == name);
        all.servers.retain(|server| !skipped(&server.name));
        all.not_used.retain(|server| !skipped(&server.name));
        all
    }

    /// Reads one file; its name and folder tell whose it is.
    pub fn read(&self, file: &Path) -> Imported {
        self.read_as(file, Client::of_file(file))
    }

    /// Reads one file of this program.
    pub fn read_as(&self, file: &Path, client: Client) -> Imported {
        let location = Location {
            file: file.to_owned(),
            scope: Scope::Everything,
        };
        match read::load(file, self.surroundings.trust()) {
            Ok(text) => self.read_location(&text, &location, client, Expected::Yes),
            Err(problem) => Imported {
                problems: vec![problem],
                ..Imported::default()
            },
        }
    }

    /// Reads the text of a file, without touching the file.
    pub fn read_text(&self, text: &str, file: &Path, client: Client) -> Imported {
        let location = Location {
            file: file.to_owned(),
            scope: Scope::Everything,
        };
        self.read_location(text, &location, client, Expected::Yes)
    }

    fn read_known(&self, name: &str, client: Client) -> Imported {
        let mut all = Imported::default();
        let mut found = false;
        for location in client.locations(&self.surroundings) {
            if !location.file.exists() {
                continue;
            }
            found = true;
            match read::load(&location.file, self.surroundings.trust()) {
                Ok(text) => all.add(self.read_location(&text, &location, client, Expected::No)),
                Err(problem) if all.problems.contains(&problem) => {}
                Err(problem) => all.problems.push(problem),
            }
        }
        if !found {
            let files = client.files(&self.surroundings);
            let places: Vec<String> = files
                .iter()
                .map(|file| file.display().to_string())
                .collect();
            all.notes.push(Note {
                file: files.into_iter().next_back().unwrap_or_default(),
                line: 1,
                column: 1,
                message: format!("{name}: no such file: {}", places.join(", ")),
            });
        }
        all
    }
}

/// Whether a file without servers is a mistake.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Yes,
    No,
}

impl Imported {
    /// What `steadyhand connect` wrote there is this program: as a server of its own it would start or ask itself.
    #[must_use]
    pub fn without_ourselves(mut self) -> Imported {
        let ourselves = self.servers.extract_if(.., |server| server.is_ourselves());
        for server in ourselves {
            self.notes.push(Note {
                file: server.origin.file,
                line: server.origin.line,
                column: server.origin.column,
                message: format!("{}: this is Steadyhand itself, and left out", server.name),
            });
        }
        self
    }

    /// Adds what was found elsewhere; names already taken stay with who has them.
    fn add(&mut self, other: Imported) {
        let taken: HashMap<String, Origin> = self
            .servers
            .iter()
            .map(|server| (server.name.clone(), server.origin.clone()))
            .collect();
        for server in other.servers {
            match taken.get(&server.name) {
                // The same file, listed twice.
                Some(used) if *used == server.origin => {}
                Some(used) => self.not_used.push(NotUsed {
                    name: server.name,
                    origin: server.origin,
                    used: used.clone(),
                }),
                None => self.servers.push(server),
            }
        }
        self.not_used.extend(other.not_used);
        self.inputs.extend(other.inputs);
        self.notes.extend(other.notes);
        self.problems.extend(other.problems);
        self.secrets.extend(other.secrets);
    }
}
