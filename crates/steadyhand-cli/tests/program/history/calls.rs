//! What is kept of a call.

use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::testing::script;
use steadyhand::{Call, Effect, FailureCode, Fallback, Output, RetryPolicy, Tool, ToolError};
use steadyhand_store::history::{CallRecord, CallState, Filter, StageKind};
use tokio_util::sync::CancellationToken;

use super::{Place, call, echo, ill, until};

fn kinds(record: &CallRecord) -> Vec<StageKind> {
    record
        .details
        .stages
        .iter()
        .map(|stage| stage.kind)
        .collect()
}

/// A tool that fails so often, then answers; tried again soon.
fn flaky(failures: usize) -> Tool {
    let mut script = script("flaky");
    for _ in 0..failures {
        script = script.fails(ToolError::new("not yet"));
    }
    let retry = RetryPolicy {
        attempts: 4,
        ..RetryPolicy::default()
    };
    script.answers("at last").tool().retry(retry)
}

#[tokio::test]
async fn v02_a_call_is_kept_with_everything_that_is_known_of_it() {
    let place = Place::new([echo().from_source("demo")]);
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let asked = Call::new("echo", json!({"city": "Oslo"}))
        .id("c-1")
        .caller("voice, kitchen")
        .traceparent(trace)
        .replay_of("c-0")
        .deadline(Duration::from_secs(7));
    let before = steadyhand::clock::wall_ms();
    place.run(asked).await;
    let record = place.record("c-1");
    let call = &record.call;
    assert_eq!((call.id.as_str(), call.tool.as_str()), ("c-1", "echo"));
    assert_eq!(call.source.as_deref(), Some("demo"));
    assert_eq!(call.caller.as_deref(), Some("voice, kitchen"));
    assert_eq!(call.replay_of.as_deref(), Some("c-0"));
    assert_eq!((call.state, call.attempts), (CallState::Ok, 1));
    assert_eq!(call.deadline_ms, Some(7000.0));
    assert!(call.started_ms >= before && call.took_ms.unwrap() > 0.0);
    assert_eq!((call.code, call.effect, &call.message), (None, None, &None));
    let details = &record.details;
    assert_eq!(details.traceparent.as_deref(), Some(trace));
    assert_eq!(details.arguments, Some(json!({"city": "Oslo"})));
    assert_eq!(details.result, Some(json!({"city": "Oslo"})));
    assert_eq!(details.result_bytes, Some(15));
    assert!(!details.result_cut && !details.arguments_incomplete);
    assert_eq!(details.tries.len(), 1);
    assert!(details.tries[0].end_ms.unwrap() >= details.tries[0].start_ms);
    assert_eq!(*kinds(&record).last().unwrap(), StageKind::Attempt);
}

#[tokio::test]
async fn v02_a_record_is_the_json_that_others_build_on() {
    let place = Place::new([echo()]);
    place.run(call("c-1", "echo").caller("cli")).await;
    let mut shown = serde_json::to_value(place.record("c-1")).unwrap();
    for varying in ["key", "started_ms", "took_ms", "tries", "stages"] {
        assert!(!shown[varying].is_null(), "{varying}");
        shown[varying] = Value::Null;
    }
    let expected = r#"{"key":null,"id":"c-1","tool":"echo","caller":"cli","started_ms":null,"state":"ok","took_ms":null,"deadline_ms":60000.0,"attempts":1,"arguments":{},"result":{},"result_bytes":2,"tries":null,"stages":null}"#;
    assert_eq!(shown.to_string(), expected);
}

#[tokio::test]
async fn v02_attempts_waits_and_fallback_are_kept_with_their_times() {
    let fallback = Fallback::tool("echo");
    let never = script("never").fails(ToolError::new("it rains")).tool();
    let retry = RetryPolicy {
        attempts: 3,
        ..RetryPolicy::default()
    };
    let place = Place::new([never.retry(retry).fallback(fallback), echo()]);
    place.run(call("c-1", "never")).await;
    let record = place.record("c-1");
    assert_eq!(record.call.state, CallState::Error);
    assert!(record.call.fallback_used);
    assert_eq!(record.call.code, Some(FailureCode::ToolExecutionError));
    assert_eq!(record.call.message.as_deref(), Some("it rains"));
    let tries = &record.details.tries;
    let numbers: Vec<u32> = tries.iter().map(|one| one.attempt).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert!(
        tries
            .iter()
            .all(|one| one.message.as_deref() == Some("it rains"))
    );
    assert!(tries[0].retry_in_ms.is_some() && tries[2].stopped.is_some());
    let worked = |kind: &StageKind| *kind != StageKind::Validate;
    let stages: Vec<StageKind> = kinds(&record).into_iter().filter(worked).collect();
    use StageKind::{Attempt, Backoff, Fallback as Instead};
    assert_eq!(
        stages,
        [Attempt, Backoff, Attempt, Backoff, Attempt, Instead]
    );
    let last = record.details.stages.last().unwrap();
    assert_eq!(last.tool.as_deref(), Some("echo"));
    assert_eq!(record.details.result, Some(json!({})));
    for pair in record.details.stages.windows(2) {
        assert!(
            pair[0].end_ms <= pair[1].start_ms,
            "{:?}",
            record.details.stages
        );
    }
    // The fallback is a call of its own.
    assert_eq!(place.record("c-1-fallback").call.state, CallState::Ok);
}

