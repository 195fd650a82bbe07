//! Files and other bytes in requests. JSON cannot hold bytes: models give them as base64 or as a data: URL, and the
//! service gets the bytes themselves.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};

use super::document::{At, Document};

/// Choices inside choices are followed so deep.
const DEPTH_MAX: usize = 8;
/// How many schemas are looked at for one body: choices that name each other would multiply.
const SCHEMAS_MAX: usize = 10_000;

/// What a value is on its way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Content {
    /// As it was given.
    #[default]
    Text,
    /// The bytes that its base64 stands for.
    Bytes,
    /// The document takes both: a data: URL is bytes, anything else is text.
    BytesOrText,
}

/// Bytes as they were given, and what was said about them.
pub struct Given {
    pub bytes: Vec<u8>,
    pub media_type: Option<String>,
    pub file_name: Option<String>,
}

impl Content {
    /// What the document says a schema stands for in a body that can hold bytes.
    pub fn of<'d>(document: &'d Document, schema: At<'d>) -> Content {
        let mut found = Found::default();
        let mut schemas_left = SCHEMAS_MAX;
        look(document, schema, &mut found, &mut schemas_left, 0);
        found.content()
    }

    /// The bytes to send; none where the text itself is sent. An error says what is wrong with it.
    pub fn given(self, text: &str) -> Result<Option<Given>, &'static str> {
        match self {
            Content::Text => Ok(None),
            Content::BytesOrText if !is_data_url(text) => Ok(None),
            Content::Bytes | Content::BytesOrText => read(text).map(Some),
        }
    }

    /// The schema as models see it.
    pub fn described(self, mut schema: Value, media_type: Option<&str>) -> Value {
        let Some(members) = schema.as_object_mut().filter(|_| self != Content::Text) else {
            return schema;
        };
        encode_strings(members, media_type, 0);
        let own = members.get("description").and_then(Value::as_str);
        let own = own.unwrap_or_default().trim_end().to_owned();
        let how = match self {
            Content::BytesOrText => "A file is given as a data: URL with base64.",
            Content::Text | Content::Bytes => {
                "Give the bytes as base64 (with its padding), or as a data: URL."
            }
        };
        let words = format!("{own} {how}");
        members.insert("description".to_owned(), json!(words.trim_start()));
        schema
    }
}

/// Whether a media type is text, which is sent as it is written.
pub(super) fn is_textual(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    let Some((kind, name)) = essence.split_once('/') else {
        return false;
    };
    const TEXTS: [&str; 9] = [
        "json",
        "xml",
        "yaml",
        "x-yaml",
        "javascript",
        "graphql",
        "sql",
        "x-ndjson",
        "jsonl",
    ];
    let suffix = name.rsplit('+').next().unwrap_or_default();
    kind == "text"
        || TEXTS.contains(&name)
        || (name.contains('+') && TEXTS.contains(&suffix))
        || essence == "application/x-www-form-urlencoded"
}

/// Whether a media type is nothing that anyone writes as text, whatever its schema says.
pub(super) fn is_surely_bytes(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    let Some((kind, name)) = essence.split_once('/') else {
        return false;
    };
    const NAMES: [&str; 16] = [
        "octet-stream",
        "pdf",
        "zip",
        "gzip",
        "x-gzip",
        "x-tar",
        "x-bzip2",
        "x-xz",
        "zstd",
        "msword",
        "protobuf",
        "x-protobuf",
        "cbor",
        "msgpack",
        "x-msgpack",
        "wasm",
    ];
    let is_file = matches!(kind, "image" | "audio" | "video" | "font") && !is_textual(&essence);
    is_file
        || NAMES.contains(&name)
        || name.starts_with("vnd.openxmlformats-")
        || name.starts_with("vnd.ms-")
        || name.starts_with("vnd.oasis.opendocument.")
}

/// What the fields of a form are, wherever its schema names them: also in parts and choices of it.
pub(super) struct FormContents<'d> {
    named: Vec<(&'d str, Found)>,
    others: Found,
    schemas_left: usize,
}

impl<'d> FormContents<'d> {
    pub(super) fn of(document: &'d Document, schema: Option<At<'d>>) -> FormContents<'d> {
        let mut contents = FormContents {
            named: Vec::new(),
            others: Found::default(),
            schemas_left: SCHEMAS_MAX,
        };
        if let Some(schema) = schema {
            contents.collect(document, schema, 0);
        }
        contents
    }

    pub(super) fn named(&self) -> impl Iterator<Item = (&'d str, Content)> {
        self.named
            .iter()
            .map(|(name, found)| (*name, found.content()))
    }

    /// What the fields are that have no name in the document.
    pub(super) fn others(&self) -> Content {
        self.others.content()
    }

    pub(super) fn has_bytes(&self) -> bool {
        self.others.bytes || self.named.iter().any(|(_, found)| found.bytes)
    }

    fn collect(&mut self, document: &'d Document, schema: At<'d>, depth: usize) {
        let Ok(schema) = document.resolve(schema) else {
            return;
        };
        if depth > DEPTH_MAX || self.schemas_left == 0 {
            return;
        }
        self.schemas_left -= 1;
        let properties = schema.value.get("properties").and_then(Value::as_object);
        for (name, part) in properties.into_iter().flatten() {
            let known = self.named.iter().position(|(known, _)| known == name);
            let place = known.unwrap_or_else(|| {
                self.named.push((name, Found::default()));
                self.named.len() - 1
            });
            let found = &mut self.named[place].1;
            look(
                document,
                schema.with(part),
                found,
                &mut self.schemas_left,
                0,
            );
        }
        let patterns = schema
            .value
            .get("patternProperties")
            .and_then(Value::as_object);
        let others = patterns.into_iter().flat_map(serde_json::Map::values);
        for part in others.chain(schema.value.get("additionalProperties")) {
            let part = schema.with(part);
            look(document, part, &mut self.others, &mut self.schemas_left, 0);
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            let choices = schema.value.get(key).and_then(Value::as_array);
            for choice in choices.into_iter().flatten() {
                self.collect(document, schema.with(choice), depth + 1);
            }
        }
        for key in ["if", "then", "else"] {
            if let Some(part) = schema.get(key) {
                self.collect(document, part, depth + 1);
            }
        }
    }
}

