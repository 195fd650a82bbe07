//! SPEC V14 to V17, D17: starts that fail, what is said about them, and what goes on meanwhile.

use std::process::Command;
use std::time::Duration;

use serde_json::json;
use steadyhand::FailureCode::NetworkError;
use steadyhand::{Call, Effect};
use steadyhand_mcp::failure::continuing;
use steadyhand_mcp::{Phase, StartPolicy, Step, When};
use tokio::time::Instant;

use crate::logs::Logs;
use crate::support::{Folder, PATIENCE, SILENCE, Stage, failure, is_silent, set, until};

#[test]
fn v14_the_attempts_are_three_with_waits_of_0_2_and_4_seconds() {
    let policy = StartPolicy::default();
    assert_eq!(policy.waits, [0, 2, 4].map(Duration::from_secs));
    assert_eq!(policy.limit, Duration::from_secs(20));
}

#[tokio::test]
async fn v14_each_attempt_is_logged_with_its_number_and_delay() {
    let logs = Logs::capture();
    let stage = Stage::of(&["flaky_start", "2"]).await;
    assert_eq!(stage.server.state().phase, Phase::Running);
    for (attempt, delay) in [(1, 0), (2, 20), (3, 20)] {
        let text = format!("INFO MCP connection attempt {attempt} of 3, delay {delay} ms");
        logs.assert_has(&[&text, "server=hostile"]);
    }
    logs.assert_has(&[
        "INFO MCP connection succeeded on attempt 3",
        "server=hostile",
    ]);
    assert_eq!(logs.with(&["MCP connection attempt failed"]).len(), 2);
    stage.assert_next_call_works().await;
    stage.over().await;
}

#[tokio::test]
async fn v14_success_at_once_has_no_delay() {
    let logs = Logs::capture();
    let stage = Stage::of(&["well"]).await;
    logs.assert_has(&["MCP connection attempt 1 of 3, delay 0 ms"]);
    logs.assert_has(&["INFO MCP connection succeeded on attempt 1"]);
    assert!(logs.with(&["MCP connection attempt 2"]).is_empty());
    stage.over().await;
}

#[tokio::test]
async fn v15_when_all_attempts_fail_the_reason_the_stderr_and_what_to_check_are_said() {
    let logs = Logs::capture();
    let folder = Folder::new();
    let mut settings = folder.hostile(&["exit1_before_init"]);
    set(&mut settings, "HOSTILE_TIMES", "3");
    settings.check = vec![
        "MQTT broker running".into(),
        "zwave-mcp-server installed".into(),
    ];
    let stage = Stage::with(folder, settings).await;
    logs.assert_has(&[
        "MCP connection failed after 3 attempts",
        "server=hostile",
        "reason=exited with code 1 at initialize, after ",
        "stderr=cannot open /etc/hostile.conf",
        "check=MQTT broker running, zwave-mcp-server installed",
    ]);
    // Later reconnection goes on in the background, without any call.
    until("it is back", || {
        stage.server.state().phase == Phase::Running
    })
    .await;
    logs.assert_has(&["INFO MCP server is back", "server=hostile"]);
    stage.take_tools();
    stage.assert_next_call_works().await;
    stage.over().await;
}

#[tokio::test]
async fn v16_calls_wait_for_the_start_and_nothing_else_does() {
    let stage = Stage::remembered(&["slow_start", "2"], |_| {}).await;
    let other = Stage::of(&["well"]).await;
    other.assert_next_call_works().await;
    assert_eq!(stage.server.state().phase, Phase::Starting);
    stage.assert_next_call_works().await;
    other.over().await;
    stage.over().await;
}

#[tokio::test]
async fn v16_a_call_that_cannot_wait_so_long_has_done_nothing() {
    let stage = Stage::remembered(&["slow_start", "30"], |_| {}).await;
    let call = Call::new("note", json!({"message": "x"})).timeout(Duration::from_millis(400));
    let outcome = stage.run(call).await;
    let (code, effect, words) = failure(&outcome);
    assert_eq!((code, effect), (NetworkError, Effect::None), "{words}");
    assert!(
        words.contains("was still starting (at initialize)"),
        "{words}"
    );
    assert!(words.contains("was not sent"), "{words}");
    stage.over().await;
}

