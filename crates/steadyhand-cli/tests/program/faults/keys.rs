//! The file of idempotency keys fails: calls with a key are refused, since nobody could promise that they run once.
//! All others go on.

use std::fs;
use std::path::PathBuf;

use rusqlite::Connection;
use rustix::process::Resource;
use serde_json::{Value, json};

use super::{Fault, TOOLS, calls_go_on, limit};
use crate::serve::{Served, until};
use crate::support::Workplace;

fn file(workplace: &Workplace) -> PathBuf {
    let folder = workplace.file(".local/state/steadyhand/history");
    let files = fs::read_dir(&folder).expect("a folder");
    let names = files.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names = names.filter(|name| name.ends_with(".keys.db"));
    folder.join(names.next().expect("a file of keys"))
}

async fn keyed(served: &Served, key: &str) -> Value {
    let call = json!({"name": "once", "idempotency_key": key});
    served.post("/v1/calls", call).await.json()
}

fn assert_refused(outcome: &Value, reason: &str) {
    assert_eq!(outcome["error"]["code"], "OVERLOADED", "{outcome}");
    assert_eq!(outcome["error"]["effect"], "none", "{outcome}");
    let message = outcome["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains(reason), "{message}");
}

async fn runs(served: &Served) -> Value {
    served.get("/v1/metrics/once").await.json()["totalExecutions"].clone()
}

#[tokio::test]
async fn with_the_keys_locked_a_call_with_a_key_is_refused_and_others_go_on() {
    let fault = Fault::begin(
        "keys locked",
        "a call with a key is refused, effect none; calls without one go on",
    );
    let served = Served::with_config(TOOLS).await;
    assert_eq!(keyed(&served, "k1").await["status"], "success");
    let other = Connection::open(file(&served.workplace)).expect("the file");
    other.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    let (refused, ()) = tokio::join!(keyed(&served, "k2"), calls_go_on(&served, "c", 20));
    assert_refused(&refused, "locked");
    assert_eq!(runs(&served).await, 1);
    other.execute_batch("ROLLBACK").expect("no lock any more");
    drop(other);
    let outcome = until("there is room for a key again", async || {
        let outcome = keyed(&served, "k2").await;
        (outcome["status"] == "success").then_some(outcome)
    })
    .await;
    assert!(outcome["replayed"].is_null(), "{outcome}");
    assert_eq!(keyed(&served, "k1").await["replayed"], true);
    assert_eq!(runs(&served).await, 2);
    fault.got("OVERLOADED, effect none; 20 of 20 others answered; then run once");
}

#[tokio::test]
async fn s05_with_the_keys_broken_a_call_with_a_key_is_refused_until_somebody_accepts_the_loss() {
    let fault = Fault::begin(
        "keys corrupt",
        "a call with a key is refused, effect none, and told what to do; the promises in the file are left alone",
    );
    let served = Served::with_config(TOOLS).await;
    assert_eq!(keyed(&served, "k1").await["status"], "success");
    let workplace = served.killed().await;
    let path = file(&workplace);
    let garbage = "this is no database ".repeat(500);
    fs::write(&path, &garbage).expect("written");
    for end in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", path.display()));
    }
    let served = Served::in_place(workplace).await;
    assert_refused(
        &keyed(&served, "k2").await,
        "steadyhand calls keys accept-loss",
    );
    calls_go_on(&served, "c", 3).await;
    assert_eq!(fs::read_to_string(&path).expect("as it was"), garbage);
    fs::remove_file(&path).expect("removed");
    assert_refused(&keyed(&served, "k2").await, "is missing");
    let accepted = served.workplace.json("calls keys accept-loss --json");
    assert_eq!(accepted["accepted"], true, "{accepted}");
    until("keys are taken again", async || {
        (keyed(&served, "k3").await["status"] == "success").then_some(())
    })
    .await;
    fault.got("OVERLOADED, effect none, with the command; others answered; run when the loss was accepted");
}

