//! Bytes to lines, and lines to server-sent events, however the bytes are cut.
//!
//! Of our own, because the parsers there are have no bound on a line: what a provider sends must not fill the memory.

use memchr::memchr2;

/// Cuts bytes into lines of a bounded length.
#[derive(Debug)]
pub struct Lines {
    buffer: Vec<u8>,
    /// What has been handed out of the buffer.
    read: usize,
    /// What has been searched for the end of a line.
    searched: usize,
    bytes_max: usize,
}

/// A line is longer than may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// What a line of an event stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// Data; several lines of one event belong together.
    Data(&'a [u8]),
    /// The kind of the event that follows.
    Event(&'a [u8]),
    /// The end of an event.
    End,
    /// A comment, an id.
    Other,
}

impl Lines {
    /// A line may be so long.
    pub fn new(bytes_max: usize) -> Lines {
        Lines {
            buffer: Vec::new(),
            read: 0,
            searched: 0,
            bytes_max,
        }
    }

    /// Takes in what has come.
    ///
    /// # Errors
    ///
    /// Where no line has ended for too long.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.buffer.drain(..self.read);
        self.searched -= self.read;
        self.read = 0;
        if self.buffer.len() + bytes.len() > self.bytes_max {
            return Err(TooLong);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The next whole line, without its end: a line feed, a carriage return, or both, as event streams have them.
    pub fn next_line(&mut self) -> Option<&[u8]> {
        let Some(length) = memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let end = self.searched + length;
        let next = match (self.buffer[end], self.buffer.get(end + 1)) {
            (b'\n', _) => end + 1,
            // Its line feed may be on the way.
            (_, None) => {
                self.searched = end;
                return None;
            }
            (_, Some(b'\n')) => end + 2,
            (_, Some(_)) => end + 1,
        };
        let start = std::mem::replace(&mut self.read, next);
        self.searched = next;
        Some(&self.buffer[start..end])
    }

    /// What came after the last end of a line: a last line may have none.
    pub fn rest(&self) -> &[u8] {
        let rest = &self.buffer[self.read..];
        rest.strip_suffix(b"\r").unwrap_or(rest)
    }
}

impl<'a> Line<'a> {
    /// Reads one line of an event stream.
    pub fn of(line: &'a [u8]) -> Line<'a> {
        let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        if line.is_empty() {
            return Line::End;
        }
        let value = |rest: &'a [u8]| rest.strip_prefix(b" ").unwrap_or(rest);
        if let Some(rest) = line.strip_prefix(b"data:") {
            return Line::Data(value(rest));
        }
        match line.strip_prefix(b"event:") {
            Some(rest) => Line::Event(value(rest)),
            None => Line::Other,
        }
    }
}
