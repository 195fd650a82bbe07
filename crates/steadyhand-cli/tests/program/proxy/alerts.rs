//! What is mended on the way, and answers whose calls are broken, are events for alerts.

use serde_json::{Value, json};

use super::{Provider, broken, ok, proxy_with, valid};
use crate::serve::{Served, until};

async fn raised(served: &Served, watched: &str) -> Value {
    until(&format!("{watched} is raised"), async || {
        let listed = served.get("/v1/alerts").await.json();
        let alerts = listed["alerts"].as_array()?.clone();
        alerts.into_iter().find(|one| one["watched"] == watched)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn r12_mended_conversations_and_broken_answers_raise_alerts() {
    let mut answer = ok();
    answer["content"] = json!([{"type": "tool_use", "id": "t1", "name": "", "input": {}}]);
    let provider = Provider::json(answer).await;
    let rule = "[[alerts]]\nwhen = \"mended_conversations > 1 for 5m\"\ntools = [\"anthropic\"]";
    let served = proxy_with("anthropic", provider.url(), rule).await;
    let path = "/proxy/anthropic/v1/messages";
    served.post(path, valid()).await;
    // SPEC R12: an answer that is not valid is raised without a rule of one's own.
    let alert = raised(&served, "invalid_responses").await;
    assert_eq!(alert["subject"], "anthropic", "{alert}");
    served.post(path, broken()).await;
    served.post(path, broken()).await;
    let alert = raised(&served, "mended_conversations").await;
    assert_eq!(alert["subject"], "anthropic", "{alert}");
    let message = "anthropic: 2 conversations in the last 5m had to be mended";
    assert!(
        alert["message"]
            .as_str()
            .is_some_and(|told| told.starts_with(message)),
        "{alert}"
    );
}
