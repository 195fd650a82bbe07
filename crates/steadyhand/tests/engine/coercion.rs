//! Slips in arguments that are mended, and those that are not.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use steadyhand::testing::{Script, script};
use steadyhand::{Policy, Tool, ToolError, ToolExecutor, ToolManager};

use crate::support::{call, code, executor, failure, run, structured};

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "read by serde")]
struct Inner {
    x: i64,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "read by serde")]
struct Slips {
    count: Option<i64>,
    ratio: Option<f64>,
    flag: Option<bool>,
    inner: Option<Inner>,
    list: Option<Vec<i64>>,
    text: Option<String>,
}

fn slips() -> Script {
    let schema = json!({
        "type": "object",
        "properties": {
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "flag": {"type": "boolean"},
            "inner": {"type": "object", "properties": {"x": {"type": "integer"}}},
            "list": {"type": "array", "items": {"type": "integer"}},
            "text": {"type": "string"},
            "either": {"type": ["string", "integer"]},
            "needed": {"type": "integer"},
        },
        "required": [],
    });
    script("t").schema(schema).answers("ran")
}

fn common_slips() -> Vec<(Value, Value)> {
    vec![
        (json!({"count": "5"}), json!({"count": 5})),
        (json!({"count": "-5"}), json!({"count": -5})),
        (json!({"ratio": "2.5"}), json!({"ratio": 2.5})),
        (json!({"flag": "true"}), json!({"flag": true})),
        (json!({"inner": "{\"x\": 1}"}), json!({"inner": {"x": 1}})),
        (json!({"inner": {"x": "1"}}), json!({"inner": {"x": 1}})),
        (
            json!({"inner": "{\"x\": \"1\"}"}),
            json!({"inner": {"x": 1}}),
        ),
        (json!({"list": "[1, 2]"}), json!({"list": [1, 2]})),
        (json!({"list": [1, "2"]}), json!({"list": [1, 2]})),
        (json!({"count": null, "flag": true}), json!({"flag": true})),
    ]
}

#[tokio::test(start_paused = true)]
async fn d12_by_default_nothing_is_mended() {
    for (sent, _) in common_slips() {
        let tool = slips();
        let outcome = run(tool.tool(), sent.clone()).await;
        assert_eq!(
            (code(&outcome), tool.starts()),
            ("VALIDATION_ERROR", 0),
            "{sent}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn d12_coerce_mends_common_slips_and_reports_each() {
    for (sent, mended) in common_slips() {
        let tool = slips();
        let outcome = run(tool.tool().coerce(), sent.clone()).await;
        assert!(outcome.is_success(), "{sent}: {outcome:?}");
        assert_eq!(tool.seen()[0].args, mended, "{sent}");
        let reported = structured(&outcome)["coerced"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        assert!(!reported.is_empty(), "{sent}");
        for report in reported {
            let at = report["at"].as_str().unwrap();
            assert!(at.starts_with('/') && !report["message"].as_str().unwrap().is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d12_coerce_touches_no_string_and_guesses_nothing() {
    for sent in [
        json!({"text": 5}),
        json!({"text": true}),
        json!({"text": {"a": 1}}),
        json!({"count": "five"}),
        json!({"count": "5.5"}),
        json!({"count": ""}),
        json!({"count": 5.5}),
        json!({"flag": "yes"}),
        json!({"flag": 1}),
        json!({"inner": "[1]"}),
        json!({"list": "{}"}),
        json!({"ratio": "NaN"}),
        json!({"ratio": "inf"}),
    ] {
        let tool = slips();
        let outcome = run(tool.tool().coerce(), sent.clone()).await;
        assert_eq!(
            (code(&outcome), tool.starts()),
            ("VALIDATION_ERROR", 0),
            "{sent}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn d12_coerce_leaves_what_fits_alone() {
    for sent in [
        json!({"text": "5"}),
        json!({"text": "{\"x\": 1}"}),
        json!({"text": "null"}),
        json!({"either": "5"}),
        json!({"count": 5.0}),
        json!({"unknown": "5"}),
    ] {
        let tool = slips();
        let outcome = run(tool.tool().coerce(), sent.clone()).await;
        assert_eq!(tool.seen()[0].args, sent);
        assert_eq!(structured(&outcome).get("coerced"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn d12_a_number_is_mended_exactly_or_not_at_all() {
    for (text, exact) in [
        ("9223372036854775807", json!(i64::MAX)),
        ("18446744073709551615", json!(u64::MAX)),
        (
            "12345678901234567891",
            json!(12_345_678_901_234_567_891_u64),
        ),
        ("123456789012345678901234567890", Value::Null),
    ] {
        let tool = slips();
        let outcome = run(tool.tool().coerce(), json!({"count": text})).await;
        match tool.seen().first() {
            Some(seen) => assert_eq!(seen.args["count"], exact, "{text}"),
            None => assert_eq!(code(&outcome), "VALIDATION_ERROR", "{text}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d12_a_typed_function_gets_its_slips_mended_too() {
    async fn read(_: Slips) -> Result<(), ToolError> {
        Ok(())
    }
    for sent in [
        json!({"count": "5"}),
        json!({"ratio": "0.5"}),
        json!({"flag": "false"}),
        json!({"inner": "{\"x\": 1}"}),
        json!({"inner": {"x": "1"}}),
        json!({"list": "[1]"}),
    ] {
        let outcome = run(Tool::function("t", "d", read).coerce(), sent.clone()).await;
        assert!(outcome.is_success(), "{sent}: {}", failure(&outcome));
        assert_eq!(outcome.coerced.len(), 1, "{sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn d12_arguments_that_came_as_a_json_string_are_read_and_it_is_reported() {
    let sent = Value::String("{\"count\": 5}".to_owned());
    let tool = slips();
    let outcome = run(tool.tool().coerce(), sent.clone()).await;
    assert_eq!(tool.seen()[0].args, json!({"count": 5}));
    assert!(
        !outcome.coerced.is_empty(),
        "a coercion that nobody is told of"
    );
    assert_eq!(code(&run(slips().tool(), sent).await), "VALIDATION_ERROR");
}

#[tokio::test(start_paused = true)]
async fn d12_it_can_be_switched_on_for_all() {
    let tools = ToolManager::new().with_defaults(Policy {
        coerce: true,
        ..Policy::default()
    });
    tools.add(slips().tool()).unwrap();
    let outcome = ToolExecutor::new(tools)
        .execute(call("t", json!({"count": "5"})))
        .await;
    assert!(outcome.is_success());
}

#[tokio::test(start_paused = true)]
async fn d12_arguments_reach_the_tool_unchanged_otherwise() {
    let sent = json!({
        "count": 5.0, "text": " 5 ", "æ": ["ø", null, {"deep": [[]]}], "big": u64::MAX, "z": 1, "a": 2
    });
    for call in [
        call("t", sent.clone()),
        steadyhand::Call::new("t", sent.to_string()),
    ] {
        let tool = slips();
        executor([tool.tool()]).execute(call).await;
        assert_eq!(tool.seen()[0].args.to_string(), sent.to_string());
    }
}
