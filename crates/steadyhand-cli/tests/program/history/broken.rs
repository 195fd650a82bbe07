//! Contents that make no sense: wrong bytes, numbers of another clock, names of another process, an older format.

use rusqlite::Connection;
use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{Call, Event};
use steadyhand_store::history::{CallState, Filter, History, HistoryOptions, Mark, Window};

use super::{Place, call, echo, executor, ill, until};
use crate::support::PATIENCE;

async fn calls(place: &Place, prefix: &str, count: usize) {
    for number in 0..count {
        place.run(call(&format!("{prefix}-{number}"), "echo")).await;
    }
    place.flush();
}

fn change(place: &Place, sql: &str) {
    let other = Connection::open(place.file()).unwrap();
    other.busy_timeout(PATIENCE).unwrap();
    other.execute_batch(sql).unwrap();
}

#[tokio::test]
async fn wrong_bytes_in_a_text_cost_the_text_and_not_the_page() {
    let place = Place::new([echo().from_source("demo"), ill()]);
    for number in 0..5 {
        place
            .run(call(&format!("e-{number}"), "echo").caller("cli"))
            .await;
        place.run(call(&format!("i-{number}"), "ill")).await;
    }
    place.flush();
    change(
        &place,
        "UPDATE calls SET message = CAST(X'66ff66' AS TEXT) WHERE id = 'i-2';
         UPDATE calls SET attempts = -7 WHERE id = 'e-2';
         UPDATE callers SET name = CAST(X'c3' AS TEXT);
         UPDATE tools SET source = CAST(X'64fe' AS TEXT) WHERE name = 'echo';
         UPDATE details SET json = CAST(X'7b80' AS TEXT) WHERE row = (SELECT row FROM calls WHERE id = 'e-3');
         UPDATE buckets SET calls = -5, times = X'ffffffffff';",
    );
    let page = place.page("");
    assert_eq!(page.calls.len(), 10);
    let message = place.record("i-2").call.message.unwrap();
    assert_eq!(message, "f\u{fffd}f");
    assert_eq!(place.record("e-3").call.state, CallState::Ok);
    for words in ["tool:echo", "server:d*", "caller:*", "no-such-text"] {
        let found = place.page(words).calls.len();
        assert_eq!(
            found,
            if words == "no-such-text" { 0 } else { 5 },
            "{words}"
        );
    }
    // Buckets that make no sense keep no call from being written.
    calls(&place, "later", 3).await;
    assert_eq!(place.ids("tool:echo").len(), 8);
    assert_eq!(place.history.health().dropped, 0);
    let trends = place.history.trends(None, Window::Hour).unwrap();
    assert!(trends.total.calls >= 3);
}

#[tokio::test]
async fn calls_of_a_clock_that_was_ahead_make_room_for_those_of_now() {
    const MAX: u64 = 2 * 1024 * 1024;
    let place = Place::with([echo()], |options| options.max_bytes = MAX);
    let large = |id: String| Call::new("echo", json!({"text": "x".repeat(5000)})).id(id);
    for number in 0..100 {
        place.run(large(format!("ahead-{number}"))).await;
    }
    place.flush();
    // As if they had been written a year from now.
    change(
        &place,
        "UPDATE calls SET row = row + (31536000000 << 20);
         UPDATE details SET row = row + (31536000000 << 20);",
    );
    assert_eq!(place.ids("").len(), 100);
    let mut number = 0;
    until("they are gone", || {
        number += 1;
        let run = place.run(large(format!("now-{number}")));
        assert!(futures_util::FutureExt::now_or_never(run).is_some());
        place.flush();
        !place.ids("").iter().any(|id| id.starts_with("ahead"))
    })
    .await;
    let newest = format!("now-{number}");
    assert!(place.history.call(&newest).unwrap().is_some());
}

