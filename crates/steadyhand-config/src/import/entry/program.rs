//! A server that is a program: command, arguments, variables, folder.

use super::fields::{faulty, first, is_null};
use super::{Entry, Refused};
use crate::foreign::Node;
use crate::import::client::Client;
use crate::import::env_file;
use crate::import::server::Transport;
use crate::import::text::ImportedText;
use crate::reference::{Unresolved, read_secret_file};
use crate::secret::{is_secret, keep_secret};

impl Entry<'_> {
    pub(super) fn program(
        &mut self,
        node: &Node,
        key: &str,
        command: &Node,
    ) -> Result<Transport, Refused> {
        // Some write program and arguments as one list.
        let (program, more) = match command.items() {
            Some([program, more @ ..]) => (program, more),
            Some([]) => return faulty(command.at, format!("'{key}' is empty")),
            None => (command, [].as_slice()),
        };
        let written = self.required_text(key, program)?;
        let home = |text: &str| {
            let path = self.expander.surroundings.without_tilde(text);
            path.to_string_lossy().into_owned()
        };
        let command = self.text(key, &[], &home(&written));
        let mut args = Vec::new();
        let mut before = String::new();
        let rest = match node.get("args") {
            None => [].as_slice(),
            Some(list) => match list.items() {
                Some(items) => items,
                None => {
                    let message = format!("'args' must be a list, not {}", list.kind());
                    return faulty(list.at, message);
                }
            },
        };
        for (index, arg) in more.iter().chain(rest).enumerate() {
            let field = format!("args[{index}]");
            let written = self.required_text(&field, arg)?;
            // `--api-key`, then the key.
            let names = match before.starts_with('-') && !before.contains('=') {
                true => vec![before.as_str()],
                false => Vec::new(),
            };
            args.push(self.text(&field, &names, &written));
            before = written;
        }
        Ok(Transport::Stdio {
            command,
            args,
            env: self.env(node)?,
            cwd: self.cwd(node)?,
        })
    }

    fn cwd(&mut self, node: &Node) -> Result<Option<ImportedText>, Refused> {
        let Some(cwd) = node.get("cwd").filter(|cwd| !is_null(cwd)) else {
            return Ok(None);
        };
        let written = self.required_text("cwd", cwd)?;
        let expanded = self.text("cwd", &[], &written);
        let place = self
            .expander
            .surroundings
            .path(expanded.expose(), &self.expander.workspace);
        let shown = expanded.shown().to_owned();
        Ok(Some(ImportedText::new(shown, &place.to_string_lossy())))
    }

    fn env(&mut self, node: &Node) -> Result<Vec<(String, Option<ImportedText>)>, Refused> {
        let mut env: Vec<(String, Option<ImportedText>)> = Vec::new();
        let mut set = |name: &str, value: Option<ImportedText>| {
            env.retain(|(known, _)| known != name);
            env.push((name.to_owned(), value));
        };
        for (name, value) in self.env_file(node)? {
            let shown = format!("(from envFile) {name}");
            if is_secret(&[&name], &value) {
                keep_secret(&mut self.secrets, &value);
            }
            set(&name, Some(ImportedText::new(shown, &value)));
        }
        for key in ["env_keys", "env_vars"] {
            for name in self.names(node, &[key])? {
                if let Some(value) = self.passed_on(key, &name) {
                    set(&name, Some(value));
                }
            }
        }
        for key in ["env", "envs", "environment"] {
            for field in self.table(node, key)? {
                if is_null(&field.node) {
                    set(&field.name, None);
                    continue;
                }
                let place = format!("{key}.{}", field.name);
                let written = self.required_text(&place, &field.node)?;
                let value = self.text(&place, &[&field.name], &written);
                set(&field.name, Some(value));
            }
        }
        Ok(env)
    }

    /// A variable the file names without a value: the program passes its own on.
    fn passed_on(&mut self, key: &str, name: &str) -> Option<ImportedText> {
        let value = self.variable(name);
        // Codex passes on what there is. goose needs it, and may have it in a store only it can read.
        if value.is_none() && self.client != Client::Codex {
            self.must_be_set(&format!("{key}.{name}"), name);
        }
        value
    }

    fn env_file(&mut self, node: &Node) -> Result<Vec<(String, String)>, Refused> {
        let Some((key, file)) = first(node, &["envFile", "env_file"]) else {
            return Ok(Vec::new());
        };
        let written = self.required_text(key, file)?;
        let expanded = self.text(key, &[], &written);
        if self.unresolved.iter().any(|(field, _)| field == key) {
            return Ok(Vec::new());
        }
        let path = self
            .expander
            .surroundings
            .path(expanded.expose(), &self.expander.workspace);
        let trust = self.expander.surroundings.trust();
        match read_secret_file(&path, &written, trust) {
            Ok(content) => Ok(env_file::parse(&content)),
            Err((reason, help)) => {
                let unresolved = Unresolved::at(expanded.shown(), 1, reason, help);
                self.unresolved.push((key.to_owned(), unresolved));
                Ok(Vec::new())
            }
        }
    }
}
