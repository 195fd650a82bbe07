//! What a server answers to `tools/call`, as the outcome of a call: nothing lost, nothing made up.

use std::borrow::Cow;
use std::sync::LazyLock;

use bytesize::ByteSize;
use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};
use steadyhand::{Effect, Output, ToolError, with_exact_integers};

pub use crate::client::calls::rpc_error::read_rpc_error;
use crate::wire::meta::META_SERVER;

/// What a placeholder shows of an address or a type: an address may be a whole `data:` URL.
const WORD_CHARS_MAX: usize = 200;
const NO_CONTENT: &str = "The tool answered with no content";

/// Reads the `result` of a `tools/call` response.
///
/// | the result holds | the value is | the model reads |
/// |---|---|---|
/// | texts only | the texts, joined | the value |
/// | `structuredContent` | that | the texts, or the value as JSON |
/// | images, audio, resources, unknown parts | `content`, unchanged | the texts, and a word for each other part |
/// | no content | `""` | a sentence that says so |
///
/// What these leave out (`_meta`, annotations, members we do not know) goes along in the artifact, which
/// is then the whole result.
pub fn read_result(result: Value) -> Result<Output, ToolError> {
    let Value::Object(mut result) = result else {
        let message = format!(
            "the server answered with {} instead of a tool result",
            kind_of(&result)
        );
        return Err(ToolError::new(message).result_lost());
    };
    if let Some(kind) = result.get("resultType")
        && kind != "complete"
    {
        return Err(not_complete(kind));
    }
    if result.get("isError") == Some(&Value::Bool(true)) {
        let words = error_text(&result);
        let error = ToolError::answer(words.clone()).effect(Effect::Done);
        // Its own well-formed "no": people read it as it is, too.
        return Err(error.user_message(words));
    }
    if is_one_plain_text(&result)
        && let Some(text) = result.get_mut("content").and_then(|parts| parts.get_mut(0))
        && let Some(text) = text.get_mut("text")
    {
        return Ok(Output::json(text.take()));
    }
    Ok(read_whole(result))
}

/// The same from the text of the result.
pub fn read_raw_result(raw: &str) -> Result<Output, ToolError> {
    if let Some(output) = plain_text(raw) {
        return Ok(output);
    }
    let raw = &*with_exact_integers(raw);
    let read = serde_json::from_str(raw).or_else(|_| serde_json::from_str(&without_halves(raw)));
    match read {
        Ok(result) => read_result(result),
        Err(error) => {
            let fault = steadyhand::plain_words::json(&error);
            let message = format!("the server's result cannot be read: {fault}");
            Err(ToolError::answer(message).result_lost())
        }
    }
}

/// The usual result, read without taking it apart: one text and nothing else. None for all others.
fn plain_text(raw: &str) -> Option<Output> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Plain<'a> {
        #[serde(borrow)]
        content: Vec<Part<'a>>,
        #[serde(rename = "isError", default)]
        is_error: bool,
        #[serde(rename = "resultType", default, borrow)]
        kind: Option<&'a str>,
        #[serde(rename = "_meta", default)]
        _meta: Option<Meta>,
    }
    /// Which server it is, as those of the newer era say with every result.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Meta {
        #[serde(rename = "io.modelcontextprotocol/serverInfo")]
        _server: serde::de::IgnoredAny,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Part<'a> {
        #[serde(rename = "type")]
        kind: &'a str,
        #[serde(borrow)]
        text: Cow<'a, str>,
    }
    let plain: Plain<'_> = steadyhand::typed_json::from_str(raw).ok()?;
    match &plain.content[..] {
        [Part { kind: "text", text }]
            if !plain.is_error
                && !text.is_empty()
                && matches!(plain.kind, None | Some("complete")) =>
        {
            Some(Output::json(Value::String(text.clone().into_owned())))
        }
        _ => None,
    }
}

/// The usual case, in which nothing has to be copied.
fn is_one_plain_text(result: &Map<String, Value>) -> bool {
    let parts = result.get("content").and_then(Value::as_array);
    parts.is_some_and(|parts| parts.len() == 1 && is_plain_text(&parts[0]))
        && structured(result).is_none()
        && !says_more(result)
}

fn read_whole(mut result: Map<String, Value>) -> Output {
    let content = result.get("content").unwrap_or(&Value::Null);
    let parts = parts(content);
    let text = text_of(parts);
    let only_texts = parts.iter().all(|part| own_text(part).is_some());
    let loses_nothing = parts
        .iter()
        .all(|part| is_plain_text(part) || part.is_string());

    if let Some(value) = structured(&result) {
        let output = match parts.is_empty() {
            true => Output::json(value.clone()),
            false => Output::json_with_text(value.clone(), text),
        };
        return match loses_nothing && !says_more(&result) {
            true => output,
            false => output.with_artifact(result),
        };
    }
    if parts.is_empty() {
        return match says_more(&result) {
            // No content, but something is there: a bare object of a server that knows no better.
            true if result.keys().any(|name| is_foreign(name)) => Output::json(result),
            true => Output::json_with_text("", NO_CONTENT).with_artifact(result),
            false => Output::json_with_text("", NO_CONTENT),
        };
    }
    if only_texts {
        return match loses_nothing && !says_more(&result) {
            true => Output::json(text),
            false => Output::json(text).with_artifact(result),
        };
    }
    match says_more(&result) {
        true => Output::json_with_text(content.clone(), text).with_artifact(result),
        false => {
            let content = result.remove("content").unwrap_or_default();
            Output::json_with_text(content, text)
        }
    }
}

