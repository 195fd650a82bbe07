//! How a command fails: one exit code, one message of three parts (what, evidence, next step), for
//! people on stderr or as one line of JSON.

use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use steadyhand::FailureCode;
use steadyhand_mcp::StartFailure;
use steadyhand_models::{ModelError, ModelErrorKind};

use super::screen::Screen;
use super::value;
use steadyhand_config::excerpt::DrawnProblem;
use steadyhand_config::{Problem, Report};

/// The exit codes (UX.md §2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Done,
    Unexpected,
    Usage,
    SignIn,
    NotReachable,
    ToolError,
    TimedOut,
    Refused,
    Config,
    Signal(u8),
}

impl Exit {
    pub(super) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Unexpected => 1,
            Exit::Usage => 2,
            Exit::SignIn => 3,
            Exit::NotReachable => 4,
            Exit::ToolError => 5,
            Exit::TimedOut => 6,
            Exit::Refused => 7,
            Exit::Config => 8,
            Exit::Signal(code) => code,
        }
    }

    /// What the failure of a call means for the program.
    pub(super) fn of(code: FailureCode) -> Exit {
        match code {
            FailureCode::ValidationError => Exit::Usage,
            FailureCode::AuthenticationError => Exit::SignIn,
            FailureCode::NetworkError => Exit::NotReachable,
            FailureCode::ToolNotFound
            | FailureCode::ToolExecutionError
            | FailureCode::RateLimitError => Exit::ToolError,
            FailureCode::Timeout => Exit::TimedOut,
            FailureCode::CircuitOpen
            | FailureCode::Overloaded
            | FailureCode::ApprovalDenied
            | FailureCode::ApprovalExpired
            | FailureCode::IdempotencyConflict => Exit::Refused,
            FailureCode::Cancelled => Exit::Signal(130),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// Nobody reads more at once.
const PROBLEMS_SHOWN_MAX: usize = 500;

/// A name of megabytes is no part of a message.
const MESSAGE_BYTES_MAX: usize = 8_000;

/// Why a command failed.
pub(super) struct Failed(Box<Details>);

struct Details {
    exit: Exit,
    /// `config_invalid`: stable, for machines.
    code: &'static str,
    message: String,
    /// Lines between the message and the help: name and value, in columns.
    evidence: Vec<(String, String)>,
    help: Option<String>,
    /// More for machines.
    details: Map<String, Value>,
    report: Option<Arc<Report>>,
    /// The whole text for people, where someone else has the words.
    text: Option<String>,
}

impl Failed {
    pub(super) fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Failed {
        Failed(Box::new(Details {
            exit,
            code,
            message: steadyhand::cut::text(&message.into(), MESSAGE_BYTES_MAX),
            evidence: Vec::new(),
            help: None,
            details: Map::new(),
            report: None,
            text: None,
        }))
    }

    /// A server that did not start; `more` says how to look closer.
    /// A server that did not start. Where the lines of SPEC V17 were printed before, they are not repeated.
    pub(super) fn of_start(failure: &StartFailure, more: &str, is_v17_told: bool) -> Failed {
        let message = failure.to_string();
        let mut failed = Failed::new(Exit::NotReachable, "mcp_start_failed", message);
        failed.0.text = Some(match is_v17_told {
            true => failure.detail_below_v17(more),
            false => failure.detail_for(more),
        });
        if let Value::Object(mut fields) = json!(failure) {
            failed.0.help = fields.get("help").and_then(Value::as_str).map(Into::into);
            fields.retain(|name, _| !["code", "message", "help"].contains(&name.as_str()));
            failed.0.details = fields;
        }
        failed
    }

    /// With everything that is wrong with a configuration.
    pub(super) fn with_report(mut self, report: Report) -> Failed {
        self.0.report = Some(Arc::new(report));
        self
    }

    pub(super) fn exit(&self) -> Exit {
        self.0.exit
    }

    pub(super) fn unexpected(message: impl Into<String>) -> Failed {
        Failed::new(Exit::Unexpected, "unexpected", message).help(
            "This should not happen: please report it with the output of the same command and -vv",
        )
    }

    pub(super) fn timed_out(after: Duration) -> Failed {
        // What was left of it when something began is nobody's figure.
        let step: u128 = if after.as_secs() > 0 { 100 } else { 10 };
        let after = Duration::from_millis(((after.as_millis() + step / 2) / step * step) as u64);
        let after = humantime::format_duration(after);
        Failed::new(
            Exit::TimedOut,
            "timed_out",
            format!("the command did not end within {after}"),
        )
        .help("Give it longer with --timeout, or find out what is slow with -v")
    }

    /// A signal came before anything was done.
    pub(super) fn interrupted(code: u8) -> Failed {
        Failed::new(Exit::Signal(code), "interrupted", "interrupted")
    }

    /// An exit code alone: what there is to say has been said.
    pub(super) fn silent(exit: Exit) -> Failed {
        Failed::new(exit, "", "")
    }

    /// The same failure, after a signal ended the program: its exit code is the signal's.
    #[must_use]
    pub(super) fn by_signal(mut self, code: Option<u8>) -> Failed {
        self.0.exit = code.map_or(self.0.exit, Exit::Signal);
        self
    }

    #[must_use]
    pub(super) fn help(mut self, help: impl Into<String>) -> Failed {
        self.0.help = Some(help.into());
        self
    }

    #[must_use]
    pub(super) fn evidence(mut self, name: impl Into<String>, value: impl Into<String>) -> Failed {
        self.0.evidence.push((name.into(), value.into()));
        self
    }

    #[must_use]
    pub(super) fn detail(mut self, name: &str, value: Value) -> Failed {
        self.0.details.insert(name.to_owned(), value);
        self
    }

    /// Tells the person, or the machine.
    pub(super) fn print(&self, screen: &Screen) {
        if self.0.message.is_empty() {
            return;
        }
        if screen.json {
            screen.line_to_stderr(&self.to_json().to_string());
        } else if let Some(report) = &self.0.report {
            screen.line_to_stderr(&format!("Error: {report}"));
            for problem in report.problems.iter().take(PROBLEMS_SHOWN_MAX) {
                screen.line_to_stderr("");
                screen.diagnostic(problem);
            }
            let rest = report.problems.len().saturating_sub(PROBLEMS_SHOWN_MAX);
            if rest > 0 {
                screen.line_to_stderr(&format!("\n… and {rest} more; mend these first"));
            }
        } else {
            let text = self.0.text.clone();
            screen.line_to_stderr(&text.unwrap_or_else(|| self.to_string()));
        }
        if screen.logs && !screen.json {
            let code = self.0.code;
            screen.line_to_stderr(&format!("\n  code: {code}  (steadyhand explain {code})"));
        }
    }

    /// What is wrong with the configuration, for machines.
    pub(super) fn problems(&self) -> Vec<Value> {
        let problems = self.0.report.iter().flat_map(|report| &report.problems);
        let problems = problems.take(PROBLEMS_SHOWN_MAX);
        problems.map(|problem| problem.to_json()).collect()
    }

    fn to_json(&self) -> Value {
        let mut error = Map::new();
        error.insert("code".to_owned(), json!(self.0.code));
        error.insert("message".to_owned(), json!(self.0.message));
        if self.0.report.is_some() {
            let problems = self.problems();
            error.insert("problems".to_owned(), json!(problems));
        }
        error.extend(self.0.details.clone());
        error.insert("help".to_owned(), json!(self.0.help));
        json!({ "error": error })
    }
}

impl From<ModelError> for Failed {
    fn from(error: ModelError) -> Failed {
        let (exit, code) = match error.kind {
            ModelErrorKind::Settings => (Exit::Config, "model_settings"),
            ModelErrorKind::Unauthorized => (Exit::SignIn, "model_unauthorized"),
            ModelErrorKind::Unreachable => (Exit::NotReachable, "model_unreachable"),
            ModelErrorKind::NotFound => (Exit::NotReachable, "model_not_found"),
            ModelErrorKind::Overloaded => (Exit::NotReachable, "model_overloaded"),
            ModelErrorKind::Provider => (Exit::NotReachable, "model_failed"),
            ModelErrorKind::BrokeOff => (Exit::NotReachable, "model_broke_off"),
            ModelErrorKind::Unreadable => (Exit::NotReachable, "model_unreadable"),
            ModelErrorKind::TooLarge => (Exit::NotReachable, "model_too_large"),
            ModelErrorKind::Refused => (Exit::NotReachable, "model_refused"),
            ModelErrorKind::Timeout => (Exit::TimedOut, "model_timed_out"),
            ModelErrorKind::ScriptEnded => (Exit::Unexpected, "script_ended"),
        };
        let mut failed = Failed::new(exit, code, error.message);
        if error.attempts > 1 {
            failed = failed.evidence("asked", format!("{} times", error.attempts));
        }
        failed.0.help = error.help;
        failed
            .detail("retryable", json!(error.kind.is_transient()))
            .detail("status", json!(error.status))
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error: {}", self.0.message)?;
        if !self.0.evidence.is_empty() {
            let names = self.0.evidence.iter().map(|(name, _)| name);
            let width = value::column_width(names.map(|name| name.chars().count()));
            writeln!(f)?;
            for (name, value) in &self.0.evidence {
                let mut lines = value.lines();
                write!(f, "\n  {name:width$}  {}", lines.next().unwrap_or_default())?;
                for line in lines {
                    write!(f, "\n  {:width$}  {line}", "")?;
                }
            }
            writeln!(f)?;
        }
        if let Some(help) = &self.0.help {
            let mut lines = help.lines();
            write!(f, "\n  help: {}", lines.next().unwrap_or_default())?;
            for line in lines {
                write!(f, "\n        {line}")?;
            }
        }
        Ok(())
    }
}

/// What clap says about a command it cannot read; help and version are no errors.
#[allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "clap's own texts"
)]
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    match error.use_stderr() {
        false => {
            let _ = error.print();
            Exit::Done.into()
        }
        true => {
            let wants_json = std::env::args_os().any(|arg| arg == "--json");
            if wants_json {
                let text = error.to_string();
                let message: Vec<&str> = text
                    .lines()
                    .take_while(|line| !line.starts_with("Usage:"))
                    .map(|line| line.trim().trim_start_matches("error: "))
                    .filter(|line| !line.is_empty())
                    .collect();
                let message = message.join(" ");
                eprintln!(
                    "{}",
                    json!({"error": {"code": "usage", "message": message, "help": "steadyhand --help"}})
                );
            } else {
                let _ = error.print();
                if adds_a_program(error) {
                    eprintln!(
                        "\nPut -- before a program whose arguments begin with a dash: steadyhand mcp add NAME -- PROGRAM -x …"
                    );
                }
            }
            Exit::Usage.into()
        }
    }
}

