//! Words as people type them into a filter: named, quoted, or just a text.

/// One word of a filter.
pub(super) enum Word {
    Named(String, String),
    Slower(String),
    Text(String),
}

/// Splits at spaces, but not within quotation marks; there, a backslash stands before a mark that is meant.
pub(super) fn words_of(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| c.is_whitespace() || c == '"')
            .unwrap_or(rest.len());
        let (head, tail) = rest.split_at(end);
        let (value, tail) = match tail.strip_prefix('"') {
            Some(quoted) => {
                let (inside, tail) = unquoted(quoted);
                (Some(inside), tail)
            }
            None => (None, tail),
        };
        words.push(word(head, value.as_deref()));
        rest = tail.trim_start();
    }
    words
}

/// What stands before the closing mark, and what after it.
fn unquoted(text: &str) -> (String, &str) {
    let mut inside = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '"' => break,
            '\\' if rest.as_str().starts_with(['"', '\\']) => inside.extend(rest.next()),
            c => inside.push(c),
        }
    }
    (inside, rest.as_str())
}

fn word(head: &str, quoted: Option<&str>) -> Word {
    if let (Some(than), None) = (head.strip_prefix('>'), quoted) {
        return Word::Slower(than.to_owned());
    }
    // An address is a text.
    let named = head.split_once(':').filter(|(name, value)| {
        let is_word = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_word && !value.starts_with("//")
    });
    match named {
        Some((name, value)) => {
            let value = format!("{value}{}", quoted.unwrap_or_default());
            Word::Named(name.to_ascii_lowercase(), value)
        }
        None => Word::Text(format!("{head}{}", quoted.unwrap_or_default())),
    }
}

pub(super) fn quoted(value: &str) -> String {
    let needs_it = |c: char| c.is_whitespace() || c == '"';
    match value.contains(needs_it) || value.starts_with("//") {
        true => format!("\"{}\"", value.replace('\\', r"\\").replace('"', "\\\"")),
        false => value.to_owned(),
    }
}

/// A text that would read as another kind of word is told to be one.
pub(super) fn quoted_text(text: &str) -> String {
    match text.contains(':') || text.starts_with('>') {
        true => format!("text:{}", quoted(text)),
        false => quoted(text),
    }
}
