//! Keeps what is logged on a test's thread, so that exact texts can be asked for.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// What is logged on this thread from here on; a test's tasks run on its own thread.
pub(crate) struct Logs {
    lines: Sink,
}

type Sink = Rc<RefCell<Vec<String>>>;

thread_local! {
    static SINK: RefCell<Option<Sink>> = const { RefCell::new(None) };
}

impl Logs {
    /// Starts to keep what this thread logs.
    pub(crate) fn capture() -> Logs {
        // One subscriber for all: with one per test, what others do decides whether an event is seen at all.
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let subscriber = tracing_subscriber::registry().with(Keeper);
            tracing::subscriber::set_global_default(subscriber).expect("nobody else sets one");
        });
        let lines = Sink::default();
        SINK.set(Some(Rc::clone(&lines)));
        Logs { lines }
    }

    /// Each line as `LEVEL message name=value …`.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.borrow().clone()
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

impl Drop for Logs {
    fn drop(&mut self) {
        SINK.set(None);
    }
}

struct Keeper;

impl<S: Subscriber> Layer<S> for Keeper {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>, _: Context<'_, S>) -> bool {
        SINK.with_borrow(Option::is_some)
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let level = event.metadata().level();
        let line = format!("{level} {}{}", line.message, line.fields);
        SINK.with_borrow(|sink| {
            if let Some(lines) = sink {
                lines.borrow_mut().push(line);
            }
        });
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
