//! Bytes to lines, and lines to messages or noise. Bytes, not text: a server may print anything.

use memchr::{memchr, memmem};

use super::message::{Incoming, read_batch};

/// What a piece of a server's output is.
#[derive(Debug)]
pub enum Line<'a> {
    /// A message.
    Message(Incoming<'a>),
    /// Several messages in one array.
    Batch(Vec<Incoming<'a>>),
    /// A message that stood behind other text on its line, and that text.
    Salvaged {
        /// What stood before it.
        noise: &'a [u8],
        /// The message.
        message: Incoming<'a>,
    },
    /// Anything else.
    Noise(&'a [u8]),
    /// A line that was longer than allowed; only its beginning is there.
    TooLong {
        /// How it begins.
        start: &'a [u8],
        /// How long it was.
        bytes: usize,
    },
}

/// Cuts a stream of bytes into lines, none longer than allowed.
pub struct Lines {
    buffer: Vec<u8>,
    /// Up to here the buffer has been handed out.
    taken: usize,
    /// Up to here it has been searched for the end of a line.
    searched: usize,
    line_bytes_max: usize,
    /// Bytes of an overlong line that have been thrown away so far.
    skipped: usize,
    /// Lines of JSON spread over several lines: a pretty-printed message.
    spread: Vec<u8>,
}

/// How much of an overlong line is kept to show.
const SHOWN_BYTES: usize = 1024;
/// A pretty-printed message may be this long and no longer.
const SPREAD_BYTES_MAX: usize = 1024 * 1024;
/// Where a message begins that stands behind other text.
const BEGINNINGS: [&[u8]; 2] = [b"{\"jsonrpc\"", b"{ \"jsonrpc\""];

impl Lines {
    /// No line may be longer than this.
    pub fn new(line_bytes_max: usize) -> Lines {
        Lines {
            buffer: Vec::with_capacity(16 * 1024),
            taken: 0,
            searched: 0,
            line_bytes_max,
            skipped: 0,
            spread: Vec::new(),
        }
    }

    /// Where the next bytes are to be read into.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.searched -= self.taken;
            self.taken = 0;
        }
        // What a single large answer needed is given back.
        if self.buffer.is_empty() && self.buffer.capacity() > 1024 * 1024 {
            self.buffer = Vec::with_capacity(16 * 1024);
        }
        &mut self.buffer
    }

    /// The next whole line, if there is one.
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        loop {
            let Some(end) = memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                self.drop_overlong();
                return None;
            };
            let (start, end) = (self.taken, self.searched + end);
            self.taken = end + 1;
            self.searched = end + 1;
            if self.skipped > 0 {
                let bytes = std::mem::take(&mut self.skipped) + (end - start);
                return Some(Line::TooLong { start: &[], bytes });
            }
            if end - start > self.line_bytes_max {
                let shown = &self.buffer[start..start + SHOWN_BYTES.min(end - start)];
                return Some(Line::TooLong {
                    start: shown,
                    bytes: end - start,
                });
            }
            if self.buffer[start..end].trim_ascii().is_empty() {
                continue;
            }
            if self.gathers(start, end) {
                continue;
            }
            return Some(self.classified(start, end));
        }
    }

    /// What stands behind the last line's end when the stream ends.
    pub fn rest(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    /// A line without end is not kept in memory.
    fn drop_overlong(&mut self) {
        let length = self.buffer.len() - self.taken;
        if length > self.line_bytes_max {
            self.skipped += length;
            self.buffer.truncate(self.taken);
            self.searched = self.taken;
        }
    }

    /// Whether the line is one of several that make up a pretty-printed message. They are gathered until
    /// they are one; if they never are, they have been noise.
    fn gathers(&mut self, start: usize, end: usize) -> bool {
        let line = self.buffer[start..end].trim_ascii();
        if self.spread.is_empty() {
            if line == b"{" {
                self.spread.extend_from_slice(line);
                return true;
            }
            return false;
        }
        // A message on a line of its own ends the gathering: nobody writes one inside another.
        if BEGINNINGS.iter().any(|beginning| line.starts_with(beginning))
            || self.spread.len() + line.len() > SPREAD_BYTES_MAX
        {
            self.spread.clear();
            return false;
        }
        self.spread.push(b' ');
        self.spread.extend_from_slice(line);
        // Only a closing brace can complete it.
        if !line.ends_with(b"}") || !is_whole(&self.spread) {
            return true;
        }
        false
    }

    fn classified(&mut self, start: usize, end: usize) -> Line<'_> {
        if !self.spread.is_empty() {
            // Complete: handed out from the buffer like any other line.
            let whole = std::mem::take(&mut self.spread);
            let length = whole.len();
            self.buffer.splice(start..end, whole);
            let moved = length as isize - (end - start) as isize;
            self.taken = (self.taken as isize + moved) as usize;
            self.searched = (self.searched as isize + moved) as usize;
            return line_of(&self.buffer[start..start + length]);
        }
        line_of(&self.buffer[start..end])
    }
}

fn is_whole(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

fn line_of(line: &[u8]) -> Line<'_> {
    let line = line.trim_ascii();
    if let Some(message) = Incoming::read(line) {
        return Line::Message(message);
    }
    if let Some(messages) = read_batch(line) {
        return Line::Batch(messages);
    }
    for beginning in BEGINNINGS {
        // From the last one: text before it may speak of messages, too.
        for at in memmem::rfind_iter(line, beginning).take(4) {
            if at > 0
                && let Some(message) = Incoming::read(&line[at..])
            {
                return Line::Salvaged {
                    noise: &line[..at],
                    message,
                };
            }
        }
    }
    Line::Noise(line)
}
