//! Variables in the files of other programs: `${VAR}`, `${env:VAR}`, `${input:id}`, `${workspaceFolder}` and kin.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::env::VarError;
use std::path::{MAIN_SEPARATOR_STR, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use steadyhand::redact;

use super::client::{Client, Variables};
use super::text::ImportedText;
use crate::reference::{Unresolved, is_variable, read_secret_file};
use crate::secret::{is_secret, keep_secret, names_a_secret};
use crate::surroundings::Surroundings;

/// Replaces variables the way one program does it. One pass, no nesting, nothing is run.
pub(super) struct Expander<'a> {
    pub(super) client: Client,
    pub(super) surroundings: &'a Surroundings,
    pub(super) workspace: PathBuf,
    /// What `${input:id}` stands for, where it is known.
    pub(super) inputs: BTreeMap<String, SecretString>,
}

/// A text with its variables replaced.
pub(super) struct Expanded {
    pub(super) text: ImportedText,
    pub(super) secrets: Vec<SecretString>,
    pub(super) unresolved: Vec<Unresolved>,
}

/// What a `${…}` turned out to be.
enum Found {
    Value {
        value: String,
        secret: bool,
    },
    /// Not ours: a shell's `${x%y}`, for example
    Nothing,
    Missing {
        reason: String,
        help: String,
    },
}

const HIDDEN: &str = "[redacted]";
/// Longer literal parts beside a variable in a secret field are part of the secret, not a word such as `Bearer`.
const WORD_CHARS_MAX: usize = 8;

impl Expander<'_> {
    /// The text of a field that goes by these names.
    pub(super) fn expand(&self, names: &[&str], written: &str) -> Expanded {
        let mut out = Out::new(names);
        let variables = self.client.variables();
        let mut rest = written;
        while let Some(at) = rest.find('$') {
            let (before, from) = rest.split_at(at);
            out.literal(before);
            let reference = match variables {
                Variables::Literal => "",
                Variables::Braces => braced(from),
                Variables::BareLenient | Variables::BareStrict => match braced(from) {
                    "" => bare(from),
                    braced => braced,
                },
            };
            let column = written[..written.len() - from.len()].chars().count() + 1;
            if reference.is_empty() {
                if variables == Variables::BareStrict && from.starts_with("$(") {
                    let reason = "Steadyhand runs no commands that stand in configuration files";
                    let help = "put the value into an environment variable and write $NAME";
                    out.missing("$", Unresolved::at("$(…)", column, reason, help));
                } else {
                    out.literal("$");
                }
                rest = &from[1..];
                continue;
            }
            match self.find(reference, names) {
                Found::Value { value, secret } => out.value(reference, &value, secret),
                Found::Nothing => out.literal(reference),
                Found::Missing { reason, help } => {
                    let unresolved = Unresolved::at(shown(reference, true), column, reason, help);
                    out.missing(reference, unresolved);
                }
            }
            rest = &from[reference.len()..];
        }
        out.literal(rest);
        out.finish()
    }

    fn find(&self, reference: &str, names: &[&str]) -> Found {
        let Some(inside) = inside(reference) else {
            return match self.variable(&reference[1..], None, names) {
                Found::Missing { .. } if self.client.variables() == Variables::BareLenient => {
                    Found::Nothing
                }
                found => found,
            };
        };
        if let Some(value) = self.word(inside) {
            return value;
        }
        if let Some((name, default)) = inside.split_once(":-") {
            let name = name.strip_prefix("env:").unwrap_or(name);
            if default.contains("${") {
                return Found::Missing {
                    reason: "a variable cannot stand inside another one".to_owned(),
                    help: "write the default as plain text".to_owned(),
                };
            }
            return self.variable(name, Some(default), names);
        }
        match inside.split_once(':') {
            Some(("env", name)) => self.variable(name, None, names),
            Some(("input", id)) => self.input(id),
            Some(("file", path)) if self.client == Client::Windsurf => self.file(path),
            Some((word, _)) if self.client.is_editor() && is_variable(word) => Found::Missing {
                reason: format!("only {} itself knows ${{{word}:…}}", self.client),
                help: "write the value, or ${env:NAME}".to_owned(),
            },
            Some(_) => Found::Nothing,
            None => self.variable(inside, None, names),
        }
    }

    /// The words editors know.
    fn word(&self, word: &str) -> Option<Found> {
        let path = |path: Option<Cow<'_, str>>| match path {
            Some(path) => Found::Value {
                value: path.into_owned(),
                secret: false,
            },
            None => Found::Missing {
                reason: "this user has no home folder".to_owned(),
                help: "write the path".to_owned(),
            },
        };
        let folder = &self.workspace;
        match word {
            "workspaceFolder" => Some(path(Some(folder.to_string_lossy()))),
            "workspaceFolderBasename" => {
                let name = folder.file_name().unwrap_or_default();
                Some(path(Some(name.to_string_lossy())))
            }
            "userHome" => {
                let home = self.surroundings.home.as_ref();
                Some(path(home.map(|home| home.to_string_lossy())))
            }
            "pathSeparator" | "/" => Some(path(Some(MAIN_SEPARATOR_STR.into()))),
            _ => None,
        }
    }

    fn variable(&self, name: &str, default: Option<&str>, names: &[&str]) -> Found {
        if !is_variable(name) {
            return Found::Nothing;
        }
        let value = match (self.surroundings.variable(name), default) {
            (Ok(value), _) => value,
            (Err(VarError::NotPresent), Some(default)) => default.to_owned(),
            (Err(VarError::NotPresent), None) => {
                return Found::Missing {
                    reason: format!("the environment variable {name} is not set"),
                    help: "set it before Steadyhand starts".to_owned(),
                };
            }
            (Err(VarError::NotUnicode(_)), _) => {
                return Found::Missing {
                    reason: format!("the environment variable {name} is not valid UTF-8"),
                    help: "set it to a text".to_owned(),
                };
            }
        };
        let names: Vec<&str> = names.iter().copied().chain([name]).collect();
        let secret = is_secret(&names, &value);
        Found::Value { value, secret }
    }

    fn input(&self, id: &str) -> Found {
        match self.inputs.get(id) {
            Some(answer) => Found::Value {
                value: answer.expose_secret().to_owned(),
                secret: true,
            },
            None => Found::Missing {
                reason: format!("nobody has been asked for the input '{id}' yet"),
                help: "set an environment variable and write ${env:NAME} in its place".to_owned(),
            },
        }
    }

    fn file(&self, path: &str) -> Found {
        let file = self.surroundings.path(path, &self.workspace);
        match read_secret_file(&file, path, self.surroundings.trust()) {
            Ok(value) => Found::Value {
                value,
                secret: true,
            },
            Err((reason, help)) => Found::Missing { reason, help },
        }
    }
}

