//! HTML to passages. Works on tokens, without a tree: pages may be as broken and as deep as they
//! like, and lines of the file stay known.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use encoding_rs::Encoding;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use tokio::time::Instant;

use super::passages::{Cutter, Passage, shortened};

/// The tokenizer compares each attribute of a tag with all before it: a tag can be made of so many
/// that a page takes hours. So it is fed in slices, and those that only go on with a tag are timed.
const SLICE_BYTES: usize = 16 * 1024;
const PATIENCE: Duration = Duration::from_secs(3);
/// Where pages say their encoding.
const DECLARED_WITHIN_BYTES: usize = 2_048;

/// Title and passages of an HTML page; none for one that is made to keep its readers busy.
pub(super) fn passages(text: &str) -> Option<(Option<String>, Vec<Passage>)> {
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    let mut stuck = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let (slice, later) = rest.split_at(rest.floor_char_boundary(SLICE_BYTES));
        rest = later;
        let (began, tokens) = (Instant::now(), tokenizer.sink.tokens.get());
        input.push_back(StrTendril::from_slice(slice));
        // It pauses where a browser would run a script; nothing runs here.
        while !input.is_empty() {
            let _ = tokenizer.feed(&input);
        }
        if tokenizer.sink.tokens.get() == tokens {
            stuck += began.elapsed();
        }
        if stuck > PATIENCE {
            return None;
        }
    }
    tokenizer.end();
    Some(tokenizer.sink.page.take().finish())
}

/// The encoding in `<meta charset=…>` or in an XML declaration.
pub(super) fn declared_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = &bytes[..bytes.len().min(DECLARED_WITHIN_BYTES)];
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let declared = ["charset=", "encoding="].into_iter().find_map(|mark| {
        let after = start
            .split_once(mark)?
            .1
            .trim_start_matches(['"', '\'', ' ']);
        let is_end = |c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c);
        after.split(is_end).next()
    });
    Encoding::for_label(declared?.as_bytes())
}

#[derive(Default)]
struct Sink {
    page: RefCell<Page>,
    tokens: Cell<u64>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<()> {
        if !matches!(token, Token::ParseError(_)) {
            self.tokens.set(self.tokens.get() + 1);
        }
        let mut page = self.page.borrow_mut();
        match token {
            Token::CharacterTokens(text) => page.text(&text, line),
            Token::TagToken(tag) => return page.tag(&tag, line),
            Token::DoctypeToken(_)
            | Token::CommentToken(_)
            | Token::NullCharacterToken
            | Token::EOFToken
            | Token::ParseError(_) => {}
        }
        TokenSinkResult::Continue
    }
}

/// What has been read of a page.
#[derive(Default)]
struct Page {
    cutter: Cutter,
    title: Option<String>,
    /// Text since the last block began.
    text: String,
    text_line: u64,
    place: Place,
    /// Until this element ends, nothing is read; how many of it are open.
    dropped: Option<(&'static str, u32)>,
    preformatted: bool,
}

/// Where the text that comes next belongs.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Body,
    Title,
    Heading(usize),
}

/// Elements whose text is not for readers.
const DROPPED: [&str; 8] = [
    "script", "style", "template", "noscript", "svg", "math", "iframe", "select",
];
/// Elements that end a line of text but not a paragraph.
const LINES: [&str; 5] = ["br", "tr", "li", "dt", "dd"];
/// Elements that stand in a line and separate nothing.
const INLINE: [&str; 24] = [
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "em", "font", "i", "ins", "del", "kbd",
    "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "u",
];

impl Page {
    fn text(&mut self, text: &str, line: u64) {
        if self.dropped.is_some() {
            return;
        }
        if self.text.trim().is_empty() {
            self.text.clear();
            // The number is that of the token's end.
            self.text_line = line.saturating_sub(lines_in(text.trim_start())).max(1);
        }
        self.text.push_str(text);
        if self.preformatted && self.place == Place::Body {
            let ends_line = self.text.ends_with('\n');
            let whole = std::mem::take(&mut self.text);
            let mut lines: Vec<&str> = whole.split('\n').collect();
            let last = if ends_line { None } else { lines.pop() };
            for (offset, line) in lines.iter().enumerate() {
                self.cutter.line(line, self.text_line + offset as u64);
            }
            self.text_line += lines.len() as u64;
            self.text = last.unwrap_or_default().to_owned();
        }
    }

