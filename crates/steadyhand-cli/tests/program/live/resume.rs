//! Readers that come back: with the id of the last event they have, an old one, one of another run.

use std::sync::Arc;

use serde_json::json;
use steadyhand::Call;
use steadyhand::testing::script;
use tokio::sync::Semaphore;

use super::reader::{Reader, Told};
use super::{Place, gated};

#[tokio::test]
async fn who_comes_back_gets_what_he_missed_once_and_in_order() {
    let place = Place::with([script("t").answers(1).tool()]).await;
    let mut first = Reader::open(place.address, "", None).await;
    first.expect("snapshot").await;
    place.publish(0..10);
    let told = first.until(|told| told.data["server"] == "server-4").await;
    let last = told.last().unwrap().id.clone().unwrap();
    drop(first);
    for _ in 0..3 {
        place
            .executor
            .execute(Call::with_id("missed", "t", json!({})))
            .await;
    }
    let settled = |told: &Told| told.kind == "call_finished" && told.data["number"] == 3;
    // By the header, and by the address as a page would have it.
    for (query, header) in [
        (String::new(), Some(last.as_str())),
        (format!("?after={last}"), None),
    ] {
        let mut again = Reader::open(place.address, &query, header).await;
        let told = again.until(settled).await;
        let servers: Vec<&str> = told
            .iter()
            .filter_map(|told| told.data["server"].as_str())
            .collect();
        assert_eq!(
            servers,
            ["server-5", "server-6", "server-7", "server-8", "server-9"]
        );
        let ends = told
            .iter()
            .filter(|told| told.kind == "call_finished")
            .count();
        assert_eq!(ends, 3);
        assert!(told.iter().all(|told| told.kind != "snapshot"));
        let numbers: Vec<u64> = told.iter().map(Told::number).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
    }
    // A start whose end is known need not be read again.
    let mut later = Reader::open(place.address, "", Some(&last)).await;
    let told = later.until(settled).await;
    assert!(
        told.iter().all(|told| told.kind != "call_started"),
        "{told:?}"
    );
}

#[tokio::test]
async fn who_comes_back_too_late_or_from_another_run_gets_one_snapshot() {
    let gate = Arc::new(Semaphore::new(0));
    let place = Place::with([gated("slow", &gate)]).await;
    let mut first = Reader::open(place.address, "", None).await;
    first.expect("snapshot").await;
    place.publish(0..1);
    let old = first.expect("server_changed").await.id.unwrap();
    drop(first);
    let running = {
        let executor = place.executor.clone();
        let call = Call::with_id("still-there", "slow", json!({}));
        tokio::spawn(async move { executor.execute(call).await })
    };
    let mut watching = Reader::open(place.address, "?type=call_started", None).await;
    let snapshot = watching.expect("snapshot").await;
    if snapshot.data["running_count"] == 0 {
        watching.expect("call_started").await;
    }
    // More than is kept.
    place.publish(1..6000);
    let run = old.split_once('-').unwrap().0;
    for (id, reason) in [
        (old.clone(), "too_old"),
        (format!("{run}-999999999"), "too_old"),
        ("000000-3".to_owned(), "other_run"),
        ("nonsense".to_owned(), "other_run"),
        ("a-b-c".to_owned(), "other_run"),
    ] {
        let mut again = Reader::open(place.address, "", Some(&id)).await;
        let snapshot = again.expect("snapshot").await;
        assert_eq!(snapshot.data["reason"], reason, "{id}");
        assert_eq!(snapshot.data["running"][0]["id"], "still-there");
        // From here on it goes on as if nothing had been.
        place.publish(6000..6001);
        let next = again.expect("server_changed").await;
        assert_eq!(next.number(), snapshot.number() + 1);
    }
    gate.add_permits(1);
    running.await.unwrap();
}
