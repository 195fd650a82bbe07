//! How one value is written into a path, a query, a header or a form: OpenAPI's styles.
//!
//! Pure. What is encoded here cannot get out of its place: a path value adds no segment and no query,
//! a query value no other parameter.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Everything but RFC 3986's unreserved characters is encoded.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// `allowReserved`: those reserved characters that cannot begin another parameter or end the query.
const RESERVED_ALLOWED: &AsciiSet = &UNRESERVED
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';');
/// How deep a nested value is spelled out as `a[b][c]`.
const DEPTH_MAX: usize = 16;

/// OpenAPI's name for a way to write arrays and objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
    /// The value as JSON text: parameters with `content`.
    Json,
}

/// How a value becomes text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writing {
    pub style: Style,
    pub explode: bool,
    pub allow_reserved: bool,
}

impl Style {
    pub fn named(name: &str) -> Option<Style> {
        Some(match name {
            "simple" => Style::Simple,
            "label" => Style::Label,
            "matrix" => Style::Matrix,
            "form" => Style::Form,
            "spaceDelimited" => Style::SpaceDelimited,
            "pipeDelimited" => Style::PipeDelimited,
            "deepObject" => Style::DeepObject,
            _ => return None,
        })
    }
}

impl Writing {
    pub const fn new(style: Style, explode: bool) -> Writing {
        Writing {
            style,
            explode,
            allow_reserved: false,
        }
    }

    /// The value as it stands in a path. `None` if there is nothing to write.
    pub fn in_path(self, name: &str, value: &Value) -> Option<String> {
        let encoded = |value: &Value| Some(encode(&scalar(value)?));
        let name = encode(name);
        let filled = |text: &String| !text.is_empty();
        if self.style == Style::Json {
            return Some(encode(&value.to_string()));
        }
        let (lead, between) = match (self.style, self.explode) {
            (Style::Label, true) => (".", "."),
            (Style::Label, false) => (".", ","),
            (Style::Matrix, true) => (";", ";"),
            (Style::Matrix, false) => (";", ","),
            _ => ("", ","),
        };
        let named = self.style == Style::Matrix;
        let joined = match value {
            Value::Array(items) => {
                let items = items.iter().filter_map(encoded);
                match named && self.explode {
                    true => join(items.map(|item| format!("{name}={item}")), between),
                    false => join(items, between),
                }
            }
            Value::Object(members) => {
                let pairs = members
                    .iter()
                    .filter_map(|(key, value)| Some((encode(key), encoded(value)?)));
                match self.explode {
                    true => join(pairs.map(|(key, value)| format!("{key}={value}")), between),
                    false => join(pairs.map(|(key, value)| format!("{key},{value}")), between),
                }
            }
            one => encoded(one).unwrap_or_default(),
        };
        if joined.is_empty() {
            return None;
        }
        let labelled = match named && !(self.explode && (value.is_array() || value.is_object())) {
            true => format!("{lead}{name}={joined}"),
            false => format!("{lead}{joined}"),
        };
        Some(labelled).filter(filled)
    }

    /// The value as pairs of a query or a form, encoded.
    pub fn in_query(self, name: &str, value: &Value) -> Vec<String> {
        self.pairs(&encode_key(name), value, &encode)
            .into_iter()
            .map(|(key, text)| {
                // The separators are ours and stay; they are not part of any text here.
                let text = text
                    .iter()
                    .map(|piece| self.encode(piece))
                    .collect::<Vec<_>>();
                format!("{key}={}", text.join(self.separator()))
            })
            .collect()
    }

    /// The value as pairs of name and text, not encoded: parts of a multipart form.
    pub fn in_parts(self, name: &str, value: &Value) -> Vec<(String, String)> {
        let pairs = self.pairs(name, value, &str::to_owned).into_iter();
        let plain = match self.style {
            Style::SpaceDelimited => " ",
            _ => self.separator(),
        };
        pairs.map(|(key, text)| (key, text.join(plain))).collect()
    }

