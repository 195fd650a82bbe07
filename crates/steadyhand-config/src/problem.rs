//! What is wrong with a configuration: all of it in one report, each with its place and a next step.

use std::fmt;
use std::path::Path;

use serde_json::{Value, json};

use super::ownership::UntrustedFile;
use super::source_file::Place;

/// One thing that is wrong, or deserves a look.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Warnings do not keep a configuration from being used.
    pub is_warning: bool,
    /// What is wrong with what.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    place: Option<(Place, String)>,
    is_about_trust: bool,
}

impl Problem {
    /// Something that keeps the configuration from being used.
    pub fn error(message: impl Into<String>) -> Problem {
        Problem {
            is_warning: false,
            message: message.into(),
            help: None,
            place: None,
            is_about_trust: false,
        }
    }

    /// A file that somebody else could have written is not used.
    pub fn untrusted(file: &UntrustedFile, shown: &Path) -> Problem {
        let message = format!("{} is not used: {}", shown.display(), file.reason);
        Problem::error(message)
            .help(file.help.clone())
            .about_trust()
    }

    /// The same, as one about a file that somebody else could have written.
    #[must_use]
    pub(super) fn about_trust(mut self) -> Problem {
        self.is_about_trust = true;
        self
    }

    /// Whether it would be none if the file were trusted.
    pub fn is_about_trust(&self) -> bool {
        self.is_about_trust
    }

    /// Something that deserves a look.
    pub fn warning(message: impl Into<String>) -> Problem {
        Problem {
            is_warning: true,
            ..Problem::error(message)
        }
    }

    /// For a log: `steadyhand.toml:3:5: what is wrong; what to do`.
    pub fn on_one_line(&self) -> String {
        let at = self.place().map_or(String::new(), |place| {
            let (line, column) = place.line_and_column();
            format!("{}:{line}:{column}: ", place.file.path.display())
        });
        let help = self.help.as_ref();
        let help = help.map_or(String::new(), |help| format!("; {help}"));
        format!("{at}{}{help}", self.message)
    }

    /// Where it is, with a word that stands at the place.
    #[must_use]
    pub fn at(mut self, place: Place, label: impl Into<String>) -> Problem {
        self.place = Some((place, label.into()));
        self
    }

    /// The same problem in other words.
    #[must_use]
    pub fn saying(mut self, message: String) -> Problem {
        self.message = message;
        self
    }

    /// The same as an error.
    #[must_use]
    pub fn as_error(mut self) -> Problem {
        self.is_warning = false;
        self
    }

    /// The same as a warning.
    #[must_use]
    pub fn as_warning(mut self) -> Problem {
        self.is_warning = true;
        self
    }

    /// What to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    /// Where it is.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref().map(|(place, _)| place)
    }

    /// Where it is, and the word that stands there.
    pub fn labelled_place(&self) -> Option<(&Place, &str)> {
        let (place, label) = self.place.as_ref()?;
        Some((place, label))
    }

    /// For machines.
    pub fn to_json(&self) -> Value {
        let at = self.place().map(|place| (place, place.line_and_column()));
        json!({
            "severity": if self.is_warning { "warning" } else { "error" },
            "message": self.message,
            "file": at.map(|(place, _)| place.file.path.display().to_string()),
            "line": at.map(|(_, (line, _))| line),
            "column": at.map(|(_, (_, column))| column),
            "help": self.help,
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

/// Everything that is wrong, as one error.
#[derive(Debug)]
pub struct Report {
    /// What the problems are in, as the user named it.
    pub subject: String,
    /// At least one.
    pub problems: Vec<Problem>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.problems.iter().any(Problem::is_about_trust) {
            let subject = &self.subject;
            return write!(
                f,
                "somebody else could have written {subject}, or a file that it names; nothing was run"
            );
        }
        let count = self
            .problems
            .iter()
            .filter(|problem| !problem.is_warning)
            .count();
        let noun = if count == 1 { "problem" } else { "problems" };
        write!(f, "{count} {noun} in {}; nothing was changed", self.subject)
    }
}

impl std::error::Error for Report {}
