//! SPEC V14 to V16, D17: attempts and what is logged of them, what goes on meanwhile, and servers that are down.

use std::time::Duration;

use tokio::time::Instant;

use serde_json::{Value, json};
use steadyhand::{BreakerState, Call, Effect, FailureCode, Outcome};
use steadyhand_mcp::Phase;

use super::{Bench, broken_from_now_on, hostile, started, until};
use crate::support::{PATIENCE, parts};

const LOCAL: &str = "[tools.local]\nkind = \"mock\"\nmock_response = \"at once\"\n";

#[test]
fn v14_three_attempts_with_waits_of_0_2_and_4_seconds_each_logged() {
    let config = hostile("gone", "exit1_before_init")
        .replace("start.waits = [\"0s\", \"20ms\", \"20ms\"]\n", "");
    let bench = Bench::with(&config);
    let (code, _, stderr) = parts(&bench.run("call gone__echo message=hi -v"));
    assert_eq!(code, 4, "{stderr}");
    let mut rest = stderr.as_str();
    for line in [
        "MCP connection attempt 1 of 3, delay 0 ms",
        "MCP connection attempt 2 of 3, delay 2000 ms",
        "MCP connection attempt 3 of 3, delay 4000 ms",
        "MCP connection failed after 3 attempts",
    ] {
        let place = rest.find(line);
        rest = &rest[place.unwrap_or_else(|| panic!("no {line:?} in {stderr}"))..];
    }
}

