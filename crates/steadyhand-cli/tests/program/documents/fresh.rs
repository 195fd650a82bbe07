//! Changes are found without a restart, told of by the system or not; waits are bounded.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::{Call, Event};
use tokio_util::sync::CancellationToken;

use super::{LONG, Library, Told, error, open, sources, write};

async fn changes_are_found(watch: bool) {
    let files = [
        ("stays.md", "alpha stays"),
        ("changes.md", "alpha old"),
        ("goes.md", "alpha goes"),
    ];
    let library = Library::new(&files, json!({"folders": ["docs"], "watch": watch})).await;
    assert_eq!(library.search("alpha").await["total"], 3);

    write(&library.path("changes.md"), "beta new");
    let answer = library.until("beta", |answer| answer["total"] == 1).await;
    assert_eq!(sources(&answer), ["changes.md"]);
    assert_eq!(library.search("old").await["total"], 0);

    write(&library.path("new/deep/added.md"), "alpha added");
    let answer = library.until("added", |answer| answer["total"] == 1).await;
    assert_eq!(sources(&answer), ["new/deep/added.md"]);

    std::fs::remove_file(library.path("goes.md")).expect("removed");
    let answer = library.until("goes", |answer| answer["total"] == 0).await;
    assert_eq!(answer["indexed"], 3);

    std::fs::rename(library.path("new"), library.path("other")).expect("renamed");
    let answer = library
        .until("added", |answer| sources(answer) == ["other/deep/added.md"])
        .await;
    assert_eq!(answer["total"], 1);
}

#[tokio::test]
async fn changed_added_deleted_and_moved_files_are_found_without_restart() {
    changes_are_found(true).await;
}

#[tokio::test]
async fn changes_are_found_where_the_system_does_not_tell_of_them() {
    changes_are_found(false).await;
}

#[tokio::test]
async fn a_file_of_the_same_size_and_an_older_time_is_a_change() {
    let library = Library::new(
        &[("a.md", "first")],
        json!({"folders": ["docs"], "watch": false}),
    )
    .await;
    assert_eq!(library.search("first").await["total"], 1);
    let times = std::fs::metadata(library.path("a.md"))
        .expect("there")
        .modified()
        .expect("a time");
    write(&library.path("b.tmp"), "other");
    let file = std::fs::File::options()
        .write(true)
        .open(library.path("b.tmp"))
        .expect("opened");
    file.set_modified(times).expect("set back");
    std::fs::rename(library.path("b.tmp"), library.path("a.md")).expect("moved");
    library.until("other", |answer| answer["total"] == 1).await;
}

