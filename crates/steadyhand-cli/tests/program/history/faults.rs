//! A file that fails: history says so, once, goes on trying, and calls never notice.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;
use steadyhand::Call;
use steadyhand_store::history::{
    Filter, HealthState, History, HistoryError, HistoryOptions, Window,
};

use super::{Place, as_a_process, call, echo, executor, role, until, until_degraded, until_ok};
use crate::support::PATIENCE;

/// So many calls, all of which must be answered.
async fn calls_go_on(place: &Place, prefix: &str, count: usize) {
    for number in 0..count {
        let outcome = place.run(call(&format!("{prefix}-{number}"), "echo")).await;
        assert!(outcome.is_success());
    }
}

fn reason(history: &History) -> String {
    history.health().reason.expect("a reason")
}

/// The files beside the history whose names say that they were set aside.
fn set_aside(place: &Place) -> Vec<String> {
    let names = fs::read_dir(place.folder.path()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter(|name| {
            name.contains(".broken-") && !name.ends_with("-wal") && !name.ends_with("-shm")
        })
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_locked_file_holds_up_no_call_and_is_written_when_it_is_free() {
    let place = Place::new([echo()]);
    calls_go_on(&place, "before", 3).await;
    place.flush();
    let other = Connection::open(place.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    calls_go_on(&place, "meanwhile", 50).await;
    until_degraded(&place.history).await;
    assert!(reason(&place.history).contains("locked by another process"));
    assert!(!place.history.flush(Duration::from_millis(50)));
    // What is in the file can still be read.
    let page = place.history.page(&Filter::default(), None, 100).unwrap();
    assert_eq!(page.calls.len(), 3);
    other.execute_batch("ROLLBACK").unwrap();
    until_ok(&place.history).await;
    place.flush();
    assert_eq!(place.ids("").len(), 53);
    assert_eq!(place.history.health().dropped, 0);
}

#[tokio::test]
async fn with_the_queue_full_calls_are_dropped_and_counted_and_the_rest_is_kept() {
    let place = Place::with([echo()], |options| options.queue_max = 40);
    place.flush();
    let other = Connection::open(place.file()).unwrap();
    until("the file is made", || {
        other.execute_batch("BEGIN IMMEDIATE").is_ok()
    })
    .await;
    calls_go_on(&place, "c", 100).await;
    until("60 calls are dropped", || {
        place.history.health().dropped == 60
    })
    .await;
    let health = place.history.health();
    assert_eq!((health.queued, health.queue_max), (40, 40));
    other.execute_batch("ROLLBACK").unwrap();
    until_ok(&place.history).await;
    place.flush();
    let kept: Vec<String> = (0..40).rev().map(|number| format!("c-{number}")).collect();
    assert_eq!(place.ids(""), kept);
    assert_eq!(place.history.health().written, 40);
}

#[tokio::test]
async fn a_deleted_file_is_begun_anew() {
    let place = Place::new([echo()]);
    calls_go_on(&place, "before", 3).await;
    place.flush();
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", place.file().display()));
    }
    until("calls are in a new file", || {
        let calls = calls_go_on(&place, "after", 1);
        futures_util::future::FutureExt::now_or_never(calls).is_some()
            && place.history.flush(PATIENCE)
            && place.file().exists()
            && !place.ids("").is_empty()
    })
    .await;
    let health = place.history.health();
    assert_eq!(health.state, HealthState::Ok);
    assert!(health.notice.unwrap().contains("deleted or moved"));
    assert!(place.ids("").iter().all(|id| id.starts_with("after")));
}

#[tokio::test]
async fn garbage_is_set_aside_and_a_new_file_begun() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.db");
    let garbage = "this is no database ".repeat(500);
    fs::write(&path, &garbage).unwrap();
    let history = History::open(HistoryOptions::new(&path));
    let executor = executor([echo()]);
    history.attach(&executor).unwrap();
    executor.execute(call("c-1", "echo")).await;
    assert!(history.flush(PATIENCE), "{:?}", history.health());
    assert!(history.call("c-1").unwrap().is_some());
    let place = Place {
        folder,
        history,
        executor,
    };
    let aside = set_aside(&place);
    assert_eq!(aside.len(), 1, "{aside:?}");
    let kept = fs::read_to_string(place.folder.path().join(&aside[0])).unwrap();
    assert_eq!(kept, garbage, "for someone to look at");
    let notice = place.history.health().notice.unwrap();
    assert!(notice.contains(&aside[0]), "{notice}");
}

#[tokio::test]
async fn a_truncated_file_is_set_aside() {
    let place = Place::new([echo()]);
    calls_go_on(&place, "before", 400).await;
    place.flush();
    let Place {
        folder,
        history,
        executor,
    } = place;
    drop((history, executor));
    let path = folder.path().join("calls.db");
    until("the file is closed", || {
        !folder.path().join("calls.db-wal").exists()
    })
    .await;
    let length = fs::metadata(&path).unwrap().len();
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(length / 3)
        .unwrap();
    let history = History::open(HistoryOptions::new(&path));
    let executor = super::executor([echo()]);
    history.attach(&executor).unwrap();
    let place = Place {
        folder,
        history,
        executor,
    };
    calls_go_on(&place, "after", 50).await;
    until("the broken file is set aside", || {
        // Whoever reads nonsense says so.
        let _ = place.history.page(&Filter::default(), None, 1000);
        set_aside(&place).len() == 1
    })
    .await;
    calls_go_on(&place, "later", 5).await;
    until_ok(&place.history).await;
    place.flush();
    assert!(place.ids("").iter().any(|id| id == "later-4"));
}

#[tokio::test]
async fn a_file_that_breaks_while_it_is_used_is_set_aside() {
    let place = Place::new([echo()]);
    calls_go_on(&place, "before", 300).await;
    place.flush();
    let checkpoint = Connection::open(place.file()).unwrap();
    checkpoint
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(checkpoint);
    let length = fs::metadata(place.file()).unwrap().len();
    let mut file = fs::File::options().write(true).open(place.file()).unwrap();
    file.seek(SeekFrom::Start(4096)).unwrap();
    file.write_all(&vec![0xA5; length as usize - 4096]).unwrap();
    file.sync_all().unwrap();
    until("the broken file is set aside", || {
        let calls = calls_go_on(&place, "meanwhile", 20);
        assert!(futures_util::future::FutureExt::now_or_never(calls).is_some());
        let _ = place.history.page(&Filter::default(), None, 1000);
        set_aside(&place).len() == 1
    })
    .await;
    until_ok(&place.history).await;
    calls_go_on(&place, "after", 3).await;
    place.flush();
    assert!(place.ids("").iter().any(|id| id == "after-2"));
}

#[tokio::test]
async fn only_the_last_few_broken_files_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.db");
    for number in 0..6 {
        fs::write(&path, format!("garbage {number}").repeat(300)).unwrap();
        let history = History::open(HistoryOptions::new(&path));
        until("it is set aside", || {
            history.page(&Filter::default(), None, 1).is_ok()
        })
        .await;
        drop(history);
        // Whoever closes the file last takes the log away, unless that was a reader.
        let closed = async {
            while folder.path().join("calls.db-wal").exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(5), closed).await;
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{end}", path.display()));
        }
    }
    let kept = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(kept, 3);
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_degrades_history_until_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let obstacle = folder.path().join("state");
    fs::write(&obstacle, "a file where a folder should be").unwrap();
    let path = obstacle.join("calls.db");
    let history = History::open(HistoryOptions::new(&path));
    let executor = executor([echo()]);
    history.attach(&executor).unwrap();
    assert!(executor.execute(call("c-1", "echo")).await.is_success());
    until_degraded(&history).await;
    let text = reason(&history);
    assert!(
        text.contains("state/calls.db") && text.contains("permissions"),
        "{text}"
    );
    let unavailable = |error| matches!(error, HistoryError::Unavailable(_));
    assert!(unavailable(history.call("c-1").unwrap_err()));
    assert!(unavailable(
        history.page(&Filter::default(), None, 1).unwrap_err()
    ));
    assert!(unavailable(history.trends(None, Window::Hour).unwrap_err()));
    fs::remove_file(&obstacle).unwrap();
    until_ok(&history).await;
    assert!(history.flush(PATIENCE));
    assert!(
        history.call("c-1").unwrap().is_some(),
        "it waited in the queue"
    );
}

