//! Keeps outputs and texts within their size, cut at a sensible place, with a mark that says so.

use std::borrow::Cow;
use std::io;

use serde_json::{Map, Value};

use crate::output::{Cut, Output};

/// No output is deeper: readers of JSON stop there, too.
const LEVELS_MAX: usize = 128;
/// Room for the marks themselves, below which nothing is worth keeping.
const MARK_BYTES: usize = 96;

/// The output, cut to `limit` bytes if it is larger.
pub(crate) fn output(output: Output, limit: usize) -> Output {
    if output.is_plain() && surely_fits(output.value(), &mut { limit }, LEVELS_MAX) {
        return output;
    }
    let own_text = output.own_text().map(|own| text(own, limit));
    let artifact = output
        .artifact()
        .map(|value| shrink(value, limit, LEVELS_MAX));
    let value = shrink(output.value(), limit, LEVELS_MAX);
    let unchanged = value == *output.value()
        && own_text.as_deref() == output.own_text()
        && artifact.as_ref() == output.artifact();
    if unchanged {
        return output;
    }
    let parts = [Some(output.value()), output.artifact()];
    let bytes = |value| match depth_exceeds(value, LEVELS_MAX) {
        // Counting would recurse as deep as the value.
        true => 0,
        false => json_bytes(value, usize::MAX),
    };
    let largest = parts.into_iter().flatten().map(bytes).max().unwrap_or(0);
    let cut = Cut {
        full_bytes: largest.max(output.own_text().map_or(0, str::len)),
        limit_bytes: limit,
    };
    Output::of_parts(value, own_text, artifact, Some(cut))
}

/// The value, cut to about `limit` bytes of JSON if it is larger, with marks where something is missing.
pub fn value(value: &Value, limit: usize) -> Cow<'_, Value> {
    let fits = || !depth_exceeds(value, LEVELS_MAX) && json_bytes(value, limit) <= limit;
    if surely_fits(value, &mut { limit }, LEVELS_MAX) || fits() {
        return Cow::Borrowed(value);
    }
    match shrink(value, limit, LEVELS_MAX) {
        same if same == *value => Cow::Borrowed(value),
        smaller => Cow::Owned(smaller),
    }
}

/// The text, cut to about `limit` bytes if it is larger; the mark says how long it was.
pub fn text(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit.saturating_sub(MARK_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    marked(text, end)
}

fn marked(text: &str, end: usize) -> String {
    format!(
        "{}… [cut: the first {end} of {} bytes]",
        &text[..end],
        text.len()
    )
}

/// Whether the value surely takes no more than `bytes` as JSON and is no deeper than `levels`: a quick
/// look at the usual case. What is left of `bytes` stays in it.
pub(crate) fn surely_fits(value: &Value, bytes: &mut usize, levels: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => spend(bytes, 32),
        // Each byte may need an escape of six.
        Value::String(string) => spend(bytes, 6 * string.len() + 2),
        Value::Array(items) => {
            let fits = |item| spend(bytes, 1) && surely_fits(item, bytes, levels - 1);
            levels > 0 && items.iter().all(fits)
        }
        Value::Object(fields) => {
            levels > 0
                && fields.iter().all(|(name, field)| match field {
                    // The same as below, without a call for each of a tool's usual arguments.
                    Value::Null | Value::Bool(_) | Value::Number(_) => {
                        spend(bytes, 6 * name.len() + 36)
                    }
                    _ => spend(bytes, 6 * name.len() + 4) && surely_fits(field, bytes, levels - 1),
                })
        }
    }
}

fn spend(bytes: &mut usize, amount: usize) -> bool {
    let enough = *bytes >= amount;
    *bytes = bytes.saturating_sub(amount);
    enough
}

/// How many bytes the value takes as JSON; counting stops soon after `limit`.
pub fn json_bytes(value: &Value, limit: usize) -> usize {
    match value {
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

/// The first `bytes` bytes of the value's JSON, or a few less.
pub fn json_beginning(value: &Value, bytes: usize) -> String {
    struct Beginning(Vec<u8>, usize);
    impl io::Write for Beginning {
        fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
            let room = self.1.saturating_sub(self.0.len());
            self.0.extend_from_slice(&chunk[..chunk.len().min(room)]);
            match room < chunk.len() {
                true => Err(io::Error::other("enough")),
                false => Ok(chunk.len()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut beginning = Beginning(Vec::new(), bytes);
    // The only possible error is our own stop.
    let _ = serde_json::to_writer(&mut beginning, value);
    let text = String::from_utf8_lossy(&beginning.0);
    text.trim_end_matches('\u{fffd}').to_owned()
}

/// Whether arrays and objects are nested deeper than `levels`.
pub(crate) fn depth_exceeds(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => {
            levels == 0 || items.iter().any(|item| depth_exceeds(item, levels - 1))
        }
        Value::Object(fields) => {
            levels == 0
                || fields
                    .values()
                    .any(|field| depth_exceeds(field, levels - 1))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A smaller value of the same shape: long strings are cut, the tails of arrays and objects left out.
fn shrink(value: &Value, limit: usize, levels: usize) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        _ if !depth_exceeds(value, levels) && json_bytes(value, limit) <= limit => value.clone(),
        Value::String(string) => Value::String(json_text(string, limit)),
        _ if levels == 0 => Value::String("… [cut: nested too deep]".to_owned()),
        Value::Array(items) => shrink_array(items, limit, levels - 1),
        Value::Object(fields) => shrink_object(fields, limit, levels - 1),
    }
}

/// A string cut so that it takes at most `limit` bytes as JSON, where some characters take more.
fn json_text(string: &str, limit: usize) -> String {
    let room = limit.saturating_sub(MARK_BYTES);
    let mut taken = 0;
    let end = string.char_indices().find(|(_, c)| {
        taken += match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            c if (*c as u32) < 0x20 => 6,
            c => c.len_utf8(),
        };
        taken > room
    });
    let end = end.map_or(string.len(), |(index, _)| index);
    marked(string, end)
}

fn shrink_array(items: &[Value], limit: usize, levels: usize) -> Value {
    let mut left = limit.saturating_sub(MARK_BYTES);
    let mut kept = Vec::new();
    for item in items {
        let fits = !depth_exceeds(item, levels);
        let bytes = if fits {
            json_bytes(item, left) + 1
        } else {
            left + 1
        };
        if bytes <= left {
            left -= bytes;
            kept.push(item.clone());
            continue;
        }
        if left > 2 * MARK_BYTES {
            kept.push(shrink(item, left - MARK_BYTES, levels));
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
fn shrink_object(fields: &Map<String, Value>, limit: usize, levels: usize) -> Value {
    let room = limit.saturating_sub(MARK_BYTES);
    let costs: Vec<usize> = fields
        .iter()
        .map(|(name, field)| match depth_exceeds(field, levels) {
            true => room + 1,
            false => 2 * name.len() + 4 + json_bytes(field, room),
        })
        .collect();
    let allowance = fair_share(&costs, room);
    let mut left = room;
    let mut kept = Map::new();
    for ((name, field), cost) in fields.iter().zip(&costs) {
        let allowed = (*cost).min(allowance).min(left);
        let overhead = 2 * name.len() + 4;
        if allowed < *cost && allowed < overhead + 2 * MARK_BYTES {
            continue;
        }
        let smaller = shrink(field, allowed.saturating_sub(overhead), levels);
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
