//! Every violation at once, and which keywords of JSON Schema are honoured.

use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{Call, ToolManager};

use crate::argument_checks::{accepts, places, properties};
use crate::support::{code, executor, failure, once, run, taking};

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
