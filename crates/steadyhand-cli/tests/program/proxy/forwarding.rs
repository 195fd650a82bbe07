//! What is forwarded, and what is not: methods, paths, headers, keys, errors, bodies that nobody looks at.

use std::io::Write;

use axum::response::IntoResponse;
use serde_json::{Value, json};

use super::{Provider, broken, json_answer, ok, proxy, proxy_with, typed_answer, valid, workplace};
use crate::serve::{Served, until};
use crate::support::client;

#[tokio::test(flavor = "multi_thread")]
async fn methods_paths_queries_and_headers_are_forwarded_untouched() {
    let provider = Provider::answering(|_| {
        let mut response = typed_answer(201, "text/x-odd", "as it is");
        let headers = response.headers_mut();
        headers.insert("x-request-id", "req_1".parse().expect("a value"));
        headers.insert("connection", "x-hop".parse().expect("a value"));
        headers.insert("x-hop", "1".parse().expect("a value"));
        response
    })
    .await;
    let served = proxy("openai", provider.url()).await;
    for method in ["GET", "PUT", "PATCH", "DELETE", "POST"] {
        let reply = served
            .send(
                method,
                "/proxy/openai/v1/files/a%2Fb?x=1&y=%20",
                &[
                    ("authorization", "Bearer sk-the-clients-own-key"),
                    ("openai-organization", "org-1"),
                    ("x-anything", "ünknown"),
                    ("connection", "x-private"),
                    ("x-private", "1"),
                    ("te", "trailers"),
                    ("steadyhand-caller", "a test"),
                ],
                "some bytes",
            )
            .await;
        assert_eq!(reply.status, 201, "{}", reply.text);
        assert_eq!(reply.text, "as it is");
        assert_eq!(reply.header("content-type"), Some("text/x-odd"));
        assert_eq!(reply.header("x-request-id"), Some("req_1"));
        assert_eq!(reply.header("x-hop"), None);
        let asked = provider.last();
        assert_eq!(asked.method.as_str(), method);
        assert_eq!(asked.uri, "/v1/files/a%2Fb?x=1&y=%20");
        assert_eq!(asked.body, "some bytes");
        let header = |name: &str| asked.headers.get(name).map(|value| value.as_bytes());
        assert_eq!(
            header("authorization"),
            Some(&b"Bearer sk-the-clients-own-key"[..])
        );
        assert_eq!(header("openai-organization"), Some(&b"org-1"[..]));
        assert_eq!(header("x-anything"), Some("ünknown".as_bytes()));
        assert_eq!(
            header("host"),
            Some(provider.address.to_string().as_bytes())
        );
        for gone in ["connection", "x-private", "te", "steadyhand-caller"] {
            assert_eq!(header(gone), None, "{gone}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_the_provider_pass_with_their_status_and_headers() {
    for (status, header) in [
        (401, "x-a"),
        (403, "x-b"),
        (404, "x-c"),
        (429, "retry-after"),
        (529, "x-d"),
    ] {
        let body = json!({"type": "error", "error": {"type": "an_error", "message": "no"}});
        let sent = body.clone();
        let provider = Provider::answering(move |_| {
            let mut response = json_answer(status, &sent);
            response
                .headers_mut()
                .insert(header, "7".parse().expect("a value"));
            response
        })
        .await;
        let served = proxy("anthropic", provider.url()).await;
        let reply = served.post("/proxy/anthropic/v1/messages", valid()).await;
        assert_eq!((reply.status, reply.json()), (status, body));
        assert_eq!(reply.header(header), Some("7"));
        assert_eq!(reply.header("steadyhand-error"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_conversation_is_forwarded_as_it_is() {
    let provider = Provider::json(ok()).await;
    let served = proxy("anthropic", provider.url()).await;
    let deep = "[".repeat(5000) + &"]".repeat(5000);
    let many = format!("{{\"messages\":[{}0]}}", "0,".repeat(400_000));
    for body in [
        "no JSON",
        "{\"messages\": 7}",
        "[]",
        "",
        deep.as_str(),
        many.as_str(),
    ] {
        let reply = served
            .send("POST", "/proxy/anthropic/v1/messages", &[], body)
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        assert!(provider.last().body == body, "{body:.50}");
        assert_eq!(reply.header("steadyhand-fixes"), None);
    }
    let compressed = served
        .send(
            "POST",
            "/proxy/anthropic/v1/messages",
            &[("content-encoding", "gzip")],
            &broken().to_string(),
        )
        .await;
    assert_eq!(compressed.status, 200);
    assert_eq!(provider.last().body, broken().to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn large_uploads_pass_without_being_held() {
    let provider = Provider::answering(|asked| asked.body.len().to_string().into_response()).await;
    let served = proxy_with("openai", provider.url(), "body = \"1MiB\"").await;
    let size = 40 * 1024 * 1024;
    let url = format!("http://{}/proxy/openai/v1/files", served.address);
    let sent = client().post(&url).body(vec![b'x'; size]).send().await;
    let answer = sent.expect("an answer").text().await.expect("a text");
    assert_eq!(answer, size.to_string());
    let chat = format!("http://{}/proxy/openai/v1/chat/completions", served.address);
    let sent = client()
        .post(&chat)
        .body(vec![b'x'; size])
        .send()
        .await
        .expect("an answer");
    assert_eq!(sent.status(), 413);
    let told = sent.text().await.expect("a text");
    let told: Value = serde_json::from_str(&told).expect("OpenAI's shape");
    assert_eq!(told["error"]["type"], "invalid_request_error");
    let message = told["error"]["message"].as_str().expect("words");
    assert!(message.contains("larger than 1.0 MiB"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_answers_pass_as_they_came_and_are_checked_nevertheless() {
    let mut answer = ok();
    // A name that no tool can have: nobody knows which was meant.
    answer["content"] = json!([{"type": "tool_use", "id": "t1", "name": "a b", "input": {}}]);
    let text = answer.to_string();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).expect("memory");
    let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    deflate.write_all(text.as_bytes()).expect("memory");
    let mut brotli = Vec::new();
    brotli::CompressorWriter::new(&mut brotli, 4096, 5, 22)
        .write_all(text.as_bytes())
        .expect("memory");
    let bodies = [
        ("gzip", gzip.finish().expect("memory")),
        ("deflate", deflate.finish().expect("memory")),
        ("br", brotli),
    ];
    for (coding, body) in bodies {
        let sent = body.clone();
        let provider = Provider::answering(move |_| {
            let mut response = typed_answer(200, "application/json", sent.clone());
            let coding = coding.parse().expect("a coding");
            response.headers_mut().insert("content-encoding", coding);
            response
        })
        .await;
        let served = proxy("anthropic", provider.url()).await;
        let url = format!("http://{}/proxy/anthropic/v1/messages", served.address);
        let raw = reqwest::Client::builder().no_proxy().tls_certs_only([]);
        let raw = raw.no_gzip().no_brotli().build().expect("a client");
        let sent = raw
            .post(url)
            .header("accept-encoding", "gzip, deflate, br")
            .body(valid().to_string())
            .send()
            .await
            .expect("an answer");
        assert_eq!(sent.headers()["content-encoding"], coding);
        assert_eq!(sent.bytes().await.expect("whole"), body, "{coding}");
        assert_eq!(
            provider.last().headers["accept-encoding"],
            "gzip, deflate, br"
        );
        let noted = until("the broken call is noted", async || {
            let listed = served.get("/v1/exchanges").await.json();
            listed["exchanges"].get(0).cloned()
        })
        .await;
        assert_eq!(
            noted["problems"][0]["code"], "bad_call_name",
            "{coding}: {noted}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_answers_pass() {
    let provider =
        Provider::answering(|_| axum::http::StatusCode::NO_CONTENT.into_response()).await;
    let served = proxy("openai", provider.url()).await;
    for method in ["DELETE", "HEAD"] {
        let sent = client()
            .request(
                method.parse().expect("a method"),
                format!("http://{}/proxy/openai/v1/files/1", served.address),
            )
            .send()
            .await
            .expect("an answer");
        assert_eq!(sent.status(), 204);
    }
    let figures = served.get("/metrics").await.text;
    let row = "steadyhand_proxy_exchanges_total{provider=\"openai\",result=\"answered\"} 2";
    assert!(figures.contains(row), "{figures}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_base_url_with_its_version_is_not_given_it_twice() {
    let provider = Provider::json(json!({})).await;
    let served = proxy("openai", format!("{}/v1/", provider.url())).await;
    served.get("/proxy/openai/v1/models").await;
    assert_eq!(provider.last().uri, "/v1/models");
    served.get("/proxy/openai/models").await;
    assert_eq!(provider.last().uri, "/v1/models");
    let nested = proxy("openai", format!("{}/gateway", provider.url())).await;
    nested.get("/proxy/openai/v1/models").await;
    assert_eq!(provider.last().uri, "/gateway/v1/models");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_providers_are_refused_in_our_own_words() {
    let served = Served::with_config("").await;
    for path in ["/proxy/nobody/v1/messages", "/proxy/anthropicx"] {
        let (status, code, message) = served.get(path).await.refusal();
        assert_eq!((status, code.as_str()), (404, "no_such_route"));
        assert!(message.contains(path), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn our_token_is_asked_for_and_never_forwarded() {
    let provider = Provider::json(ok()).await;
    let config = format!(
        "[server]\ntoken = \"our-own-token-1\"\n[proxy.anthropic]\nupstream = \"{}\"\n",
        provider.url()
    );
    let served = Served::with_config(&config).await;
    let path = "/proxy/anthropic/v1/messages";
    let body = valid().to_string();
    let without = served
        .send(
            "POST",
            path,
            &[("x-api-key", "k"), ("authorization", "Bearer other")],
            &body,
        )
        .await;
    assert_eq!(without.refusal().0, 401);
    assert!(provider.asked().is_empty());
    for token in [
        ("steadyhand-token", "our-own-token-1"),
        ("authorization", "Bearer our-own-token-1"),
    ] {
        let reply = served
            .send("POST", path, &[("x-api-key", "k"), token], &body)
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let asked = provider.last();
        assert_eq!(asked.headers["x-api-key"], "k");
        assert!(!format!("{:?}", asked.headers).contains("our-own-token"));
    }
    let own = [
        ("steadyhand-token", "our-own-token-1"),
        ("authorization", "Bearer the-clients-key"),
    ];
    served.send("POST", path, &own, &body).await;
    assert_eq!(
        provider.last().headers["authorization"],
        "Bearer the-clients-key"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_in_no_log_no_history_and_no_file() {
    let key = "a-very-own-key-0123456789";
    let said = format!("messages.0: role of {key} is wrong; sent with {key}");
    let provider = Provider::answering(move |_| {
        let error = json!({"type": "invalid_request_error", "message": said});
        json_answer(400, &json!({"type": "error", "error": error}))
    })
    .await;
    let more = "keep_conversations = true\n[proxy.gemini]\nupstream = \"http://127.0.0.1:1\"";
    let place = workplace("anthropic", provider.url(), more);
    let served = Served::told(place, "127.0.0.1:0", &["-vv"]).await;
    let bearer = format!("Bearer {key}");
    for header in [("x-api-key", key), ("authorization", bearer.as_str())] {
        let reply = served
            .send(
                "POST",
                "/proxy/anthropic/v1/messages",
                &[header],
                &broken().to_string(),
            )
            .await;
        assert_eq!(reply.status, 400);
        assert!(
            reply.text.contains(key),
            "the client's own answer is its own"
        );
    }
    let path = format!("/proxy/gemini/v1beta/models/g:generateContent?key={key}");
    let reply = served.post(&path, json!({"contents": []})).await;
    assert_eq!(reply.status, 502);
    assert!(!reply.text.contains(key), "{}", reply.text);
    until("all three are noted", async || {
        let listed = served.get("/v1/exchanges").await;
        assert!(!listed.text.contains(key), "{}", listed.text);
        (listed.json()["exchanges"].as_array()?.len() == 3).then_some(())
    })
    .await;
    assert!(!served.get("/v1/config").await.text.contains(key));
    let stderr = served.stderr();
    assert!(!stderr.contains(key), "{stderr}");
    let mut files = 0;
    let mut folders = vec![served.workplace.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            files += 1;
            let found = bytes
                .windows(key.len())
                .any(|window| window == key.as_bytes());
            assert!(!found, "{}", entry.path().display());
        }
    }
    assert!(files > 2, "history, a case: {files}");
}