#[tokio::test]
async fn d17_a_server_known_to_be_down_is_not_waited_for() {
    let stage = Stage::remembered(&["exit1_before_init"], |settings| {
        set(settings, "HOSTILE_TIMES", "1000000");
        settings.start.retry_first = Duration::from_secs(600);
    })
    .await;
    assert!(!stage.server.settled(PATIENCE).await);
    let began = Instant::now();
    for _ in 0..10 {
        let outcome = stage.call("echo", json!({"message": "hi"})).await;
        let (code, effect, words) = failure(&outcome);
        assert_eq!((code, effect), (NetworkError, Effect::None), "{words}");
        assert!(
            words.starts_with(
                "MCP server 'hostile' is not running: exited with code 1 at initialize"
            ),
            "{words}"
        );
        assert_eq!(outcome.attempts, 1, "no retry");
    }
    assert!(began.elapsed() < Duration::from_secs(10));
    let metrics = stage.executor.tools().breaker("echo").expect("a breaker");
    assert_eq!(format!("{:?}", metrics.state), "Closed", "it is left alone");
    stage.over().await;
}

#[tokio::test]
async fn d17_a_call_brings_a_server_back_that_is_down() {
    let stage = Stage::remembered(&["exit1_before_init"], |settings| {
        set(settings, "HOSTILE_TIMES", "3");
        settings.start.retry_first = Duration::from_secs(600);
    })
    .await;
    assert!(!stage.server.settled(PATIENCE).await);
    stage.assert_comes_back().await;
    stage.over().await;
}

#[tokio::test]
async fn v16_a_lazy_server_is_started_by_its_first_call_and_stopped_when_idle() {
    let stage = Stage::remembered(&["well"], |settings| {
        settings.start.when = When::FirstCall;
        settings.start.idle_stop = Some(Duration::from_millis(300));
    })
    .await;
    assert_eq!(stage.server.state().phase, Phase::Idle);
    stage.assert_next_call_works().await;
    until("it rests", || stage.server.state().phase == Phase::Idle).await;
    stage.folder.assert_nobody_left().await;
    stage.assert_next_call_works().await;
    assert_eq!(stage.server.state().starts, 2);
    stage.over().await;
}

/// The failure of a mode that fails all its starts.
async fn failed(mode: &str) -> (Stage, std::sync::Arc<steadyhand_mcp::StartFailure>) {
    let folder = Folder::new();
    let mut settings = folder.hostile(&[mode]);
    set(&mut settings, "HOSTILE_TIMES", "1000000");
    if is_silent(mode) {
        settings.start.limit = SILENCE;
    }
    settings.start.retry_first = Duration::from_secs(600);
    let stage = Stage::with(folder, settings).await;
    let failure = stage.server.state().failure.expect("it failed");
    (stage, failure)
}

#[tokio::test]
async fn v17_a_crash_with_a_traceback_is_explained() {
    let (stage, failure) = failed("traceback").await;
    let text = failure.v17(&[]);
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("❌ Failed to initialize MCP tools after 3 attempts")
    );
    assert_eq!(
        lines.next(),
        Some("   Reason: Connection to stdio server 'hostile' failed")
    );
    assert!(text.contains("   MCP Server stderr: "), "{text}");
    assert!(
        text.contains("ModuleNotFoundError: No module named 'mcp'"),
        "{text}"
    );
    assert!(
        lines
            .next_back()
            .is_some_and(|line| line.starts_with("   Check: ")),
        "{text}"
    );
    let names = ["math_eval", "echo"];
    assert_eq!(
        continuing(&names),
        "⚠️ Continuing with local tools only (math_eval, echo)"
    );
    let detail = failure.detail();
    for part in [
        "Error: hostile did not start",
        "initialize: exited with code 1",
        "starting calendar server",
        "\"mcp\"",
    ] {
        assert!(detail.contains(part), "{part:?} in {detail}");
    }
    stage.over().await;
}

