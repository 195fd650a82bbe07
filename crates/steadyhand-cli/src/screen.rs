//! The two streams: stdout carries the answer and nothing else, stderr everything a person should see.

use std::cell::Cell;
use std::io::{IsTerminal, Write};

use tracing_subscriber::filter::LevelFilter;

use super::logging;
use super::{Color, Global, error, progress};
use steadyhand_config::Problem;
use steadyhand_config::document::plain;
use steadyhand_config::progress::Progress;
use steadyhand_config::settings::{LineFormat, LineLevel, LogSettings};

/// How this run may talk.
pub(super) struct Screen {
    pub(super) json: bool,
    pub(super) quiet: bool,
    /// No box drawing, no marks beyond ASCII.
    pub(super) plain: bool,
    pub(super) stdout_is_terminal: bool,
    unwritten: Cell<Option<String>>,
    pub(super) stderr_is_terminal: bool,
    /// Lines of a log and what is drawn over again do not go together.
    pub(super) logs: bool,
    pub(super) stderr_color: bool,
    pub(super) stdout_color: bool,
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
            unwritten: Cell::new(None),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
            logs: global.verbose > 0,
            stderr_color: colored(&|| anstream::AutoStream::choice(&std::io::stderr())),
            stdout_color: colored(&|| anstream::AutoStream::choice(&std::io::stdout())),
        }
    }

    /// The answer for people: everything in it can be seen, whoever wrote it.
    pub(super) fn answer(&self, text: &str) {
        match self.stdout_color {
            true => self.exact(&visible_but_styles(text)),
            false => self.exact(&visible(text)),
        }
    }

    /// The answer for machines, to the letter.
    pub(super) fn exact(&self, text: &str) {
        let mut stdout = std::io::stdout().lock();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let written = write!(stdout, "{text}{end}").and_then(|()| stdout.flush());
        match written {
            Ok(()) => {}
            // A reader that has seen enough has closed the pipe: nothing is wrong.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            Err(error) => self.unwritten.set(Some(plain(&error))),
        }
    }

    /// Why the answer could not be written, if it could not.
    pub(super) fn unwritten(&self) -> Option<String> {
        self.unwritten.take()
    }

    /// A text of somebody else's: what would steer a terminal, turn letters around or hide is made visible.
    pub(super) fn foreign(&self, text: &str) -> String {
        visible(text)
    }

    /// What a tool or a model answered: to the letter where it goes to a file or to another program.
    pub(super) fn content(&self, text: &str) -> String {
        match self.stdout_is_terminal {
            true => visible(text),
            false => text.to_owned(),
        }
    }

    /// The answer for machines: one JSON value.
    pub(super) fn json(&self, value: &impl serde::Serialize) {
        let text = match self.stdout_is_terminal {
            true => serde_json::to_string_pretty(value),
            false => serde_json::to_string(value),
        };
        self.exact(&text.unwrap_or_default());
    }

    /// Something a person may want to know; not with `-q`, and not where a machine reads.
    pub(super) fn note(&self, text: &str) {
        if !self.quiet && !self.json {
            self.line_to_stderr(text);
        }
    }

    /// A line for people; what would steer a terminal is made visible.
    pub(super) fn line_to_stderr(&self, text: &str) {
        self.drawn_to_stderr(&visible(text));
    }

    fn drawn_to_stderr(&self, text: &str) {
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }

    /// A problem with its place in a file.
    pub(super) fn diagnostic(&self, problem: &Problem) {
        let drawn = error::drawn(problem, self.stderr_color, !self.plain);
        self.drawn_to_stderr(visible_but_styles(&drawn).trim_end());
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

    /// In the colour for this state, where colours are wanted.
    pub(super) fn colored(&self, text: &str, color: anstyle::AnsiColor) -> String {
        match self.stdout_color {
            true => format!("{0}{text}{0:#}", color.on_default()),
            false => text.to_owned(),
        }
    }

    /// Progress of what takes over a second: a bar for people, a line for logs, nothing with `-q`.
    pub(super) fn progress(&self) -> Progress {
        match self.quiet || self.json {
            true => Progress::silent(),
            false => progress::to_stderr(self.has_bars()),
        }
    }

    /// Progress for someone who sits in front of it, and for nobody else.
    pub(super) fn live_progress(&self) -> Progress {
        match self.has_bars() {
            true => self.progress(),
            false => Progress::silent(),
        }
    }

    /// Whether what happens may be drawn and drawn over.
    pub(super) fn has_bars(&self) -> bool {
        let in_ci = std::env::var_os("CI").is_some();
        self.stderr_is_terminal && !self.plain && !self.logs && !in_ci
    }

    /// What happens inside, on stderr: errors, with `-v` the steps, with `-vv` everything.
    pub(super) fn log(&self, verbose: u8) {
        let level = self.level_by_flags(verbose).unwrap_or(LevelFilter::ERROR);
        logging::begin(level, self.stderr_color);
    }

    /// The same for a program that stays: as the configuration says, warnings if it says nothing.
    pub(super) fn log_as(&self, verbose: u8, settings: &LogSettings) {
        let level = self.level_by_flags(verbose);
        let level = level.unwrap_or_else(|| logging::level_of(settings));
        let format = settings.format.unwrap_or(LineFormat::Text);
        let tells_starts = self.tells_starts(settings);
        logging::change(level, format, self.stderr_color, tells_starts);
    }

    /// Whether a server that does not start is told in our own words, not as a line of the log.
    pub(super) fn tells_starts(&self, settings: &LogSettings) -> bool {
        let for_people = settings.format != Some(LineFormat::Json);
        for_people && !self.quiet && !self.json && settings.level != Some(LineLevel::Off)
    }

    fn level_by_flags(&self, verbose: u8) -> Option<LevelFilter> {
        match (self.quiet, verbose) {
            (true, _) => Some(LevelFilter::OFF),
            (false, 0) => None,
            (false, 1) => Some(LevelFilter::INFO),
            (false, _) => Some(LevelFilter::DEBUG),
        }
    }
}

/// The marks that SPEC V17 wants, left out where only ASCII is wanted.
pub(super) fn marked(text: &str, plain: bool) -> String {
    match plain {
        true => text.replace("❌ ", "").replace("⚠️ ", ""),
        false => text.to_owned(),
    }
}

/// A line for people, from where there is no screen at hand.
#[allow(clippy::print_stderr, reason = "what happens goes to stderr")]
pub(super) fn line(text: &str) {
    eprintln!("{}", visible(text));
}

/// What would steer a terminal, turn letters around or hide among them, as something one can see: `\u{1b}`.
pub(super) fn visible(text: &str) -> String {
    steadyhand::visible::text(text).into_owned()
}

/// The same, but for the styles that we have put there ourselves. Foreign texts in it have been made visible before.
fn visible_but_styles(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        shown.push_str(&visible(before));
        let end = after.find(|c: char| !c.is_ascii_digit() && c != ';');
        match end.filter(|end| after[*end..].starts_with('m')) {
            Some(end) => {
                shown.push_str(&format!("\u{1b}[{}m", &after[..end]));
                rest = &after[end + 1..];
            }
            None => {
                shown.push_str("\\u{1b}[");
                rest = after;
            }
        }
    }
    shown.push_str(&visible(rest));
    shown
}
