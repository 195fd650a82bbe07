//! SPEC section 1, executing one call: rows F01 to F10 and F12 to F15.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use steadyhand::source::internal::InternalHandlers;
use steadyhand::source::{builtin, definition};
use steadyhand::testing::{Script, script};
use steadyhand::{Call, Effect, Outcome, Tool, ToolError, ToolManager};
use tracing::Level;

use crate::logs;
use crate::support::{
    ON_PURPOSE, call, code, executor, failure, flat, ms, once, run, run_once, secs,
};

/// A scripted tool that takes what the schema allows.
fn taking(schema: Value) -> Script {
    script("t").schema(schema).answers("ran")
}

/// A schema with these properties, none of them required.
fn properties(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// Runs the tool and says whether it was started; a failure must be `VALIDATION_ERROR` without effect.
async fn accepts(schema: &Value, args: Value) -> bool {
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
fn places(outcome: &Outcome) -> Vec<&str> {
    let problems = failure(outcome).problems.iter();
    let violations = problems.filter(|problem| problem.code != "example");
    let mut places: Vec<&str> = violations.map(|problem| problem.at.as_str()).collect();
    places.sort_unstable();
    places
}

fn from_definition(implementation: Value) -> Tool {
    let definition = json!({
        "name": "t",
        "description": "A tool from a definition",
        "schema": {"type": "object", "properties": {"q": {"type": "string"}}},
        "implementation": implementation,
    });
    definition::tool(&definition, &InternalHandlers::new()).expect("a good definition")
}

#[tokio::test(start_paused = true)]
async fn f01_a_valid_call_is_executed_and_gives_the_flat_view() {
    let tool = script("answer").answers(json!({"n": 42})).taking(ms(250));
    let outcome = run(tool.tool(), json!({"any": "thing"})).await;
    let expected = json!({
        "success": true, "result": {"n": 42}, "tool_name": "answer", "execution_time_ms": 250.0
    });
    assert_eq!(flat(&outcome), expected);
    assert_eq!(tool.seen()[0].args, json!({"any": "thing"}));
}

#[tokio::test(start_paused = true)]
async fn f01_each_implementation_type_runs_its_own_way() {
    let internal = InternalHandlers::new();
    internal.register("greet", |args: Value| async move {
        Ok::<Value, ToolError>(json!(format!("hello {}", args["q"])))
    });
    for (kind, implementation, expected) in [
        (
            "mock",
            json!({"type": "mock", "mock_response": [1, 2]}),
            json!([1, 2]),
        ),
        (
            "builtin",
            json!({"type": "builtin", "handler": "echo"}),
            json!({"echo": {"q": "x"}}),
        ),
        (
            "internal",
            json!({"type": "internal", "handler": "greet"}),
            json!("hello \"x\""),
        ),
    ] {
        let definition = json!({"name": "t", "description": "d", "implementation": implementation});
        let tool = definition::tool(&definition, &internal).unwrap();
        assert_eq!(tool.kind(), kind);
        let outcome = run(tool, json!({"q": "x"})).await;
        assert_eq!(flat(&outcome)["result"], expected, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn f02_an_unknown_tool_is_named_and_nothing_else_is_said_in_the_text() {
    let outcome = executor([]).execute(once("nowhere")).await;
    let expected = json!({
        "success": false,
        "error": "Tool 'nowhere' not found",
        "effect": "none",
        "tool_name": "nowhere",
        "execution_time_ms": 0.0,
    });
    assert_eq!(flat(&outcome), expected);
    assert_eq!(code(&outcome), "TOOL_NOT_FOUND");
    assert!(!failure(&outcome).retryable);
    assert_eq!(failure(&outcome).effect, Effect::None);
}

#[tokio::test(start_paused = true)]
async fn f02_near_names_go_into_their_own_field() {
    let tools = ["get_weather", "get_time", "send_mail"];
    let executor = executor(tools.map(|name| script(name).tool()));
    for (asked, suggested) in [
        ("getWeather", "get_weather"),
        ("get_wether", "get_weather"),
        ("GET-TIME", "get_time"),
        ("sendmail", "send_mail"),
    ] {
        let outcome = executor.execute(once(asked)).await;
        assert_eq!(flat(&outcome)["error"], format!("Tool '{asked}' not found"));
        assert_eq!(flat(&outcome)["suggestions"][0], suggested, "{asked}");
    }
    assert_eq!(
        flat(&executor.execute(once("zzz")).await).get("suggestions"),
        None
    );
}

#[tokio::test(start_paused = true)]
async fn f02_no_name_makes_anything_panic() {
    let executor = executor([script("t").tool()]);
    for name in ["'", "\"", "\0", "🔧", "t ", &"x".repeat(10_000)] {
        let outcome = executor.execute(once(name)).await;
        assert_eq!(
            failure(&outcome).message,
            format!("Tool '{name}' not found")
        );
    }
    // No name at all asks for no tool: that is no call.
    for name in ["", " "] {
        let outcome = executor.execute(once(name)).await;
        assert_eq!(code(&outcome), "VALIDATION_ERROR");
    }
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
async fn f04_a_failure_is_caught_and_its_message_is_the_error() {
    let outcome = run_once(script("t").fails(ToolError::new("disk on fire")).tool()).await;
    assert_eq!(flat(&outcome)["error"], "disk on fire");
    assert_eq!(flat(&outcome)["success"], false);
    assert_eq!(code(&outcome), "TOOL_EXECUTION_ERROR");
}

#[tokio::test(start_paused = true)]
async fn f04_a_panic_is_caught_wherever_the_tool_raises_it() {
    let early = |_: Value| {
        assert!(ON_PURPOSE.is_empty(), "{ON_PURPOSE} before the future");
        async { Ok::<Value, ToolError>(Value::Null) }
    };
    let silent = |_: Value| async {
        std::panic::panic_any(7_u8);
        #[allow(unreachable_code, reason = "gives the block its type")]
        Ok::<Value, ToolError>(Value::Null)
    };
    let any = json!({"type": "object"});
    for (tool, text) in [
        (
            script("t").panics("on purpose in the future").tool(),
            "on purpose in the future",
        ),
        (
            script("t")
                .panics("on purpose later")
                .taking(secs(1))
                .tool(),
            "on purpose later",
        ),
        (
            Tool::with_schema("t", "d", any.clone(), early),
            "on purpose before the future",
        ),
        (Tool::with_schema("t", "d", any, silent), "panic"),
    ] {
        let outcome = run_once(tool).await;
        let error = failure(&outcome);
        assert!(error.message.contains(text), "{error}");
        assert_eq!(error.code.as_str(), "TOOL_EXECUTION_ERROR");
        assert_eq!(error.effect, Effect::Unknown);
        assert_eq!(outcome.attempts, 1);
    }
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
async fn f07_every_violation_is_reported_with_its_json_pointer() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "mail": {"type": "string", "format": "email"},
            "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
            "lines": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {"a/b": {"type": "number"}, "qty": {"exclusiveMinimum": 0}},
                    "required": ["qty"],
                },
            },
        },
        "required": ["name", "city"],
    });
    let args = json!({
        "name": "x", "age": 151, "mail": "nobody", "code": "abc",
        "lines": [{"qty": 1}, {"qty": 0, "a/b": "1"}, {}],
    });
    let outcome = run(taking(schema).tool(), args).await;
    let expected = [
        "/age",
        "/city",
        "/code",
        "/lines/1/a~1b",
        "/lines/1/qty",
        "/lines/2/qty",
        "/mail",
        "/name",
    ];
    assert_eq!(places(&outcome), expected);
    let message = &failure(&outcome).message;
    assert!(
        message.starts_with("Invalid parameters: missing "),
        "{message}"
    );
    for name in [
        "city",
        "age",
        "code",
        "lines[1].a/b",
        "lines[1].qty",
        "lines[2].qty",
        "mail",
    ] {
        assert!(
            message.contains(&format!("'{name}'")),
            "{name} in {message}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn f07_a_violation_inside_a_union_is_reported_at_its_own_place() {
    let schema = properties(json!({
        "address": {
            "anyOf": [
                {"type": "object", "properties": {"zip": {"type": "integer"}}, "required": ["street"]},
                {"type": "null"},
            ],
        },
    }));
    let outcome = run(taking(schema).tool(), json!({"address": {"zip": "0150"}})).await;
    let places = places(&outcome);
    assert!(
        places.contains(&"/address/zip"),
        "{places:?}: {}",
        failure(&outcome)
    );
    assert!(
        places.contains(&"/address/street"),
        "{places:?}: {}",
        failure(&outcome)
    );
}

#[tokio::test(start_paused = true)]
async fn f07_a_violation_says_what_was_expected_what_came_and_an_example() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 10}, "city": {"type": "string"}},
        "required": ["n", "city"],
    });
    let outcome = run(taking(schema.clone()).tool(), json!({"n": 3})).await;
    let problems = &failure(&outcome).problems;
    let at = |place| problems.iter().find(|problem| problem.at == place).unwrap();
    let shown = |place| {
        let problem = at(place);
        (
            problem.expected.as_deref().unwrap(),
            problem.got.as_deref().unwrap(),
        )
    };
    assert_eq!(shown("/n"), ("at least 10", "3"));
    assert_eq!(shown("/city"), ("string", "nothing"));
    for problem in problems
        .iter()
        .filter(|problem| problem.at != "/n" && problem.at != "/city")
    {
        let example = problem
            .example
            .clone()
            .expect("an example of all arguments");
        assert!(
            accepts(&schema, example.clone()).await,
            "{example} is no example"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn f07_the_keywords_of_2020_12_are_honoured() {
    let circle = json!({"properties": {"r": {"type": "number"}}, "required": ["r"]});
    let square = json!({"properties": {"a": {"type": "number"}}, "required": ["a"]});
    for (property, good, bad) in [
        (
            json!({"oneOf": [circle, square]}),
            json!({"r": 1}),
            json!({"r": 1, "a": 1}),
        ),
        (
            json!({"anyOf": [circle, square]}),
            json!({"r": 1, "a": 1}),
            json!({}),
        ),
        (
            json!({"allOf": [circle, square]}),
            json!({"r": 1, "a": 1}),
            json!({"r": 1}),
        ),
        (json!({"not": circle}), json!({}), json!({"r": 1})),
        (json!({"$ref": "#/$defs/even"}), json!(4), json!(5)),
        (json!({"const": "yes"}), json!("yes"), json!("no")),
        (json!({"multipleOf": 0.5}), json!(1.5), json!(1.4)),
        (json!({"uniqueItems": true}), json!([1, 2]), json!([1, 1])),
        (
            json!({"prefixItems": [{"type": "string"}]}),
            json!(["a", 1]),
            json!([1]),
        ),
        (
            json!({"contains": {"type": "null"}, "minContains": 2}),
            json!([null, null]),
            json!([null]),
        ),
        (
            json!({"propertyNames": {"pattern": "^x"}}),
            json!({"x1": 1}),
            json!({"y": 1}),
        ),
        (
            json!({"dependentRequired": {"a": ["b"]}}),
            json!({"b": 1}),
            json!({"a": 1}),
        ),
        (
            json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}}),
            json!({"b": 1}),
            json!({"a": 1}),
        ),
        (
            json!({"allOf": [circle], "unevaluatedProperties": false}),
            json!({"r": 1}),
            json!({"r": 1, "more": 1}),
        ),
        (
            json!({"additionalProperties": false}),
            json!({}),
            json!({"more": 1}),
        ),
        (json!({"maxLength": 2}), json!("ææ"), json!("æææ")),
    ] {
        let schema = json!({
            "type": "object",
            "properties": {"p": property},
            "$defs": {"even": {"type": "integer", "multipleOf": 2}},
        });
        assert!(
            accepts(&schema, json!({"p": good})).await,
            "{good} for {property}"
        );
        assert!(
            !accepts(&schema, json!({"p": bad})).await,
            "{bad} for {property}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn f07_formats_are_checked() {
    for (format, good, bad) in [
        ("date-time", "2026-01-31T12:00:00Z", "2026-01-31 noon"),
        ("date", "2026-01-31", "2026-02-31"),
        ("time", "12:00:00Z", "25:00:00Z"),
        ("duration", "P1D", "one day"),
        ("email", "a@example.com", "a"),
        ("hostname", "example.com", "-bad-.com"),
        ("ipv4", "192.0.2.1", "192.0.2.256"),
        ("ipv6", "2001:db8::1", "2001:db8:::1"),
        ("uri", "https://example.com/a?b", "not a uri"),
        ("uuid", "123e4567-e89b-42d3-a456-426614174000", "123e4567"),
        ("regex", "^a+$", "(("),
        ("json-pointer", "/a/b", "a/b"),
    ] {
        let schema = properties(json!({"p": {"type": "string", "format": format}}));
        assert!(
            accepts(&schema, json!({"p": good})).await,
            "{good} as {format}"
        );
        assert!(
            !accepts(&schema, json!({"p": bad})).await,
            "{bad} as {format}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn f07_draft_07_is_honoured_when_the_schema_says_so() {
    for said in [
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
    ] {
        let schema = json!({
            "$schema": said,
            "type": "object",
            "definitions": {"port": {"type": "integer", "maximum": 65535}},
            "properties": {
                "port": {"$ref": "#/definitions/port", "maximum": 1},
                "pair": {"items": [{"type": "string"}, {"type": "integer"}]},
                "later": {"prefixItems": [{"type": "string"}], "dependentRequired": {"a": ["b"]}},
            },
            "dependencies": {"user": ["password"]},
        });
        for (args, fits) in [
            // Beside $ref, draft-07 reads nothing.
            (json!({"port": 80}), true),
            (json!({"port": 65536}), false),
            (json!({"pair": ["a", 1]}), true),
            (json!({"pair": ["a", "b"]}), false),
            (json!({"user": "u", "password": "p"}), true),
            (json!({"user": "u"}), false),
            // Keywords that came later mean nothing.
            (json!({"later": [1]}), true),
            (json!({"later": {"a": 1}}), true),
        ] {
            assert_eq!(accepts(&schema, args.clone()).await, fits, "{args}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn f07_recursive_schemas_are_followed() {
    let schema = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["name"],
        }},
    });
    let leaf = |name: &str| json!({"name": name});
    let good = json!({"tree": {"name": "a", "children": [leaf("b"), leaf("c")]}});
    let bad = json!({"tree": {"name": "a", "children": [leaf("b"), {"children": [{}]}]}});
    assert!(accepts(&schema, good).await);
    let outcome = run(taking(schema).tool(), bad).await;
    assert_eq!(
        places(&outcome),
        ["/tree/children/1/children/0/name", "/tree/children/1/name"]
    );
}

#[test]
fn f07_a_reference_that_leads_outside_is_refused_when_the_tool_is_added() {
    for target in [
        "https://example.com/schema.json",
        "http://127.0.0.1:1/schema.json#/a",
        "file:///etc/passwd",
        "other.json",
        "#/$defs/nowhere",
    ] {
        let schema = properties(json!({"p": {"$ref": target}}));
        let refused = ToolManager::new().add(taking(schema).tool()).unwrap_err();
        assert_eq!(refused.name, "t");
        assert!(refused.fault.contains("$ref"), "{target}: {refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn f07_a_pattern_that_would_search_for_ever_is_cut_short() {
    let schema =
        properties(json!({"p": {"type": "string", "pattern": "^(?=(a|a)*\\1?b)(a|aa)+$"}}));
    let args = json!({"p": format!("{}c", "a".repeat(5_000))});
    assert!(!accepts(&schema, args).await);
}

#[tokio::test(start_paused = true)]
async fn f07_size_and_depth_of_arguments_have_a_limit() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let deep_text = format!("{{\"p\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    let large = json!({"p": "x".repeat(1024 * 1024)});
    for (case, args, fits) in [
        ("deep enough", json!({"p": nested(120)}).into(), true),
        ("too deep", json!({"p": nested(500)}).into(), false),
        ("too deep as text", deep_text.into(), false),
        ("too large", large.clone().into(), false),
        ("too large as text", large.to_string().into(), false),
    ] {
        let tool = script("t");
        let outcome = executor([tool.tool()])
            .execute(Call { args, ..once("t") })
            .await;
        assert_eq!(outcome.is_success(), fits, "{case}");
        assert_eq!(tool.starts(), usize::from(fits), "{case}");
        assert!(
            fits || failure(&outcome)
                .message
                .starts_with("Invalid parameters: "),
            "{case}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn f07_text_that_is_no_object_gets_an_outcome_and_runs_nothing() {
    for (text, fits) in [
        ("{\"a\": 1}", true),
        ("", true),
        ("  ", true),
        ("null", true),
        ("{\"a\": 1", false),
        ("{a: 1}", false),
        ("[1]", false),
        ("5", false),
        ("\"text\"", false),
        ("{} {}", false),
    ] {
        let tool = script("t");
        let outcome = executor([tool.tool()]).execute(Call::new("t", text)).await;
        assert_eq!(outcome.is_success(), fits, "{text}");
        assert_eq!(tool.starts(), usize::from(fits), "{text}");
        assert!(fits || code(&outcome) == "VALIDATION_ERROR", "{text}");
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

#[tokio::test(start_paused = true)]
async fn f09_a_mock_answers_at_once_with_its_response_and_logs_its_parameters() {
    let logs = logs::capture();
    let response = json!({"temperature": 21.5, "null": null});
    let tool = from_definition(json!({"type": "mock", "mock_response": response}));
    assert_eq!(tool.kind(), "mock");
    let executor = executor([tool]);
    executor.execute(call("t", json!({}))).await;
    for args in [json!({"q": "a"}), json!({"q": "b", "password": "hunter22"})] {
        let outcome = executor.execute(call("t", args)).await;
        assert_eq!(flat(&outcome)["result"], response);
        assert!(
            outcome.execution_time < ms(10),
            "{:?}",
            outcome.execution_time
        );
    }
    let lines = logs.of(Level::DEBUG, "mock called");
    assert_eq!(lines.len(), 3);
    assert!(lines[1].field("args").contains("\"q\":\"a\""), "{lines:?}");
    assert!(!logs.text().contains("hunter22"));
}

#[tokio::test(start_paused = true)]
async fn f09_a_mock_checks_its_parameters() {
    let tool = from_definition(json!({"type": "mock", "mock_response": 1}));
    assert_eq!(code(&run(tool, json!({"q": 5})).await), "VALIDATION_ERROR");
}

#[tokio::test(start_paused = true)]
async fn f10_a_builtin_is_looked_up_by_its_handler() {
    let tool = from_definition(json!({"type": "builtin", "handler": "echo"}));
    let outcome = run(tool, json!({"q": "x"})).await;
    assert_eq!(flat(&outcome)["result"], json!({"echo": {"q": "x"}}));
}

#[tokio::test(start_paused = true)]
async fn f10_an_absent_builtin_is_a_tool_execution_error_that_is_not_repeated() {
    let tool = from_definition(json!({"type": "builtin", "handler": "telepathy"}));
    let outcome = run(tool, json!({})).await;
    assert_eq!(
        flat(&outcome)["error"],
        "Builtin handler 'telepathy' not found"
    );
    assert_eq!(code(&outcome), "TOOL_EXECUTION_ERROR");
    assert_eq!(failure(&outcome).effect, Effect::None);
    assert_eq!((failure(&outcome).retryable, outcome.attempts), (false, 1));
}

#[tokio::test(start_paused = true)]
async fn f10_the_builtins_give_uuids_and_the_time_in_any_zone() {
    let executor = executor(builtin::all());
    let uuids = executor
        .execute(call("uuid", json!({"count": 3, "version": "v7"})))
        .await;
    let uuids = flat(&uuids)["result"]["uuids"].clone();
    let mut texts: Vec<&str> = uuids
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        texts
            .iter()
            .all(|text| text.len() == 36 && text.as_bytes()[14] == b'7'),
        "{texts:?}"
    );
    texts.dedup();
    assert_eq!(texts.len(), 3);
    for (args, datetime, weekday) in [
        (
            json!({"at": "2026-01-31T12:00:00Z"}),
            "2026-01-31T12:00:00+00:00",
            "Saturday",
        ),
        (
            json!({"at": "2026-07-01T23:30:00Z", "timezone": "Europe/Oslo"}),
            "2026-07-02T01:30:00+02:00",
            "Thursday",
        ),
        (
            json!({"at": "2026-03-29T00:30:00Z", "timezone": "Europe/Oslo", "add_seconds": 3600}),
            "2026-03-29T03:30:00+02:00",
            "Sunday",
        ),
    ] {
        let outcome = executor.execute(call("datetime", args)).await;
        assert_eq!(flat(&outcome)["result"]["datetime"], datetime);
        assert_eq!(flat(&outcome)["result"]["weekday"], weekday);
    }
    for args in [
        json!({"timezone": "Mars/Olympus"}),
        json!({"at": "yesterday"}),
    ] {
        let outcome = executor.execute(call("datetime", args)).await;
        assert_eq!((code(&outcome), outcome.attempts), ("VALIDATION_ERROR", 1));
    }
}

#[tokio::test(start_paused = true)]
async fn f12_echo_gives_back_its_parameters() {
    let executor = executor(builtin::all());
    for args in [json!({}), json!({"a": [1, {"b": null}], "æ": "ø"})] {
        let outcome = executor.execute(call("echo", args.clone())).await;
        assert_eq!(flat(&outcome)["result"], json!({"echo": args}));
    }
}

#[tokio::test(start_paused = true)]
async fn f13_an_internal_handler_is_looked_up_when_the_tool_is_called() {
    let handlers = InternalHandlers::new();
    let executor = executor([handlers.tool("find", "Finds", json!({"type": "object"}), "search")]);
    let absent = executor.execute(call("find", json!({}))).await;
    assert_eq!(
        flat(&absent)["error"],
        "Internal handler 'search' not found"
    );
    assert_eq!(code(&absent), "TOOL_EXECUTION_ERROR");
    assert_eq!((failure(&absent).retryable, absent.attempts), (false, 1));
    handlers.register("search", |args: Value| async move {
        Ok::<Value, ToolError>(json!([args]))
    });
    let found = executor.execute(call("find", json!({"q": 1}))).await;
    assert_eq!(flat(&found)["result"], json!([{"q": 1}]));
}

#[tokio::test(start_paused = true)]
async fn f14_the_time_covers_waiting_retries_and_failures() {
    let refused = || ToolError::new("no");
    for (tool, expected) in [
        (script("t").answers(1).taking(ms(250)).tool(), 250.0),
        (
            script("t")
                .fails(refused())
                .taking(ms(70))
                .tool()
                .no_retry(),
            70.0,
        ),
        (
            script("t").hangs().tool().timeout(ms(900)).no_retry(),
            900.0,
        ),
        (script("t").fails(refused()).tool(), 700.0),
        (
            script("t")
                .panics(ON_PURPOSE)
                .taking(ms(5))
                .tool()
                .no_retry(),
            5.0,
        ),
    ] {
        let outcome = run(tool, json!({})).await;
        assert_eq!(flat(&outcome)["execution_time_ms"], expected);
    }
}

#[tokio::test]
async fn f14_what_lies_behind_the_point_is_kept() {
    let executor = executor([script("t").schema(json!({"required": ["a"]})).tool()]);
    for call in [
        call("t", json!({"a": 1})),
        call("t", json!({})),
        call("nowhere", json!({})),
    ] {
        let outcome = executor.execute(call).await;
        let shown = flat(&outcome)["execution_time_ms"].as_f64().unwrap();
        let nanos = outcome.execution_time.as_nanos() as f64;
        assert!(nanos > 0.0, "the clock runs here");
        assert!(
            (shown * 1e6 - nanos).abs() < 1.0,
            "{shown} ms are {nanos} ns"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn f15_every_view_has_all_its_fields_whatever_happened() {
    let tools = [
        script("works").answers(Value::Null).tool(),
        script("fails")
            .fails(ToolError::new("no"))
            .tool()
            .no_retry(),
        script("panics").panics(ON_PURPOSE).tool().no_retry(),
        script("hangs").hangs().tool().no_retry(),
        script("strict")
            .schema(json!({"type": "object", "required": ["a"]}))
            .tool(),
    ];
    let executor = executor(tools);
    for (name, field) in [
        ("works", "result"),
        ("fails", "error"),
        ("panics", "error"),
        ("hangs", "error"),
        ("strict", "error"),
        ("nowhere", "error"),
    ] {
        let view = flat(&executor.execute(call(name, json!({}))).await);
        assert_eq!(view["success"], field == "result", "{view}");
        assert_eq!(view["tool_name"], name, "{view}");
        assert!(view["execution_time_ms"].is_f64(), "{view}");
        assert!(view.get(field).is_some(), "{view}");
        if field == "error" {
            let error = view["error"].as_str().expect("a text");
            assert!(error.len() > 5 || error == "no", "{view}");
            assert!(view.get("result").is_none(), "{view}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn f15_an_output_that_is_no_json_says_so_and_says_that_the_tool_has_run() {
    type Unfit = std::collections::BTreeMap<Vec<u8>, u8>;
    let ran = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = Arc::clone(&ran);
    let tool = Tool::with_schema("t", "d", json!({"type": "object"}), move |_: Value| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async { Ok::<Unfit, ToolError>(Unfit::from([(vec![1], 1)])) }
    });
    let outcome = run(tool, json!({})).await;
    assert_eq!(code(&outcome), "TOOL_EXECUTION_ERROR");
    assert_eq!(failure(&outcome).effect, Effect::Done);
    assert_eq!(ran.load(std::sync::atomic::Ordering::Relaxed), 1);
}
