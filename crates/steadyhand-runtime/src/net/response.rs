//! An answer: read with a bound, decoded by its charset, turned into a tool's output.

use encoding_rs::{Encoding, UTF_8};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::{Value, json};
use steadyhand::{Output, ToolError, with_exact_integers};

use super::error;

/// Larger files are described, not repeated: a model cannot read them, and a cut one is of no use.
const BASE64_BYTES_MAX: usize = 64 * 1024;

/// An answer, whatever its status.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status of the last answer.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body after decompression, up to the limit.
    pub body: Vec<u8>,
    /// The body was longer than the limit.
    pub truncated: bool,
    /// How often we were sent elsewhere before.
    pub redirects: u32,
    /// Who answered, as messages may show it: host and port.
    pub site: String,
}

impl Response {
    /// The answer if its status is a success, else the error it stands for.
    pub fn success(self) -> Result<Response, ToolError> {
        match self.status.is_success() {
            true => Ok(self),
            false => Err(error::from_status(&self)),
        }
    }

    /// What OpenTelemetry's conventions for HTTP want to know of it.
    pub(super) fn traced(&self) -> Vec<(&'static str, Value)> {
        let status = self.status.as_u16();
        let mut described = vec![("http.response.status_code", json!(status))];
        if status >= 400 {
            described.push(("error.type", json!(status.to_string())));
        }
        described
    }

    /// The media type without its parameters, in lower case: `application/json`.
    pub fn content_type(&self) -> Option<String> {
        let value = self.headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let essence = value.split(';').next()?.trim();
        (!essence.is_empty()).then(|| essence.to_ascii_lowercase())
    }

    /// The body as text, in the charset it says it has; what does not fit shows as �.
    pub fn text(&self) -> String {
        let (text, _, _) = self.charset().unwrap_or(UTF_8).decode(&self.body);
        text.into_owned()
    }

    /// The body as JSON, whatever its content type says.
    pub fn json(&self) -> Result<Value, ToolError> {
        if self.truncated {
            return Err(self
                .useless(format!(
                    "is longer than the {} bytes that are read; ask for less",
                    self.body.len()
                ))
                .declared_final());
        }
        serde_json::from_str(&with_exact_integers(&self.text())).map_err(|error| {
            let fault = steadyhand::plain_words::json(&error);
            self.useless(format!("is not valid JSON: {fault}"))
        })
    }

    /// What a tool gives back for this answer: JSON as JSON, text as text, an empty body as null,
    /// anything else as a description with the bytes in base64 where they are few.
    pub fn into_output(self) -> Result<Output, ToolError> {
        if self.body.is_empty() {
            return Ok(Output::json(Value::Null));
        }
        match self.kind() {
            BodyKind::Json => Ok(Output::json(self.json()?)),
            BodyKind::Text => Ok(Output::json(self.marked_text())),
            BodyKind::Binary => Ok(Output::json(self.described())),
        }
    }

    fn kind(&self) -> BodyKind {
        let Some(essence) = self.content_type() else {
            return self.kind_by_look();
        };
        if is_json(&essence) {
            return BodyKind::Json;
        }
        let is_text = essence.starts_with("text/")
            || essence.ends_with("+xml")
            || essence.ends_with("+yaml")
            || matches!(
                essence.as_str(),
                "application/xml"
                    | "application/yaml"
                    | "application/toml"
                    | "application/javascript"
                    | "application/x-www-form-urlencoded"
                    | "application/x-ndjson"
                    | "application/jsonl"
            );
        match is_text {
            true => BodyKind::Text,
            false => BodyKind::Binary,
        }
    }

    fn kind_by_look(&self) -> BodyKind {
        let looks_like_json = matches!(self.body.first(), Some(b'{' | b'['));
        if looks_like_json && serde_json::from_slice::<serde::de::IgnoredAny>(&self.body).is_ok() {
            return BodyKind::Json;
        }
        match std::str::from_utf8(&self.body) {
            Ok(_) => BodyKind::Text,
            Err(_) => BodyKind::Binary,
        }
    }

    fn marked_text(&self) -> String {
        let mut text = self.text();
        if self.truncated {
            text.push_str(&format!(
                "\n[cut: only the first {} bytes of the answer were read]",
                self.body.len()
            ));
        }
        text
    }

    fn described(&self) -> Value {
        let mut description = json!({
            "content_type": self.content_type(),
            "bytes": self.body.len(),
        });
        if self.truncated {
            description["truncated"] = Value::Bool(true);
        } else if self.body.len() <= BASE64_BYTES_MAX {
            use base64::Engine;
            let text = base64::engine::general_purpose::STANDARD.encode(&self.body);
            description["base64"] = Value::String(text);
        }
        description
    }

    fn charset(&self) -> Option<&'static Encoding> {
        let value = self.headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let parameters = value.split(';').skip(1);
        let label = parameters
            .filter_map(|parameter| parameter.split_once('='))
            .find_map(|(name, label)| {
                name.trim().eq_ignore_ascii_case("charset").then_some(label)
            })?;
        Encoding::for_label(label.trim().trim_matches('"').as_bytes())
    }

    /// It ran and answered with success, but the answer is of no use.
    fn useless(&self, why: String) -> ToolError {
        ToolError::new(format!("the answer of {} {why}", self.site)).result_lost()
    }
}

enum BodyKind {
    Json,
    Text,
    Binary,
}

/// `application/json`, `application/problem+json`, `text/json` …
pub fn is_json(essence: &str) -> bool {
    essence.ends_with("/json") || essence.ends_with("+json")
}