#[test]
fn v14_success_says_on_which_attempt() {
    let config = hostile("flaky", "flaky_start 1") + "env.HOSTILE_STATE = \"shown\"\n";
    let bench = Bench::with(&config);
    let (code, stdout, stderr) = parts(&bench.run("call flaky__echo message=hi -v"));
    assert_eq!((code, stdout.as_str()), (0, "hi\n"), "{stderr}");
    assert!(
        stderr.contains("MCP connection succeeded on attempt 2"),
        "{stderr}"
    );
    let (code, _, stderr) = parts(&bench.run("call flaky__echo message=hi -v"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("MCP connection attempt 1 of 3, delay 0 ms"),
        "{stderr}"
    );
    assert!(
        stderr.contains("MCP connection succeeded on attempt 1"),
        "{stderr}"
    );
}

#[test]
fn v15_when_all_attempts_fail_the_log_has_reason_stderr_and_what_to_check() {
    let config = hostile("gone", "traceback") + "check = [\"MQTT broker running\"]\n";
    let bench = Bench::with(&config);
    let (_, _, stderr) = parts(&bench.run("call gone__echo message=hi -v"));
    let failed = stderr
        .lines()
        .find(|line| line.contains("MCP connection failed after 3 attempts"));
    let failed = failed.unwrap_or_else(|| panic!("not logged: {stderr}"));
    assert!(
        failed.contains("reason=\"exited with code 1 at initialize"),
        "{failed}"
    );
    assert!(
        failed.contains("ModuleNotFoundError: No module named 'mcp'"),
        "{failed}"
    );
    assert!(failed.contains("check=\"MQTT broker running\""), "{failed}");
}

async fn call(runtime: &steadyhand_runtime::runtime::Runtime, tool: &str, args: Value) -> Outcome {
    runtime.executor().execute(Call::new(tool, args)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn v15_local_tools_go_on_working_and_the_server_comes_back_by_itself() {
    let config =
        LOCAL.to_owned() + &hostile("late", "flaky_start 4") + "env.HOSTILE_STATE = \"shown\"\n";
    let bench = Bench::with(&config);
    let runtime = started(&bench).await;
    let server = runtime.server("late").expect("it is configured");
    until("it is known to be down", async || {
        server.state().phase == Phase::Down
    })
    .await;
    assert_eq!(
        call(&runtime, "local", json!({}))
            .await
            .output()
            .expect("local")
            .value(),
        "at once"
    );
    // Not for a call: none comes.
    until("it is back", async || {
        server.state().phase == Phase::Running
    })
    .await;
    until("its tools are there", async || {
        runtime.manager().find("late__echo").is_some()
    })
    .await;
    runtime.stop_servers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v16_local_tools_and_other_servers_answer_while_one_is_starting() {
    let config = LOCAL.to_owned() + &hostile("quick", "well") + &hostile("slow", "silent_init");
    let bench = Bench::with(&config);
    let runtime = started(&bench).await;
    let slow = runtime.server("slow").expect("it is configured");
    let local = call(&runtime, "local", json!({})).await;
    assert!(local.is_success());
    let quick = call(&runtime, "quick__echo", json!({"message": "hi"})).await;
    assert_eq!(quick.output().expect("an answer").value(), "hi");
    assert_eq!(slow.state().phase, Phase::Starting, "it is still at it");
    // Only who needs it waits, within the deadline, and nothing was done.
    let patient = Call::new("slow__echo", json!({"message": "hi"}));
    let outcome = runtime
        .executor()
        .execute(patient.deadline(Duration::from_millis(300)))
        .await;
    let failure = outcome.failure().expect("it did not come");
    assert_eq!(
        (failure.code, failure.effect),
        (FailureCode::Timeout, Effect::None)
    );
    runtime.stop_servers().await;
}

#[test]
fn v16_a_call_waits_for_a_server_that_starts_slowly() {
    let bench = Bench::with(&hostile("slow", "slow_start 1.5"));
    let (code, stdout, stderr) = parts(&bench.run("call slow__echo message=hi"));
    assert_eq!((code, stdout.as_str()), (0, "hi\n"), "{stderr}");
    assert!(
        stderr.contains("slow starting: initialize"),
        "it is said in a log: {stderr}"
    );
}

#[test]
fn v16_the_wait_for_a_server_ends_with_the_deadline_and_says_who_was_waited_for() {
    let bench = Bench::with(&hostile("slow", "silent_init"));
    let began = Instant::now();
    let (code, stdout, stderr) =
        parts(&bench.run("call slow__echo message=hi --deadline 400ms --json"));
    assert!(began.elapsed() < PATIENCE);
    assert_eq!(code, 6, "{stderr}");
    let outcome: Value = serde_json::from_str(&stdout).expect("an outcome");
    assert_eq!(outcome["status"], "timeout");
    assert_eq!(outcome["error"]["effect"], "none");
    let (code, _, stderr) = parts(&bench.run("call slow__echo message=hi --deadline 400ms"));
    assert_eq!(code, 6);
    assert!(
        stderr.contains("MCP server 'slow' was still starting (at initialize)"),
        "{stderr}"
    );
    bench.assert_nobody_left();
}

#[tokio::test(flavor = "multi_thread")]
async fn d17_a_server_known_to_be_down_fails_its_calls_at_once_and_leaves_breakers_alone() {
    let bench = Bench::with(&broken_from_now_on("once", 0));
    // Its tools are known from a better time.
    let runtime = started(&bench).await;
    runtime.servers_settled(PATIENCE).await;
    runtime.stop_servers().await;
    drop(runtime);
    bench.write(
        "steadyhand.toml",
        &(broken_from_now_on("once", 1000) + "breaker = { failures = 1 }\n"),
    );
    let runtime = started(&bench).await;
    let server = runtime.server("once").expect("it is configured");
    until("it is known to be down", async || {
        server.state().phase == Phase::Down
    })
    .await;
    assert!(
        runtime.manager().find("once__echo").is_some(),
        "listed, as not available"
    );
    assert_eq!(runtime.state_of("once__echo"), "not running");
    let reason = runtime.unavailable("once__echo").expect("a reason");
    assert!(
        reason.starts_with("MCP server 'once' is not running: exited with code 1"),
        "{reason}"
    );
    for _ in 0..3 {
        let outcome = call(&runtime, "once__echo", json!({"message": "hi"})).await;
        let failure = outcome.failure().expect("it is down");
        assert_eq!(failure.code, FailureCode::NetworkError);
        assert_eq!(failure.effect, Effect::None);
        assert_eq!(outcome.attempts, 1, "no retry");
    }
    let breaker = runtime.manager().breaker("once__echo").expect("a breaker");
    assert_eq!((breaker.state, breaker.failures), (BreakerState::Closed, 0));
    // Mended, it comes back: a call asks for it.
    bench.write("shown", &".".repeat(1000));
    until("a call works again", async || {
        call(&runtime, "once__echo", json!({"message": "hi"}))
            .await
            .is_success()
    })
    .await;
    runtime.stop_servers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d17_a_server_that_is_back_has_its_tools_breakers_closed() {
    let config = hostile("dies", "exit_mid_call")
        + "env.HOSTILE_STATE = \"shown\"\nretry = { attempts = 1 }\nbreaker = { failures = 1, cooldown = \"1h\" }\n";
    let bench = Bench::with(&config);
    let runtime = started(&bench).await;
    runtime.servers_settled(PATIENCE).await;
    let outcome = call(&runtime, "dies__trouble", json!({})).await;
    let failure = outcome.failure().expect("it died");
    assert_eq!(
        (failure.code, failure.effect),
        (FailureCode::NetworkError, Effect::Unknown)
    );
    until("it is back, and its breaker closed", async || {
        let breaker = runtime
            .manager()
            .breaker("dies__trouble")
            .expect("a breaker");
        runtime.server("dies").expect("configured").state().starts == 2
            && breaker.state == BreakerState::Closed
    })
    .await;
    assert!(
        call(&runtime, "dies__trouble", json!({}))
            .await
            .is_success()
    );
    runtime.stop_servers().await;
}
