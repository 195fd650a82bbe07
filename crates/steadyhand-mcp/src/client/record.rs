//! What a server printed: its stderr, and what on its stdout was no message. Bounded, and shown when it fails.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use steadyhand::{clock, redact, visible};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::time::Instant;

use crate::client::settings::Hide;
use crate::wire::Incoming;

/// Lines and bytes that are kept.
const LINES_MAX: usize = 500;
const BYTES_MAX: usize = 128 * 1024;
/// A longer line is cut.
const LINE_BYTES_MAX: usize = 1024;
/// What an error shows of it.
const QUOTED_CHARS_MAX: usize = 400;
/// So many lines of noise are logged one by one in such a span; the others are counted.
const LOGGED_MAX: u32 = 10;
const LOGGED_SPAN: Duration = Duration::from_secs(10);

/// One line a server printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Where.
    pub stream: Stream,
    /// What; without what would steer a terminal, secrets hidden, cut if it was long.
    pub text: String,
}

/// Where a server printed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// On stderr, where anything may be printed.
    Stderr,
    /// On stdout, where only messages belong.
    Stdout,
    /// Nowhere: a remark of ours about what became of it.
    Note,
}

/// The last lines of a server, across its starts.
pub(crate) struct Record {
    server: String,
    hide: Option<Hide>,
    /// The same for lists.
    hide_listed: Option<Hide>,
    inner: Mutex<Inner>,
}

/// One line as it came, cut if it was long. What nobody reads is not made readable, so that a
/// flood costs little; secrets are still in it, so it cannot be printed.
struct RawLine {
    at_ms: u64,
    stream: Stream,
    bytes: Box<[u8]>,
    full_length: usize,
}

#[derive(Default)]
struct Inner {
    lines: VecDeque<RawLine>,
    bytes: usize,
    /// Lines of this start begin here, counted from the first line ever.
    start: u64,
    dropped: u64,
    /// Lines that are on disk, counted from the first line ever.
    kept: u64,
    noise: u64,
    noise_of_start: u64,
    logged: u32,
    logged_since: Option<Instant>,
    unlogged: u64,
}

/// What was on stdout that did not belong there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Noise {
    /// How many lines.
    pub lines: u64,
    /// The first few of the last start.
    pub samples: Vec<String>,
}

impl Record {
    pub(crate) fn new(server: &str, hide: Option<Hide>) -> Record {
        Record {
            server: server.to_owned(),
            hide,
            hide_listed: None,
            inner: Mutex::default(),
        }
    }

    pub(crate) fn hiding_in_lists(self, hide_listed: Option<Hide>) -> Record {
        Record {
            hide_listed,
            ..self
        }
    }

    /// What takes secrets out of lists.
    pub(crate) fn hide_in_lists(&self) -> Option<&Hide> {
        self.hide_listed.as_ref()
    }

    /// What takes secrets out of everything else.
    pub(crate) fn hide(&self) -> Option<&Hide> {
        self.hide.as_ref()
    }

    /// A new start begins.
    pub(crate) fn begin(&self) {
        let mut inner = self.lock();
        inner.start = inner.next();
        inner.noise_of_start = 0;
    }

    /// Something on stdout that is no message (SPEC V12): said with its content, a flood of it by its number.
    pub(crate) fn noise(&self, bytes: &[u8], full_length: usize) {
        let mut inner = self.lock();
        inner.noise += 1;
        inner.noise_of_start += 1;
        let now = Instant::now();
        let in_span = inner
            .logged_since
            .is_some_and(|since| now.duration_since(since) < LOGGED_SPAN);
        if !in_span {
            let unlogged = std::mem::take(&mut inner.unlogged);
            if unlogged > 0 {
                tracing::warn!(server = self.server, unlogged, "more of it on stdout");
            }
            inner.logged = 0;
            inner.logged_since = Some(now);
        }
        match inner.logged < LOGGED_MAX {
            true => {
                inner.logged += 1;
                tracing::warn!(
                    server = self.server,
                    content = self.shown(bytes, full_length),
                    "failed to parse a line of an MCP server's stdout; it is skipped"
                );
            }
            false => inner.unlogged += 1,
        }
        // Of a flood the beginning tells enough; stderr must not be pushed out by it.
        if inner.noise_of_start <= 50 {
            inner.push(Stream::Stdout, bytes, full_length);
        }
    }

    pub(crate) fn stderr(&self, line: &[u8], full_length: usize) {
        if line.trim_ascii().is_empty() {
            return;
        }
        if tracing::enabled!(tracing::Level::DEBUG) {
            let text = self.shown(line, full_length);
            tracing::debug!(server = self.server, text, "stderr of an MCP server");
        }
        self.lock().push(Stream::Stderr, line, full_length);
    }

    /// A message on its way, for those who want to see everything (`-vv`): cut, and without secrets.
    pub(crate) fn passes(&self, way: &'static str, bytes: &[u8]) {
        if tracing::enabled!(tracing::Level::DEBUG) {
            let text = self.shown(bytes, bytes.len());
            tracing::debug!(server = self.server, way, "{}", redact::text(&text));
        }
    }

    /// The same for one that came in.
    pub(crate) fn heard(&self, message: &Incoming<'_>) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        let id_of = |id: &Option<u64>| id.map_or("null".to_owned(), |id| id.to_string());
        let raw = |value: Option<&RawValue>| value.map_or("null", RawValue::get).to_owned();
        let text = match message {
            Incoming::Response { id, result } => match result {
                Ok(result) => format!("{{\"id\":{},\"result\":{}}}", id_of(id), result.get()),
                Err(error) => format!("{{\"id\":{},\"error\":{}}}", id_of(id), json!(error)),
            },
            Incoming::Request { id, method, params } => format!(
                "{{\"id\":{},\"method\":{method:?},\"params\":{}}}",
                id.get(),
                raw(*params)
            ),
            Incoming::Notification { method, params } => {
                format!("{{\"method\":{method:?},\"params\":{}}}", raw(*params))
            }
        };
        self.passes("received", text.as_bytes());
    }

