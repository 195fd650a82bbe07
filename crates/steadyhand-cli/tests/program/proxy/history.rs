//! Exchanges are told live and kept in history: newest first, by pages, over restarts.

use serde_json::{Value, json};

use super::{Provider, broken, ok, proxy, valid, workplace};
use crate::serve::{Served, until};
use crate::support::client;

#[tokio::test(flavor = "multi_thread")]
async fn r03_a_mended_conversation_is_told_live() {
    let provider = Provider::json(ok()).await;
    let served = proxy("anthropic", provider.url()).await;
    let url = format!("http://{}/v1/events?type=exchange", served.address);
    let mut stream = client().get(url).send().await.expect("a stream");
    served.post("/proxy/anthropic/v1/messages", valid()).await;
    served.post("/proxy/anthropic/v1/messages", broken()).await;
    let mut heard = String::new();
    let told = until("it is told", async || {
        let piece = stream.chunk().await.expect("no error").expect("more");
        heard.push_str(&String::from_utf8_lossy(&piece));
        let at = heard.find("event: exchange")?;
        let data = heard[at..]
            .lines()
            .find_map(|line| line.strip_prefix("data: "))?;
        serde_json::from_str::<Value>(data).ok()
    })
    .await;
    assert_eq!(told["provider"], "anthropic");
    assert_eq!(told["fixes"], 1);
    assert_eq!(told["codes"], json!(["missing_result"]));
    assert_eq!(told["status"], 200);
    assert_eq!(
        heard.matches("event: exchange").count(),
        1,
        "valid ones are no news"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn exchanges_come_by_pages_and_outlive_the_process() {
    let provider = Provider::json(ok()).await;
    let served = Served::in_place(workplace("anthropic", provider.url(), "")).await;
    for number in 0..7 {
        let mut body = broken();
        body["model"] = json!(format!("model-{number}"));
        served.post("/proxy/anthropic/v1/messages", body).await;
    }
    let models = |page: &Value| -> Vec<String> {
        let exchanges = page["exchanges"].as_array().expect("a list");
        exchanges
            .iter()
            .map(|one| one["model"].as_str().expect("a name").to_owned())
            .collect()
    };
    let first = served.get("/v1/exchanges?limit=5").await.json();
    assert_eq!(models(&first).len(), 5);
    let next = first["next"].as_str().expect("there is more");
    let second = served
        .get(&format!("/v1/exchanges?limit=5&before={next}"))
        .await
        .json();
    let mut all = [models(&first), models(&second)].concat();
    assert_eq!(second.get("next"), None);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 7);
    assert_eq!(served.get("/v1/exchanges?limit=0").await.status, 400);
    assert_eq!(served.get("/v1/exchanges?limti=1").await.status, 400);
    served.signal(rustix::process::Signal::TERM);
    let again = Served::in_place(served.stopped().await).await;
    let kept = again.get("/v1/exchanges").await.json();
    assert_eq!(models(&kept).len(), 7);
}
