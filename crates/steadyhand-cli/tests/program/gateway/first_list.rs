//! SPEC V16: a client's first list of tools waits, within bounds, for servers that start for the first time.

use serde_json::{Value, json};

use super::Modern;
use super::stdio::Client;
use crate::mcp::{hostile, named};
use crate::serve::Served;
use crate::support::Workplace;

const LOCAL: &str = "[tools.calculator]\nkind = \"builtin\"\nuse = \"math_eval\"\n";

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["tools"].as_array().expect("tools");
    tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect()
}

async fn greeted(config: &str) -> Client {
    let mut client = Client::of(Workplace::with_config(config));
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    client.ask(1, "initialize", hello).await;
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn v16_the_first_list_on_stdio_has_the_tools_of_servers_that_are_starting() {
    let mut client = greeted(&(LOCAL.to_owned() + &named("slow", "1", "search"))).await;
    let listed = client.ask(2, "tools/list", json!({})).await;
    let all = ["calculator", "search", "slow_grow", "slow_die"];
    assert_eq!(names(&listed["result"]), all);
    client.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v16_the_first_list_waits_no_longer_than_it_may_and_changes_are_told() {
    let config =
        "[server]\nfirst_list_wait = \"50ms\"\n".to_owned() + LOCAL + &named("slow", "2", "search");
    let mut client = greeted(&config).await;
    let listed = client.ask(2, "tools/list", json!({})).await;
    assert_eq!(names(&listed["result"]), ["calculator"]);
    client
        .until_method("notifications/tools/list_changed")
        .await;
    let listed = client.ask(3, "tools/list", json!({})).await;
    assert!(names(&listed["result"]).contains(&"search"), "{listed}");
    client.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v16_a_server_that_hangs_keeps_the_second_list_of_a_client_from_nothing() {
    let hanging = hostile("hanging", "silent_init").replace("10s", "10m");
    let config = "[server]\nfirst_list_wait = \"1s\"\n".to_owned() + LOCAL + &hanging;
    let mut client = greeted(&config).await;
    for id in 2..10 {
        let listed = client.ask(id, "tools/list", json!({})).await;
        assert_eq!(names(&listed["result"]), ["calculator"]);
    }
    // Another request is not held up by the list that waits.
    client.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v16_the_first_list_over_http_has_the_tools_of_servers_that_are_starting() {
    let config = LOCAL.to_owned() + &named("slow", "1", "search");
    let served = Served::with_config(&config).await;
    let listed = Modern::new("tools/list", json!({})).result(&served).await;
    let all = ["calculator", "search", "slow_grow", "slow_die"];
    assert_eq!(names(&listed), all);
}
