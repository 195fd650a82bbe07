//! References in texts: `${env:NAME}`, `${env:NAME:-default}`, `${file:/path}`, `${keyring:service/user}`.

use std::env::VarError;
use std::fmt;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use steadyhand::redact;

use super::document::plain;
use super::keyring::KeyringFault;
use super::secret::{is_secret, is_secret_of_environment, keep_secret};
use super::surroundings::Surroundings;
use super::{NotRead, Trust};

/// Replaces references in texts. One pass: what comes out is never looked at again, and nothing is run.
#[derive(Debug, Clone)]
pub struct Resolver {
    surroundings: Surroundings,
    folder: PathBuf,
    in_templates: bool,
}

/// A text without references.
#[derive(Clone)]
pub struct Resolved {
    /// The text, secrets in it.
    pub text: String,
    /// What must be hidden wherever it turns up later.
    pub secrets: Vec<SecretString>,
}

/// What happened to a whole tree of values.
#[derive(Debug, Clone, Default)]
pub struct Resolution {
    /// What could not be replaced, by JSON Pointer; those texts are left as written.
    pub unresolved: Vec<(String, Unresolved)>,
    /// What must be hidden wherever it turns up later.
    pub secrets: Vec<SecretString>,
}

/// A reference that stands for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    /// As written: `${env:GITHUB_TOKEN}`.
    pub reference: String,
    /// Where it starts in its text, counted in characters from 1.
    pub column: usize,
    /// Why.
    pub reason: String,
    /// What to do about it.
    pub help: String,
}

/// A secret file holds a key or a certificate, not a book.
const FILE_BYTES_MAX: u64 = 64 * 1024;
const DEPTH_MAX: usize = 128;
const REFERENCE_CHARS_SHOWN: usize = 120;

impl Resolver {
    /// A resolver for a configuration file in this folder.
    pub fn new(surroundings: Surroundings, folder: impl Into<PathBuf>) -> Resolver {
        Resolver {
            surroundings,
            folder: folder.into(),
            in_templates: false,
        }
    }

    /// For texts with places for arguments: a brace in a secret is not taken for one.
    #[must_use]
    pub fn in_templates(mut self, in_templates: bool) -> Resolver {
        self.in_templates = in_templates;
        self
    }

    /// The text with its references replaced; the first that stands for nothing is the error.
    pub fn resolve(&self, text: &str) -> Result<Resolved, Unresolved> {
        self.resolve_field("", text)
    }

    /// Like [`Resolver::resolve`], for a field whose name may say that it holds a secret.
    pub fn resolve_field(&self, field: &str, text: &str) -> Result<Resolved, Unresolved> {
        let (resolved, unresolved) = self.replace(field, text);
        match unresolved.into_iter().next() {
            None => Ok(resolved),
            Some(first) => Err(first),
        }
    }

    /// Replaces in every text of a tree; names of fields are not touched.
    pub fn resolve_tree(&self, tree: &mut Value) -> Resolution {
        let mut resolution = Resolution::default();
        self.walk(tree, "", &mut String::new(), 0, &mut resolution);
        resolution
    }

    /// The same for the tree of one key; pointers start with it.
    pub fn resolve_tree_of(&self, key: &str, tree: &mut Value) -> Resolution {
        let mut resolution = Resolution::default();
        let mut pointer = format!("/{}", super::document::escaped(key));
        self.walk(tree, key, &mut pointer, 0, &mut resolution);
        resolution
    }

