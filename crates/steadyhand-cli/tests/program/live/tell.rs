//! What is told, and how much of it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use steadyhand::{Call, CallContext, Category, NoArgs, RetryPolicy, Tool, ToolError};
use steadyhand_server::live::{ConfigChanged, LiveEvent, ToolsChanged};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::reader::Reader;
use super::{Place, gated};
use crate::support::PATIENCE;

#[tokio::test]
async fn a_call_is_told_when_it_starts_and_when_it_ends_without_what_it_carries() {
    let gate = Arc::new(Semaphore::new(0));
    let place = Place::with([gated("slow", &gate)]).await;
    let mut reader = Reader::open(place.address, "", None).await;
    let snapshot = reader.expect("snapshot").await;
    assert_eq!(snapshot.data["reason"], "start");
    assert_eq!(snapshot.data["running"], json!([]));
    let call = Call::with_id("c-1", "slow", json!({"password": "hunter2"})).caller("tests");
    let running = tokio::spawn({
        let executor = place.executor.clone();
        async move { executor.execute(call).await }
    });
    let started = reader.expect("call_started").await;
    assert_eq!(
        (
            &started.data["id"],
            &started.data["tool"],
            &started.data["caller"]
        ),
        (&json!("c-1"), &json!("slow"), &json!("tests"))
    );
    // Someone who comes now learns that it runs.
    let mut late = Reader::open(place.address, "", None).await;
    let snapshot = late.expect("snapshot").await;
    assert_eq!(snapshot.data["running"], json!([started.data]));
    assert_eq!(snapshot.data["running_count"], 1);

    gate.add_permits(1);
    let finished = reader.expect("call_finished").await;
    assert_eq!(finished.data["number"], started.data["number"]);
    assert_eq!(finished.data["started_ms"], started.data["started_ms"]);
    assert_eq!(finished.data["status"], "success");
    assert!(finished.data["took_ms"].is_f64());
    assert!(finished.number() > started.number());
    assert_eq!(late.expect("call_finished").await, finished);
    assert!(running.await.unwrap().is_success());
    for told in [started, finished] {
        for hidden in ["hunter2", "password", "result", "secret"] {
            assert!(!told.text.contains(hidden), "{}", told.text);
        }
    }
}

#[tokio::test]
async fn retries_breakers_fallbacks_and_the_programs_own_changes_are_told() {
    let gate = Arc::new(Semaphore::new(0));
    let wait = Arc::clone(&gate);
    let run = move |context: CallContext, _: NoArgs| {
        let wait = Arc::clone(&wait);
        async move {
            if context.attempt() == 2 {
                let _ = wait.acquire().await;
            }
            Err::<(), _>(ToolError::of(Category::Network, "secret words of the tool"))
        }
    };
    let ill = Tool::function("ill", "fails", run)
        .retry(RetryPolicy {
            attempts: 2,
            first_wait: Duration::from_millis(1),
            ..RetryPolicy::default()
        })
        .breaker(1, Duration::from_secs(60))
        .fallback_value(json!("backup"));
    let place = Place::with([ill]).await;
    let mut reader = Reader::open(place.address, "", None).await;
    reader.expect("snapshot").await;
    let running = {
        let executor = place.executor.clone();
        tokio::spawn(async move { executor.execute(Call::new("ill", json!({}))).await })
    };
    let mut told = reader.until(|told| told.kind == "attempt_failed").await;
    gate.add_permits(1);
    told.extend(reader.until(|told| told.kind == "call_finished").await);
    assert!(running.await.unwrap().fallback.is_some());
    let of = |kind: &str| told.iter().find(|told| told.kind == kind);
    let failed = of("attempt_failed").expect("it was retried");
    assert_eq!(
        (&failed.data["attempt"], &failed.data["code"]),
        (&json!(1), &json!("NETWORK_ERROR"))
    );
    let breaker = of("breaker_changed").expect("it opened");
    assert_eq!(
        (
            &breaker.data["tool"],
            &breaker.data["from"],
            &breaker.data["to"]
        ),
        (&json!("ill"), &json!("closed"), &json!("open"))
    );
    let finished = &told.last().unwrap().data;
    assert_eq!(
        (
            &finished["code"],
            &finished["attempts"],
            &finished["fallback_used"]
        ),
        (&json!("NETWORK_ERROR"), &json!(2), &json!(true))
    );
    assert!(told.iter().all(|told| !told.text.contains("secret")));

    let mut late = Reader::open(place.address, "", None).await;
    let snapshot = late.expect("snapshot").await;
    assert_eq!(
        snapshot.data["breakers"],
        json!([{"tool": "ill", "state": "open"}])
    );

    place.live.publish(LiveEvent::ConfigChanged(ConfigChanged {
        generation: 2,
        at_ms: 1,
        problem: Some("long ".repeat(1000)),
    }));
    place.live.publish(LiveEvent::ToolsChanged(ToolsChanged {
        count: 3,
        at_ms: 2,
        source: None,
    }));
    let config = reader.expect("config_changed").await;
    assert_eq!(config.data["generation"], 2);
    assert!(config.text.len() < 400, "{}", config.text);
    assert_eq!(
        reader.expect("tools_changed").await.data,
        json!({"count": 3, "at_ms": 2})
    );
}

