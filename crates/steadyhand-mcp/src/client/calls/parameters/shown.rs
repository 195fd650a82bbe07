//! Changed names as a log shows them: `{device_name: "Lamp"} → {deviceName: "Lamp"}`.

use std::fmt::{self, Write};

use serde_json::Value;
use steadyhand::redact;

use super::Renamed;

const VALUE_CHARS_MAX: usize = 40;
const NAME_CHARS_MAX: usize = 64;
const NAMES_SHOWN_MAX: usize = 8;
const OBJECTS_SHOWN_MAX: usize = 4;
/// Of a long value only this much is searched for secrets, and much less is shown.
const VALUE_BYTES_READ_MAX: usize = 4 * 1024;

/// All changes of one call, as one line of bounded length and without secrets.
#[derive(Debug, Clone, Copy)]
pub struct Changes<'a>(pub &'a [Renamed]);

impl fmt::Display for Changes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut objects = self.0.chunk_by(|one, next| one.at == next.at);
        for group in objects.by_ref().take(OBJECTS_SHOWN_MAX) {
            f.write_str(separator)?;
            object(f, group)?;
            separator = "; ";
        }
        match objects.count() {
            0 => Ok(()),
            more => write!(f, "; and in {more} more objects"),
        }
    }
}

fn object(f: &mut fmt::Formatter<'_>, group: &[Renamed]) -> fmt::Result {
    let changed: Vec<&Renamed> = group.iter().filter(|one| !one.left).collect();
    if let Some(first) = changed.first() {
        if !first.at.is_empty() {
            write!(f, "at {}: ", Name(&first.at))?;
        }
        fields(f, &changed, |one| &one.from)?;
        f.write_str(" → ")?;
        fields(f, &changed, |one| &one.to)?;
    }
    let mut separator = if changed.is_empty() { "" } else { "; " };
    for one in group.iter().filter(|one| one.left).take(NAMES_SHOWN_MAX) {
        let (from, to, at) = (Name(&one.from), Name(&one.to), Name(&one.at));
        let place = if one.at.is_empty() { "" } else { " at " };
        write!(
            f,
            "{separator}{from}{place}{at} left as it came: {to} is given too"
        )?;
        separator = "; ";
    }
    Ok(())
}

fn fields(
    f: &mut fmt::Formatter<'_>,
    changed: &[&Renamed],
    name: impl Fn(&Renamed) -> &str,
) -> fmt::Result {
    f.write_char('{')?;
    for (index, one) in changed.iter().take(NAMES_SHOWN_MAX).enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        write!(f, "{separator}{}: {}", Name(name(one)), one.value)?;
    }
    if changed.len() > NAMES_SHOWN_MAX {
        f.write_str(", …")?;
    }
    f.write_char('}')
}

/// A name or place from outside: bounded, on one line.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars().take(NAME_CHARS_MAX) {
            match c.is_control() || steadyhand::visible::hides_alone(c) {
                true => write!(f, "{}", c.escape_unicode())?,
                false => f.write_char(c)?,
            }
        }
        match self.0.chars().nth(NAME_CHARS_MAX) {
            Some(_) => f.write_char('…'),
            None => Ok(()),
        }
    }
}

/// A value that goes by one name or the other.
pub(super) fn value(from: &str, to: &str, value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) => value.to_string(),
        _ if redact::is_secret_name(from) || redact::is_secret_name(to) => "[redacted]".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => string(text),
        Value::Array(items) if items.is_empty() => "[]".to_owned(),
        Value::Array(_) => "[…]".to_owned(),
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Object(_) => "{…}".to_owned(),
    }
}

fn string(text: &str) -> String {
    let read = &text[..text.floor_char_boundary(VALUE_BYTES_READ_MAX)];
    // Before it is cut: half a secret no longer looks like one.
    let shown = redact::text(read);
    let mut short: String = shown.chars().take(VALUE_CHARS_MAX).collect();
    if short.len() < shown.len() || read.len() < text.len() {
        short.push('…');
    }
    Value::String(short).to_string()
}
