//! Requests that are made to be misunderstood: each is answered as one program would read it, or refused.

use futures_util::future::join_all;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::{Fault, TOOLS, calls_go_on, readers, rest};
use crate::serve::{Served, request};

/// A server that soon closes connections on which nothing more is said.
async fn served() -> Served {
    let limits = "[server]\nlimits = { patience = \"1s\" }";
    Served::with_config(&TOOLS.replace("[server]", limits)).await
}

/// Sends these bytes and nothing more; gives back all that comes until the connection is closed.
async fn answers(served: &Served, bytes: &[u8]) -> String {
    let mut stream = served.connect().await;
    let _ = stream.write_all(bytes).await;
    rest(&mut stream).await
}

/// The statuses of all answers, in their order.
fn statuses(answers: &str) -> Vec<u16> {
    let lines = answers.split("HTTP/1.").skip(1);
    let status = |line: &str| line.get(2..5)?.parse().ok();
    lines.filter_map(status).collect()
}

#[tokio::test]
async fn requests_that_can_be_read_in_two_ways_are_refused() {
    let fault = Fault::begin(
        "malformed HTTP",
        "read in one way, or refused with 4xx; the connection ends, and nothing else",
    );
    let served = served().await;
    let call = "{\"name\":\"echo\"}";
    let chunked = "transfer-encoding: chunked\r\n\r\n";
    let hidden = "GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let post = |rest: &str| format!("POST /v1/calls HTTP/1.1\r\nhost: localhost\r\n{rest}");
    let get = |rest: &str| format!("GET /health/live HTTP/1.1\r\n{rest}\r\n");
    let trailers: String = (0..20_000).map(|n| format!("x{n}: y\r\n")).collect();
    let cases: Vec<(&str, String, &[u16])> = vec![
        (
            "two hosts",
            get("host: localhost\r\nhost: evil.example\r\n"),
            &[400],
        ),
        (
            "two hosts",
            get("host: evil.example\r\nhost: localhost\r\n"),
            &[400],
        ),
        (
            "the same host twice",
            get("host: localhost\r\nhost: localhost\r\n"),
            &[400],
        ),
        (
            "two origins",
            get("host: localhost\r\norigin: http://localhost\r\norigin: http://evil.example\r\n"),
            &[400],
        ),
        ("a port that is none", get("host: localhost:x\r\n"), &[403]),
        (
            "a name with a dot behind",
            get("host: localhost.\r\n"),
            &[403],
        ),
        ("a number as a name", get("host: 2130706433\r\n"), &[403]),
        (
            "a folded header",
            get("host: localhost\r\nx: 1\r\n 2\r\n"),
            &[400],
        ),
        (
            "a zero in a header",
            get("host: localhost\r\nx: a\0b\r\n"),
            &[400],
        ),
        (
            "two lengths",
            post(&format!(
                "content-length: 15\r\ncontent-length: 16\r\n\r\n{call}"
            )),
            &[400],
        ),
        (
            "a length with a sign",
            post(&format!("content-length: +15\r\n\r\n{call}")),
            &[400],
        ),
        (
            "a list of lengths",
            post(&format!("content-length: 15, 15\r\n\r\n{call}")),
            &[400],
        ),
        (
            "a length beyond numbers",
            post("content-length: 99999999999999999999999\r\n\r\n"),
            &[400],
        ),
        // Chunks count, and what the length would have left over is no second request.
        (
            "a length and chunks",
            post(&format!(
                "content-length: 4\r\n{chunked}f\r\n{call}\r\n0\r\n\r\n{hidden}"
            )),
            &[200],
        ),
        (
            "another coding",
            post(&format!("transfer-encoding: identity\r\n\r\n{call}")),
            &[400],
        ),
        (
            "an unknown coding",
            post(&format!("transfer-encoding: xchunked\r\n\r\n{call}")),
            &[400],
        ),
        (
            "a chunk that is too long",
            post(&format!("{chunked}5\r\n{call}\r\n0\r\n\r\n")),
            &[400],
        ),
        (
            "a chunk that is too short",
            post(&format!("{chunked}ff\r\n{call}\r\n0\r\n\r\n")),
            &[408],
        ),
        (
            "words behind a chunk's size",
            post(&format!(
                "{chunked}f;{}\r\n{call}\r\n0\r\n\r\n",
                "a".repeat(100_000)
            )),
            &[400],
        ),
        (
            "trailers without end",
            post(&format!("{chunked}f\r\n{call}\r\n0\r\n{trailers}\r\n")),
            &[400],
        ),
        (
            "trailers",
            post(&format!(
                "{chunked}f\r\n{call}\r\n0\r\nhost: evil.example\r\n\r\n"
            )),
            &[200],
        ),
        // A body where none is wanted is not the next request.
        (
            "a request in a body",
            format!(
                "GET /health/live HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{hidden}",
                hidden.len()
            ),
            &[200],
        ),
        ("one behind the other", hidden.repeat(3), &[200, 200, 200]),
        (
            "HTTP/1.0",
            "GET /health/live HTTP/1.0\r\nhost: localhost\r\n\r\n".to_owned(),
            &[200],
        ),
        (
            "HTTP/1.0 in chunks",
            format!(
                "POST /v1/calls HTTP/1.0\r\nhost: localhost\r\n{chunked}f\r\n{call}\r\n0\r\n\r\n"
            ),
            &[400],
        ),
        (
            "HTTP/1.0 without a host",
            "GET /health/live HTTP/1.0\r\n\r\n".to_owned(),
            &[400],
        ),
        (
            "an upgrade",
            get("host: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"),
            &[200],
        ),
        (
            "an expectation nobody knows",
            post(&format!("expect: tea\r\ncontent-length: 15\r\n\r\n{call}")),
            &[200],
        ),
    ];
    let count = cases.len();
    let served = &served;
    let all = cases.iter().map(|(what, bytes, expected)| async move {
        let answers = answers(served, bytes.as_bytes()).await;
        assert_eq!(statuses(&answers), *expected, "{what}: {answers}");
    });
    join_all(all).await;
    calls_go_on(served, "c", 1).await;
    fault.got(format!("{count} of {count} as promised"));
}

