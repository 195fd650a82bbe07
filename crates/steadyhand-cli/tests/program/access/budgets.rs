//! How much a conversation may ask for: what goes beyond has an outcome, and is not run.

use serde_json::{Value, json};

use super::TOOLS;
use crate::serve::Served;

async fn call(served: &Served, conversation: &str, args: Value) -> Value {
    let headers = [("steadyhand-conversation", conversation)];
    let headers = if conversation.is_empty() {
        &headers[..0]
    } else {
        &headers[..]
    };
    let body = json!({"name": "weather", "args": args}).to_string();
    served
        .send("POST", "/v1/calls", headers, &body)
        .await
        .json()
}

#[tokio::test]
async fn calls_beyond_a_budget_and_the_same_call_over_and_over_are_answered_and_not_run() {
    let config = format!("{TOOLS}\n[server]\nbudget = {{ calls = 5, repeats = 2 }}\n");
    let served = Served::with_config(&config).await;
    for _ in 0..2 {
        assert_eq!(
            call(&served, "one", json!({"n": 1})).await["status"],
            "success"
        );
    }
    let same = call(&served, "one", json!({"n": 1})).await;
    assert_eq!(
        (&same["error"]["code"], &same["attempts"]),
        (&json!("OVERLOADED"), &json!(0)),
        "{same}"
    );
    let message = same["error"]["message"].as_str().expect("a message");
    assert!(
        message.contains("very same arguments 2 times in a row"),
        "{message}"
    );
    for n in 2..5 {
        assert_eq!(
            call(&served, "one", json!({"n": n})).await["status"],
            "success"
        );
    }
    let beyond = call(&served, "one", json!({"n": 9})).await;
    assert!(
        beyond["error"]["message"]
            .as_str()
            .expect("a message")
            .contains("the 5 calls it may make"),
        "{beyond}"
    );
    // Another conversation has its own, and what belongs to none is not counted.
    assert_eq!(
        call(&served, "two", json!({"n": 9})).await["status"],
        "success"
    );
    for _ in 0..8 {
        assert_eq!(
            call(&served, "", json!({"n": 1})).await["status"],
            "success"
        );
    }
}

#[tokio::test]
async fn the_time_of_a_conversation_ends_and_a_budget_may_be_a_callers() {
    let config = format!("{TOOLS}\n[server]\nbudget = {{ per = \"key\", time = \"1ms\" }}\n");
    let served = Served::with_config(&config).await;
    assert_eq!(call(&served, "", json!({})).await["status"], "success");
    let late = crate::serve::until("its time is over", async || {
        let outcome = call(&served, "", json!({})).await;
        (outcome["status"] == "error").then_some(outcome)
    })
    .await;
    assert_eq!(late["error"]["code"], "OVERLOADED", "{late}");
    assert_eq!(late["error"]["effect"], "none");
}
