//! The file changes while calls run: checked first, swapped as a whole, and only what changed starts anew.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use steadyhand::{BreakerState, Call};
use steadyhand_cli::extensions::EXTENSIONS;
use steadyhand_config::{Configuration, Surroundings};
use steadyhand_runtime::runtime::{Options, Runtime};

use crate::support::{PATIENCE, Workplace};

const BEFORE: &str = r#"
[tools.steady]
kind = "mock"
answers = [{ fail = "refusal", every = 2 }, { result = "steady" }]

[tools.changing]
kind = "mock"
mock_response = "before"

[tools.slow]
kind = "mock"
answers = [{ result = "slow", delay = "300ms" }]

[tools.ill]
kind = "mock"
answers = [{ fail = "network" }]
breaker = { failures = 1 }
retry = { attempts = 1 }
"#;

async fn started(workplace: &Workplace) -> Runtime {
    let surroundings = Surroundings::of_this_process();
    let file = workplace.file("steadyhand.toml");
    let configuration =
        Configuration::load(Some(&file), &surroundings, &EXTENSIONS).expect("a right file");
    let mut options = Options::new(surroundings, &EXTENSIONS);
    options.state = workplace.file("state");
    Runtime::start(configuration, options).await
}

async fn answer(runtime: &Runtime, tool: &str) -> serde_json::Value {
    let outcome = runtime.executor().execute(Call::new(tool, json!({}))).await;
    match outcome.result {
        Ok(output) => output.into_value(),
        Err(failure) => json!({ "failed": failure.message }),
    }
}

/// Looks until it is so; a file system may be slow to tell.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let patience = tokio::time::Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(
            tokio::time::Instant::now() < patience,
            "never came true: {what}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_changed_file_is_in_force_without_restart_and_the_rest_goes_on() {
    let workplace = Workplace::with_config(BEFORE);
    let runtime = started(&workplace).await;
    assert_eq!(answer(&runtime, "steady").await, "steady");
    assert_eq!(answer(&runtime, "changing").await, "before");
    answer(&runtime, "ill").await;
    assert_eq!(
        runtime.manager().breaker("ill").expect("a breaker").state,
        BreakerState::Open
    );

    let changed = BEFORE.replace("\"before\"", "\"after\"")
        + "[tools.new]\nkind = \"mock\"\nmock_response = 1\n";
    workplace.write("steadyhand.toml", &changed);
    assert_eq!(runtime.reload().await.expect("a right file"), 2);

    assert_eq!(answer(&runtime, "changing").await, "after");
    assert_eq!(answer(&runtime, "new").await, 1);
    // Untouched ones go on where they were: the second call refuses, the breaker is still open.
    assert_eq!(
        answer(&runtime, "steady").await["failed"],
        "steady says no, on purpose"
    );
    assert_eq!(
        runtime.manager().breaker("ill").expect("a breaker").state,
        BreakerState::Open
    );
    assert_eq!(
        runtime
            .manager()
            .metrics("changing")
            .expect("a tool")
            .total_executions,
        2
    );
}

#[tokio::test]
async fn a_changed_policy_restarts_no_source() {
    let workplace = Workplace::with_config(BEFORE);
    let runtime = started(&workplace).await;
    assert_eq!(answer(&runtime, "steady").await, "steady");
    let changed = BEFORE.replacen("[tools.steady]", "[tools.steady]\ntimeout = \"3s\"", 1);
    workplace.write("steadyhand.toml", &changed);
    runtime.reload().await.expect("a right file");
    let policy = runtime.manager().policy("steady").expect("a tool");
    assert_eq!(policy.timeout, Duration::from_secs(3));
    // Its handler is the same one: it remembers that this is the second call.
    assert_eq!(
        answer(&runtime, "steady").await["failed"],
        "steady says no, on purpose"
    );
}

#[tokio::test]
async fn a_wrong_file_changes_nothing_and_says_so() {
    let workplace = Workplace::with_config(BEFORE);
    let runtime = started(&workplace).await;
    workplace.write("steadyhand.toml", "[tools.changing]\nkind = \"mok\"\n");
    let report = runtime.reload().await.expect_err("a wrong file");
    assert_eq!(report.problems.len(), 2);
    assert_eq!(answer(&runtime, "changing").await, "before");
    assert_eq!(runtime.generation().number, 1);
    assert!(runtime.last_reload().expect("one reload").is_err());
}