#[tokio::test]
async fn what_a_page_of_another_site_embeds_is_not_given() {
    let served = Served::with_config(TOOLS).await;
    for (site, mode, status) in [
        ("cross-site", "no-cors", 403),
        ("cross-site", "cors", 403),
        // A person who follows a link.
        ("cross-site", "navigate", 200),
        ("same-origin", "cors", 200),
        ("none", "navigate", 200),
    ] {
        let headers = [("sec-fetch-site", site), ("sec-fetch-mode", mode)];
        let reply = served.send("GET", "/v1/tools", &headers, "").await;
        assert_eq!(reply.status, status, "{site} {mode}");
    }
}

#[tokio::test]
async fn other_methods_and_paths_that_lead_elsewhere_are_answered_in_our_shape() {
    let served = served().await;
    let long = "A".repeat(9000);
    for (method, path, expected) in [
        ("OPTIONS", "/v1/calls", (405, "no_such_method")),
        ("OPTIONS", "*", (404, "no_such_route")),
        ("TRACE", "/v1/tools", (405, "no_such_method")),
        ("BREW", "/v1/tools", (405, "no_such_method")),
        ("get", "/v1/tools", (405, "no_such_method")),
        (long.as_str(), "/v1/tools", (405, "no_such_method")),
        ("GET", "//v1/tools", (404, "no_such_route")),
        ("GET", "/v1//tools", (404, "no_such_route")),
        ("GET", "/v1/tools/", (404, "no_such_route")),
        ("GET", "/v1/../v1/tools", (404, "no_such_route")),
        ("GET", "/health/../v1/tools", (404, "no_such_route")),
        ("GET", "/%76%31/tools", (404, "no_such_route")),
        ("GET", "/v1/tools%00", (404, "no_such_route")),
        (
            "GET",
            "/v1/tools/..%2f..%2fetc%2fpasswd",
            (404, "no_such_tool"),
        ),
        ("GET", "/v1/tools/%00", (404, "no_such_tool")),
        (
            "GET",
            "/v1/tools?format=openai&format=mcp",
            (400, "bad_request"),
        ),
        (
            "GET",
            "/v1/calls?limit=18446744073709551616",
            (400, "bad_request"),
        ),
        (
            "GET",
            "/v1/calls?since=99999999999999999999h",
            (400, "bad_request"),
        ),
        ("GET", "/v1/calls?cursor=%00", (400, "bad_request")),
    ] {
        let reply = served.send(method, path, &[], "").await;
        let (status, code, _) = reply.refusal();
        let shown: String = method.chars().take(10).collect();
        assert_eq!((status, code.as_str()), expected, "{shown} {path}");
    }
    // The head alone, and the connection goes on.
    let ask = |method: &str, path: &str| {
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\n\r\n",
            served.address
        )
    };
    let both = ask("HEAD", "/v1/tools") + &ask("GET", "/health/live");
    let answers = answers(&served, both.as_bytes()).await;
    assert_eq!(statuses(&answers), [200, 200], "{answers}");
    assert_eq!(answers.matches('{').count(), 1, "{answers}");
    // A stream of events that is only asked for its head takes no reader's place.
    let head = self::answers(&served, ask("HEAD", "/v1/events").as_bytes()).await;
    assert_eq!(statuses(&head), [200], "{head}");
    assert_eq!(readers(&served).await, Some(0.0));
}

#[tokio::test]
async fn many_calls_on_one_connection_are_answered_in_their_order() {
    let served = served().await;
    let mut all = String::new();
    for number in 0..50 {
        let call = json!({"name": "echo", "id": format!("p-{number}")}).to_string();
        all += &request(served.address, "POST", "/v1/calls", &[], &call);
    }
    // All of them before the first answer is read.
    let answers = answers(&served, all.as_bytes()).await;
    let ids = answers.split("\"callId\":\"").skip(1);
    let ids: Vec<&str> = ids.filter_map(|rest| rest.split('"').next()).collect();
    let expected: Vec<String> = (0..50).map(|number| format!("p-{number}")).collect();
    assert_eq!(ids, expected);
}
