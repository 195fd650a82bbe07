//! The views of an outcome: all fields, times, and outputs that are cut.

use std::sync::Arc;

use serde_json::{Value, json};
use steadyhand::testing::script;
use steadyhand::{Effect, Tool, ToolError};

use crate::support::{
    ON_PURPOSE, call, code, content, executor, failure, flat, ms, run, structured,
};

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

#[tokio::test(start_paused = true)]
async fn r09_the_structured_view_is_whole_whatever_happened() {
    let tools = [
        script("works").answers(Value::Null).tool(),
        script("fails")
            .fails(ToolError::new("no"))
            .tool()
            .no_retry(),
        script("hangs").hangs().tool().no_retry(),
        script("covered")
            .fails(ToolError::new("no"))
            .tool()
            .no_retry()
            .fallback_value(json!(1)),
    ];
    let executor = executor(tools);
    for (name, status, output, error, fallback) in [
        ("works", "success", true, false, false),
        ("fails", "error", false, true, false),
        ("hangs", "timeout", false, true, false),
        ("covered", "error", true, true, true),
        ("nowhere", "error", false, true, false),
    ] {
        let view = structured(&executor.execute(call(name, json!({})).id("c-1")).await);
        assert_eq!(
            (&view["toolName"], &view["callId"]),
            (&json!(name), &json!("c-1"))
        );
        assert_eq!(view["status"], status);
        assert_eq!(view.get("output").is_some(), output, "{view}");
        assert_eq!(view.get("error").is_some(), error, "{view}");
        assert_eq!(
            view.get("fallbackUsed"),
            fallback.then_some(&json!(true)),
            "{view}"
        );
        assert!(view["executionTime"].is_f64(), "{view}");
        if let Some(error) = view.get("error") {
            for field in ["code", "message", "userMessage"] {
                assert!(
                    error[field].as_str().is_some_and(|text| !text.is_empty()),
                    "{view}"
                );
            }
            assert!(
                error["retryable"].is_boolean() && error["effect"].is_string(),
                "{view}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn r09_a_large_output_is_cut_with_a_mark_and_its_full_size_is_said() {
    for (output, kept) in [
        (json!("æ".repeat(3000)), "æææ"),
        (
            json!({"small": 1, "large": "x".repeat(6000)}),
            "\"small\":1",
        ),
        (json!(vec!["item"; 1000]), "\"item\",\"item\""),
        (
            json!({"rows": vec![json!({"id": 7, "name": "æøå"}); 500], "n": 500}),
            "\"n\":500",
        ),
        (json!([["y".repeat(9000)]]), "yyy"),
    ] {
        let full = output.to_string().len();
        let tool = script("t").answers(output).tool().output_bytes_max(1000);
        let outcome = run(tool, json!({})).await;
        let cut = outcome.output().unwrap().value().to_string();
        assert!(cut.len() <= 1000, "{} bytes", cut.len());
        assert!(cut.contains(kept) && cut.contains("[cut: "), "{cut}");
        assert_eq!(
            structured(&outcome)["truncated"],
            json!({"fullBytes": full, "limitBytes": 1000})
        );
        assert!(content(&outcome).len() <= 1000);
    }
}

#[tokio::test(start_paused = true)]
async fn r09_an_output_up_to_the_limit_is_left_alone() {
    for (length, cut) in [(998, false), (999, true)] {
        let tool = script("t")
            .answers("x".repeat(length))
            .tool()
            .output_bytes_max(1000);
        let outcome = run(tool, json!({})).await;
        assert_eq!(outcome.output().unwrap().cut().is_some(), cut, "{length}");
        assert_eq!(
            structured(&outcome).get("truncated").is_some(),
            cut,
            "{length}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn r09_characters_that_are_longer_in_json_do_not_break_the_limit() {
    let mut too_large = Vec::new();
    for text in ["\"".repeat(900), "\u{1}".repeat(5000), "\\".repeat(100_000)] {
        let tool = script("t")
            .answers(text.clone())
            .tool()
            .output_bytes_max(1000);
        let outcome = run(tool, json!({})).await;
        let cut = outcome.output().unwrap().value().to_string();
        if cut.len() > 1000 || !cut.contains("[cut: ") {
            too_large.push(format!("{} bytes of {:?}", cut.len(), &text[..1]));
        }
    }
    assert!(too_large.is_empty(), "{too_large:?}");
}

#[tokio::test(start_paused = true)]
async fn r09_five_megabytes_are_cut_by_default() {
    let outcome = run(script("t").answers("x".repeat(5_000_000)).tool(), json!({})).await;
    assert!(content(&outcome).len() <= 256 * 1024);
    assert_eq!(
        outcome.output().unwrap().cut().unwrap().full_bytes,
        5_000_002
    );
}