impl Client {
    fn is_editor(self) -> bool {
        matches!(self, Client::VsCode | Client::Cursor)
    }
}

/// `${…}` at the start of the text, or nothing.
fn braced(text: &str) -> &str {
    match (text.starts_with("${"), text.find('}')) {
        (true, Some(end)) => &text[..=end],
        _ => "",
    }
}

/// `$NAME` at the start of the text, or nothing.
fn bare(text: &str) -> &str {
    let name = &text[1..];
    let end = name.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
    let name = &name[..end.unwrap_or(name.len())];
    match is_variable(name) {
        true => &text[..=name.len()],
        false => "",
    }
}

fn inside(reference: &str) -> Option<&str> {
    reference.strip_prefix("${")?.strip_suffix('}')
}

/// A reference as people may see it: a default that stands in for a secret is one itself.
fn shown(reference: &str, secret: bool) -> &str {
    match reference.find(":-") {
        Some(_) if secret => "${…:-…}",
        _ => reference,
    }
}

struct Out {
    secret_field: bool,
    value: String,
    shown: String,
    replaced: bool,
    secrets: Vec<SecretString>,
    unresolved: Vec<Unresolved>,
    literal: String,
}

impl Out {
    fn new(names: &[&str]) -> Out {
        Out {
            secret_field: names.iter().any(|name| names_a_secret(name)),
            value: String::new(),
            shown: String::new(),
            replaced: false,
            secrets: Vec::new(),
            unresolved: Vec::new(),
            literal: String::new(),
        }
    }

    fn literal(&mut self, text: &str) {
        self.literal.push_str(text);
    }

    fn value(&mut self, reference: &str, value: &str, secret: bool) {
        self.end_literal(true);
        self.replaced = true;
        self.value.push_str(value);
        self.shown.push_str(shown(reference, secret));
        if secret {
            keep_secret(&mut self.secrets, value);
        }
    }

    fn missing(&mut self, reference: &str, unresolved: Unresolved) {
        self.end_literal(true);
        self.replaced = true;
        self.value.push_str(reference);
        self.shown.push_str(shown(reference, true));
        self.unresolved.push(unresolved);
    }

    fn end_literal(&mut self, beside_variable: bool) {
        let literal = std::mem::take(&mut self.literal);
        self.value.push_str(&literal);
        let is_word = beside_variable && literal.chars().count() <= WORD_CHARS_MAX;
        if !self.secret_field || literal.is_empty() || is_word {
            self.shown.push_str(&literal);
            return;
        }
        self.shown.push_str(HIDDEN);
        keep_secret(&mut self.secrets, &literal);
        // `Bearer abc…`: the key alone may turn up elsewhere.
        if let Some((_, key)) = literal.trim().split_once(' ') {
            keep_secret(&mut self.secrets, key);
        }
    }

    fn finish(mut self) -> Expanded {
        self.end_literal(self.replaced);
        Expanded {
            text: ImportedText::new(redact::text(&self.shown).into_owned(), &self.value),
            secrets: self.secrets,
            unresolved: self.unresolved,
        }
    }
}
