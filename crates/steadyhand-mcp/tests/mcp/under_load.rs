//! `kill -9` of a server in the middle of many calls: every call gets one outcome, and nothing happens twice.

use std::process::Command;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use steadyhand::FailureCode::NetworkError;
use steadyhand::{Call, Effect, Outcome};
use steadyhand_mcp::Phase;
use tokio::time::Instant;

use crate::support::{Folder, PATIENCE, Stage, failure, processes, until};

const CALLS: usize = 200;

/// Half of them safe to repeat, half of them not; each says a message of its own.
fn calls() -> impl Iterator<Item = Call> {
    (0..CALLS).map(|number| {
        let tool = if number % 2 == 0 { "echo" } else { "note" };
        let args = json!({"message": format!("message {number}"), "delay_ms": 400});
        Call::with_id(number.to_string(), tool, args)
    })
}

#[tokio::test]
#[allow(clippy::print_stdout)]
async fn d7_every_call_is_answered_once_when_its_server_is_killed() {
    let stage = Stage::of(&["well"]).await;
    let executor = stage.executor.clone();
    let running =
        tokio::spawn(async move { join_all(calls().map(|call| executor.execute(call))).await });
    let ledger = || stage.folder.text("ledger").lines().count();
    until("half of them are at the server", || ledger() >= CALLS / 4).await;

    let killed = Instant::now();
    kill(&stage);
    stage.assert_comes_back().await;
    let recovered = killed.elapsed();
    let outcomes = tokio::time::timeout(PATIENCE, running).await;
    let outcomes = outcomes.expect("a call hangs").expect("no panic");
    let answered = killed.elapsed();

    assert_eq!(outcomes.len(), CALLS);
    for (number, outcome) in outcomes.iter().enumerate() {
        assert_eq!(outcome.call_id, number.to_string());
        assert_told_the_truth(outcome, number, &stage.folder.text("ledger"));
    }
    let failed = outcomes.iter().filter(|outcome| !outcome.is_success());
    let failed = failed.count();
    assert!(failed > 0, "the kill came too late to hit anything");
    let state = stage.server.state();
    assert_eq!(
        (state.phase, state.starts, state.deaths),
        (Phase::Running, 2, 1)
    );
    stage.assert_next_call_works().await;
    println!(
        "kill -9 under {CALLS} calls: the next call was answered after {recovered:.0?}, all of them after {answered:.0?}; \
         {} succeeded, {failed} failed with the truth about them",
        CALLS - failed
    );
    stage.over().await;
}

fn assert_told_the_truth(outcome: &Outcome, number: usize, ledger: &str) {
    let message = format!("message {number}");
    let written = ledger.lines().filter(|line| *line == message).count();
    let is_safe = number.is_multiple_of(2);
    match &outcome.result {
        Ok(output) => {
            assert_eq!(output.value(), &json!(message));
            assert_eq!(written, usize::from(!is_safe), "{message} is done once");
        }
        Err(failure) => {
            assert!(!is_safe, "what is safe to repeat is repeated: {failure}");
            assert_eq!(failure.code, NetworkError, "{failure}");
            match failure.effect {
                Effect::None => assert_eq!(written, 0, "{failure}"),
                Effect::Unknown => assert!(written <= 1, "{message} was done twice"),
                Effect::Done => panic!("nobody can know that: {failure}"),
            }
        }
    }
}

#[tokio::test]
async fn d7_what_is_said_to_be_unsent_is_never_sent_later() {
    let stage = Stage::of(&["reads_to_the_end"]).await;
    let executor = stage.executor.clone();
    let sleeper = tokio::spawn({
        let executor = executor.clone();
        async move { executor.execute(Call::new("trouble", json!({}))).await }
    });
    let ledger = || stage.folder.text("ledger");
    until("it reads no more", || ledger().contains("asleep")).await;
    // Far more than a pipe holds: some are with the server, some half sent, some not at all.
    let message = |number: usize| format!("message {number} {}", "x".repeat(20_000));
    let notes = (0..60).map(|number| Call::new("note", json!({"message": message(number)})));
    let notes: Vec<Call> = notes.collect();
    let notes = tokio::spawn(async move { executor.execute_batch(notes).await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    stage.server.restart();
    let outcomes = tokio::time::timeout(PATIENCE, notes).await;
    let outcomes = outcomes.expect("a call hangs").expect("no panic");
    sleeper.await.expect("an outcome");
    until("the old one is gone", || {
        processes(&stage.folder.mark).len() == 1
    })
    .await;

    let ledger = ledger();
    for (number, outcome) in outcomes.iter().enumerate() {
        let message = message(number);
        let written = ledger.lines().filter(|line| **line == message).count();
        match outcome.failure().map(|failure| failure.effect) {
            None => assert_eq!(written, 1, "message {number} was done {written} times"),
            Some(Effect::None) => assert_eq!(written, 0, "message {number} was not sent"),
            Some(Effect::Unknown) => assert!(written <= 1, "message {number} was done twice"),
            Some(Effect::Done) => panic!("nobody can know that"),
        }
    }
    let count = |effect| {
        outcomes
            .iter()
            .filter(|outcome| outcome.failure().map(|failure| failure.effect) == effect)
            .count()
    };
    assert!(
        count(None) > 0,
        "those that were not sent are sent to the new one"
    );
    assert!(
        count(Some(Effect::Unknown)) > 0,
        "some were with the old one"
    );
    stage.over().await;
}

#[tokio::test]
async fn v07_a_server_may_end_by_itself_when_its_stdin_ends() {
    let stage = Stage::of(&["tidies_up"]).await;
    stage.server.stop().await;
    stage.folder.assert_nobody_left().await;
    assert_eq!(stage.folder.text("ledger"), "tidied up\n");
}

#[tokio::test]
async fn d17_a_server_that_keeps_dying_is_known_to_be_down_and_still_comes_back() {
    let folder = Folder::new();
    let mut settings = folder.hostile(&["well"]);
    settings.start.restarts = 2;
    settings.start.retry_first = Duration::from_secs(600);
    let stage = Stage::with(folder, settings).await;
    for starts in 1..=3 {
        until("it is up", || {
            let state = stage.server.state();
            state.phase == Phase::Running && state.starts == starts
        })
        .await;
        kill(&stage);
    }
    until("it is given up for now", || {
        stage.server.state().phase == Phase::Down
    })
    .await;
    let outcome = stage.call("echo", json!({"message": "hi"})).await;
    let (code, effect, words) = failure(&outcome);
    assert_eq!((code, effect), (NetworkError, Effect::None));
    assert!(
        words.contains("was killed by signal 9 (SIGKILL)"),
        "{words}"
    );
    stage.assert_comes_back().await;
    stage.over().await;
}

/// Only ever a process of a server of this test.
fn kill(stage: &Stage) {
    let pid = stage.server.state().pid.expect("it runs");
    let status = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(status.expect("kill runs").success());
}