/// `content` as a list of parts, also where a server gives a single part or a plain string.
fn parts(content: &Value) -> &[Value] {
    match content {
        Value::Array(parts) => parts,
        Value::Null => &[],
        single => std::slice::from_ref(single),
    }
}

/// A null is how some servers write that there is none.
fn structured(result: &Map<String, Value>) -> Option<&Value> {
    result.get("structuredContent").filter(|it| !it.is_null())
}

/// There is something in the result that is neither content nor a sign.
fn says_more(result: &Map<String, Value>) -> bool {
    result.iter().any(|(name, value)| match name.as_str() {
        // Which server it is, is known.
        "_meta" => {
            let is_more = |meta: &Map<String, Value>| meta.keys().any(|key| key != META_SERVER);
            value.as_object().is_none_or(is_more) && !value.is_null()
        }
        name => is_foreign(name),
    })
}

fn is_foreign(name: &str) -> bool {
    const KNOWN: [&str; 5] = [
        "content",
        "structuredContent",
        "isError",
        "resultType",
        "_meta",
    ];
    !KNOWN.contains(&name)
}

/// A text and nothing beside it.
fn is_plain_text(part: &Value) -> bool {
    let fields = part.as_object();
    fields.is_some_and(|fields| fields.len() == 2)
        && part["type"] == "text"
        && part["text"].is_string()
}

/// The words of a part that is a text.
fn own_text(part: &Value) -> Option<&str> {
    match part {
        Value::String(text) => Some(text),
        part if part.get("type")? == "text" => part.get("text")?.as_str(),
        _ => None,
    }
}

/// What a model reads of the content.
fn text_of(parts: &[Value]) -> String {
    let mut text = String::new();
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        match own_text(part).or_else(|| resource_text(part)) {
            Some(own) => text.push_str(own),
            None => text.push_str(&placeholder(part)),
        }
    }
    text
}

fn resource_text(part: &Value) -> Option<&str> {
    part.get("resource")?.get("text")?.as_str()
}

/// A word for what a text cannot show: `[image image/png, 12.3 kB]`.
fn placeholder(part: &Value) -> String {
    let word = |from: &Value, name: &str| from.get(name).and_then(Value::as_str).map(short);
    let size = |from: &Value, name: &str| from.get(name).and_then(Value::as_str).map(decoded_size);
    let kind = word(part, "type");
    let (name, facts) = match kind.as_deref() {
        Some(name @ ("image" | "audio")) => {
            (name, [word(part, "mimeType"), size(part, "data"), None])
        }
        Some("resource_link") => (
            "resource",
            [word(part, "uri"), word(part, "mimeType"), None],
        ),
        Some("resource") => {
            let inner = part.get("resource").unwrap_or(&Value::Null);
            let facts = [
                word(inner, "uri"),
                word(inner, "mimeType"),
                size(inner, "blob"),
            ];
            ("resource", facts)
        }
        Some(other) => return format!("[content of type {other}]"),
        None => return format!("[{} without a type]", kind_of(part)),
    };
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    match facts.is_empty() {
        true => format!("[{name}]"),
        false => format!("[{name} {}]", facts.join(", ")),
    }
}

/// How many bytes a text in base64 stands for.
fn decoded_size(base64: &str) -> String {
    let digits = base64.trim_end_matches('=').len() as u64;
    ByteSize(digits * 3 / 4).display().si().to_string()
}

/// One line of bounded length.
fn short(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(WORD_CHARS_MAX)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(WORD_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// The server's own words about what went wrong, unchanged.
fn error_text(result: &Map<String, Value>) -> String {
    let parts = parts(result.get("content").unwrap_or(&Value::Null));
    let words = |part| own_text(part).or_else(|| resource_text(part));
    let texts: Vec<&str> = parts.iter().filter_map(words).collect();
    if texts.iter().any(|text| !text.trim().is_empty()) {
        return texts.join("\n");
    }
    if let Some(value) = structured(result) {
        return value.to_string();
    }
    match parts.is_empty() {
        true => "the tool reported an error and did not say which".to_owned(),
        false => format!(
            "the tool reported an error without words: {}",
            text_of(parts)
        ),
    }
}

/// A server of the newer protocol wants something first, or speaks of something we do not know.
fn not_complete(kind: &Value) -> ToolError {
    let message = match kind.as_str() {
        Some("input_required") => {
            "the tool asks for more input before it goes on, and nobody here can give it".to_owned()
        }
        Some("task") => "the server answered with a task instead of a result".to_owned(),
        _ => format!(
            "the server answered with a result of unknown type {}",
            short(&kind.to_string())
        ),
    };
    ToolError::answer(message).effect(Effect::Unknown)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// JavaScript writes a cut emoji as half of it (`\\ud83d` alone), which is no text: a mark stands in its place.
fn without_halves(raw: &str) -> String {
    static HALVES: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\ud[89a-f][0-9a-f]{2}")
            .expect("a fixed pattern")
    });
    let mend = |found: &regex::Captures<'_>| match &found[0] {
        half if half.len() == 6 => "\\ufffd".to_owned(),
        whole => whole.to_owned(),
    };
    HALVES.replace_all(raw, mend).into_owned()
}
