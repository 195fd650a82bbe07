//! What a failed exchange means (SPEC R07): transport errors and statuses to tool errors, in one place.

use std::error::Error;
use std::io;

use reqwest::{StatusCode, Url};
use steadyhand::{Category, Effect, ToolError};

use super::request::site;
use super::response::Response;
use super::retry_after;
use super::way_out::Refused;

/// How much of an error answer's text is repeated.
const WORDS_BYTES_MAX: usize = 2_000;
const CAUSES_MAX: usize = 16;

/// The exchange broke off. Whether anything was sent decides the effect.
pub(super) fn from_reqwest(error: reqwest::Error, url: &Url, sent_by: Option<&str>) -> ToolError {
    let site = site(url);
    // Its URL may hold a key.
    let error = error.without_url();
    if let Some(refused) = cause::<Refused>(&error) {
        return from_refusal(refused, sent_by);
    }
    if error.is_builder() {
        return ToolError::answer(format!(
            "the request to {site} cannot be built: {}",
            last_words(&error)
        ))
        .never_started();
    }
    if error.is_connect() {
        return ToolError::of(Category::Network, not_connected(&error, &site)).never_started();
    }
    if error.is_timeout() {
        return ToolError::of(Category::Timeout, format!("{site} did not answer in time"));
    }
    if error.is_decode() {
        return ToolError::of(
            Category::Network,
            format!(
                "the answer of {site} broke off or cannot be read: {}",
                last_words(&error)
            ),
        );
    }
    ToolError::of(
        Category::Network,
        format!(
            "the connection to {site} broke before the answer was complete: {}",
            last_words(&error)
        ),
    )
}

/// A host that must not be connected to, and is not. `sent_by` redirected us there.
pub(super) fn from_refusal(refused: &Refused, sent_by: Option<&str>) -> ToolError {
    let message = match sent_by {
        Some(site) => format!(
            "{site} redirects to {refused}; not followed, because that host does not stand in the configuration"
        ),
        None => format!(
            "{refused}; not connected, because this host does not stand in the configuration"
        ),
    };
    ToolError::answer(message).never_started()
}

/// The time is over.
pub(super) fn too_slow(site: &str) -> ToolError {
    ToolError::of(Category::Timeout, format!("{site} did not answer in time"))
}

/// An answer whose status is no success.
pub(super) fn from_status(response: &Response) -> ToolError {
    let status = response.status;
    let message = format!(
        "{} answered {}{}",
        response.site,
        name(status),
        own_words(response)
    );
    let mut error = match status.is_client_error() || status.is_server_error() {
        true => ToolError::from_http_status(status.as_u16(), message),
        // A redirect to nowhere, or an interim status: nothing that passes by itself.
        false => ToolError::answer(message).effect(Effect::Unknown),
    };
    // The request before the redirect may have done what the tool does.
    if response.redirects > 0 {
        error = error.effect(Effect::Unknown);
    }
    match retry_after::wait(status, &response.headers) {
        Some(wait) => error.retry_after(wait),
        None => error,
    }
}

fn name(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// The part of an error answer that is meant for people, bounded.
fn own_words(response: &Response) -> String {
    let text = response.text();
    let said = serde_json::from_str(&text)
        .ok()
        .and_then(|json| message_in(&json));
    let words = said.unwrap_or(text);
    let words = words.trim();
    if words.is_empty() {
        return String::new();
    }
    let mut end = words.len().min(WORDS_BYTES_MAX);
    while !words.is_char_boundary(end) {
        end -= 1;
    }
    match end == words.len() {
        true => format!(": {words}"),
        false => format!(": {} …", &words[..end]),
    }
}

/// Where services put their message: `{"error": {"message": …}}`, `{"detail": …}` (RFC 9457) …
fn message_in(json: &serde_json::Value) -> Option<String> {
    const PLACES: [&str; 8] = [
        "/error/message",
        "/error_description",
        "/message",
        "/detail",
        "/error",
        "/errors/0/message",
        "/error/errors/0/message",
        "/title",
    ];
    PLACES
        .iter()
        .find_map(|place| json.pointer(place)?.as_str())
        .map(str::to_owned)
}

fn not_connected(error: &reqwest::Error, site: &str) -> String {
    if error.is_timeout() {
        return format!("no connection to {site}: it did not accept one in time");
    }
    if error.is_dns() {
        return format!(
            "the address of {site} cannot be found: {}; check the name",
            last_words(error)
        );
    }
    if let Some(tls) = cause::<rustls::Error>(error) {
        return format!("no secure connection to {site}: {tls}");
    }
    match cause::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => {
            format!("{site} refused the connection; is the service running?")
        }
        _ => format!("no connection to {site}: {}", last_words(error)),
    }
}

/// The deepest cause says what happened; those above it say where.
fn last_words(error: &dyn Error) -> String {
    let mut deepest = error;
    for _ in 0..CAUSES_MAX {
        match deepest.source() {
            Some(cause) => deepest = cause,
            None => break,
        }
    }
    steadyhand::plain_words::connection(&deepest.to_string())
}

fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut current = Some(error);
    for _ in 0..CAUSES_MAX {
        let this = current?;
        if let Some(found) = this.downcast_ref::<E>() {
            return Some(found);
        }
        // An io::Error keeps what it wraps to itself.
        let wrapped = this
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        current = match wrapped {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => this.source(),
        };
    }
    None
}