#[tokio::test]
async fn s05_keys_that_were_deleted_are_missed_everywhere_until_somebody_accepts_the_loss() {
    let fault = Fault::begin(
        "keys deleted",
        "a call with a new key is refused, effect none, and health, overview, log and doctor say so until a person \
         accepts the loss; keys in memory still hold",
    );
    let served = Served::with_config(TOOLS).await;
    assert_eq!(keyed(&served, "k1").await["status"], "success");
    let path = file(&served.workplace);
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", path.display()));
    }
    assert_refused(&keyed(&served, "k2").await, "is missing");
    calls_go_on(&served, "c", 3).await;
    assert!(!path.exists(), "no new file is begun without a word");
    assert_eq!(keyed(&served, "k1").await["replayed"], true);
    let health = served.get("/health/ready").await.json();
    assert_eq!(health["idempotency_keys"]["taken"], false, "{health}");
    let overview = served.get("/v1/overview").await.json();
    let problems = overview["problems"].to_string();
    assert!(problems.contains("Idempotency keys"), "{problems}");
    let doctor = served.workplace.json("doctor --json").to_string();
    assert!(doctor.contains("state.keys"), "{doctor}");
    assert_eq!(served.workplace.json("calls keys --json")["state"], "lost");
    let accepted = served.workplace.json("calls keys accept-loss --json");
    assert_eq!(accepted["accepted"], true, "{accepted}");
    assert_eq!(keyed(&served, "k2").await["status"], "success");
    assert_eq!(keyed(&served, "k1").await["replayed"], true);
    assert_eq!(runs(&served).await, 2);
    let health = served.get("/health/ready").await.json();
    assert_eq!(health["idempotency_keys"]["taken"], true, "{health}");
    fault.got("OVERLOADED, effect none, and told; run once each when the loss was accepted");
}

#[tokio::test]
async fn s05_a_server_that_stops_leaves_every_key_in_the_file_itself() {
    let served = Served::with_config(TOOLS).await;
    for number in 0..20 {
        assert_eq!(
            keyed(&served, &format!("k{number}")).await["status"],
            "success"
        );
    }
    served.signal(rustix::process::Signal::TERM);
    let workplace = served.stopped().await;
    let path = file(&workplace);
    assert!(!PathBuf::from(format!("{}-wal", path.display())).exists());
    let file = Connection::open(&path).expect("the file");
    let keys: i64 = file
        .query_row("SELECT count(*) FROM keys", [], |row| row.get(0))
        .expect("a table");
    assert_eq!(keys, 20);
}