    fn tag(&mut self, tag: &Tag, line: u64) -> TokenSinkResult<()> {
        let name = &*tag.name;
        let opens = tag.kind == TagKind::StartTag;
        if let Some((dropped, open)) = self.dropped {
            if name == dropped && !tag.self_closing {
                let open = if opens { open + 1 } else { open - 1 };
                self.dropped = (open > 0).then_some((dropped, open));
            }
            return raw_text(name, opens);
        }
        if let Some(dropped) = DROPPED.into_iter().find(|dropped| *dropped == name) {
            if opens && !tag.self_closing {
                self.text.push(' ');
                self.dropped = Some((dropped, 1));
            }
            return raw_text(name, opens);
        }
        match (name, heading_level(name)) {
            ("title", _) if opens => {
                self.end_block(line);
                self.place = Place::Title;
            }
            (_, Some(level)) if opens => {
                self.end_block(line);
                self.place = Place::Heading(level);
            }
            ("title", _) | (_, Some(_)) => self.end_block(line),
            ("td" | "th", _) => self.text.push_str("  "),
            ("pre", _) => {
                self.end_block(line);
                self.preformatted = opens;
            }
            _ if LINES.contains(&name) => self.end_line(),
            _ if INLINE.contains(&name) => {}
            _ => self.end_block(line),
        }
        raw_text(name, opens)
    }

    /// What has been read so far is a line.
    fn end_line(&mut self) {
        if self.place != Place::Body {
            return self.text.push(' ');
        }
        let text = std::mem::take(&mut self.text);
        let words: Vec<&str> = match self.preformatted {
            true => vec![text.trim_end()],
            false => text.split_whitespace().collect(),
        };
        let line = words.join(" ");
        if !line.is_empty() {
            self.cutter.line(&line, self.text_line);
        }
    }

    /// What has been read so far is a heading, the title or a paragraph.
    fn end_block(&mut self, line: u64) {
        match std::mem::take(&mut self.place) {
            Place::Title => {
                let title = shortened(&std::mem::take(&mut self.text));
                if !title.is_empty() {
                    self.title.get_or_insert(title);
                }
            }
            Place::Heading(level) => {
                let heading = shortened(&std::mem::take(&mut self.text));
                let is_title = match &self.title {
                    Some(title) => *title == heading,
                    None => level == 1,
                };
                if is_title {
                    self.title.get_or_insert(heading);
                    self.cutter.heading(1, "", line);
                } else {
                    self.cutter.heading(level, &heading, line);
                }
            }
            Place::Body => {
                self.end_line();
                self.cutter.line("", line);
            }
        }
    }

    fn finish(mut self) -> (Option<String>, Vec<Passage>) {
        self.end_block(0);
        (
            self.title.filter(|title| !title.is_empty()),
            self.cutter.finish(),
        )
    }
}

fn heading_level(name: &str) -> Option<usize> {
    match name.as_bytes() {
        [b'h', digit @ b'1'..=b'6'] => Some(usize::from(digit - b'0')),
        _ => None,
    }
}

/// Elements whose inside is no markup.
fn raw_text(name: &str, opens: bool) -> TokenSinkResult<()> {
    match name {
        "script" if opens => TokenSinkResult::RawData(RawKind::ScriptData),
        "style" | "noscript" | "iframe" | "noframes" if opens => {
            TokenSinkResult::RawData(RawKind::Rawtext)
        }
        "title" | "textarea" if opens => TokenSinkResult::RawData(RawKind::Rcdata),
        _ => TokenSinkResult::Continue,
    }
}

fn lines_in(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}
