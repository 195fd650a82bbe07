//! The report: for people, and for machines; secrets and the home folder are in neither.

use std::path::Path;

use anstyle::AnsiColor;
use secrecy::SecretString;
use serde_json::{Value, json};
use steadyhand::redact;

use super::check::{Check, State};
use crate::screen::Screen;
use crate::value;
use steadyhand_runtime::scrub::Scrubber;

/// Names wider than this push only their own line.
const NAME_WIDTH_MAX: usize = 16;

/// Everything that was looked at.
pub(super) struct Report {
    checks: Vec<Check>,
}

impl Report {
    /// In the order of the groups, without what nobody may read.
    pub(super) fn new(
        mut checks: Vec<Check>,
        secrets: Vec<SecretString>,
        home: Option<&Path>,
    ) -> Report {
        checks.sort_by_key(|check| check.group);
        let clean = Clean {
            scrubber: Scrubber::new(secrets),
            home: home
                .filter(|home| home.parent().is_some())
                .map(|home| home.display().to_string()),
        };
        for check in &mut checks {
            clean.text(&mut check.name);
            clean.text(&mut check.text);
            check.evidence.iter_mut().for_each(|it| clean.text(it));
            check.next.iter_mut().for_each(|it| clean.text(it));
            check.details.values_mut().for_each(|it| clean.value(it));
        }
        Report { checks }
    }

    pub(super) fn count(&self, state: State) -> usize {
        let checks = self.checks.iter();
        checks.filter(|check| check.state == state).count()
    }

    pub(super) fn to_json(&self) -> Value {
        let checks: Vec<Value> = self.checks.iter().map(Check::to_json).collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "system": std::env::consts::OS,
            "architecture": std::env::consts::ARCH,
            "ok": self.count(State::Fix) == 0,
            "counts": {
                "ok": self.count(State::Ok),
                "notes": self.count(State::Note),
                "to_fix": self.count(State::Fix),
                "info": self.count(State::Info),
            },
            "checks": checks,
        })
    }

    pub(super) fn for_people(&self, screen: &Screen) -> String {
        let widths = self.checks.iter().map(|check| check.name.chars().count());
        let width = widths.filter(|it| *it <= NAME_WIDTH_MAX).max().unwrap_or(0);
        let mut text = format!("Steadyhand {}\n", env!("CARGO_PKG_VERSION"));
        let mut group = None;
        for check in &self.checks {
            if group != Some(check.group) {
                group = Some(check.group);
                text.push_str(&format!("\n{}\n", screen.bold(check.group.title())));
            }
            let mut lines = check.text.lines();
            let first = screen.foreign(lines.next().unwrap_or_default());
            let name = screen.foreign(&check.name);
            text.push_str(&format!(
                "  {} {name:width$}  {first}\n",
                mark(screen, check.state)
            ));
            let mut below = |line: &str| {
                let line = screen.foreign(line);
                text.push_str(&format!("    {:width$}  {line}\n", ""));
            };
            lines.for_each(&mut below);
            check.evidence.iter().for_each(|line| below(line));
            check
                .next
                .iter()
                .for_each(|line| below(&format!("-> {line}")));
        }
        text.push_str(&format!(
            "\n{}   steadyhand doctor --json gives a report without secrets.",
            self.summary()
        ));
        text
    }

    fn summary(&self) -> String {
        format!(
            "{} ok, {}, {} to fix.",
            self.count(State::Ok),
            value::counted(self.count(State::Note), "note"),
            self.count(State::Fix)
        )
    }
}

fn mark(screen: &Screen, state: State) -> String {
    let (mark, plain, color) = match state {
        State::Ok => ("●", "+", Some(AnsiColor::Green)),
        State::Note => ("▲", "!", Some(AnsiColor::Yellow)),
        State::Fix => ("✗", "x", Some(AnsiColor::Red)),
        State::Info => ("○", "o", None),
    };
    let mark = if screen.plain { plain } else { mark };
    match color {
        Some(color) => screen.colored(mark, color),
        None => mark.to_owned(),
    }
}

/// Takes out what nobody may read.
struct Clean {
    scrubber: Scrubber,
    home: Option<String>,
}

impl Clean {
    fn text(&self, text: &mut String) {
        if let Some(scrubbed) = self.scrubber.text(text) {
            *text = scrubbed;
        }
        *text = redact::mask(text).into_owned();
        if let Some(home) = &self.home {
            *text = text.replace(home.as_str(), "~");
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
