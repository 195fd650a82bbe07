//! Texts of somebody else's, with everything in them to be seen: what would steer a terminal, turn letters around or
//! hide among them is written as its number, `\u{202e}`. Every command, log and page shows foreign texts like this.

use std::borrow::Cow;

/// The text with line breaks and tabs as they are, and every other character that controls or hides as its number.
pub fn text(text: &str) -> Cow<'_, str> {
    if text.is_ascii() && !text.bytes().any(|byte| hides_alone(char::from(byte))) {
        return Cow::Borrowed(text);
    }
    let Some((first, _)) = hidden(text).next() else {
        return Cow::Borrowed(text);
    };
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(&text[..first]);
    let mut end = first;
    for (at, character) in hidden(text) {
        shown.push_str(&text[end..at]);
        shown.extend(character.escape_unicode());
        end = at + character.len_utf8();
    }
    shown.push_str(&text[end..]);
    Cow::Owned(shown)
}

/// The characters of a text that nobody sees, and where they stand.
fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut before = None;
    text.char_indices().filter(move |(at, character)| {
        let after = || text[at + character.len_utf8()..].chars().next();
        let is_hidden = match character {
            '\u{200c}' | '\u{200d}' => !joins(before, after()),
            '\u{fe0e}' | '\u{fe0f}' => !before.is_some_and(is_picture),
            other => hides_alone(*other),
        };
        before = Some(*character);
        is_hidden
    })
}

/// Whether a character controls or hides, wherever it stands.
pub fn hides_alone(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => {
            true
        }
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' => true,
        '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' => true,
        '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control(),
    }
}

/// Between letters of scripts that are written with joiners, and between pictures, they are spelling.
fn joins(before: Option<char>, after: Option<char>) -> bool {
    let (Some(before), Some(after)) = (before, after) else {
        return false;
    };
    let is_joined =
        |letter: char| matches!(letter, '\u{600}'..='\u{fff}' | '\u{1780}'..='\u{18af}');
    let is_part = |letter: char| {
        is_picture(letter) || matches!(letter, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}')
    };
    (is_joined(before) && is_joined(after)) || (is_part(before) && is_picture(after))
}

fn is_picture(character: char) -> bool {
    matches!(character, '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn s07_what_turns_letters_around_or_hides_is_written_as_its_number() {
        for (foreign, shown) in [
            ("plain\ttext\n", "plain\ttext\n"),
            (
                "a\u{202e}b\0c\u{200b}d\u{1b}[31m",
                r"a\u{202e}b\u{0}c\u{200b}d\u{1b}[31m",
            ),
            (
                "\u{2066}x\u{2069}\u{61c}\u{9b}2J\r",
                r"\u{2066}x\u{2069}\u{61c}\u{9b}2J\u{d}",
            ),
            (
                "a\u{e0041}b\u{fe0f}c\u{200d}d\u{feff}",
                r"a\u{e0041}b\u{fe0f}c\u{200d}d\u{feff}",
            ),
            (
                "Grüße 日本 ⚠\u{fe0f} 👩\u{200d}💻 می\u{200c}خواهم",
                "Grüße 日本 ⚠\u{fe0f} 👩\u{200d}💻 می\u{200c}خواهم",
            ),
        ] {
            assert_eq!(text(foreign), shown);
        }
    }
}
