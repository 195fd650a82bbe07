//! Arguments against the schema: what is missing, of the wrong type, or too much.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use steadyhand::testing::script;
use steadyhand::{Effect, Outcome, Tool, ToolError};
use tracing::Level;

use crate::logs;
use crate::support::{code, failure, flat, run, taking};

/// A schema with these properties, none of them required.
pub(crate) fn properties(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// Runs the tool and says whether it was started; a failure must be `VALIDATION_ERROR` without effect.
pub(crate) async fn accepts(schema: &Value, args: Value) -> bool {
    let tool = taking(schema.clone());
    let outcome = run(tool.tool(), args.clone()).await;
    if !outcome.is_success() {
        assert_eq!(code(&outcome), "VALIDATION_ERROR", "{args}");
        assert_eq!(failure(&outcome).effect, Effect::None, "{args}");
        assert_eq!(outcome.attempts, 0, "{args}");
    }
    assert_eq!(tool.starts(), usize::from(outcome.is_success()), "{args}");
    outcome.is_success()
}

/// The places of all violations, in order of the text.
pub(crate) fn places(outcome: &Outcome) -> Vec<&str> {
    let problems = failure(outcome).problems.iter();
    let violations = problems.filter(|problem| problem.code != "example");
    let mut places: Vec<&str> = violations.map(|problem| problem.at.as_str()).collect();
    places.sort_unstable();
    places
}

/// A Rust enum whose variants are documented: schemars writes it as `oneOf` of `const`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Documented {
    /// Water boils at 100
    Celsius,
    /// Water boils at 373
    Kelvin,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Plain {
    Celsius,
    Kelvin,
}

#[derive(Deserialize, JsonSchema)]
struct Required<T> {
    #[allow(dead_code, reason = "read by serde")]
    unit: T,
}

// D6: extra parameters
#[tokio::test(start_paused = true)]
async fn d06_strict_enforces_the_schema_to_the_letter() {
    let schema = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false});
    let tool = script("t").schema(schema);
    let outcome = run(tool.tool().strict(), json!({"a": 1, "extra": 2})).await;
    assert_eq!((code(&outcome), tool.starts()), ("VALIDATION_ERROR", 0));
    assert!(
        failure(&outcome).message.contains("'extra'"),
        "{}",
        failure(&outcome)
    );
    assert!(
        run(tool.tool().strict(), json!({"a": 1}))
            .await
            .is_success()
    );
}

