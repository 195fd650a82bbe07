//! R07: what a failed exchange becomes — code, effect, whether it may pass, how often it was tried.

use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;

use super::server::{Act, Server, answer, head, json_answer};
use super::way_out::Double;
use super::{failure, output, probe, run, tool, tool_on, verdict};

/// An address that nobody listens on.
async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("it is bound");
    format!("http://{address}/")
}

#[tokio::test]
async fn r07_a_refused_connection_has_no_effect_so_even_a_post_is_tried_again() {
    for method in ["GET", "POST"] {
        let outcome = run(probe(method, &nobody().await).await, json!({})).await;
        assert_eq!(
            verdict(&outcome),
            "NETWORK_ERROR none retryable 4",
            "{method}"
        );
        let message = &failure(&outcome).message;
        assert!(message.starts_with("127.0.0.1:"), "{message}");
        assert!(
            message.ends_with(" refused the connection; is the service running?"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn r07_a_name_that_cannot_be_found_has_no_effect() {
    let double = Double::new(&[]);
    let settings = json!({ "method": "POST", "url": "http://no-such-host.test/secret-path" });
    let outcome = run(tool_on(double.client(), settings).await, json!({})).await;
    assert_eq!(verdict(&outcome), "NETWORK_ERROR none retryable 4");
    assert_eq!(
        failure(&outcome).message,
        "the address of no-such-host.test cannot be found: Name or service not known; check the name"
    );
    assert!(double.connects().is_empty());
}

#[tokio::test]
async fn r07_a_failed_tls_handshake_has_no_effect() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream
                .write_all(b"HTTP/1.1 400 this is no TLS\r\n\r\n")
                .await;
        }
    });
    let outcome = run(
        probe("POST", &format!("https://{address}/")).await,
        json!({}),
    )
    .await;
    assert_eq!(verdict(&outcome), "NETWORK_ERROR none retryable 4");
    let message = &failure(&outcome).message;
    assert!(
        message.contains("no secure connection to 127.0.0.1:"),
        "{message}"
    );
}

#[tokio::test]
async fn r07_a_lost_answer_has_unknown_effect_and_only_what_may_be_repeated_is() {
    let partial = {
        let mut bytes = head(200, &[("content-length", "100")]);
        bytes.extend_from_slice(b"only a part");
        bytes
    };
    let chunk = {
        let mut bytes = head(200, &[("transfer-encoding", "chunked")]);
        bytes.extend_from_slice(b"5\r\nhello\r\n");
        bytes
    };
    let cases = [
        ("reset before an answer", Act::Reset(Vec::new())),
        ("closed before an answer", Act::Close(Vec::new())),
        (
            "closed within the head",
            Act::Close(b"HTTP/1.1 200 O".to_vec()),
        ),
        ("closed within the body", Act::Close(partial.clone())),
        ("reset within the body", Act::Reset(partial)),
        ("closed before the last chunk", Act::Close(chunk)),
        (
            "not HTTP",
            Act::Close(b"SSH-2.0-OpenSSH_9.9\r\n\r\n".to_vec()),
        ),
    ];
    for (what, act) in cases {
        for (method, attempts) in [
            ("GET", 4),
            ("PUT", 4),
            ("DELETE", 4),
            ("POST", 1),
            ("PATCH", 1),
        ] {
            let server = Server::start(vec![act.clone()]).await;
            let outcome = run(probe(method, &server.url("/")).await, json!({})).await;
            // Whoever must not run twice is not told to try again (D19).
            let again = if attempts == 1 { "final" } else { "retryable" };
            let expected = format!("NETWORK_ERROR unknown {again} {attempts}");
            assert_eq!(verdict(&outcome), expected, "{what}, {method}: {outcome:?}");
            assert_eq!(server.seen().len(), attempts, "{what}, {method}");
        }
    }
}

