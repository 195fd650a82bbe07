//! What a repair changed, for people.

use std::fmt::Write;

use serde_json::Value;

use crate::envelope::messages;
use crate::problem::Fix;
use crate::providers::Provider;

/// The longest line of a difference.
const LINE_MAX: usize = 160;
/// How many messages around a change are compared one by one.
const WINDOW_MAX: usize = 400;

/// The fixes in words, then the messages that are new (`+`), gone (`-`) or changed (both).
pub fn explain(provider: Provider, before: &Value, after: &Value, fixes: &[Fix]) -> String {
    if fixes.is_empty() {
        return format!("Nothing to mend: {provider} takes this conversation as it is.\n");
    }
    let mut text = match fixes.len() {
        1 => format!("1 fix, so that {provider} takes this conversation:\n"),
        count => format!("{count} fixes, so that {provider} takes this conversation:\n"),
    };
    for fix in fixes {
        let at = if fix.at.is_empty() { "/" } else { &fix.at };
        let _ = write!(
            text,
            "\n  {at}  {}\n    {}\n",
            fix.code.as_str(),
            fix.message
        );
    }
    text.push('\n');
    difference(
        messages(provider, before).unwrap_or_default(),
        messages(provider, after).unwrap_or_default(),
        &mut text,
    );
    text
}

fn difference(before: &[Value], after: &[Value], text: &mut String) {
    let start = before
        .iter()
        .zip(after)
        .take_while(|(one, other)| one == other)
        .count();
    let (before, after) = (&before[start..], &after[start..]);
    let same_end = before
        .iter()
        .rev()
        .zip(after.iter().rev())
        .take_while(|(one, other)| one == other)
        .count();
    let (before, after) = (
        &before[..before.len() - same_end],
        &after[..after.len() - same_end],
    );
    unchanged(start, text);
    let (mut old, mut new) = (0, 0);
    while old < before.len() || new < after.len() {
        match (before.get(old), after.get(new)) {
            (Some(one), Some(other)) if one == other => {
                line(' ', one, text);
                old += 1;
                new += 1;
            }
            (Some(one), _) if !is_ahead(one, &after[new.min(after.len())..]) => {
                line('-', one, text);
                old += 1;
            }
            (_, Some(other)) => {
                line('+', other, text);
                new += 1;
            }
            (Some(one), None) => {
                line('-', one, text);
                old += 1;
            }
            (None, None) => break,
        }
    }
    unchanged(same_end, text);
}

fn is_ahead(message: &Value, after: &[Value]) -> bool {
    after.iter().take(WINDOW_MAX).any(|other| other == message)
}

fn unchanged(count: usize, text: &mut String) {
    match count {
        0 => {}
        1 => text.push_str("    … 1 message as it was\n"),
        count => {
            let _ = writeln!(text, "    … {count} messages as they were");
        }
    }
}

fn line(sign: char, message: &Value, text: &mut String) {
    let json = message.to_string();
    let mut shown: String = json.chars().take(LINE_MAX).collect();
    if shown.len() < json.len() {
        shown.push('…');
    }
    let _ = writeln!(text, "  {sign} {shown}");
}