#[tokio::test(start_paused = true)]
async fn d06_dropping_what_is_extra_does_not_hide_what_is_wrong() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": false,
    });
    let outcome = run(
        script("t").schema(schema).tool(),
        json!({"a": "x", "extra": 2}),
    )
    .await;
    let message = &failure(&outcome).message;
    assert!(
        message.contains("missing 'b'") && message.contains("'a' must be integer"),
        "{message}"
    );
    assert!(!message.contains("extra"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn f03_a_missing_parameter_is_named_and_the_tool_is_not_run() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "integer"},
            "address": {
                "type": "object",
                "properties": {"street": {"type": "string"}},
                "required": ["street"],
            },
        },
        "required": ["a", "b"],
    });
    for (args, error) in [
        (json!({"a": 1}), "Invalid parameters: missing 'b'"),
        (json!({"b": 1}), "Invalid parameters: missing 'a'"),
        (json!({}), "Invalid parameters: missing 'a', 'b'"),
        (json!(null), "Invalid parameters: missing 'a', 'b'"),
        (
            json!({"a": 1, "b": 2, "address": {}}),
            "Invalid parameters: missing 'address.street'",
        ),
    ] {
        let tool = taking(schema.clone());
        let outcome = run(tool.tool(), args).await;
        assert_eq!(flat(&outcome)["error"], error);
        assert_eq!(code(&outcome), "VALIDATION_ERROR");
        assert_eq!(failure(&outcome).effect, Effect::None);
        assert_eq!((tool.starts(), outcome.attempts), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn f03_all_missing_parameters_are_named_however_many() {
    let names: Vec<String> = (0..12).map(|number| format!("p{number:02}")).collect();
    let schema = json!({"type": "object", "required": names});
    let outcome = run(taking(schema).tool(), json!({})).await;
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    let expected = format!("Invalid parameters: missing {}", quoted.join(", "));
    assert_eq!(failure(&outcome).message, expected);
}

#[tokio::test(start_paused = true)]
async fn f05_each_type_takes_its_own_values_and_no_others() {
    let values = [
        ("integer", json!(3)),
        ("integer", json!(3.0)),
        ("integer", json!(-7)),
        ("number", json!(3.5)),
        ("string", json!("3")),
        ("boolean", json!(true)),
        ("array", json!([1])),
        ("object", json!({"k": 1})),
        ("null", json!(null)),
    ];
    for wanted in [
        "integer", "number", "string", "boolean", "array", "object", "null",
    ] {
        let schema = properties(json!({"p": {"type": wanted}}));
        for (actual, value) in &values {
            let fits = wanted == *actual || (wanted == "number" && *actual == "integer");
            assert_eq!(
                accepts(&schema, json!({"p": value})).await,
                fits,
                "{value} as {wanted}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn f05_a_union_takes_each_of_its_types() {
    let schema = properties(json!({"p": {"type": ["integer", "null"]}}));
    for (value, fits) in [
        (json!(1), true),
        (json!(null), true),
        (json!(1.5), false),
        (json!("1"), false),
    ] {
        assert_eq!(accepts(&schema, json!({"p": value})).await, fits, "{value}");
    }
    let outcome = run(taking(schema).tool(), json!({"p": true})).await;
    for word in ["'p'", "integer", "null", "got boolean"] {
        assert!(
            failure(&outcome).message.contains(word),
            "{word}: {}",
            failure(&outcome)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn f05_the_message_names_parameter_expected_and_actual_type() {
    for (wanted, value, expected, actual) in [
        (json!("integer"), json!("5"), "integer", "string"),
        (json!("integer"), json!(5.5), "integer", "number"),
        (json!("string"), json!(5), "string", "integer"),
        (json!("boolean"), json!(null), "boolean", "null"),
        (json!("array"), json!({}), "array", "object"),
        (json!("object"), json!([]), "object", "array"),
    ] {
        let schema = properties(json!({"amount": {"type": wanted}}));
        let outcome = run(taking(schema).tool(), json!({"amount": value})).await;
        let message = format!("Invalid parameters: 'amount' must be {expected}, got {actual}");
        assert_eq!(failure(&outcome).message, message);
    }
}

#[tokio::test(start_paused = true)]
async fn f06_a_value_outside_an_enum_fails_and_the_options_are_listed() {
    let schema = properties(json!({"unit": {"type": "string", "enum": ["celsius", "kelvin"]}}));
    assert!(accepts(&schema, json!({"unit": "kelvin"})).await);
    assert!(!accepts(&schema, json!({"unit": "Kelvin"})).await);
    let outcome = run(taking(schema).tool(), json!({"unit": "rankine"})).await;
    let message = &failure(&outcome).message;
    for word in ["'unit'", "\"celsius\"", "\"kelvin\"", "\"rankine\""] {
        assert!(message.contains(word), "{word} in {message}");
    }
    assert_eq!(places(&outcome), ["/unit"]);
}

#[tokio::test(start_paused = true)]
async fn f06_the_options_of_a_rust_enum_are_listed_too() {
    async fn nothing<T>(_: Required<T>) -> Result<(), ToolError> {
        Ok(())
    }
    for (case, tool) in [
        ("plain", Tool::function("t", "d", nothing::<Plain>)),
        (
            "optional",
            Tool::function("t", "d", nothing::<Option<Plain>>),
        ),
        (
            "documented",
            Tool::function("t", "d", nothing::<Documented>),
        ),
        (
            "documented and optional",
            Tool::function("t", "d", nothing::<Option<Documented>>),
        ),
    ] {
        let outcome = run(tool, json!({"unit": "rankine"})).await;
        let message = &failure(&outcome).message;
        assert!(
            message.contains("celsius") && message.contains("kelvin"),
            "{case}: {message}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn f08_extra_parameters_pass_unless_the_schema_forbids_them_and_never_fail() {
    let open = properties(json!({"a": {}}));
    let closed = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false});
    let bare = json!({"type": "object", "additionalProperties": false});
    let empty = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let unevaluated = json!({
        "type": "object",
        "allOf": [{"properties": {"a": {}}}],
        "unevaluatedProperties": false,
    });
    let sent = json!({"x": 0, "a": 1, "y": {"z": 2}});
    for (schema, reaches) in [
        (open, sent.clone()),
        (closed, json!({"a": 1})),
        (unevaluated, json!({"a": 1})),
        (empty, json!({})),
        (bare, json!({})),
    ] {
        let tool = taking(schema.clone());
        let outcome = run(tool.tool(), sent.clone()).await;
        assert!(outcome.is_success(), "{schema}: {}", failure(&outcome));
        assert_eq!(tool.seen()[0].args, reaches);
    }
}

#[tokio::test(start_paused = true)]
async fn f08_dropped_parameters_are_logged_at_debug() {
    let logs = logs::capture();
    let schema = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false});
    assert!(
        run(taking(schema).tool(), json!({"extra": 1}))
            .await
            .is_success()
    );
    let line = logs.only(Level::DEBUG, "dropped parameters the schema does not allow");
    assert!(line.field("surplus").contains("extra"), "{line:?}");
}

#[tokio::test(start_paused = true)]
async fn f08_what_is_nested_is_not_extra() {
    let inner = json!({"type": "object", "additionalProperties": false});
    let schema = properties(json!({"p": inner}));
    assert!(!accepts(&schema, json!({"p": {"extra": 1}})).await);
}

#[tokio::test(start_paused = true)]
async fn f08_an_extra_parameter_fails_no_call_where_alternatives_forbid_it() {
    let alternative = |name: &str| json!({"properties": {name: {}}, "required": [name], "additionalProperties": false});
    let schema = json!({"type": "object", "oneOf": [alternative("a"), alternative("b")]});
    assert!(accepts(&schema, json!({"a": 1})).await);
    assert!(accepts(&schema, json!({"a": 1, "extra": 1})).await);
}