#[tokio::test]
async fn a_clock_that_is_set_back_hides_no_call_that_runs() {
    let place = Place::new([echo()]);
    place.flush();
    let an_hour_ahead = steadyhand::clock::wall_ms() + 3_600_000;
    let recorder = place.history.recorder();
    steadyhand::Observer::observe(
        &recorder,
        &Event::Started {
            number: 1,
            call_id: "running".to_owned(),
            tool_name: "echo".to_owned(),
            at_ms: an_hour_ahead,
            caller: None,
            traceparent: None,
            replay_of: None,
            source: None,
            deadline_ms: Some(60_000.0),
        },
    );
    // Nobody asks history, which would make it hurry.
    let file = Connection::open(place.file()).unwrap();
    file.busy_timeout(PATIENCE).unwrap();
    until("it is in the file", || {
        let count = file.query_row("SELECT count(*) FROM calls WHERE state = 0", [], |row| {
            row.get::<_, i64>(0)
        });
        count.unwrap() == 1
    })
    .await;
}

#[tokio::test]
async fn an_end_without_a_start_is_written_with_all_that_is_known() {
    let place = Place::new([echo()]);
    let outcome = place.run(call("c-1", "echo")).await;
    let recorder = place.history.recorder();
    let mut unseen = outcome;
    unseen.call_id = "unseen".to_owned();
    steadyhand::Observer::observe(
        &recorder,
        &Event::Finished {
            number: 77,
            at_ms: steadyhand::clock::wall_ms(),
            args: Some(json!({"n": 1}).into()),
            sent: None,
            source: Some("demo".into()),
            kind: Some("function"),
            caller: Some("voice".to_owned()),
            traceparent: None,
            replay_of: Some("c-0".to_owned()),
            secrets: steadyhand::redact::Secrets::default(),
            outcome: std::sync::Arc::new(unseen),
        },
    );
    let record = place.record("unseen");
    assert_eq!(record.call.caller.as_deref(), Some("voice"));
    assert_eq!(record.call.replay_of.as_deref(), Some("c-0"));
    assert_eq!(record.call.state, CallState::Ok);
    assert_eq!(record.details.arguments, Some(json!({"n": 1})));
}

#[tokio::test]
async fn a_name_that_another_process_dropped_is_not_mistaken_for_the_one_that_has_its_number_now() {
    let place = Place::new([echo()]);
    place.run(call("first", "echo").caller("alice")).await;
    place.flush();
    change(
        &place,
        "DELETE FROM calls; DELETE FROM details;
         UPDATE callers SET name = 'mallory' WHERE name = 'alice';
         UPDATE tools SET name = 'other' WHERE name = 'echo';",
    );
    place.run(call("second", "echo").caller("alice")).await;
    let record = place.record("second").call;
    assert_eq!(record.caller.as_deref(), Some("alice"));
    assert_eq!(record.tool, "echo");
}

#[tokio::test]
async fn a_file_of_the_first_format_is_brought_up_to_date() {
    let place = Place::new([echo(), ill()]);
    for number in 0..30 {
        let name = ["echo", "ill"][number % 2];
        place.run(call(&format!("c-{number}"), name)).await;
    }
    place.flush();
    let folder = place.folder;
    let path = folder.path().join("calls.db");
    drop((place.history, place.executor));
    until("the file is closed", || {
        !folder.path().join("calls.db-wal").exists()
    })
    .await;
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "ALTER TABLE calls DROP COLUMN approval_us;
         DROP TABLE marks;
         DROP INDEX calls_by_tool;
         DROP INDEX calls_slow;
         CREATE INDEX calls_by_tool ON calls (tool, state, row, took_us);
         CREATE INDEX calls_slow ON calls (tool, state, row, took_us) WHERE took_us >= 100000;
         PRAGMA user_version = 1;",
    )
    .unwrap();
    old.close().unwrap();
    let history = History::open(HistoryOptions::new(&path));
    let executor = executor([echo()]);
    history.attach(&executor).unwrap();
    executor.execute(call("new", "echo")).await;
    assert!(history.flush(PATIENCE), "{:?}", history.health());
    let failed = Filter::parse("error:tool_execution_error", 0).unwrap();
    assert_eq!(history.page(&failed, None, 100).unwrap().calls.len(), 15);
    let all = history.page(&Filter::default(), None, 100).unwrap();
    assert_eq!(all.calls.len(), 31);
    assert_eq!(history.health().notice, None);
    let file = Connection::open(&path).unwrap();
    let version: i64 = file
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert!(version > 1);
}

