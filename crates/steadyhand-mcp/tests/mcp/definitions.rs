//! Tools as servers list them: one odd tool costs itself, and what came is kept (SPEC D7, D14, V06).

use serde_json::{Value, json};
use steadyhand_mcp::definition::{Definition, Unusable, read};

fn usable(raw: Value) -> Definition {
    read(raw, 0).expect("a usable tool")
}

fn unusable(raw: Value) -> (String, String) {
    let Unusable { name, reason, .. } = read(raw, 6).expect_err("an unusable tool");
    (name, reason)
}

fn tool(more: Value) -> Value {
    let mut tool = json!({
        "name": "echo", "description": "Echoes", "inputSchema": {"type": "object"}
    });
    let fields = more.as_object().unwrap().clone();
    tool.as_object_mut().unwrap().extend(fields);
    tool
}

#[test]
fn v05_everything_that_came_is_kept_in_its_order() {
    let raw = r#"{"title":"Echo","name":"echo","execution":{"taskSupport":"optional"},"inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"z":{},"a":{}}},"icons":[{"src":"x","sizes":"48x48"}],"vendor":1,"annotations":{"readOnlyHint":true,"own":2},"_meta":{"b":1,"a":2},"description":"Echoes","outputSchema":true}"#;
    let definition = usable(serde_json::from_str(raw).unwrap());
    assert_eq!(serde_json::to_string(&definition.raw).unwrap(), raw);
    assert_eq!(definition.name, "echo");
    assert_eq!(definition.description, "Echoes");
    assert_eq!(definition.title.as_deref(), Some("Echo"));
    assert_eq!(definition.schema, definition.raw["inputSchema"]);
    assert!(definition.described);
    assert!(definition.notes.is_empty());
    // What was written to disk is read as the same.
    assert_eq!(usable(Value::Object(definition.raw.clone())), definition);
}

#[test]
fn d07_only_a_plain_yes_makes_a_tool_safe_to_repeat() {
    for (annotations, safe) in [
        (json!({"readOnlyHint": true}), true),
        (json!({"idempotentHint": true}), true),
        (json!({"readOnlyHint": false, "idempotentHint": true}), true),
        (json!({"readOnlyHint": false}), false),
        (json!({"readOnlyHint": "true"}), false),
        (json!({"readOnlyHint": 1, "idempotentHint": null}), false),
        (json!({"destructiveHint": false}), false),
        (json!("read only"), false),
        (json!(null), false),
        (json!({}), false),
    ] {
        let definition = usable(tool(json!({"annotations": annotations})));
        assert_eq!(definition.safe_to_repeat(), safe, "{annotations}");
    }
    assert!(!usable(tool(json!({}))).safe_to_repeat());
}

#[test]
fn d07_what_a_tool_destroys_is_known_only_if_its_server_says_so() {
    let destructive =
        |hint: Value| usable(tool(json!({"annotations": {"destructiveHint": hint}}))).destructive;
    assert_eq!(destructive(json!(true)), Some(true));
    assert_eq!(destructive(json!(false)), Some(false));
    assert_eq!(destructive(json!("yes")), None);
    assert_eq!(usable(tool(json!({}))).destructive, None);
}

#[test]
fn d14_without_a_description_the_title_or_the_name_serves_with_a_note() {
    for (more, description, note) in [
        (
            json!({"description": null, "title": "Say it again"}),
            "Say it again",
            "it has no description; its title serves as one",
        ),
        (
            json!({"description": " ", "annotations": {"title": "Again"}}),
            "Again",
            "it has no description; its title serves as one",
        ),
        (
            json!({"description": 3}),
            "echo",
            "it has no description; its name serves as one",
        ),
    ] {
        let definition = usable(tool(more));
        assert_eq!(definition.description, description);
        assert!(!definition.described);
        assert_eq!(definition.notes, [note]);
    }
}

#[test]
fn d14_a_description_without_end_is_cut_with_a_note() {
    let definition = usable(tool(json!({"description": "ä".repeat(100_000)})));
    assert!(definition.description.len() < 40_000);
    assert_eq!(
        definition.notes,
        ["its description of 200000 bytes is cut to 32768"]
    );
    assert_eq!(
        definition.raw["description"].as_str().unwrap().len(),
        200_000
    );
}

#[test]
fn v06_a_tool_without_a_schema_takes_anything_with_a_note() {
    for schema in [None, Some(Value::Null)] {
        let mut raw = tool(json!({}));
        match schema {
            None => drop(raw.as_object_mut().unwrap().remove("inputSchema")),
            Some(null) => raw["inputSchema"] = null,
        }
        let definition = usable(raw.clone());
        assert_eq!(definition.schema, json!({"type": "object"}));
        assert_eq!(
            definition.notes,
            ["it has no inputSchema; any arguments are passed on"]
        );
        assert_eq!(Value::Object(definition.raw), raw);
    }
}

#[test]
fn v06_a_schema_without_a_type_is_one_of_an_object() {
    let definition = usable(tool(
        json!({"inputSchema": {"properties": {"a": {"type": "string"}}}}),
    ));
    assert_eq!(
        definition.schema.to_string(),
        r#"{"type":"object","properties":{"a":{"type":"string"}}}"#
    );
    assert_eq!(
        definition.notes,
        ["its inputSchema has no type; taken as an object"]
    );
}

#[test]
fn v06_a_bad_schema_makes_the_tool_unusable_and_says_why() {
    for (schema, part) in [
        (json!(true), "its inputSchema is true, not an object"),
        (
            json!("object"),
            "its inputSchema is \"object\", not an object",
        ),
        (json!([]), "its inputSchema is [], not an object"),
        (
            json!({"type": "string"}),
            "must have \"type\": \"object\" at the top",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "strnig"}}}),
            "strnig",
        ),
        (json!({"type": "object", "required": "a"}), "required"),
        (
            json!({"type": "object", "$ref": "https://127.0.0.1:1/never-fetched.json"}),
            "never-fetched",
        ),
    ] {
        let (name, reason) = unusable(tool(json!({"inputSchema": schema})));
        assert_eq!(name, "echo");
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn v06_a_tool_without_a_proper_name_is_unusable_and_named_by_its_place() {
    for (raw, reason) in [
        (json!(null), "it is no object"),
        (json!("echo"), "it is no object"),
        (json!([]), "it is no object"),
        (json!({}), "it has no name"),
        (json!({"name": null}), "it has no name"),
        (json!({"name": ""}), "its name is empty"),
        (json!({"name": "  "}), "its name is empty"),
        (json!({"name": 7}), "its name is no string"),
    ] {
        assert_eq!(
            unusable(raw),
            ("tool 7 of the list".to_owned(), reason.to_owned())
        );
    }
    let (name, reason) = unusable(tool(json!({"name": "é".repeat(200)})));
    assert_eq!(name, format!("{}…", "é".repeat(60)));
    assert_eq!(reason, "its name is longer than 256 bytes");
    assert_eq!(
        usable(tool(json!({"name": "é".repeat(128)}))).name.len(),
        256
    );
}

#[test]
fn v06_what_is_said_of_a_bad_schema_is_bounded() {
    let long = "x".repeat(100_000);
    for schema in [
        json!(long),
        json!({"type": "object", "properties": {"a": {"type": long}}}),
        json!({"type": long}),
        json!({"type": "object", "$ref": format!("#/{long}")}),
    ] {
        let (_, reason) = unusable(tool(json!({"inputSchema": schema})));
        assert!(reason.len() <= 1_000, "{} bytes", reason.len());
    }
}
