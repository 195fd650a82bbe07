//! Keeps what is logged on this thread, so that a test can read it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry;

/// One event, its fields as text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub(crate) level: Level,
    pub(crate) message: String,
    pub(crate) fields: BTreeMap<&'static str, String>,
}

/// What was logged since [`capture`].
pub(crate) struct Logs {
    lines: Arc<Mutex<Vec<Line>>>,
    _guard: DefaultGuard,
}

/// Starts to keep what this thread logs.
pub(crate) fn capture() -> Logs {
    // While there is one subscriber only, tracing asks the thread that logs first whether anyone listens, and
    // remembers its "no" for all threads. A second one makes it ask every subscriber.
    static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(registry()));
    LazyLock::force(&SECOND);
    let keeper = Keeper::default();
    let lines = Arc::clone(&keeper.lines);
    let guard = tracing::subscriber::set_default(registry().with(keeper));
    Logs {
        lines,
        _guard: guard,
    }
}

impl Logs {
    pub(crate) fn all(&self) -> Vec<Line> {
        self.lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The lines of one level with one text.
    pub(crate) fn of(&self, level: Level, message: &str) -> Vec<Line> {
        let mut lines = self.all();
        lines.retain(|line| line.level == level && line.message == message);
        lines
    }

    /// The one line of this level and text.
    pub(crate) fn only(&self, level: Level, message: &str) -> Line {
        let mut lines = self.of(level, message);
        assert_eq!(lines.len(), 1, "{level} {message} in {:#?}", self.all());
        lines.remove(0)
    }

    /// Everything as one text, to look for what must not be there.
    pub(crate) fn text(&self) -> String {
        format!("{:?}", self.all())
    }
}

impl Line {
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

#[derive(Default)]
struct Keeper {
    lines: Arc<Mutex<Vec<Line>>>,
}

impl<S: Subscriber> Layer<S> for Keeper {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = fields.0.remove("message").unwrap_or_default();
        let line = Line {
            level: *event.metadata().level(),
            message,
            fields: fields.0,
        };
        self.lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(line);
    }
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

#[test]
fn v02_a_secret_is_hidden_whatever_stands_before_it() {
    let secret = "zebra-crossing-4711";
    for text in [
        format!("Authorization: Bearer {secret}"),
        format!("{{\"authorization\":\"Basic {secret}\"}}"),
        format!("headers = {{ Authorization = \"Bearer {secret}\" }}"),
        format!("api_key={secret}&x=1"),
        format!("X-Api-Key: {secret}"),
        format!("https://user:{secret}@host/"),
    ] {
        let shown = steadyhand::redact::text(&text);
        assert!(!shown.contains(secret), "{shown}");
        let masked = steadyhand::redact::mask(&text);
        assert!(!masked.contains(secret), "{masked}");
        assert_eq!(masked.len(), text.len(), "{masked}");
    }
    let reference = "token = \"${env:TOKEN}\"";
    assert_eq!(steadyhand::redact::mask(reference), reference);
}