#[tokio::test]
async fn v17_what_to_check_comes_from_the_configuration() {
    let (stage, failure) = failed("exit1_before_init").await;
    let check = [
        "MQTT broker running".to_owned(),
        "zwave-mcp-server installed".to_owned(),
    ];
    let text = failure.v17(&check);
    assert!(
        text.ends_with("   Check: MQTT broker running, zwave-mcp-server installed"),
        "{text}"
    );
    assert!(
        text.contains("   MCP Server stderr: cannot open /etc/hostile.conf"),
        "{text}"
    );
    stage.over().await;
}

#[tokio::test]
async fn v17_a_missing_command_is_explained() {
    let folder = Folder::new();
    let mut settings = folder.hostile(&["well"]);
    settings.as_stdio().command = "no-such-mcp-server".to_owned();
    let stage = Stage::with(folder, settings).await;
    let failure = stage.server.state().failure.expect("it failed");
    assert_eq!(failure.step, Step::FindCommand);
    let text = failure.v17(&[]);
    assert!(
        text.starts_with("❌ Failed to initialize MCP tools after "),
        "{text}"
    );
    assert!(
        text.contains("   Reason: Connection to stdio server 'hostile' failed"),
        "{text}"
    );
    assert!(text.contains("   MCP Server stderr: (nothing)"), "{text}");
    let detail = failure.detail();
    assert!(
        detail.contains("\"no-such-mcp-server\" is not in PATH"),
        "{detail}"
    );
    stage.over().await;
}

#[tokio::test]
async fn v17_a_silent_server_is_explained() {
    let (stage, failure) = failed("silent_init").await;
    assert_eq!(failure.step, Step::Initialize);
    let detail = failure.detail();
    assert!(
        detail.contains("hostile did not answer initialize within 2 s"),
        "{detail}"
    );
    assert!(detail.contains("stderr    (nothing)"), "{detail}");
    stage.over().await;
}

#[tokio::test]
async fn v17_a_server_that_talks_on_stdout_is_explained() {
    let (stage, failure) = failed("stdout_talker").await;
    let detail = failure.detail();
    assert!(
        detail.contains("stdout    1 line that is not MCP:  Hello! I print to stdout"),
        "{detail}"
    );
    stage.over().await;
}

#[tokio::test]
async fn v16_a_call_whose_time_is_up_while_its_server_starts_is_told_how_often_that_failed() {
    let stage = Stage::remembered(&["exit1_before_init"], |settings| {
        set(settings, "HOSTILE_TIMES", "9");
        settings.start.waits = vec![Duration::ZERO, Duration::ZERO, PATIENCE];
    })
    .await;
    until("two starts have failed", || stage.server.state().tries == 2).await;
    let call = Call::new("echo", json!({"message": "hi"})).deadline(Duration::from_millis(300));
    let outcome = stage.run(call).await;
    let (_, effect, message) = failure(&outcome);
    assert_eq!(effect, Effect::None);
    for part in [
        "was still starting (attempt 3 of 3) when the call's time was up",
        "2 starts failed, the last one: exited with code 1 at initialize",
        ": cannot open /etc/hostile.conf",
    ] {
        assert!(message.contains(part), "no {part:?} in {message}");
    }
    stage.over().await;
}

#[tokio::test]
async fn t03_a_server_that_ends_again_and_again_is_unstable_although_it_is_up() {
    let stage = Stage::of(&["well"]).await;
    assert_eq!(stage.server.state().unstable(), None);
    for death in 1..=3 {
        let pid = stage.server.state().pid.expect("it runs");
        let status = Command::new("kill").args(["-9", &pid.to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "it is ours");
        until("it is up again", || {
            let state = stage.server.state();
            state.deaths == death && state.phase == Phase::Running
        })
        .await;
    }
    let unstable = stage.server.state().unstable().expect("three deaths");
    assert_eq!(unstable.deaths, 3);
    let text = unstable.to_string();
    assert!(text.starts_with("ended 3 times in "), "{text}");
    assert!(text.contains("; the last time, it was killed"), "{text}");
    stage.over().await;
}
