//! The twelve probes every executor in the field fails some of: all pass here, each by its name.
//!
//! The scoreboard of the others is in `docs/benchmarks.md`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use steadyhand::testing::{on_paused_clock, script};
use steadyhand::{
    AiMessage, Call, Effect, FailureCode, Message, Outcome, Problem, Status, Tool, ToolCall,
    ToolError, ToolExecutor, ToolManager, ToolMessage, answer_open_calls,
};

use crate::quiet::{ON_PURPOSE, about_panics_on_purpose};

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "the schema is what is probed")]
struct Order {
    /// How many
    count: u32,
    /// Of what
    item: String,
}

fn executor(tools: impl IntoIterator<Item = Tool>) -> ToolExecutor {
    let manager = ToolManager::new();
    assert_eq!(manager.add_all(tools), []);
    ToolExecutor::new(manager)
}

fn order() -> Tool {
    Tool::function("order", "Orders something", |order: Order| async move {
        Ok::<_, ToolError>(format!("{} of {}", order.count, order.item))
    })
}

fn ok() -> Tool {
    script("ok").answers("fine").tool()
}

fn code(outcome: &Outcome) -> FailureCode {
    outcome.failure().expect("a failure").code
}

#[test]
fn probe_01_an_unknown_tool_in_a_batch_costs_nobody_else_anything() {
    on_paused_clock(async {
        let calls = vec![
            Call::new("ok", json!({})).id("a"),
            Call::new("okay_dokey", json!({})).id("b"),
            Call::new("ok", json!({})).id("c"),
        ];
        let outcomes = executor([ok()]).execute_batch(calls).await;
        assert_eq!(
            outcomes
                .iter()
                .map(|outcome| outcome.call_id.as_str())
                .collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
        assert!(outcomes[0].is_success() && outcomes[2].is_success());
        assert_eq!(code(&outcomes[1]), FailureCode::ToolNotFound);
        assert_eq!(
            outcomes[1].message().content.text(),
            "Error: Unknown tool \"okay_dokey\"\nIt was not run."
        );
    });
}

#[test]
fn probe_02_bad_types_get_a_message_a_model_can_act_on() {
    on_paused_clock(async {
        let call = Call::new("order", json!({"count": "five", "item": 7}));
        let outcome = executor([order()]).execute(call).await;
        assert_eq!(code(&outcome), FailureCode::ValidationError);
        let text = outcome.message().content.text().into_owned();
        for part in [
            "'count' must be integer, got string",
            "'item' must be string, got integer",
            "/count: expected integer, got \"five\"",
            "Arguments that would do: {\"count\":0,\"item\":\"text\"}",
        ] {
            assert!(text.contains(part), "no {part} in: {text}");
        }
    });
}

#[test]
fn probe_03_arguments_that_violate_a_raw_schema_never_reach_the_tool() {
    on_paused_clock(async {
        let raw = script("raw").answers(1).schema(json!({
            "type": "object",
            "properties": {"level": {"type": "integer", "minimum": 1, "maximum": 10}, "mode": {"enum": ["on", "off"]}},
            "required": ["level"],
        }));
        let executor = executor([raw.tool()]);
        let outcome = executor
            .execute(Call::new("raw", json!({"level": 11, "mode": "dim"})))
            .await;
        let problems = &outcome.failure().unwrap().problems;
        let places: Vec<&str> = problems.iter().map(|problem| problem.at.as_str()).collect();
        assert!(
            places.contains(&"/level") && places.contains(&"/mode"),
            "{problems:?}"
        );
        assert_eq!(raw.starts(), 0);
    });
}

#[test]
fn probe_04_malformed_json_gets_an_outcome_that_says_where_it_broke() {
    on_paused_clock(async {
        for (text, says) in [
            (r#"{"count": 1, "item": "sal"#, "unfinished JSON"),
            (r#"{"count": 1,}"#, "not valid JSON"),
            ("order one please", "not valid JSON"),
            ("[1, 2]", "must be an object, got array"),
        ] {
            let outcome = executor([order()]).execute(Call::new("order", text)).await;
            let failure = outcome.failure().unwrap();
            assert_eq!(
                (failure.code, failure.effect),
                (FailureCode::ValidationError, Effect::None)
            );
            assert!(failure.message.contains(says), "{}", failure.message);
        }
    });
}

#[test]
fn probe_05_one_of_three_fails_and_the_others_are_kept() {
    on_paused_clock(async {
        let bad = script("bad")
            .fails(ToolError::new("it broke"))
            .tool()
            .no_retry();
        let calls = ["ok", "bad", "ok"]
            .map(|name| Call::new(name, json!({})))
            .to_vec();
        let outcomes = executor([ok(), bad]).execute_batch(calls).await;
        assert_eq!(
            outcomes.iter().map(Outcome::status).collect::<Vec<_>>(),
            [Status::Success, Status::Error, Status::Success]
        );
        assert_eq!(
            outcomes[1].message().content.text(),
            "Error: it broke\nIt ran, and failed."
        );
    });
}

#[test]
fn probe_06_a_panic_is_an_outcome_and_the_next_call_runs() {
    about_panics_on_purpose();
    on_paused_clock(async {
        let bad = script("bad")
            .panics(format!("{ON_PURPOSE}: boom"))
            .tool()
            .no_retry();
        let executor = executor([ok(), bad]);
        let calls = ["bad", "ok"]
            .map(|name| Call::new(name, json!({})))
            .to_vec();
        let outcomes = executor.execute_batch(calls).await;
        assert_eq!(code(&outcomes[0]), FailureCode::ToolExecutionError);
        assert!(outcomes[0].failure().unwrap().message.contains("boom"));
        assert!(outcomes[1].is_success());
    });
}

#[test]
fn probe_07a_a_tool_that_hangs_and_ignores_cancellation_is_answered_at_its_limit() {
    on_paused_clock(async {
        let stuck = script("stuck")
            .hangs()
            .tool()
            .timeout(Duration::from_secs(3))
            .no_retry();
        let outcome = executor([stuck])
            .execute(Call::new("stuck", json!({})))
            .await;
        assert_eq!(outcome.status(), Status::Timeout);
        assert_eq!(outcome.failure().unwrap().effect, Effect::Unknown);
        let late = outcome.execution_time - Duration::from_secs(3);
        assert!(late <= Duration::from_millis(2), "{late:?} late");
    });
}

/// A blocked thread cannot be stopped, but nobody has to wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probe_07b_a_tool_that_blocks_its_thread_is_answered_at_its_limit() {
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = std::sync::Mutex::new(blocked);
    let stuck = Tool::blocking("stuck", "Blocks", move |_: Value| {
        let _ = blocked.lock().unwrap().recv();
        Ok::<_, ToolError>("at last")
    });
    let executor = executor([stuck.timeout(Duration::from_millis(50)).no_retry()]);
    let outcome = executor.execute(Call::new("stuck", json!({}))).await;
    assert_eq!(outcome.status(), Status::Timeout);
    assert_eq!(outcome.failure().unwrap().effect, Effect::Unknown);
    drop(release);
}

#[test]
fn probe_08_duplicate_ids_get_an_outcome_each() {
    on_paused_clock(async {
        let counter = script("count").answers(1).answers(2).answers(3);
        let calls = vec![Call::new("count", json!({})).id("same"); 3];
        let outcomes = executor([counter.tool()]).execute_batch(calls).await;
        let values: Vec<&Value> = outcomes
            .iter()
            .map(|outcome| outcome.output().unwrap().value())
            .collect();
        assert_eq!(values, [&json!(1), &json!(2), &json!(3)]);
        assert!(outcomes.iter().all(|outcome| outcome.call_id == "same"));
    });
}

#[test]
fn probe_09_five_calls_of_200_ms_take_200_ms() {
    on_paused_clock(async {
        let slow = script("slow")
            .answers(1)
            .taking(Duration::from_millis(200))
            .tool();
        let started = tokio::time::Instant::now();
        let outcomes = executor([slow])
            .execute_batch(vec![Call::new("slow", json!({})); 5])
            .await;
        assert!(outcomes.iter().all(Outcome::is_success));
        assert!(
            started.elapsed() <= Duration::from_millis(202),
            "{:?}",
            started.elapsed()
        );
    });
}

#[test]
fn probe_10_five_megabytes_of_output_are_cut_with_a_mark_that_says_how_much_there_was() {
    on_paused_clock(async {
        let loud = script("loud").answers("ä".repeat(2_500_000)).tool();
        let outcome = executor([loud]).execute(Call::new("loud", json!({}))).await;
        let text = outcome.message().content.text().into_owned();
        assert!(text.len() <= 256 * 1024, "{} bytes", text.len());
        assert!(
            text.ends_with("of 5000000 bytes]"),
            "{}",
            &text[text.len() - 60..]
        );
        assert_eq!(
            outcome.output().unwrap().cut().unwrap().full_bytes,
            5_000_002
        );
    });
}

#[test]
fn probe_11_a_history_with_an_open_call_gets_its_placeholder() {
    let asked =
        ["toolu_1", "toolu_2"].map(|id| ToolCall::with_id(id, "order", serde_json::Map::new()));
    let history: Vec<Message> = vec![
        Message::human("Order salt and pepper"),
        AiMessage::calling("", asked.to_vec()).into(),
        ToolMessage::new("toolu_1", "1 of salt".into()).into(),
        Message::human("Are you still there?"),
    ];
    let (mended, placeholders) = answer_open_calls(history);
    assert_eq!(placeholders.len(), 1);
    assert_eq!(placeholders[0].tool_call_id, "toolu_2");
    let Message::Tool(placeholder) = &mended[3] else {
        panic!("no result in its place: {mended:?}");
    };
    assert!(placeholder.is_error && placeholder.content.text().starts_with("Error: "));
    assert_eq!(mended.len(), 5);
}

#[test]
fn probe_12_secrets_in_an_error_text_reach_nobody() {
    on_paused_clock(async {
        let leaky = script("leaky").fails_with(|| {
            ToolError::new(
                "401 for https://bob:hunter22@host/ with Bearer abcdef123456789, key sk-ant-api03-AAAABBBBCCCC and 'tiger-lily'",
            )
            .problems(vec![Problem {
                at: "/password".to_owned(),
                code: "pattern".to_owned(),
                message: "tiger-lily is too short".to_owned(),
                expected: None,
                got: Some("tiger-lily".to_owned()),
                example: None,
            }])
        });
        let executor = executor([leaky.tool().no_retry()]);
        let call = Call::new("leaky", json!({"user": "bob", "password": "tiger-lily"}));
        let outcome = executor.execute(call).await;
        let views = [
            serde_json::to_string(&outcome.structured()).unwrap(),
            serde_json::to_string(&outcome.flat()).unwrap(),
            serde_json::to_string(&outcome.message()).unwrap(),
        ];
        for view in views {
            for secret in ["hunter22", "abcdef123456789", "AAAABBBBCCCC", "tiger-lily"] {
                assert!(!view.contains(secret), "{secret} in {view}");
            }
            assert!(view.contains("401 for https://"), "the rest stays: {view}");
        }
    });
}
