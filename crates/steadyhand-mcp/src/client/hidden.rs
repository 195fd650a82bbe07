//! Secrets taken out of what a server says, before anybody else gets it: in every text of a JSON value, however it is
//! written there.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::client::settings::Hide;

/// The JSON without secrets; none if it had none.
pub fn hide_in_json(raw: &RawValue, hide: &Hide) -> Option<Box<RawValue>> {
    let text = raw.get();
    // Most have none: nothing is read for that. With `\u0041`, a letter may be written as its number.
    if !text.contains("\\u") && hide(text.to_owned()) == text {
        return None;
    }
    let before: Value = serde_json::from_str(text).ok()?;
    let mut after = before.clone();
    hide_in_value(&mut after, hide);
    match after == before {
        true => None,
        false => to_raw_value(&after).ok(),
    }
}

/// Takes secrets out of all texts of a value, the names of its members and its numbers included.
pub fn hide_in_value(value: &mut Value, hide: &Hide) {
    match value {
        Value::String(text) => *text = hide(std::mem::take(text)),
        Value::Array(items) => items.iter_mut().for_each(|item| hide_in_value(item, hide)),
        Value::Object(members) => {
            let all = std::mem::take(members).into_iter();
            let hidden: Map<String, Value> = all
                .map(|(name, mut member)| {
                    hide_in_value(&mut member, hide);
                    (hide(name), member)
                })
                .collect();
            *members = hidden;
        }
        Value::Number(number) => {
            let digits = number.to_string();
            let shown = hide(digits.clone());
            if shown != digits {
                *value = Value::String(shown);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// A list of entries without secrets.
pub(crate) fn hide_in_entries(
    entries: Vec<Box<RawValue>>,
    hide: Option<&Hide>,
) -> Vec<Box<RawValue>> {
    let Some(hide) = hide else {
        return entries;
    };
    let entries = entries.into_iter();
    entries
        .map(|entry| hide_in_json(&entry, hide).unwrap_or(entry))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::value::RawValue;

    use super::hide_in_json;
    use crate::client::settings::Hide;

    #[test]
    fn s07_a_secret_is_found_in_names_texts_numbers_and_behind_escapes_and_the_rest_stays_json() {
        let hide: Hide = Arc::new(|text: String| {
            text.replace("hunter2", "[redacted]")
                .replace("123456", "[redacted]")
        });
        for (raw, hidden) in [
            (r#"{"a":"is hunter2"}"#, Some(r#"{"a":"is [redacted]"}"#)),
            (r#"{"a":["\u0068unter2"]}"#, Some(r#"{"a":["[redacted]"]}"#)),
            (
                r#"{"hunter2":{"n":123456}}"#,
                Some(r#"{"[redacted]":{"n":"[redacted]"}}"#),
            ),
            (r#"{ "a": "\u0041", "n": 1.0 }"#, None),
        ] {
            let raw = RawValue::from_string(raw.to_owned()).expect("JSON");
            let found = hide_in_json(&raw, &hide);
            assert_eq!(found.as_ref().map(|it| it.get()), hidden);
        }
    }
}