    /// The value as a header's text, not encoded.
    pub fn in_header(self, value: &Value) -> Option<String> {
        if self.style == Style::Json {
            return Some(value.to_string());
        }
        match value {
            Value::Array(items) => Some(join(items.iter().filter_map(scalar), ",")),
            Value::Object(members) => {
                let sign = if self.explode { "=" } else { "," };
                let pair = |(key, value)| Some(format!("{key}{sign}{}", scalar(value)?));
                Some(join(members.iter().filter_map(pair), ","))
            }
            one => scalar(one),
        }
    }

    /// Names, and texts whose pieces are put together with the separator. `key` writes a member's name.
    fn pairs(
        self,
        name: &str,
        value: &Value,
        key: &dyn Fn(&str) -> String,
    ) -> Vec<(String, Vec<String>)> {
        let mut pairs = Vec::new();
        match (self.style, value) {
            (_, Value::Null) => {}
            (Style::Json, value) => pairs.push((name.to_owned(), vec![value.to_string()])),
            (Style::DeepObject, Value::Array(_) | Value::Object(_)) => {
                deep(name.to_owned(), value, 0, key, &mut pairs);
            }
            (_, Value::Array(items)) if self.explode => {
                pairs.extend(
                    items
                        .iter()
                        .filter_map(text)
                        .map(|text| (name.to_owned(), vec![text])),
                );
            }
            (_, Value::Array(items)) => {
                let texts: Vec<String> = items.iter().filter_map(text).collect();
                if !texts.is_empty() {
                    pairs.push((name.to_owned(), texts));
                }
            }
            (_, Value::Object(members)) if self.explode => {
                let member =
                    |(name, value): (&String, &Value)| Some((key(name), vec![text(value)?]));
                pairs.extend(members.iter().filter_map(member));
            }
            (_, Value::Object(members)) => {
                let flat = members
                    .iter()
                    .filter_map(|(key, value)| Some([key.clone(), text(value)?]));
                pairs.push((name.to_owned(), flat.flatten().collect()));
            }
            (_, one) => pairs.extend(text(one).map(|text| (name.to_owned(), vec![text]))),
        }
        pairs
    }

    fn separator(self) -> &'static str {
        match self.style {
            Style::SpaceDelimited => "%20",
            Style::PipeDelimited => "|",
            _ => ",",
        }
    }

    fn encode(self, text: &str) -> String {
        match self.allow_reserved {
            true => utf8_percent_encode(text, RESERVED_ALLOWED).to_string(),
            false => encode(text),
        }
    }
}

/// Percent-encodes everything that could mean something.
pub(super) fn encode(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// A field of a form whose value is bytes.
pub(super) fn bytes_pair(name: &str, bytes: &[u8]) -> String {
    let value = percent_encoding::percent_encode(bytes, UNRESERVED);
    format!("{}={value}", encode_key(name))
}

/// Brackets in a name are written as they are: many services do not decode them there.
fn encode_key(key: &str) -> String {
    const KEY: &AsciiSet = &UNRESERVED.remove(b'[').remove(b']');
    utf8_percent_encode(key, KEY).to_string()
}

fn deep(
    name: String,
    value: &Value,
    depth: usize,
    key: &dyn Fn(&str) -> String,
    pairs: &mut Vec<(String, Vec<String>)>,
) {
    match value {
        Value::Object(members) if depth < DEPTH_MAX => {
            for (member, value) in members {
                deep(
                    format!("{name}[{}]", key(member)),
                    value,
                    depth + 1,
                    key,
                    pairs,
                );
            }
        }
        Value::Array(items) if depth < DEPTH_MAX => {
            for (place, value) in items.iter().enumerate() {
                deep(format!("{name}[{place}]"), value, depth + 1, key, pairs);
            }
        }
        other => pairs.extend(text(other).map(|text| (name, vec![text]))),
    }
}

/// One value as text; none for null, arrays and objects.
pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// One value as text; what has parts as JSON, since nothing says how else.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Array(_) | Value::Object(_) => Some(value.to_string()),
        one => scalar(one),
    }
}

fn join(texts: impl Iterator<Item = String>, between: &str) -> String {
    texts.collect::<Vec<_>>().join(between)
}