#[tokio::test]
async fn v02_a_call_that_worked_at_the_second_try_shows_both() {
    let place = Place::new([flaky(1)]);
    place.run(call("c-1", "flaky")).await;
    let record = place.record("c-1");
    assert_eq!(
        (record.call.state, record.call.attempts),
        (CallState::Ok, 2)
    );
    let tries = &record.details.tries;
    assert_eq!(
        (tries[0].code, tries[1].code),
        (Some(FailureCode::ToolExecutionError), None)
    );
    assert!(tries[1].end_ms.is_some());
}

#[tokio::test]
async fn v02_waiting_for_a_place_is_a_stage_of_its_own() {
    let slow = script("slow")
        .answers(1)
        .taking(Duration::from_millis(40))
        .tool();
    let place = Place::new([slow.limit(1, 8)]);
    let calls = ["a", "b"].map(|id| place.run(call(id, "slow")));
    futures_util::future::join_all(calls).await;
    let waited = ["a", "b"].map(|id| kinds(&place.record(id)).contains(&StageKind::Queue));
    assert_eq!(waited.iter().filter(|waited| **waited).count(), 1);
}

#[tokio::test]
async fn v02_every_way_to_end_has_its_state() {
    let token = CancellationToken::new();
    token.cancel();
    let hang = || script("hangs").hangs().tool().no_retry();
    let place = Place::new([echo(), ill(), hang()]);
    place.run(call("ok", "echo")).await;
    place.run(call("error", "ill")).await;
    let short = Duration::from_millis(20);
    place.run(call("timeout", "hangs").timeout(short)).await;
    place.run(call("unknown", "no_such_tool")).await;
    place
        .run(call("cancelled", "echo").cancellation(token))
        .await;
    let dropped = place.run(call("dropped", "hangs"));
    assert!(tokio::time::timeout(short, dropped).await.is_err());
    let state = |id| place.record(id).call.state;
    assert_eq!(state("ok"), CallState::Ok);
    assert_eq!(state("error"), CallState::Error);
    assert_eq!(state("timeout"), CallState::Timeout);
    assert_eq!(state("unknown"), CallState::Rejected);
    assert_eq!(state("cancelled"), CallState::Cancelled);
    assert_eq!(state("dropped"), CallState::Cancelled);
    assert_eq!(place.record("timeout").call.effect, Some(Effect::Unknown));
    assert_eq!(place.record("unknown").call.effect, Some(Effect::None));
}

#[tokio::test]
async fn v02_what_no_tool_got_is_kept_as_it_came() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let place = Place::new([script("t").schema(schema).answers(1).tool()]);
    place
        .run(Call::new("t", json!({"n": "many"})).id("wrong"))
        .await;
    place.run(Call::new("t", "{\"n\": ").id("unfinished")).await;
    place
        .run(Call::new("nobody", json!({"token": "abcdef"})).id("unknown"))
        .await;
    let record = place.record("wrong");
    assert_eq!(record.details.arguments, Some(json!({"n": "many"})));
    let error = record.details.error.unwrap();
    assert_eq!(error.problems[0].at, "/n");
    assert_eq!(
        place.record("unfinished").details.arguments,
        Some(json!("{\"n\": "))
    );
    let unknown = place.record("unknown");
    assert_eq!(
        unknown.details.arguments,
        Some(json!({"token": "[redacted]"}))
    );
    assert_eq!(unknown.call.tool, "nobody");
}

