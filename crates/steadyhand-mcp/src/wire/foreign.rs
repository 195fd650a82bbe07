//! What the other side wrote, before anybody reads it: JSON that can be read in two ways is refused, and members of
//! `_meta` that look like marks of ours get another name.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;
use steadyhand::{RepeatedName, member_names};

/// How the names of our own members of `_meta` begin.
const OURS: &[u8] = b"io.steadyhand";
/// Put before a name that is not ours and looks like it.
const FOREIGN: &str = "foreign.";

/// The text as it may be passed on, or why nobody may read it.
pub fn examined(raw: &RawValue) -> Result<Cow<'_, RawValue>, RepeatedName> {
    let text = raw.get();
    let mut marks = Vec::new();
    let repeated = member_names(text.as_bytes(), &mut |member| {
        if member.parent == Some(b"_meta") && is_like_ours(member.name) {
            marks.push(member.place.start);
        }
    });
    if let Some(repeated) = repeated {
        return Err(repeated);
    }
    if marks.is_empty() {
        return Ok(Cow::Borrowed(raw));
    }
    let mut renamed = String::with_capacity(text.len() + marks.len() * FOREIGN.len());
    let mut end = 0;
    for mark in marks {
        renamed.push_str(&text[end..mark]);
        renamed.push_str(FOREIGN);
        end = mark;
    }
    renamed.push_str(&text[end..]);
    // A name became longer, and nothing else: it is JSON as before.
    let renamed = RawValue::from_string(renamed);
    Ok(renamed.map_or(Cow::Borrowed(raw), Cow::Owned))
}

/// The same in a value: what names twice, it has lost already.
pub fn rename_marks(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(rename_marks),
        Value::Object(members) => {
            if let Some(Value::Object(meta)) = members.get_mut("_meta")
                && meta.keys().any(|name| is_like_ours(name.as_bytes()))
            {
                let renamed = std::mem::take(meta).into_iter();
                *meta = renamed
                    .map(|(name, value)| match is_like_ours(name.as_bytes()) {
                        true => (format!("{FOREIGN}{name}"), value),
                        false => (name, value),
                    })
                    .collect();
            }
            members.values_mut().for_each(rename_marks);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a name is one of ours, or one that we would give to a foreign one: no two become the same.
pub fn is_like_ours(name: &[u8]) -> bool {
    let mut rest = name;
    while let Some((first, others)) = rest.split_at_checked(FOREIGN.len())
        && first.eq_ignore_ascii_case(FOREIGN.as_bytes())
    {
        rest = others;
    }
    let Some((first, others)) = rest.split_at_checked(OURS.len()) else {
        return false;
    };
    first.eq_ignore_ascii_case(OURS) && matches!(others.first(), None | Some(b'/' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn becomes(before: &str, after: &str) {
        let raw: &RawValue = serde_json::from_str(before).expect("JSON");
        let examined = examined(raw).expect("no name twice");
        assert_eq!(examined.get(), after);
    }

    #[test]
    fn s03_marks_of_ours_get_another_name_wherever_meta_is() {
        becomes(
            r#"{"_meta":{"io.steadyhand/callId":"x","a":1},"content":[{"_meta":{"\u0069o.steadyhand/error":{}}}]}"#,
            r#"{"_meta":{"foreign.io.steadyhand/callId":"x","a":1},"content":[{"_meta":{"foreign.\u0069o.steadyhand/error":{}}}]}"#,
        );
        becomes(
            r#"{"\u005fmeta":{"IO.Steadyhand.audit/x":1,"io.steadyhand":2}}"#,
            r#"{"\u005fmeta":{"foreign.IO.Steadyhand.audit/x":1,"foreign.io.steadyhand":2}}"#,
        );
        let both = r#"{"_meta":{"io.steadyhand/a":1,"foreign.io.steadyhand/a":2}}"#;
        let after =
            r#"{"_meta":{"foreign.io.steadyhand/a":1,"foreign.foreign.io.steadyhand/a":2}}"#;
        becomes(both, after);
        let mut value: Value = serde_json::from_str(both).expect("JSON");
        rename_marks(&mut value);
        assert_eq!(value.to_string(), after);
        for same in [
            r#"{"io.steadyhand/callId":"x","text":"\"_meta\":{\"io.steadyhand/a\":1}"}"#,
            r#"{"_meta":{"io.steadyhandy/a":1,"a":{"io.steadyhand/a":1}}}"#,
            "[]",
        ] {
            becomes(same, same);
        }
    }
}