/// Calls with a key go on for as long as there is room; gives back how many ran, and why the first was refused. Health says
/// the same.
async fn until_refused(served: &Served, prefix: &str) -> (usize, String) {
    for number in 0..200 {
        let outcome = keyed(served, &format!("{prefix}-{number}")).await;
        if outcome["status"] == "success" {
            continue;
        }
        assert_refused(&outcome, "its idempotency key could not be stored");
        let health = served.get("/health/ready").await.json();
        let keys = &health["idempotency_keys"];
        assert_eq!(keys["taken"], false, "{health}");
        let reason = keys["reason"].as_str().unwrap_or_default().to_owned();
        let message = outcome["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(&reason), "{message}: {reason}");
        return (number, reason);
    }
    panic!("there is room for 200 keys");
}

async fn until_taken(served: &Served, key: &str) {
    let outcome = until("there is room for a key again", async || {
        let outcome = keyed(served, key).await;
        (outcome["status"] == "success").then_some(outcome)
    })
    .await;
    assert!(outcome["replayed"].is_null(), "{outcome}");
    let health = served.get("/health/ready").await.json();
    assert_eq!(health["idempotency_keys"]["taken"], true, "{health}");
}

/// What `doctor` says about keys and the state folder, seen from where the server is.
fn doctor(served: &Served) -> String {
    let pid = served.pid().to_string();
    let folder = format!("--wd={}", served.workplace.path().display());
    let words = ["--target", &pid, "--mount", &folder];
    let mut command = std::process::Command::new("nsenter");
    command
        .args(words)
        .args([env!("CARGO_BIN_EXE_steadyhand"), "doctor", "--json"])
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .env("HOME", served.workplace.path());
    let output = command.output().expect("who may mount may look");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn s05_with_no_room_for_keys_a_call_with_a_key_is_refused_and_others_go_on() {
    let fault = Fault::begin(
        "keys: disk full",
        "a call with a key is refused, effect none, and health and doctor say so; calls without one go on; run once when \
         there is room",
    );
    // No file may grow beyond this: every user may set it, and take it back.
    let served = Served::with_config(TOOLS).await;
    assert_eq!(keyed(&served, "k1").await["status"], "success");
    limit(&served, Resource::Fsize, Some(20_000));
    let (more, _) = until_refused(&served, "limited").await;
    calls_go_on(&served, "limited", 20).await;
    assert_eq!(runs(&served).await, more + 1);
    assert_eq!(keyed(&served, "k1").await["replayed"], true);
    limit(&served, Resource::Fsize, None);
    until_taken(&served, "k2").await;
    assert_eq!(runs(&served).await, more + 2);
    drop(served);
    let told = "OVERLOADED, effect none; 20 of 20 others answered; then run once";

    // A small disk, where mounting one is allowed.
    let workplace = Workplace::with_config(TOOLS);
    let state = workplace.file(".local/state/steadyhand");
    fs::create_dir_all(&state).expect("a folder");
    let wrapper = format!(
        "mount -t tmpfs -o size=4m,mode=700 none '{}' && exec \"$0\" \"$@\"",
        state.display()
    );
    let wrapper = ["unshare", "-m", "sh", "-c", &wrapper];
    let Some(served) = Served::wrapped(workplace, &wrapper).await else {
        return fault.got(format!("{told} (no disk could be mounted)"));
    };
    assert_eq!(keyed(&served, "k1").await["status"], "success");
    // As the server sees it.
    let inside = PathBuf::from(format!("/proc/{}/root{}", served.pid(), state.display()));
    let ballast = inside.join("ballast");
    let full = fs::write(&ballast, vec![1; 8_000_000]).expect_err("it is small");
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    let (more, reason) = until_refused(&served, "full").await;
    assert!(reason.contains("no room on the disk"), "{reason}");
    calls_go_on(&served, "full", 20).await;
    assert_eq!(runs(&served).await, more + 1);
    let doctor = doctor(&served);
    assert!(doctor.contains("state.keys"), "{doctor}");
    assert_eq!(keyed(&served, "k1").await["replayed"], true);
    fs::remove_file(&ballast).expect("it was there");
    until_taken(&served, "k2").await;
    assert_eq!(runs(&served).await, more + 2);
    fault.got(told);
}

#[tokio::test]
async fn s05_where_no_keys_can_be_written_calls_with_a_key_are_refused_and_others_go_on() {
    let fault = Fault::begin(
        "keys: read-only folder",
        "a call with a key is refused, effect none, and health and doctor say so; calls without one go on",
    );
    // No folder can be made there, whoever asks: not even root.
    let workplace = Workplace::with_config(TOOLS);
    workplace.write(".local/state/steadyhand/history", "this is no folder");
    let served = Served::in_place(workplace).await;
    assert_eq!(until_refused(&served, "k").await.0, 0);
    calls_go_on(&served, "c", 20).await;
    assert_eq!(runs(&served).await, 0);
    let doctor_says = served.workplace.json("doctor --json").to_string();
    assert!(doctor_says.contains("state.keys"), "{doctor_says}");
    fs::remove_file(served.workplace.file(".local/state/steadyhand/history")).expect("a file");
    until_taken(&served, "k").await;
    assert_eq!(runs(&served).await, 1);
    drop(served);
    let told = "OVERLOADED, effect none; 20 of 20 others answered";

    // A disk that is read-only, where mounting one is allowed.
    let workplace = Workplace::with_config(TOOLS);
    let folder = workplace.file(".local/state/steadyhand/history");
    fs::create_dir_all(&folder).expect("a folder");
    let wrapper = format!(
        "mount -t tmpfs -o ro,size=1m none '{}' && exec \"$0\" \"$@\"",
        folder.display()
    );
    let wrapper = ["unshare", "-m", "sh", "-c", &wrapper];
    let Some(served) = Served::wrapped(workplace, &wrapper).await else {
        return fault.got(format!("{told} (no disk could be mounted)"));
    };
    let (more, reason) = until_refused(&served, "k").await;
    assert_eq!(more, 0);
    assert!(reason.contains("Read-only file system"), "{reason}");
    calls_go_on(&served, "c", 20).await;
    assert_eq!(runs(&served).await, 0);
    let doctor = doctor(&served);
    assert!(doctor.contains("state.keys"), "{doctor}");
    fault.got(told);
}
