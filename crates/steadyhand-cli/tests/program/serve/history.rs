//! Past calls over REST: listed, shown, run again, written out.

use serde_json::{Value, json};

use super::{Served, TOOLS, until};

fn ids(page: &Value) -> Vec<&str> {
    let calls = page["calls"].as_array().expect("a list");
    calls
        .iter()
        .filter_map(|call| call["id"].as_str())
        .collect()
}

async fn made(served: &Served, call: Value) -> Value {
    served.post("/v1/calls", call).await.json()
}

#[tokio::test]
async fn past_calls_are_listed_by_filter_and_page_and_shown_in_full() {
    let served = Served::start().await;
    for n in 0..5 {
        made(
            &served,
            json!({"name": "echo", "id": format!("e{n}"), "args": {"n": n}}),
        )
        .await;
    }
    made(&served, json!({"name": "ill", "id": "i1"})).await;
    let listed = until("all are written", async || {
        let listed = served.get("/v1/calls").await.json();
        (ids(&listed).len() == 6).then_some(listed)
    })
    .await;
    assert_eq!(ids(&listed), ["i1", "e4", "e3", "e2", "e1", "e0"]);
    assert_eq!(listed["calls"][0]["code"], "NETWORK_ERROR");
    assert_eq!(listed["calls"][0]["caller"], "127.0.0.1");

    let first = served.get("/v1/calls?tool=echo&limit=2").await.json();
    assert_eq!(ids(&first), ["e4", "e3"]);
    let next = first["next"].as_str().expect("more");
    let second = served
        .get(&format!("/v1/calls?tool=echo&limit=2&cursor={next}"))
        .await
        .json();
    assert_eq!(ids(&second), ["e2", "e1"]);
    let failed = served.get("/v1/calls?q=state:failed").await.json();
    assert_eq!(ids(&failed), ["i1"]);

    let one = served.get("/v1/calls/e3").await.json();
    assert_eq!(one["arguments"], json!({"n": 3}));
    assert_eq!(one["result"], json!({"echo": {"n": 3}}));
    assert_eq!(one["state"], "ok");
    assert!(
        one["stages"]
            .as_array()
            .is_some_and(|stages| !stages.is_empty()),
        "{one}"
    );

    let trends = served.get("/v1/trends?window=1h").await.json();
    assert_eq!(trends["total"]["calls"], 6);
    let exported = served.get("/v1/calls.ndjson?tool=echo").await;
    assert_eq!(
        exported.header("content-type"),
        Some("application/x-ndjson")
    );
    let lines = exported.text.lines().filter(|line| line.starts_with('{'));
    assert_eq!(lines.count(), 5, "{}", exported.text);

    for path in [
        "/v1/calls?limit=0",
        "/v1/calls?limit=many",
        "/v1/calls?cursor=nowhere",
        "/v1/calls?colour=red",
        "/v1/calls?state=asleep",
        "/v1/trends?window=1y",
    ] {
        assert_eq!(served.get(path).await.refusal().0, 400, "{path}");
    }
}

#[tokio::test]
async fn a_call_is_run_again_as_a_new_call_that_names_the_old_one() {
    let served = Served::start().await;
    made(
        &served,
        json!({"name": "weather", "id": "w1", "args": {"city": "Oslo"}}),
    )
    .await;
    let reply = served.post("/v1/calls/w1/replay", json!({})).await;
    assert_eq!(reply.header("steadyhand-outcome"), Some("success"));
    let outcome = reply.json();
    assert_eq!(outcome["output"], json!({"sky": "rain"}));
    let id = outcome["callId"].as_str().expect("an id").to_owned();
    assert_ne!(id, "w1");
    let again = served.get(&format!("/v1/calls/{id}")).await.json();
    assert_eq!(again["replay_of"], "w1");

    made(&served, json!({"name": "once", "id": "o1", "args": {}})).await;
    let (status, code, message) = served
        .post("/v1/calls/o1/replay", json!({}))
        .await
        .refusal();
    assert_eq!((status, code.as_str()), (409, "not_safe_to_repeat"));
    assert!(message.contains("once"), "{message}");
    let forced = served
        .post("/v1/calls/o1/replay?force=true&view=flat", json!({}))
        .await
        .json();
    assert_eq!(forced["result"], "done");

    let secret = json!({"name": "echo", "id": "s1", "args": {"password": "hunter2 hunter2"}});
    made(&served, secret).await;
    let (status, _, message) = served
        .post("/v1/calls/s1/replay?force=true", json!({}))
        .await
        .refusal();
    assert_eq!(status, 409);
    assert!(message.contains("not kept whole"), "{message}");
}

#[tokio::test]
async fn calls_go_on_when_the_history_cannot_be_written() {
    let config = format!("[server]\nhistory = {{ path = \"taken/calls.db\" }}\n{TOOLS}");
    let workplace = crate::support::Workplace::with_config(&config);
    // A file where the folder should be.
    workplace.write("taken", "not a folder");
    let served = Served::in_place(workplace).await;
    let outcome = served.call("echo", json!({"a": 1})).await;
    assert_eq!(outcome["status"], "success");
    let ready = until("it says so", async || {
        let ready = served.get("/health/ready").await.json();
        (ready["history"]["state"] == "degraded").then_some(ready)
    })
    .await;
    assert_eq!(ready["ready"], true);
    let (status, code, _) = served.get("/v1/calls").await.refusal();
    assert_eq!((status, code.as_str()), (503, "history_unavailable"));
    let running = served.get("/v1/calls?state=running").await;
    assert_eq!(running.status, 200);
}
