//! How many kept keys one caller may have: its share, however it comes by it, and no key of anybody goes for it.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use steadyhand::{KeyCaller, KeyStore, KeyStoreError, Taken};
use steadyhand_store::history::{KeptKeys, KeysOptions};

use super::kept_keys::{Time, hours};
use super::until;
use crate::support::PATIENCE;

/// Few enough to be filled. Two of them are for operators.
const KEYS: u32 = 32;

fn options(folder: &Path) -> KeysOptions {
    KeysOptions::new(folder.join("keys.db")).keys_max(KEYS)
}

fn operator(name: &str) -> KeyCaller<'_> {
    KeyCaller {
        name,
        uses_reserve: true,
    }
}

async fn take(
    keys: &KeptKeys,
    caller: Option<KeyCaller<'_>>,
    key: &str,
) -> Result<Taken, KeyStoreError> {
    keys.take_for(caller, key, &[7; 32]).await
}

/// Takes keys for a caller until it is refused. How many it got, and why it got no more.
async fn take_all(keys: &KeptKeys, caller: Option<KeyCaller<'_>>, prefix: &str) -> (usize, String) {
    for number in 0..2 * KEYS as usize {
        match take(keys, caller, &format!("{prefix}-{number}")).await {
            Ok(Taken::New) => {}
            Err(refused) => return (number, refused.to_string()),
            Ok(other) => panic!("{prefix}-{number} is {other:?}"),
        }
    }
    panic!("{prefix} is never refused");
}

async fn closed(keys: KeptKeys, folder: &Path) {
    drop(keys);
    let log = folder.join("keys.db-wal");
    until("the file is closed", || !log.exists()).await;
}

/// The callers of the file with the counts in it: they must be those of its keys.
fn counted(folder: &Path) -> Vec<(String, i64, i64)> {
    let file = Connection::open(folder.join("keys.db")).unwrap();
    let list = |sql: &str| -> Vec<(String, i64, i64)> {
        let mut list = file.prepare(sql).unwrap();
        let rows = list.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        rows.unwrap().map(Result::unwrap).collect()
    };
    let counts = list(
        "SELECT ifnull(name, ''), keys, outcome_bytes FROM callers WHERE keys > 0 ORDER BY id",
    );
    let keys = list(
        "SELECT ifnull(name, ''), count(*), ifnull(sum(octet_length(k.outcome)), 0)
         FROM keys k JOIN callers c ON c.id = k.caller GROUP BY c.id ORDER BY c.id",
    );
    assert_eq!(counts, keys);
    counts
}

#[tokio::test]
async fn s02_one_caller_cannot_fill_the_kept_keys() {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeptKeys::open_with(options(folder.path()));
    let greedy = Some(KeyCaller::new("@greedy"));
    let (got, why) = take_all(&keys, greedy, "greedy").await;
    assert_eq!(got, 15, "half of what is not for operators");
    for part in [
        "greedy has 15",
        "half of what the others leave of 32",
        "24 hours",
    ] {
        assert!(why.contains(part), "{why}");
    }
    // It is refused, and every key that it has still holds.
    for number in 0..got {
        let again = take(&keys, greedy, &format!("greedy-{number}")).await;
        assert_eq!(again, Ok(Taken::Unfinished));
    }
    assert_eq!(keys.trouble(), None, "keys are taken");
    // A restart gives it no second share.
    closed(keys, folder.path()).await;
    assert_eq!(counted(folder.path()), [("@greedy".to_owned(), 15, 0)]);
    let keys = KeptKeys::open_with(options(folder.path()));
    assert!(take(&keys, greedy, "one-more").await.is_err());
    // One that is given back is free again; that of another caller is not.
    assert_eq!(take(&keys, greedy, "greedy-3").await, Ok(Taken::Unfinished));
    let other = Some(KeyCaller::new("@other"));
    for number in 0..5 {
        let taken = take(&keys, other, &format!("other-{number}")).await;
        assert_eq!(taken, Ok(Taken::New));
    }
    keys.release("other-0").await.unwrap();
    assert!(take(&keys, greedy, "one-more").await.is_err());
    closed(keys, folder.path()).await;
    assert_eq!(
        counted(folder.path()),
        [("@greedy".to_owned(), 15, 0), ("@other".to_owned(), 4, 0)]
    );
}

