//! An index that is broken, foreign, old, gone, or shared: nobody has to mend anything by hand.

use std::io::{Seek, SeekFrom, Write};

use serde_json::{Value, json};
use steadyhand::{Call, Outcome};

use super::{Library, answer, error, open, sources};

const FILES: [(&str, &str); 3] = [
    ("a.md", "the pump is in the cellar"),
    ("b.md", "the valve is under the roof"),
    ("c.md", "the lamp is in the hall"),
];

fn settings() -> Option<Value> {
    Some(json!({"folders": ["docs"]}))
}

/// Damages the index while nobody has it open, then asks with a new process' eyes.
async fn is_made_anew(damage: impl FnOnce(&std::path::Path)) {
    let library = Library::of(&FILES).await;
    assert_eq!(library.sources("pump").await, ["a.md"]);
    let index = library.index();
    let Library {
        home,
        executor,
        documents,
    } = library;
    drop((executor, documents));
    damage(&index);
    let (executor, _documents) = open(home.path(), settings(), super::Progress::silent()).await;
    for (query, source) in [("pump", "a.md"), ("valve", "b.md"), ("lamp", "c.md")] {
        let call = Call::new("search", json!({ "query": query }));
        let answer = answer(executor.execute(call).await);
        assert_eq!(sources(&answer), [source]);
        assert_eq!(answer["indexed"], 3);
    }
}

#[tokio::test]
async fn an_index_full_of_garbage_is_made_anew() {
    is_made_anew(|index| {
        std::fs::write(index, "this is no database ".repeat(5_000)).expect("written");
    })
    .await;
}

#[tokio::test]
async fn a_short_index_is_made_anew() {
    is_made_anew(|index| {
        let file = std::fs::File::options()
            .write(true)
            .open(index)
            .expect("opened");
        file.set_len(5_000).expect("cut");
    })
    .await;
}

#[tokio::test]
async fn an_index_overwritten_in_its_middle_is_made_anew() {
    is_made_anew(overwrite).await;
}

/// All pages but the first, which has the schema.
fn overwrite(index: &std::path::Path) {
    let mut file = std::fs::File::options()
        .write(true)
        .open(index)
        .expect("opened");
    let length = file.metadata().expect("its length").len();
    file.seek(SeekFrom::Start(4096)).expect("seek");
    file.write_all(&vec![0x5a; length.saturating_sub(4096) as usize])
        .expect("written");
}

#[tokio::test]
async fn an_index_of_another_format_is_made_anew() {
    is_made_anew(|index| {
        let database = rusqlite::Connection::open(index).expect("opened");
        database
            .execute_batch(
                "DROP TABLE file; CREATE TABLE file (old TEXT); PRAGMA user_version = 99",
            )
            .expect("changed");
    })
    .await;
}

#[tokio::test]
async fn an_index_that_lost_a_table_is_made_anew() {
    is_made_anew(|index| {
        let database = rusqlite::Connection::open(index).expect("opened");
        database
            .execute_batch("DROP TABLE passage")
            .expect("changed");
    })
    .await;
}

#[tokio::test]
async fn an_index_damaged_while_it_is_used_is_made_anew() {
    let library = Library::of(&FILES).await;
    assert_eq!(library.sources("pump").await, ["a.md"]);
    let index = library.index();
    // Everything into the file itself, so that there is something to damage.
    let database = rusqlite::Connection::open(&index).expect("opened");
    database
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .expect("written back");
    drop(database);
    overwrite(&index);
    let answer = library
        .until("valve", |answer| sources(answer) == ["b.md"])
        .await;
    assert_eq!(answer["indexed"], 3);
}

#[tokio::test]
async fn an_index_removed_while_it_is_used_is_made_anew() {
    let library = Library::of(&FILES).await;
    assert_eq!(library.sources("pump").await, ["a.md"]);
    std::fs::remove_dir_all(library.home.path().join("state")).expect("removed");
    super::write(&library.path("d.md"), "the gate is at the road");
    let answer = library
        .until("gate", |answer| sources(answer) == ["d.md"])
        .await;
    assert_eq!(answer["indexed"], 4);
    assert!(library.index().exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_owners_of_one_index_at_once_both_find_everything() {
    let files: Vec<(String, String)> = (0..300)
        .map(|n| (format!("{n}.md"), format!("common word{n}.")))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (&**n, &**t)).collect();
    let library = Library::of(&files).await;
    let mut owners = vec![];
    for _ in 0..4 {
        owners.push(open(library.home.path(), settings(), super::Progress::silent()).await);
    }
    // On a busy machine one may say that the others write for long: that is the truth, and no answer yet.
    let is_put_off = |outcome: &Outcome| {
        let failure = outcome.failure();
        failure.is_some_and(|failure| failure.message.contains("has been writing the index"))
    };
    let ask = async |query: String| {
        loop {
            let calls = owners.iter().map(|(executor, _)| {
                executor.execute(Call::new("search", json!({ "query": query })))
            });
            let outcomes = futures_util::future::join_all(calls).await;
            if !outcomes.iter().any(is_put_off) {
                return outcomes.into_iter().map(answer).collect::<Vec<Value>>();
            }
        }
    };
    let first = tokio::time::timeout(super::LONG, ask("word123.".to_owned()));
    for answer in first.await.expect("answered in time") {
        assert_eq!(answer["indexed"], 300);
        assert_eq!(sources(&answer)[0], "123.md");
    }
    super::write(&library.path("new.md"), "freshword");
    let everyone_finds_it = async {
        while !ask("freshword".to_owned())
            .await
            .iter()
            .all(|answer| answer["total"] == 1)
        {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(super::LONG, everyone_finds_it)
        .await
        .expect("found by all");
    assert_eq!(
        std::fs::read_dir(library.home.path().join("state/documents"))
            .expect("indexes")
            .filter(|entry| entry
                .as_ref()
                .expect("entry")
                .path()
                .extension()
                .is_some_and(|e| e == "db"))
            .count(),
        1
    );
}

#[cfg(unix)]
#[tokio::test]
async fn an_index_is_only_for_its_owner_to_read() {
    use std::os::unix::fs::PermissionsExt;
    let library = Library::of(&FILES).await;
    library.search("pump").await;
    let mode = std::fs::metadata(library.index())
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_state_folder_that_cannot_be_made_is_named_with_what_to_do() {
    let library = Library::of(&FILES).await;
    super::write(
        &library.home.path().join("state"),
        "a file where a folder should be",
    );
    let outcome = library.call(json!({"query": "pump"})).await;
    let text = error(&outcome);
    assert!(text.contains("cannot be created"), "{text}");
    assert!(text.contains("--state"), "{text}");
}
