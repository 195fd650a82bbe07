//! Documents from a URL: a copy is kept, asked about with its ETag, and used when nothing better is to be had.

use std::sync::Arc;
use std::sync::Mutex;

use serde_json::{Value, json};
use steadyhand::{Status, ToolSource};

use super::documents::with_paths;
use super::{Arrived, Server, call, executor, json_answer, names, source};

fn document(operation: &str) -> Value {
    with_paths(json!({ "/pets": { "get": { "operationId": operation } } }))
}

/// A server whose answer can be changed while it runs.
async fn changing(first: String) -> (Server, Arc<Mutex<String>>) {
    let answer = Arc::new(Mutex::new(first));
    let current = Arc::clone(&answer);
    let server = Server::start(move |_: &Arrived| current.lock().unwrap().clone()).await;
    (server, answer)
}

fn with_etag(document: &Value, etag: &str) -> String {
    json_answer(document).replacen("\r\n", &format!("\r\netag: {etag}\r\n"), 1)
}

#[tokio::test]
async fn a_document_that_has_not_changed_is_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let (server, answer) = changing(with_etag(&document("list"), "\"v1\"")).await;
    let settings = json!({ "spec": format!("{}/openapi.json", server.url) });
    assert_eq!(
        names(&source(settings.clone(), folder.path())).await,
        ["list"]
    );
    assert_eq!(server.last().header("if-none-match"), None);

    *answer.lock().unwrap() = "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned();
    let again = source(settings.clone(), folder.path());
    assert_eq!(names(&again).await, ["list"]);
    assert_eq!(server.last().header("if-none-match"), Some("\"v1\""));
    assert_eq!(again.report().unwrap().cached, None);

    *answer.lock().unwrap() = with_etag(&document("list_all"), "\"v2\"");
    assert_eq!(
        names(&source(settings.clone(), folder.path())).await,
        ["list_all"]
    );
    *answer.lock().unwrap() = "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned();
    assert_eq!(names(&source(settings, folder.path())).await, ["list_all"]);
    assert_eq!(server.last().header("if-none-match"), Some("\"v2\""));
}

#[tokio::test]
async fn without_the_network_the_copy_serves_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (server, answer) = changing(json_answer(&document("list"))).await;
    let settings = json!({ "spec": format!("{}/openapi.json?token=hunter2", server.url) });
    assert_eq!(
        names(&source(settings.clone(), folder.path())).await,
        ["list"]
    );
    for bad in [
        "HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n".to_owned(),
        json_answer(&json!({ "error": "sign in first" })),
        // No answer at all: the connection breaks.
        "nonsense\r\n\r\n".to_owned(),
    ] {
        *answer.lock().unwrap() = bad;
        let source = source(settings.clone(), folder.path());
        assert_eq!(names(&source).await, ["list"]);
        let said = source
            .report()
            .unwrap()
            .cached
            .clone()
            .expect("the copy was used");
        assert!(
            said.contains("now (")
                && said.contains("; the copy of 20")
                && said.ends_with(" UTC is used"),
            "{said}"
        );
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[tokio::test]
async fn without_network_and_without_a_copy_the_error_names_the_document_but_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    // A port that was free a moment ago and has nobody behind it.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let source = source(
        json!({ "spec": format!("http://127.0.0.1:{port}/openapi.json?token=hunter2") }),
        folder.path(),
    );
    let error = source.tools().await.map(|_| ()).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("shop: http://127.0.0.1:{port}/openapi.json: ")),
        "{error}"
    );
    assert!(!error.contains("hunter2"), "{error}");
}

#[tokio::test]
async fn a_document_that_is_too_large_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(|_| {
        let body = " ".repeat(32 * 1024 * 1024 + 1);
        format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    })
    .await;
    let source = source(
        json!({ "spec": format!("{}/openapi.json", server.url) }),
        folder.path(),
    );
    let error = source.tools().await.map(|_| ()).unwrap_err().to_string();
    assert!(
        error.ends_with("it is larger than 32 MiB, with all its files"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_address_in_a_downloaded_document_starts_from_the_documents_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = document("list");
    text["servers"] = json!([{ "url": "/api/v2" }]);
    let server = Server::start(
        move |arrived| match arrived.line.starts_with("GET /docs/") {
            true => json_answer(&text),
            false => json_answer(&json!(["Rex"])),
        },
    )
    .await;
    // The host stands in the configuration, so it may be this machine.
    let settings =
        json!({ "spec": format!("{}/docs/openapi.json", server.url), "auth": { "bearer": "t" } });
    let executor = executor(&source(settings, folder.path())).await;
    assert_eq!(
        call(&executor, "list", json!({})).await.status(),
        Status::Success
    );
    let all = server.all();
    assert_eq!(all[1].line, "GET /api/v2/pets");
    assert_eq!(all[1].header("authorization"), Some("Bearer t"));
    assert_eq!(
        all[0].header("authorization"),
        None,
        "the document is asked for without the key"
    );
}

#[tokio::test]
async fn a_downloaded_document_cannot_send_our_keys_to_a_host_of_its_choice() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = document("list");
    text["servers"] = json!([{ "url": "https://thief.example" }]);
    let server = Server::answering(text).await;
    let settings =
        |auth: Value| json!({ "spec": format!("{}/openapi.json", server.url), "auth": auth });
    let error = source(settings(json!({ "bearer": "t" })), folder.path())
        .tools()
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(
        error.reason.ends_with(
            "GET /pets: the document sends it to thief.example, and `auth` and `headers` go only to hosts that the configuration names: set `base`"
        ),
        "{error}"
    );
    assert_eq!(
        names(&source(settings(Value::Null), folder.path())).await,
        ["list"]
    );
}