#[tokio::test]
async fn a_call_that_runs_ends_as_it_began() {
    let workplace = Workplace::with_config(BEFORE);
    let runtime = started(&workplace).await;
    let calling = runtime.clone();
    let running = tokio::spawn(async move { answer(&calling, "slow").await });
    until("the call runs", async || {
        runtime.manager().metrics("slow").expect("a tool").in_flight == 1
    })
    .await;
    workplace.write(
        "steadyhand.toml",
        "[tools.other]\nkind = \"mock\"\nmock_response = 1\n",
    );
    runtime.reload().await.expect("a right file");
    assert!(runtime.manager().find("slow").is_none());
    assert_eq!(running.await.expect("an answer"), "slow");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_written_is_read_by_itself() {
    let workplace = Workplace::with_config(BEFORE);
    let runtime = started(&workplace).await;
    let _watching = runtime.watch().expect("a watch on the folder");
    workplace.write(
        "steadyhand.toml",
        &BEFORE.replace("\"before\"", "\"after\""),
    );
    until("the new answer", async || {
        answer(&runtime, "changing").await == "after"
    })
    .await;

    // As editors do it: a new file in the place of the old one.
    workplace.write(
        "steadyhand.toml.new",
        &BEFORE.replace("\"before\"", "\"moved\""),
    );
    std::fs::rename(
        workplace.file("steadyhand.toml.new"),
        workplace.file("steadyhand.toml"),
    )
    .expect("a rename");
    until("the moved answer", async || {
        answer(&runtime, "changing").await == "moved"
    })
    .await;

    // The configuration is made of another file from here on: that one is watched too.
    workplace.write(
        "schemas/a.json",
        r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
    );
    let with_schema = BEFORE.replacen(
        "mock_response = \"before\"",
        "mock_response = \"third\"\ninput = \"schemas/a.json\"",
        1,
    );
    workplace.write("steadyhand.toml", &with_schema);
    until("the third answer", async || {
        answer(&runtime, "changing").await == "third"
    })
    .await;
    workplace.write("schemas/a.json", r#"{"type":"object","required":["a"]}"#);
    until("the new schema", async || {
        answer(&runtime, "changing").await != "third"
    })
    .await;
    workplace.write(
        "steadyhand.toml",
        &BEFORE.replace("\"before\"", "\"moved\""),
    );
    until("the moved answer again", async || {
        answer(&runtime, "changing").await == "moved"
    })
    .await;

    workplace.write("steadyhand.toml", "not a configuration");
    until("the refusal", async || {
        runtime.last_reload().is_some_and(|last| last.is_err())
    })
    .await;
    assert_eq!(answer(&runtime, "changing").await, "moved");
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_file_is_not_taken_over_however_slowly_the_rest_is_written() {
    let (first, rest) = BEFORE.split_at(BEFORE.find("[tools.changing]").expect("a tool"));
    let rest = rest.replace("\"before\"", "\"after\"");
    let workplace = Workplace::with_config(BEFORE);
    let runtime = started(&workplace).await;
    let _watching = runtime.watch().expect("a watch on the folder");
    let calling = runtime.clone();
    let caller = tokio::spawn(async move {
        while answer(&calling, "changing").await != "after" {
            let refusal = calling.last_reload().and_then(Result::err);
            assert!(refusal.is_none(), "{}", refusal.expect("a report"));
            assert!(calling.manager().find("changing").is_some());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    // In place: empty for a while, then with one tool of four for a while.
    let mut file = std::fs::File::create(workplace.file("steadyhand.toml")).expect("a file");
    for text in ["", first, &rest] {
        tokio::time::sleep(Duration::from_secs(1)).await;
        file.write_all(text.as_bytes()).expect("written");
    }
    drop(file);
    tokio::time::timeout(PATIENCE, caller)
        .await
        .expect("the new answer")
        .expect("no call failed");
}

#[tokio::test]
async fn a_file_that_became_empty_is_refused_and_one_with_a_comment_is_not() {
    let workplace = Workplace::with_config(BEFORE);
    let runtime = started(&workplace).await;
    workplace.write("steadyhand.toml", "\n");
    let report = runtime.reload().await.expect_err("it is more likely lost");
    let problem = &report.problems[0];
    assert!(
        problem
            .message
            .ends_with("steadyhand.toml has become empty")
    );
    assert!(
        problem
            .help
            .as_deref()
            .is_some_and(|help| help.contains("a comment"))
    );
    assert_eq!(answer(&runtime, "changing").await, "before");
    workplace.write("steadyhand.toml", "# no tools today\n");
    assert_eq!(runtime.reload().await.expect("a right file"), 2);
    assert!(runtime.manager().find("changing").is_none());
}

#[tokio::test]
async fn calls_never_fail_while_the_configuration_changes() {
    let workplace = Workplace::with_config(BEFORE);
    let runtime = Arc::new(started(&workplace).await);
    let calling = Arc::clone(&runtime);
    let caller = tokio::spawn(async move {
        for _ in 0..200 {
            let answer = answer(&calling, "changing").await;
            assert!(answer == "before" || answer == "after", "{answer}");
            tokio::task::yield_now().await;
        }
    });
    for round in 0..10 {
        let word = if round % 2 == 0 {
            "\"after\""
        } else {
            "\"before\""
        };
        workplace.write("steadyhand.toml", &BEFORE.replace("\"before\"", word));
        runtime.reload().await.expect("a right file");
    }
    caller.await.expect("no call failed");
}
