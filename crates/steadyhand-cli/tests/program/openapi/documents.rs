//! What becomes of the operations of a document: each is a tool, or is listed with the reason.

use std::fs;

use serde_json::{Value, json};
use steadyhand::ToolSource;
use steadyhand_runtime::source::openapi::{Choice, Document, pick};

use super::{names, reading, reading_with, source, tool_names};

/// A document with these paths and nothing else.
pub(crate) fn with_paths(paths: Value) -> Value {
    json!({ "openapi": "3.0.3", "info": { "title": "Shop", "version": "1" }, "paths": paths })
}

/// An operation that says nothing but its id.
fn named(id: &str) -> Value {
    json!({ "operationId": id, "responses": {} })
}

#[test]
fn v06_names_are_what_every_provider_accepts_and_the_same_every_time() {
    let long = "get-the-status-of-the-repository-that-somebody-asked-about-and-more";
    let document = with_paths(json!({
        "/a": { "get": named("repos/get content"), "post": named("repos_get_content"), "put": named("2fa") },
        "/b/{x}": { "get": {}, "post": named("same"), "put": named("same"), "patch": named("日本") },
        "/": { "get": { "operationId": "" } },
        "/long": { "get": named(long) },
    }));
    let reading = reading(document.clone());
    assert_eq!(reading.skipped, []);
    let names = tool_names(&reading);
    assert_eq!(
        names[..names.len() - 1],
        [
            // A valid id keeps its name, although another one would become the same.
            "get_a",
            "repos_get_content",
            "_2fa",
            "get_b_x",
            "same",
            "put_b_x",
            "patch_b_x",
            "get",
        ]
    );
    let last = names[names.len() - 1];
    assert_eq!(last.len(), 64);
    assert!(
        last.starts_with("get-the-status-of-the-repository-that-somebody-asked-ab"),
        "{last}"
    );
    assert_eq!(tool_names(&super::reading(document)), names);
}

#[test]
fn v06_a_prefix_counts_towards_the_length() {
    let choice = Choice {
        prefix: "shop_".to_owned(),
        ..Choice::default()
    };
    let id = "a".repeat(62);
    let reading = reading_with(
        with_paths(json!({ "/a": { "get": named(&id), "put": named("b") } })),
        choice,
    );
    let names = tool_names(&reading);
    assert!(
        names[0].starts_with("shop_aaaa") && names[0].len() == 64,
        "{names:?}"
    );
    assert_eq!(names[1], "shop_b");
}

#[test]
fn no_operation_is_lost_without_a_word() {
    let document = with_paths(json!({
        "/good": { "get": named("good") },
        "/odd": {
            "get": null,
            "post": { "parameters": [{ "$ref": "#/components/parameters/Nobody" }] },
            "put": { "parameters": [{ "name": "x", "in": "body", "schema": {} }] },
            "delete": { "parameters": [{ "in": "query" }] },
            "patch": { "requestBody": { "$ref": "#/components/requestBodies/Nobody" } },
            "trace": {},
        },
        "/elsewhere": { "$ref": "paths/elsewhere.yaml" },
        "x-note": { "get": {} },
    }));
    let reading = reading(document);
    assert_eq!(tool_names(&reading), ["good"]);
    let reasons: Vec<String> = reading
        .skipped
        .iter()
        .map(|skipped| format!("{}: {}", skipped.operation, skipped.reason))
        .collect();
    assert_eq!(
        reasons,
        [
            "* /elsewhere: its path is described elsewhere, and paths/elsewhere.yaml is in another file that was not read",
            "GET /odd: it is no object in the document",
            "POST /odd: a parameter: #/components/parameters/Nobody leads nowhere",
            "PUT /odd: its parameter x is in body; path, query, header and cookie are known",
            "DELETE /odd: a parameter has no name",
            "PATCH /odd: its body: #/components/requestBodies/Nobody leads nowhere",
            "TRACE /odd: TRACE requests are not sent",
        ]
    );
    assert_eq!(reading.operations(), 8);
}

