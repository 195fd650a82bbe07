//! An answer that cannot be read: a line that was meant as one, and which request it answers, as far as it says so.

use std::sync::LazyLock;

use regex::bytes::Regex;
use serde::de::IgnoredAny;

/// How much of a line is looked at, at its beginning and at its end.
const HEAD_BYTES: usize = 16 * 1024;
const TAIL_BYTES: usize = 256;

/// A line that looks like an answer and cannot be read as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadableAnswer {
    /// The request it answers, if its id can be read.
    pub id: Option<u64>,
    /// False where it may be a line of a log that repeats an answer: then the answer itself follows.
    pub is_certain: bool,
}

impl UnreadableAnswer {
    /// None if the line is something else: a text, a log, a request.
    pub fn look(line: &[u8]) -> Option<UnreadableAnswer> {
        let head = &line[..line.len().min(HEAD_BYTES)];
        let start = memchr::memchr(b'{', head);
        let outline = start.map(|start| Outline::read(&head[start..]));
        let outline = outline.unwrap_or_default();
        if outline.is_request {
            return None;
        }
        if serde_json::from_slice::<IgnoredAny>(line).is_ok() {
            // Whole JSON that is no JSON-RPC: an answer only if it says which one.
            return (outline.answers && outline.id.is_some()).then_some(UnreadableAnswer {
                id: outline.id,
                is_certain: false,
            });
        }
        if let Some(id) = id_at_the_end(line) {
            let is_certain = true;
            return Some(UnreadableAnswer {
                id: Some(id),
                is_certain,
            });
        }
        let is_answer = match (outline.has_version, outline.answers) {
            (true, _) => true,
            // `{"result":{…`, cut off before the rest: some write `jsonrpc` and `id` last.
            (false, true) => {
                let is_cut_off = start == Some(0) && outline.is_json && outline.has_object;
                outline.id.is_some() || is_cut_off
            }
            (false, false) => false,
        };
        is_answer.then_some(UnreadableAnswer {
            id: outline.id,
            is_certain: start == Some(0) && outline.is_json,
        })
    }
}

/// `"jsonrpc":"2.0","id":7}` or the other way round at the end of a line: how an answer ends whose beginning, or whose
/// middle, is broken.
fn id_at_the_end(line: &[u8]) -> Option<u64> {
    static END: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r#",\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*"?(\d+)"?|"id"\s*:\s*"?(\d+)"?\s*,\s*"jsonrpc"\s*:\s*"2\.0")\s*\}\s*$"#,
        )
        .expect("a fixed pattern")
    });
    let found = END.captures(&line[line.len().saturating_sub(TAIL_BYTES)..])?;
    let id = found.get(1).or(found.get(2))?;
    str::from_utf8(id.as_bytes()).ok()?.parse().ok()
}

/// The members of an object, read as far as its text can be followed. Quotes may be single ones, or missing: what
/// Python and Node print is nearly JSON.
#[derive(Debug, Default)]
struct Outline {
    has_version: bool,
    id: Option<u64>,
    /// It has a `result` or an `error`.
    answers: bool,
    /// That is an object.
    has_object: bool,
    /// It has a `method`, and no answer before it.
    is_request: bool,
    /// Its names stand in double quotes.
    is_json: bool,
}

impl Outline {
    /// `text` begins with the brace that opens the object.
    fn read(text: &[u8]) -> Outline {
        let mut outline = Outline {
            is_json: true,
            ..Outline::default()
        };
        let (mut at, mut depth) = (0, 0_i32);
        while at < text.len() {
            let token = Token::at(&text[at..]);
            at += token.bytes;
            match text[at - token.bytes] {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth <= 0 {
                        break;
                    }
                }
                _ => {}
            }
            let value = text[at..].trim_ascii_start().strip_prefix(b":");
            if depth == 1
                && let (Some(name), Some(value)) = (token.word, value)
            {
                outline.is_json &= token.is_quoted;
                outline.member(name, value.trim_ascii_start());
            }
        }
        outline
    }

    fn member(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"jsonrpc" => self.has_version = true,
            b"id" => self.id = self.id.or(number(value)),
            b"result" | b"error" => {
                self.answers = true;
                self.has_object |= value.is_empty() || value.starts_with(b"{");
            }
            b"method" => self.is_request |= !self.answers,
            _ => {}
        }
    }
}

/// A word, a quoted text, or any other single byte.
struct Token<'a> {
    bytes: usize,
    word: Option<&'a [u8]>,
    /// In double quotes.
    is_quoted: bool,
}

impl<'a> Token<'a> {
    /// The one that `text`, which is not empty, begins with.
    fn at(text: &'a [u8]) -> Token<'a> {
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        match text[0] {
            quote @ (b'"' | b'\'') => {
                let mut end = 1;
                while end < text.len() && text[end] != quote {
                    end += if text[end] == b'\\' { 2 } else { 1 };
                }
                let end = end.min(text.len());
                Token {
                    bytes: (end + 1).min(text.len()),
                    word: Some(&text[1..end]),
                    is_quoted: quote == b'"',
                }
            }
            first if is_letter(&first) => {
                let bytes = text.iter().take_while(|byte| is_letter(byte)).count();
                Token {
                    bytes,
                    word: Some(&text[..bytes]),
                    is_quoted: false,
                }
            }
            _ => Token {
                bytes: 1,
                word: None,
                is_quoted: false,
            },
        }
    }
}

/// The number that a text begins with, quoted or not.
fn number(text: &[u8]) -> Option<u64> {
    let text = text
        .strip_prefix(b"\"")
        .or_else(|| text.strip_prefix(b"'"))
        .unwrap_or(text);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    str::from_utf8(&text[..digits]).ok()?.parse().ok()
}
