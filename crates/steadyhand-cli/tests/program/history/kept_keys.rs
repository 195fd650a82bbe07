//! Keys that were given out hold, whatever becomes of their files or of the clock: a call runs once, or is refused and
//! it is said why.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use steadyhand::testing::{Script, script};
use steadyhand::{Call, Effect, KeyStore, Outcome, Taken, Tool, ToolError, ToolExecutor};
use steadyhand_store::history::{ClockReading, KeptKeys, KeysOptions};

use super::{as_a_process, executor, role, until};
use crate::support::PATIENCE;

/// What is done to a clock.
type Jump<'a> = &'a dyn Fn(&mut ClockReading);
/// What is done to a state folder.
type Damage<'a> = &'a dyn Fn(&Path);

/// A clock that a test sets.
#[derive(Clone)]
pub(super) struct Time(Arc<Mutex<ClockReading>>);

impl Default for Time {
    fn default() -> Time {
        Time(Arc::new(Mutex::new(ClockReading {
            wall_ms: 1_700_000_000_000,
            boot: "first".to_owned(),
            up_ms: 5_000,
        })))
    }
}

pub(super) fn hours(count: u64) -> u64 {
    count * 60 * 60 * 1000
}

impl Time {
    fn change(&self, change: impl FnOnce(&mut ClockReading)) {
        change(&mut self.0.lock().unwrap());
    }

    pub(super) fn passes(&self, ms: u64) {
        self.change(|now| {
            now.wall_ms += ms;
            now.up_ms += ms;
        });
    }

    pub(super) fn options(&self, folder: &Path) -> KeysOptions {
        let now = Arc::clone(&self.0);
        options(folder).clock(Box::new(move || now.lock().unwrap().clone()))
    }

    pub(super) fn process(&self, tool: Tool, folder: &Path) -> ToolExecutor {
        let keys = KeptKeys::open_with(self.options(folder));
        executor([tool]).with_key_store(Arc::new(keys))
    }
}

/// The file in a folder `history`, the second marker outside of it.
fn options(folder: &Path) -> KeysOptions {
    let second = folder.join("markers/keys.marker");
    match folder.join("history").exists() {
        true => KeysOptions::new(folder.join("history/keys.db")).second_marker(second),
        false => KeysOptions::new(folder.join("keys.db")),
    }
}

fn state() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("history")).unwrap();
    folder
}

fn process(tool: Tool, folder: &Path) -> ToolExecutor {
    executor([tool]).with_key_store(Arc::new(KeptKeys::open_with(options(folder))))
}

fn shop() -> Script {
    script("order").answers(json!({"ordered": 7}))
}

fn order(number: usize) -> Call {
    Call::new("order", json!({"number": 7})).idempotency_key(format!("k-{number}"))
}

