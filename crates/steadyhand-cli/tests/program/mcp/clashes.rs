//! SPEC D3: two MCP servers that bring a tool of the same name. The one later in the file is used, and it is said.

use serde_json::{Value, json};

use super::{named, until};
use crate::serve::Served;

/// Both servers are up, and their tools taken over.
async fn both_up(config: &str) -> Served {
    let served = Served::with_config(config).await;
    until("both are up", async || {
        let listed = served.get("/v1/servers").await.json();
        let servers = listed["servers"].as_array().cloned().unwrap_or_default();
        servers.iter().all(|server| server["phase"] == "running")
            && names(&served).await.contains(&"alpha_grow".to_owned())
            && names(&served).await.contains(&"zulu_grow".to_owned())
    })
    .await;
    served
}

async fn names(served: &Served) -> Vec<String> {
    let listed = served.get("/v1/tools").await.json();
    let tools = listed["tools"].as_array().cloned().unwrap_or_default();
    let name = |tool: &Value| tool["name"].as_str().map(str::to_owned);
    tools.iter().filter_map(name).collect()
}

/// The server that answers.
async fn answers(served: &Served, tool: &str, args: Value) -> String {
    let call = json!({"name": tool, "args": args});
    let outcome = served.post("/v1/calls", call).await.json();
    outcome["output"]
        .as_str()
        .unwrap_or_else(|| panic!("{outcome}"))
        .to_owned()
}

async fn offered(served: &Served, server: &str) -> Value {
    let listed = served.get("/v1/servers").await.json();
    let servers = listed["servers"].as_array().cloned().unwrap_or_default();
    let mut servers = servers.into_iter();
    let found = servers.find(|it| it["name"] == server);
    found.expect("it is configured")["tools"].clone()
}

async fn problems(served: &Served) -> String {
    served.get("/v1/overview").await.json()["problems"].to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn d03_the_server_later_in_the_file_replaces_the_earlier_and_both_are_named() {
    // Whichever is up first.
    for (first, second) in [("0", "0.7"), ("0.7", "0")] {
        let config = named("zulu", first, "search only_zulu") + &named("alpha", second, "search");
        let served = both_up(&config).await;
        assert_eq!(answers(&served, "search", json!({})).await, "alpha");
        assert_eq!(answers(&served, "only_zulu", json!({})).await, "zulu");
        let all = names(&served).await;
        assert_eq!(all.iter().filter(|name| *name == "search").count(), 1);
        assert_eq!(offered(&served, "zulu").await, 3, "what is offered counts");
        assert_eq!(offered(&served, "alpha").await, 3);
        let problems = problems(&served).await;
        assert!(
            problems.contains(
                "MCP servers zulu and alpha both bring a tool named search; the one of alpha is used"
            ),
            "{problems}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d03_a_tool_that_a_server_adds_after_its_start_replaces_no_other_servers_tool() {
    let config = named("zulu", "0", "search") + &named("alpha", "0", "other");
    let served = both_up(&config).await;
    assert_eq!(answers(&served, "search", json!({})).await, "zulu");
    // The one later in the file adds it: at its start it would have replaced the other's.
    let grow = json!({"tool": "search"});
    assert_eq!(answers(&served, "alpha_grow", grow.clone()).await, "alpha");
    until("it is told", async || {
        problems(&served).await.contains("the one of zulu is used")
    })
    .await;
    assert_eq!(answers(&served, "search", json!({})).await, "zulu");
    // Both add one after their start: who had it first keeps it.
    let late = json!({"tool": "late"});
    assert_eq!(answers(&served, "zulu_grow", late.clone()).await, "zulu");
    until("it is there", async || {
        names(&served).await.contains(&"late".to_owned())
    })
    .await;
    assert_eq!(answers(&served, "alpha_grow", late).await, "alpha");
    until("it is told", async || {
        let problems = problems(&served).await;
        problems.contains("both bring a tool named late; the one of zulu is used")
    })
    .await;
    assert_eq!(answers(&served, "late", json!({})).await, "zulu");
}

#[tokio::test(flavor = "multi_thread")]
async fn d03_what_the_file_defines_itself_is_not_replaced_by_a_server() {
    let own = "[tools.search]\nkind = \"mock\"\nmock_response = \"own\"\n";
    let config = named("zulu", "0", "search") + &named("alpha", "0", "other") + own;
    let served = both_up(&config).await;
    assert_eq!(answers(&served, "search", json!({})).await, "own");
    let problems = problems(&served).await;
    assert!(
        problems.contains("MCP server zulu brings a tool named search, as [tools.search] does"),
        "{problems}"
    );
}
