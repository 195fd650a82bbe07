//! The headers of HTTP that repeat what a request of the newer protocol says: they must be there and say the same.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::errors;
use crate::wire::RpcError;

/// The headers of a request.
pub trait Headers: Send + Sync {
    /// One of them, by its name in lower case. None if it is not there or no text.
    fn get(&self, name: &str) -> Option<&str>;

    /// How often it is there.
    fn count(&self, name: &str) -> usize;
}

/// A header that repeats an argument of a tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ParamHeader {
    /// In lower case: `mcp-param-region`.
    name: String,
    /// Where the argument is.
    path: Vec<String>,
}

/// Those a tool's schema asks for: `x-mcp-header` on properties, nested ones included.
pub(super) fn param_headers(schema: &Value) -> Vec<ParamHeader> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found);
    found
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<ParamHeader>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(Value::String(header)) = property.get("x-mcp-header")
            && !header.is_empty()
        {
            found.push(ParamHeader {
                name: format!("mcp-param-{}", header.to_ascii_lowercase()),
                path: path.clone(),
            });
        }
        collect(property, path, found);
        path.pop();
    }
}

/// A header that must be there once and say this.
pub(super) fn must_say(headers: &dyn Headers, name: &str, expected: &str) -> Result<(), RpcError> {
    match said(headers, name)? {
        None => Err(errors::header_mismatch(format!(
            "the header {name} is missing"
        ))),
        Some(said) if said == expected => Ok(()),
        Some(said) => Err(differs(name, &said, expected)),
    }
}

/// The headers that repeat a tool's arguments.
pub(super) fn check_params(
    headers: &dyn Headers,
    wanted: &[ParamHeader],
    arguments: &Value,
) -> Result<(), RpcError> {
    for ParamHeader { name, path } in wanted {
        let argument = path.iter().try_fold(arguments, |value, key| value.get(key));
        let expected = match argument {
            Some(Value::String(text)) => Some(text.clone()),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => Some(value.to_string()),
            _ => None,
        };
        match (said(headers, name)?, expected) {
            (None, None) => {}
            (Some(said), Some(expected)) if said == expected => {}
            (Some(said), Some(expected)) => return Err(differs(name, &said, &expected)),
            (Some(_), None) => {
                let text = format!("the header {name} is there, and its argument is not");
                return Err(errors::header_mismatch(text));
            }
            (None, Some(_)) => {
                let text = format!("the header {name} is missing");
                return Err(errors::header_mismatch(text));
            }
        }
    }
    Ok(())
}

/// What a header says; texts that HTTP does not carry come as `=?base64?…?=`.
fn said<'a>(headers: &'a dyn Headers, name: &str) -> Result<Option<Cow<'a, str>>, RpcError> {
    let count = headers.count(name);
    let said = headers.get(name).map(str::trim);
    match (count, said) {
        (0, _) => Ok(None),
        (1, Some(said)) => match decoded(said) {
            Some(said) => Ok(Some(said)),
            None => Err(errors::header_mismatch(format!(
                "the header {name} is no valid base64"
            ))),
        },
        (1, None) => Err(errors::header_mismatch(format!(
            "the header {name} is no text"
        ))),
        _ => Err(errors::header_mismatch(format!(
            "the header {name} is there twice"
        ))),
    }
}

fn decoded(said: &str) -> Option<Cow<'_, str>> {
    let inner = said
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    let Some(inner) = inner else {
        return Some(Cow::Borrowed(said));
    };
    let bytes = STANDARD.decode(inner).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn differs(name: &str, said: &str, expected: &str) -> RpcError {
    errors::header_mismatch(format!(
        "the header {name} says {said:?}, and the body {expected:?}"
    ))
}
