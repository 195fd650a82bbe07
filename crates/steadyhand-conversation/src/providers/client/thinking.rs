//! Thinking that a model writes into its answer: `<think>…</think>` and its like. It is told apart from what the model
//! says, so that nobody reads it out (seed: an answer is what the user hears).
//!
//! Servers that know a model's template take it out themselves; the others leave it in the text, whichever protocol they
//! speak. A tag in code (between backticks) is something the model talks about.

use serde_json::Value;
use steadyhand::Content;

use crate::client::Told;
use crate::providers::wire::text;

/// How thinking begins and ends: Qwen, DeepSeek and most others; Gemini; Mistral; Seed; Kimi. Letters of either case.
const TAGS: [(&str, &str); 6] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("◁think▷", "◁/think▷"),
];
/// Where a call begins that a model forgot to end its thinking for.
const CALL: &str = "<tool_call>";

/// Splits a text that comes in pieces into what is said and what is thought.
#[derive(Debug, Default)]
pub struct ThinkingFilter {
    /// The end of what has come, where a tag may have begun.
    held: String,
    /// The tag that ends the thinking that has begun.
    until: Option<&'static str>,
    /// Spaces before the first word: they are said only if no thinking follows.
    leading: String,
    has_spoken: bool,
    has_thought: bool,
    code: Code,
}

/// Whether a text is in the middle of code.
#[derive(Debug, Default, Clone, Copy)]
struct Code {
    /// Backticks that have just come.
    run: usize,
    /// Backticks that the code began with; none outside of code.
    open: usize,
}

impl Code {
    fn take(&mut self, letter: char) {
        if letter == '`' {
            self.run += 1;
            return;
        }
        self.settle();
        // Code within a line ends with it at the latest.
        if letter == '\n' && self.open < 3 {
            self.open = 0;
        }
    }

    fn settle(&mut self) {
        match (self.run, self.open) {
            (0, _) => {}
            (run, 0) => self.open = run,
            (run, open) if run == open || (run >= 3 && open >= 3) => self.open = 0,
            _ => {}
        }
        self.run = 0;
    }

    fn is_inside(mut self) -> bool {
        self.settle();
        self.open > 0
    }
}

impl ThinkingFilter {
    /// Takes what is told in; words are split, the rest passes.
    pub fn take(&mut self, told: Told, tell: &mut dyn FnMut(Told)) {
        match told {
            Told::Text(piece) => self.push(&piece, tell),
            Told::Call(_) => {
                self.flush(tell);
                tell(told);
            }
            Told::Thinking(_) | Told::Retry(_) | Told::Notice(_) => tell(told),
        }
    }

    /// Nothing more comes.
    pub fn finish(&mut self, tell: &mut dyn FnMut(Told)) {
        self.flush(tell);
        let leading = std::mem::take(&mut self.leading);
        if !leading.is_empty() && !self.has_thought {
            tell(Told::Text(leading));
        }
    }

    fn push(&mut self, piece: &str, tell: &mut dyn FnMut(Told)) {
        self.held.push_str(piece);
        while self.step(tell) {}
    }

    /// What is held is no tag.
    fn flush(&mut self, tell: &mut dyn FnMut(Told)) {
        let held = std::mem::take(&mut self.held);
        match self.until {
            Some(_) => think(held, tell),
            None => self.say(held, tell),
        }
    }

    /// Goes on to the next tag. False where there is none so far.
    fn step(&mut self, tell: &mut dyn FnMut(Told)) -> bool {
        let Some(end) = self.until else {
            return self.step_outside(tell);
        };
        match find(&self.held, end) {
            Some(at) => {
                let rest = self.held.split_off(at + end.len());
                let mut thought = std::mem::replace(&mut self.held, rest);
                thought.truncate(at);
                self.until = None;
                think(thought, tell);
                true
            }
            None => {
                let whole = self.held.len() - begun(&self.held, &[end]);
                let rest = self.held.split_off(whole);
                think(std::mem::replace(&mut self.held, rest), tell);
                false
            }
        }
    }

    fn step_outside(&mut self, tell: &mut dyn FnMut(Told)) -> bool {
        let mut code = self.code;
        for (at, letter) in self.held.char_indices() {
            let rest = &self.held[at..];
            if matches!(letter, '<' | '[' | '◁') && !code.is_inside() {
                let tag = TAGS.iter().find(|(open, _)| starts_with(rest, open));
                if let Some((open, end)) = tag {
                    let after = self.held.split_off(at + open.len());
                    let mut said = std::mem::replace(&mut self.held, after);
                    said.truncate(at);
                    self.say(said, tell);
                    self.until = Some(end);
                    self.has_thought = true;
                    self.leading.clear();
                    return true;
                }
                let is_begun = TAGS
                    .iter()
                    .any(|(open, _)| rest.len() < open.len() && starts_with(open, rest));
                if is_begun {
                    let held = self.held.split_off(at);
                    let said = std::mem::replace(&mut self.held, held);
                    self.say(said, tell);
                    return false;
                }
            }
            code.take(letter);
        }
        let said = std::mem::take(&mut self.held);
        self.say(said, tell);
        false
    }

