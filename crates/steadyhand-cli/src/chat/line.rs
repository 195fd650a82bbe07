//! A tool call as one line: for a terminal, and for a log.

use std::time::Duration;

use serde_json::Value;
use steadyhand::{FailureCode, Outcome, ToolMessage};

use crate::value;

/// The column that times stand in.
const TIME_COLUMN: usize = 58;
const WIDTH_MIN: usize = 40;
const REASON_CHARS_MAX: usize = 100;
/// Smaller results need no size.
const SIZE_SHOWN_FROM: usize = 1024;

/// How a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Running,
    Done,
    /// It goes on, or was answered in another way: worth a look, no failure.
    Look,
    Cancelled,
    Failed,
}

impl Mark {
    pub(super) fn sign(self) -> &'static str {
        match self {
            Mark::Running => "◌",
            Mark::Done => "●",
            Mark::Look => "▲",
            Mark::Cancelled => "■",
            Mark::Failed => "✗",
        }
    }

    fn color(self) -> Option<anstyle::AnsiColor> {
        match self {
            Mark::Running => None,
            Mark::Done => Some(anstyle::AnsiColor::Green),
            Mark::Look | Mark::Cancelled => Some(anstyle::AnsiColor::Yellow),
            Mark::Failed => Some(anstyle::AnsiColor::Red),
        }
    }
}

/// How a call ended.
pub(super) struct Ended<'a> {
    pub(super) call_id: &'a str,
    pub(super) name: &'a str,
    pub(super) args: &'a str,
    pub(super) elapsed: Duration,
    pub(super) result: &'a ToolMessage,
    /// None: it was refused and not run.
    pub(super) outcome: Option<&'a Outcome>,
}

impl Ended<'_> {
    pub(super) fn mark(&self) -> Mark {
        let Some(outcome) = self.outcome else {
            return Mark::Look;
        };
        match outcome.failure().map(|failure| failure.code) {
            None => Mark::Done,
            Some(_) if outcome.fallback.is_some() => Mark::Look,
            Some(FailureCode::Cancelled) => Mark::Cancelled,
            // The model's own slips: it is told, and tries again.
            Some(FailureCode::ToolNotFound | FailureCode::ValidationError) => Mark::Look,
            Some(_) => Mark::Failed,
        }
    }

    /// For a terminal of this width.
    pub(super) fn drawn(&self, width: usize, color: bool) -> String {
        let mark = self.mark();
        if mark == Mark::Cancelled {
            let text = format!("{} cancelled", self.name);
            return drawn(mark, &text, "", Some(self.elapsed), width, color);
        }
        let more = match (mark, self.outcome) {
            (Mark::Done, Some(_)) => self.size(),
            (_, Some(outcome)) if outcome.fallback.is_some() => {
                format!("answered by its fallback: {}", self.reason())
            }
            (Mark::Failed, Some(_)) => {
                format!("{}   steadyhand calls show {}", self.reason(), self.call_id)
            }
            _ => self.reason(),
        };
        let text = format!("{} {}", self.name, self.args);
        drawn(
            mark,
            text.trim_end(),
            &more,
            Some(self.elapsed),
            width,
            color,
        )
    }

    /// For a log: one line, words with one meaning each.
    pub(super) fn logged(&self) -> String {
        let (name, ms) = (self.name, self.elapsed.as_millis());
        let id = self.call_id;
        let Some(outcome) = self.outcome else {
            return format!("tool refused {name} {}", self.reason());
        };
        match outcome.failure() {
            None => format!("tool ok {name} {ms}ms"),
            Some(_) if outcome.fallback.is_some() => {
                format!("tool fallback {name} {ms}ms call={id}")
            }
            Some(failure) if failure.code == FailureCode::Cancelled => {
                format!("tool cancelled {name} {ms}ms call={id}")
            }
            Some(failure) => {
                let code = failure.code.to_string().to_lowercase();
                format!("tool error {name} {code} {ms}ms call={id}")
            }
        }
    }

    fn reason(&self) -> String {
        let text = match self.outcome.and_then(|outcome| outcome.failure()) {
            Some(failure) => failure.message.clone(),
            None => self.result.content.text().into_owned(),
        };
        let text = text.trim_start_matches("Error: ");
        let line = text.lines().next().unwrap_or_default();
        let tries = match self.outcome.map_or(0, |outcome| outcome.attempts) {
            0 | 1 => String::new(),
            attempts => format!(" ({attempts} attempts)"),
        };
        let effect = match self.outcome.and_then(|outcome| outcome.failure()) {
            Some(failure) => format!(". {}", failure.effect_sentence()),
            None => String::new(),
        };
        format!("{}{tries}{effect}", cut(line, REASON_CHARS_MAX))
    }

    fn size(&self) -> String {
        let bytes = self.result.content.text().len();
        match bytes >= SIZE_SHOWN_FROM {
            true => bytesize::ByteSize(bytes as u64).display().si().to_string(),
            false => String::new(),
        }
    }
}

/// A line with its mark, its time in a column, and what there is to say about it.
pub(super) fn drawn(
    mark: Mark,
    text: &str,
    more: &str,
    elapsed: Option<Duration>,
    width: usize,
    color: bool,
) -> String {
    let width = width.max(WIDTH_MIN);
    let column = TIME_COLUMN.min(width.saturating_sub(14));
    let text = cut(&one_line(text), column.saturating_sub(2));
    let time = elapsed.map(value::duration).unwrap_or_default();
    let sign = match mark.color().filter(|_| color) {
        Some(hue) => format!("{0}{1}{0:#}", hue.on_default(), mark.sign()),
        None => mark.sign().to_owned(),
    };
    let line = format!("  {sign} {text:column$}{time:>8}   {}", one_line(more));
    line.trim_end().to_owned()
}

/// `area=kitchen brightness=60 note="two words"`.
pub(super) fn arguments(args: &Value) -> String {
    let Value::Object(fields) = args else {
        return match args {
            Value::Null => String::new(),
            other => other.to_string(),
        };
    };
    let shown = fields.iter().map(|(name, value)| match value {
        Value::String(text) if is_plain(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.contains(|letter: char| letter.is_whitespace() || letter == '"')
}

fn one_line(text: &str) -> String {
    let shown = crate::screen::visible(text);
    shown.replace(['\n', '\t'], " ")
}

fn cut(text: &str, chars_max: usize) -> String {
    match text.chars().count() > chars_max {
        true => {
            let kept: String = text.chars().take(chars_max.saturating_sub(1)).collect();
            format!("{kept}…")
        }
        false => text.to_owned(),
    }
}
