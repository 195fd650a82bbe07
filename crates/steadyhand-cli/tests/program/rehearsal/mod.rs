//! Rehearsals, for people who test agents: calls recorded and told again, chaos by a plan, and which tools are safe.

mod chaos;
mod record;
mod verify;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::serve::{Reply, Served};

/// What the shop's key is; nobody may read it anywhere.
const KEY: &str = "shop-key-0123456789-very-secret";

/// A service that fails the first time it is asked for an order, repeats the key it is shown, and counts.
struct Shop {
    address: SocketAddr,
    asked: Arc<AtomicU32>,
    serving: JoinHandle<()>,
}

impl Shop {
    async fn open() -> Shop {
        let asked = Arc::new(AtomicU32::new(0));
        let app = axum::Router::new()
            .route("/orders/{id}", get(order).post(order))
            .with_state(Arc::clone(&asked));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("loopback");
        let address = listener.local_addr().expect("it is bound");
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Shop {
            address,
            asked,
            serving,
        }
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }

    /// It listens no more. Nobody may count on being refused there: the port is free for any other test at once.
    async fn close(self) {
        self.serving.abort();
        let _ = self.serving.await;
    }

    fn config(&self) -> String {
        format!(
            r#"
[tools.order]
kind = "http"
description = "Looks up an order of the shop"
url = "http://{}/orders/{{id}}"
headers = {{ Authorization = "Bearer ${{env:SHOP_KEY}}" }}
input = {{ type = "object", required = ["id"], properties = {{ id = {{ type = "integer", minimum = 1 }}, password = {{ type = "string" }} }} }}
retry = {{ attempts = 1 }}
timeout = "20s"
"#,
            self.address
        )
    }
}

async fn order(
    State(asked): State<Arc<AtomicU32>>,
    Path(id): Path<u32>,
    headers: HeaderMap,
) -> (StatusCode, axum::Json<Value>) {
    let count = asked.fetch_add(1, Ordering::SeqCst) + 1;
    let shown = headers
        .get("authorization")
        .map(|it| it.to_str().unwrap_or_default());
    match count {
        1 => (
            StatusCode::INTERNAL_SERVER_ERROR,
            axum::Json(json!({"error": "the till is stuck"})),
        ),
        _ => (
            StatusCode::OK,
            axum::Json(json!({"id": id, "asked": count, "with": shown})),
        ),
    }
}

/// One session of an MCP client.
struct Client<'a> {
    served: &'a Served,
    session: String,
}

impl<'a> Client<'a> {
    async fn begin(served: &'a Served) -> Client<'a> {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let mut client = Client {
            served,
            session: String::new(),
        };
        let begun = client.send("initialize", params).await;
        client.session = begun
            .header("mcp-session-id")
            .expect("a session")
            .to_owned();
        client
    }

    async fn send(&self, method: &str, params: Value) -> Reply {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut headers = vec![
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
        ];
        if !self.session.is_empty() {
            headers.push(("mcp-session-id", &self.session));
        }
        self.served
            .send("POST", "/mcp", &headers, &message.to_string())
            .await
    }

    async fn call(&self, tool: &str, arguments: Value) -> String {
        let params = json!({"name": tool, "arguments": arguments});
        self.send("tools/call", params).await.text
    }
}

/// What of an outcome a caller acts on.
fn essence(outcome: &Value) -> Value {
    json!({
        "status": outcome["status"],
        "output": outcome["output"],
        "error": outcome["error"],
        "fallbackUsed": outcome["fallbackUsed"],
    })
}
