//! What operators do: folders that cannot be written, two servers in one place, files that are wrong for a moment,
//! tokens that nobody may read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;
use tokio::task::JoinSet;

use super::{Fault, TOOLS, calls_go_on, history};
use crate::serve::{Served, until};
use crate::support::Workplace;

#[tokio::test]
async fn without_a_state_folder_calls_go_on_and_what_is_missing_is_said() {
    let fault = Fault::begin(
        "state folder that cannot be written",
        "calls go on; history is degraded; calls with a key are refused, effect none; each says why",
    );
    let config = TOOLS.replace("history = { path = \"state/calls.db\" }", "");
    let workplace = Workplace::with_config(&config);
    workplace.write("taken", "a file where the folder should be");
    let served = Served::told(workplace, "127.0.0.1:0", &["--state", "taken"]).await;
    calls_go_on(&served, "c", 3).await;
    until("history says so", async || {
        (history(&served).await["state"] == "degraded").then_some(())
    })
    .await;
    let keyed = json!({"name": "once", "idempotency_key": "k"});
    let outcome = served.post("/v1/calls", keyed).await.json();
    assert_eq!(outcome["error"]["code"], "OVERLOADED", "{outcome}");
    assert_eq!(outcome["error"]["effect"], "none", "{outcome}");
    let message = outcome["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("taken"), "{message}");
    fault.got("3 of 3 calls answered; degraded; OVERLOADED, effect none, with the path");
}

#[tokio::test]
async fn two_servers_in_one_state_folder_keep_their_promises_together() {
    let fault = Fault::begin(
        "two servers, one state folder",
        "both serve and write; a key that one has run is not run by the other",
    );
    let first = Served::with_config(TOOLS).await;
    let second = Served::in_place(first.workplace.shared()).await;
    let call = json!({"name": "once", "idempotency_key": "pay", "args": {"a": 1}});
    let outcome = first.post("/v1/calls", call.clone()).await.json();
    assert_eq!(outcome["status"], "success", "{outcome}");
    let again = second.post("/v1/calls", call).await.json();
    assert_eq!(again["replayed"], true, "{again}");
    let slow = json!({"name": "slow", "idempotency_key": "long", "deadline_ms": 2000});
    let running = first.post("/v1/calls", slow.clone());
    let other = async {
        until("the tool is started", async || {
            let listed = first.get("/v1/calls?state=running").await.json();
            (listed["calls"][0]["attempts"] == 1).then_some(())
        })
        .await;
        second.post("/v1/calls", slow).await.json()
    };
    let (_, other) = tokio::join!(running, other);
    // One runs it: the other cannot know how it will end.
    assert_eq!(other["error"]["effect"], "unknown", "{other}");
    let runs = second.get("/v1/metrics/slow").await.json();
    assert_eq!(runs["totalExecutions"], 0, "{runs}");
    calls_go_on(&first, "a", 20).await;
    calls_go_on(&second, "b", 20).await;
    until("both histories are one", async || {
        let kept = super::kept(&first).await;
        let of = |prefix| kept.iter().filter(|id| id.starts_with(prefix)).count();
        (of("a-") == 20 && of("b-") == 20).then_some(())
    })
    .await;
    fault.got("one run, replayed by the other; effect unknown while it runs; 40 of 40 calls kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_wrong_for_a_moment_cost_no_call() {
    let fault = Fault::begin(
        "broken configuration under load",
        "422 with every problem; the one in force stays; no call is dropped",
    );
    let served = Arc::new(Served::with_config(TOOLS).await);
    let (stop, count) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let mut callers = JoinSet::new();
    for number in 0..4 {
        let (served, stop) = (Arc::clone(&served), Arc::clone(&stop));
        let count = Arc::clone(&count);
        callers.spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                calls_go_on(&served, &format!("c-{number}"), 1).await;
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    let (mut good, mut bad) = (0, 0);
    for round in 0..10 {
        let text = match round % 2 {
            0 => "[tools.echo]\nkind = \"bultin\"\n".to_owned(),
            _ => format!("{TOOLS}\n# {round}\n"),
        };
        served.workplace.write("steadyhand.toml", &text);
        let reply = served.post("/v1/config/reload", json!({})).await;
        match round % 2 {
            0 => {
                assert_eq!(reply.refusal().1, "config_invalid");
                bad += 1;
            }
            _ => {
                assert_eq!(reply.status, 200, "{}", reply.text);
                good += 1;
            }
        }
        let before = count.load(Ordering::SeqCst);
        until("calls go on", async || {
            (count.load(Ordering::SeqCst) > before + 4).then_some(())
        })
        .await;
    }
    stop.store(true, Ordering::SeqCst);
    while let Some(caller) = callers.join_next().await {
        caller.expect("no call is dropped");
    }
    let count = count.load(Ordering::SeqCst);
    fault.got(format!(
        "{good} taken over, {bad} refused with 422; {count} of {count} calls answered"
    ));
}

#[tokio::test]
async fn a_token_is_in_no_log_and_cannot_be_taken_away_while_others_can_reach_the_server() {
    let fault = Fault::begin(
        "token taken away, or looked for in logs",
        "a server that others reach keeps the token it had; no log or answer has it",
    );
    const TOKEN: &str = "t0ken-nobody-may-read";
    let mut workplace = Workplace::with_config(&TOOLS.replace(
        "[server]",
        "[server]\nlisten = \"0.0.0.0:0\"\ntoken = \"${env:TOKEN_OF_TEST}\"",
    ));
    workplace.set("TOKEN_OF_TEST", TOKEN);
    let served = Served::told(workplace, "0.0.0.0:0", &["-vv"]).await;
    let good = format!("Bearer {TOKEN}");
    let bad = format!("Bearer {TOKEN}x");
    let headers = [("authorization", good.as_str())];
    let call = json!({"name": "echo"}).to_string();
    let reply = served.send("POST", "/v1/calls", &headers, &call).await;
    assert_eq!(reply.status, 200);
    for path in ["/v1/config", "/v1/tools", "/openapi.json"] {
        let reply = served.send("GET", path, &headers, "").await;
        assert!(!reply.text.contains(TOKEN), "{path}");
    }
    let wrong = [("authorization", bad.as_str())];
    assert_eq!(
        served.send("GET", "/v1/tools", &wrong, "").await.status,
        401
    );

    served.workplace.write("steadyhand.toml", TOOLS);
    let reply = served.send("POST", "/v1/config/reload", &headers, "").await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    until("it says that it keeps its token", async || {
        let words = "goes on with the token it had";
        served.stderr().contains(words).then_some(())
    })
    .await;
    assert_eq!(served.get("/v1/tools").await.status, 401);
    assert_eq!(
        served.send("GET", "/v1/tools", &headers, "").await.status,
        200
    );
    let stderr = served.stderr();
    assert!(!stderr.contains(TOKEN), "{stderr}");
    fault.got("401 as before; the log says why; the token is nowhere");
}
