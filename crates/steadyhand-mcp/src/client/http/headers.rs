//! What of a request stands in its headers, too, in the protocol of 2026: its method, what it is about, and the
//! parameters that a tool's schema marks with `x-mcp-header`.

use std::collections::HashSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

const ANNOTATION: &str = "x-mcp-header";
const ENCODED_START: &str = "=?base64?";
const ENCODED_END: &str = "?=";

/// Parameters of a tool that stand in headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ParamHeaders(Vec<(Vec<String>, HeaderName)>);

impl ParamHeaders {
    /// By the schema of a tool. An error says why the protocol does not allow the tool to be used over HTTP.
    pub(crate) fn of(schema: &Value) -> Result<ParamHeaders, String> {
        let mut found = Found::default();
        if let Value::Object(root) = schema {
            if root.contains_key(ANNOTATION) {
                return Err(format!(
                    "{ANNOTATION} stands at the schema itself, not at a property"
                ));
            }
            found.walk(root, true, &mut Vec::new())?;
        }
        Ok(ParamHeaders(found.headers))
    }

    /// The headers of a call with these arguments. What is absent, null or no plain value has none.
    pub(crate) fn fill<'a>(
        &'a self,
        arguments: &'a Value,
    ) -> impl Iterator<Item = (HeaderName, HeaderValue)> + 'a {
        self.0.iter().filter_map(move |(path, header)| {
            let value = path
                .iter()
                .try_fold(arguments, |value, name| value.get(name))?;
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Bool(value) => value.to_string(),
                Value::Number(number) => number.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            };
            Some((header.clone(), encoded(&text)))
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Default)]
struct Found {
    headers: Vec<(Vec<String>, HeaderName)>,
    names: HashSet<String>,
}

impl Found {
    /// `is_reached`: by names of properties alone, from the root; only there an annotation may stand.
    fn walk(
        &mut self,
        schema: &Map<String, Value>,
        is_reached: bool,
        path: &mut Vec<String>,
    ) -> Result<(), String> {
        for (key, value) in schema {
            match key.as_str() {
                ANNOTATION if !is_reached => {
                    let text = "can be reached only through lists, alternatives or references";
                    return Err(format!("{ANNOTATION} stands at a value that {text}"));
                }
                ANNOTATION if !path.is_empty() => self.annotated(schema, value, path)?,
                "properties" => self.walk_named(value, is_reached, path)?,
                "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
                    self.walk_named(value, false, path)?;
                }
                // Data, and no schemas.
                "default" | "const" | "enum" | "examples" => {}
                _ => self.walk_any(value, path)?,
            }
        }
        Ok(())
    }

    fn walk_named(
        &mut self,
        schemas: &Value,
        is_reached: bool,
        path: &mut Vec<String>,
    ) -> Result<(), String> {
        for (name, schema) in schemas.as_object().into_iter().flatten() {
            if let Value::Object(schema) = schema {
                path.push(name.clone());
                self.walk(schema, is_reached, path)?;
                path.pop();
            }
        }
        Ok(())
    }

    fn walk_any(&mut self, value: &Value, path: &mut Vec<String>) -> Result<(), String> {
        match value {
            Value::Object(schema) => self.walk(schema, false, path),
            Value::Array(values) => values
                .iter()
                .try_for_each(|value| self.walk_any(value, path)),
            _ => Ok(()),
        }
    }

    fn annotated(
        &mut self,
        schema: &Map<String, Value>,
        name: &Value,
        path: &[String],
    ) -> Result<(), String> {
        let place = path.join(".");
        let Some(name) = name.as_str() else {
            return Err(format!("{ANNOTATION} of {place} is no text"));
        };
        let is_token = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
        let header = HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes());
        let (true, Ok(header)) = (is_token, header) else {
            return Err(format!(
                "{ANNOTATION} of {place} is no name of a header: {name:?}"
            ));
        };
        if !self.names.insert(name.to_ascii_lowercase()) {
            return Err(format!("{ANNOTATION} {name:?} is used twice"));
        }
        let kind = schema.get("type").and_then(Value::as_str);
        if !matches!(kind, Some("string" | "integer" | "boolean")) {
            return Err(format!(
                "{ANNOTATION} of {place} needs a type string, integer or boolean"
            ));
        }
        self.headers.push((path.to_vec(), header));
        Ok(())
    }
}

/// A text as the value of a header: as it is, or in base64 where a header could not carry it.
pub(crate) fn encoded(text: &str) -> HeaderValue {
    let is_safe = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && text.trim_matches([' ', '\t']).len() == text.len()
        && !(text.starts_with(ENCODED_START) && text.ends_with(ENCODED_END));
    let value = match is_safe {
        true => HeaderValue::from_str(text),
        false => {
            let encoded = BASE64_STANDARD.encode(text);
            HeaderValue::from_str(&format!("{ENCODED_START}{encoded}{ENCODED_END}"))
        }
    };
    value.unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// The parameter whose value says what a request is about.
pub(crate) fn naming_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}
