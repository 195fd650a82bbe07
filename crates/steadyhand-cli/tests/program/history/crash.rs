//! A process that is killed: what it had written is there, what it was doing is told.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{Call, Effect};
use steadyhand_store::history::{CallState, Filter, History, HistoryOptions};

use super::{as_a_process, call, echo, executor, role};
use crate::support::PATIENCE;

/// Calls without end, eight at a time, and one that hangs. Says which are surely written.
async fn under_load(folder: &Path) {
    let history = History::open(HistoryOptions::new(folder.join("calls.db")));
    let executor = executor([echo(), script("hangs").hangs().tool()]);
    history.attach(&executor).unwrap();
    let hanging = executor.clone();
    tokio::spawn(async move {
        let asked = Call::new("hangs", json!({"door": "front"}))
            .id("hanging")
            .deadline(Duration::from_secs(600))
            .timeout(Duration::from_secs(600));
        hanging.execute(asked).await
    });
    // The calls below never wait for anything.
    tokio::task::yield_now().await;
    for round in 0.. {
        let ids: Vec<String> = (0..200)
            .map(|number| format!("c-{round}-{number}"))
            .collect();
        for some in ids.chunks(8) {
            let calls = some.iter().map(|id| executor.execute(call(id, "echo")));
            futures_util::future::join_all(calls).await;
        }
        assert!(history.flush(PATIENCE), "{:?}", history.health());
        for id in ids {
            println!("written {id}");
        }
    }
}

#[tokio::test]
async fn after_kill_9_under_load_the_file_is_whole_and_the_calls_are_there() {
    const NAME: &str =
        "history::crash::after_kill_9_under_load_the_file_is_whole_and_the_calls_are_there";
    if let Some(folder) = role() {
        return under_load(&folder).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.db");
    let mut written = HashSet::new();
    for round in 1..=3 {
        let mut child = as_a_process(NAME, folder.path(), &[]).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The test's own name comes first, on the same line.
        let said = |line: &str| line.split_once("written ").map(|(_, id)| id.to_owned());
        let ids = lines.map_while(Result::ok).filter_map(|line| said(&line));
        let enough = 600;
        let seen: Vec<String> = ids.take(enough).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(seen.len(), enough, "round {round}");
        written.extend(seen.into_iter().map(|id| (round, id)));

        let check = Connection::open(&path).unwrap();
        let whole: String = check
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(whole, "ok");
        drop(check);
        let history = History::open(HistoryOptions::new(&path));
        let mut out = Vec::new();
        let begun = tokio::time::Instant::now();
        while history.call("hanging").unwrap().unwrap().call.state == CallState::Running {
            assert!(begun.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        history.export(&Filter::default(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let mut times: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
        for line in text.lines() {
            let (_, rest) = line.split_once("\"id\":\"").unwrap();
            *times.entry(rest.split_once('"').unwrap().0).or_default() += 1;
        }
        // Each process names its calls alike.
        for (_, id) in &written {
            let wanted = written.iter().filter(|(_, other)| other == id).count();
            assert!(times[id.as_str()] >= wanted, "{id} is lost");
        }
        let hanging = history.call("hanging").unwrap().unwrap();
        assert_eq!(hanging.call.state, CallState::Interrupted);
        assert_eq!(hanging.call.effect, Some(Effect::Unknown));
        assert!(hanging.call.message.unwrap().contains("may have run"));
        assert_eq!(hanging.details.arguments, Some(json!({"door": "front"})));
        let running = Filter::parse("state:running", 0).unwrap();
        assert_eq!(history.page(&running, None, 10).unwrap().calls, []);
        let cut_off = Filter::parse("state:interrupted tool:hangs", 0).unwrap();
        assert_eq!(history.page(&cut_off, None, 10).unwrap().calls.len(), round);
    }
}

#[tokio::test]
async fn calls_of_a_process_that_lives_are_not_told_as_interrupted() {
    let slow = script("slow")
        .answers(1)
        .taking(Duration::from_millis(700))
        .tool();
    let place = super::Place::new([slow]);
    let running = place.run(call("c-1", "slow"));
    let look = async {
        super::until("it is in the file", || {
            place.history.call("c-1").unwrap().is_some()
        })
        .await;
        // The same process number, another history: as a second one of this program would see it.
        let other = History::open(HistoryOptions::new(place.file()));
        assert!(other.flush(PATIENCE));
        other.page(&Filter::default(), None, 10).unwrap()
    };
    futures_util::future::join(running, look).await;
    let ended = place.record("c-1");
    assert_eq!(ended.call.state, CallState::Ok, "its end is what counts");
}
