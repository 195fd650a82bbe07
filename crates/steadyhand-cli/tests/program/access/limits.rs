//! What a key is limited to: its tools, and how often it calls.

use serde_json::json;

use super::{TOOLS, call, key, with_key};
use crate::serve::Served;
use crate::support::Workplace;

#[tokio::test]
async fn a_key_uses_and_sees_the_tools_it_was_given_and_no_other() {
    let workplace = Workplace::with_config(TOOLS);
    let ours = key(
        &workplace,
        "ours",
        &[
            "--tool",
            "weather*",
            "--tool",
            "nothing*",
            "--deny",
            "weather_alarm",
        ],
    );
    let served = Served::in_place(workplace).await;
    assert_eq!(call(&served, &ours, "weather").await["status"], "success");
    for (tool, is_told) in [
        ("shell", true),
        ("weather_alarm", true),
        ("no_such", true),
        ("nothing", false),
    ] {
        let outcome = call(&served, &ours, tool).await;
        let error = &outcome["error"];
        match is_told {
            true => {
                assert_eq!(error["code"], "AUTHENTICATION_ERROR", "{outcome}");
                assert_eq!(error["effect"], "none");
                assert_eq!(error["retryable"], false);
            }
            false => assert_eq!(error["code"], "TOOL_NOT_FOUND", "{outcome}"),
        }
        assert_eq!(outcome["attempts"], 0);
    }
    // A name that is nearly right leads to no tool that is not for this one.
    let workplace = Workplace::with_config(TOOLS);
    let wide = key(
        &workplace,
        "wide",
        &[
            "--tool",
            "weather*",
            "--tool",
            "shel",
            "--deny",
            "weather_alarm",
        ],
    );
    let served = Served::in_place(workplace).await;
    let outcome = call(&served, &wide, "shel").await;
    assert_eq!(outcome["error"]["code"], "TOOL_NOT_FOUND");
    assert!(!outcome.to_string().contains("shell"), "{outcome}");

    for path in [
        "/v1/tools",
        "/v1/tools?format=openai",
        "/v1/tools?format=mcp",
    ] {
        let listed = with_key(&served, &wide, "GET", path, "").await;
        assert_eq!(listed.json()["count"], 1, "{}", listed.text);
        assert!(!listed.text.contains("shell"), "{}", listed.text);
    }
    for (name, status) in [
        ("weather", 200),
        ("shell", 404),
        ("weather_alarm", 404),
        ("shel", 404),
    ] {
        let reply = with_key(&served, &wide, "GET", &format!("/v1/tools/{name}"), "").await;
        assert_eq!(reply.status, status, "{name}");
        assert!(
            status == 200 || !reply.text.contains("Did you mean"),
            "{}",
            reply.text
        );
    }
}

#[tokio::test]
async fn in_a_batch_and_a_turn_each_call_that_is_not_allowed_has_its_outcome() {
    let workplace = Workplace::with_config(TOOLS);
    let ours = key(&workplace, "ours", &["--tool", "weather"]);
    let served = Served::in_place(workplace).await;
    let calls = json!({"calls": [{"name": "shell"}, {"name": "weather"}, {"name": "shell"}]});
    let reply = with_key(&served, &ours, "POST", "/v1/batches", &calls.to_string()).await;
    let outcomes = reply.json();
    let statuses: Vec<&str> = outcomes["outcomes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|outcome| outcome["status"].as_str().expect("a word"))
        .collect();
    assert_eq!(statuses, ["error", "success", "error"]);
    let message = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "t1", "name": "shell", "input": {}},
        {"type": "tool_use", "id": "t2", "name": "weather", "input": {}},
    ]});
    let reply = with_key(
        &served,
        &ours,
        "POST",
        "/v1/turns?format=anthropic",
        &message.to_string(),
    )
    .await;
    let turn = reply.json();
    assert_eq!(
        turn["outcomes"][0]["error"]["code"], "AUTHENTICATION_ERROR",
        "{turn}"
    );
    assert_eq!(turn["outcomes"][1]["status"], "success");
}

#[tokio::test]
async fn a_key_that_calls_more_often_than_it_may_is_told_when_to_come_back() {
    let workplace = Workplace::with_config(TOOLS);
    let ours = key(&workplace, "ours", &["--rate", "3/hour"]);
    let other = key(&workplace, "other", &["--rate", "3/hour"]);
    let served = Served::in_place(workplace).await;
    for _ in 0..3 {
        assert_eq!(call(&served, &ours, "weather").await["status"], "success");
    }
    let body = json!({"name": "weather"}).to_string();
    // A key that is made meanwhile gives nobody a new start.
    key(&served.workplace, "third", &[]);
    let refused = with_key(&served, &ours, "POST", "/v1/calls", &body).await;
    let (status, code, message) = refused.refusal();
    assert_eq!((status, code.as_str()), (429, "rate_limited"), "{message}");
    let wait: u64 = refused
        .header("retry-after")
        .expect("a time")
        .parse()
        .expect("seconds");
    assert!((1100..=1200).contains(&wait), "{wait}");
    // It may still look, and others call.
    assert_eq!(
        with_key(&served, &ours, "GET", "/v1/tools", "")
            .await
            .status,
        200
    );
    assert_eq!(call(&served, &other, "weather").await["status"], "success");
    // A batch is let in as a whole or not at all.
    let calls = json!({"calls": [{"name": "weather"}, {"name": "weather"}, {"name": "weather"}]});
    let refused = with_key(&served, &other, "POST", "/v1/batches", &calls.to_string()).await;
    assert_eq!(refused.status, 429);
    let calls = json!({"calls": [{"name": "weather"}, {"name": "weather"}]});
    let reply = with_key(&served, &other, "POST", "/v1/batches", &calls.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}