#[test]
fn include_exclude_and_each_name_operations_in_three_ways() {
    let meant = |pattern| {
        pick::matches(
            pattern,
            "POST",
            "/pets/{id}",
            Some("pets/add"),
            "shop_pets_add",
        )
    };
    for pattern in [
        "POST /pets/{id}",
        "post /pets/{id}",
        "POST /pets/*",
        "* /pets/{id}",
        "/pets/{id}",
        "/pets*",
        "pets/add",
        "pets/*",
        "shop_pets_add",
        "shop_*",
        "*",
        "POST *",
        "*_add",
    ] {
        assert!(meant(pattern), "{pattern}");
    }
    for pattern in [
        "GET /pets/{id}",
        "POST /pets",
        "/pets",
        "pets",
        "shop",
        "add",
        "",
        "POST /pets/{id}/x",
    ] {
        assert!(!meant(pattern), "{pattern}");
    }
    let choice = Choice {
        include: vec![
            "GET *".to_owned(),
            "pets_add".to_owned(),
            "GET /pest".to_owned(),
        ],
        exclude: vec!["GET /secret*".to_owned()],
        ..Choice::default()
    };
    let document = with_paths(json!({
        "/pets": { "get": named("pets_list"), "post": named("pets_add"), "delete": named("pets_drop") },
        "/secret/plan": { "get": named("plan") },
    }));
    let reading = reading_with(document, choice);
    assert_eq!(tool_names(&reading), ["pets_list", "pets_add"]);
    assert_eq!((reading.left_out, reading.operations()), (2, 4));
    assert_eq!(
        reading.notes,
        ["\"GET /pest\" means no operation; did you mean \"GET /pets\"?"]
    );
}

#[test]
fn the_server_is_the_operations_the_paths_or_the_documents() {
    let document = json!({
        "openapi": "3.1.0",
        "servers": [{ "url": "https://{region}.example:{port}/v2/", "variables": {
            "region": { "default": "eu" }, "port": { "enum": [8443], "default": 8443 } } }],
        "paths": {
            "/a": { "get": {} },
            "/b": { "servers": [{ "url": "https://b.example" }], "get": {},
                "post": { "servers": [{ "url": "../up" }] }, "put": { "servers": [{ "url": "ftp://b.example" }] },
                "patch": { "servers": [{ "url": "https://{who}.example" }] } },
        },
    });
    let read = |url: Option<&str>| {
        let url = url.map(|url| url.parse().unwrap());
        let document = Document::read(&document.to_string(), url).unwrap();
        steadyhand_runtime::source::openapi::read(&document, &Choice::default(), &mut |_, _| {})
    };
    let reading = read(Some("https://docs.example/api/openapi.json"));
    let urls: Vec<String> = reading
        .tools
        .iter()
        .map(|tool| tool.operation.request(&json!({})).unwrap().url.to_string())
        .collect();
    assert_eq!(
        urls,
        [
            "https://eu.example:8443/v2/a",
            "https://b.example/b",
            "https://docs.example/up/b"
        ]
    );
    let reasons: Vec<&str> = reading
        .skipped
        .iter()
        .map(|skipped| skipped.reason.as_str())
        .collect();
    assert_eq!(
        reasons,
        [
            "its server begins with ftp:, and only http: and https: can be called: set `base`",
            "its server https://{who}.example has a variable without a usual value: set `base`",
        ]
    );
    let from_file = read(None);
    assert_eq!(
        from_file.skipped[0].reason,
        "the document does not say where the service is (its server is \"../up\"): set `base`"
    );
}

