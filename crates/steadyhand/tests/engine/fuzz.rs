//! Any schema, any arguments: never a panic, always an outcome.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use steadyhand::testing::{on_paused_clock, script};
use steadyhand::{Arguments, Call, FailureCode, ToolExecutor, ToolManager};

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|float| json!(float)),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "5",
            "true",
            "{}",
            "[1]",
            "null",
            "3.0",
            "",
            "2026-01-31",
            "\u{0}",
            "é~/"
        ])
        .prop_map(Value::from),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(vec!["a", "b", "c", "password", "x/y", "m~n", ""]).prop_map(str::to_owned),
        1 => ".{0,6}",
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..5).prop_map(object),
        ]
    })
}

/// Schemas that mostly make sense, and some that do not.
fn schema() -> impl Strategy<Value = Value> {
    let types = prop::sample::select(vec![
        json!("string"),
        json!("integer"),
        json!("number"),
        json!("boolean"),
        json!("null"),
        json!("array"),
        json!("object"),
        json!(["string", "null"]),
        json!(["integer", "array"]),
        json!("nonsense"),
    ]);
    let leaf = (types, prop::option::of((keyword(), scalar()))).prop_map(|(kind, rule)| {
        let mut schema = json!({"type": kind});
        if let Some((keyword, value)) = rule {
            schema[keyword] = value;
        }
        schema
    });
    leaf.prop_recursive(4, 24, 4, |inner| {
        let properties = prop::collection::vec((name(), inner.clone()), 0..4).prop_map(object);
        let required = prop::collection::vec(name(), 0..3);
        prop_oneof![
            4 => (properties, required, prop::option::of(any::<bool>())).prop_map(|(properties, required, extra)| {
                let mut schema = json!({"type": "object", "properties": properties, "required": required});
                if let Some(extra) = extra {
                    schema["additionalProperties"] = extra.into();
                }
                schema
            }),
            1 => inner.clone().prop_map(|items| json!({"type": "array", "items": items, "minItems": 1})),
            1 => prop::collection::vec(inner.clone(), 1..3).prop_map(|any| json!({"anyOf": any})),
            1 => prop::collection::vec(inner.clone(), 1..3).prop_map(|one| json!({"oneOf": one})),
            1 => inner.clone().prop_map(|not| json!({"not": not})),
            1 => parts(inner.clone()).prop_map(|all| json!({"allOf": all, "unevaluatedProperties": false})),
            1 => parts(inner.clone()).prop_map(|parts| json!({"if": parts[0], "then": parts[1], "else": parts[2]})),
            1 => parts(inner.clone()).prop_map(|parts| json!({"properties": {"a": parts[0], "b": parts[1]}, "items": parts[2]})),
            1 => inner.prop_map(|def| json!({"$defs": {"d": def}, "properties": {"a": {"$ref": "#/$defs/d"}, "b": {"$ref": "#"}}})),
        ]
    })
}

/// Three parts of a schema, some of which are just a yes or a no, or nothing.
fn parts(inner: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Vec<Value>> {
    let part = prop_oneof![
        3 => inner,
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(json!({})),
        1 => Just(json!({"$ref": "#"})),
    ];
    prop::collection::vec(part, 3)
}

fn keyword() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "enum",
        "const",
        "multipleOf",
        "minItems",
        "uniqueItems",
        "$ref",
        "default",
        "examples",
        "propertyNames",
        "$schema",
        "exclusiveMinimum",
    ])
}

fn arguments() -> impl Strategy<Value = Arguments> {
    prop_oneof![
        4 => prop::collection::vec((name(), json_value()), 0..5).prop_map(|fields| Arguments::Json(object(fields))),
        1 => json_value().prop_map(Arguments::Json),
        1 => json_value().prop_map(|value| Arguments::Text(value.to_string())),
        // A model that was cut off in the middle of a word.
        2 => (json_value(), any::<prop::sample::Index>()).prop_map(|(value, at)| {
            let text = value.to_string();
            let end = text.floor_char_boundary(at.index(text.len() + 1));
            Arguments::Text(text[..end].to_owned())
        }),
        1 => ".{0,40}".prop_map(Arguments::Text),
    ]
}

fn object(fields: Vec<(String, Value)>) -> Value {
    Value::Object(fields.into_iter().collect::<Map<String, Value>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn f07_any_schema_and_any_arguments_give_an_outcome(
        schema in schema(),
        arguments in arguments(),
        coerce in any::<bool>(),
        strict in any::<bool>(),
    ) {
        let outcome = on_paused_clock(async {
            let probe = script("t").answers(1).schema(schema);
            let mut tool = probe.tool();
            if coerce {
                tool = tool.coerce();
            }
            if strict {
                tool = tool.strict();
            }
            let tools = ToolManager::new();
            if let Err(refused) = tools.add(tool) {
                // A schema may be refused, but then with words.
                assert!(refused.to_string().len() > "tool 't' was refused: ".len());
                return None;
            }
            let outcome = ToolExecutor::new(tools).execute(Call::new("t", arguments)).await;
            Some((outcome, probe))
        });
        let Some((outcome, probe)) = outcome else {
            return Ok(());
        };
        match outcome.failure() {
            None => prop_assert_eq!(probe.starts(), 1),
            Some(failure) => {
                prop_assert_eq!(failure.code, FailureCode::ValidationError);
                prop_assert_eq!(probe.starts(), 0);
                prop_assert!(!failure.problems.is_empty());
                prop_assert!(failure.message.starts_with("Invalid parameters: "));
            }
        }
        // Every view can be made and read.
        for view in [serde_json::to_string(&outcome.structured()), serde_json::to_string(&outcome.flat()), serde_json::to_string(&outcome.message())] {
            prop_assert!(serde_json::from_str::<Value>(&view.unwrap()).is_ok());
        }
    }

    #[test]
    fn f07_counting_the_work_of_a_check_does_not_change_its_verdict(schema in schema(), value in json_value()) {
        let options = jsonschema::options().should_validate_formats(true);
        let options = match schema.get("$schema") {
            None => options.with_draft(jsonschema::Draft::Draft202012),
            Some(_) => options,
        };
        let plain = options.build(&schema);
        let tools = ToolManager::new();
        let added = tools.add(script("t").answers(1).schema(schema).tool().strict());
        if let (Ok(plain), Ok(())) = (plain, added) && value.is_object() {
            let checked = tools.check("t", Arguments::Json(value.clone())).expect("the tool is there");
            prop_assert_eq!(checked.is_ok(), plain.is_valid(&value), "{}", value);
        }
    }
}