#[tokio::test]
async fn two_calls_that_share_an_id_are_told_apart() {
    let gate = Arc::new(Semaphore::new(0));
    let place = Place::with([gated("slow", &gate)]).await;
    let mut reader = Reader::open(place.address, "", None).await;
    reader.expect("snapshot").await;
    let call = || Call::with_id("call_0", "slow", json!({}));
    let both = {
        let executor = place.executor.clone();
        tokio::spawn(async move { executor.execute_batch(vec![call(), call()]).await })
    };
    let mut started = [
        reader.expect("call_started").await.data["number"].clone(),
        reader.expect("call_started").await.data["number"].clone(),
    ];
    gate.add_permits(2);
    let mut finished = [
        reader.expect("call_finished").await.data["number"].clone(),
        reader.expect("call_finished").await.data["number"].clone(),
    ];
    started.sort_by_key(|number| number.as_u64());
    finished.sort_by_key(|number| number.as_u64());
    assert_eq!(started, finished);
    assert_ne!(started[0], started[1]);
    both.await.unwrap();
}

#[tokio::test]
async fn names_that_callers_make_up_neither_break_the_stream_nor_fill_it() {
    let place = Place::with([]).await;
    let mut reader = Reader::open(place.address, "", None).await;
    reader.expect("snapshot").await;
    let nasty = "x\n\nevent: snapshot\ndata: {}\n\n";
    let call = Call::with_id(nasty, "é".repeat(1_000_000), json!({})).caller(nasty);
    place.executor.execute(call).await;
    let told = reader.until(|told| told.kind == "call_finished").await;
    let finished = told.last().unwrap();
    assert_eq!(finished.data["id"], nasty);
    assert_eq!(finished.data["code"], "TOOL_NOT_FOUND");
    assert!(finished.text.len() < 1000, "{} bytes", finished.text.len());
}

#[tokio::test]
async fn progress_is_told_twice_a_second_at_most_and_its_last_word_is_not_lost() {
    let gate = Arc::new(Semaphore::new(0));
    let wait = Arc::clone(&gate);
    let tool = Tool::function("works", "tells", move |context: CallContext, _: NoArgs| {
        let wait = Arc::clone(&wait);
        async move {
            for done in 1..=2000 {
                context.progress(f64::from(done), Some(2000.0), "so far");
            }
            let _ = wait.acquire().await;
            Ok::<_, ToolError>(())
        }
    });
    let place = Place::with([tool]).await;
    let mut reader = Reader::open(place.address, "?type=call_progress", None).await;
    reader.expect("snapshot").await;
    let begun = Instant::now();
    let running = {
        let executor = place.executor.clone();
        tokio::spawn(async move { executor.execute(Call::new("works", json!({}))).await })
    };
    let told = reader.until(|told| told.data["done"] == 2000.0).await;
    let halves = begun.elapsed().as_millis() as usize / 500;
    assert!(
        told.len() <= 2 + halves,
        "{} events in {halves} half seconds",
        told.len()
    );
    gate.add_permits(1);
    running.await.unwrap();
}

#[tokio::test]
async fn ten_calls_a_second_cost_less_than_four_kilobytes_a_second() {
    const CALLS: usize = 50;
    let gate = Arc::new(Semaphore::new(0));
    let place = Place::with([gated("home_lights_on", &gate)]).await;
    let mut slow = Reader::open(place.address, "", None).await;
    slow.expect("snapshot").await;
    // The dearest case: every call is so long that its start and its end are told apart.
    let before = slow.bytes;
    for _ in 0..CALLS {
        let executor = place.executor.clone();
        let call = Call::new("home_lights_on", json!({})).caller("127.0.0.1");
        let running = tokio::spawn(async move { executor.execute(call).await });
        slow.expect("call_started").await;
        gate.add_permits(1);
        slow.expect("call_finished").await;
        running.await.unwrap();
    }
    let apart = (slow.bytes - before) * 10 / CALLS;
    // The usual case: a call ends before its start was told.
    let mut quick = Reader::open(place.address, "", None).await;
    quick.expect("snapshot").await;
    gate.add_permits(CALLS);
    let before = quick.bytes;
    for _ in 0..CALLS {
        let call = Call::new("home_lights_on", json!({})).caller("127.0.0.1");
        place.executor.execute(call).await;
    }
    let mut ends = 0;
    while ends < CALLS {
        let told = quick.next().await.expect("the stream goes on");
        ends += usize::from(told.kind == "call_finished");
    }
    let together = (quick.bytes - before) * 10 / CALLS;
    eprintln!("live events at 10 calls/s: {apart} B/s told apart, {together} B/s told at the end");
    assert!(apart < 4096 && together <= apart, "{apart}, {together}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_when_nothing_happens_but_a_sign_of_life() {
    use axum::http::HeaderMap;
    use http_body_util::BodyExt;
    use steadyhand::ToolManager;
    use steadyhand_server::live::{Asked, Live, open};

    let live = Live::new(ToolManager::new());
    let response = open(&live, &Asked::default(), &HeaderMap::new()).unwrap();
    let mut body = response.into_body();
    let begun = Instant::now();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(
        first.starts_with(b"event: snapshot") || first.starts_with(b"id: "),
        "{first:?}"
    );
    // The clock is paused: it moves on only when everything waits.
    let second = timeout(PATIENCE, body.frame()).await.unwrap();
    assert_eq!(second.unwrap().unwrap().into_data().unwrap(), ":\n\n");
    assert_eq!(begun.elapsed().as_secs(), 15);
}
