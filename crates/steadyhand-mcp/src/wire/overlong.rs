//! A line that is longer than allowed: thrown away but for its two ends, which say what it was.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::lines::Line;

/// How much of its beginning is kept, to show.
const HEAD_BYTES: usize = 1024;
/// How much of its end: an id that stands last.
const TAIL_BYTES: usize = 128;

/// What is kept of an overlong line.
#[derive(Default)]
pub(super) struct Overlong {
    bytes: usize,
    head: Vec<u8>,
    tail: Vec<u8>,
    is_over: bool,
}

impl Overlong {
    pub(super) fn has_begun(&self) -> bool {
        self.bytes > 0 && !self.is_over
    }

    /// The next piece of it.
    pub(super) fn add(&mut self, piece: &[u8]) {
        if self.is_over {
            *self = Overlong::default();
        }
        self.bytes += piece.len();
        let room = HEAD_BYTES - self.head.len();
        self.head.extend_from_slice(&piece[..piece.len().min(room)]);
        let last = &piece[piece.len().saturating_sub(TAIL_BYTES)..];
        self.tail.extend_from_slice(last);
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
    }

    /// It is over.
    pub(super) fn end(&mut self) -> Line<'_> {
        self.is_over = true;
        Line::TooLong {
            start: &self.head,
            bytes: self.bytes,
            answers: self.answers(),
        }
    }

    /// The request that it would have answered: some write the id first, others last.
    fn answers(&self) -> Option<u64> {
        static FIRST: LazyLock<Regex> = LazyLock::new(|| {
            pattern(
                r#"^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*"?(\d+)"?\s*,\s*"(?:result|error)""#,
            )
        });
        static RESULT_FIRST: LazyLock<Regex> = LazyLock::new(|| {
            pattern(r#"^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"(?:result|error)""#)
        });
        static LAST: LazyLock<Regex> = LazyLock::new(|| {
            pattern(r#","id"\s*:\s*"?(\d+)"?\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$"#)
        });
        let found = FIRST.captures(&self.head).or_else(|| {
            RESULT_FIRST.find(&self.head)?;
            LAST.captures(&self.tail)
        })?;
        str::from_utf8(found.get(1)?.as_bytes()).ok()?.parse().ok()
    }
}

/// Whether the beginning of a message is that of an answer: it says so before anything else.
pub(super) fn begins_as_answer(start: &[u8]) -> bool {
    static ANSWER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r#"^\s*\{\s*(?:"(?:jsonrpc|id)"\s*:\s*(?:"[^"]{0,64}"|\d{1,20})\s*,\s*)*"(?:result|error)"\s*:"#,
        )
    });
    ANSWER.is_match(&start[..start.len().min(HEAD_BYTES)])
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a fixed pattern")
}
