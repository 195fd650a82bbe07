//! The one way of a command to a configuration: a file of a folder above is named, and one that somebody else could have
//! written is asked about, before anything in it is used.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use serde_json::Value;

use super::Session;
use super::error::{Exit, Failed};
use super::screen;
use crate::extensions::EXTENSIONS;
use steadyhand_config::{Configuration, Problem, Report, UntrustedFile, find};

/// What is trusted may name more that has to be asked about: so many times, then it is an error.
const QUESTIONS_MAX: usize = 5;
/// A longer answer is no yes.
const ANSWER_BYTES_MAX: u64 = 1024;
/// A larger file is no secret.
const SECRET_BYTES_MAX: u64 = 64 * 1024;

impl Session<'_> {
    /// The file that applies.
    pub(super) fn found(&self) -> Option<find::Found> {
        find::find(self.global.config.as_deref(), &self.surroundings)
    }

    /// The configuration; its warnings are shown with -v and by `config check`.
    pub(super) fn configuration(&self) -> Result<Configuration, Failed> {
        let found = self.found();
        let configuration = self.load(found.as_ref().map(|found| found.path.as_path()))?;
        if self.global.verbose > 0 {
            for warning in &configuration.warnings {
                self.screen.diagnostic(warning);
            }
        }
        Ok(configuration)
    }

    /// The configuration in this file; the demo set where there is none.
    pub(super) fn load(&self, path: Option<&Path>) -> Result<Configuration, Failed> {
        let (configuration, problems) = self.load_what_is_right(path);
        match problems.iter().any(|problem| !problem.is_warning) {
            true => Err(configuration.report(problems, &self.surroundings).into()),
            false => Ok(configuration),
        }
    }

    /// What is right of this file, and everything that is wrong with it.
    pub(super) fn load_what_is_right(&self, path: Option<&Path>) -> (Configuration, Vec<Problem>) {
        self.tell_where(path);
        let trust = self.surroundings.trust();
        trust.take_refused();
        for _ in 0..QUESTIONS_MAX {
            let loaded = Configuration::load_what_is_right(path, &self.surroundings, &EXTENSIONS);
            if !self.can_ask() {
                return loaded;
            }
            look_at_secret_files(&loaded.0, self);
            let refused = trust.take_refused();
            if refused.is_empty() || !ask(&refused) {
                return loaded;
            }
            refused.iter().for_each(|file| trust.give(file));
        }
        Configuration::load_what_is_right(path, &self.surroundings, &EXTENSIONS)
    }

    /// Names a file that lies in a folder above, once: who started this may not know of it.
    fn tell_where(&self, path: Option<&Path>) {
        let Some(path) = path else {
            return;
        };
        let found = self.found();
        let is_above = found.is_some_and(|found| found.is_above && found.path == path);
        if is_above && !self.told_where.replace(true) {
            let path = path.display();
            self.screen.note(&format!(
                "note: the configuration is {path}, from a folder above this one"
            ));
        }
    }

    /// Whether somebody sits there who can answer.
    pub(super) fn can_ask(&self) -> bool {
        let is_there = std::io::stdin().is_terminal() && self.screen.stderr_is_terminal;
        is_there && !self.global.no_input && !self.screen.json
    }
}

/// Files of secrets are read when a tool needs them: what would be refused then is asked about now.
fn look_at_secret_files(configuration: &Configuration, session: &Session<'_>) {
    fn walk(value: &Value, configuration: &Configuration, session: &Session<'_>) {
        match value {
            Value::String(text) => {
                let references = text.split("${file:").skip(1);
                for path in references.filter_map(|rest| rest.split('}').next()) {
                    let surroundings = &session.surroundings;
                    let path = surroundings.path(path, &configuration.folder);
                    // Refusals are kept; what else is wrong with it is told where it is used.
                    let _ = surroundings.trust().read(&path, SECRET_BYTES_MAX);
                }
            }
            Value::Array(items) => items
                .iter()
                .for_each(|item| walk(item, configuration, session)),
            Value::Object(fields) => fields
                .values()
                .for_each(|item| walk(item, configuration, session)),
            _ => {}
        }
    }
    walk(&configuration.document.value, configuration, session);
}

/// Whether a person wants these files to be used.
fn ask(files: &[UntrustedFile]) -> bool {
    screen::line("Somebody else could have written what is about to be used:");
    for file in files {
        screen::line(&format!("  {}: {}", file.path.display(), file.reason));
    }
    screen::line("It can start programs as you and read your keys. It counts for this run only.");
    let mut stderr = std::io::stderr().lock();
    let asked = write!(stderr, "Use it? [y/N] ").and_then(|()| stderr.flush());
    drop(stderr);
    if asked.is_err() {
        return false;
    }
    let mut answer = String::new();
    let stdin = std::io::stdin().lock();
    let read = std::io::Read::take(stdin, ANSWER_BYTES_MAX).read_line(&mut answer);
    let answer = answer.trim().to_lowercase();
    read.is_ok() && matches!(&*answer, "y" | "yes")
}

impl From<Report> for Failed {
    fn from(report: Report) -> Failed {
        let untrusted = report.problems.iter().find(|one| one.is_about_trust());
        let failed = match untrusted {
            Some(problem) => {
                let message = format!("{}; nothing was run", problem.message);
                let failed = Failed::new(Exit::Config, "config_untrusted", message);
                match &problem.help {
                    Some(help) => failed.help(help.clone()),
                    None => failed,
                }
            }
            None => Failed::new(Exit::Config, "config_invalid", report.to_string()),
        };
        failed.with_report(report)
    }
}
