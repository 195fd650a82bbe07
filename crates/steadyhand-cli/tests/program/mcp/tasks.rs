//! Tools that run only as tasks: they are not offered, and whoever asks for one is told why.

use serde_json::{Value, json};

use super::Bench;
use crate::serve::Served;
use crate::support::{Workplace, parts};

const WHY: &str = "it runs only as a task (its execution.taskSupport is \"required\"), and Steadyhand does not run tasks yet";

fn config() -> String {
    let server = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/program/mcp/task_server.py"
    );
    format!("[mcp.jobs]\ncommand = \"python3\"\nargs = [\"{server}\"]\n")
}

fn names(tools: &Value) -> Vec<&str> {
    let tools = tools.as_array().expect("tools").iter();
    tools.filter_map(|tool| tool["name"].as_str()).collect()
}

#[test]
fn a_tool_that_runs_only_as_a_task_is_not_offered_by_the_commands() {
    let bench = Bench::with(&config());
    let listed = bench.json("tools list --json");
    let offered = ["jobs__plain", "jobs__may", "jobs__never"];
    assert_eq!(names(&listed["tools"]), offered);
    let left_out = json!([{"source": "jobs", "name": "jobs__must", "reason": WHY}]);
    assert_eq!(listed["left_out"], left_out);
    for tool in offered {
        let (code, stdout, stderr) = parts(&bench.run(&format!("call {tool}")));
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.ends_with(" ran\n"), "{stdout}");
    }
    let (code, stdout, stderr) = parts(&bench.run("call jobs__must --json"));
    assert_ne!(code, 0, "{stdout}");
    let outcome: Value = serde_json::from_str(&stdout).expect("an outcome");
    let message = outcome["error"]["message"].as_str().expect("a message");
    assert!(message.contains(WHY), "{message} {stderr}");
    assert_eq!(outcome["error"]["effect"], "none", "{outcome}");
    assert_eq!(outcome["error"]["retryable"], false, "{outcome}");
    let (_, _, stderr) = parts(&bench.run("mcp test jobs"));
    assert!(stderr.contains(&format!("must: {WHY}")), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_runs_only_as_a_task_is_not_offered_over_the_network() {
    let served = Served::in_place(Workplace::with_config(&config())).await;
    // The call waits for the server to be up.
    let outcome = served.call("jobs__must", json!({})).await;
    let message = outcome["error"]["message"].as_str().expect("a message");
    assert!(message.contains(WHY), "{outcome}");
    assert_eq!(outcome["error"]["effect"], "none", "{outcome}");
    let listed: Value = serde_json::from_str(&served.get("/v1/tools").await.text).expect("JSON");
    assert_eq!(
        names(&listed["tools"]),
        ["jobs__plain", "jobs__may", "jobs__never"]
    );
    assert_eq!(listed["left_out"][0]["reason"], WHY);
    let ask = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let post = async |method: &'static str, name: Option<&'static str>, params: Value| {
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
        ];
        headers.extend(name.map(|name| ("mcp-name", name)));
        let body = ask(method, params).to_string();
        let reply = served.send("POST", "/mcp", &headers, &body).await;
        serde_json::from_str::<Value>(&reply.text).expect("JSON")
    };
    let listed = post("tools/list", None, json!({"_meta": meta})).await;
    assert_eq!(
        names(&listed["result"]["tools"]),
        ["jobs__plain", "jobs__may", "jobs__never"]
    );
    let params = json!({"name": "jobs__must", "arguments": {}, "_meta": meta});
    let called = post("tools/call", Some("jobs__must"), params).await;
    assert_eq!(called["result"]["isError"], true, "{called}");
    let text = called["result"]["content"][0]["text"]
        .as_str()
        .expect("a text");
    assert!(text.contains(WHY) && text.contains("was not run"), "{text}");
}
