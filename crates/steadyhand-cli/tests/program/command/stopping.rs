//! Nothing survives its call: not children, not those who ignore TERM, not daemons.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::{Call, Effect, FailureCode, Outcome, Status, ToolExecutor};
use steadyhand_runtime::source::command::settle;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{LONG, executor, mark, processes, script, tool_in, until, value, with};

struct Running {
    mark: String,
    call: JoinHandle<Outcome>,
}

/// Starts a script and waits until so many of its processes are there.
async fn start(text: &str, count: usize) -> Running {
    start_with(script(text), count, |call| call.timeout(LONG)).await
}

async fn start_with(settings: Value, count: usize, change: impl FnOnce(Call) -> Call) -> Running {
    let mark = mark();
    let settings = with(settings, "env", json!({"TEST_MARK": mark}));
    let executor = marked(settings).await;
    let call = change(Call::new("program", "{}"));
    let call = tokio::spawn(async move { executor.execute(call).await });
    until("all processes run", || processes(&mark).len() >= count).await;
    Running { mark, call }
}

async fn marked(settings: Value) -> ToolExecutor {
    executor(tool_in(Path::new("/"), settings).await)
}

impl Running {
    /// Drops the call, then waits until its processes are gone.
    async fn stop(self) {
        self.call.abort();
        self.gone().await;
    }

    async fn gone(&self) {
        until("nothing is left", || processes(&self.mark).is_empty()).await;
    }
}

#[tokio::test]
async fn v07_a_grandchild_does_not_outlive_the_time_limit() {
    let settings = script("sleep 60 & sleep 60; echo late");
    let running = start_with(settings, 3, |call| call.timeout(Duration::from_secs(3))).await;
    let began = Instant::now();
    let mark = running.mark.clone();
    let outcome = running.call.await.expect("no panic");
    assert!(began.elapsed() < LONG);
    assert_eq!(outcome.status(), Status::Timeout);
    let failure = outcome.failure().expect("a failure");
    assert_eq!(failure.code, FailureCode::Timeout);
    assert_eq!(failure.effect, Effect::Unknown);
    assert_eq!(outcome.attempts, 1, "a command is not safe to repeat");
    until("nothing is left", || processes(&mark).is_empty()).await;
}

#[tokio::test]
async fn v07_a_program_that_ignores_term_is_killed_with_its_children() {
    let text = "trap '' TERM; sleep 60 & while :; do sleep 1; done";
    let running = start(text, 3).await;
    running.stop().await;
}

#[tokio::test]
async fn v07_a_program_may_tidy_up_before_it_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tidy");
    let text = format!(
        "trap 'echo yes > {}; exit' TERM; sleep 60 & wait",
        file.display()
    );
    let running = start(&text, 2).await;
    running.stop().await;
    assert_eq!(std::fs::read_to_string(&file).expect("written"), "yes\n");
}

#[tokio::test]
async fn v07_a_stopped_program_is_ended_too() {
    let running = start("kill -STOP $$; sleep 60", 1).await;
    let is_stopped = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.contains("State:\tT")
    };
    until("it is stopped", || {
        processes(&running.mark).iter().any(is_stopped)
    })
    .await;
    running.stop().await;
}

#[tokio::test]
async fn v07_a_daemon_with_a_session_of_its_own_is_found() {
    let text = "(setsid sh -c 'trap \"\" TERM; sleep 61; :' &) ; sleep 60";
    let running = start(text, 4).await;
    running.stop().await;
}

#[tokio::test]
async fn v07_a_daemon_that_has_cleared_its_environment_is_found_by_its_parent() {
    let unique = mark();
    let text = format!(
        "env -i PATH=\"$PATH\" setsid sh -c 'trap \"\" TERM; sleep 61; :' {unique} & sleep 60"
    );
    let running = start(&text, 2).await;
    until("the daemon runs", || processes(&unique).len() >= 2).await;
    running.stop().await;
    until("no daemon is left", || processes(&unique).is_empty()).await;
}

#[tokio::test]
async fn v07_a_cancelled_call_ends_its_program() {
    let token = CancellationToken::new();
    let running = start_with(script("sleep 60 & sleep 60"), 3, |call| {
        call.cancellation(token.clone())
    })
    .await;
    token.cancel();
    let mark = running.mark.clone();
    let outcome = running.call.await.expect("no panic");
    assert_eq!(
        outcome.failure().expect("a failure").code,
        FailureCode::Cancelled
    );
    until("nothing is left", || processes(&mark).is_empty()).await;
}

#[tokio::test]
async fn v07_a_dropped_call_ends_its_program() {
    let running = start("sleep 60 & sleep 60", 3).await;
    running.stop().await;
}

#[test]
fn v07_a_runtime_that_ends_leaves_no_program_behind() {
    let runtime = || tokio::runtime::Runtime::new().expect("a runtime");
    let first = runtime();
    let text = "trap '' TERM; (setsid sleep 61 &) ; sleep 60";
    let running = first.block_on(start(text, 3));
    drop(first);
    runtime().block_on(running.gone());
}

#[tokio::test]
async fn v07_settling_waits_for_programs_that_are_being_stopped() {
    let running = start("trap '' TERM; sleep 60 & sleep 60; :", 3).await;
    running.call.abort();
    let _ = running.call.await;
    settle(LONG).await;
    assert!(processes(&running.mark).is_empty());
}

#[tokio::test]
async fn v07_what_keeps_the_output_open_does_not_keep_the_call() {
    let mark = mark();
    let settings = with(
        script("sleep 60 & echo done"),
        "env",
        json!({"TEST_MARK": mark}),
    );
    let began = Instant::now();
    let outcome = marked(settings)
        .await
        .execute(Call::new("program", "{}"))
        .await;
    assert_eq!(value(&outcome), "done");
    assert!(began.elapsed() < LONG);
    until("nothing is left", || processes(&mark).is_empty()).await;
}

#[tokio::test]
async fn what_a_program_starts_may_go_on_where_the_configuration_says_so() {
    let mark = mark();
    let settings = with(
        script("sleep 60 > /dev/null 2>&1 & echo $!"),
        "env",
        json!({"TEST_MARK": mark}),
    );
    let settings = with(settings, "background", json!("keep"));
    let outcome = marked(settings)
        .await
        .execute(Call::new("program", "{}"))
        .await;
    let pid = value(&outcome).as_str().expect("a number").to_owned();
    settle(Duration::from_secs(3)).await;
    assert_eq!(processes(&mark), [pid.parse::<u32>().expect("a number")]);
    let killed = super::call(json!({"command": ["kill", "-9", pid]}), json!({})).await;
    assert!(killed.is_success(), "{killed:?}");
    until("nothing is left", || processes(&mark).is_empty()).await;
}

#[tokio::test]
async fn no_zombies_are_left() {
    let outcome = super::call(script("echo $$"), json!({})).await;
    let pid: u32 = value(&outcome)
        .as_str()
        .expect("a number")
        .parse()
        .expect("a number");
    let path = format!("/proc/{pid}");
    until("it is reaped", || !Path::new(&path).exists()).await;
}
