//! What happens inside, as lines on stderr.

use std::io::{self, Write};
use std::sync::OnceLock;

use steadyhand::visible;
use steadyhand_mcp::START_FAILED;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, Layered, SubscriberExt};
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt};

use steadyhand_config::settings::{LineFormat, LineLevel, LogSettings};
use steadyhand_runtime::runtime::NOTICE;

type Lines = Box<dyn Layer<Registry> + Send + Sync>;
type WithLines = Layered<reload::Layer<Lines, Registry>, Registry>;

/// What can be changed while the program runs: how lines are written, and which.
static HANDLES: OnceLock<(Handle<Lines, Registry>, Handle<Targets, WithLines>)> = OnceLock::new();

/// Begins to write lines of this level as text.
pub(crate) fn begin(level: LevelFilter, in_color: bool) {
    let (lines, lines_handle) = reload::Layer::new(lines(LineFormat::Text, in_color));
    let (filter, filter_handle) = reload::Layer::new(filter(level, false));
    let begun = tracing_subscriber::registry()
        .with(lines)
        .with(filter)
        .try_init();
    // An application that has one of its own keeps it.
    if begun.is_ok() {
        let _ = HANDLES.set((lines_handle, filter_handle));
    }
}

/// Goes on as these settings say. `tells_starts`: the command tells of servers that do not start, and this does not.
pub(crate) fn change(level: LevelFilter, format: LineFormat, in_color: bool, tells_starts: bool) {
    if let Some((lines_handle, filter_handle)) = HANDLES.get() {
        let _ = lines_handle.reload(lines(format, in_color));
        let _ = filter_handle.reload(filter(level, tells_starts));
    }
}

/// The level that a program writes which stays.
pub(crate) fn level_of(settings: &LogSettings) -> LevelFilter {
    match settings.level.unwrap_or(LineLevel::Warn) {
        LineLevel::Off => LevelFilter::OFF,
        LineLevel::Error => LevelFilter::ERROR,
        LineLevel::Warn => LevelFilter::WARN,
        LineLevel::Info => LevelFilter::INFO,
        LineLevel::Debug => LevelFilter::DEBUG,
    }
}

fn lines(format: LineFormat, in_color: bool) -> Lines {
    match format {
        LineFormat::Text => fmt::layer()
            .with_writer(VisibleStderr::default)
            .with_ansi(in_color)
            .without_time()
            .with_target(false)
            .boxed(),
        LineFormat::Json => fmt::layer()
            .json()
            .flatten_event(true)
            .with_writer(std::io::stderr)
            .with_target(false)
            .boxed(),
    }
}

/// Stderr for people: a text of a server or a caller that came into a line cannot steer a terminal or hide.
#[derive(Default)]
struct VisibleStderr;

impl Write for VisibleStderr {
    /// Gets whole lines.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let mut shown = String::with_capacity(text.len());
        let mut pieces = text.split('\u{1b}');
        // What begins with it are the colours of the line itself: foreign ones are written as numbers before.
        shown.push_str(&visible::text(pieces.next().unwrap_or_default()));
        for piece in pieces {
            shown.push('\u{1b}');
            shown.push_str(&visible::text(piece));
        }
        io::stderr().lock().write_all(shown.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

fn filter(level: LevelFilter, tells_starts: bool) -> Targets {
    let notices = match level >= LevelFilter::WARN {
        true => level.max(LevelFilter::INFO),
        false => level,
    };
    // Every crate of ours begins with this.
    Targets::new()
        .with_target("steadyhand", level)
        .with_target(NOTICE, notices)
        .with_target(
            START_FAILED,
            if tells_starts {
                LevelFilter::OFF
            } else {
                level
            },
        )
        .with_default(LevelFilter::ERROR.min(level))
}