/// Whether somebody adds an MCP server whose program has options.
fn adds_a_program(error: &clap::Error) -> bool {
    let words: Vec<_> = std::env::args_os().collect();
    let adds = words
        .windows(2)
        .any(|pair| pair[0] == "mcp" && pair[1] == "add");
    adds && error.kind() == clap::error::ErrorKind::UnknownArgument
}

/// Draws a problem as miette does, in the width and colours of the screen.
pub(super) fn drawn(problem: &Problem, color: bool, unicode: bool) -> String {
    let ellipsis = if unicode { "…" } else { "..." };
    let diagnostic = DrawnProblem::new(problem, ellipsis);
    let theme = match (color, unicode) {
        (true, true) => miette::GraphicalTheme::unicode(),
        (false, true) => miette::GraphicalTheme::unicode_nocolor(),
        (true, false) => miette::GraphicalTheme::ascii(),
        (false, false) => miette::GraphicalTheme::none(),
    };
    let handler = miette::GraphicalReportHandler::new_themed(theme)
        .with_width(100)
        .with_links(false);
    let mut drawn = String::new();
    let drawn = match handler.render_report(&mut drawn, &diagnostic) {
        Ok(()) => drawn,
        Err(_) => diagnostic.to_string(),
    };
    match unicode {
        true => drawn,
        // Our own words have a few marks that are not ASCII.
        false => drawn
            .replace('…', "...")
            .replace('→', "->")
            .replace('–', "-"),
    }
}
