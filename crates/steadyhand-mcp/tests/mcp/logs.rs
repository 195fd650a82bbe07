//! Keeps what is logged on a test's thread, so that exact texts can be asked for.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// What is logged on this thread from here on.
pub(crate) struct Logs {
    lines: Arc<Mutex<Vec<String>>>,
    _guard: DefaultGuard,
}

impl Logs {
    /// Starts to keep what this thread logs; a test's tasks run on its own thread.
    pub(crate) fn capture() -> Logs {
        let keeper = Keeper::default();
        let lines = Arc::clone(&keeper.lines);
        let subscriber = tracing_subscriber::registry().with(keeper);
        Logs {
            lines,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    /// Each line as `LEVEL message name=value …`.
    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.clone()
    }

    /// The lines that hold all of these.
    pub(crate) fn with(&self, parts: &[&str]) -> Vec<String> {
        let mut lines = self.lines();
        lines.retain(|line| parts.iter().all(|part| line.contains(part)));
        lines
    }

    /// There is such a line.
    pub(crate) fn assert_has(&self, parts: &[&str]) {
        let found = !self.with(parts).is_empty();
        assert!(found, "no line with {parts:?} in {:#?}", self.lines());
    }
}

#[derive(Default)]
struct Keeper {
    lines: Arc<Mutex<Vec<String>>>,
}

impl<S: Subscriber> Layer<S> for Keeper {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let level = event.metadata().level();
        let line = format!("{level} {}{}", line.message, line.fields);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(line);
    }
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.push_str(&format!(" {field}={value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.fields.push_str(&format!(" {name}={value:?}")),
        }
    }
}