/// Opens a file that must be left as it is, and says what history says.
async fn is_left_alone(path: &Path) -> String {
    let before = fs::read(path).unwrap();
    let history = History::open(HistoryOptions::new(path));
    let executor = executor([echo()]);
    history.attach(&executor).unwrap();
    until_degraded(&history).await;
    assert!(executor.execute(call("c-1", "echo")).await.is_success());
    assert!(!history.flush(Duration::from_millis(50)));
    assert!(history.page(&Filter::default(), None, 1).is_err());
    assert_eq!(fs::read(path).unwrap(), before);
    reason(&history)
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_left_alone() {
    let place = Place::new([echo()]);
    calls_go_on(&place, "c", 3).await;
    place.flush();
    let Place {
        folder,
        history,
        executor,
    } = place;
    drop((history, executor));
    let path = folder.path().join("calls.db");
    until("the file is closed", || {
        !folder.path().join("calls.db-wal").exists()
    })
    .await;
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "journal_mode", "DELETE").unwrap();
    newer.pragma_update(None, "user_version", 1000).unwrap();
    newer.close().unwrap();
    let reason = is_left_alone(&path).await;
    assert!(
        reason.contains("newer version") && reason.contains("1000"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_database_of_another_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recipes.db");
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TABLE recipes (name TEXT)")
        .unwrap();
    other.close().unwrap();
    let reason = is_left_alone(&path).await;
    assert!(reason.contains("another program"), "{reason}");
}

#[tokio::test]
async fn two_processes_may_write_one_file() {
    let place = Place::new([echo()]);
    let other = History::open(HistoryOptions::new(place.file()));
    let second = executor([echo()]);
    other.attach(&second).unwrap();
    for number in 0..200 {
        place.run(call(&format!("a-{number}"), "echo")).await;
        second.execute(call(&format!("b-{number}"), "echo")).await;
    }
    place.flush();
    assert!(other.flush(PATIENCE));
    assert_eq!(place.ids("").len(), 400);
    let (first, second) = (place.history.health(), other.health());
    assert_eq!((first.dropped, second.dropped), (0, 0));
}

#[cfg(unix)]
#[test]
fn the_file_is_nobody_elses_business() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new([echo()]);
    place.flush();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(calls_go_on(&place, "c", 1));
    place.flush();
    for end in ["", "-wal"] {
        let path = format!("{}{end}", place.file().display());
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path}");
    }
}

