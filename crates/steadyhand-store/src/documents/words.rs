//! From what somebody asks to what the full-text table understands. No text is ever a wrong query.

use std::borrow::Cow;

/// More words make a query slower, not better.
const WORDS_MAX: usize = 32;
/// The last word also stands for longer ones that begin with it, from this length on.
const PREFIX_CHARS_MIN: usize = 3;
/// Keeps signs apart that are written without spaces; never shown.
const SEPARATOR: char = '\u{200b}';

/// Words that are in every text and in every question: they find nothing.
const COMMON: [&str; 48] = [
    "a", "about", "an", "and", "are", "as", "at", "be", "but", "by", "can", "do", "does", "for",
    "from", "has", "have", "how", "i", "if", "in", "is", "it", "its", "me", "my", "of", "on", "or",
    "our", "should", "so", "that", "the", "their", "there", "this", "to", "was", "we", "what",
    "when", "where", "which", "who", "why", "with", "you",
];

/// The words of a query, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    words: Vec<String>,
    /// The last word may be the beginning of one.
    open_end: bool,
}

impl Words {
    /// The words in a text: runs of letters and digits, as the index has them.
    pub fn of(text: &str) -> Words {
        let mut all: Vec<String> = Vec::new();
        for word in text.split(|c: char| !is_word_char(c)) {
            let word = word.to_lowercase();
            if all.len() < WORDS_MAX
                && word.chars().any(char::is_alphanumeric)
                && !all.contains(&word)
            {
                all.push(word);
            }
        }
        let is_telling = |word: &&String| !COMMON.contains(&word.as_str());
        let telling: Vec<String> = all.iter().filter(is_telling).cloned().collect();
        let words = if telling.is_empty() { all } else { telling };
        let ends_in_it = |word: &String| {
            word.chars().count() >= PREFIX_CHARS_MIN && text.to_lowercase().ends_with(word.as_str())
        };
        let open_end = words.last().is_some_and(ends_in_it);
        Words { words, open_end }
    }

    /// There is nothing to search for.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The FTS5 query for passages with all of the words.
    pub fn all(&self) -> String {
        self.joined(" AND ")
    }

    /// The FTS5 query for passages with any of the words.
    pub fn any(&self) -> String {
        self.joined(" OR ")
    }

    fn joined(&self, operator: &str) -> String {
        let last = self.words.len().saturating_sub(1);
        let term = |(index, word): (usize, &String)| {
            // Letters and digits only, so the quotes cannot be left.
            let word = spaced(word);
            match self.open_end && index == last {
                // The word itself counts once more, so that it wins over longer ones.
                true => format!("(\"{word}\" OR \"{word}\"*)"),
                false => format!("\"{word}\""),
            }
        };
        let terms: Vec<String> = self.words.iter().enumerate().map(term).collect();
        terms.join(operator)
    }
}

/// The text with signs kept apart that are written without spaces (Chinese, Japanese, Korean), so
/// that each is a word to the index.
pub(super) fn spaced(text: &str) -> Cow<'_, str> {
    if !text.contains(is_written_without_spaces) {
        return Cow::Borrowed(text);
    }
    let mut spaced = String::with_capacity(text.len() * 2);
    for sign in text.chars() {
        spaced.push(sign);
        if is_written_without_spaces(sign) {
            spaced.push(SEPARATOR);
        }
    }
    Cow::Owned(spaced)
}

/// The text as it was.
pub(super) fn unspaced(text: &str) -> String {
    text.replace(SEPARATOR, "")
}

fn is_written_without_spaces(sign: char) -> bool {
    matches!(sign,
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}')
}

/// Letters, digits, and the marks above letters that some texts keep apart from them.
fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '\u{300}'..='\u{36f}')
}