    /// What became of the server, between what it said itself.
    pub(crate) fn note(&self, text: &str) {
        let bytes = text.as_bytes();
        self.lock().push(Stream::Note, bytes, bytes.len());
    }

    /// What is still there of the lines from this one on, and the number of the next one to come.
    pub(crate) fn lines_from(&self, first: u64) -> (Vec<LogLine>, u64) {
        let inner = self.lock();
        let lines = inner.from(first).map(|line| self.readable(line));
        (lines.collect(), inner.next())
    }

    /// The lines that are not on disk yet. From now on they count as being there.
    pub(crate) fn take_unkept(&self) -> Vec<LogLine> {
        let mut inner = self.lock();
        let unkept = inner.from(inner.kept).map(|line| self.readable(line));
        let unkept = unkept.collect();
        inner.kept = inner.next();
        unkept
    }

    /// The last lines of stderr since the last start.
    pub(crate) fn stderr_tail(&self, count: usize) -> Vec<String> {
        let inner = self.lock();
        let of_start = inner.of_start();
        let mut tail: Vec<&RawLine> = of_start
            .filter(|line| line.stream == Stream::Stderr)
            .collect();
        tail.drain(..tail.len().saturating_sub(count));
        tail.into_iter().map(|line| self.text_of(line)).collect()
    }

    /// What was on stdout since the last start and did not belong there.
    pub(crate) fn noise_of_start(&self) -> Noise {
        let inner = self.lock();
        let samples = inner
            .of_start()
            .filter(|line| line.stream == Stream::Stdout)
            .take(3)
            .map(|line| self.text_of(line))
            .collect();
        Noise {
            lines: inner.noise_of_start,
            samples,
        }
    }

    /// Lines of noise, all in all.
    pub(crate) fn noise_lines(&self) -> u64 {
        self.lock().noise
    }

    /// What it sent, fit to be repeated in an error.
    pub(crate) fn quoted(&self, bytes: &[u8]) -> String {
        let text = self.shown(bytes, bytes.len());
        match text.char_indices().nth(QUOTED_CHARS_MAX) {
            Some((end, _)) => format!("{}… ({} bytes)", &text[..end], bytes.len()),
            None => text,
        }
    }

    fn readable(&self, line: &RawLine) -> LogLine {
        LogLine {
            at_ms: line.at_ms,
            stream: line.stream,
            text: self.text_of(line),
        }
    }

    fn text_of(&self, line: &RawLine) -> String {
        self.shown(&line.bytes, line.full_length)
    }

    fn shown(&self, bytes: &[u8], full_length: usize) -> String {
        let text = shown(bytes, full_length);
        match &self.hide {
            Some(hide) => hide(text),
            None => text,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Inner {
    fn of_start(&self) -> impl Iterator<Item = &RawLine> {
        self.from(self.start)
    }

    /// Lines have numbers, from the first one ever.
    fn from(&self, first: u64) -> impl Iterator<Item = &RawLine> {
        let before = first.saturating_sub(self.dropped);
        self.lines
            .iter()
            .skip(usize::try_from(before).unwrap_or(usize::MAX))
    }

    fn next(&self) -> u64 {
        self.dropped + self.lines.len() as u64
    }

    fn push(&mut self, stream: Stream, bytes: &[u8], full_length: usize) {
        let bytes = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
        self.bytes += bytes.len();
        self.lines.push_back(RawLine {
            at_ms: clock::wall_ms(),
            stream,
            bytes: bytes.into(),
            full_length,
        });
        while self.lines.len() > LINES_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.lines.pop_front() else {
                return;
            };
            self.bytes -= oldest.bytes.len();
            self.dropped += 1;
        }
    }
}

/// Reads a stderr to its end. It is read whatever happens, or the server would stand still.
pub(crate) async fn read_stderr(stream: impl AsyncRead + Unpin, record: &Record) {
    let mut reader = BufReader::with_capacity(16 * 1024, stream);
    let mut line: Vec<u8> = Vec::new();
    let mut length = 0;
    while let Ok(bytes) = reader.fill_buf().await {
        if bytes.is_empty() {
            break;
        }
        let end = memchr::memchr(b'\n', bytes);
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        let room = LINE_BYTES_MAX.saturating_sub(line.len());
        line.extend_from_slice(&piece[..piece.len().min(room)]);
        length += piece.len();
        let used = piece.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            record.stderr(&line, length);
            line.clear();
            length = 0;
        }
    }
    record.stderr(&line, length);
}

/// Bytes as a text one can show: no terminal codes, no secrets, cut if it was long.
fn shown(bytes: &[u8], full_length: usize) -> String {
    let kept = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let text = String::from_utf8_lossy(kept);
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.trim_end().chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            // Colours and the like: everything up to the letter that ends the sequence.
            '\u{1b}' if letters.peek() == Some(&'[') => {
                letters.next();
                for of_code in letters.by_ref() {
                    if ('@'..='~').contains(&of_code) {
                        break;
                    }
                }
            }
            '\t' => plain.push(' '),
            other => plain.push(other),
        }
    }
    let mut plain = visible::text(&redact::text(&plain)).replace('\n', r"\u{a}");
    if full_length > kept.len() {
        plain.push_str(&format!(" … ({full_length} bytes)"));
    }
    plain
}