#[derive(Default)]
struct Found {
    bytes: bool,
    text: bool,
}

impl Found {
    fn content(&self) -> Content {
        match (self.bytes, self.text) {
            (false, _) => Content::Text,
            (true, false) => Content::Bytes,
            (true, true) => Content::BytesOrText,
        }
    }
}

fn look<'d>(
    document: &'d Document,
    schema: At<'d>,
    found: &mut Found,
    schemas_left: &mut usize,
    depth: usize,
) {
    let Ok(schema) = document.resolve(schema) else {
        return;
    };
    if depth > DEPTH_MAX || *schemas_left == 0 {
        return;
    }
    *schemas_left -= 1;
    if is_bytes(schema) {
        found.bytes = true;
        return;
    }
    let mut has_choices = false;
    for key in ["anyOf", "oneOf", "allOf"] {
        let choices = schema.value.get(key).and_then(Value::as_array);
        for choice in choices.into_iter().flatten() {
            has_choices = true;
            let choice = schema.with(choice);
            look(document, choice, found, schemas_left, depth + 1);
        }
    }
    if let Some(items) = schema.get("items") {
        look(document, items, found, schemas_left, depth + 1);
    } else if !has_choices && is_string(schema) {
        found.text = true;
    }
}

fn is_string(schema: At<'_>) -> bool {
    match schema.value.get("type") {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.contains(&json!("string")),
        _ => false,
    }
}

/// Whether a schema is about bytes. What has an encoding travels as text: it is encoded in the request, too.
fn is_bytes(schema: At<'_>) -> bool {
    let media_type = schema.text("contentMediaType");
    schema.text("contentEncoding").is_none()
        && (schema.text("format") == Some("binary")
            || schema.text("type") == Some("file")
            || media_type.is_some_and(|it| !is_textual(it)))
}

/// Says of every string in a schema that is about bytes how it is given. Lengths and patterns were about the bytes.
fn encode_strings(members: &mut Map<String, Value>, media_type: Option<&str>, depth: usize) {
    if depth > DEPTH_MAX {
        return;
    }
    let own_type = members.get("contentMediaType").and_then(Value::as_str);
    let is_about_bytes = members.get("format") == Some(&json!("binary"))
        || own_type.is_some_and(|it| !is_textual(it));
    let has_parts = ["items", "anyOf", "oneOf", "allOf", "$ref"]
        .iter()
        .any(|key| members.contains_key(*key));
    if is_about_bytes || (depth == 0 && !has_parts) {
        for key in ["format", "minLength", "maxLength", "pattern"] {
            members.shift_remove(key);
        }
        members.insert("contentEncoding".to_owned(), json!("base64"));
        if let Some(media_type) = media_type {
            members
                .entry("contentMediaType")
                .or_insert(json!(media_type));
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        let choices = members.get_mut(key).and_then(Value::as_array_mut);
        for choice in choices.into_iter().flatten() {
            if let Some(choice) = choice.as_object_mut() {
                encode_strings(choice, media_type, depth + 1);
            }
        }
    }
    if let Some(items) = members.get_mut("items").and_then(Value::as_object_mut) {
        encode_strings(items, media_type, depth + 1);
    }
}

fn is_data_url(text: &str) -> bool {
    text.get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("data:"))
}

fn read(text: &str) -> Result<Given, &'static str> {
    if !is_data_url(text) {
        let bytes = decoded(text).ok_or("is no base64")?;
        return Ok(Given {
            bytes,
            media_type: None,
            file_name: None,
        });
    }
    let (about, data) = text[5..]
        .split_once(',')
        .ok_or("is a data: URL without a comma before its data")?;
    let mut parts = about.split(';').map(str::trim);
    let media_type = parts.next().filter(|it| it.contains('/'));
    let (mut is_base64, mut file_name) = (false, None);
    for part in parts {
        match part.split_once('=') {
            None if part.eq_ignore_ascii_case("base64") => is_base64 = true,
            Some((name, value)) if ["name", "filename"].contains(&name) => {
                let value = percent_encoding::percent_decode_str(value);
                file_name = Some(value.decode_utf8_lossy().into_owned());
            }
            _ => {}
        }
    }
    let bytes = match is_base64 {
        true => decoded(data).ok_or("is a data: URL whose data is no base64")?,
        false => percent_encoding::percent_decode_str(data).collect(),
    };
    Ok(Given {
        bytes,
        media_type: media_type.map(str::to_owned),
        file_name,
    })
}

/// Base64 in either alphabet; some write it in lines. Its padding is needed: without, more plain words would pass.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut joined = String::new();
    let mut text = text.trim();
    if text.contains(['\r', '\n']) {
        joined.extend(text.chars().filter(|c| !matches!(c, '\r' | '\n')));
        text = &joined;
    }
    let url_safe = || match text.ends_with('=') {
        true => URL_SAFE.decode(text),
        false => URL_SAFE_NO_PAD.decode(text),
    };
    match text.contains(['-', '_']) {
        true => url_safe().ok(),
        false => STANDARD.decode(text).ok(),
    }
}
