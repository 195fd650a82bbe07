//! A server's JSON-RPC errors, by their code: what kind of failure they are, and whether the tool ran.

use std::time::Duration;

use crate::client::login_address::login_address;
use serde_json::Value;
use steadyhand::{Category, Effect, ToolError};

/// An address to sign in at is shown up to this length.
const URL_BYTES_MAX: usize = 2_000;
/// Nobody means more than a day.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads the `error` of a `tools/call` response. The message stays in the server's own words (SPEC D13).
pub fn read_rpc_error(code: i64, message: &str, data: Option<&Value>) -> ToolError {
    let words = words(code, message, data);
    match code {
        // Bad arguments, and where the tool itself is unknown to the server: it did not run.
        -32602 => ToolError::from_json_rpc(code, words).never_started(),
        // Not JSON, no request, no such method; wrong headers, capabilities or version of the protocol.
        -32700 | -32600 | -32601 | -32022..=-32020 => ToolError::answer(words).never_started(),
        // What an SDK says when its other end is gone.
        -32000 if message.to_ascii_lowercase().contains("connection closed") => {
            ToolError::of(Category::Network, words)
        }
        // No such resource: the tool's own "no".
        -32002 => ToolError::answer(words),
        -32042 => sign_in_needed(words, data),
        // Cancelled, or overtaken by a change, on the server's side: what was done until then is open.
        -32800 | -32801 => ToolError::answer(words).effect(Effect::Unknown),
        // No code of JSON-RPC; some servers pass on the status of the service behind them.
        400..=599 => http_status(code as u16, words, data),
        // Among them −32603 and −32000, which can mean anything, and −32001, a timeout.
        _ => ToolError::from_json_rpc(code, words),
    }
}

fn words(code: i64, message: &str, data: Option<&Value>) -> String {
    if !message.trim().is_empty() {
        return message.to_owned();
    }
    match data {
        Some(Value::String(text)) if !text.trim().is_empty() => text.clone(),
        _ => format!("the server answered with error {code} and no words"),
    }
}

/// The protocol's "URL elicitation required".
fn sign_in_needed(words: String, data: Option<&Value>) -> ToolError {
    let pages = data.and_then(|data| data.get("elicitations")?.as_array());
    let mut pages = pages.into_iter().flatten();
    let Some(url) = pages
        .find_map(page_of)
        .or_else(|| data?.get("url")?.as_str().filter(|url| is_page(url)))
    else {
        return ToolError::of(Category::Authentication, words);
    };
    ToolError::of(
        Category::Authentication,
        format!("{words} (needs sign-in: {url})"),
    )
    .user_message(format!("Please sign in first: {url}"))
}

/// The page that an elicitation sends a person to, if it is one.
pub(crate) fn page_of(elicitation: &Value) -> Option<&str> {
    let mode = elicitation.get("mode");
    let url = elicitation.get("url")?.as_str()?;
    (mode.is_none_or(|mode| mode == "url") && is_page(url)).then_some(url)
}

fn is_page(url: &str) -> bool {
    url.len() <= URL_BYTES_MAX && login_address(url).is_ok()
}

fn http_status(status: u16, words: String, data: Option<&Value>) -> ToolError {
    let error = ToolError::from_http_status(status, words);
    match data.and_then(retry_after) {
        Some(wait) => error.retry_after(wait),
        None => error,
    }
}

/// In seconds, as the header of that name has it.
fn retry_after(data: &Value) -> Option<Duration> {
    let seconds = ["retryAfter", "retry_after", "retry-after"]
        .iter()
        .find_map(|name| data.get(name)?.as_f64())?;
    let wait = Duration::try_from_secs_f64(seconds).ok()?;
    Some(wait.min(RETRY_AFTER_MAX))
}
