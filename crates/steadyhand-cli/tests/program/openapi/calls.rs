//! Calls against a real server on loopback: exactly what the document says arrives there.

use std::fs;

use serde_json::{Value, json};
use steadyhand::{Effect, Failure, Status, ToolExecutor, ToolSource};

use super::documents::with_paths;
use super::{Server, call, executor, source};

/// Loads a document with these paths whose service is `server`; `settings` adds to it.
pub(super) async fn shop(server: &Server, paths: Value, settings: Value) -> ToolExecutor {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("shop.json"),
        with_paths(paths).to_string(),
    )
    .unwrap();
    let mut all = json!({ "spec": "shop.json", "base": format!("{}/v1/", server.url) });
    for (key, value) in settings.as_object().unwrap() {
        all[key] = value.clone();
    }
    executor(&source(all, folder.path())).await
}

pub(super) fn body(kind: &str, media: Value) -> Value {
    json!({ "required": true, "content": { kind: media } })
}

#[tokio::test]
async fn v01_a_call_arrives_as_the_request_the_document_describes() {
    let server = Server::answering(json!({ "id": 7 })).await;
    let parameters = json!([
        { "name": "shopId", "in": "path", "required": true, "schema": { "type": "string" } },
        { "name": "notify", "in": "query", "schema": { "type": "boolean" } },
        { "name": "X-Trace", "in": "header", "schema": { "type": "string" } },
        { "name": "session", "in": "cookie", "schema": { "type": "string" } },
        { "name": "Authorization", "in": "header", "schema": { "type": "string" } },
    ]);
    let schema = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string" }, "tags": { "type": "array", "items": { "type": "string" } } } });
    let executor = shop(
        &server,
        json!({ "/shops/{shopId}/pets": { "post": { "operationId": "addPet", "parameters": parameters,
            "requestBody": body("application/json", json!({ "schema": schema })) } } }),
        json!({}),
    )
    .await;
    let args = json!({ "shopId": "a/b ü", "notify": true, "X-Trace": "t1", "session": "s;1", "name": "Rex", "tags": ["x"] });
    let outcome = call(&executor, "addPet", args).await;
    assert_eq!(outcome.status(), Status::Success, "{:?}", outcome.failure());
    assert_eq!(outcome.output().unwrap().value(), &json!({ "id": 7 }));
    let arrived = server.last();
    assert_eq!(
        arrived.line,
        "POST /v1/shops/a%2Fb%20%C3%BC/pets?notify=true"
    );
    assert_eq!(arrived.body, r#"{"name":"Rex","tags":["x"]}"#);
    assert_eq!(arrived.header("content-type"), Some("application/json"));
    assert_eq!(arrived.header("x-trace"), Some("t1"));
    assert_eq!(arrived.header("cookie"), Some("session=s%3B1"));
    assert_eq!(arrived.header("authorization"), None);
    assert_eq!(
        arrived.header("accept"),
        Some("application/json, */*;q=0.5")
    );
}

#[tokio::test]
async fn v01_forms_arrive_with_their_fields_written_as_the_document_says() {
    let server = Server::answering(json!(null)).await;
    let media = json!({
        "schema": { "type": "object", "properties": {
            "To": { "type": "string" }, "Media": { "type": "array", "items": { "type": "string" } },
            "metadata": { "type": "object" }, "plain": { "type": "object" }, "csv": { "type": "array", "items": {} } } },
        "encoding": { "metadata": { "style": "deepObject", "explode": true }, "csv": { "explode": false } },
    });
    let executor = shop(
        &server,
        json!({ "/m": { "post": { "operationId": "send", "requestBody": body("application/x-www-form-urlencoded", media) } } }),
        json!({}),
    )
    .await;
    let args = json!({ "To": "+1 & co", "Media": ["a", "b"], "metadata": { "k": { "l": 1 } }, "plain": { "k": 1 }, "csv": [1, 2] });
    assert_eq!(
        call(&executor, "send", args).await.status(),
        Status::Success
    );
    let arrived = server.last();
    assert_eq!(
        arrived.header("content-type"),
        Some("application/x-www-form-urlencoded")
    );
    assert_eq!(
        arrived.body,
        "To=%2B1%20%26%20co&Media=a&Media=b&metadata[k][l]=1&plain=%7B%22k%22%3A1%7D&csv=1,2"
    );
}

#[tokio::test]
async fn v01_a_multipart_form_arrives_in_parts_that_no_value_can_break() {
    let server = Server::answering(json!(null)).await;
    let media = json!({
        "schema": { "type": "object", "properties": {
            "note": { "type": "string" }, "file": { "type": "string", "format": "binary" }, "about": { "type": "object" } } },
        "encoding": { "file": { "contentType": "text/csv, text/plain" } },
    });
    let executor = shop(
        &server,
        json!({ "/f": { "post": { "operationId": "upload", "requestBody": body("multipart/form-data", media) } } }),
        json!({}),
    )
    .await;
    let args = json!({ "note": "a\r\n--x\r\nContent-Disposition: form-data; name=\"evil\"", "file": "YSxi", "about": { "k": 1 } });
    assert_eq!(
        call(&executor, "upload", args).await.status(),
        Status::Success
    );
    let arrived = server.last();
    let boundary = arrived
        .header("content-type")
        .unwrap()
        .strip_prefix("multipart/form-data; boundary=")
        .unwrap();
    let expected = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\na\r\n--x\r\nContent-Disposition: form-data; name=\"evil\"\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\nContent-Type: text/csv\r\n\r\na,b\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"about\"\r\nContent-Type: application/json\r\n\r\n{{\"k\":1}}\r\n\
         --{boundary}--\r\n"
    );
    assert_eq!(arrived.body, expected);
}