    fn walk(
        &self,
        value: &mut Value,
        field: &str,
        pointer: &mut String,
        depth: usize,
        into: &mut Resolution,
    ) {
        let length = pointer.len();
        match value {
            Value::String(text) if depth > DEPTH_MAX && text.contains("${") => {
                let reason = format!("it is nested more than {DEPTH_MAX} levels deep");
                let too_deep = Unresolved::at(text, 0, reason, "flatten the configuration");
                into.unresolved.push((pointer.clone(), too_deep));
            }
            Value::String(text) if text.contains("${") => {
                let (resolved, unresolved) = self.replace(field, text);
                into.secrets.extend(resolved.secrets);
                if unresolved.is_empty() {
                    *text = resolved.text;
                }
                let unresolved = unresolved.into_iter().map(|one| (pointer.clone(), one));
                into.unresolved.extend(unresolved);
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    pointer.push_str(&format!("/{index}"));
                    self.walk(item, field, pointer, depth + 1, into);
                    pointer.truncate(length);
                }
            }
            Value::Object(fields) => {
                for (name, item) in fields.iter_mut() {
                    pointer.push('/');
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                    self.walk(item, name, pointer, depth + 1, into);
                    pointer.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn replace(&self, field: &str, text: &str) -> (Resolved, Vec<Unresolved>) {
        let mut out = Resolved {
            text: String::with_capacity(text.len()),
            secrets: Vec::new(),
        };
        let mut unresolved = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let (before, from) = rest.split_at(start);
            if let Some(before) = before.strip_suffix('$') {
                out.text.push_str(before);
                out.text.push_str("${");
                rest = &from[2..];
                continue;
            }
            out.text.push_str(before);
            let column = text[..text.len() - from.len()].chars().count() + 1;
            let Some(end) = from.find('}') else {
                // What follows may be anything, a literal key too.
                let start = from.split_whitespace().next().unwrap_or(from);
                unresolved.push(Unresolved::at(start, column, "it is never closed", ESCAPE));
                rest = from;
                break;
            };
            let (reference, after) = from.split_at(end + 1);
            match self.look_up(field, &reference[2..end]) {
                Ok(found) => {
                    match self.in_templates {
                        true => out
                            .text
                            .push_str(&found.text.replace('{', "{{").replace('}', "}}")),
                        false => out.text.push_str(&found.text),
                    }
                    out.secrets.extend(found.secrets);
                }
                Err((reason, help)) => {
                    unresolved.push(Unresolved::at(reference, column, reason, help));
                }
            }
            rest = after;
        }
        out.text.push_str(rest);
        (out, unresolved)
    }

    fn look_up(&self, field: &str, reference: &str) -> Result<Resolved, Fault> {
        if reference.contains("${") {
            return fault("a reference cannot hold another one", ESCAPE);
        }
        match reference.split_once(':') {
            Some(("env", name)) => self.variable(field, name),
            Some(("file", path)) => {
                let file = self.surroundings.path(path, &self.folder);
                read_secret_file(&file, path, self.surroundings.trust()).map(Resolved::secret)
            }
            Some(("keyring", entry)) => self.ask_keyring(entry),
            Some((kind, _)) => fault(
                format!("there is no kind of reference '{kind}'"),
                "write ${env:NAME}, ${file:/path} or ${keyring:service/user}; a literal ${ is written $${",
            ),
            None if is_variable(reference) => fault(
                "it does not say where the value comes from",
                format!("write ${{env:{reference}}}; a literal ${{ is written $${{"),
            ),
            None => fault("it is no reference", ESCAPE),
        }
    }

    fn variable(&self, field: &str, written: &str) -> Result<Resolved, Fault> {
        let (name, default) = match written.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (written, None),
        };
        if !is_variable(name) {
            return fault(
                format!("'{name}' is no name of a variable"),
                "write ${env:NAME} or ${env:NAME:-default}",
            );
        }
        let mut is_default = false;
        let value = match (self.surroundings.variable(name), default) {
            (Ok(value), None) => value,
            // As in a shell, `:-` also stands in for an empty variable.
            (Ok(value), Some(_)) if !value.is_empty() => value,
            (Ok(_) | Err(VarError::NotPresent), Some(default)) => {
                is_default = true;
                default.to_owned()
            }
            (Err(VarError::NotPresent), None) => {
                return fault(
                    format!("the environment variable {name} is not set"),
                    format!("set it, or give a default: ${{env:{name}:-…}}"),
                );
            }
            (Err(VarError::NotUnicode(_)), _) => {
                return fault(
                    format!("the environment variable {name} is not valid UTF-8"),
                    "set it to a text",
                );
            }
        };
        // A default is written in the file for all to see, unless a name says otherwise.
        let is_secret = match is_default {
            true => is_secret(&[name, field], &value),
            false => is_secret_of_environment(&[name, field], &value),
        };
        Ok(match is_secret {
            true => Resolved::secret(value),
            false => Resolved {
                text: value,
                secrets: Vec::new(),
            },
        })
    }

    fn ask_keyring(&self, entry: &str) -> Result<Resolved, Fault> {
        let (service, user) = match entry.split_once('/') {
            Some((service, user)) if !service.is_empty() && !user.is_empty() => (service, user),
            _ => {
                return fault(
                    format!("'{entry}' names no entry of the key store"),
                    "write ${keyring:service/user}",
                );
            }
        };
        let instead = "${env:NAME} or ${file:/path}";
        match self.surroundings.keyring().password(service, user) {
            Ok(password) => Ok(Resolved::secret(password.expose_secret().to_owned())),
            Err(KeyringFault::NoStore(why)) => fault(
                format!("this system has no key store that can be reached: {why}"),
                format!("use {instead} instead"),
            ),
            Err(KeyringFault::NoEntry) => fault(
                format!("the key store has no entry for user '{user}' of service '{service}'"),
                format!("add it with the system's password manager, or use {instead}"),
            ),
            Err(KeyringFault::NoAccess(why)) => fault(
                format!("the key store cannot be read: {why}"),
                format!("unlock it and try again, or use {instead}"),
            ),
            Err(KeyringFault::Silent(patience)) => fault(
                format!("the key store did not answer within {patience:?}; it may be locked"),
                format!("unlock it and try again, or use {instead}"),
            ),
            Err(KeyringFault::Unusable(why)) => fault(
                format!("the entry in the key store cannot be used: {why}"),
                format!("store it again as a text, or use {instead}"),
            ),
        }
    }
}

/// Reason and help.
type Fault = (String, String);

const ESCAPE: &str = "a reference is written ${env:NAME}; a literal ${ is written $${";

fn fault<T>(reason: impl Into<String>, help: impl Into<String>) -> Result<T, Fault> {
    Err((reason.into(), help.into()))
}

/// The content of a small file, without the newline at its end.
pub fn read_secret_file(path: &Path, written: &str, trust: &Trust) -> Result<String, Fault> {
    let shown = path.display();
    if written.is_empty() {
        return fault("it names no file", "write ${file:/path}");
    }
    let content = trust.read(path, FILE_BYTES_MAX);
    let content = content.map_err(|why| match why {
        NotRead::Unreadable(error) => (
            format!("{shown} cannot be read: {}", plain(&error)),
            "create the file, or correct the path or its permissions".to_owned(),
        ),
        NotRead::NoFile => (
            format!("{shown} is no file"),
            "name a regular file".to_owned(),
        ),
        NotRead::TooLarge => (
            format!("{shown} is larger than {} KiB", FILE_BYTES_MAX / 1024),
            "name a file that holds only the secret".to_owned(),
        ),
        NotRead::Untrusted(file) => (format!("{shown} is not used: {}", file.reason), file.help),
    })?;
    let Ok(content) = String::from_utf8(content) else {
        return fault(format!("{shown} is not valid UTF-8"), "name a text file");
    };
    let content = content.trim_end_matches(['\r', '\n']);
    match content.is_empty() {
        true => fault(format!("{shown} is empty"), "write the secret into it"),
        false => Ok(content.to_owned()),
    }
}

pub fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// The first variable that a text names the way a shell does: `$NAME`, at the start of a word.
pub fn shell_variable(text: &str) -> Option<&str> {
    let mut before = None;
    for (at, letter) in text.char_indices() {
        let starts_word = before.is_none_or(|before: char| " \t/:=@,;\"'".contains(before));
        if letter == '$' && starts_word {
            let rest = &text[at + 1..];
            let is_part = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
            let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            // One letter is too little to go by, and a $ after it belongs to something else.
            if end > 1 && is_variable(&rest[..end]) && !rest[end..].starts_with('$') {
                return Some(&rest[..end]);
            }
        }
        before = Some(letter);
    }
    None
}

impl Resolved {
    fn secret(text: String) -> Resolved {
        let mut secrets = Vec::new();
        keep_secret(&mut secrets, &text);
        Resolved { text, secrets }
    }
}

impl Unresolved {
    pub fn at(
        reference: &str,
        column: usize,
        reason: impl Into<String>,
        help: impl Into<String>,
    ) -> Unresolved {
        let mut shown: String = reference.chars().take(REFERENCE_CHARS_SHOWN).collect();
        if shown.len() < reference.len() {
            shown.push('…');
        }
        Unresolved {
            reference: redact::text(&shown).into_owned(),
            column,
            reason: reason.into(),
            help: help.into(),
        }
    }
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.reference, self.reason, self.help)
    }
}

impl std::error::Error for Unresolved {}

impl fmt::Debug for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolved")
            .field("text", &"[secret]")
            .field("secrets", &self.secrets.len())
            .finish()
    }
}
