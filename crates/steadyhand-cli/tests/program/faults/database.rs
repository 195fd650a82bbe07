//! The database of the history fails under a server that runs: history says so, calls never notice, and all is well
//! again when the reason is gone.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rustix::process::Resource;
use serde_json::json;

use super::{Fault, TOOLS, calls_go_on, database, history, kept, limit, try_kept, until_written};
use crate::serve::{Served, until};
use crate::support::Workplace;

async fn until_degraded(served: &Served) -> String {
    until("history says that it cannot write", async || {
        let history = history(served).await;
        let is_degraded = history["state"] == "degraded";
        is_degraded.then(|| history["reason"].as_str().unwrap_or_default().to_owned())
    })
    .await
}

#[tokio::test]
async fn a_locked_database_holds_up_no_call_and_is_written_when_it_is_free() {
    let fault = Fault::begin(
        "database locked",
        "calls go on; degraded, with the reason; nothing is lost once the lock is gone",
    );
    let served = Served::with_config(TOOLS).await;
    calls_go_on(&served, "before", 3).await;
    until_written(&served, 3).await;
    let other = Connection::open(database(&served)).expect("the file");
    other.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    calls_go_on(&served, "meanwhile", 50).await;
    let reason = until_degraded(&served).await;
    assert!(reason.contains("locked by another process"), "{reason}");
    // What is in the file can still be read.
    assert_eq!(kept(&served).await.len(), 3);
    other.execute_batch("ROLLBACK").expect("no lock any more");
    until_written(&served, 53).await;
    assert_eq!(kept(&served).await.len(), 53);
    assert_eq!(history(&served).await["dropped"], 0);
    fault.got("50 of 50 calls answered; degraded, then 53 of 53 kept");
}

#[tokio::test]
async fn a_deleted_database_is_begun_anew() {
    let fault = Fault::begin(
        "database deleted",
        "calls go on; a new file is begun, and said so",
    );
    let served = Served::with_config(TOOLS).await;
    calls_go_on(&served, "before", 3).await;
    until_written(&served, 3).await;
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", database(&served).display()));
    }
    let mut round = 0;
    until("calls are in a new file", async || {
        round += 1;
        calls_go_on(&served, &format!("after-{round}"), 1).await;
        let is_new = database(&served).exists();
        let kept = try_kept(&served).await?;
        (is_new && !kept.is_empty() && kept.iter().all(|id| id.starts_with("after"))).then_some(())
    })
    .await;
    let history = history(&served).await;
    assert_eq!(history["state"], "ok", "{history}");
    let notice = history["notice"].as_str().unwrap_or_default();
    assert!(notice.contains("deleted or moved"), "{notice}");
    fault.got(format!("{round} of {round} calls answered; a new file"));
}

/// Garbage over everything but the first page, which says what the file is.
fn spoil(path: &Path) {
    let checkpoint = Connection::open(path).expect("the file");
    checkpoint
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .expect("its log is in it");
    drop(checkpoint);
    let length = fs::metadata(path).expect("the file").len();
    let file = fs::File::options().write(true).open(path);
    let mut file = file.expect("the file");
    file.seek(SeekFrom::Start(4096)).expect("a second page");
    let garbage = vec![0xA5; length as usize - 4096];
    file.write_all(&garbage).expect("garbage in it");
    file.sync_all().expect("on the disk");
}

#[tokio::test]
async fn a_database_that_breaks_is_set_aside_and_no_request_fails_for_it() {
    let fault = Fault::begin(
        "database corrupt",
        "calls go on; the file is set aside for someone to look at, and a new one begun",
    );
    let served = Served::with_config(TOOLS).await;
    calls_go_on(&served, "before", 100).await;
    until_written(&served, 100).await;
    spoil(&database(&served));
    let mut round = 0;
    until("the broken file is set aside", async || {
        round += 1;
        calls_go_on(&served, &format!("meanwhile-{round}"), 1).await;
        // Those who read the history learn that it cannot be read, or get what there is.
        let _ = try_kept(&served).await;
        let history = history(&served).await;
        let notice = history["notice"].as_str().unwrap_or_default();
        (history["state"] == "ok" && notice.contains("broken")).then_some(())
    })
    .await;
    let folder = fs::read_dir(served.workplace.file("state")).expect("a folder");
    let names = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    assert_eq!(names.filter(|name| name.contains(".broken-")).count(), 1);
    calls_go_on(&served, "after", 3).await;
    until("the new file has them", async || {
        let kept = kept(&served).await;
        kept.iter().any(|id| id == "after-2").then_some(())
    })
    .await;
    fault.got(format!(
        "{0} of {0} calls answered; set aside, a new file",
        round + 3
    ));
}

/// Calls with something to write, until history says that it cannot.
async fn fill(served: &Served) -> (usize, String) {
    let text = "x".repeat(12_000);
    let calls: Vec<_> = (0..20)
        .map(|_| json!({"name": "echo", "args": {"text": text}}))
        .collect();
    let batch = json!({ "calls": calls });
    let mut count = 0;
    let reason = until("the disk is full", async || {
        let answer = served.post("/v1/batches", batch.clone()).await.json();
        let outcomes = answer["outcomes"].as_array().expect("a list");
        assert!(
            outcomes
                .iter()
                .all(|outcome| outcome["status"] == "success")
        );
        count += outcomes.len();
        let history = history(served).await;
        let is_degraded = history["state"] == "degraded";
        is_degraded.then(|| history["reason"].as_str().unwrap_or_default().to_owned())
    })
    .await;
    (count, reason)
}

async fn until_kept_again(served: &Served) {
    let mut round = 0;
    until("calls are kept again", async || {
        round += 1;
        let id = format!("last-{round}");
        calls_go_on(served, &id, 1).await;
        let is_ok = history(served).await["state"] == "ok";
        let kept = try_kept(served).await?;
        (is_ok && kept.contains(&format!("{id}-0"))).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_disk_with_no_room_degrades_history_until_there_is_some() {
    let fault = Fault::begin(
        "disk full",
        "calls go on; degraded, with the reason; it is written again when there is room",
    );
    // No file may grow beyond this: every user may set it, and take it back.
    let served = Served::with_config(TOOLS).await;
    calls_go_on(&served, "before", 1).await;
    until_written(&served, 1).await;
    limit(&served, Resource::Fsize, Some(1_000_000));
    let (count, _) = fill(&served).await;
    limit(&served, Resource::Fsize, None);
    until_kept_again(&served).await;
    drop(served);
    let told = format!("{count} of {count} calls answered; degraded, then kept again");

    // A small disk, where mounting one is allowed.
    let workplace = Workplace::with_config(TOOLS);
    let state = workplace.file("state");
    fs::create_dir(&state).expect("a folder");
    let wrapper = format!(
        "mount -t tmpfs -o size=12m none '{}' && exec \"$0\" \"$@\"",
        state.display()
    );
    let wrapper = ["unshare", "-m", "sh", "-c", &wrapper];
    let Some(served) = Served::wrapped(workplace, &wrapper).await else {
        return fault.got(format!("{told} (no disk could be mounted)"));
    };
    // As the server sees it.
    let inside = PathBuf::from(format!("/proc/{}/root{}", served.pid(), state.display()));
    let ballast = inside.join("ballast");
    // More than what waits to be written can take up again.
    fs::write(&ballast, vec![1; 10_000_000]).expect("room for it");
    let (_, reason) = fill(&served).await;
    assert!(reason.contains("no room on the disk"), "{reason}");
    fs::remove_file(&ballast).expect("it was there");
    until_kept_again(&served).await;
    fault.got(told);
}