#[tokio::test]
async fn a_change_is_indexed_in_the_background_before_anybody_asks() {
    let library = Library::of(&[("a.md", "word")]).await;
    let told = Arc::new(Told::default());
    let settings = json!({"folders": ["docs"]});
    let (_executor, documents) = open(library.home.path(), Some(settings), told.progress()).await;
    documents.start();
    let indexed_once = async {
        while told.all().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, indexed_once)
        .await
        .expect("indexed at start");
    assert_eq!(
        told.all()[..2],
        [
            ("indexing documents".to_owned(), 0, 1),
            ("indexing documents finished".to_owned(), 0, 0)
        ]
    );
    let mut n = 0;
    let indexed_again = async {
        // Written again and again: the watch may begin after the first index is there.
        while told.all().len() < 4 {
            n += 1;
            write(&library.path("a.md"), format!("word {n}"));
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    };
    tokio::time::timeout(LONG, indexed_again)
        .await
        .expect("indexed again, nobody asked");
}

#[tokio::test]
async fn a_restart_reads_nothing_again_that_has_not_changed() {
    let library = Library::of(&[("a.md", "word one"), ("b.md", "word two")]).await;
    library.search("word").await;
    let restarted = async {
        loop {
            let told = Arc::new(Told::default());
            let settings = json!({"folders": ["docs"]});
            let (executor, _documents) =
                open(library.home.path(), Some(settings), told.progress()).await;
            let call = Call::new("search", json!({"query": "word"}));
            assert_eq!(super::answer(executor.execute(call).await)["total"], 2);
            // Files this young are read twice: a change within the same tick has no other stamp.
            if told.all().is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let quiet = tokio::time::timeout(LONG, restarted).await;
    quiet.expect("unchanged files are read at every start");
}

fn many(count: usize) -> Vec<(String, String)> {
    let text = |n| {
        format!(
            "# Page {n}\n\n{}",
            format!("word{n} and much more text. ").repeat(100)
        )
    };
    (0..count).map(|n| (format!("{n}.md"), text(n))).collect()
}

#[tokio::test]
async fn v07_a_first_query_that_cannot_wait_says_how_far_indexing_is_and_later_ones_find_it_done() {
    let library = Library::of(&[("a.md", "alpha")]).await;
    assert_eq!(library.search("alpha").await["total"], 1);
    let index = library.index();
    let Library {
        home,
        executor,
        documents,
    } = library;
    drop((executor, documents));
    write(&home.path().join("docs/b.md"), "beta");
    // Another process that writes for as long as it likes.
    let other = rusqlite::Connection::open(index).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("begun");
    let settings = json!({"folders": ["docs"]});
    let (executor, _documents) = open(home.path(), Some(settings), super::Progress::silent()).await;
    let ask = |timeout_ms| {
        let call = Call::new("search", json!({"query": "beta"})).no_retry();
        executor.execute(call.timeout(Duration::from_millis(timeout_ms)))
    };
    let outcome = ask(1_000).await;
    let failure = outcome.failure().expect("the other still writes");
    assert_eq!(failure.code.as_str(), "TIMEOUT");
    assert_eq!(failure.effect, steadyhand::Effect::None);
    let text = error(&outcome);
    assert!(
        text.starts_with("documents is being indexed for the first time: 0 of "),
        "{text}"
    );
    other.execute_batch("ROLLBACK").expect("over");
    assert_eq!(sources(&super::answer(ask(30_000).await)), ["b.md"]);
}

#[tokio::test]
async fn the_caller_is_told_how_far_indexing_is() {
    let files = many(300);
    let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (&**n, &**t)).collect();
    let library = Library::of(&files).await;
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let _watch = library
        .executor
        .observe(move |event: &Event| {
            if let Event::Progress { total, message, .. } = event {
                let _ = sender.send((*total, message.clone()));
            }
        })
        .expect("observed");
    assert_eq!(library.search("word7.").await["indexed"], 300);
    let told = tokio::time::timeout(LONG, events.recv())
        .await
        .expect("told in time");
    assert_eq!(told, Some((Some(300.0), "indexing documents".to_owned())));
}

#[tokio::test]
async fn v07_dropped_and_cancelled_queries_leave_no_connection_busy() {
    let files = many(200);
    let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (&**n, &**t)).collect();
    let library = Library::of(&files).await;
    assert_eq!(library.search("word3.").await["indexed"], 200);
    for n in 0..100_u64 {
        let token = CancellationToken::new();
        let call = Call::new("search", json!({"query": "much more text and words"}));
        let running = library.executor.execute(call.cancellation(token.clone()));
        let cancelling = async {
            tokio::time::sleep(Duration::from_micros(n * 20)).await;
            token.cancel();
        };
        let _ = tokio::join!(running, cancelling);
    }
    let is_found = |answer: &Value| sources(answer).first().is_some_and(|it| it == "5.md");
    library.until("word5.", is_found).await;
    let all: Vec<Value> =
        futures_util::future::join_all((0..50).map(|_| library.search("word5."))).await;
    for answer in &all {
        assert!(is_found(answer), "{answer}");
    }
}

#[tokio::test]
async fn indexing_ends_when_nobody_holds_the_documents_any_more() {
    let files = many(2_000);
    let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (&**n, &**t)).collect();
    let library = Library::of(&files).await;
    library.documents.start();
    let Library {
        home,
        executor,
        documents,
    } = library;
    drop((executor, documents));
    // Another owner is not kept from going on where the first one stopped.
    let (executor, _documents) = open(
        home.path(),
        Some(json!({"folders": ["docs"]})),
        super::Progress::silent(),
    )
    .await;
    let call = Call::new("search", json!({"query": "word1999."}))
        .timeout(LONG)
        .deadline(LONG);
    let answer = super::answer(executor.execute(call).await);
    assert_eq!(answer["indexed"], 2_000);
}
