//! What is answered below `/proxy/` comes from providers: it must not act where the dashboard is.

use axum::http::{HeaderMap, HeaderValue};

/// What the addresses of the proxy begin with.
pub const PREFIX: &str = "/proxy/";

/// What of an answer a browser would take for this server's own word about itself, and keep.
const ABOUT_THE_ORIGIN: [&str; 11] = [
    "set-cookie",
    "set-cookie2",
    "service-worker-allowed",
    "clear-site-data",
    "strict-transport-security",
    "alt-svc",
    "nel",
    "report-to",
    "reporting-endpoints",
    "content-security-policy-report-only",
    "refresh",
];

/// A page of a provider is shown, if at all, without scripts, without an origin and in no frame: it stands beside the
/// dashboard, and must not act there.
const FOR_BROWSERS: [(&str, &str); 3] = [
    (
        "content-security-policy",
        "sandbox; default-src 'none'; frame-ancestors 'none'",
    ),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
];

/// What browsers ask for to run or style a page of this server with it.
const TO_RUN: [&str; 8] = [
    "script",
    "style",
    "worker",
    "sharedworker",
    "serviceworker",
    "audioworklet",
    "paintworklet",
    "xslt",
];

/// Makes an answer harmless for browsers, refusals of ours included.
pub fn fence(headers: &mut HeaderMap) {
    for name in ABOUT_THE_ORIGIN {
        headers.remove(name);
    }
    for (name, value) in FOR_BROWSERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Whether a browser wants to make an answer part of a page: none of this server's pages uses one from here.
pub fn are_to_be_run(asked: &HeaderMap) -> bool {
    let dest = asked.get("sec-fetch-dest");
    asked.contains_key("service-worker")
        || dest.is_some_and(|dest| TO_RUN.iter().any(|run| dest.as_bytes() == run.as_bytes()))
}
