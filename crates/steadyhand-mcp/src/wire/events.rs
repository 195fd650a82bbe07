//! Server-sent events: bytes in, events out.
//!
//! A parser of our own, because those there are have no bound on a line or an event, and hand out texts that are
//! copied twice: this one gives the bytes of an event as they lie in its buffer, and they are read as JSON once.

use std::time::Duration;

use memchr::memchr2;

use super::overlong::begins_as_answer;

/// What a buffer keeps when nothing is in it.
const CAPACITY_KEPT: usize = 1024 * 1024;
const KIND_BYTES_MAX: usize = 256;
const ID_BYTES_MAX: usize = 4 * 1024;

/// Reads events out of bytes, however they are cut.
pub struct Events {
    buffer: Vec<u8>,
    /// What has been read of the buffer.
    read: usize,
    /// What has been searched for a line's end.
    searched: usize,
    /// The last line ended with a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    is_first: bool,
    event: Event,
    bytes_max: usize,
}

/// One event.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its data; several lines are joined.
    pub data: Vec<u8>,
    /// Its kind; empty means `message`.
    pub kind: String,
    /// Where to go on after it.
    pub id: Option<String>,
    /// How long to wait before coming back.
    pub retry: Option<Duration>,
    has_data: bool,
}

/// An event is larger than may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge(
    /// So many bytes have come of it.
    pub usize,
);

impl Events {
    /// An event, or a line, may be so large.
    pub fn new(bytes_max: usize) -> Events {
        Events {
            buffer: Vec::new(),
            read: 0,
            searched: 0,
            after_return: false,
            is_first: true,
            event: Event::default(),
            bytes_max,
        }
    }

    /// Takes in what has come.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.read > 0 {
            self.buffer.drain(..self.read);
            self.searched -= self.read;
            self.read = 0;
        }
        // What a single large event needed is given back.
        if self.buffer.is_empty() && self.buffer.capacity() > CAPACITY_KEPT {
            self.buffer = Vec::new();
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole event, if there is one.
    pub fn next_event(&mut self) -> Result<Option<Event>, TooLarge> {
        loop {
            let Some(end) = memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                let waiting = self.buffer.len() - self.read + self.event.data.len();
                return match waiting > self.bytes_max {
                    true => Err(TooLarge(waiting)),
                    false => Ok(None),
                };
            };
            let end = self.searched + end;
            let is_return = self.buffer[end] == b'\r';
            let start = std::mem::replace(&mut self.read, end + 1);
            self.searched = end + 1;
            let belongs_to_last = self.after_return && end == start && !is_return;
            self.after_return = is_return;
            if belongs_to_last {
                continue;
            }
            if let Some(event) = self.line(start, end) {
                return Ok(Some(event));
            }
            if self.event.data.len() > self.bytes_max {
                return Err(TooLarge(self.event.data.len()));
            }
        }
    }

    /// How much is held of what is not a whole event yet.
    pub fn held(&self) -> usize {
        self.buffer.len() - self.read + self.event.data.len()
    }

    /// Whether what has come of the next event begins like an answer, and not like anything else a server says.
    pub fn begins_as_answer(&self) -> bool {
        let line = &self.buffer[self.read..];
        let data = match self.event.has_data {
            true => &self.event.data,
            false => line.strip_prefix(b"data:").unwrap_or_default(),
        };
        begins_as_answer(data)
    }

    /// What has come beyond the last event.
    pub fn into_rest(mut self) -> Vec<u8> {
        self.buffer.split_off(self.read)
    }

    fn line(&mut self, start: usize, end: usize) -> Option<Event> {
        let mut line = &self.buffer[start..end];
        if std::mem::take(&mut self.is_first) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            let says_something = event.has_data || event.id.is_some() || event.retry.is_some();
            return says_something.then_some(event);
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let event = &mut self.event;
        match name {
            b"data" => {
                if event.has_data {
                    event.data.push(b'\n');
                }
                event.has_data = true;
                event.data.extend_from_slice(value);
            }
            b"event" => {
                let value = &value[..value.len().min(KIND_BYTES_MAX)];
                event.kind = String::from_utf8_lossy(value).into_owned();
            }
            // One that no header could hold is no place to go on from.
            b"id" if value.len() > ID_BYTES_MAX => event.id = Some(String::new()),
            b"id" if !value.contains(&0) => {
                event.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" => {
                let ms = std::str::from_utf8(value)
                    .ok()
                    .and_then(|ms| ms.parse().ok());
                event.retry = ms.map(Duration::from_millis);
            }
            // A comment, or something nobody knows.
            _ => {}
        }
        None
    }
}

impl Event {
    /// Whether it is a message, as all are that do not say otherwise.
    pub fn is_message(&self) -> bool {
        (self.kind.is_empty() || self.kind == "message") && !self.data.is_empty()
    }
}
