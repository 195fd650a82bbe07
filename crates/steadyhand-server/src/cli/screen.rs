//! The two streams: stdout carries the answer and nothing else, stderr everything a person should see.

use std::io::{IsTerminal, Write};

use miette::Diagnostic;
use tracing_subscriber::filter::LevelFilter;

use super::{Color, Global, error, progress};
use crate::progress::Progress;

/// How this run may talk.
pub(super) struct Screen {
    pub(super) json: bool,
    pub(super) quiet: bool,
    /// No box drawing, no marks beyond ASCII.
    pub(super) plain: bool,
    pub(super) stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    stderr_color: bool,
    stdout_color: bool,
}

impl Screen {
    pub(super) fn new(global: &Global) -> Screen {
        let choice = match global.color {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
        let colored = |stream: &dyn Fn() -> anstream::ColorChoice| match global.color {
            Color::Auto => stream() != anstream::ColorChoice::Never,
            Color::Always => true,
            Color::Never => false,
        };
        Screen {
            json: global.json,
            quiet: global.quiet,
            plain: global.plain,
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
            stderr_color: colored(&|| anstream::AutoStream::choice(&std::io::stderr())),
            stdout_color: colored(&|| anstream::AutoStream::choice(&std::io::stdout())),
        }
    }

    /// The answer.
    pub(super) fn answer(&self, text: &str) {
        let mut stdout = std::io::stdout().lock();
        // A reader that has seen enough has closed the pipe: nothing is wrong.
        let _ = match text.ends_with('\n') {
            true => write!(stdout, "{text}"),
            false => writeln!(stdout, "{text}"),
        };
        let _ = stdout.flush();
    }

    /// The answer for machines: one JSON value.
    pub(super) fn json(&self, value: &impl serde::Serialize) {
        let text = match self.stdout_is_terminal {
            true => serde_json::to_string_pretty(value),
            false => serde_json::to_string(value),
        };
        self.answer(&text.unwrap_or_default());
    }

    /// Something a person may want to know; not with `-q`, and not where a machine reads.
    pub(super) fn note(&self, text: &str) {
        if !self.quiet && !self.json {
            self.line_to_stderr(text);
        }
    }

    pub(super) fn line_to_stderr(&self, text: &str) {
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }

    /// A problem with its place in a file.
    pub(super) fn diagnostic(&self, diagnostic: &dyn Diagnostic) {
        self.line_to_stderr(error::drawn(diagnostic, self.stderr_color, !self.plain).trim_end());
    }

    /// Dim, where colours are wanted.
    pub(super) fn dim(&self, text: &str) -> String {
        match self.stdout_color {
            true => format!("{0}{text}{0:#}", anstyle::Style::new().dimmed()),
            false => text.to_owned(),
        }
    }

    /// Bold, where colours are wanted.
    pub(super) fn bold(&self, text: &str) -> String {
        match self.stdout_color {
            true => format!("{0}{text}{0:#}", anstyle::Style::new().bold()),
            false => text.to_owned(),
        }
    }

    /// Progress of what takes over a second: a bar for people, a line for logs, nothing with `-q`.
    pub(super) fn progress(&self) -> Progress {
        let in_ci = std::env::var_os("CI").is_some();
        if self.quiet || self.json {
            return Progress::silent();
        }
        progress::to_stderr(self.stderr_is_terminal && !self.plain && !in_ci)
    }

    /// What happens inside, on stderr: warnings, with `-v` the steps, with `-vv` everything.
    pub(super) fn log(&self, verbose: u8) {
        use tracing_subscriber::layer::SubscriberExt;
        use tracing_subscriber::util::SubscriberInitExt;
        let level = match (self.quiet, verbose) {
            (true, _) => LevelFilter::OFF,
            (false, 0) => LevelFilter::ERROR,
            (false, 1) => LevelFilter::INFO,
            (false, _) => LevelFilter::DEBUG,
        };
        let ours = tracing_subscriber::filter::Targets::new()
            .with_target("steadyhand", level)
            .with_target("steadyhand_server", level)
            .with_default(LevelFilter::ERROR.min(level));
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_ansi(self.stderr_color)
            .without_time()
            .with_target(false);
        let _ = tracing_subscriber::registry()
            .with(lines)
            .with(ours)
            .try_init();
    }
}
