//! Writes a mended request so that what was not mended keeps its bytes: numbers that JSON readers round, the order of
//! fields, spaces.

use std::collections::{HashMap, VecDeque};
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// How many values of a list may be the one that a mended one was made of.
const NEAR_MAX: usize = 16;

/// The mended JSON, with the original bytes of everything in it that is as it was.
pub fn spliced(original: &[u8], mended: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(original.len() + 1024);
    match serde_json::from_slice::<&RawValue>(original) {
        Ok(raw) => splice(&mut out, raw, mended),
        Err(_) => write(&mut out, mended),
    }
    out
}

/// What is as it was keeps its bytes; of what is not, each part does.
fn splice(out: &mut Vec<u8>, raw: &RawValue, mended: &Value) {
    if is_same(raw, mended) {
        return out.extend_from_slice(raw.get().as_bytes());
    }
    match mended {
        Value::Object(fields) => object(out, raw, fields),
        Value::Array(items) => list(out, raw, items),
        _ => write(out, mended),
    }
}

fn object(out: &mut Vec<u8>, raw: &RawValue, mended: &Map<String, Value>) {
    let Fields(raw) = serde_json::from_str(raw.get()).unwrap_or_default();
    out.push(b'{');
    for (index, (key, value)) in mended.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, &Value::String(key.clone()));
        out.push(b':');
        match raw.get(key.as_str()) {
            Some(raw) => splice(out, raw, value),
            None => write(out, value),
        }
    }
    out.push(b'}');
}

/// A value that was there keeps its bytes, wherever it stands now. One that was not there as it is was made of the one
/// near it with which it shares the most, if there is one.
fn list(out: &mut Vec<u8>, raw: &RawValue, mended: &[Value]) {
    let raw: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let read = |raw: &&RawValue| serde_json::from_str(raw.get()).unwrap_or(Value::Null);
    let before: Vec<Value> = raw.iter().map(read).collect();
    let mut left = Left::of(&before);
    let mut wanted: HashMap<String, usize> = HashMap::new();
    for value in mended {
        *wanted.entry(value.to_string()).or_default() += 1;
    }
    out.push(b'[');
    for (index, value) in mended.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let text = value.to_string();
        if let Some(at) = left.take_same(&text) {
            out.extend_from_slice(raw[at].get().as_bytes());
        } else if let Some(at) = left.take_alike(&before, value, &wanted) {
            splice(out, raw[at], value);
        } else {
            write(out, value);
        }
        if let Some(count) = wanted.get_mut(&text) {
            *count -= 1;
        }
    }
    out.push(b']');
}

/// The values of a list that nothing was written from.
struct Left {
    by_text: HashMap<String, VecDeque<usize>>,
    texts: Vec<String>,
    is_taken: Vec<bool>,
    /// Behind the last one that was taken.
    next: usize,
}

impl Left {
    fn of(before: &[Value]) -> Left {
        let texts: Vec<String> = before.iter().map(Value::to_string).collect();
        let mut by_text: HashMap<String, VecDeque<usize>> = HashMap::new();
        for (at, text) in texts.iter().enumerate() {
            by_text.entry(text.clone()).or_default().push_back(at);
        }
        Left {
            by_text,
            is_taken: vec![false; texts.len()],
            texts,
            next: 0,
        }
    }

    fn take_same(&mut self, text: &str) -> Option<usize> {
        let same = self.by_text.get_mut(text)?;
        while let Some(at) = same.pop_front() {
            if !self.is_taken[at] {
                self.take(at);
                return Some(at);
            }
        }
        None
    }

    fn take_alike(
        &mut self,
        before: &[Value],
        value: &Value,
        wanted: &HashMap<String, usize>,
    ) -> Option<usize> {
        let near = self.next..before.len().min(self.next + NEAR_MAX);
        let is_free = |at: &usize| {
            let is_wanted = wanted.get(&self.texts[*at]).is_some_and(|count| *count > 0);
            !self.is_taken[*at] && !is_wanted
        };
        let scored = near
            .filter(is_free)
            .map(|at| (fields_shared(&before[at], value), at));
        // Of two that share as much, the first.
        let best = scored.max_by_key(|(shared, at)| (*shared, std::cmp::Reverse(*at)));
        let (_, at) = best.filter(|(shared, _)| *shared > 0)?;
        self.take(at);
        Some(at)
    }

    fn take(&mut self, at: usize) {
        self.is_taken[at] = true;
        self.next = self.next.max(at + 1);
    }
}

/// How many fields two objects have in common.
fn fields_shared(old: &Value, new: &Value) -> usize {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return 0;
    };
    let is_shared = |(key, value): &(&String, &Value)| old.get(key.as_str()) == Some(*value);
    new.iter().filter(is_shared).count()
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
#[derive(Default)]
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
        let spliced = String::from_utf8(spliced(original, &mended)).expect("text");
        assert_eq!(
            spliced,
            r#"{"big":123456789012345678901234567890,"one":1.0,"messages":[{"a":1.50},{"b":3},{"c": 3e2}],"more":[]}"#
        );
    }

    #[test]
    fn a_message_that_was_moved_is_written_once() {
        let original = br#"{"messages":[{"a":1.0},{"b":2},{"c":3}]}"#;
        let mended = serde_json::json!({"messages": [{"b": 2}, {"a": 1.0}, {"c": 3}]});
        let spliced = spliced(original, &mended);
        assert_eq!(
            serde_json::from_slice::<Value>(&spliced).expect("JSON"),
            mended
        );
    }

    #[test]
    fn what_is_not_mended_inside_a_message_keeps_its_bytes() {
        let original = br#"[{"role": "assistant", "content": [{"text": ""}, {"input": {"id": 12345678901234567890123}}]}, {"b": 1.50}]"#;
        let mut mended: Value = serde_json::from_slice(original).expect("JSON");
        let blocks = mended[0]["content"].as_array_mut().expect("a list");
        blocks.remove(0);
        blocks[0]["name"] = serde_json::json!("n");
        let spliced = String::from_utf8(spliced(original, &mended)).expect("text");
        assert_eq!(
            spliced,
            r#"[{"role":"assistant","content":[{"input":{"id": 12345678901234567890123},"name":"n"}]},{"b": 1.50}]"#
        );
    }
}
