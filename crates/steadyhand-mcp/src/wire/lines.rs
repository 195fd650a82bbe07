//! Bytes to lines, and lines to messages or noise. Bytes, not text: a server may print anything.

use memchr::{memchr, memmem};

use super::message::{Incoming, read_batch, read_glued};
use super::overlong::Overlong;

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
        /// The request it would have answered.
        answers: Option<u64>,
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
    /// An overlong line that has been thrown away so far, or was the last to be handed out.
    overlong: Overlong,
    /// Lines of JSON spread over several lines: a pretty-printed message.
    spread: Vec<u8>,
    /// Those that were handed out last.
    gathered: Vec<u8>,
}

/// A pretty-printed message may be this long and no longer.
const SPREAD_BYTES_MAX: usize = 1024 * 1024;
/// So many places behind other text are tried for the beginning of a message.
const BEGINNINGS_MAX: usize = 16;
const LONG_LINE_BYTES: usize = 256 * 1024;

impl Lines {
    /// No line may be longer than this.
    pub fn new(line_bytes_max: usize) -> Lines {
        Lines {
            buffer: Vec::with_capacity(16 * 1024),
            taken: 0,
            searched: 0,
            line_bytes_max,
            overlong: Overlong::default(),
            spread: Vec::new(),
            gathered: Vec::new(),
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
            if self.overlong.has_begun() || end - start > self.line_bytes_max {
                self.overlong.add(&self.buffer[start..end]);
                return Some(self.overlong.end());
            }
            if self.buffer[start..end].trim_ascii().is_empty() {
                continue;
            }
            match self.gather(start, end) {
                Gathering::None => return Some(line_of(&self.buffer[start..end])),
                Gathering::GoesOn => {}
                Gathering::Ends => return Some(line_of(&self.gathered)),
                Gathering::BrokenOff => {
                    // The line that broke it off is read again, by itself.
                    (self.taken, self.searched) = (start, start);
                    return Some(Line::Noise(&self.gathered));
                }
            }
        }
    }

    /// How much is held of what is not handed out yet.
    pub fn held(&self) -> usize {
        self.buffer.len() - self.taken + self.spread.len()
    }

    /// There is no memory for the line that has begun: it is thrown away like one that is too long.
    pub fn give_up_line(&mut self) {
        self.spread = Vec::new();
        self.overlong.add(&self.buffer[self.taken..]);
        self.buffer.truncate(self.taken);
        self.searched = self.taken;
    }

    /// What has come of a line whose end has not come yet.
    pub fn unended(&self) -> &[u8] {
        match self.overlong.has_begun() {
            true => &[],
            false => self.buffer[self.taken..].trim_ascii(),
        }
    }

    /// The same as a message, if it is a whole one: a server may forget the end of the line, or keep it back.
    pub fn unended_message(&mut self) -> Option<Line<'_>> {
        if !self.spread.is_empty() || Incoming::read(self.unended()).is_none() {
            return None;
        }
        let start = std::mem::replace(&mut self.taken, self.buffer.len());
        self.searched = self.buffer.len();
        Some(line_of(self.buffer[start..].trim_ascii()))
    }

    /// What stands behind the last line's end when the stream ends: half a message, or one without its line's end.
    pub fn last_line(&mut self) -> Option<Line<'_>> {
        self.gathered = std::mem::take(&mut self.spread);
        if !self.gathered.is_empty() {
            return Some(Line::Noise(&self.gathered));
        }
        let start = std::mem::replace(&mut self.taken, self.buffer.len());
        if self.overlong.has_begun() {
            self.overlong.add(&self.buffer[start..]);
            return Some(self.overlong.end());
        }
        let rest = self.buffer[start..].trim_ascii();
        (!rest.is_empty()).then(|| line_of(rest))
    }

    /// A line without end is not kept in memory.
    fn drop_overlong(&mut self) {
        if self.buffer.len() - self.taken > self.line_bytes_max {
            self.overlong.add(&self.buffer[self.taken..]);
            self.buffer.truncate(self.taken);
            self.searched = self.taken;
        }
    }

    /// Gathers the lines of a pretty-printed message. Node prints its objects the same way, in no JSON: so
    /// the first closing brace that is not indented ends it, and so does a message on a line of its own.
    fn gather(&mut self, start: usize, end: usize) -> Gathering {
        let line = &self.buffer[start..end];
        let is_first = self.spread.is_empty();
        if is_first && line.trim_ascii() != b"{" {
            return Gathering::None;
        }
        let is_message = !is_first && Incoming::read(line.trim_ascii()).is_some();
        if is_message || self.spread.len() + line.len() > SPREAD_BYTES_MAX {
            self.gathered = std::mem::take(&mut self.spread);
            return Gathering::BrokenOff;
        }
        if !is_first {
            self.spread.push(b' ');
        }
        self.spread.extend_from_slice(line.trim_ascii());
        if is_first || !line.starts_with(b"}") {
            return Gathering::GoesOn;
        }
        self.gathered = std::mem::take(&mut self.spread);
        Gathering::Ends
    }
}

/// What became of a line that may be one of several.
enum Gathering {
    /// It stands for itself.
    None,
    /// More are to come.
    GoesOn,
    /// It was the last one.
    Ends,
    /// It is none of them, and they have been noise.
    BrokenOff,
}

fn line_of(line: &[u8]) -> Line<'_> {
    let line = line.trim_ascii();
    if let Some(message) = Incoming::read(line) {
        return Line::Message(message);
    }
    if let Some(messages) = read_batch(line) {
        return Line::Batch(messages);
    }
    if let Some(messages) = read_glued(line) {
        return Line::Batch(messages);
    }
    // Members stand in any order: the SDK for TypeScript writes `jsonrpc` last.
    if memmem::find(line, b"\"jsonrpc\"").is_some() {
        let beginnings = memmem::find_iter(line, b"{").filter(|at| *at > 0);
        // Each is a look at the whole line.
        let beginnings_max = match line.len() {
            0..=LONG_LINE_BYTES => BEGINNINGS_MAX,
            _ => 2,
        };
        for at in beginnings.take(beginnings_max) {
            if let Some(message) = Incoming::read(&line[at..]) {
                return Line::Salvaged {
                    noise: &line[..at],
                    message,
                };
            }
        }
    }
    Line::Noise(line)
}
