//! A file that is moved, replaced or robbed of its log while it is used: nothing is ruined, and calls never notice.

use std::fs;
use std::path::{Path, PathBuf};

use futures_util::future::FutureExt;
use rusqlite::Connection;
use steadyhand_store::history::{Filter, HealthState, History, HistoryOptions};

use super::{Place, call, echo, executor, until};
use crate::support::PATIENCE;

fn beside(path: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}{end}", path.display()))
}

async fn calls(place: &Place, prefix: &str, count: usize) {
    for number in 0..count {
        let outcome = place.run(call(&format!("{prefix}-{number}"), "echo")).await;
        assert!(outcome.is_success());
    }
}

/// Runs calls until one of them is in the file of that name.
async fn until_written(place: &Place, prefix: &str) {
    let mut number = 0;
    until("calls are written again", || {
        number += 1;
        let id = format!("{prefix}-{number}");
        let outcome = place.run(call(&id, "echo")).now_or_never();
        assert!(outcome.unwrap().is_success());
        place.history.flush(PATIENCE) && ids_in(&place.file()).contains(&id)
    })
    .await;
    assert_eq!(place.history.health().state, HealthState::Ok);
}

/// The ids in a file, read by someone else; it must be whole.
fn ids_in(path: &Path) -> Vec<String> {
    let Ok(file) = Connection::open(path) else {
        return Vec::new();
    };
    let whole = file.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(whole.unwrap(), "ok", "{}", path.display());
    let Ok(mut list) = file.prepare("SELECT id FROM calls ORDER BY row") else {
        return Vec::new();
    };
    let ids = list.query_map([], |row| row.get(0)).unwrap();
    ids.collect::<rusqlite::Result<_>>().unwrap()
}

/// A history of so many calls, closed.
async fn another_file(path: &Path, prefix: &str, count: usize) {
    let history = History::open(HistoryOptions::new(path));
    let executor = executor([echo()]);
    history.attach(&executor).unwrap();
    for number in 0..count {
        executor
            .execute(call(&format!("{prefix}-{number}"), "echo"))
            .await;
    }
    assert!(history.flush(PATIENCE));
    drop((history, executor));
    until("it is closed", || !beside(path, "-wal").exists()).await;
}

#[tokio::test]
async fn a_file_put_in_its_place_is_not_ruined_by_the_log_of_the_old_one() {
    let place = Place::new([echo()]);
    calls(&place, "old", 300).await;
    place.flush();
    assert!(fs::metadata(beside(&place.file(), "-wal")).unwrap().len() > 0);
    let backup = place.folder.path().join("backup.db");
    another_file(&backup, "backup", 40).await;
    fs::rename(&backup, place.file()).unwrap();
    // Readers come before the writer has seen it: they may have to ask again, and see the one or the other.
    for _ in 0..20 {
        if let Ok(page) = place.history.page(&Filter::default(), None, 1000) {
            let of = |prefix: &str| page.calls.iter().all(|call| call.id.starts_with(prefix));
            assert!(of("old-") || of("backup-"), "{:?}", page.calls);
        }
    }
    until_written(&place, "new").await;
    let ids = ids_in(&place.file());
    let backup: Vec<&String> = ids.iter().filter(|id| id.starts_with("backup")).collect();
    assert_eq!(backup.len(), 40);
    assert!(!ids.iter().any(|id| id.starts_with("old")));
    let shown = place.ids("");
    assert_eq!(shown.len(), ids.len());
    let notice = place.history.health().notice.unwrap();
    assert!(notice.contains("deleted or moved"), "{notice}");
}

#[tokio::test]
async fn a_file_that_is_moved_away_is_whole_where_it_went() {
    let place = Place::new([echo()]);
    calls(&place, "old", 200).await;
    place.flush();
    let moved = place.folder.path().join("moved.db");
    fs::rename(place.file(), &moved).unwrap();
    until_written(&place, "new").await;
    let ids = ids_in(&moved);
    let old = ids.iter().filter(|id| id.starts_with("old")).count();
    assert_eq!(old, 200, "what was in the log went with it");
    assert!(place.ids("").iter().all(|id| id.starts_with("new")));
}

#[tokio::test]
async fn a_log_that_is_deleted_costs_no_call() {
    let place = Place::new([echo()]);
    calls(&place, "before", 100).await;
    place.flush();
    fs::remove_file(beside(&place.file(), "-wal")).unwrap();
    until_written(&place, "after").await;
    place.flush();
    let ids = place.ids("");
    let before = ids.iter().filter(|id| id.starts_with("before")).count();
    assert_eq!(before, 100);
    assert_eq!(ids_in(&place.file()).len(), ids.len());
}

#[tokio::test]
async fn only_the_file_is_deleted_and_its_log_stays() {
    let place = Place::new([echo()]);
    calls(&place, "before", 100).await;
    place.flush();
    fs::remove_file(place.file()).unwrap();
    until_written(&place, "after").await;
    assert!(place.ids("").iter().all(|id| id.starts_with("after")));
}
