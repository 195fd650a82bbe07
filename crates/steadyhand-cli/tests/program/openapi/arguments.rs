//! Which arguments a tool has: its parameters, and its body beside them or as one.

use serde_json::{Value, json};

use super::documents::with_paths;
use super::only_tool;

#[test]
fn parameters_of_a_path_count_for_its_operations_unless_they_say_otherwise() {
    let tool = only_tool(with_paths(json!({ "/pets/{id}/toys/{toy}": {
        "parameters": [
            { "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } },
            { "name": "page", "in": "query", "schema": { "type": "integer" } },
        ],
        "get": { "parameters": [{ "name": "page", "in": "query", "schema": { "type": "string" }, "description": "The page" }] },
    } })));
    assert_eq!(
        tool.schema,
        json!({
            "type": "object",
            "properties": {
                "id": { "type": "integer" },
                // Nobody describes it, but the path needs it.
                "toy": { "type": "string" },
                "page": { "type": "string", "description": "The page" },
            },
            "required": ["id", "toy"],
            "additionalProperties": false,
        })
    );
}

#[test]
fn names_that_clash_are_told_apart_by_their_place() {
    let parameter = |name: &str, place: &str| json!({ "name": name, "in": place, "required": true, "schema": { "type": "string" } });
    let tool = only_tool(with_paths(json!({ "/pets/{id}": { "post": {
        "parameters": [
            parameter("id", "cookie"), parameter("id", "header"), parameter("id", "query"), parameter("id", "path"),
            parameter("filter[name]", "query"), parameter("when<", "query"), parameter("when>", "query"),
        ],
        "requestBody": { "required": true, "content": { "application/json": { "schema": {
            "type": "object", "properties": { "id": { "type": "integer" }, "name": { "type": "string" } } } } } },
    } } })));
    let properties: Vec<&String> = tool.schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(
        properties,
        [
            "id",
            "query_id",
            "filter_name",
            "when_lt",
            "when_gt",
            "header_id",
            "cookie_id",
            "body"
        ]
    );
    assert_eq!(
        tool.schema["properties"]["filter_name"]["description"],
        "Sent as filter[name]."
    );
    let request = tool.operation.request(&json!({
        "id": "1", "query_id": "2", "header_id": "3", "cookie_id": "4", "filter_name": "5", "when_lt": "6", "when_gt": "7",
        "body": { "id": 8 },
    }));
    let request = request.unwrap();
    assert_eq!(
        request.url.as_str(),
        "https://shop.example/v1/pets/1?id=2&filter[name]=5&when%3C=6&when%3E=7"
    );
    assert_eq!(request.headers["id"], "3");
    assert_eq!(request.headers["cookie"], "id=4");
    assert_eq!(request.body.unwrap(), br#"{"id":8}"#);
}

#[test]
fn a_body_stands_beside_the_parameters_only_if_it_is_one_plain_object() {
    let arguments = |required: bool, schema: Value| {
        let tool = only_tool(with_paths(
            json!({ "/pets/{id}": { "post": { "requestBody": {
            "required": required, "content": { "application/json": { "schema": schema } } } } } }),
        ));
        let keys: Vec<String> = tool.schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        (
            keys.join(" "),
            tool.schema["required"].clone(),
            tool.schema["dependentRequired"].clone(),
        )
    };
    let object = |extra: Value| {
        let mut schema = json!({ "type": "object", "required": ["a"], "properties": {
            "a": { "type": "string" }, "b": { "type": "string" }, "made": { "type": "string", "readOnly": true } } });
        for (key, value) in extra.as_object().unwrap() {
            schema[key] = value.clone();
        }
        schema
    };
    let none = Value::Null;
    assert_eq!(
        arguments(true, object(json!({}))),
        ("id a b".into(), json!(["id", "a"]), none.clone())
    );
    // Nothing of an optional body is needed, until a part of it is given.
    assert_eq!(
        arguments(false, object(json!({}))),
        ("id a b".into(), json!(["id"]), json!({ "b": ["a"] }))
    );
    let all_of =
        json!({ "allOf": [object(json!({})), { "properties": { "c": {} }, "required": ["c"] }] });
    assert_eq!(
        arguments(true, all_of),
        ("id a b c".into(), json!(["id", "a", "c"]), none.clone())
    );
    let under = ("id body".to_owned(), json!(["id", "body"]), none);
    assert_eq!(
        arguments(
            true,
            object(json!({ "additionalProperties": { "type": "string" } }))
        ),
        under
    );
    assert_eq!(
        arguments(
            true,
            object(json!({ "discriminator": { "propertyName": "a" } }))
        ),
        under
    );
    assert_eq!(
        arguments(true, object(json!({ "oneOf": [{ "required": ["a"] }] }))),
        under
    );
    assert_eq!(
        arguments(true, object(json!({ "properties": { "id": {} } }))),
        under
    );
    assert_eq!(
        arguments(
            true,
            json!({ "type": "array", "items": { "type": "string" } })
        ),
        under
    );
    assert_eq!(arguments(true, json!({ "type": "object" })), under);
}