#[tokio::test]
async fn r07_each_status_has_its_category() {
    let cases = [
        (401, "AUTHENTICATION_ERROR none final 1"),
        (403, "AUTHENTICATION_ERROR none final 1"),
        (407, "AUTHENTICATION_ERROR none final 1"),
        (408, "TIMEOUT unknown retryable 4"),
        (425, "RATE_LIMIT_ERROR none retryable 4"),
        (429, "RATE_LIMIT_ERROR none retryable 4"),
        (400, "TOOL_EXECUTION_ERROR done final 1"),
        (422, "TOOL_EXECUTION_ERROR done final 1"),
        (402, "TOOL_EXECUTION_ERROR done final 1"),
        (404, "TOOL_EXECUTION_ERROR done final 1"),
        (405, "TOOL_EXECUTION_ERROR done final 1"),
        (409, "TOOL_EXECUTION_ERROR done final 1"),
        (418, "TOOL_EXECUTION_ERROR done final 1"),
        (451, "TOOL_EXECUTION_ERROR done final 1"),
        (500, "TOOL_EXECUTION_ERROR unknown retryable 4"),
        (501, "TOOL_EXECUTION_ERROR unknown retryable 4"),
        (502, "NETWORK_ERROR unknown retryable 4"),
        (503, "NETWORK_ERROR unknown retryable 4"),
        (504, "TIMEOUT unknown retryable 4"),
        (529, "TOOL_EXECUTION_ERROR unknown retryable 4"),
        (300, "TOOL_EXECUTION_ERROR unknown final 1"),
        (304, "TOOL_EXECUTION_ERROR unknown final 1"),
    ];
    for (status, expected) in cases {
        let server = Server::start(vec![Act::Send(answer(status, &[], ""))]).await;
        let outcome = run(probe("GET", &server.url("/")).await, json!({})).await;
        assert_eq!(verdict(&outcome), expected, "{status}");
    }
}

#[tokio::test]
async fn r07_a_status_is_not_overruled_by_the_words_of_its_page() {
    let page = "upstream says: invalid api key, connection refused, too many requests";
    let server = Server::start(vec![Act::Send(answer(
        500,
        &[("content-type", "text/plain")],
        page,
    ))])
    .await;
    let outcome = run(probe("GET", &server.url("/")).await, json!({})).await;
    assert_eq!(
        verdict(&outcome),
        "TOOL_EXECUTION_ERROR unknown retryable 4"
    );
}

#[tokio::test]
async fn r07_retry_after_is_understood_in_all_its_forms() {
    const NOON: &str = "Wed, 21 Oct 2026 12:00:00 GMT";
    const NOON_EPOCH: &str = "1792584007";
    type Headers = &'static [(&'static str, &'static str)];
    let cases: &[(u16, Headers, Option<u64>)] = &[
        (429, &[("retry-after", "7")], Some(7_000)),
        (503, &[("retry-after", "7")], Some(7_000)),
        (429, &[("retry-after", "1.5")], Some(1_500)),
        (
            429,
            &[("retry-after-ms", "250"), ("retry-after", "1")],
            Some(250),
        ),
        (429, &[("x-ms-retry-after-ms", "250")], Some(250)),
        (
            429,
            &[
                ("date", NOON),
                ("retry-after", "Wed, 21 Oct 2026 12:00:07 GMT"),
            ],
            Some(7_000),
        ),
        (
            503,
            &[
                ("date", NOON),
                ("retry-after", "Wednesday, 21-Oct-26 12:00:07 GMT"),
            ],
            Some(7_000),
        ),
        (429, &[("ratelimit-reset", "7")], Some(7_000)),
        (429, &[("x-ratelimit-reset-after", "0.25")], Some(250)),
        (
            429,
            &[("date", NOON), ("x-ratelimit-reset", NOON_EPOCH)],
            Some(7_000),
        ),
        // Comes with every answer of such services: only after 429 is it a request to wait.
        (503, &[("ratelimit-reset", "7")], None),
        // Zero, the past and nonsense mean that nothing was said.
        (429, &[("retry-after", "0")], None),
        (
            429,
            &[
                ("date", NOON),
                ("retry-after", "Wed, 21 Oct 2026 11:59:00 GMT"),
            ],
            None,
        ),
        (429, &[("retry-after", "soon")], None),
        (429, &[("retry-after", "-5")], None),
        (429, &[("retry-after", "NaN")], None),
        // More than a year is a year.
        (
            429,
            &[("retry-after", "99999999999999999999999")],
            Some(365 * 24 * 3_600_000),
        ),
    ];
    for (status, headers, expected_ms) in cases {
        let server = Server::start(vec![Act::Send(answer(*status, headers, ""))]).await;
        let outcome = run(probe("GET", &server.url("/")).await.no_retry(), json!({})).await;
        let wait = failure(&outcome).retry_after;
        assert_eq!(
            wait,
            expected_ms.map(Duration::from_millis),
            "{status} {headers:?}"
        );
    }
}

#[tokio::test]
async fn r07_a_retry_after_date_without_a_date_header_is_measured_by_our_clock() {
    let in_an_hour =
        std::time::SystemTime::from(jiff::Timestamp::now()) + Duration::from_secs(3600);
    let date = httpdate::fmt_http_date(in_an_hour);
    let server = Server::start(vec![Act::Send(answer(429, &[("retry-after", &date)], ""))]).await;
    let outcome = run(probe("GET", &server.url("/")).await.no_retry(), json!({})).await;
    let wait = failure(&outcome).retry_after.expect("a wait");
    assert!(
        wait > Duration::from_secs(3000) && wait <= Duration::from_secs(3600),
        "{wait:?}"
    );
}