#[tokio::test]
async fn v02_secrets_reach_neither_the_record_nor_the_file() {
    let tells = |args: Value| async move {
        let password = args["password"].as_str().unwrap_or_default().to_owned();
        match args["fails"].as_bool() {
            Some(true) => Err(ToolError::answer(format!("no user with {password}"))),
            _ => Ok(Output::json_with_text(
                json!({"said": password, "key": "sk-live-0123456789abcdef"}),
                format!("you said {password}"),
            )),
        }
    };
    let place = Place::new([Tool::function("tells", "d", tells).no_retry()]);
    let args = json!({"password": "tiger-lily-42", "note": "Bearer abcdefghijklmnop"});
    place
        .run(Call::new("tells", args.clone()).id("works"))
        .await;
    let mut fails = args;
    fails["fails"] = json!(true);
    place.run(Call::new("tells", fails).id("fails")).await;
    let record = place.record("works");
    assert!(record.details.arguments_incomplete);
    let shown = serde_json::to_string(&(record, place.record("fails"))).unwrap();
    place.history.flush(crate::support::PATIENCE);
    let mut everything = shown.into_bytes();
    for file in std::fs::read_dir(place.folder.path()).unwrap() {
        everything.extend(std::fs::read(file.unwrap().path()).unwrap());
    }
    for secret in [
        "tiger-lily-42",
        "sk-live-0123456789abcdef",
        "abcdefghijklmnop",
    ] {
        let found = everything
            .windows(secret.len())
            .any(|window| window == secret.as_bytes());
        assert!(!found, "{secret}");
    }
}

/// Where a secret may come from, and where it must not go.
#[tokio::test]
async fn v02_secrets_are_hidden_wherever_a_tool_repeats_them() {
    const SECRETS: [&str; 5] = [
        "tiger-lily-42",
        "90210777",
        "sk-live-0123456789abcdef",
        "hunter2-hunter2",
        "abcdefghijklmnop",
    ];
    let repeats = |args: Value| async move {
        let said = args["password"].as_str().unwrap_or_default().to_owned();
        let pin = args["pin"].to_string();
        let text = format!("{said} and {pin}, password=hunter2-hunter2, Bearer abcdefghijklmnop");
        match args["how"].as_str() {
            Some("fails") => Err(ToolError::new(text)),
            Some("panics") => panic!("on purpose: {text}"),
            _ => Ok(Output::json_with_text(
                json!({"deep": [{"said": said, "pin": args["pin"], "text": text}], "key": "sk-live-0123456789abcdef"}),
                text,
            )),
        }
    };
    let retry = RetryPolicy {
        attempts: 2,
        ..RetryPolicy::default()
    };
    let schema = json!({
        "type": "object",
        "properties": {"how": {"enum": ["fails", "panics", "works"]}},
    });
    let repeats = Tool::function("repeats", "d", repeats)
        .redefined("repeats", "d", Some(schema))
        .retry(retry);
    let place = Place::new([repeats.fallback(Fallback::tool("echo")), echo()]);
    for how in ["works", "fails", "panics", "no such way: tiger-lily-42"] {
        let args = json!({
            "password": "tiger-lily-42", "pin": 90210777, "how": how,
            "nested": {"auth": {"api-key": ["sk-live-0123456789abcdef"]}},
            "body": "{\"password\": \"hunter2-hunter2\"}",
            "escaped": "{\"body\": \"{\\\"password\\\": \\\"hunter2-hunter2\\\"}\"}",
        });
        let id = how.split(' ').next().unwrap();
        place.run(Call::new("repeats", args.clone()).id(id)).await;
        place
            .run(Call::new("nobody", args).id(format!("{id}-unknown")))
            .await;
        place.record(id);
    }
    place.flush();
    let mut out = Vec::new();
    place.history.export(&Filter::default(), &mut out).unwrap();
    for file in std::fs::read_dir(place.folder.path()).unwrap() {
        out.extend(std::fs::read(file.unwrap().path()).unwrap());
    }
    for secret in SECRETS {
        let at = out
            .windows(secret.len())
            .position(|window| window == secret.as_bytes());
        let around = at
            .map(|at| String::from_utf8_lossy(&out[at.saturating_sub(200)..at + 40]).into_owned());
        assert_eq!(around, None, "{secret}");
    }
}

