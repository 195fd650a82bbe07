//! Old calls go, and the file stays as small as it is told to be.

use std::fs;
use std::time::Duration;

use serde_json::json;
use steadyhand::Call;
use steadyhand_store::history::Filter;

use super::{Place, call, echo, until};

fn bytes_on_disk(place: &Place) -> u64 {
    let files = fs::read_dir(place.folder.path()).unwrap();
    files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum()
}

#[tokio::test]
async fn calls_older_than_they_are_kept_are_forgotten() {
    let place = Place::with([echo()], |options| {
        options.keep = Duration::from_millis(1500);
    });
    for number in 0..50 {
        place
            .run(call(&format!("old-{number}"), "echo").caller("guest"))
            .await;
    }
    place.flush();
    assert_eq!(place.ids("").len(), 50);
    let mut number = 0;
    until("the old ones are gone", || {
        number += 1;
        let run = place.run(call(&format!("new-{number}"), "echo"));
        assert!(futures_util::future::FutureExt::now_or_never(run).is_some());
        // Theirs alone: the new ones may be more than a page.
        place.page("caller:guest").calls.is_empty()
    })
    .await;
    assert!(!place.ids("").is_empty());
    assert_eq!(place.history.call("old-7").unwrap(), None);
}

#[tokio::test]
async fn the_file_stays_within_its_size_and_keeps_the_newest() {
    const MAX: u64 = 2 * 1024 * 1024;
    let place = Place::with([echo()], |options| options.max_bytes = MAX);
    let mut number = 0;
    let mut largest = 0;
    // Six times as much as there is room for, and until the first has gone.
    while number < 1200 || place.history.call("c-0").unwrap().is_some() {
        for _ in 0..50 {
            let args = json!({"text": "x".repeat(5000)});
            place
                .run(Call::new("echo", args).id(format!("c-{number}")))
                .await;
            number += 1;
        }
        assert!(number < 50_000, "nothing is forgotten");
        place.flush();
        largest = largest.max(bytes_on_disk(&place));
    }
    let newest = format!("c-{}", number - 1);
    assert!(place.history.call(&newest).unwrap().is_some());
    until("the file is small again", || {
        place.flush();
        let run = place.run(call("more", "echo"));
        assert!(futures_util::future::FutureExt::now_or_never(run).is_some());
        bytes_on_disk(&place) <= MAX
    })
    .await;
    // It may be larger for the moment between two looks at it.
    assert!(largest < 16 * MAX, "{largest}");
    until("history says so", || {
        place.flush();
        place.history.health().bytes <= MAX + 1024 * 1024
    })
    .await;
}

#[tokio::test]
async fn pages_go_on_while_old_calls_are_forgotten() {
    let place = Place::with([echo()], |options| {
        options.keep = Duration::from_millis(2500);
    });
    for number in 0..60 {
        place
            .run(call(&format!("old-{number}"), "echo").caller("guest"))
            .await;
    }
    place.flush();
    let filter = Filter::parse("tool:echo", 0).unwrap();
    let first = place.history.page(&filter, None, 20).unwrap();
    assert_eq!(first.calls.len(), 20);
    let mut number = 0;
    until("the old ones are gone", || {
        number += 1;
        let run = place.run(call(&format!("new-{number}"), "echo"));
        assert!(futures_util::future::FutureExt::now_or_never(run).is_some());
        // Theirs alone: the new ones may be more than a page.
        place.page("caller:guest").calls.is_empty()
    })
    .await;
    // The place of the cursor is gone, and nothing comes twice.
    let second = place.history.page(&filter, first.next, 20).unwrap();
    assert_eq!((second.calls.len(), second.next), (0, None));
    // A caller whom nobody can be found by is forgotten, too.
    let file = rusqlite::Connection::open(place.file()).unwrap();
    let callers: i64 = file
        .query_row("SELECT count(*) FROM callers", [], |row| row.get(0))
        .unwrap();
    assert_eq!(callers, 0);
    assert_eq!(place.page("caller:guest").calls, []);
    place.run(call("again", "echo").caller("guest")).await;
    assert_eq!(place.record("again").call.caller.as_deref(), Some("guest"));
}
