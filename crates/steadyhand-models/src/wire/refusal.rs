//! What a provider says when it does not answer, out of the many shapes of its errors.

use serde_json::Value;

use crate::settings::Dialect;

/// The longest text of a provider's that is shown.
const SHOWN_MAX: usize = 600;

/// The provider's own words out of the body of an error.
pub(crate) fn refusal(body: &[u8]) -> String {
    let said = serde_json::from_slice::<Value>(body)
        .ok()
        .and_then(|value| words(&value));
    let said = said.unwrap_or_else(|| {
        let text = String::from_utf8_lossy(body);
        match text.trim() {
            "" => "(it did not say why)".to_owned(),
            text if text.starts_with('<') => "(an HTML page)".to_owned(),
            text => text.to_owned(),
        }
    });
    steadyhand::cut::text(said.trim(), SHOWN_MAX)
}

/// The error that a body is, where it is one.
pub(super) fn in_body(dialect: Dialect, body: &Value) -> Option<String> {
    let is_error = dialect.client().is_error(body);
    let said = is_error.then(|| words(body).unwrap_or_else(|| body.to_string()))?;
    Some(steadyhand::cut::text(&said, SHOWN_MAX))
}

fn words(value: &Value) -> Option<String> {
    let error = match value.get("error") {
        Some(Value::String(error)) => return Some(error.clone()),
        Some(error) if error.is_object() => error,
        // Some answer with a list of one.
        _ => match value.get(0) {
            Some(first) => return words(first),
            None => value,
        },
    };
    let said = ["message", "detail", "msg"]
        .iter()
        .find_map(|key| error.get(key))?;
    let said = match said {
        Value::String(said) => said.clone(),
        other => other.to_string(),
    };
    // Some name the place beside their words, not in them.
    Some(match text(error, "param") {
        Some(place) if !said.contains(place) => format!("{said} ({place})"),
        _ => said,
    })
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}
