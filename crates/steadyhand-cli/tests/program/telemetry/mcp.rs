//! OpenTelemetry's conventions for MCP: the spans and metrics of requests to servers, of requests to us, and of sessions.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::collector::Collector;
use crate::serve::Served;
use crate::support::{PATIENCE, Workplace};

const CLIENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// What the conventions say.
const BOUNDS: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

/// A server on stdio that echoes, says no, and refuses; behind the gateway, which exports.
async fn served(collector: &Collector, more: &str) -> Served {
    let server = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/program/telemetry/mcp_server.py"
    );
    let served = Served::in_place(Workplace::with_config(&format!(
        "[telemetry]\notlp = \"{}\"\n[mcp.far]\ncommand = \"python3\"\nargs = [\"{server}\"]\n{more}",
        collector.url()
    )))
    .await;
    // Exporting begins a moment after serving does.
    let until = Instant::now() + PATIENCE;
    while collector.requests().is_empty() {
        assert!(
            Instant::now() < until,
            "nothing is exported: {}",
            served.stderr()
        );
        served.call("far__echo", json!({})).await;
    }
    served
}

/// A request of the newer protocol to `/mcp`.
async fn ask(served: &Served, id: Value, method: &str, name: Option<&str>, more: Value) -> Value {
    let mut params = json!({
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "traceparent": CLIENT,
        },
    });
    for (key, value) in more.as_object().expect("members") {
        params[key] = value.clone();
    }
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    headers.extend(name.map(|name| ("mcp-name", name)));
    let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let reply = served
        .send("POST", "/mcp", &headers, &body.to_string())
        .await;
    serde_json::from_str(&reply.text).unwrap_or_else(|_| panic!("{}", reply.text))
}

async fn call(served: &Served, id: Value, tool: &str) -> Value {
    let params = json!({"name": tool, "arguments": {}});
    ask(served, id, "tools/call", Some(tool), params).await
}

/// Ends the server; everything it has exported by then.
async fn ended(served: Served, collector: &Collector) -> (Vec<Value>, BTreeMap<String, Value>) {
    served.signal(rustix::process::Signal::TERM);
    let (code, stderr) = served.ended().await;
    assert!(code.is_some(), "{stderr}");
    let scopes = collector.read("metrics").await;
    let metrics = scopes.last().expect("metrics")["metrics"].as_array();
    let metrics = metrics.expect("a list").iter().map(|metric| {
        let name = metric["name"].as_str().expect("a name").to_owned();
        (name, metric.clone())
    });
    (collector.spans().await, metrics.collect())
}

fn of_trace<'a>(spans: &'a [Value], kind: &str, name: &str) -> Vec<&'a Value> {
    let of_it = |span: &&Value| {
        span["trace"] == "4bf92f3577b34da6a3ce929d0e0e4736"
            && span["kind"] == kind
            && span["name"] == name
    };
    spans.iter().filter(of_it).collect()
}

