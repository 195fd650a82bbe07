//! Our own files: a style sheet, three scripts and an icon, part of the program.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

/// Name, kind, content.
const FILES: [(&str, &str, &str); 5] = [
    (
        "app.css",
        "text/css; charset=utf-8",
        include_str!("assets/app.css"),
    ),
    (
        "live.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/live.js"),
    ),
    (
        "charts.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/charts.js"),
    ),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
    (
        "app.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/app.js"),
    ),
];

/// Tells the files of this build from those of another: a part of their addresses.
pub(super) fn build() -> &'static str {
    static BUILD: LazyLock<String> = LazyLock::new(|| {
        let mut digest = Sha256::new();
        FILES
            .iter()
            .for_each(|(_, _, content)| digest.update(content));
        let bytes = digest.finalize();
        bytes
            .iter()
            .take(5)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    });
    &BUILD
}

/// `/assets/{name}`
pub(super) async fn serve(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some((_, kind, content)) = FILES.iter().find(|(file, _, _)| *file == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let tag = format!("\"{}\"", build());
    if headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|seen| *seen == *tag)
    {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    let mut response = (*content).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    // Their addresses carry the build: another build has other addresses.
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    headers.insert(header::CACHE_CONTROL, forever);
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}