#[tokio::test]
async fn r07_a_rate_limited_post_is_sent_again_with_the_same_key() {
    let server = Server::start(vec![
        Act::Send(answer(429, &[("retry-after-ms", "20")], "")),
        Act::Send(answer(429, &[("retry-after-ms", "20")], "")),
        json_answer(r#"{"done":true}"#),
    ])
    .await;
    let outcome = run(probe("POST", &server.url("/")).await, json!({})).await;
    assert_eq!(output(&outcome), &json!({ "done": true }));
    assert_eq!(outcome.attempts, 3);
    let seen = server.seen();
    let keys: Vec<_> = seen
        .iter()
        .map(|seen| seen.header("idempotency-key"))
        .collect();
    assert!(keys[0].is_some());
    assert_eq!(keys, [keys[0]; 3]);
}

#[tokio::test]
async fn r07_a_wait_that_the_deadline_cannot_pay_for_is_told_not_waited() {
    let server = Server::start(vec![Act::Send(answer(429, &[("retry-after", "3600")], ""))]).await;
    let outcome = run(probe("GET", &server.url("/")).await, json!({})).await;
    assert_eq!(verdict(&outcome), "RATE_LIMIT_ERROR none retryable 1");
    assert_eq!(
        failure(&outcome).retry_after,
        Some(Duration::from_secs(3600))
    );
}

#[tokio::test]
async fn r07_an_error_says_who_answered_what_and_why() {
    let cases = [
        (
            "application/json",
            r#"{"error":{"message":"No such room","code":7}}"#,
            ": No such room",
        ),
        (
            "application/problem+json",
            r#"{"title":"Bad","detail":"No such room"}"#,
            ": No such room",
        ),
        (
            "application/json",
            r#"{"error":"not_found"}"#,
            ": not_found",
        ),
        ("text/plain", "  No such room\n", ": No such room"),
        ("application/json", r#"["odd"]"#, r#": ["odd"]"#),
        ("text/plain", "", ""),
    ];
    for (content_type, body, expected) in cases {
        let act = Act::Send(answer(404, &[("content-type", content_type)], body));
        let server = Server::start(vec![act]).await;
        let outcome = run(probe("GET", &server.url("/path?key=hush")).await, json!({})).await;
        let message = &failure(&outcome).message;
        assert_eq!(
            *message,
            format!("{} answered 404 Not Found{expected}", server.address)
        );
    }
}

#[tokio::test]
async fn r07_a_huge_error_page_is_cut() {
    let page = "é".repeat(1_000_000);
    let act = Act::Send(answer(
        404,
        &[("content-type", "text/html; charset=utf-8")],
        page,
    ));
    let server = Server::start(vec![act]).await;
    let outcome = run(probe("GET", &server.url("/")).await, json!({})).await;
    let message = &failure(&outcome).message;
    assert!(message.len() < 2_100, "{}", message.len());
    assert!(message.ends_with(" …"), "{message}");
}

#[tokio::test]
async fn no_error_shows_what_the_configuration_may_keep_secret() {
    let secrets = [
        "s3cret-path",
        "s3cret-query",
        "s3cret-header",
        "s3cret-body",
        "s3cret-user",
    ];
    let stories = [
        Act::Reset(Vec::new()),
        Act::Close(b"nonsense\r\n\r\n".to_vec()),
        Act::Send(answer(404, &[], "gone")),
        Act::Send(answer(302, &[("location", "http://10.1.2.3/")], "")),
        Act::Send(answer(200, &[("content-type", "application/json")], "{")),
        Act::Stall(Vec::new()),
    ];
    for act in stories {
        let server = Server::start(vec![act]).await;
        let settings = json!({
            "method": "POST",
            "url": format!("http://me:s3cret-user@{}/s3cret-path?key=s3cret-query", server.address),
            "headers": { "X-Api-Key": "s3cret-header" },
            "body": { "password": "s3cret-body" },
        });
        let tool = tool(settings).await.timeout(Duration::from_secs(1));
        let debug = format!("{tool:?}");
        let outcome = run(tool, json!({})).await;
        let shown = format!("{debug} {outcome:?} {:?}", failure(&outcome));
        for secret in secrets {
            assert!(!shown.contains(secret), "{shown}");
        }
        // The secrets did go where they belong.
        assert!(server.seen()[0].head.contains("s3cret-header"));
    }
}
