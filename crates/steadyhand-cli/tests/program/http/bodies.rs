//! What answers become: JSON, text, nothing, bytes — and none of them without a bound.

use std::io::Write;

use serde_json::{Value, json};
use steadyhand::Tool;
use steadyhand_runtime::net::RESPONSE_BYTES_MAX;

use super::server::{Act, Server, answer, head, json_answer};
use super::{eventually, failure, output, probe, run, tool, verdict};

async fn answered(headers: &[(&str, &str)], body: &[u8]) -> Value {
    let server = Server::start(vec![Act::Send(answer(200, headers, body))]).await;
    let outcome = run(probe("GET", &server.url("/")).await, json!({})).await;
    output(&outcome).clone()
}

/// Outputs may be as large as answers, so that our own limit is the one that shows.
fn roomy(tool: Tool) -> Tool {
    tool.output_bytes_max(4 * RESPONSE_BYTES_MAX)
}

#[tokio::test]
async fn json_stays_json_and_text_stays_text() {
    let json_types = [
        "application/json",
        "application/json; charset=utf-8",
        "application/hal+json",
        "TEXT/JSON",
    ];
    for content_type in json_types {
        let found = answered(&[("content-type", content_type)], br#"{"a":[1,2.5,null]}"#).await;
        assert_eq!(found, json!({ "a": [1, 2.5, null] }), "{content_type}");
    }
    let plain = &[("content-type", "text/plain")];
    assert_eq!(answered(plain, br#"{"a":1}"#).await, json!(r#"{"a":1}"#));
    assert_eq!(answered(&[], br#"{"a":1}"#).await, json!({ "a": 1 }));
    assert_eq!(answered(&[], b"a=1").await, json!("a=1"));
    assert_eq!(answered(plain, b"").await, Value::Null);
    assert_eq!(
        answered(&[("content-type", "application/json")], b"").await,
        Value::Null
    );
}

#[tokio::test]
async fn text_is_read_in_the_charset_it_says_it_has() {
    let latin = &[("content-type", "text/plain; charset=\"ISO-8859-1\"")];
    assert_eq!(answered(latin, b"caf\xe9").await, json!("café"));
    let utf16 = &[("content-type", "text/plain; charset=utf-16le")];
    assert_eq!(answered(utf16, b"h\0i\0").await, json!("hi"));
    let json_latin = &[("content-type", "application/json; charset=latin1")];
    assert_eq!(
        answered(json_latin, b"{\"a\":\"\xe9\"}").await,
        json!({ "a": "é" })
    );
}

#[tokio::test]
async fn invalid_utf8_shows_and_breaks_nothing() {
    let plain = &[("content-type", "text/plain")];
    assert_eq!(
        answered(plain, b"a\xff\xfeb").await,
        json!("a\u{fffd}\u{fffd}b")
    );
    let as_json = &[("content-type", "application/json")];
    assert_eq!(
        answered(as_json, b"{\"a\":\"\xff\"}").await,
        json!({ "a": "\u{fffd}" })
    );
}

#[tokio::test]
async fn bytes_are_described_and_few_of_them_given() {
    let few = answered(&[("content-type", "image/png")], b"\x89PNG\r\n").await;
    assert_eq!(
        few,
        json!({ "content_type": "image/png", "bytes": 6, "base64": "iVBORw0K" })
    );
    let many = answered(&[("content-type", "image/png")], &[7; 100_000]).await;
    assert_eq!(
        many,
        json!({ "content_type": "image/png", "bytes": 100_000 })
    );
}

#[tokio::test]
async fn json_that_is_none_is_an_error_after_the_fact() {
    let cases: [(&str, Vec<u8>); 3] = [
        ("cut by a wrong length", {
            let mut bytes = head(
                200,
                &[
                    ("content-type", "application/json"),
                    ("content-length", "5"),
                ],
            );
            bytes.extend_from_slice(br#"{"a":1}"#);
            bytes
        }),
        (
            "a page",
            answer(200, &[("content-type", "application/json")], "<html>"),
        ),
        (
            "two values",
            answer(200, &[("content-type", "application/json")], "1 2"),
        ),
    ];
    for (what, bytes) in cases {
        let server = Server::start(vec![Act::Close(bytes)]).await;
        let outcome = run(probe("POST", &server.url("/")).await, json!({})).await;
        assert_eq!(
            verdict(&outcome),
            "TOOL_EXECUTION_ERROR done final 1",
            "{what}"
        );
        let expected = format!("the answer of {} is not valid JSON: ", server.address);
        assert!(
            failure(&outcome).message.starts_with(&expected),
            "{what}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn an_endless_text_is_cut_and_the_connection_closed() {
    let flood = Act::Flood(
        head(200, &[("content-type", "text/plain")]),
        vec![b'x'; 65_536],
    );
    let server = Server::start(vec![flood]).await;
    let outcome = run(roomy(probe("GET", &server.url("/")).await), json!({})).await;
    let text = output(&outcome).as_str().expect("a text");
    assert!(text.ends_with(&format!(
        "x\n[cut: only the first {RESPONSE_BYTES_MAX} bytes of the answer were read]"
    )));
    assert!(text.len() < RESPONSE_BYTES_MAX + 100);
    eventually("the close", || server.departures() == 1).await;
}

#[tokio::test]
async fn endless_json_is_refused_and_not_asked_for_again() {
    let mut first = head(200, &[("content-type", "application/json")]);
    first.push(b'[');
    let server = Server::start(vec![Act::Flood(first, b"1,".repeat(30_000))]).await;
    let outcome = run(probe("GET", &server.url("/")).await, json!({})).await;
    assert_eq!(verdict(&outcome), "TOOL_EXECUTION_ERROR done final 1");
    let expected = format!(
        "the answer of {} is longer than the {RESPONSE_BYTES_MAX} bytes that are read; ask for less",
        server.address
    );
    assert_eq!(failure(&outcome).message, expected);
    eventually("the close", || server.departures() == 1).await;
}

#[tokio::test]
async fn a_compressed_answer_is_bounded_by_what_it_unpacks_to() {
    let zeros = vec![b'0'; 4 * RESPONSE_BYTES_MAX];
    let gzip = {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(&zeros).expect("memory");
        packer.finish().expect("memory")
    };
    let brotli = {
        let mut packed = Vec::new();
        let settings = brotli::enc::BrotliEncoderParams {
            quality: 5,
            ..Default::default()
        };
        brotli::BrotliCompress(&mut zeros.as_slice(), &mut packed, &settings).expect("memory");
        packed
    };
    for (encoding, packed) in [("gzip", gzip), ("br", brotli)] {
        assert!(packed.len() < 1024 * 1024, "a small one: {}", packed.len());
        let headers = [
            ("content-type", "text/plain"),
            ("content-encoding", encoding),
        ];
        let server = Server::start(vec![Act::Send(answer(200, &headers, packed))]).await;
        let outcome = run(roomy(probe("GET", &server.url("/")).await), json!({})).await;
        let text = output(&outcome).as_str().expect("a text");
        assert!(
            text.len() < RESPONSE_BYTES_MAX + 100,
            "{encoding}: {}",
            text.len()
        );
        assert!(text.contains("[cut: "), "{encoding}");
    }
}

#[tokio::test]
async fn broken_compression_is_an_error() {
    let headers = [("content-type", "text/plain"), ("content-encoding", "gzip")];
    let server = Server::start(vec![Act::Send(answer(200, &headers, "this is not gzip"))]).await;
    let outcome = run(probe("POST", &server.url("/")).await, json!({})).await;
    assert_eq!(verdict(&outcome), "NETWORK_ERROR unknown final 1");
}

#[tokio::test]
async fn a_part_of_the_answer_is_selected() {
    let body = r#"{"data":{"items":[{"id":7},{"id":8}],"a/b":null},"n":1}"#;
    let good = [
        ("/data/items/1/id", json!(8)),
        ("/data/a~1b", Value::Null),
        ("", serde_json::from_str(body).expect("JSON")),
    ];
    for (pointer, expected) in good {
        // Asked for a part, we read JSON whatever the answer calls itself.
        let act = Act::Send(answer(200, &[("content-type", "text/plain")], body));
        let server = Server::start(vec![act]).await;
        let settings = json!({ "url": server.url("/"), "select": pointer });
        let outcome = run(tool(settings).await, json!({})).await;
        assert_eq!(output(&outcome), &expected, "{pointer}");
    }
    let missing = [
        (
            "/date/items",
            "the answer has nothing at /date/items (select): the answer has the keys data, n",
        ),
        (
            "/data/item/0",
            "the answer has nothing at /data/item/0 (select): /data in the answer has the keys items, a/b",
        ),
        (
            "/data/items/2/id",
            "the answer has nothing at /data/items/2/id (select): /data/items in the answer is a list of 2 items",
        ),
        (
            "/n/x",
            "the answer has nothing at /n/x (select): /n in the answer is neither an object nor a list",
        ),
    ];
    for (pointer, expected) in missing {
        let server = Server::start(vec![json_answer(body)]).await;
        let settings = json!({ "url": server.url("/"), "select": pointer });
        let outcome = run(tool(settings).await, json!({})).await;
        assert_eq!(
            verdict(&outcome),
            "TOOL_EXECUTION_ERROR done final 1",
            "{pointer}"
        );
        assert_eq!(failure(&outcome).message, expected);
    }
}

#[tokio::test]
async fn connections_are_kept_and_used_again() {
    let server = Server::start(vec![json_answer("1")]).await;
    let tool = probe("GET", &server.url("/")).await;
    for _ in 0..5 {
        let outcome = run(tool.clone(), json!({})).await;
        assert_eq!(output(&outcome), &json!(1));
    }
    assert_eq!((server.seen().len(), server.connections()), (5, 1));
}

#[tokio::test]
async fn head_and_no_content_have_no_body() {
    for (method, status) in [
        ("HEAD", 200),
        ("DELETE", 204),
        ("OPTIONS", 204),
        ("PUT", 205),
    ] {
        let headers = [("content-type", "application/json")];
        let bytes = match status {
            204 => head(status, &headers),
            _ => answer(status, &headers, ""),
        };
        let server = Server::start(vec![Act::Send(bytes)]).await;
        let outcome = run(probe(method, &server.url("/")).await, json!({})).await;
        assert_eq!(output(&outcome), &Value::Null, "{method}");
        assert_eq!(server.seen()[0].line(), format!("{method} / HTTP/1.1"));
    }
}

#[tokio::test]
async fn v20_an_integer_beyond_64_bits_is_kept_digit_for_digit() {
    let server = Server::start(vec![json_answer(
        r#"{"id": 18446744073709551616, "small": 42, "list": [-9223372036854775809]}"#,
    )])
    .await;
    let outcome = run(probe("GET", &server.url("/")).await, json!({})).await;
    assert_eq!(
        output(&outcome),
        &json!({"id": "18446744073709551616", "small": 42, "list": ["-9223372036854775809"]})
    );
}
