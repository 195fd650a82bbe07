//! The builtin `search`: three services, one shape of result.

use serde_json::{Value, json};
use steadyhand::{Outcome, RetryPolicy, Tool};
use steadyhand_runtime::net::Client;
use steadyhand_runtime::source::builtin::search::{SearchSettings, check, tool};

use super::server::{Act, Server, answer, json_answer};
use super::{context, failure, output, run, verdict};

fn settings(value: Value) -> SearchSettings {
    serde_json::from_value(value).expect("settings")
}

fn search(value: Value) -> Tool {
    let tool = tool(&settings(value), &context(Client::new())).expect("good settings");
    tool.retry(RetryPolicy::none())
}

async fn ask(server: &Server, engine: &str, path: &str, args: Value) -> Outcome {
    let url = server.url(path);
    run(
        search(json!({ "engine": engine, "url": url, "key": "k3y-k3y", "cx": "c-x" })),
        args,
    )
    .await
}

#[tokio::test]
async fn searxng_brave_and_google_give_the_same_results() {
    let cases = [
        (
            "searxng",
            "/sub/",
            r#"{"query":"q","results":[{"title":"T","url":"http://a.test/","content":"S","score":1},{"title":"no url"}]}"#,
            "GET /sub/search?q=caf%C3%A9+%26+tea&format=json HTTP/1.1",
        ),
        (
            "brave",
            "/res",
            r#"{"type":"search","web":{"results":[{"title":"<strong>T</strong>","url":"http://a.test/","description":"<strong>S</strong>"}]}}"#,
            "GET /res?q=caf%C3%A9+%26+tea&count=3 HTTP/1.1",
        ),
        (
            "google",
            "/v1",
            r#"{"kind":"customsearch#search","items":[{"title":"T","link":"http://a.test/","snippet":"S"}]}"#,
            "GET /v1?q=caf%C3%A9+%26+tea&num=3&key=k3y-k3y&cx=c-x HTTP/1.1",
        ),
    ];
    for (engine, path, body, line) in cases {
        let server = Server::start(vec![json_answer(body)]).await;
        let outcome = ask(
            &server,
            engine,
            path,
            json!({ "query": "café & tea", "count": 3 }),
        )
        .await;
        let expected = json!({
            "results": [{ "title": "T", "url": "http://a.test/", "snippet": "S" }],
            "engine": engine,
        });
        assert_eq!(output(&outcome), &expected, "{engine}");
        let seen = &server.seen()[0];
        assert_eq!(seen.line(), line, "{engine}");
        let key = match engine {
            "brave" => seen.header("x-subscription-token") == Some("k3y-k3y"),
            "searxng" => seen.header("authorization") == Some("Bearer k3y-k3y"),
            _ => seen.header("authorization").is_none(),
        };
        assert!(key, "{engine}");
    }
}

#[tokio::test]
async fn no_more_results_than_asked_for_and_no_longer_than_useful() {
    let result = json!({ "title": "T".repeat(2_000), "url": "http://a.test/", "content": "é".repeat(2_000) });
    let body = json!({ "results": vec![result; 50] }).to_string();
    let server = Server::start(vec![json_answer(&body)]).await;
    for (args, expected) in [
        (json!({ "query": "q" }), 5),
        (json!({ "query": "q", "count": 10 }), 10),
    ] {
        let outcome = ask(&server, "searxng", "/", args).await;
        let results = output(&outcome)["results"]
            .as_array()
            .expect("a list")
            .clone();
        assert_eq!(results.len(), expected);
        assert!(
            results[0]["snippet"]
                .as_str()
                .expect("a text")
                .chars()
                .count()
                <= 501
        );
    }
    let outcome = ask(
        &server,
        "searxng",
        "/",
        json!({ "query": "q", "count": 1_000 }),
    )
    .await;
    assert_eq!(verdict(&outcome), "VALIDATION_ERROR none final 0");
}

#[tokio::test]
async fn nothing_found_is_an_empty_list_and_another_answer_an_error() {
    let empty = [
        ("searxng", r#"{"results":[]}"#),
        ("brave", r#"{"type":"search"}"#),
        (
            "google",
            r#"{"kind":"customsearch#search","searchInformation":{"totalResults":"0"}}"#,
        ),
    ];
    for (engine, body) in empty {
        let server = Server::start(vec![json_answer(body)]).await;
        let outcome = ask(&server, engine, "/", json!({ "query": "q" })).await;
        assert_eq!(output(&outcome)["results"], json!([]), "{engine}");
        let server = Server::start(vec![json_answer(r#"{"hello":1}"#)]).await;
        let outcome = ask(&server, engine, "/", json!({ "query": "q" })).await;
        assert_eq!(
            verdict(&outcome),
            "TOOL_EXECUTION_ERROR done final 1",
            "{engine}"
        );
        assert!(failure(&outcome).message.ends_with("check engine and url"));
    }
}

#[tokio::test]
async fn r07_a_refusal_of_the_service_is_told_without_the_key() {
    let body = r#"{"error":{"message":"API key not valid"}}"#;
    let server = Server::start(vec![Act::Send(answer(
        403,
        &[("content-type", "application/json")],
        body,
    ))])
    .await;
    for engine in ["searxng", "brave", "google"] {
        let outcome = ask(&server, engine, "/", json!({ "query": "q" })).await;
        assert_eq!(verdict(&outcome), "AUTHENTICATION_ERROR none final 1");
        let expected = format!(
            "{} answered 403 Forbidden: API key not valid",
            server.address
        );
        assert_eq!(failure(&outcome).message, expected);
    }
    let debug = format!(
        "{:?}",
        settings(json!({ "engine": "brave", "key": "k3y-k3y" }))
    );
    assert!(!debug.contains("k3y"), "{debug}");
}

#[test]
fn what_a_service_needs_is_asked_for() {
    let cases = [
        (json!({ "engine": "searxng" }), vec!["/url"]),
        (json!({ "engine": "brave" }), vec!["/key"]),
        (
            json!({ "engine": "google", "key": "" }),
            vec!["/key", "/cx"],
        ),
        (
            json!({ "engine": "searxng", "url": "nowhere" }),
            vec!["/url"],
        ),
        (
            json!({ "engine": "searxng", "url": "ftp://a.test" }),
            vec!["/url"],
        ),
        (json!({ "engine": "brave", "key": "k" }), vec![]),
        (json!({ "engine": "google", "key": "k", "cx": "c" }), vec![]),
    ];
    for (value, expected) in cases {
        let found: Vec<String> = check(&settings(value.clone()))
            .into_iter()
            .map(|fault| fault.at)
            .collect();
        assert_eq!(found, expected, "{value}");
    }
}
