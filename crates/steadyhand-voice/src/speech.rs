//! Markdown as it is spoken: no stars, no links, no code; every part ends like a sentence.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// What a voice says of a text. What cannot be spoken (code, tables' lines, addresses) is left out or named.
///
/// ```
/// use steadyhand_voice::spoken;
///
/// assert_eq!(spoken("**Yes**, see [the page](https://a.example).\n\n- one\n- two"), "Yes, see the page. one, two.");
/// ```
pub fn spoken(markdown: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut voice = Voice::default();
    for event in Parser::new_ext(markdown, options) {
        voice.hear(event);
    }
    voice.end_sentence('.');
    // What was left out leaves gaps.
    let words: Vec<&str> = voice.said.split_whitespace().collect();
    words.join(" ")
}

#[derive(Default)]
struct Voice {
    said: String,
    /// Inside of what is not spoken.
    silent: usize,
    is_cell_first: bool,
}

impl Voice {
    fn hear(&mut self, event: Event<'_>) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => {
                self.end_sentence('.');
                self.say("There is some code.");
                self.end_sentence('.');
                self.silent += 1;
            }
            Event::End(TagEnd::CodeBlock) => self.silent = self.silent.saturating_sub(1),
            Event::Start(Tag::TableHead | Tag::TableRow) => self.is_cell_first = true,
            Event::Start(Tag::TableCell) => {
                if !self.is_cell_first {
                    self.end_sentence(',');
                }
                self.is_cell_first = false;
            }
            Event::End(TagEnd::Item) => self.end_sentence(','),
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Heading(_)
                | TagEnd::List(_)
                | TagEnd::TableHead
                | TagEnd::TableRow
                | TagEnd::BlockQuote(_),
            ) => self.end_sentence('.'),
            Event::Text(text) | Event::Code(text) => self.say(&text),
            Event::SoftBreak | Event::HardBreak => self.pause(),
            Event::Rule => self.end_sentence('.'),
            Event::Start(_)
            | Event::End(_)
            | Event::Html(_)
            | Event::InlineHtml(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_)
            | Event::TaskListMarker(_) => {}
        }
    }

    fn say(&mut self, text: &str) {
        if self.silent > 0 {
            return;
        }
        let spoken = |letter: &char| !is_picture(*letter) && !letter.is_control();
        self.said.extend(text.chars().filter(spoken));
    }

    fn pause(&mut self) {
        if !self.said.ends_with(' ') && !self.said.is_empty() {
            self.said.push(' ');
        }
    }

    /// Ends a part with this, unless it has an end. A list ends like a sentence, its parts do not.
    fn end_sentence(&mut self, mark: char) {
        let end = self.said.trim_end().len();
        self.said.truncate(end);
        match self.said.chars().next_back() {
            None => return,
            Some(',') if mark == '.' => {
                self.said.pop();
                self.said.push('.');
            }
            Some(last) if ".,!?;:…".contains(last) => {}
            Some(_) => self.said.push(mark),
        }
        self.said.push(' ');
    }
}

/// Emoji and other signs that a voice would read out by their names.
fn is_picture(letter: char) -> bool {
    matches!(u32::from(letter), 0x2190..=0x21ff | 0x2500..=0x27bf | 0x2b00..=0x2bff | 0xfe00..=0xfe0f | 0x1f000..=0x1faff)
}
