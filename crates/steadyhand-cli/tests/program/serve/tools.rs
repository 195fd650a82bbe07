//! `/v1/tools` and `/v1/metrics`: what there is, as each consumer wants it, and how it fares.

use serde_json::{Value, json};

use super::Served;

#[tokio::test]
async fn v05_tools_are_listed_in_their_order_with_their_schemas() {
    let served = Served::start().await;
    let listed = served.get("/v1/tools").await.json();
    let names: Vec<&Value> = listed["tools"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, ["echo", "slow", "brief", "ill", "weather", "once"]);
    assert_eq!(listed["count"], 6);
    let weather = &listed["tools"][4];
    assert_eq!(weather["kind"], "mock");
    assert_eq!(weather["available"], true);
    assert_eq!(weather["schema"]["required"], json!(["city"]));
}

#[tokio::test]
async fn v19_tools_are_given_in_the_shape_of_every_consumer() {
    let served = Served::start().await;
    for (format, place, expected) in [
        ("anthropic", "/tools/4/name", "weather"),
        ("anthropic", "/tools/4/input_schema/type", "object"),
        ("openai", "/tools/4/function/name", "weather"),
        ("openai-responses", "/tools/4/name", "weather"),
        ("ollama", "/tools/4/function/name", "weather"),
        ("mistral", "/tools/4/function/name", "weather"),
        ("gemini", "/tools/0/functionDeclarations/4/name", "weather"),
        ("langchain", "/tools/4/schema/type", "object"),
        ("mcp", "/tools/4/inputSchema/type", "object"),
    ] {
        let listed = served
            .get(&format!("/v1/tools?format={format}"))
            .await
            .json();
        assert_eq!(listed["count"], 6, "{format}");
        let found = listed.pointer(place).and_then(Value::as_str);
        assert_eq!(found, Some(expected), "{format} {listed}");
    }
    let (status, _, message) = served.get("/v1/tools?format=cobol").await.refusal();
    assert_eq!(status, 400);
    assert!(message.contains("one of anthropic, "), "{message}");
}

#[tokio::test]
async fn r08_metrics_count_what_happened_and_r04_a_breaker_is_closed_by_hand() {
    let served = Served::start().await;
    for _ in 0..2 {
        let outcome = served.call("ill", json!({})).await;
        assert_eq!(outcome["error"]["code"], "NETWORK_ERROR");
    }
    let refused = served.call("ill", json!({})).await;
    assert_eq!(refused["error"]["code"], "CIRCUIT_OPEN");
    served.call("weather", json!({"city": "Oslo"})).await;
    served.call("weather", json!({})).await;

    let all = served.get("/v1/metrics").await.json();
    assert_eq!(all["count"], 6);
    let of = |name: &str| {
        let tools = all["tools"].as_array().expect("a list");
        let found = tools.iter().find(|tool| tool["toolName"] == name);
        found.expect("a tool of this name").clone()
    };
    let ill = of("ill");
    assert_eq!(ill["totalExecutions"], 2);
    assert_eq!(ill["errorCount"], 2);
    assert_eq!(ill["failureRate"], 1.0);
    assert_eq!(ill["rejected"], 1);
    assert_eq!(ill["breaker"]["state"], "open");
    assert_eq!(ill["breaker"]["trips"], 1);
    let weather = of("weather");
    assert_eq!(weather["successCount"], 1);
    assert_eq!(weather["invalid"], 1);
    assert!(weather["avgExecutionTime"].is_number() && weather["p95"].is_number());
    assert_eq!(served.get("/v1/metrics/weather").await.json(), weather);

    let one = served.get("/v1/tools/ill").await.json();
    assert_eq!(one["breaker"]["state"], "open");
    assert_eq!(one["metrics"]["rejected"], 1);
    let origin = one["policy"]["breaker.failures"]["origin"].as_str();
    assert!(origin.is_some_and(|origin| origin.starts_with("steadyhand.toml:")));
    assert_eq!(
        one["policy"]["timeout"],
        json!({"value": "30s", "origin": "default"})
    );

    let reset = served
        .post("/v1/tools/ill/breaker/reset", json!({}))
        .await
        .json();
    assert_eq!(reset["breaker"]["state"], "closed");
    let outcome = served.call("ill", json!({})).await;
    assert_eq!(outcome["error"]["code"], "NETWORK_ERROR");
    let (status, code, _) = served
        .post("/v1/tools/il/breaker/reset", json!({}))
        .await
        .refusal();
    assert_eq!((status, code.as_str()), (404, "no_such_tool"));
}

#[tokio::test]
async fn s01_a_name_of_sixty_kilobytes_is_answered_in_a_few_words() {
    let served = Served::start().await;
    let name = "weathe".repeat(10_000);
    let reply = served.get(&format!("/v1/tools/{name}")).await;
    assert!(matches!(reply.status, 404 | 414 | 431), "{}", reply.status);
    assert!(reply.text.len() < 2_000, "{} bytes", reply.text.len());
    let name = "weathe".repeat(1_000);
    let reply = served.get(&format!("/v1/tools/{name}")).await;
    assert_eq!(reply.status, 404);
    assert!(reply.text.len() < 2_000, "{} bytes", reply.text.len());
}

#[tokio::test]
async fn r08_the_same_figures_are_there_for_prometheus() {
    let served = Served::start().await;
    served.call("weather", json!({"city": "Oslo"})).await;
    let reply = served.get("/metrics").await;
    assert_eq!(reply.status, 200);
    let kind = reply.header("content-type").unwrap_or_default();
    assert!(kind.starts_with("text/plain"), "{kind}");
    assert!(reply.text.contains("steadyhand"), "{}", reply.text);
    assert!(reply.text.contains("weather"), "{}", reply.text);
}

#[tokio::test]
async fn health_says_that_the_process_lives_and_can_take_calls() {
    let served = Served::start().await;
    let live = served.get("/health/live").await.json();
    assert_eq!(live["status"], "live");
    assert_eq!(live["name"], "steadyhand");
    let ready = served.get("/health/ready").await;
    assert_eq!(ready.status, 200);
    let ready = ready.json();
    assert_eq!(ready["ready"], true);
    assert_eq!(ready["tools"], 6);
    assert_eq!(served.get("/v1/servers").await.json()["servers"], json!([]));
}