#[tokio::test]
async fn v01_other_bodies_arrive_as_they_are_and_json_is_preferred() {
    let server = Server::answering(json!(null)).await;
    let executor = shop(
        &server,
        json!({
            "/raw": { "put": { "operationId": "raw", "requestBody": body("application/octet-stream", json!({ "schema": { "type": "string", "format": "binary" } })) } },
            "/text": { "put": { "operationId": "text", "requestBody": body("text/*", json!({})) } },
            "/list": { "put": { "operationId": "list", "requestBody": { "required": true, "content": {
                "application/xml": {}, "application/vnd.shop+json": { "schema": { "type": "array", "items": { "type": "integer" } } } } } } },
            "/none": { "post": { "operationId": "none", "requestBody": { "content": { "application/json": { "schema": {
                "type": "object", "properties": { "a": { "type": "string" } } } } } } } },
            "/fixed?action=now": { "get": { "operationId": "fixed", "parameters": [{ "name": "x", "in": "query", "schema": {} }] } },
        }),
        json!({}),
    )
    .await;
    let arrived = async |tool: &str, args: Value| {
        assert_eq!(call(&executor, tool, args).await.status(), Status::Success);
        let arrived = server.last();
        let kind = arrived.header("content-type").unwrap_or("-").to_owned();
        format!("{} {kind} {}", arrived.line, arrived.body)
    };
    assert_eq!(
        arrived("raw", json!({ "body": "Ynl0ZXM=" })).await,
        "PUT /v1/raw application/octet-stream bytes"
    );
    assert_eq!(
        arrived("text", json!({ "body": "grün" })).await,
        "PUT /v1/text text/plain grün"
    );
    assert_eq!(
        arrived("list", json!({ "body": [1, 2] })).await,
        "PUT /v1/list application/vnd.shop+json [1,2]"
    );
    assert_eq!(arrived("none", json!({})).await, "POST /v1/none - ");
    assert_eq!(
        arrived("none", json!({ "a": "b", "surplus": 1 })).await,
        r#"POST /v1/none application/json {"a":"b"}"#
    );
    assert_eq!(
        arrived("fixed", json!({ "x": 1 })).await,
        "GET /v1/fixed?action=now&x=1 - "
    );
}

#[tokio::test]
async fn credentials_and_headers_of_the_configuration_are_sent_and_are_no_arguments() {
    let server = Server::answering(json!(null)).await;
    let paths = json!({ "/a": { "get": { "operationId": "a", "parameters": [
        { "name": "X-Api-Key", "in": "header", "required": true, "schema": { "type": "string" } },
        { "name": "api_key", "in": "query", "required": true, "schema": { "type": "string" } },
        { "name": "filter", "in": "query", "schema": { "type": "object" } },
    ] } } });
    let other = json!({ "X-Api-Key": "mine", "api_key": "mine" });
    let arrived = async |settings: Value, args: &Value| {
        let executor = shop(&server, paths.clone(), settings).await;
        let outcome = call(&executor, "a", args.clone()).await;
        assert_eq!(outcome.status(), Status::Success, "{:?}", outcome.failure());
        server.last()
    };
    let keyed = arrived(
        json!({ "auth": { "header": "X-Api-Key", "value": "k1" }, "headers": { "X-Team": "red" } }),
        &other,
    )
    .await;
    assert_eq!(keyed.header("x-api-key"), Some("k1"));
    assert_eq!(keyed.header("x-team"), Some("red"));
    assert_eq!(keyed.line, "GET /v1/a?api_key=mine");
    let query = arrived(
        json!({ "auth": { "query": "api_key", "value": "k&2" } }),
        &other,
    )
    .await;
    assert_eq!(query.line, "GET /v1/a?api_key=k%262");
    let bearer = arrived(json!({ "auth": { "bearer": "t3" } }), &other).await;
    assert_eq!(bearer.header("authorization"), Some("Bearer t3"));
    let basic = arrived(
        json!({ "auth": { "basic": { "user": "me", "password": "pw:4" } } }),
        &other,
    )
    .await;
    assert_eq!(basic.header("authorization"), Some("Basic bWU6cHc6NA=="));

    // The fields of an object become parameters; they cannot stand in for the key.
    let executor = shop(
        &server,
        paths.clone(),
        json!({ "auth": { "query": "api_key", "value": "k" } }),
    )
    .await;
    let before = server.all().len();
    let outcome = call(
        &executor,
        "a",
        json!({ "X-Api-Key": "x", "filter": { "api_key": "stolen" } }),
    )
    .await;
    assert_eq!(
        failure(&outcome).message,
        "Invalid parameters: api_key is set by the configuration"
    );
    assert_eq!(server.all().len(), before, "nothing was sent");
}