#[tokio::test]
async fn s02_many_callers_together_leave_room_for_the_next_one_and_for_operators() {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeptKeys::open_with(options(folder.path()));
    let mut all = 0;
    for number in 0..4 {
        let name = format!("10.0.0.{number}");
        let (got, _) = take_all(&keys, Some(KeyCaller::new(&name)), &name).await;
        assert!(got > 0);
        all += got;
    }
    assert!(all < 30, "{all}");
    let next = take(&keys, Some(KeyCaller::new("@next")), "next").await;
    assert_eq!(next, Ok(Taken::New));
    // Everybody comes until nobody gets one: what is for operators is left.
    let mut number = 4;
    let why = loop {
        let name = format!("10.0.0.{number}");
        let (got, why) = take_all(&keys, Some(KeyCaller::new(&name)), &name).await;
        if got == 0 {
            break why;
        }
        number += 1;
    };
    assert!(
        why.contains("30 keys of the last 24 hours are kept"),
        "{why}"
    );
    let taken = take(&keys, Some(operator("@boss")), "boss").await;
    assert_eq!(taken, Ok(Taken::New));
    // Who is no caller is the application itself, and has all there are.
    assert_eq!(take_all(&keys, None, "own").await.0, 1);
    assert!(
        take(&keys, Some(operator("@boss")), "boss-2")
            .await
            .is_err()
    );
}

#[tokio::test]
async fn s02_a_share_is_free_again_when_its_keys_are_forgotten() {
    let (folder, time) = (tempfile::tempdir().unwrap(), Time::default());
    let keys = KeptKeys::open_with(time.options(folder.path()).keys_max(KEYS));
    let greedy = Some(KeyCaller::new("@greedy"));
    take_all(&keys, greedy, "first").await;
    time.passes(hours(23));
    assert!(take(&keys, greedy, "soon").await.is_err());
    time.passes(hours(2));
    let (got, _) = take_all(&keys, greedy, "second").await;
    assert_eq!(got, 15);
    closed(keys, folder.path()).await;
    assert_eq!(counted(folder.path()), [("@greedy".to_owned(), 15, 0)]);
}

#[tokio::test]
async fn s02_outcomes_of_one_caller_leave_those_of_others_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let open = || KeptKeys::open_with(options(folder.path()).outcomes_bytes_max(10_000));
    let keys = open();
    let settled = async |caller, key: &str, bytes: usize| {
        assert_eq!(take(&keys, Some(caller), key).await, Ok(Taken::New));
        keys.settle(key, "x".repeat(bytes)).await.unwrap();
    };
    let [greedy, other] = [KeyCaller::new("@greedy"), KeyCaller::new("@other")];
    settled(other, "other", 1_000).await;
    for number in 0..10 {
        settled(greedy, &format!("greedy-{number}"), 3_000).await;
    }
    let known = take(&keys, Some(other), "other").await;
    assert_eq!(known, Ok(Taken::Finished("x".repeat(1_000))));
    // Of its oldest calls it is still known that they ran.
    let known = take(&keys, Some(greedy), "greedy-0").await;
    assert_eq!(known, Ok(Taken::Unfinished));
    let known = take(&keys, Some(greedy), "greedy-9").await;
    assert_eq!(known, Ok(Taken::Finished("x".repeat(3_000))));
    closed(keys, folder.path()).await;
    let [(_, _, one), (_, _, two)] = &counted(folder.path())[..] else {
        panic!("two callers have keys");
    };
    assert_eq!((*one, *two), (1_000, 9_000));
}

