//! Markdown on a terminal as it comes: what is written stays as it is, so copying, resizing and scrolling work.

use anstyle::Style;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

/// Styles a text that comes piece by piece. A piece of a line is held back only while it may become something
/// else: a heading, a fence, words between stars.
#[derive(Debug, Default)]
pub struct Stream {
    held: String,
    line: Line,
    in_fence: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Nothing of it was written yet.
    #[default]
    Fresh,
    /// Some of it was.
    Begun,
}

/// What is held back is not held for longer than this: it was no markup after all.
const HELD_MAX: usize = 400;

impl Stream {
    /// What can be written now.
    pub fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        let mut out = String::new();
        while let Some(end) = self.held.find('\n') {
            let rest = self.held.split_off(end + 1);
            let line = std::mem::replace(&mut self.held, rest);
            out.push_str(&self.finished(line.trim_end_matches('\n')));
            out.push('\n');
            self.line = Line::Fresh;
        }
        let ready = self.ready();
        if ready > 0 {
            let rest = self.held.split_off(ready);
            let piece = std::mem::replace(&mut self.held, rest);
            self.line = Line::Begun;
            out.push_str(&inline(&piece));
        }
        out
    }

    /// The rest, when nothing more comes.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.held);
        let out = match rest.is_empty() {
            true => String::new(),
            false => self.finished(&rest),
        };
        self.line = Line::Fresh;
        self.in_fence = false;
        out
    }

    /// The rest of a line that is over.
    fn finished(&mut self, line: &str) -> String {
        if self.line == Line::Begun {
            return inline(line);
        }
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            self.in_fence = !self.in_fence;
            return styled(line, Style::new().dimmed());
        }
        if self.in_fence {
            return line.to_owned();
        }
        let marks = start.bytes().take_while(|byte| *byte == b'#').count();
        if (1..=6).contains(&marks) && start[marks..].starts_with(' ') {
            return styled(start[marks..].trim(), Style::new().bold());
        }
        inline(line)
    }

    /// How much of the line that is being written cannot become anything else any more.
    fn ready(&self) -> usize {
        if self.in_fence {
            return 0;
        }
        let is_fresh = self.line == Line::Fresh;
        let start = self.held.trim_start();
        if is_fresh && (start.len() < 4 || start.starts_with(['#', '`', '~'])) {
            return self.overlong();
        }
        // From the first mark that is still open on.
        let mut open: Option<(char, usize)> = None;
        for (at, letter) in self.held.char_indices() {
            match open {
                None if matches!(letter, '*' | '`') => open = Some((letter, at)),
                Some((mark, begin)) if letter == mark => {
                    let inside = &self.held[begin..at];
                    let is_still_the_mark = inside.chars().all(|inner| inner == mark);
                    if !is_still_the_mark && is_closed(&self.held[begin..=at], mark) {
                        open = None;
                    }
                }
                None | Some(_) => {}
            }
        }
        match open {
            // A star between spaces is one.
            Some((_, at)) if self.held[at..].starts_with("* ") => self.held.len(),
            Some((_, at)) => at.max(self.overlong()),
            None => self.held.len(),
        }
    }

    fn overlong(&self) -> usize {
        match self.held.len() > HELD_MAX {
            true => self.held.len(),
            false => 0,
        }
    }
}

/// As many marks at the end as at the beginning.
fn is_closed(text: &str, mark: char) -> bool {
    let opening = text.chars().take_while(|letter| *letter == mark).count();
    let closing = text
        .chars()
        .rev()
        .take_while(|letter| *letter == mark)
        .count();
    closing >= opening
}

/// Words between marks, styled; everything else as it is.
fn inline(text: &str) -> String {
    if !text.contains(['*', '`', '_']) {
        return text.to_owned();
    }
    let mut out = String::new();
    // The spaces around a piece of a line are a part of it, which Markdown does not see.
    let begin = text.len() - text.trim_start().len();
    let end = text.trim_end().len().max(begin);
    out.push_str(&text[..begin]);
    let middle = &text[begin..end];
    let mut written = 0;
    let mut styles: Vec<Style> = Vec::new();
    for (event, range) in Parser::new(middle).into_offset_iter() {
        match event {
            Event::Start(Tag::Strong) => styles.push(Style::new().bold()),
            Event::Start(Tag::Emphasis) => styles.push(Style::new().italic()),
            Event::End(TagEnd::Strong | TagEnd::Emphasis) => {
                styles.pop();
                written = range.end;
            }
            Event::Text(_) | Event::Code(_) => {
                let style = styles.last().copied();
                let (words, style) = match &event {
                    Event::Code(code) => (code.as_ref(), Some(Style::new().bold())),
                    _ => (&middle[range.clone()], style),
                };
                // What stands before it and is no mark: a number of a list, a backslash.
                if styles.is_empty() && range.start > written {
                    out.push_str(&middle[written..range.start]);
                }
                match style {
                    Some(style) => out.push_str(&styled(words, style)),
                    None => out.push_str(words),
                }
                written = range.end.max(written);
            }
            _ => {}
        }
    }
    out.push_str(middle.get(written..).unwrap_or_default());
    out.push_str(&text[end..]);
    out
}

fn styled(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}