/// A file of 0.1.0: marks name their server in the text only.
#[tokio::test]
async fn marks_of_the_version_before_are_kept_and_know_their_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.db");
    let history = History::open(HistoryOptions::new(&path));
    let executor = executor([echo()]);
    history.attach(&executor).unwrap();
    executor.execute(call("c", "echo")).await;
    assert!(history.flush(PATIENCE), "{:?}", history.health());
    drop((history, executor));
    until("the file is closed", || {
        !folder.path().join("calls.db-wal").exists()
    })
    .await;
    let now = steadyhand::clock::wall_ms();
    let old = Connection::open(&path).unwrap();
    old.execute_batch(&format!(
        "ALTER TABLE marks DROP COLUMN source;
         ALTER TABLE calls DROP COLUMN approval_us;
         INSERT INTO marks (at_ms, kind, text) VALUES ({now}, 'server', 'mail: not running'), ({now}, 'tools', 'Tools of mail changed'), ({now}, 'start', 'Steadyhand 0.1.0 started');
         PRAGMA user_version = 4;"
    ))
    .unwrap();
    old.close().unwrap();
    let history = History::open(HistoryOptions::new(&path));
    assert!(history.flush(PATIENCE), "{:?}", history.health());
    let sources = |marks: Vec<Mark>| -> Vec<Option<String>> {
        marks.into_iter().map(|mark| mark.source).collect()
    };
    let mail = Some("mail".to_owned());
    let all = sources(history.marks(0).unwrap());
    assert_eq!(
        all.iter().filter(|source| **source == mail).count(),
        2,
        "{all:?}"
    );
    assert_eq!(all.len(), 3, "{all:?}");
    let trends = history.trends(Some("echo"), Window::Hour).unwrap();
    assert_eq!(sources(trends.marks), [None]);
}

#[tokio::test]
async fn a_hundred_thousand_calls_at_once_are_all_answered_and_each_is_written_or_counted() {
    const CALLS: usize = 100_000;
    let quick = script("quick").answers(1).tool().limit(CALLS, CALLS);
    let place = Place::new([quick]);
    place.flush();
    let run = |number: usize| place.run(Call::new("quick", json!({"n": number})));
    let outcomes = futures_util::future::join_all((0..CALLS).map(run)).await;
    assert!(outcomes.iter().all(|outcome| outcome.is_success()));
    place.flush();
    let health = place.history.health();
    assert!(
        health.written + health.dropped >= CALLS as u64,
        "{health:?}"
    );
    assert!(health.written > 1_000 && health.queued == 0, "{health:?}");
    let file = Connection::open(place.file()).unwrap();
    let count = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(
        count("SELECT count(*) FROM details"),
        count("SELECT count(*) FROM calls")
    );
    assert!(count("SELECT count(*) FROM calls WHERE state = 1") as u64 >= health.written);
    // It is none the worse for it.
    place
        .run(Call::new("quick", json!({})).id("after").caller("cli"))
        .await;
    let record = place.record("after");
    assert_eq!(record.call.caller.as_deref(), Some("cli"));
    assert_eq!(record.details.tries.len(), 1);
}

#[tokio::test]
async fn t02_a_file_of_0_1_0_goes_on_and_keeps_its_rows() {
    let place = Place::new([echo()]);
    place.run(call("old", "echo")).await;
    place.flush();
    let folder = place.folder;
    let path = folder.path().join("calls.db");
    drop((place.history, place.executor));
    until("the file is closed", || {
        !folder.path().join("calls.db-wal").exists()
    })
    .await;
    // A call that version had in it twice: under way, given up, and ended.
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "ALTER TABLE calls DROP COLUMN approval_us;
         ALTER TABLE marks DROP COLUMN source;
         INSERT INTO calls (row, id, tool, state, attempts, flags, run)
             SELECT row + 1, id, tool, 6, 0, 0, run FROM calls;
         PRAGMA user_version = 4;",
    )
    .unwrap();
    old.close().unwrap();
    let history = History::open(HistoryOptions::new(&path));
    let executor = executor([echo()]);
    history.attach(&executor).unwrap();
    executor.execute(call("new", "echo")).await;
    assert!(history.flush(PATIENCE), "{:?}", history.health());
    let all = history.page(&Filter::default(), None, 100).unwrap();
    assert_eq!(super::ids(&all.calls), ["new", "old", "old"]);
    assert!(all.calls.iter().all(|call| call.approval_ms.is_none()));
    assert_eq!(history.health().notice, None);
}
