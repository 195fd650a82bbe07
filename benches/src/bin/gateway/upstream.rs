//! The trivial server behind every gateway: `echo`, `sleep` and as many more tools as wanted; both eras.

use std::collections::HashSet;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};

#[derive(Clone)]
struct Shared {
    tools: usize,
    sessions: Arc<Mutex<HashSet<String>>>,
}

pub fn over_http(address: &str, tools: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await.expect("the address is free");
        let shared = Shared {
            tools,
            sessions: Arc::default(),
        };
        let refuse = || async { StatusCode::METHOD_NOT_ALLOWED };
        let delete = || async { StatusCode::OK };
        let router = axum::Router::new()
            .route("/mcp", post(answer).get(refuse).delete(delete))
            .with_state(shared);
        axum::serve(listener, router).await.expect("it serves");
    });
}

async fn answer(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let is_modern = message.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion").is_some();
    let session = headers.get("mcp-session-id").and_then(|id| id.to_str().ok());
    let is_known = session.is_none_or(|id| shared.sessions.lock().expect("no panic").contains(id));
    if !is_known && !is_modern {
        return StatusCode::NOT_FOUND.into_response();
    }
    if message.get("id").is_none() {
        return StatusCode::ACCEPTED.into_response();
    }
    if message["method"] == "tools/call" && message["params"]["name"] == "sleep" {
        let ms = message["params"]["arguments"]["ms"].as_u64().unwrap_or(0);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    let text = respond(&message, shared.tools).to_string();
    let mut response = ([(header::CONTENT_TYPE, "application/json")], text).into_response();
    if message["method"] == "initialize" {
        let id = format!("{:032x}", unique());
        shared.sessions.lock().expect("no panic").insert(id.clone());
        response.headers_mut().insert("mcp-session-id", id.parse().expect("hex"));
    }
    response
}

pub fn on_stdio(tools: usize) {
    let (input, output) = (std::io::stdin().lock(), Arc::new(Mutex::new(std::io::stdout())));
    for line in input.lines() {
        let Ok(line) = line else { return };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        if message.get("id").is_none() {
            continue;
        }
        let say = move |output: &Mutex<std::io::Stdout>, message: &Value| {
            let mut text = respond(message, tools).to_string();
            text.push('\n');
            let mut output = output.lock().expect("no panic");
            let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
        };
        if message["params"]["name"] == "sleep" {
            let output = Arc::clone(&output);
            std::thread::spawn(move || {
                let ms = message["params"]["arguments"]["ms"].as_u64().unwrap_or(0);
                std::thread::sleep(Duration::from_millis(ms));
                say(&output, &message);
            });
            continue;
        }
        say(&output, &message);
    }
}

fn respond(message: &Value, tools: usize) -> Value {
    let params = &message["params"];
    let mut result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "trivial", "version": "1"},
        }),
        "server/discover" => json!({
            "supportedVersions": ["2026-07-28", "2025-11-25"], "capabilities": {"tools": {}}, "ttlMs": 60000, "cacheScope": "public",
        }),
        "tools/list" => json!({"tools": list(tools), "ttlMs": 60000, "cacheScope": "public"}),
        "tools/call" => {
            let text = params["arguments"]["message"].as_str().unwrap_or_default();
            json!({"content": [{"type": "text", "text": text}]})
        }
        "ping" => json!({}),
        method => {
            let error = json!({"code": -32601, "message": format!("no method {method}")});
            return json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
        }
    };
    result["resultType"] = json!("complete");
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
}

fn list(count: usize) -> Vec<Value> {
    let tool = |name: String, property: &str, kind: &str| {
        json!({
            "name": name,
            "description": "A tool of a server that does next to nothing, described as tools are described",
            "annotations": {"readOnlyHint": property == "message"},
            "inputSchema": {"type": "object", "required": [property], "properties": {
                property: {"type": kind, "description": "What it is to work with"}}},
        })
    };
    let mut tools = vec![
        tool("echo".to_owned(), "message", "string"),
        tool("sleep".to_owned(), "ms", "integer"),
    ];
    tools.extend((tools.len()..count).map(|number| tool(format!("tool_{number}"), "message", "string")));
    tools
}

fn unique() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    u128::from(RandomState::new().hash_one(std::time::Instant::now())) << 64
        | u128::from(RandomState::new().hash_one(std::process::id()))
}
