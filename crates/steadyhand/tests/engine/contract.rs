//! The JSON others build on, pinned to the letter: calls, outcomes in three views, tools, events.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::source::mock;
use steadyhand::testing::script;
use steadyhand::{Call, CallContext, Event, NoArgs, Outcome, Tool, ToolError, ToolExecutor};

use crate::support::{call, content, executor, ms, once, secs};

/// Compares texts, so that the order of keys counts; moments of the wall clock are written as 0.
fn check(shown: impl serde::Serialize, expected: &str) {
    let mut value = serde_json::to_value(shown).expect("it is JSON");
    without_moments(&mut value);
    assert_eq!(value.to_string(), expected);
}

fn without_moments(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "at_ms" => *field = json!(0),
                    _ => without_moments(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_moments),
        _ => {}
    }
}

fn all() -> ToolExecutor {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
        "required": ["city"],
    });
    let failing = |name: &str| script(name).fails(ToolError::new("disk full")).tool();
    executor([
        script("weather")
            .schema(schema)
            .answers(json!({"degrees": 21.5}))
            .taking(ms(12))
            .tool(),
        failing("disk"),
        script("hang").hangs().tool().no_retry(),
        failing("covered")
            .no_retry()
            .fallback_value(json!({"stale": true})),
    ])
}

async fn outcome(name: &str, args: Value) -> Outcome {
    all().execute(Call::new(name, args).id("c-1")).await
}

#[test]
fn d01_a_call_is_written_with_what_it_has() {
    check(
        Call::new("t", json!({"b": 1, "a": 2})).id("c-1"),
        r#"{"id":"c-1","name":"t","args":{"b":1,"a":2}}"#,
    );
    let full = Call::new("t", json!({}))
        .id("c-1")
        .deadline(secs(5))
        .timeout(ms(250))
        .idempotency_key("k")
        .no_retry();
    check(
        full,
        r#"{"id":"c-1","name":"t","args":{},"deadline_ms":5000,"timeout_ms":250,"idempotency_key":"k","retry":false}"#,
    );
}

