//! Bytes in requests: base64 from the model becomes what it stands for; what is none is refused before anything is sent.

use serde_json::{Value, json};
use steadyhand::{Effect, FailureCode, Status, ToolExecutor};

use super::calls::{body, shop};
use super::{Server, call};

/// Not UTF-8, with a line break and something that looks like a boundary in it.
const BYTES: &[u8] = b"\x89PNG\r\n\x1a\n\x00\xff--x\r\n";
const BASE64: &str = "iVBORw0KGgoA/y0teA0K";
const URL_SAFE: &str = "iVBORw0KGgoA_y0teA0K";

fn tool_schema(executor: &ToolExecutor, name: &str) -> Value {
    let tool = executor.tools().find(name).expect("a tool");
    tool.schema().clone()
}

fn upload(media: Value) -> Value {
    json!({ "/f": { "post": { "operationId": "upload", "requestBody": body("multipart/form-data", media) } } })
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn v01_a_body_of_bytes_arrives_as_the_bytes() {
    let server = Server::answering(json!(null)).await;
    let string = json!({ "schema": { "type": "string" } });
    let binary = json!({ "schema": { "type": "string", "format": "binary" } });
    let executor = shop(
        &server,
        json!({
            "/a": { "put": { "operationId": "binary", "requestBody": body("application/octet-stream", binary.clone()) } },
            "/b": { "put": { "operationId": "undescribed", "requestBody": body("application/octet-stream", json!({})) } },
            "/c": { "put": { "operationId": "picture", "requestBody": body("image/png", json!({ "schema": {} })) } },
            "/d": { "put": { "operationId": "any_picture", "requestBody": body("image/*", binary.clone()) } },
            "/k": { "put": { "operationId": "anything", "requestBody": body("*/*", binary.clone()) } },
            "/e": { "put": { "operationId": "declared", "requestBody": body("application/x-own", json!({ "schema": { "type": "string", "contentMediaType": "application/x-own" } })) } },
            "/g": { "put": { "operationId": "zip", "requestBody": body("application/zip", string.clone()) } },
            "/h": { "put": { "operationId": "csv", "requestBody": body("text/csv", string.clone()) } },
            "/i": { "put": { "operationId": "own_text", "requestBody": body("application/x-own", string) } },
            "/j": { "put": { "operationId": "encoded", "requestBody": body("image/png", json!({ "schema": { "type": "string", "contentEncoding": "base64", "contentMediaType": "image/png" } })) } },
        }),
        json!({}),
    )
    .await;
    for tool in [
        "binary",
        "undescribed",
        "picture",
        "any_picture",
        "anything",
        "declared",
        "zip",
    ] {
        let in_lines = format!("{}\r\n{}\n", &BASE64[..8], &BASE64[8..]);
        let data_url = format!("data:image/png;base64,{BASE64}");
        for given in [BASE64, URL_SAFE, &in_lines, &data_url] {
            let outcome = call(&executor, tool, json!({ "body": given })).await;
            assert_eq!(
                outcome.status(),
                Status::Success,
                "{tool}: {:?}",
                outcome.failure()
            );
            assert_eq!(server.last().bytes, BYTES, "{tool}: {given}");
        }
        let schema = tool_schema(&executor, tool);
        let property = &schema["properties"]["body"];
        assert_eq!(property["contentEncoding"], "base64", "{tool}: {property}");
        assert!(property.get("format").is_none(), "{tool}: {property}");
        let words = property["description"].as_str().unwrap_or_default();
        assert!(
            words.contains("base64") && words.contains("data: URL"),
            "{words}"
        );
    }
    // The type of a data: URL counts where the document leaves it open.
    call(
        &executor,
        "any_picture",
        json!({ "body": format!("data:image/gif;base64,{BASE64}") }),
    )
    .await;
    assert_eq!(server.last().header("content-type"), Some("image/gif"));
    call(
        &executor,
        "picture",
        json!({ "body": format!("data:image/gif;base64,{BASE64}") }),
    )
    .await;
    assert_eq!(server.last().header("content-type"), Some("image/png"));
    // Text is sent as it is written, and so is what the request itself holds as base64.
    for (tool, text) in [
        ("csv", "a,b\n1,2"),
        ("own_text", "YWJj"),
        ("encoded", BASE64),
    ] {
        let outcome = call(&executor, tool, json!({ "body": text })).await;
        assert_eq!(outcome.status(), Status::Success, "{tool}");
        assert_eq!(server.last().body, text, "{tool}");
    }
}

#[tokio::test]
async fn v01_text_that_is_no_base64_is_refused_before_anything_is_sent() {
    let server = Server::answering(json!(null)).await;
    let binary = json!({ "type": "string", "format": "binary" });
    let executor = shop(
        &server,
        json!({
            "/a": { "put": { "operationId": "raw", "requestBody": body("application/octet-stream", json!({ "schema": binary })) } },
            "/b": { "post": { "operationId": "parts", "requestBody": body("multipart/form-data", json!({
                "schema": { "type": "object", "properties": { "file[]": binary, "files": { "type": "array", "items": binary } } } })) } },
        }),
        json!({}),
    )
    .await;
    let wrong = [
        "hello, world",
        "plain text",
        "hello",
        "iVBORw0KGgo",
        "grün",
        "YWJj=",
        "data:text/plain;base64,hello world",
        "data:image/png;base64",
        "https://example.com/photo.png",
        "/tmp/photo.png",
    ];
    for text in wrong {
        for (tool, argument, args) in [
            ("raw", "body", json!({ "body": text })),
            ("parts", "file", json!({ "file": text })),
            ("parts", "files", json!({ "files": [BASE64, text] })),
        ] {
            let outcome = call(&executor, tool, args).await;
            let failure = outcome
                .failure()
                .unwrap_or_else(|| panic!("{text} was sent"));
            assert_eq!(failure.code, FailureCode::ValidationError, "{text}");
            assert_eq!(failure.effect, Effect::None, "{text}");
            assert!(!failure.retryable, "{text}");
            let message = &failure.message;
            assert!(message.contains(&format!("'{argument}'")), "{message}");
            assert!(message.contains("base64"), "{message}");
            assert_eq!(outcome.attempts, 1, "{text}");
        }
    }
    assert_eq!(server.all().len(), 0);
}

#[tokio::test]
async fn v01_files_of_a_form_arrive_as_parts_with_name_and_type() {
    let server = Server::answering(json!(null)).await;
    let binary = json!({ "type": "string", "format": "binary" });
    let media = json!({
        "schema": { "type": "object", "required": ["file"], "properties": {
            "file": binary,
            "several": { "type": "array", "items": binary },
            // As FastAPI writes an optional upload, and OpenAI one or several.
            "maybe": { "anyOf": [{ "type": "string", "contentMediaType": "application/octet-stream" }, { "type": "null" }] },
            "one_or_more": { "oneOf": [binary, { "type": "array", "items": binary }] },
            "by_encoding": { "type": "string" },
            "picture_or_link": { "anyOf": [binary, { "type": "string", "format": "uri" }] },
            "named": binary,
            "inline": { "type": "string", "format": "byte" },
            "note": { "type": "string" },
        } },
        "encoding": {
            "file": { "contentType": "image/png, image/jpeg" },
            "by_encoding": { "contentType": "application/pdf" },
            "named": { "contentType": "text/csv", "headers": { "Content-Disposition": { "schema": { "type": "string",
                "default": "form-data; name=\"named\"; filename=\"table.csv\"" } } } },
        },
    });
    let executor = shop(&server, upload(media), json!({})).await;
    let part = async |args: Value, head: &str, bytes: &[u8]| {
        let shown = args.to_string();
        let outcome = call(&executor, "upload", args).await;
        assert_eq!(
            outcome.status(),
            Status::Success,
            "{shown}: {:?}",
            outcome.failure()
        );
        assert_eq!(outcome.dropped_arguments, Vec::<String>::new());
        let arrived = server.last();
        let expected = [format!("{head}\r\n\r\n").as_bytes(), bytes, b"\r\n--"].concat();
        assert!(
            contains(&arrived.bytes, &expected),
            "{shown}: {}",
            arrived.body
        );
    };
    let head = |name: &str, file: &str, kind: &str| {
        format!(
            "Content-Disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\nContent-Type: {kind}"
        )
    };
    let with = |name: &str, value: Value| {
        let mut args = json!({ "file": BASE64 });
        args[name] = value;
        args
    };
    part(
        json!({ "file": BASE64 }),
        &head("file", "file", "image/png"),
        BYTES,
    )
    .await;
    // Its own type and name, where the document allows the type.
    let own = format!("data:image/jpeg;name=photo.jpg;base64,{BASE64}");
    part(
        json!({ "file": own }),
        &head("file", "photo.jpg", "image/jpeg"),
        BYTES,
    )
    .await;
    let other = format!("data:image/gif;base64,{BASE64}");
    part(
        json!({ "file": other }),
        &head("file", "file", "image/png"),
        BYTES,
    )
    .await;
    let octets = "application/octet-stream";
    for name in ["several", "one_or_more"] {
        let both = json!([BASE64, "YWJj"]);
        part(with(name, both.clone()), &head(name, name, octets), BYTES).await;
        part(with(name, both), &head(name, name, octets), b"abc").await;
    }
    part(
        with("one_or_more", json!("YWJj")),
        &head("one_or_more", "one_or_more", octets),
        b"abc",
    )
    .await;
    part(
        with("maybe", json!("YWJj")),
        &head("maybe", "maybe", octets),
        b"abc",
    )
    .await;
    part(
        with("by_encoding", json!("YWJj")),
        &head("by_encoding", "by_encoding", "application/pdf"),
        b"abc",
    )
    .await;
    part(
        with("named", json!("YWJj")),
        &head("named", "table.csv", "text/csv"),
        b"abc",
    )
    .await;
    let text = |name: &str| format!("Content-Disposition: form-data; name=\"{name}\"");
    part(with("inline", json!("YWJj")), &text("inline"), b"YWJj").await;
    part(with("note", json!("YWJj")), &text("note"), b"YWJj").await;
    // A file or a link: only a data: URL is a file.
    let link = "https://example.com/a.png";
    part(
        with("picture_or_link", json!(link)),
        &text("picture_or_link"),
        link.as_bytes(),
    )
    .await;
    let name = "picture_or_link";
    part(
        with(name, json!("data:text/plain,a%20b")),
        &head(name, name, "text/plain"),
        b"a b",
    )
    .await;

    let schema = tool_schema(&executor, "upload");
    let properties = &schema["properties"];
    assert_eq!(properties["file"]["contentEncoding"], "base64");
    assert_eq!(properties["file"]["contentMediaType"], "image/png");
    assert_eq!(properties["several"]["items"]["contentEncoding"], "base64");
    assert_eq!(properties["maybe"]["anyOf"][0]["contentEncoding"], "base64");
    for name in [
        "file",
        "several",
        "maybe",
        "one_or_more",
        "by_encoding",
        "picture_or_link",
        "named",
    ] {
        let words = properties[name]["description"].as_str().unwrap_or_default();
        assert!(words.contains("base64"), "{name}: {words}");
    }
    for name in ["inline", "note"] {
        let words = properties[name]["description"].as_str().unwrap_or_default();
        assert!(!words.contains("data: URL"), "{name}: {words}");
    }
    assert!(!schema.to_string().contains("\"binary\""), "{schema}");
}

#[tokio::test]
async fn v01_a_body_with_files_is_sent_as_the_type_that_holds_bytes() {
    let server = Server::answering(json!(null)).await;
    let binary = json!({ "type": "string", "format": "binary" });
    let photo = json!({ "schema": { "type": "object", "required": ["photo"], "properties": { "photo": binary, "caption": { "type": "string" } } } });
    let note = json!({ "schema": { "type": "object", "properties": { "caption": { "type": "string" } } } });
    let offered = |types: Value| json!({ "required": true, "content": types });
    let executor = shop(
        &server,
        json!({
            "/a": { "post": { "operationId": "form_first", "requestBody": offered(json!({
                "application/x-www-form-urlencoded": photo, "multipart/form-data": photo })) } },
            "/b": { "post": { "operationId": "json_first", "requestBody": offered(json!({
                "application/json": photo, "application/x-www-form-urlencoded": photo, "multipart/form-data": photo })) } },
            "/c": { "post": { "operationId": "json_or_bytes", "requestBody": offered(json!({
                "application/json": { "schema": binary }, "application/octet-stream": { "schema": binary } })) } },
            "/d": { "post": { "operationId": "link_or_photo", "requestBody": offered(json!({
                "application/json": note, "multipart/form-data": photo })) } },
            "/e": { "post": { "operationId": "only_form", "requestBody": offered(json!({ "application/x-www-form-urlencoded": photo })) } },
        }),
        json!({}),
    )
    .await;
    for tool in ["form_first", "json_first"] {
        call(
            &executor,
            tool,
            json!({ "photo": BASE64, "caption": "YWJj" }),
        )
        .await;
        let arrived = server.last();
        let kind = arrived.header("content-type").unwrap_or_default();
        assert!(kind.starts_with("multipart/form-data;"), "{tool}: {kind}");
        assert!(contains(&arrived.bytes, BYTES), "{tool}");
        assert!(
            contains(&arrived.bytes, b"name=\"caption\"\r\n\r\nYWJj\r\n"),
            "{tool}"
        );
    }
    call(&executor, "json_or_bytes", json!({ "body": BASE64 })).await;
    assert_eq!(server.last().bytes, BYTES);
    // Where JSON has no file in it, it stays the first choice.
    call(&executor, "link_or_photo", json!({ "caption": "a" })).await;
    assert_eq!(server.last().body, r#"{"caption":"a"}"#);
    // A form without parts has its bytes percent-encoded.
    call(
        &executor,
        "only_form",
        json!({ "photo": BASE64, "caption": "a b" }),
    )
    .await;
    assert_eq!(
        server.last().body,
        "photo=%89PNG%0D%0A%1A%0A%00%FF--x%0D%0A&caption=a%20b"
    );
    let sent = server.all().len();
    let outcome = call(&executor, "only_form", json!({ "photo": "not base64" })).await;
    let failure = outcome.failure().expect("it is no base64");
    assert_eq!(failure.code, FailureCode::ValidationError);
    assert_eq!(server.all().len(), sent);
}

#[tokio::test]
async fn v01_files_of_a_form_are_found_in_choices_parts_and_fields_of_any_name() {
    let server = Server::answering(json!(null)).await;
    let binary = json!({ "type": "string", "format": "binary" });
    let with = |properties: Value| json!({ "type": "object", "properties": properties });
    let choice = json!({ "schema": { "anyOf": [
        with(json!({ "upload": binary, "title": { "type": "string" } })),
        with(json!({ "link": { "type": "string" } })),
    ] } });
    let parts = json!({ "schema": { "allOf": [
        with(json!({ "upload": { "description": "The picture" } })),
        with(json!({ "upload": binary, "title": { "type": "string" } })),
    ] } });
    let any_name = json!({ "schema": { "type": "object", "properties": { "title": { "type": "string" } }, "additionalProperties": binary } });
    let executor = shop(
        &server,
        json!({
            "/a": { "post": { "operationId": "choice", "requestBody": body("multipart/form-data", choice) } },
            "/b": { "post": { "operationId": "parts", "requestBody": body("multipart/form-data", parts) } },
            "/c": { "post": { "operationId": "any_name", "requestBody": body("multipart/form-data", any_name) } },
        }),
        json!({}),
    )
    .await;
    for tool in ["choice", "parts", "any_name"] {
        let value = json!({ "upload": BASE64, "title": "YWJj" });
        let outcome = call(&executor, tool, json!({ "body": value })).await;
        assert_eq!(
            outcome.status(),
            Status::Success,
            "{tool}: {:?}",
            outcome.failure()
        );
        let arrived = server.last();
        let file = b"name=\"upload\"; filename=\"upload\"\r\nContent-Type: application/octet-stream\r\n\r\n";
        assert!(
            contains(&arrived.bytes, &[file, BYTES].concat()),
            "{tool}: {}",
            arrived.body
        );
        assert!(
            contains(&arrived.bytes, b"name=\"title\"\r\n\r\nYWJj\r\n"),
            "{tool}: {}",
            arrived.body
        );
        let sent = server.all().len();
        let wrong = json!({ "body": { "upload": "hello, world", "title": "a" } });
        let outcome = call(&executor, tool, wrong).await;
        let failure = outcome.failure().expect("it is no base64");
        assert!(failure.message.contains("'upload'"), "{}", failure.message);
        assert_eq!(server.all().len(), sent, "{tool}");
        let schema = tool_schema(&executor, tool);
        let words = schema["properties"]["body"].to_string();
        assert!(words.contains("base64"), "{tool}: {words}");
    }
}

#[tokio::test]
async fn v01_files_beside_links_in_one_list_are_each_sent_as_what_they_are() {
    let server = Server::answering(json!(null)).await;
    let file_or_link = json!({ "anyOf": [{ "type": "string", "format": "binary" }, { "type": "string", "format": "uri" }] });
    let media = json!({ "schema": { "type": "object", "properties": { "pictures": { "type": "array", "items": file_or_link } } } });
    let executor = shop(&server, upload(media), json!({})).await;
    let link = "https://example.com/a.png";
    let pictures = json!([format!("data:image/png;base64,{BASE64}"), link]);
    call(&executor, "upload", json!({ "pictures": pictures })).await;
    let arrived = server.last();
    let file = b"name=\"pictures\"; filename=\"pictures\"\r\nContent-Type: image/png\r\n\r\n";
    assert!(
        contains(&arrived.bytes, &[file, BYTES].concat()),
        "{}",
        arrived.body
    );
    let text = format!("name=\"pictures\"\r\n\r\n{link}\r\n");
    assert!(
        contains(&arrived.bytes, text.as_bytes()),
        "{}",
        arrived.body
    );
}

#[tokio::test]
async fn d20_an_argument_under_the_name_of_the_api_is_taken_and_one_that_is_dropped_is_named() {
    let server = Server::answering(json!(null)).await;
    let parameters = json!([
        { "name": "ids[]", "in": "query", "schema": { "type": "array", "items": { "type": "integer" } } },
        { "name": "StartTime>", "in": "query", "schema": { "type": "string" } },
        { "name": "id", "in": "path", "required": true, "schema": { "type": "string" } },
        { "name": "id", "in": "query", "schema": { "type": "string" } },
    ]);
    let schema = json!({ "type": "object", "properties": { "tags[]": { "type": "array", "items": { "type": "string" } }, "note": { "type": "string" } } });
    let executor = shop(
        &server,
        json!({ "/x/{id}": { "post": { "operationId": "find", "parameters": parameters,
            "requestBody": body("application/json", json!({ "schema": schema })) } } }),
        json!({}),
    )
    .await;
    let args = json!({ "id": "a", "ids[]": [1, 2], "StartTime>": "now", "tags[]": ["t"], "unknown": 1, "note[]": "n" });
    let outcome = call(&executor, "find", args).await;
    assert_eq!(outcome.status(), Status::Success, "{:?}", outcome.failure());
    let arrived = server.last();
    assert_eq!(
        arrived.line,
        "POST /v1/x/a?ids[]=1&ids[]=2&StartTime%3E=now"
    );
    assert_eq!(arrived.body, r#"{"tags[]":["t"]}"#);
    assert_eq!(outcome.dropped_arguments, ["unknown", "note[]"]);
    // Both names at once: the one that models know counts, and the other is named.
    let outcome = call(
        &executor,
        "find",
        json!({ "id": "a", "ids": [3], "ids[]": [1] }),
    )
    .await;
    assert_eq!(server.last().line, "POST /v1/x/a?ids[]=3");
    assert_eq!(outcome.dropped_arguments, ["ids[]"]);
    let flat = serde_json::to_value(outcome.flat()).expect("JSON");
    assert_eq!(flat["dropped_arguments"], json!(["ids[]"]));
}
