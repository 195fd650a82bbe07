//! Schemas of documents become JSON Schema 2020-12 that the engine compiles and checks with.

use serde_json::{Value, json};
use steadyhand::{ToolManager, ToolSource};

use super::documents::with_paths;
use super::{Server, call, executor, only_tool, source};

/// What becomes of one schema.
fn converted(schema: Value) -> Value {
    converted_by("3.0.3", schema)
}

fn converted_by(version: &str, schema: Value) -> Value {
    let mut document = with_paths(json!({ "/a": { "get": { "parameters": [
        { "name": "x", "in": "query", "schema": schema }] } } }));
    document["openapi"] = json!(version);
    only_tool(document).schema["properties"]["x"].clone()
}

#[test]
fn f07_what_only_openapi_3_0_knows_becomes_json_schema() {
    let pairs = [
        (
            json!({ "type": "string", "nullable": true }),
            json!({ "type": ["string", "null"] }),
        ),
        (
            json!({ "type": "string", "nullable": true, "enum": ["a"] }),
            json!({ "type": ["string", "null"], "enum": ["a", null] }),
        ),
        (
            json!({ "nullable": true, "allOf": [{ "type": "string" }], "description": "d" }),
            json!({ "anyOf": [{ "allOf": [{ "type": "string" }] }, { "type": "null" }], "description": "d" }),
        ),
        (
            json!({ "type": "integer", "minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false }),
            json!({ "type": "integer", "maximum": 9, "exclusiveMinimum": 1 }),
        ),
        (
            json!({ "type": "string", "example": "Rex" }),
            json!({ "type": "string", "examples": ["Rex"] }),
        ),
        (
            json!({ "type": "array" }),
            json!({ "type": "array", "items": {} }),
        ),
        (json!({ "type": "file" }), json!({ "type": "string" })),
        (
            json!({ "type": "object", "xml": {}, "x-internal": 1, "externalDocs": {}, "writeOnly": true,
                "properties": { "id": { "type": "integer", "readOnly": true }, "key": { "type": "string", "writeOnly": true } },
                "required": ["id", "key"] }),
            json!({ "type": "object", "properties": { "key": { "type": "string" } }, "required": ["key"] }),
        ),
        // A discriminator decides; as plain schemas several may fit.
        (
            json!({ "oneOf": [{ "type": "object" }, { "type": "object" }], "discriminator": { "propertyName": "kind" } }),
            json!({ "anyOf": [{ "type": "object" }, { "type": "object" }] }),
        ),
    ];
    for (given, expected) in pairs {
        assert_eq!(converted(given.clone()), expected, "{given}");
    }
}

#[test]
fn f07_what_is_wrong_in_a_schema_costs_its_keyword_only() {
    let pairs = [
        (
            json!({ "type": "any", "required": true, "minLength": -1, "maxLength": "9", "enum": [] }),
            json!({}),
        ),
        (
            json!({ "type": "string", "pattern": "(unclosed" }),
            json!({ "type": "string" }),
        ),
        (
            json!({ "type": "string", "enum": [1, true, "a"], "default": 1.5 }),
            json!({ "type": "string", "enum": ["1", "true", "a"], "default": "1.5" }),
        ),
        (
            json!({ "type": "array", "items": [{ "type": "string" }] }),
            json!({ "type": "array", "prefixItems": [{ "type": "string" }] }),
        ),
        (
            json!({ "type": "object", "properties": { "a": 1, "b": null } }),
            json!({ "type": "object", "properties": { "a": {}, "b": {} } }),
        ),
        (
            json!({ "$ref": "#/components/schemas/Nobody", "description": "who?" }),
            json!({ "description": "who?" }),
        ),
        (json!([]), json!({})),
    ];
    for (given, expected) in pairs {
        assert_eq!(converted(given.clone()), expected, "{given}");
    }
}

#[test]
fn f07_openapi_3_1_is_json_schema_already() {
    let schema = json!({ "type": ["string", "null"], "const": "a", "examples": ["a"], "exclusiveMinimum": 1,
        "if": { "minLength": 3 }, "then": { "pattern": "^a" }, "$comment": "no", "$id": "x" });
    let mut expected = schema.clone();
    expected
        .as_object_mut()
        .unwrap()
        .retain(|key, _| !key.starts_with('$'));
    assert_eq!(converted_by("3.1.0", schema), expected);
}

#[test]
fn f07_references_become_defs_and_circles_stay_circles() {
    let mut document = with_paths(
        json!({ "/a": { "post": { "requestBody": { "$ref": "#/components/requestBodies/Node" } } } }),
    );
    document["components"] = json!({
        "requestBodies": { "Node": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Node" } } } } },
        "schemas": {
            "Node": { "type": "object", "properties": {
                "children": { "type": "array", "items": { "$ref": "#/components/schemas/Node" } },
                "color": { "$ref": "#/components/schemas/Color" },
                "default": { "$ref": "#/components/schemas/odd~1name" },
            } },
            "Color": { "type": "string", "enum": ["red"] },
            "odd/name": { "type": "object", "properties": { "node": { "$ref": "#/components/schemas/Node" } } },
        },
    });
    let schema = only_tool(document).schema;
    let node = json!({ "type": "object", "properties": {
        "children": { "type": "array", "items": { "$ref": "#/$defs/Node" } },
        "color": { "type": "string", "enum": ["red"] },
        "default": { "$ref": "#/$defs/odd1name" },
    } });
    assert_eq!(schema["properties"], node["properties"]);
    assert_eq!(
        schema["$defs"],
        json!({ "Node": node, "odd1name": { "type": "object", "properties": { "node": { "$ref": "#/$defs/Node" } } } })
    );
}

/// A document whose one operation takes this body, with these schemas.
fn with_schemas(body: Value, schemas: Value) -> Value {
    let mut document = with_paths(
        json!({ "/a": { "post": { "operationId": "send", "requestBody": {
        "required": true, "content": { "application/json": { "schema": body } } } } } }),
    );
    document["components"] = json!({ "schemas": schemas });
    document
}

/// Sends arguments through the engine; whether they are acceptable.
async fn accepts(document: &Value, args: Value) -> bool {
    let server = Server::answering(json!("fine")).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shop.json"), document.to_string()).unwrap();
    let source = source(
        json!({ "spec": "shop.json", "base": server.url }),
        folder.path(),
    );
    let outcome = call(&executor(&source).await, "send", args).await;
    match outcome.failure() {
        None => true,
        Some(failure) => {
            assert_eq!(failure.code.as_str(), "VALIDATION_ERROR", "{failure:?}");
            assert_eq!(server.all(), [], "nothing is sent that does not fit");
            false
        }
    }
}

#[tokio::test]
async fn f07_a_parent_that_lists_its_children_and_children_that_extend_it_can_be_checked() {
    // The common way to write inheritance; taken by the letter, no validator ever gets out of it.
    let document = with_schemas(
        json!({ "$ref": "#/components/schemas/Pet" }),
        json!({
            "Pet": { "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string" } },
                "discriminator": { "propertyName": "kind" },
                "oneOf": [{ "$ref": "#/components/schemas/Dog" }, { "$ref": "#/components/schemas/Cat" }] },
            "Dog": { "allOf": [{ "$ref": "#/components/schemas/Pet" }, { "type": "object", "required": ["bark"], "properties": { "bark": { "type": "boolean" } } }] },
            "Cat": { "allOf": [{ "$ref": "#/components/schemas/Pet" }, { "type": "object", "required": ["lives"], "properties": { "lives": { "type": "integer" } } }] },
        }),
    );
    assert!(
        accepts(
            &document,
            json!({ "body": { "kind": "dog", "bark": true } })
        )
        .await
    );
    assert!(accepts(&document, json!({ "body": { "kind": "cat", "lives": 9 } })).await);
    assert!(
        !accepts(
            &document,
            json!({ "body": { "kind": "cat", "lives": "nine" } })
        )
        .await
    );
    assert!(!accepts(&document, json!({ "body": { "bark": true } })).await);
}

#[tokio::test]
async fn f07_schemas_that_are_nothing_but_each_other_do_not_hang_or_crash() {
    let document = with_schemas(
        json!({ "oneOf": [{ "$ref": "#/components/schemas/A" }] }),
        json!({
            "A": { "$ref": "#/components/schemas/B" },
            "B": { "allOf": [{ "$ref": "#/components/schemas/A" }, { "$ref": "#/components/schemas/B" }] },
        }),
    );
    assert!(accepts(&document, json!({ "body": {} })).await);
    assert!(accepts(&long_chain(300), json!({ "body": {} })).await);
    // One that takes too long to compile is refused, and all other tools go on.
    let schema = only_tool(long_chain(5_000)).schema;
    let fault = steadyhand::check_schema(&schema).expect_err("it is refused");
    assert!(fault.contains("takes too long"), "{fault}");
}

/// Schemas that lead to each other one by one, named from the end so that no order of walking helps.
fn long_chain(length: usize) -> Value {
    let mut schemas = serde_json::Map::new();
    for step in 0..length {
        let next = format!("#/components/schemas/S{}", step + 1);
        schemas.insert(
            format!("S{step}"),
            json!({ "allOf": [{ "$ref": next }], "properties": { "a": { "$ref": next } } }),
        );
    }
    schemas.insert(
        format!("S{length}"),
        json!({ "type": "object", "properties": {} }),
    );
    let all: Vec<Value> = (0..length)
        .rev()
        .map(|step| json!({ "$ref": format!("#/components/schemas/S{step}") }))
        .collect();
    with_schemas(json!({ "anyOf": all }), schemas.into())
}

#[test]
fn v06_a_schema_that_would_be_too_large_loses_words_first_and_depth_last() {
    let words = "very ".repeat(2_000);
    let mut schemas = serde_json::Map::new();
    for part in 0..60 {
        let next = format!("#/components/schemas/P{}", part + 1);
        schemas.insert(format!("P{part}"), json!({ "type": "object", "description": words, "properties": { "next": { "$ref": next } } }));
    }
    schemas.insert(
        "P60".to_owned(),
        json!({ "type": "object", "properties": {} }),
    );
    let document = with_schemas(
        json!({ "$ref": "#/components/schemas/P0" }),
        schemas.clone().into(),
    );
    let schema = only_tool(document).schema;
    assert!(schema.to_string().len() < 250_000);
    let manager = ToolManager::new();
    let tool = steadyhand::Tool::new("send", "d", schema, std::sync::Arc::new(Never));
    assert_eq!(manager.add_all([tool]), []);
}

struct Never;

impl steadyhand::Handler for Never {
    fn run<'a>(
        &'a self,
        _: &'a steadyhand::Invocation<'a>,
    ) -> futures_util::future::BoxFuture<'a, Result<steadyhand::Output, steadyhand::ToolError>>
    {
        unreachable!("only its definition is looked at")
    }
}

#[tokio::test]
async fn f03_what_the_document_requires_is_asked_for_before_anything_is_sent() {
    let server = Server::answering(json!("fine")).await;
    let folder = tempfile::tempdir().unwrap();
    let document = with_schemas(
        json!({ "type": "object", "required": ["name"], "properties": { "name": { "type": "string" }, "age": { "type": "integer" } } }),
        json!({}),
    );
    std::fs::write(folder.path().join("shop.json"), document.to_string()).unwrap();
    let source = source(
        json!({ "spec": "shop.json", "base": server.url }),
        folder.path(),
    );
    let executor = executor(&source).await;
    let outcome = call(&executor, "send", json!({ "age": 3 })).await;
    assert_eq!(
        outcome.failure().unwrap().message,
        "Invalid parameters: missing 'name'"
    );
    assert_eq!(server.all(), []);
    assert!(source.tools().await.is_ok());
}
