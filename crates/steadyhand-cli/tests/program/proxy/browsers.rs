//! What a provider answers stands beside the dashboard: in a browser it must not act there.

use super::{Provider, proxy, typed_answer};
use crate::serve::{Reply, Served};

const PAGE: &str = "<script>fetch('/v1/keys')</script>";

/// A provider whose answers want to be this server.
async fn provider() -> Provider {
    Provider::answering(|_| {
        let mut response = typed_answer(200, "text/html", PAGE);
        for (name, value) in [
            ("set-cookie", "steadyhand_session=mine; Path=/"),
            ("set-cookie", "other=1"),
            ("service-worker-allowed", "/"),
            ("clear-site-data", "\"cookies\""),
            ("strict-transport-security", "max-age=63072000"),
            ("refresh", "0; url=/config"),
            ("content-security-policy", "default-src *"),
            ("x-frame-options", "ALLOWALL"),
            ("x-request-id", "req_1"),
        ] {
            let value = value.parse().expect("a value");
            response.headers_mut().append(name, value);
        }
        response
    })
    .await
}

fn assert_fenced(reply: &Reply, what: &str) {
    let count = |name: &str| {
        let is_it = |line: &&str| line.to_ascii_lowercase().starts_with(&format!("{name}:"));
        reply.head.lines().filter(is_it).count()
    };
    for (name, value) in [
        (
            "content-security-policy",
            "sandbox; default-src 'none'; frame-ancestors 'none'",
        ),
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{what}: {}", reply.head);
        assert_eq!(count(name), 1, "{what}: {}", reply.head);
    }
    for gone in [
        "set-cookie",
        "service-worker-allowed",
        "clear-site-data",
        "strict-transport-security",
        "refresh",
    ] {
        assert_eq!(count(gone), 0, "{what}: {}", reply.head);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_provider_cannot_act_on_the_dashboards_origin() {
    let provider = provider().await;
    let served = proxy("openai", provider.url()).await;
    let cookie = ("cookie", "steadyhand_session=secret; theme=dark");
    for (method, path) in [
        ("GET", "/proxy/openai/v1/models"),
        ("GET", "/proxy/openai/"),
        ("DELETE", "/proxy/openai/v1/files/a"),
        ("POST", "/proxy/openai/v1/files"),
        ("POST", "/proxy/openai/v1/chat/completions"),
    ] {
        let reply = served.send(method, path, &[cookie], "{}").await;
        assert_fenced(&reply, path);
        // What is no answer to a conversation is replaced, and has our own head.
        let own = path.ends_with("completions").then_some(None);
        let id = own.unwrap_or(Some("req_1"));
        assert_eq!(reply.header("x-request-id"), id, "{path}");
        assert!(provider.last().headers.get("cookie").is_none(), "{path}");
    }
    // What we answer ourselves there is fenced, too.
    let count = provider.asked().len();
    for (path, headers) in [
        ("/proxy/nobody/v1/models", vec![cookie]),
        ("/proxy/anthropic/../openai/x", vec![cookie]),
        ("/proxy/openai/v1/models", vec![("host", "evil.example")]),
        (
            "/proxy/openai/v1/models",
            vec![("sec-fetch-dest", "script")],
        ),
        (
            "/proxy/openai/sw.js",
            vec![("sec-fetch-dest", "serviceworker")],
        ),
        ("/proxy/openai/sw.js", vec![("service-worker", "script")]),
        ("/proxy/openai/a.css", vec![("sec-fetch-dest", "style")]),
    ] {
        let reply = served.send("GET", path, &headers, "").await;
        assert!(reply.status >= 400, "{path}: {}", reply.text);
        assert_fenced(&reply, path);
    }
    assert_eq!(provider.asked().len(), count, "none of these was passed on");
    let locked = Served::with_config("[server]\ntoken = \"sesame-open-now\"\n").await;
    let reply = locked.get("/proxy/openai/v1/models").await;
    assert_eq!(reply.status, 401, "{}", reply.text);
    assert_fenced(&reply, "without credentials");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_of_this_server_says_what_it_may_do_and_stands_in_no_frame() {
    let served = Served::with_config("[server]\ntoken = \"sesame-open-now\"\n").await;
    let shown = [
        ("authorization", "Bearer sesame-open-now"),
        ("accept", "text/html"),
    ];
    for path in [
        "/",
        "/calls",
        "/calls/none",
        "/tools",
        "/tools/none",
        "/servers",
        "/servers/none",
        "/approvals",
        "/alerts",
        "/conversations",
        "/conversations/none",
        "/trends",
        "/config",
        "/login",
        "/nothing",
        "/v1/tools",
        "/openapi.json",
        "/health/live",
        "/metrics",
    ] {
        for headers in [&shown[..], &shown[1..]] {
            let reply = served.send("GET", path, headers, "").await;
            let sniff = reply.header("x-content-type-options");
            assert_eq!(sniff, Some("nosniff"), "{path}: {}", reply.head);
            let kind = reply.header("content-type").unwrap_or_default();
            if !kind.starts_with("text/html") {
                continue;
            }
            let policy = reply.header("content-security-policy").unwrap_or_default();
            for part in [
                "default-src 'none'",
                "frame-ancestors 'none'",
                "base-uri 'none'",
            ] {
                assert!(policy.contains(part), "{path}: {part} in {policy:?}");
            }
            assert!(!policy.contains("unsafe"), "{path}: {policy}");
            assert_eq!(reply.header("x-frame-options"), Some("DENY"), "{path}");
        }
    }
}
