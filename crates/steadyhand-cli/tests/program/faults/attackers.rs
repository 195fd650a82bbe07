//! MCP servers that send all they can: the program stays within its memory, and others are served.

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Fault, TOOLS, calls_go_on, rss_mb};
use crate::mcp::python;
use crate::serve::{Served, until};

fn attacker(name: &str, attack: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../steadyhand-mcp/tests/hostile/attacker.py")
        .display()
        .to_string();
    let (python, words) = (python(), ["-S", "-E", &script, attack]);
    format!("\n[mcp.{name}]\ncommand = {python:?}\nargs = {words:?}\n")
}

async fn servers(served: &Served) -> Value {
    served.get("/v1/servers").await.json()["servers"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn s01_servers_that_send_all_they_can_take_no_more_than_their_memory_and_others_are_served() {
    let fault = Fault::begin(
        "servers that send all they can",
        "lists are cut with a note, results are lost with effect done, deadlines hold; others are served",
    );
    let config = TOOLS.to_owned()
        + &attacker("pages", "pages")
        + &attacker("large", "numbers")
        + &attacker("flood", "progress");
    let served = Served::with_config(&config).await;
    let flooded = async {
        until("the servers are up", async || {
            let servers = servers(&served).await;
            let is_up = |server: &Value| server["phase"] == "running";
            servers.as_array()?.iter().all(is_up).then_some(())
        })
        .await;
        let lost = served.call("large__trouble", json!({})).await;
        assert_eq!(lost["error"]["effect"], "done", "{lost}");
        let body = json!({"name": "flood__trouble", "deadline_ms": 1000});
        let late = served.post("/v1/calls", body).await.json();
        assert_eq!(late["error"]["code"], "TIMEOUT", "{late}");
    };
    let others = calls_go_on(&served, "beside", 100);
    tokio::join!(flooded, others);
    let servers = servers(&served).await;
    let notes = servers.to_string();
    assert!(
        notes.contains("its list of tools takes more than 64.0 MiB of memory"),
        "{notes}"
    );
    let mb = rss_mb(&served);
    assert!(mb < 1_000, "{mb} MB");
    fault.got(format!("100 of 100 calls answered; {mb} MB"));
    served.signal(Signal::TERM);
    served.stopped().await;
}
