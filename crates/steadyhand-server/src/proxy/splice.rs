//! Writes a mended request so that what was not mended keeps its bytes: numbers that JSON readers round, the order of
//! fields, spaces.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// The mended request, with the original bytes of every field, and of every message, that is as it was.
pub(super) fn spliced(original: &[u8], mended: &Value, messages_key: &str) -> Vec<u8> {
    let (Ok(Fields(raw)), Some(fields)) = (
        serde_json::from_slice::<Fields<'_>>(original),
        mended.as_object(),
    ) else {
        return serde_json::to_vec(mended).unwrap_or_default();
    };
    let mut out = Vec::with_capacity(original.len() + 1024);
    out.push(b'{');
    for (index, (key, value)) in fields.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(&mut out, &Value::String(key.clone()));
        out.push(b':');
        match raw.get(key.as_str()) {
            Some(raw) if is_same(raw, value) => out.extend_from_slice(raw.get().as_bytes()),
            Some(raw) if key == messages_key => list(&mut out, raw, value),
            _ => write(&mut out, value),
        }
    }
    out.push(b'}');
    out
}

/// A list of messages: those that were there before keep their bytes.
fn list(out: &mut Vec<u8>, raw: &RawValue, mended: &Value) {
    let (Ok(raw), Some(mended)) = (
        serde_json::from_str::<Vec<&RawValue>>(raw.get()),
        mended.as_array(),
    ) else {
        return write(out, mended);
    };
    let read = |raw: &&RawValue| serde_json::from_str(raw.get()).unwrap_or(Value::Null);
    let before: Vec<Value> = raw.iter().map(read).collect();
    // Messages stay in their order, but for a few that are moved.
    let mut next = 0;
    out.push(b'[');
    for (index, message) in mended.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let found = before[next..]
            .iter()
            .position(|old| old == message)
            .map(|at| next + at);
        match found {
            Some(at) => {
                out.extend_from_slice(raw[at].get().as_bytes());
                next = at + 1;
            }
            None => write(out, message),
        }
    }
    out.push(b']');
}

fn is_same(raw: &RawValue, value: &Value) -> bool {
    serde_json::from_str::<Value>(raw.get()).is_ok_and(|read| read == *value)
}

fn write(out: &mut Vec<u8>, value: &Value) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// The fields of an object as they are written; of two with the same name the last, as everywhere.
struct Fields<'a>(HashMap<String, &'a RawValue>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Fields<'de>, D::Error> {
        struct Read;

        impl<'de> Visitor<'de> for Read {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = HashMap::new();
                while let Some((key, raw)) = map.next_entry::<String, &'de RawValue>()? {
                    fields.insert(key, raw);
                }
                Ok(Fields(fields))
            }
        }

        from.deserialize_map(Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_mended_keeps_its_bytes() {
        let original = br#"{ "big": 123456789012345678901234567890, "one": 1.0, "messages" : [ {"a":1.50} ,{"b":2}, {"c": 3e2} ] }"#;
        let mut mended: Value = serde_json::from_slice(original).expect("JSON");
        mended["messages"][1] = serde_json::json!({"b": 3});
        mended["more"] = serde_json::json!([]);
        let spliced = String::from_utf8(spliced(original, &mended, "messages")).expect("text");
        assert_eq!(
            spliced,
            r#"{"big":123456789012345678901234567890,"one":1.0,"messages":[{"a":1.50},{"b":3},{"c": 3e2}],"more":[]}"#
        );
    }

    #[test]
    fn a_message_that_was_moved_is_written_once() {
        let original = br#"{"messages":[{"a":1.0},{"b":2},{"c":3}]}"#;
        let mended = serde_json::json!({"messages": [{"b": 2}, {"a": 1.0}, {"c": 3}]});
        let spliced = spliced(original, &mended, "messages");
        assert_eq!(
            serde_json::from_slice::<Value>(&spliced).expect("JSON"),
            mended
        );
    }
}
