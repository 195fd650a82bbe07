//! Those who are told over HTTP: signed, tried again, and never held up by one that fails, stalls or points elsewhere.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::serve::{Served, until};
use crate::support;

const SECRET: &str = "a secret for this test";

/// What came, and how the receiver answers.
#[derive(Clone, Default)]
struct Receiver {
    came: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    count: Arc<AtomicUsize>,
}

impl Receiver {
    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    fn take(&self, headers: HeaderMap, body: Bytes) -> usize {
        self.came.lock().expect("whole").push((headers, body));
        self.count.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn messages(&self) -> Vec<Value> {
        let came = self.came.lock().expect("whole");
        came.iter()
            .map(|(_, body)| serde_json::from_slice(body).expect("JSON"))
            .collect()
    }
}

async fn well(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    receiver.take(headers, body);
    StatusCode::NO_CONTENT
}

/// Fails twice, then works.
async fn at_first_not(
    State(receiver): State<Receiver>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    match receiver.take(headers, body) {
        1 | 2 => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    }
}

async fn refuses(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    receiver.take(headers, body);
    StatusCode::GONE
}

async fn elsewhere(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> Response {
    receiver.take(headers, body);
    Redirect::temporary("/well").into_response()
}

async fn stalls(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    receiver.take(headers, body);
    tokio::time::sleep(Duration::from_secs(600)).await;
    StatusCode::OK
}

async fn receiving(route: axum::routing::MethodRouter<Receiver>) -> (Receiver, String) {
    let receiver = Receiver::default();
    let app = Router::new()
        .route("/hook", route)
        .route("/well", post(well));
    let address = support::serve(app.with_state(receiver.clone())).await;
    (receiver, format!("http://{address}/hook"))
}

fn config(hooks: &[&str]) -> String {
    let mut text = r#"
[tools.ill]
kind = "mock"
description = "Cannot be reached"
input = { type = "object" }
answers = [{ fail = "network" }]
retry = { attempts = 1 }
breaker = { failures = 1, cooldown = "1h" }
"#
    .to_owned();
    for hook in hooks {
        text.push_str(&format!(
            "[[alerts]]\nwhen = \"breaker_open\"\nnotify = {{ webhook = \"{hook}\", secret = \"{SECRET}\" }}\n"
        ));
    }
    text
}

async fn webhook(served: &Served, place: usize, is_meant: impl Fn(&Value) -> bool) -> Value {
    until("the webhook fared as meant", async || {
        let view = served.get("/v1/alerts").await.json()["webhooks"][place].clone();
        is_meant(&view).then_some(view)
    })
    .await
}

#[tokio::test]
async fn r12_an_alert_and_its_end_are_sent_signed_and_once_each() {
    let (receiver, hook) = receiving(post(well)).await;
    let served = Served::with_config(&config(&[&hook])).await;
    served.call("ill", json!({})).await;
    until("it was told", async || {
        (receiver.count() == 1).then_some(())
    })
    .await;
    served.post("/v1/tools/ill/breaker/reset", json!({})).await;
    until("its end was told", async || {
        (receiver.count() == 2).then_some(())
    })
    .await;
    let messages = receiver.messages();
    assert_eq!(messages[0]["type"], "alert.raised");
    assert_eq!(messages[0]["data"]["subject"], "ill");
    assert_eq!(messages[1]["type"], "alert.cleared");
    assert_eq!(
        messages[1]["data"]["cleared_because"],
        "its breaker is closed again"
    );
    assert!(
        messages[1]["text"]
            .as_str()
            .expect("a text")
            .contains("is over")
    );
    let came = receiver.came.lock().expect("whole").clone();
    for (headers, body) in &came {
        let text = |name: &str| headers[name].to_str().expect("a text").to_owned();
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("a key");
        mac.update(format!("{}.{}.", text("webhook-id"), text("webhook-timestamp")).as_bytes());
        mac.update(body);
        let wanted = BASE64_STANDARD.encode(mac.finalize().into_bytes());
        assert_eq!(text("webhook-signature"), format!("v1,{wanted}"));
    }
    assert_ne!(came[0].0["webhook-id"], came[1].0["webhook-id"]);
    let view = webhook(&served, 0, |view| view["sent"] == 2).await;
    assert_eq!((&view["failed"], &view["dropped"]), (&json!(0), &json!(0)));
    assert!(!served.get("/v1/alerts").await.text.contains(SECRET));
    assert!(!served.get("/v1/config").await.text.contains(SECRET));
}

#[tokio::test]
async fn r12_a_receiver_that_fails_is_tried_again_with_the_same_message() {
    let (receiver, hook) = receiving(post(at_first_not)).await;
    let served = Served::with_config(&config(&[&hook])).await;
    served.call("ill", json!({})).await;
    webhook(&served, 0, |view| view["sent"] == 1).await;
    let came = receiver.came.lock().expect("whole").clone();
    assert_eq!(came.len(), 3);
    assert!(came.iter().all(
        |(headers, body)| headers["webhook-id"] == came[0].0["webhook-id"] && *body == came[0].1
    ));
}

#[tokio::test]
async fn r12_a_redirect_is_not_followed_and_a_refusal_is_final() {
    let (away, first) = receiving(post(elsewhere)).await;
    let (no, second) = receiving(post(refuses)).await;
    let served = Served::with_config(&config(&[&first, &second])).await;
    served.call("ill", json!({})).await;
    let view = webhook(&served, 0, |view| view["failed"] == 1).await;
    let why = view["last_error"].as_str().expect("a reason");
    assert!(
        why.contains("307") && why.contains("redirects are not followed"),
        "{why}"
    );
    let view = webhook(&served, 1, |view| view["failed"] == 1).await;
    assert!(
        view["last_error"]
            .as_str()
            .expect("a reason")
            .contains("410"),
        "{view}"
    );
    assert_eq!((away.count(), no.count()), (1, 1));
}

#[tokio::test]
async fn r12_a_receiver_that_stalls_holds_up_neither_calls_nor_another_receiver() {
    let (stalled, first) = receiving(post(stalls)).await;
    let (quick, second) = receiving(post(well)).await;
    let served = Served::with_config(&config(&[&first, &second])).await;
    served.call("ill", json!({})).await;
    until("the first one has it", async || {
        (stalled.count() == 1).then_some(())
    })
    .await;
    for round in 1..=3 {
        served.post("/v1/tools/ill/breaker/reset", json!({})).await;
        served.call("ill", json!({})).await;
        until("the other is told", async || {
            (quick.count() == 1 + 2 * round).then_some(())
        })
        .await;
    }
    let view = webhook(&served, 0, |_| true).await;
    assert_eq!(view["sent"], 0);
}