fn failure(outcome: &steadyhand::Outcome) -> &Failure {
    outcome.failure().expect("the call failed")
}

#[tokio::test]
async fn r07_what_the_service_answers_decides_the_category() {
    let server = Server::start(|arrived| {
        let status = arrived.line.rsplit('/').next().unwrap();
        format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nretry-after: 7\r\ncontent-length: 13\r\n\r\n{{\"why\":\"no\"}}\n")
    })
    .await;
    let paths = json!({ "/status/{code}": { "post": { "operationId": "status" } } });
    let executor = shop(&server, paths, json!({ "auth": { "bearer": "hunter2" } })).await;
    for (status, code) in [
        ("401", "AUTHENTICATION_ERROR"),
        ("403", "AUTHENTICATION_ERROR"),
        ("404", "TOOL_EXECUTION_ERROR"),
        ("422", "TOOL_EXECUTION_ERROR"),
        ("429", "RATE_LIMIT_ERROR"),
        ("503", "NETWORK_ERROR"),
        ("500", "TOOL_EXECUTION_ERROR"),
    ] {
        let outcome = call(&executor, "status", json!({ "code": status })).await;
        assert_eq!(failure(&outcome).code.as_str(), code, "{status}");
        assert!(!format!("{:?}", failure(&outcome)).contains("hunter2"));
    }
}

#[tokio::test]
async fn d07_only_methods_that_are_safe_to_repeat_are_repeated() {
    let server = Server::start(|_| "HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n".to_owned()).await;
    let paths = json!({ "/a": { "get": {}, "head": {}, "put": {}, "delete": {}, "options": {}, "post": {}, "patch": {} } });
    let executor = shop(&server, paths, json!({})).await;
    for (method, requests) in [
        ("get", 4),
        ("head", 4),
        ("put", 4),
        ("delete", 4),
        ("options", 4),
        ("post", 1),
        ("patch", 1),
    ] {
        let before = server.all().len();
        let outcome = executor
            .execute(steadyhand::Call::new(format!("{method}_a"), json!({})))
            .await;
        assert_eq!(outcome.status(), Status::Error);
        let arrived = server.all().split_off(before);
        assert_eq!(arrived.len(), requests, "{method}");
        let keyed = arrived
            .iter()
            .filter(|one| one.header("idempotency-key").is_some())
            .count();
        assert_eq!(keyed, if requests == 1 { 1 } else { 0 }, "{method}");
    }
}

#[tokio::test]
async fn hosts_that_only_the_document_names_must_be_public() {
    let server = Server::answering(json!("secret")).await;
    let folder = tempfile::tempdir().unwrap();
    let mut document = with_paths(json!({ "/a": { "get": { "operationId": "a" } } }));
    document["servers"] = json!([{ "url": server.url }]);
    fs::write(folder.path().join("shop.json"), document.to_string()).unwrap();
    let by_document = executor(&source(json!({ "spec": "shop.json" }), folder.path())).await;
    let outcome = call(&by_document, "a", json!({})).await;
    assert_eq!(failure(&outcome).effect, Effect::None);
    assert!(
        failure(&outcome).message.contains("127.0.0.1"),
        "{}",
        failure(&outcome).message
    );
    assert_eq!(server.all(), [], "no connection was made");
    let by_base = executor(&source(
        json!({ "spec": "shop.json", "base": server.url }),
        folder.path(),
    ))
    .await;
    assert_eq!(
        call(&by_base, "a", json!({})).await.status(),
        Status::Success
    );
}

#[tokio::test]
async fn tools_say_what_kind_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let document = with_paths(
        json!({ "/a": { "get": { "summary": "Lists", "description": "All of them.", "deprecated": true } } }),
    );
    fs::write(folder.path().join("shop.json"), document.to_string()).unwrap();
    let source = source(
        json!({ "spec": "shop.json", "base": "https://shop.example" }),
        folder.path(),
    );
    let tools = source.tools().await.unwrap();
    assert_eq!(
        (tools[0].kind(), tools[0].description()),
        ("openapi", "Deprecated. Lists\n\nAll of them.")
    );
}
