//! The `steadyhand.toml` that a command changes: checked by the real loader first, then replaced in one step.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::Session;
use super::super::error::{Exit, Failed};
use crate::extensions::EXTENSIONS;
use steadyhand_config::document::plain;
use steadyhand_config::replace::{NotReplaced, replace};
use steadyhand_config::{Configuration, find};

/// The file that applies, or the one to be made here.
pub(crate) struct File {
    path: PathBuf,
    /// As people name it.
    pub(crate) shown: String,
    /// What it says now; nothing if it is not there.
    pub(crate) text: String,
    /// What that means.
    pub(crate) configuration: Configuration,
    pub(crate) is_new: bool,
}

impl File {
    pub(crate) fn find(session: &Session<'_>) -> Result<File, Failed> {
        let path = match session.found() {
            Some(found) => found.path,
            None => session.surroundings.current.join(find::FILE_NAME),
        };
        let shown = session.surroundings.shown(&path).display().to_string();
        if path.extension().is_none_or(|ending| ending != "toml") {
            let message = format!("{shown} is another program's file: it is read, never written");
            return Err(Failed::new(Exit::Usage, "not_our_file", message)
                .help("Name a file of ours: --config steadyhand.toml"));
        }
        // A link stays a link: what it leads to is replaced.
        let path = fs::canonicalize(&path).unwrap_or(path);
        let is_new = !path.exists();
        let (text, configuration) = match is_new {
            true => (String::new(), Configuration::empty()),
            // What somebody else could have written is asked about first.
            false => {
                let configuration = session.load(Some(&path))?;
                let text = session.surroundings.trust().read_to_edit(&path);
                let text = text.map_err(|error| cannot("read", &shown, &error))?;
                (text, configuration)
            }
        };
        Ok(File {
            is_new,
            text,
            path,
            shown,
            configuration,
        })
    }

    /// A file of ours that is to be made, whatever is there now.
    pub(crate) fn to_be_written(session: &Session<'_>, path: &Path) -> Result<File, Failed> {
        let shown = session.surroundings.shown(path).display().to_string();
        if path.extension().is_none_or(|ending| ending != "toml") {
            let message = format!("{shown} would not be a file of ours: those end with .toml");
            return Err(Failed::new(Exit::Usage, "not_our_file", message)
                .help("Name another: --config steadyhand.toml"));
        }
        Ok(File {
            // A link stays a link: what it leads to is replaced.
            path: fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
            shown,
            text: String::new(),
            configuration: Configuration::empty(),
            is_new: true,
        })
    }

    /// The folder that relative paths in it start from.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// Writes the new text, if it makes a right configuration.
    pub(crate) fn write(&self, session: &Session<'_>, text: &str) -> Result<Configuration, Failed> {
        replace(&self.path, text, &session.surroundings, &EXTENSIONS).map_err(|why| match why {
            NotReplaced::Unwritable(error) => cannot("write", &self.shown, &error),
            NotReplaced::Wrong(mut report) => {
                report.subject = format!("what {} would say", self.shown);
                Failed::from(report)
            }
        })
    }
}

fn cannot(what: &str, file: &str, error: &io::Error) -> Failed {
    let message = format!(
        "{file} cannot be {what}{}: {}",
        if what == "write" { "ten" } else { "" },
        plain(error)
    );
    Failed::new(Exit::Config, "config_file", message)
}