/// The one point that has these attributes among its own.
fn point<'a>(metric: &'a Value, wanted: &[(&str, &str)]) -> &'a Value {
    let points = metric["points"].as_array().expect("points");
    let has = |point: &&Value| {
        let attributes = &point["attributes"];
        wanted
            .iter()
            .all(|(name, value)| attributes[*name] == *value)
    };
    let found: Vec<&Value> = points.iter().filter(has).collect();
    assert_eq!(found.len(), 1, "{wanted:?} in {metric:#}");
    found[0]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_over_mcp_is_a_server_span_with_a_client_span_below_it() {
    let collector = Collector::start().await;
    let served = served(&collector, "").await;
    assert_eq!(call(&served, json!("q-7"), "far__echo").await["id"], "q-7");
    call(&served, json!(8), "far__no").await;
    call(&served, json!(9), "far__refuse").await;
    let listed = ask(&served, json!(10), "tools/list", None, json!({})).await;
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    let (spans, _) = ended(served, &collector).await;

    let servers = of_trace(&spans, "SPAN_KIND_SERVER", "tools/call far__echo");
    assert_eq!(servers.len(), 1, "{spans:#?}");
    let server = servers[0];
    assert_eq!(server["parent"], "00f067aa0ba902b7");
    for (name, value) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "far__echo"),
        ("mcp.protocol.version", "2026-07-28"),
        ("jsonrpc.request.id", "q-7"),
        ("network.transport", "tcp"),
        ("network.protocol.name", "http"),
    ] {
        assert_eq!(server["attributes"][name], value, "{name}: {server:#}");
    }
    assert_eq!(server["attributes"].get("error.type"), None);
    assert_eq!(server["status"], "STATUS_CODE_UNSET");
    let tools = of_trace(&spans, "SPAN_KIND_INTERNAL", "execute_tool far__echo");
    assert_eq!(tools[0]["parent"], server["id"]);
    assert_eq!(tools[0]["attributes"].get("mcp.method.name"), None);
    let client = of_trace(&spans, "SPAN_KIND_CLIENT", "tools/call echo")[0];
    assert_eq!(client["parent"], tools[0]["id"]);
    for (name, value) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "echo"),
        ("mcp.protocol.version", "2025-11-25"),
        ("network.transport", "pipe"),
        // Ours, beside them.
        ("steadyhand.tool.name", "far__echo"),
        ("steadyhand.tool.source", "far"),
    ] {
        assert_eq!(client["attributes"][name], value, "{name}: {client:#}");
    }
    let id = client["attributes"]["jsonrpc.request.id"].as_str();
    assert!(id.is_some_and(|id| id.parse::<u64>().is_ok()), "{client:#}");

    // A tool's own no, and an error of the protocol, on both sides.
    let no = of_trace(&spans, "SPAN_KIND_CLIENT", "tools/call no")[0];
    assert_eq!(no["attributes"]["error.type"], "tool_error");
    assert_eq!(no["status"], "STATUS_CODE_ERROR");
    let no = of_trace(&spans, "SPAN_KIND_SERVER", "tools/call far__no")[0];
    assert_eq!(no["attributes"]["error.type"], "tool_error");
    assert_eq!(no["status"], "STATUS_CODE_ERROR");
    let refused = of_trace(&spans, "SPAN_KIND_CLIENT", "tools/call refuse")[0];
    assert_eq!(refused["attributes"]["error.type"], "-32050");
    assert_eq!(refused["attributes"]["rpc.response.status_code"], "-32050");
    let listed = of_trace(&spans, "SPAN_KIND_SERVER", "tools/list");
    assert_eq!(listed.len(), 1, "{spans:#?}");
    assert_eq!(listed[0]["attributes"].get("gen_ai.operation.name"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_and_sessions_are_measured_as_the_conventions_say() {
    let collector = Collector::start().await;
    let served = served(&collector, "").await;
    call(&served, json!(1), "far__no").await;
    call(&served, json!(2), "there_is_no_such_tool").await;
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    });
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let greeted = served
        .send("POST", "/mcp", &headers, &hello.to_string())
        .await;
    assert_eq!(greeted.status, 200, "{}", greeted.text);
    let page = served.get("/metrics").await.text;
    assert!(
        page.contains("steadyhand_mcp_client_operation_duration_seconds_bucket{")
            && page.contains("mcp_method_name=\"tools/call\"")
            && page.contains("le=\"0.01\""),
        "{page}"
    );
    let (_, metrics) = ended(served, &collector).await;

    for name in [
        "mcp.client.operation.duration",
        "mcp.server.operation.duration",
        "mcp.client.session.duration",
        "mcp.server.session.duration",
    ] {
        let metric = metrics.get(name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(metric["unit"], "s", "{name}");
        assert_eq!(metric["kind"], "histogram", "{name}");
        for point in metric["points"].as_array().expect("points") {
            assert_eq!(point["bounds"], json!(BOUNDS), "{name}");
        }
    }
    let client = &metrics["mcp.client.operation.duration"];
    let no = [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "no"),
        ("gen_ai.operation.name", "execute_tool"),
        ("error.type", "tool_error"),
        ("network.transport", "pipe"),
        ("mcp.protocol.version", "2025-11-25"),
        ("steadyhand.tool.source", "far"),
    ];
    assert_eq!(point(client, &no)["count"], 1);
    point(client, &[("mcp.method.name", "tools/list")]);
    let server = &metrics["mcp.server.operation.duration"];
    let no = [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "far__no"),
        ("error.type", "tool_error"),
        ("network.transport", "tcp"),
        ("mcp.protocol.version", "2026-07-28"),
    ];
    assert_eq!(point(server, &no)["count"], 1);
    point(server, &[("mcp.method.name", "initialize")]);
    // Names that nobody has are no attributes.
    let all = server.to_string();
    assert!(!all.contains("there_is_no_such_tool"), "{all}");
    assert!(!all.contains("jsonrpc.request.id"), "{all}");
    let session = &metrics["mcp.server.session.duration"];
    let of_ours = [
        ("mcp.protocol.version", "2025-06-18"),
        ("network.transport", "tcp"),
    ];
    assert_eq!(point(session, &of_ours)["count"], 1);
    let session = &metrics["mcp.client.session.duration"];
    assert_eq!(point(session, &[("network.transport", "pipe")])["count"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_over_http_and_an_http_tool_say_where_they_go() {
    let collector = Collector::start().await;
    // One that speaks the older protocol over HTTP, with a session, is another of ours.
    let far = Served::in_place(Workplace::with_config(
        "[tools.echo]\nkind = \"builtin\"\nuse = \"echo\"\n",
    ))
    .await;
    let more = format!(
        "[mcp.web]\nurl = \"http://{0}/mcp\"\nprotocol = \"legacy\"\n[tools.page]\nkind = \"http\"\nurl = \"http://{0}/nowhere/{{secret}}?key={{secret}}\"\ndescription = \"A page\"\n",
        far.address
    );
    let served = served(&collector, &more).await;
    let outcome = served.call("web__echo", json!({"message": "hi"})).await;
    assert_eq!(outcome["status"], "success", "{outcome}");
    let outcome = served.call("page", json!({"secret": "hush-hush"})).await;
    assert_eq!(outcome["status"], "error", "{outcome}");
    let port = far.address.port();
    let (spans, _) = ended(served, &collector).await;
    let find = |name: &str| {
        let mut found = spans.iter().filter(|span| span["name"] == name);
        found
            .next_back()
            .unwrap_or_else(|| panic!("{name}: {spans:#?}"))
    };
    let is_web = |span: &&Value| {
        span["name"] == "tools/call echo" && span["attributes"]["steadyhand.tool.source"] == "web"
    };
    let web = spans.iter().find(is_web).expect("a span");
    let web = &web["attributes"];
    assert_eq!(web["server.address"], "127.0.0.1", "{web:#}");
    assert_eq!(web["server.port"], port, "{web:#}");
    assert_eq!(web["network.transport"], "tcp", "{web:#}");
    assert_eq!(web["mcp.protocol.version"], "2025-11-25", "{web:#}");
    assert!(web["mcp.session.id"].is_string(), "{web:#}");

    let page = find("attempt page");
    assert_eq!(page["kind"], "SPAN_KIND_CLIENT");
    let attributes = &page["attributes"];
    for (name, value) in [
        ("http.request.method", json!("GET")),
        ("http.response.status_code", json!(404)),
        ("error.type", json!("404")),
        ("url.scheme", json!("http")),
        ("server.address", json!("127.0.0.1")),
        ("server.port", json!(port)),
        ("network.protocol.name", json!("http")),
    ] {
        assert_eq!(attributes[name], value, "{name}: {attributes:#}");
    }
    let all = format!("{spans:?}");
    assert!(!all.contains("hush-hush"), "arguments stay here");
}