#[test]
fn d01_a_call_is_read_from_as_little_as_a_name() {
    let read = |text: &str| serde_json::from_str::<Call>(text).unwrap();
    let least = read(r#"{"name": "t"}"#);
    assert_eq!(
        (least.name.as_str(), least.retry, least.deadline),
        ("t", true, None)
    );
    assert_eq!(least.id.len(), 36);
    assert_ne!(least.id, read(r#"{"name": "t"}"#).id);
    let full = read(
        r#"{"name":"t","args":{"a":1},"id":"c","deadline_ms":1500,"idempotency_key":"k","retry":false}"#,
    );
    assert_eq!(
        (full.id.as_str(), full.deadline, full.retry),
        ("c", Some(ms(1500)), false)
    );
    assert_eq!(full.idempotency_key.as_deref(), Some("k"));
    assert_eq!(full.args, json!({"a": 1}).into());
    assert!(serde_json::from_str::<Call>(r#"{"args": {}}"#).is_err());
}

#[tokio::test(start_paused = true)]
async fn d01_a_call_means_the_same_after_a_round_trip() {
    for sent in [
        call("echo", json!({"a": 1})),
        Call::new("echo", r#"{"a": 1}"#),
        Call::new("echo", ""),
    ] {
        let text = serde_json::to_string(&sent).unwrap();
        let back: Call = serde_json::from_str(&text).unwrap();
        let executor = executor(steadyhand::source::builtin::find("echo"));
        let (first, again) = (executor.execute(sent).await, executor.execute(back).await);
        assert_eq!(first.result, again.result, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn d01_success_in_three_views() {
    let outcome = outcome("weather", json!({"city": "Oslo"})).await;
    check(
        outcome.structured(),
        r#"{"toolName":"weather","callId":"c-1","status":"success","output":{"degrees":21.5},"executionTime":12.0,"attempts":1}"#,
    );
    check(
        outcome.flat(),
        r#"{"success":true,"result":{"degrees":21.5},"tool_name":"weather","execution_time_ms":12.0}"#,
    );
    check(
        outcome.message(),
        r#"{"type":"tool","content":"{\"degrees\":21.5}","tool_call_id":"c-1","name":"weather","status":"success"}"#,
    );
    assert_eq!(
        serde_json::to_value(&outcome).unwrap(),
        serde_json::to_value(outcome.structured()).unwrap()
    );
}

#[tokio::test(start_paused = true)]
async fn d01_error_in_three_views() {
    let outcome = outcome("disk", json!({})).await;
    check(
        outcome.structured(),
        r#"{"toolName":"disk","callId":"c-1","status":"error","error":{"code":"TOOL_EXECUTION_ERROR","message":"disk full","userMessage":"disk ran into a problem and gave no result. It ran, and failed.","retryable":true,"effect":"done","problems":[]},"executionTime":700.0,"attempts":4}"#,
    );
    check(
        outcome.flat(),
        r#"{"success":false,"error":"disk full","effect":"done","tool_name":"disk","execution_time_ms":700.0}"#,
    );
    check(
        outcome.message(),
        r#"{"type":"tool","content":"Error: disk full\nIt ran, and failed.","tool_call_id":"c-1","name":"disk","status":"error"}"#,
    );
}

#[tokio::test(start_paused = true)]
async fn d01_timeout_in_three_views() {
    let outcome = outcome("hang", json!({})).await;
    check(
        outcome.structured(),
        r#"{"toolName":"hang","callId":"c-1","status":"timeout","error":{"code":"TIMEOUT","message":"'hang' was stopped after 30s by its time limit","userMessage":"hang took too long and timed out. It may have run; check before trying again (this tool is safe to repeat).","retryable":true,"effect":"unknown","problems":[]},"executionTime":30000.0,"attempts":1}"#,
    );
    check(
        outcome.flat(),
        r#"{"success":false,"error":"'hang' was stopped after 30s by its time limit","effect":"unknown","tool_name":"hang","execution_time_ms":30000.0}"#,
    );
    check(
        outcome.message(),
        r#"{"type":"tool","content":"Error: 'hang' was stopped after 30s by its time limit\nIt may have run; check before trying again (this tool is safe to repeat).","tool_call_id":"c-1","name":"hang","status":"error"}"#,
    );
}

#[tokio::test(start_paused = true)]
async fn d01_fallback_in_three_views() {
    let outcome = outcome("covered", json!({})).await;
    check(
        outcome.structured(),
        r#"{"toolName":"covered","callId":"c-1","status":"error","output":{"stale":true},"error":{"code":"TOOL_EXECUTION_ERROR","message":"disk full","userMessage":"covered ran into a problem and gave no result. It ran, and failed.","retryable":true,"effect":"done","problems":[]},"executionTime":0.0,"attempts":1,"fallbackUsed":true}"#,
    );
    check(
        outcome.flat(),
        r#"{"success":false,"result":{"stale":true},"error":"disk full","effect":"done","tool_name":"covered","execution_time_ms":0.0,"fallback_used":true}"#,
    );
    check(
        outcome.message(),
        r#"{"type":"tool","content":"{\"stale\":true}\n[Answered by a fallback: covered failed: disk full. It ran, and failed.]","tool_call_id":"c-1","name":"covered","status":"error"}"#,
    );
}

#[tokio::test(start_paused = true)]
async fn d01_unknown_tool_in_three_views() {
    let outcome = outcome("wether", json!({})).await;
    check(
        outcome.structured(),
        r#"{"toolName":"wether","callId":"c-1","status":"error","error":{"code":"TOOL_NOT_FOUND","message":"Tool 'wether' not found","userMessage":"There is no tool called wether. It was not run.","retryable":false,"effect":"none","problems":[],"suggestions":["weather"]},"executionTime":0.0,"attempts":0}"#,
    );
    check(
        outcome.flat(),
        r#"{"success":false,"error":"Tool 'wether' not found","effect":"none","tool_name":"wether","execution_time_ms":0.0,"suggestions":["weather"]}"#,
    );
    check(
        outcome.message(),
        r#"{"type":"tool","content":"Error: Unknown tool \"wether\"\nIt was not run.","tool_call_id":"c-1","name":"wether","status":"error"}"#,
    );
}

#[tokio::test(start_paused = true)]
async fn d01_invalid_arguments_in_three_views() {
    let outcome = outcome("weather", json!({"days": "two"})).await;
    check(
        outcome.structured(),
        r#"{"toolName":"weather","callId":"c-1","status":"error","error":{"code":"VALIDATION_ERROR","message":"Invalid parameters: missing 'city'; 'days' must be integer, got string","userMessage":"Some of the values given do not fit. Required: city. It was not run.","retryable":false,"effect":"none","problems":[{"at":"/city","code":"required","message":"missing 'city'","expected":"string","got":"nothing","example":"text"},{"at":"/days","code":"type","message":"'days' must be integer, got string","expected":"integer","got":"\"two\"","example":1}],"example":{"city":"text"}},"executionTime":0.0,"attempts":0}"#,
    );
    check(
        outcome.flat(),
        r#"{"success":false,"error":"Invalid parameters: missing 'city'; 'days' must be integer, got string","effect":"none","tool_name":"weather","execution_time_ms":0.0}"#,
    );
    let text = content(&outcome);
    let first = text.lines().next().unwrap();
    assert_eq!(
        first,
        "Error: Invalid parameters: missing 'city'; 'days' must be integer, got string"
    );
}

#[tokio::test(start_paused = true)]
async fn d01_what_is_rare_is_written_only_when_it_is_there() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let tool = script("t").schema(schema).answers("x".repeat(600)).tool();
    let executor = executor([tool.coerce().output_bytes_max(200)]);
    let keyed = call("t", json!({"n": "5"})).idempotency_key("k");
    executor.execute(keyed.clone()).await;
    let shown = serde_json::to_value(executor.execute(keyed).await).unwrap();
    check(&shown["truncated"], r#"{"fullBytes":602,"limitBytes":200}"#);
    check(
        &shown["coerced"],
        r#"[{"at":"/n","message":"read the integer out of a string"}]"#,
    );
    check(&shown["replayed"], "true");
}

#[test]
fn d02_a_tool_is_written_as_its_langchain_definition() {
    let schema = json!({"type": "object", "properties": {"z": {"type": "string"}, "a": {}}});
    let tool = mock::tool("t", "Does it", schema, json!(1)).from_source("s");
    check(
        &tool,
        r#"{"name":"t","description":"Does it","schema":{"type":"object","properties":{"z":{"type":"string"},"a":{}}}}"#,
    );
    check(
        tool.alias("lc_t"),
        r#"{"name":"t","lc_name":"lc_t","description":"Does it","schema":{"type":"object","properties":{"z":{"type":"string"},"a":{}}}}"#,
    );
}

#[tokio::test(start_paused = true)]
async fn d01_events_tell_the_story_of_a_call() {
    let dripping = |cx: CallContext, _: NoArgs| async move {
        match cx.attempt() {
            1 => Err::<(), ToolError>(ToolError::new("not yet")),
            _ => {
                cx.progress(1.0, Some(4.0), "a quarter");
                Err(ToolError::answer("never"))
            }
        }
    };
    let tool = Tool::function("t", "d", dripping).fallback_value(json!("backup"));
    let ill = script("ill")
        .fails(ToolError::new("ill"))
        .tool()
        .no_retry()
        .breaker(1, secs(60));
    let executor = executor([tool, ill]);
    let (sender, told) = mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let watch = executor
        .observe(move |event: &Event| {
            let _ = sender
                .lock()
                .unwrap()
                .send(serde_json::to_value(event).unwrap());
        })
        .unwrap();
    executor
        .execute(call("t", json!({"password": "hunter22"})).id("c-1"))
        .await;
    executor.execute(once("ill").id("c-2")).await;
    let expected = [
        r#"{"type":"started","call_id":"c-1","tool_name":"t","at_ms":0}"#,
        r#"{"type":"attempt_started","call_id":"c-1","tool_name":"t","attempt":1,"elapsed_ms":0.0}"#,
        r#"{"type":"attempt_failed","call_id":"c-1","tool_name":"t","attempt":1,"elapsed_ms":0.0,"code":"TOOL_EXECUTION_ERROR","message":"not yet","retry_in_ms":100.0,"stopped":null}"#,
        r#"{"type":"attempt_started","call_id":"c-1","tool_name":"t","attempt":2,"elapsed_ms":100.0}"#,
        r#"{"type":"progress","call_id":"c-1","tool_name":"t","done":1.0,"total":4.0,"message":"a quarter"}"#,
        r#"{"type":"attempt_failed","call_id":"c-1","tool_name":"t","attempt":2,"elapsed_ms":100.0,"code":"TOOL_EXECUTION_ERROR","message":"never","retry_in_ms":null,"stopped":"not_retryable"}"#,
        r#"{"type":"fallback_started","call_id":"c-1","tool_name":"t","elapsed_ms":100.0}"#,
        r#"{"type":"finished","at_ms":0,"args":{"password":"[redacted]"},"outcome":{"toolName":"t","callId":"c-1","status":"error","output":"backup","error":{"code":"TOOL_EXECUTION_ERROR","message":"never","userMessage":"t ran into a problem and gave no result. It ran, and failed.","retryable":false,"effect":"done","problems":[]},"executionTime":100.0,"attempts":2,"fallbackUsed":true}}"#,
        r#"{"type":"started","call_id":"c-2","tool_name":"ill","at_ms":0}"#,
        r#"{"type":"attempt_started","call_id":"c-2","tool_name":"ill","attempt":1,"elapsed_ms":0.0}"#,
        r#"{"type":"attempt_failed","call_id":"c-2","tool_name":"ill","attempt":1,"elapsed_ms":0.0,"code":"TOOL_EXECUTION_ERROR","message":"ill","retry_in_ms":null,"stopped":"no_attempts_left"}"#,
        r#"{"type":"breaker_changed","tool_name":"ill","from":"closed","to":"open","at_ms":0}"#,
        r#"{"type":"finished","at_ms":0,"args":{},"outcome":{"toolName":"ill","callId":"c-2","status":"error","error":{"code":"TOOL_EXECUTION_ERROR","message":"ill","userMessage":"ill ran into a problem and gave no result. It ran, and failed.","retryable":true,"effect":"done","problems":[]},"executionTime":0.0,"attempts":1}}"#,
    ];
    for text in expected {
        // The observer has a thread of its own; this waits for it, not for time to pass.
        check(
            told.recv_timeout(Duration::from_secs(20))
                .expect("one more event"),
            text,
        );
    }
    assert_eq!((told.try_recv().is_err(), watch.dropped()), (true, 0));
}

#[tokio::test(start_paused = true)]
async fn d01_a_call_that_is_dropped_is_finished_too() {
    let executor = executor([script("t").hangs().tool()]);
    let (sender, told) = mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    executor
        .observe(move |event: &Event| {
            if let Event::Finished { outcome, .. } = event {
                let _ = sender.lock().unwrap().send(Outcome::clone(outcome));
            }
        })
        .unwrap();
    assert!(
        tokio::time::timeout(secs(1), executor.execute(once("t")))
            .await
            .is_err()
    );
    check(
        told.recv_timeout(Duration::from_secs(20)).unwrap(),
        r#"{"toolName":"t","callId":"t","status":"error","error":{"code":"CANCELLED","message":"withdrawn by the caller after it was started","userMessage":"t was cancelled. It may have run; check before trying again.","retryable":false,"effect":"unknown","problems":[]},"executionTime":1000.0,"attempts":1}"#,
    );
}
