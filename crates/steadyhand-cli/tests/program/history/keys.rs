//! Idempotency keys over a restart, on a real file and with a real crash.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use serde_json::{Value, json};
use steadyhand::testing::{Script, script};
use steadyhand::{Call, Effect, KeyStore, Outcome, Taken, Tool, ToolError, ToolExecutor};
use steadyhand_store::history::KeptKeys;

use super::kept_keys::{Time, hours};
use super::{as_a_process, executor, role, until};

fn process(tool: Tool, folder: &Path) -> ToolExecutor {
    let keys = KeptKeys::open(folder.join("keys.db"));
    executor([tool]).with_key_store(Arc::new(keys))
}

fn shop() -> Script {
    script("order").answers(json!({"ordered": 7}))
}

fn order(key: &str) -> Call {
    Call::new("order", json!({"number": 7})).idempotency_key(key)
}

fn code(outcome: &Outcome) -> &'static str {
    outcome
        .failure()
        .map_or("", |failure| failure.code.as_str())
}

#[tokio::test]
async fn r07_a_key_is_known_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = process(shop().tool(), folder.path())
        .execute(order("k"))
        .await;
    let tool = shop();
    let executor = process(tool.tool(), folder.path());
    let second = executor.execute(order("k").id("second")).await;
    assert_eq!(second.result, first.result);
    assert_eq!((second.replayed, tool.starts()), (true, 0));
    let other = Call::new("order", json!({"number": 8})).idempotency_key("k");
    assert_eq!(code(&executor.execute(other).await), "IDEMPOTENCY_CONFLICT");
    assert!(executor.execute(order("another")).await.is_success());
    assert_eq!(tool.starts(), 1);
}

#[tokio::test]
async fn r07_a_hundred_keys_at_once_run_once_each() {
    let folder = tempfile::tempdir().unwrap();
    let tool = shop();
    let executor = process(tool.tool().limit(100, 100), folder.path());
    let calls = (0..200).map(|number| executor.execute(order(&format!("k-{}", number % 100))));
    let outcomes = futures_util::future::join_all(calls).await;
    assert!(outcomes.iter().all(Outcome::is_success));
    assert_eq!(tool.starts(), 100);
}

#[tokio::test]
async fn s02_a_flood_of_keys_delays_the_others_and_shuts_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeptKeys::open(folder.path().join("keys.db"));
    // More at the same time than wait for the disk.
    let keys_of_one = (0..3_000).map(|number| format!("greedy-{number}"));
    let all: Vec<String> = keys_of_one.chain(["other".to_owned()]).collect();
    let taken =
        futures_util::future::join_all(all.iter().map(|key| keys.take(key, &[7; 32]))).await;
    for (key, taken) in all.iter().zip(taken) {
        assert!(matches!(taken, Ok(Taken::New)), "{key}: {taken:?}");
    }
}

/// Runs one call that leaves a mark and never comes back.
async fn run_until_killed(folder: &Path) {
    let mark = folder.join("ran");
    let act = move |_: Value| {
        let mark = mark.clone();
        async move {
            let ran = fs::read_to_string(&mark).unwrap_or_default();
            fs::write(&mark, ran + "once ")
                .map_err(|error| ToolError::answer(error.to_string()))?;
            std::future::pending::<Result<Value, ToolError>>().await
        }
    };
    let executor = process(Tool::function("order", "d", act), folder);
    executor.execute(order("k")).await;
}

#[tokio::test]
async fn i05_a_call_cut_off_by_kill_9_is_not_run_again() {
    const NAME: &str = "history::keys::i05_a_call_cut_off_by_kill_9_is_not_run_again";
    if let Some(folder) = role() {
        return run_until_killed(&folder).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut child = as_a_process(NAME, folder.path(), &[]).spawn().unwrap();
    let ran = || fs::read_to_string(folder.path().join("ran")).unwrap_or_default();
    until("the tool has acted", || ran() == "once ").await;
    child.kill().unwrap();
    child.wait().unwrap();
    let tool = shop();
    let second = process(tool.tool(), folder.path())
        .execute(order("k"))
        .await;
    let failure = second.failure().expect("nobody knows whether it ran");
    assert_eq!((failure.effect, tool.starts()), (Effect::Unknown, 0));
    assert!(
        failure.message.contains("use a new key"),
        "{}",
        failure.message
    );
    assert_eq!(ran(), "once ");
}

#[tokio::test]
async fn i05_a_key_that_cannot_be_written_refuses_its_call_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let tool = shop();
    let executor = process(tool.tool(), folder.path());
    assert!(executor.execute(order("first")).await.is_success());
    let other = Connection::open(folder.path().join("keys.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = executor.execute(order("second")).await;
    assert_eq!(code(&refused), "OVERLOADED");
    let failure = refused.failure().unwrap();
    assert_eq!((failure.effect, tool.starts()), (Effect::None, 1));
    assert!(
        failure.message.contains("locked by another process"),
        "{}",
        failure.message
    );
    let free = Call::new("order", json!({"number": 7}));
    assert!(executor.execute(free).await.is_success());
    other.execute_batch("ROLLBACK").unwrap();
    assert!(executor.execute(order("second")).await.is_success());
}

#[tokio::test]
async fn i05_broken_keys_are_promises_still_and_stay_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.db");
    let garbage = "no database at all ".repeat(300);
    fs::write(&path, &garbage).unwrap();
    let tool = shop();
    let executor = process(tool.tool(), folder.path());
    let refused = executor.execute(order("k")).await;
    assert_eq!((code(&refused), tool.starts()), ("OVERLOADED", 0));
    let message = &refused.failure().unwrap().message;
    assert!(
        message.contains("keys.db is broken") && message.contains("accept-loss"),
        "{message}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), garbage);
    fs::remove_file(&path).unwrap();
    assert!(executor.execute(order("k")).await.is_success());
}

/// Keys and bytes of outcomes, as the file counts them and as they are.
fn counted(folder: &Path) -> [(i64, i64); 2] {
    let file = Connection::open(folder.join("keys.db")).unwrap();
    let pair = |sql: &str| {
        file.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
    };
    [
        pair("SELECT keys, outcome_bytes FROM totals"),
        pair("SELECT count(*), ifnull(sum(octet_length(outcome)), 0) FROM keys"),
    ]
}

#[tokio::test]
async fn r07_keys_of_yesterday_are_forgotten_and_every_byte_of_their_outcomes_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let tool = || script("order").answers(json!({"bestellt": "sieben Brötchen \u{1f956}"}));
    let executor = process(tool().tool(), folder.path());
    for number in 0..20 {
        executor.execute(order(&format!("k-{number}"))).await;
    }
    drop(executor);
    until("the file is closed", || {
        !folder.path().join("keys.db-wal").exists()
    })
    .await;
    let [told, there] = counted(folder.path());
    assert_eq!((told, told.0), (there, 20));
    // The first key opens the file, and what is old goes.
    let time = Time::default();
    let executor = time.process(tool().tool(), folder.path());
    executor.execute(order("k-20")).await;
    time.passes(hours(25));
    executor.execute(order("k-21")).await;
    drop(executor);
    until("the file is closed", || {
        !folder.path().join("keys.db-wal").exists()
    })
    .await;
    drop(
        time.process(tool().tool(), folder.path())
            .execute(order("k-22"))
            .await,
    );
    let [told, there] = counted(folder.path());
    assert_eq!((told, told.0), (there, 2));
}