#[test]
fn what_is_no_openapi_3_says_what_it_is_and_what_to_do() {
    let fault = |text: &str| Document::read(text, None).map(|_| ()).unwrap_err();
    assert_eq!(
        fault(r#"{"swagger": "2.0", "paths": {}}"#),
        "it is Swagger 2.0, the format before OpenAPI 3: convert it once with `npx swagger2openapi --outfile openapi.json <document>` and name the result in `spec`"
    );
    assert!(fault("swagger: '2.0'\npaths: {}\n").contains("swagger2openapi"));
    assert!(
        fault(r#"{"openapi": "4.0.0"}"#)
            .starts_with("it is OpenAPI 4.0.0; 3.0 and 3.1 can be read")
    );
    assert!(fault("{}").contains("`openapi: 3.…` is missing"));
    assert!(fault("<!doctype html><p>Sign in</p>").contains("it is no OpenAPI document"));
    assert!(fault(r#"{"openapi": "3.0.0", "paths": {"#).starts_with("it is not JSON: it ends"));
    assert!(fault("a: [1\nb: }").starts_with("it is neither JSON nor YAML"));
}

#[tokio::test]
async fn a_document_in_yaml_may_be_spread_over_files_of_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "specs/shop.yaml",
        "openapi: 3.1\nservers: [{url: https://shop.example}]\npaths:\n  /pets:\n    $ref: paths/pets.yaml\n  /stars:\n    get: {operationId: stars, parameters: [{name: n, in: query, schema: {$ref: 'missing.json#/Star'}}]}\n",
    );
    write(
        "specs/paths/pets.yaml",
        "post:\n  operationId: addPet\n  responses: {200: {description: fine}}\n  requestBody:\n    required: true\n    content:\n      application/json:\n        schema: {$ref: '../../common/pet.json#/Pet'}\n",
    );
    write(
        "common/pet.json",
        r##"{"Pet": {"type": "object", "required": ["name"], "properties": {"name": {"$ref": "#/Name"}, "friend": {"$ref": "#/Pet"}}}, "Name": {"type": "string", "minLength": 1}}"##,
    );
    let source = source(json!({ "spec": "specs/shop.yaml" }), folder.path());
    let tools = source.tools().await.unwrap();
    assert_eq!(tools[0].name(), "addPet");
    assert_eq!(
        tools[0].schema()["properties"],
        json!({ "name": { "type": "string", "minLength": 1 }, "friend": { "$ref": "#/$defs/Pet" } })
    );
    assert_eq!(
        tools[0].schema()["$defs"]["Pet"]["properties"]["friend"],
        json!({ "$ref": "#/$defs/Pet" })
    );
    // What cannot be found costs its check, not the tool, and is said.
    assert_eq!(tools[1].name(), "stars");
    assert_eq!(
        source.report().unwrap().notes,
        ["missing.json#/Star is in another file that was not read; anything is accepted there"]
    );
}

#[tokio::test]
async fn a_document_cannot_read_files_that_are_not_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let secret = elsewhere.path().join("secret.json");
    fs::write(&secret, r#"{"type": "string", "description": "hunter2"}"#).unwrap();
    let document = json!({ "openapi": "3.0.0", "servers": [{ "url": "https://shop.example" }], "paths": { "/a": { "get": {
        "parameters": [{ "name": "x", "in": "query", "schema": { "$ref": secret } }] } } } });
    fs::write(folder.path().join("shop.json"), document.to_string()).unwrap();
    let source = source(json!({ "spec": "shop.json" }), folder.path());
    let tools = source.tools().await.unwrap();
    assert_eq!(tools[0].schema()["properties"]["x"], json!({}));
    assert!(source.report().unwrap().notes[0].contains("was not read"));
}

#[tokio::test]
async fn a_document_without_one_usable_operation_is_an_error_that_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.json");
    let load = async |document: Value, settings: Value| {
        fs::write(&path, document.to_string()).unwrap();
        let mut settings = settings;
        settings["spec"] = json!("shop.json");
        let error = source(settings, folder.path())
            .tools()
            .await
            .map(|_| ())
            .unwrap_err()
            .to_string();
        let (place, reason) = error.split_once(".json: ").expect("the file is named");
        assert!(place.starts_with("shop: "), "{place}");
        reason.to_owned()
    };
    let document = with_paths(json!({ "/a": { "get": {} } }));
    assert_eq!(
        load(document.clone(), json!({})).await,
        "none of its 1 operations can be a tool; GET /a: the document does not say where the service is (its server is \"/\"): set `base`"
    );
    assert_eq!(
        load(
            document,
            json!({ "base": "https://shop.example", "include": ["get_b"] })
        )
        .await,
        "`include` and `exclude` leave nothing of its 1 operations; \"get_b\" means no operation; did you mean \"get_a\"?"
    );
    assert_eq!(
        load(with_paths(json!({})), json!({})).await,
        "it has no operations: `paths` is missing or empty"
    );
}

#[tokio::test]
async fn a_file_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(json!({ "spec": "nowhere.yaml" }), folder.path());
    let error = source.tools().await.map(|_| ()).unwrap_err().to_string();
    assert!(
        error.contains("nowhere.yaml cannot be read: there is no such file"),
        "{error}"
    );
    assert!(source.report().is_none());
}

#[tokio::test]
async fn the_operations_behind_the_tools_can_be_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let document = with_paths(
        json!({ "/pets": { "get": named("list"), "post": named("add") }, "/toys": { "get": {} } }),
    );
    fs::write(folder.path().join("shop.json"), document.to_string()).unwrap();
    let settings = json!({ "spec": "shop.json", "base": "https://shop.example", "prefix": "pet_" });
    let source = source(settings, folder.path());
    assert_eq!(source.tools_meant_by("*"), Vec::<String>::new());
    assert_eq!(
        names(&source).await,
        ["pet_list", "pet_add", "pet_get_toys"]
    );
    assert_eq!(source.tools_meant_by("POST /pets"), ["pet_add"]);
    assert_eq!(source.tools_meant_by("GET *"), ["pet_list", "pet_get_toys"]);
    assert_eq!(
        source.tools_meant_by("pet_*"),
        ["pet_list", "pet_add", "pet_get_toys"]
    );
    assert_eq!(source.tools_meant_by("list"), ["pet_list"]);
    let report = source.report().unwrap();
    assert_eq!(report.operations[1].way(), "POST /pets");
    assert_eq!(report.operations[1].operation_id.as_deref(), Some("add"));
}
