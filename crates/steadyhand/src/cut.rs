//! Keeps outputs and texts within their size, cut at a sensible place, with a mark that says so.

use std::io;

use serde_json::{Map, Value};

use crate::output::{Cut, Output};

/// Room for the marks themselves, below which nothing is worth keeping.
const MARK_BYTES: usize = 96;

/// The output, cut to `limit` bytes if it is larger.
pub(crate) fn output(output: Output, limit: usize) -> Output {
    let text_bytes = output.own_text().map_or(0, str::len);
    let value_bytes = json_bytes(output.value(), limit);
    let artifact_bytes = output
        .artifact()
        .map_or(0, |value| json_bytes(value, limit));
    if value_bytes <= limit && text_bytes <= limit && artifact_bytes <= limit {
        return output;
    }
    let full_bytes = json_bytes(output.value(), usize::MAX).max(text_bytes).max(
        output
            .artifact()
            .map_or(0, |value| json_bytes(value, usize::MAX)),
    );
    let own_text = output.own_text().map(|own| text(own, limit));
    let artifact = output.artifact().map(|value| shrink(value, limit));
    let cut = Cut {
        full_bytes,
        limit_bytes: limit,
    };
    Output::replaced(shrink(&output.into_value(), limit), own_text, artifact, cut)
}

/// The text, cut to about `limit` bytes if it is larger; the mark says how long it was.
pub(crate) fn text(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit.saturating_sub(MARK_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!(
        "{}… [cut: the first {end} of {} bytes]",
        &text[..end],
        text.len()
    )
}

/// How many bytes the value takes as JSON; counting stops soon after `limit`.
pub(crate) fn json_bytes(value: &Value, limit: usize) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(flag) => 5 - usize::from(*flag),
        // Escapes can make a string up to six times as long, but hardly ever do.
        Value::String(string) if string.len() > limit => string.len() + 2,
        _ => {
            let mut count = Counter {
                bytes: 0,
                limit: limit.saturating_add(1),
            };
            // The only possible error is our own stop.
            let _ = serde_json::to_writer(&mut count, value);
            count.bytes
        }
    }
}

/// A smaller value of the same shape: long strings are cut, the tails of arrays and objects left out.
fn shrink(value: &Value, limit: usize) -> Value {
    if json_bytes(value, limit) <= limit {
        return value.clone();
    }
    match value {
        Value::String(string) => Value::String(text(string, limit)),
        Value::Array(items) => shrink_array(items, limit),
        Value::Object(fields) => shrink_object(fields, limit),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn shrink_array(items: &[Value], limit: usize) -> Value {
    let mut left = limit.saturating_sub(MARK_BYTES);
    let mut kept = Vec::new();
    for item in items {
        let bytes = json_bytes(item, left) + 1;
        if bytes <= left {
            left -= bytes;
            kept.push(item.clone());
            continue;
        }
        if left > 2 * MARK_BYTES {
            kept.push(shrink(item, left - MARK_BYTES));
        }
        break;
    }
    if kept.len() < items.len() {
        kept.push(Value::String(format!(
            "… [cut: the first {} of {} items]",
            kept.len(),
            items.len()
        )));
    }
    Value::Array(kept)
}

/// Small fields stay whole; the large ones share what room is left.
fn shrink_object(fields: &Map<String, Value>, limit: usize) -> Value {
    let room = limit.saturating_sub(MARK_BYTES);
    let costs: Vec<usize> = fields
        .iter()
        .map(|(name, field)| name.len() + 4 + json_bytes(field, room))
        .collect();
    let allowance = fair_share(&costs, room);
    let mut left = room;
    let mut kept = Map::new();
    for ((name, field), cost) in fields.iter().zip(&costs) {
        let allowed = (*cost).min(allowance).min(left);
        let overhead = name.len() + 4;
        if allowed < *cost && allowed < overhead + 2 * MARK_BYTES {
            continue;
        }
        let smaller = shrink(field, allowed - overhead);
        left = left.saturating_sub(overhead + json_bytes(&smaller, left));
        kept.insert(name.clone(), smaller);
    }
    if kept.len() < fields.len() {
        let mark = format!("[cut: {} of {} fields]", kept.len(), fields.len());
        kept.insert("…".to_owned(), Value::String(mark));
    }
    Value::Object(kept)
}

/// The largest allowance per field with which all fields together fit into `room`.
fn fair_share(costs: &[usize], room: usize) -> usize {
    let mut sorted = costs.to_vec();
    sorted.sort_unstable();
    let mut left = room;
    for (index, cost) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - index);
        if *cost > share {
            return share;
        }
        left -= cost;
    }
    room
}

struct Counter {
    bytes: usize,
    limit: usize,
}

impl io::Write for Counter {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        self.bytes = self.bytes.saturating_add(chunk.len());
        if self.bytes > self.limit {
            return Err(io::Error::other("over the limit"));
        }
        Ok(chunk.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