/// Calls with large arguments until the disk is full, then with room again.
async fn on_a_full_disk(folder: &Path) {
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let ballast = folder.join("ballast");
    fs::write(&ballast, vec![1; 400 * 1024]).unwrap();
    let history = History::open(HistoryOptions::new(folder.join("calls.db")));
    let executor = executor([echo()]);
    history.attach(&executor).unwrap();
    let begun = tokio::time::Instant::now();
    let mut number = 0;
    // Looked at once: a smaller call may fit again a moment later.
    let reason = loop {
        let health = history.health();
        if health.state != HealthState::Ok {
            break health.reason.expect("a reason");
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "the disk never filled: {health:?}"
        );
        let args = json!({"text": "x".repeat(12_000)});
        let asked = Call::new("echo", args).id(format!("c-{number}"));
        assert!(executor.execute(asked).await.is_success());
        number += 1;
        // The queue would hide a disk that is full from us for long; and what waits in it must fit into the room
        // there will be.
        if number % 4 == 0 {
            history.flush(Duration::from_secs(2));
        }
    };
    println!("degraded: {reason}");
    // It stays so for a while, and says nothing more.
    for _ in 0..5 {
        assert!(executor.execute(call("more", "echo")).await.is_success());
        history.flush(Duration::from_millis(300));
    }
    // Only a disk of its own has room again when something on it goes; a limit stays what it is.
    let device = |path: &Path| std::os::unix::fs::MetadataExt::dev(&fs::metadata(path).unwrap());
    if device(folder) != device(folder.parent().unwrap()) {
        fs::remove_file(&ballast).unwrap();
        until_ok(&history).await;
        executor.execute(call("last", "echo")).await;
        assert!(history.flush(PATIENCE), "{:?}", history.health());
        assert!(history.call("last").unwrap().is_some());
        // What came while the disk was full has waited.
        let more = Filter::parse("more", 0).unwrap();
        let page = history.page(&more, None, 100).unwrap();
        assert_eq!(page.calls.len(), 5);
        assert_eq!(history.health().dropped, 0);
        println!("recovered");
    }
    println!("done");
}

/// Runs the test above as a process with a disk as small as the wrapper makes it.
fn full_disk(wrapper: &str, name: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("disk");
    fs::create_dir(&place).unwrap();
    let wrapper = wrapper.replace("DISK", &place.display().to_string());
    let mut command = as_a_process(name, &place, &["sh", "-c", &wrapper]);
    let output = command.stdout(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let logged = String::from_utf8_lossy(&output.stderr).into_owned();
    if !said.contains("degraded:") && logged.contains("mount") {
        return None;
    }
    assert!(
        output.status.success() && said.contains("done"),
        "{said}\n{logged}"
    );
    let told = logged.matches("cannot be written; calls go on").count();
    assert_eq!(told, 1, "one line, not one for each try: {logged}");
    Some(said)
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_degrades_history_until_there_is_room() {
    const NAME: &str = "history::faults::a_full_disk_degrades_history_until_there_is_room";
    if let Some(folder) = role() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        return runtime.block_on(on_a_full_disk(&folder));
    }
    // No file may grow beyond this; a limit every user may set.
    let said = full_disk("trap '' XFSZ; ulimit -f 1200; exec \"$0\" \"$@\"", NAME);
    let said = said.expect("a limit needs no privilege");
    assert!(said.contains("degraded:"), "{said}");
    // A disk of one megabyte, where that is allowed.
    let mount = "mount -t tmpfs -o size=1m none DISK && exec \"$0\" \"$@\"";
    let wrapper = format!("exec unshare -m sh -c '{mount}' \"$0\" \"$@\"");
    if let Some(said) = full_disk(&wrapper, NAME) {
        assert!(said.contains("no room on the disk"), "{said}");
        assert!(said.contains("recovered"), "{said}");
    }
}