#[tokio::test]
async fn s05_keys_of_the_version_before_are_nobodys_after_the_upgrade_and_hold() {
    let folder = tempfile::tempdir().unwrap();
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/history/");
    for end in ["db", "marker"] {
        let from = format!("{fixtures}keys-format-3.{end}");
        fs::copy(from, folder.path().join(format!("keys.{end}"))).unwrap();
    }
    let keys = KeptKeys::open_with(options(folder.path()));
    for number in 1..=5 {
        // The digest of the call is none of those that ran, so a key that is known is a conflict.
        let known = take(&keys, None, &format!("inv-{number}")).await;
        assert_eq!(known, Ok(Taken::Conflict), "inv-{number}");
    }
    let greedy = Some(KeyCaller::new("@greedy"));
    let (got, _) = take_all(&keys, greedy, "greedy").await;
    assert_eq!(got, 13, "half of what the five before leave");
    closed(keys, folder.path()).await;
    let callers = counted(folder.path());
    assert_eq!((callers[0].0.as_str(), callers[0].1), ("", 5));
    assert!(callers[0].2 > 0, "outcomes are counted, too");
    assert_eq!(callers[1], ("@greedy".to_owned(), 13, 0));
    // The file from before the upgrade is an older copy now.
    let older = format!("{fixtures}keys-format-3.db");
    fs::copy(older, folder.path().join("keys.db")).unwrap();
    let keys = KeptKeys::open_with(options(folder.path()));
    let refused = take(&keys, None, "inv-1").await.unwrap_err().to_string();
    assert!(refused.contains("is an older copy"), "{refused}");
}

#[tokio::test]
async fn s05_a_file_of_the_version_before_without_its_marker_is_not_taken_for_whole() {
    let folder = tempfile::tempdir().unwrap();
    let old = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/program/history/keys-format-3.db"
    );
    fs::copy(old, folder.path().join("keys.db")).unwrap();
    let keys = KeptKeys::open_with(options(folder.path()));
    let refused = take(&keys, None, "inv-9").await.unwrap_err().to_string();
    assert!(refused.contains("keys.marker is missing"), "{refused}");
}

#[tokio::test]
async fn s02_counts_of_callers_that_are_damaged_are_counted_anew() {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeptKeys::open_with(options(folder.path()));
    let [one, other] = [KeyCaller::new("@one"), KeyCaller::new("@other")];
    for number in 0..4 {
        take(&keys, Some(one), &format!("one-{number}"))
            .await
            .unwrap();
        take(&keys, Some(other), &format!("other-{number}"))
            .await
            .unwrap();
    }
    closed(keys, folder.path()).await;
    let before = counted(folder.path());
    let file = Connection::open(folder.path().join("keys.db")).unwrap();
    file.execute_batch(
        "UPDATE callers SET keys = 1000000, outcome_bytes = 7 WHERE name = '@one';
         UPDATE callers SET keys = 0 WHERE name = '@other';
         INSERT INTO callers VALUES (77, '@ghost', 31, 0);",
    )
    .unwrap();
    drop(file);
    let keys = KeptKeys::open_with(options(folder.path()));
    for caller in [one, other] {
        let key = format!("{}-more", caller.name);
        assert_eq!(take(&keys, Some(caller), &key).await, Ok(Taken::New));
        keys.release(&key).await.unwrap();
    }
    closed(keys, folder.path()).await;
    assert_eq!(counted(folder.path()), before);
}

#[tokio::test]
async fn s05_keys_that_cannot_be_written_are_not_said_to_be_well_before_they_can() {
    // Where nobody can make a folder, root neither; the second is so for a while.
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("history");
    fs::write(&place, "this is no folder").unwrap();
    for path in ["/proc/steadyhand/keys.db".into(), place.join("keys.db")] {
        let keys = KeptKeys::open_with(KeysOptions::new(&path));
        assert!(take(&keys, None, "k").await.is_err(), "{path:?}");
        assert!(keys.trouble().is_some(), "{path:?}");
        keys.check_soon();
        assert!(keys.close(PATIENCE), "it has looked");
        assert!(keys.trouble().is_some(), "{path:?}");
    }
    let keys = KeptKeys::open_with(KeysOptions::new(place.join("keys.db")));
    assert!(take(&keys, None, "k").await.is_err());
    fs::remove_file(&place).unwrap();
    keys.check_soon();
    assert!(keys.close(PATIENCE), "it has looked");
    assert_eq!(keys.trouble(), None);
    assert_eq!(take(&keys, None, "k").await, Ok(Taken::New));
}