/// What is told of a call that was refused because of its key.
fn refusal(outcome: &Outcome) -> Option<&str> {
    let failure = outcome.failure()?;
    (failure.code.as_str() == "OVERLOADED").then(|| {
        assert_eq!(failure.effect, Effect::None);
        failure.message.as_str()
    })
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

async fn closed(folder: &Path) {
    let log = folder.join("history/keys.db-wal");
    until("the file is closed", || !log.exists()).await;
}

#[tokio::test]
async fn s05_a_clock_that_jumps_forgets_no_key() {
    let (folder, time) = (state(), Time::default());
    let tool = shop();
    let running = time.process(tool.tool(), folder.path());
    assert!(running.execute(order(1)).await.is_success());
    let ahead = |now: &mut ClockReading| now.wall_ms += hours(48);
    let back = |now: &mut ClockReading| now.wall_ms -= hours(24 * 365);
    let started_again = |now: &mut ClockReading| {
        now.boot += "+";
        now.up_ms = hours(90);
        now.wall_ms += hours(48);
    };
    let uptime_back = |now: &mut ClockReading| now.up_ms = 0;
    let jumps: [(&str, Jump<'_>); 4] = [
        ("ahead", &ahead),
        ("back", &back),
        ("another run of the machine", &started_again),
        ("a machine that is up for less than before", &uptime_back),
    ];
    for (number, (what, jump)) in jumps.into_iter().enumerate() {
        time.change(jump);
        // The running process, with another key so that its memory does not answer, and one that comes after it.
        assert!(running.execute(order(10 + number)).await.is_success());
        let starts = tool.starts();
        let next = time.process(tool.tool(), folder.path());
        for key in [1, 10 + number] {
            let again = next.execute(order(key)).await;
            assert!(again.replayed, "{what}: {again:?}");
        }
        assert_eq!(tool.starts(), starts, "{what}");
    }
}

#[tokio::test]
async fn s05_a_key_is_forgotten_after_a_day_that_was_observed() {
    let (folder, time) = (state(), Time::default());
    let tool = shop();
    let first = time.process(tool.tool(), folder.path());
    first.execute(order(1)).await;
    time.passes(hours(23));
    let second = time.process(tool.tool(), folder.path());
    assert!(second.execute(order(1)).await.replayed);
    time.passes(hours(2));
    let third = time.process(tool.tool(), folder.path());
    assert!(!third.execute(order(1)).await.replayed);
    assert_eq!(tool.starts(), 2);
}

#[tokio::test]
async fn s05_keys_of_the_first_release_are_known_after_the_upgrade() {
    let folder = state();
    let old = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/program/history/keys-0.1.0.db"
    );
    fs::copy(old, folder.path().join("history/keys.db")).unwrap();
    let pay = || script("pay").answers(json!({"paid": true}));
    let paid = |number: usize| Call::new("pay", json!({})).idempotency_key(format!("inv-{number}"));
    for round in 0..2 {
        let tool = pay();
        let executor = process(tool.tool(), folder.path());
        for number in 1..=5 {
            let again = executor.execute(paid(number)).await;
            assert!(again.replayed, "round {round}: {again:?}");
        }
        assert_eq!(tool.starts(), 0);
        drop(executor);
        closed(folder.path()).await;
    }
    // The old file put back over the new one is older than what was given out since.
    fs::copy(old, folder.path().join("history/keys.db")).unwrap();
    let tool = pay();
    let refused = process(tool.tool(), folder.path()).execute(paid(6)).await;
    let why = refusal(&refused).expect("it is refused");
    assert!(why.contains("from before an upgrade"), "{why}");
}

#[tokio::test]
async fn s05_an_empty_file_of_the_first_release_is_no_fresh_start() {
    let folder = state();
    fs::write(folder.path().join("history/keys.db"), "").unwrap();
    let tool = shop();
    let refused = process(tool.tool(), folder.path()).execute(order(1)).await;
    let why = refusal(&refused).expect("it is refused");
    assert!(why.contains("is empty"), "{why}");
    let accepted = options(folder.path()).accept_loss().unwrap();
    assert!(accepted.is_some());
    let executor = process(tool.tool(), folder.path());
    assert!(executor.execute(order(1)).await.is_success());
}

/// Keys that every damage is done to.
const KEYS: usize = 24;

/// A state folder as it is while a process runs, with an older copy of it inside, and one of the same after it ended.
struct Before {
    running: tempfile::TempDir,
    older: tempfile::TempDir,
    ended: tempfile::TempDir,
}

impl Before {
    async fn new() -> Before {
        let (running, older, ended) = (state(), state(), state());
        let work = state();
        let executor = process(shop().tool(), work.path());
        for number in 0..KEYS {
            if number == KEYS / 2 {
                copy(work.path(), older.path());
            }
            assert!(executor.execute(order(number)).await.is_success());
        }
        copy(work.path(), running.path());
        drop(executor);
        closed(work.path()).await;
        copy(work.path(), ended.path());
        Before {
            running,
            older,
            ended,
        }
    }
}

/// Does this to a copy of the folder, then sends all calls again. Nothing may run. Gives back why calls are refused, if
/// they are; after that is accepted, new calls run.
async fn after(before: &Path, what: &str, damage: impl FnOnce(&Path)) -> Option<String> {
    let folder = state();
    copy(before, folder.path());
    damage(folder.path());
    let tool = shop();
    let store = Arc::new(KeptKeys::open_with(options(folder.path())));
    let executor = executor([tool.tool()]).with_key_store(Arc::clone(&store) as _);
    let mut refused = None;
    for number in 0..KEYS {
        let outcome = executor.execute(order(number)).await;
        assert_eq!(tool.starts(), 0, "{what}: call {number} ran again");
        if let Some(why) = refusal(&outcome) {
            assert_eq!(
                store.trouble().as_deref().map(|why| why.contains("keys.")),
                Some(true)
            );
            refused = Some(why.to_owned());
        }
    }
    if let Some(why) = &refused
        && why.contains("accept-loss")
    {
        let accepted = options(folder.path()).accept_loss().unwrap();
        assert!(accepted.is_some(), "{what}: {why}");
        let next = executor.execute(order(1000)).await;
        assert!(next.is_success(), "{what}: {next:?}");
    }
    refused
}

fn flip(path: &Path, place: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[place] ^= if place.is_multiple_of(2) { 0xff } else { 0x01 };
    fs::write(path, bytes).unwrap();
}

fn cut(path: &Path, bytes: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(bytes).unwrap();
}

#[tokio::test]
async fn s05_a_file_that_lost_keys_is_noticed_and_nothing_runs_again() {
    let before = Before::new().await;
    let in_history = |name: &'static str| move |folder: &Path| folder.join("history").join(name);
    let (db, wal, shm) = (
        in_history("keys.db"),
        in_history("keys.db-wal"),
        in_history("keys.db-shm"),
    );
    let remove = |path: PathBuf| fs::remove_file(path).unwrap();
    let older = before.older.path().to_owned();
    let running: [(&str, Damage<'_>); 10] = [
        ("no log", &|it| remove(wal(it))),
        ("no log and no index", &|it| {
            remove(wal(it));
            remove(shm(it));
        }),
        ("an empty log", &|it| cut(&wal(it), 0)),
        ("half a log", &|it| {
            cut(&wal(it), fs::metadata(wal(it)).unwrap().len() / 2);
        }),
        ("no file", &|it| remove(db(it))),
        ("an empty file", &|it| cut(&db(it), 0)),
        ("an empty file and no log", &|it| {
            cut(&db(it), 0);
            remove(wal(it));
        }),
        ("an older copy", &|it| {
            for name in ["keys.db", "keys.db-wal"] {
                fs::copy(
                    older.join("history").join(name),
                    it.join("history").join(name),
                )
                .unwrap();
            }
            remove(shm(it));
        }),
        ("an older folder", &|it| {
            fs::remove_dir_all(it.join("history")).unwrap();
            copy(&older.join("history"), &it.join("history"));
        }),
        ("an emptied folder", &|it| {
            fs::remove_dir_all(it.join("history")).unwrap();
            fs::create_dir(it.join("history")).unwrap();
        }),
    ];
    for (what, damage) in running {
        let refused = after(before.running.path(), what, damage).await;
        let why = refused.unwrap_or_else(|| panic!("{what}: nobody noticed"));
        assert!(why.contains("accept-loss"), "{what}: {why}");
    }
    let other = Before::new().await;
    let ended: [(&str, Damage<'_>); 6] = [
        ("no file", &|it| remove(db(it))),
        ("an empty file", &|it| fs::write(db(it), "").unwrap()),
        ("half a file", &|it| {
            cut(&db(it), fs::metadata(db(it)).unwrap().len() / 2);
        }),
        ("another store", &|it| {
            fs::copy(db(other.ended.path()), db(it)).map(drop).unwrap();
        }),
        ("another folder", &|it| {
            fs::remove_dir_all(it.join("history")).unwrap();
            copy(&other.ended.path().join("history"), &it.join("history"));
        }),
        ("no marker at all", &|it| {
            remove(it.join("history/keys.marker"));
            remove(it.join("markers/keys.marker"));
        }),
    ];
    for (what, damage) in ended {
        let refused = after(before.ended.path(), what, damage).await;
        let why = refused.unwrap_or_else(|| panic!("{what}: nobody noticed"));
        assert!(why.contains("accept-loss"), "{what}: {why}");
    }
    // What loses nothing refuses nothing.
    let harmless: [(&str, Damage<'_>); 4] = [
        ("no index of the log", &|it| remove(shm(it))),
        ("a damaged index of the log", &|it| flip(&shm(it), 40)),
        ("one marker gone", &|it| {
            remove(it.join("history/keys.marker"));
        }),
        ("one marker damaged", &|it| {
            cut(&it.join("history/keys.marker"), 100);
        }),
    ];
    for (what, damage) in harmless {
        assert_eq!(
            after(before.running.path(), what, damage).await,
            None,
            "{what}"
        );
    }
}

#[tokio::test]
async fn s05_a_flipped_byte_anywhere_lets_nothing_run_again() {
    let before = Before::new().await;
    let mut noticed = 0;
    let files = [
        (before.running.path(), "history/keys.db-wal", 20),
        (before.ended.path(), "history/keys.db", 45),
        (before.ended.path(), "history/keys.marker", 5),
    ];
    for (folder, name, count) in files {
        let length = fs::metadata(folder.join(name)).unwrap().len() as usize;
        let places = (0..count).map(|number| number * length / count + number % 7);
        // The head of a database is where most is decided.
        let head = (16..100).step_by(5).filter(|_| name.ends_with(".db"));
        for place in places.chain(head).filter(|place| *place < length) {
            let what = format!("byte {place} of {name}");
            let refused = after(folder, &what, |it| flip(&it.join(name), place)).await;
            noticed += usize::from(refused.is_some());
        }
    }
    assert!(noticed > 20, "most of the damage matters: {noticed}");
}

#[tokio::test]
async fn s05_two_processes_on_one_folder_and_what_one_cannot_write() {
    let folder = state();
    let (one, other) = (shop(), shop());
    let first = process(one.tool(), folder.path());
    let second = process(other.tool(), folder.path());
    for number in 0..40 {
        let (a, b) = match number % 2 {
            0 => (&first, &second),
            _ => (&second, &first),
        };
        assert!(a.execute(order(number)).await.is_success());
        assert!(b.execute(order(number)).await.replayed);
    }
    assert_eq!(one.starts() + other.starts(), 40);
    // A key that one process has taken is not given back by another that could not have it.
    let stores = [0, 1].map(|_| KeptKeys::open_with(options(folder.path())));
    assert_eq!(stores[0].take("mine", &[1; 32]).await, Ok(Taken::New));
    assert_eq!(
        stores[1].take("mine", &[1; 32]).await,
        Ok(Taken::Unfinished)
    );
    stores[1].release("mine").await.unwrap();
    assert_eq!(
        stores[1].take("mine", &[1; 32]).await,
        Ok(Taken::Unfinished)
    );
    // A marker that cannot be read refuses calls; it is not taken for missing.
    for marker in ["history/keys.marker", "markers/keys.marker"] {
        let marker = folder.path().join(marker);
        fs::remove_file(&marker).unwrap();
        fs::create_dir(&marker).unwrap();
    }
    let refused = process(one.tool(), folder.path()).execute(order(99)).await;
    let why = refusal(&refused).expect("it is refused");
    assert!(why.contains("keys.marker"), "{why}");
}

/// Sends calls one after the other, some of those before it again, until it is killed.
async fn order_until_killed(folder: &Path) {
    let ledger = folder.join("ran");
    let done = lines(&ledger);
    let act = move |args: Value| {
        let ledger = ledger.clone();
        async move {
            append(&ledger, &args["number"])
                .map_err(|error| ToolError::answer(error.to_string()))?;
            Ok::<Value, ToolError>(json!("ordered"))
        }
    };
    let executor = process(Tool::function("order", "d", act), folder);
    let last = done.iter().filter_map(|line| line.parse().ok()).max();
    for number in last.unwrap_or(0_usize).saturating_sub(15).. {
        let call = Call::new("order", json!({"number": number}));
        let outcome = executor
            .execute(call.idempotency_key(format!("k-{number}")))
            .await;
        // The other process may hold the files, or may run this very call.
        assert!(
            outcome.is_success()
                || outcome
                    .failure()
                    .is_some_and(|it| it.code.as_str() != "TOOL_EXECUTION_ERROR"),
            "{outcome:?}"
        );
        if let Some(why) = refusal(&outcome) {
            assert!(!why.contains("accept-loss"), "{why}");
        }
    }
}

fn append(ledger: &Path, number: &Value) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(ledger)?;
    file.write_all(format!("{number}\n").as_bytes())
}

fn lines(ledger: &Path) -> Vec<String> {
    let text = fs::read_to_string(ledger).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn s05_fifty_kills_and_no_call_ran_twice() {
    const NAME: &str = "history::kept_keys::s05_fifty_kills_and_no_call_ran_twice";
    if let Some(folder) = role() {
        return order_until_killed(&folder).await;
    }
    let folder = state();
    let ledger = folder.path().join("ran");
    for round in 0..25 {
        // Two at a time, on the same keys.
        let mut children = [0, 1].map(|_| as_a_process(NAME, folder.path(), &[]).spawn().unwrap());
        let enough = lines(&ledger).len() + 1 + round % 9;
        let begun = tokio::time::Instant::now();
        while lines(&ledger).len() < enough {
            assert!(begun.elapsed() < PATIENCE, "no call runs in round {round}");
            for child in &mut children {
                assert_eq!(child.try_wait().unwrap(), None, "round {round}");
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        for mut child in children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
    let ran = lines(&ledger);
    let once: BTreeSet<&String> = ran.iter().collect();
    assert_eq!(once.len(), ran.len(), "a call ran twice");
    assert!(ran.len() >= 25, "{}", ran.len());
    let tool = shop();
    let next = process(tool.tool(), folder.path()).execute(order(1)).await;
    assert_eq!(
        (refusal(&next), tool.starts()),
        (None, 0),
        "nothing is taken for lost"
    );
}