#[tokio::test]
async fn v02_arguments_of_a_megabyte_and_of_a_hundred_levels_are_kept_in_part() {
    let place = Place::new([echo()]);
    let huge = json!({"list": vec!["0123456789"; 70_000], "name": "kept"});
    place.run(Call::new("echo", huge).id("huge")).await;
    let mut deep = json!("bottom");
    for _ in 0..100 {
        deep = json!({ "in": deep });
    }
    place.run(Call::new("echo", deep).id("deep")).await;
    for id in ["huge", "deep"] {
        let details = place.record(id).details;
        assert!(details.arguments_incomplete, "{id}: cannot be sent again");
        assert!(details.arguments.unwrap().to_string().len() <= 16 * 1024);
    }
    assert_eq!(
        place.record("huge").details.arguments.unwrap()["name"],
        "kept"
    );
    let bytes: u64 = std::fs::read_dir(place.folder.path())
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes < 1_000_000, "{bytes}");
}

#[tokio::test]
async fn v02_what_is_large_is_cut_and_says_so() {
    let place = Place::with([echo()], |options| options.value_bytes_max = 1000);
    let args = json!({"small": 1, "large": "x".repeat(50_000)});
    place.run(Call::new("echo", args.clone()).id("c-1")).await;
    let details = place.record("c-1").details;
    assert!(details.arguments_incomplete && details.result_cut);
    let kept = details.result.unwrap();
    assert!(kept.to_string().len() <= 1000);
    assert_eq!(kept["small"], 1);
    assert!(kept["large"].as_str().unwrap().contains("[cut: "));
    assert_eq!(details.result_bytes, Some(args.to_string().len() as u64));
}

#[tokio::test]
async fn r10_two_calls_with_one_id_are_two_records() {
    let place = Place::new([echo()]);
    let both = [1, 2].map(|n| place.run(Call::new("echo", json!({"n": n})).id("toolu_1")));
    futures_util::future::join_all(both).await;
    let page = place.page("");
    assert_eq!(super::ids(&page.calls), ["toolu_1", "toolu_1"]);
    let keys: Vec<&str> = page.calls.iter().map(|call| call.key.as_str()).collect();
    assert_ne!(keys[0], keys[1]);
    let mut results = keys
        .iter()
        .map(|key| place.record(key).details.result.unwrap());
    let results = [results.next().unwrap(), results.next().unwrap()];
    assert!(results.contains(&json!({"n": 1})) && results.contains(&json!({"n": 2})));
}

#[tokio::test]
async fn v02_a_running_call_is_there_with_its_arguments_and_ends_as_the_same_record() {
    let slow = |args: Value| async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        Ok::<Value, ToolError>(args)
    };
    let place = Place::new([Tool::function("slow", "d", slow)]);
    let running = tokio::spawn({
        let executor = place.executor.clone();
        async move {
            executor
                .execute(Call::new("slow", json!({"n": 1})).id("c-1"))
                .await
        }
    });
    let mut seen = None;
    until("the call is seen while it runs", || {
        let record = place.history.call("c-1").unwrap();
        seen = record.filter(|record| record.details.arguments.is_some());
        seen.is_some()
    })
    .await;
    let seen = seen.unwrap();
    assert_eq!(
        (seen.call.state, seen.call.took_ms),
        (CallState::Running, None)
    );
    assert_eq!(seen.details.arguments, Some(json!({"n": 1})));
    running.await.unwrap();
    let ended = place.record("c-1");
    assert_eq!(
        (ended.call.state, ended.call.key),
        (CallState::Ok, seen.call.key)
    );
    assert_eq!(place.ids(""), ["c-1"]);
}

#[tokio::test]
async fn r07_a_call_answered_for_another_of_the_same_key_says_so() {
    let place = Place::new([echo()]);
    for id in ["first", "second"] {
        place.run(call(id, "echo").idempotency_key("k")).await;
    }
    let replayed = ["first", "second"].map(|id| place.record(id).call.replayed);
    assert_eq!(replayed, [false, true]);
}

#[tokio::test]
async fn v02_calls_are_exported_one_a_line() {
    let place = Place::new([echo(), ill()]);
    for number in 0..450 {
        let name = if number % 3 == 0 { "ill" } else { "echo" };
        place.run(call(&format!("c-{number}"), name)).await;
    }
    let mut out = Vec::new();
    let filter = steadyhand_store::history::Filter::parse("state:failed", 0).unwrap();
    place.flush();
    let count = place.history.export(&filter, &mut out).unwrap();
    let records: Vec<CallRecord> = out
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!((count, records.len()), (150, 150));
    assert_eq!(records[0].call.id, "c-447");
    assert_eq!(records[149].call.id, "c-0");
    assert!(records.iter().all(|record| record.details.error.is_some()));
}
