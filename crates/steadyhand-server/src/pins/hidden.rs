//! What people do not see in a definition and models do: characters without a shape, and words that speak to the
//! model. Signs, not proofs: they are shown to a person.

use serde_json::Value;
use steadyhand::Tool;

const FOUND_MAX: usize = 20;

/// What a description has no business to say, in lower case.
const WORDS: [&str; 10] = [
    "ignore previous",
    "ignore all previous",
    "ignore the above",
    "disregard previous",
    "do not tell the user",
    "don't tell the user",
    "without telling the user",
    "do not mention this",
    "<important>",
    "system prompt",
];

/// What was found in the texts of a tool.
pub(super) fn found(tool: &Tool) -> Vec<String> {
    let mut found = Vec::new();
    text("description", tool.description(), &mut found);
    value("", tool.schema(), &mut found);
    found
}

fn value(at: &str, value: &Value, found: &mut Vec<String>) {
    if found.len() >= FOUND_MAX {
        return;
    }
    match value {
        Value::String(string) => text(at, string, found),
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                self::value(&format!("{at}/{place}"), item, found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                text(&format!("{at}/{name}"), name, found);
                self::value(&format!("{at}/{name}"), field, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn text(at: &str, text: &str, found: &mut Vec<String>) {
    if let Some(character) = text.chars().find(|c| is_hidden(*c)) {
        let count = text.chars().filter(|c| is_hidden(*c)).count();
        found.push(format!(
            "{at} holds {count} characters that cannot be seen, U+{:04X} first",
            character as u32
        ));
    }
    let folded = text.to_lowercase();
    if let Some(words) = WORDS.iter().find(|words| folded.contains(**words)) {
        found.push(format!("{at} says {words:?}"));
    }
}

/// Characters that take no room, turn the direction, or carry text of their own.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{ad}' | '\u{61c}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}