    fn say(&mut self, said: String, tell: &mut dyn FnMut(Told)) {
        said.chars().for_each(|letter| self.code.take(letter));
        if self.has_spoken {
            if !said.is_empty() {
                tell(Told::Text(said));
            }
            return;
        }
        let words = said.trim_start();
        if words.is_empty() {
            self.leading.push_str(&said);
            return;
        }
        self.has_spoken = true;
        let leading = std::mem::take(&mut self.leading);
        let first = match self.has_thought {
            true => words.to_owned(),
            false => leading + &said,
        };
        tell(Told::Text(first));
    }
}

fn think(thought: String, tell: &mut dyn FnMut(Told)) {
    if !thought.is_empty() {
        tell(Told::Thinking(thought));
    }
}

/// What is said in a text, and what is thought.
fn split(whole: &str) -> (String, String) {
    let (mut said, mut thought) = (String::new(), String::new());
    let mut rest = whole;
    if let Some((at, length)) = unopened(whole) {
        thought.push_str(&whole[..at]);
        rest = whole[at + length..].trim_start();
    }
    let mut filter = ThinkingFilter::default();
    let mut take = |told: Told| match told {
        Told::Text(text) => said.push_str(&text),
        Told::Thinking(text) => thought.push_str(&text),
        Told::Call(_) | Told::Retry(_) | Told::Notice(_) => {}
    };
    filter.push(rest, &mut take);
    let is_open = filter.until.is_some();
    filter.finish(&mut take);
    // Some begin a call without an end to their thinking: it is the call that counts.
    if let Some(at) = thought.find(CALL).filter(|_| is_open) {
        said.push_str(&thought.split_off(at));
    }
    (said, thought)
}

/// The end of a thinking whose beginning the template has put before the answer: it stands alone at the end of a line, or
/// in one of its own.
fn unopened(whole: &str) -> Option<(usize, usize)> {
    let (_, end) = TAGS[0];
    let at = find(whole, end)?;
    let begins = TAGS
        .iter()
        .any(|(open, _)| find(&whole[..at], open).is_some());
    let after = &whole[at + end.len()..];
    let stands_alone = whole[..at].ends_with('\n') || after.is_empty() || after.starts_with('\n');
    (!begins && stands_alone).then_some((at, end.len()))
}

/// The content without the thinking in its words, and that thinking. Nothing is changed where there is none.
pub fn apart(content: Content) -> (Content, String) {
    match content {
        Content::Text(whole) if has_tag(&whole) => {
            let (said, thought) = split(&whole);
            (Content::Text(said), thought)
        }
        Content::Blocks(blocks) if blocks.iter().any(block_has_tag) => {
            let (blocks, thought) = apart_in_blocks(blocks);
            (Content::Blocks(blocks), thought)
        }
        other => (other, String::new()),
    }
}

/// Thinking may begin in one block and end in another.
pub(crate) fn apart_in_blocks(blocks: Vec<Value>) -> (Vec<Value>, String) {
    if !blocks.iter().any(block_has_tag) {
        return (blocks, String::new());
    }
    let texts = blocks.iter().filter(|block| is_text(block)).count();
    let mut filter = ThinkingFilter::default();
    let mut thought = String::new();
    let mut kept = Vec::with_capacity(blocks.len());
    for mut block in blocks {
        if !is_text(&block) {
            kept.push(block);
            continue;
        }
        let whole = text(&block, "text").unwrap_or_default();
        let mut said = String::new();
        if texts == 1 {
            let (words, more) = split(whole);
            said = words;
            thought.push_str(&more);
        } else {
            let mut take = |told: Told| match told {
                Told::Text(text) => said.push_str(&text),
                Told::Thinking(text) => thought.push_str(&text),
                Told::Call(_) | Told::Retry(_) | Told::Notice(_) => {}
            };
            filter.push(whole, &mut take);
            filter.flush(&mut take);
        }
        if !said.is_empty() {
            block["text"] = Value::String(said);
            kept.push(block);
        }
    }
    (kept, thought)
}

fn is_text(block: &Value) -> bool {
    text(block, "type") == Some("text")
}

fn block_has_tag(block: &Value) -> bool {
    is_text(block) && text(block, "text").is_some_and(has_tag)
}

fn has_tag(whole: &str) -> bool {
    TAGS.iter()
        .any(|(open, end)| find(whole, open).is_some() || find(whole, end).is_some())
}

/// The place of a tag, in letters of either case.
fn find(whole: &str, tag: &str) -> Option<usize> {
    let first = tag.chars().next()?;
    let mut from = 0;
    while let Some(at) = whole[from..].find(first).map(|at| from + at) {
        if starts_with(&whole[at..], tag) {
            return Some(at);
        }
        from = at + first.len_utf8();
    }
    None
}

fn starts_with(whole: &str, beginning: &str) -> bool {
    let head = whole.as_bytes().get(..beginning.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(beginning.as_bytes()))
}

/// How many bytes at the end of a text may be the beginning of one of these tags.
fn begun(whole: &str, tags: &[&str]) -> usize {
    let longest = tags.iter().map(|tag| tag.len()).max().unwrap_or_default();
    let from = whole.len().saturating_sub(longest.saturating_sub(1));
    let starts = (from..whole.len()).filter(|at| whole.is_char_boundary(*at));
    let is_begun = |at: &usize| tags.iter().any(|tag| starts_with(tag, &whole[*at..]));
    starts
        .into_iter()
        .find(is_begun)
        .map_or(0, |at| whole.len() - at)
}
