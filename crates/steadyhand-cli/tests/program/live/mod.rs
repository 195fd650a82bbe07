//! Live events over a real socket: what is told, where a reader goes on, what a slow one costs.

mod reader;
mod readers;
mod resume;
mod tell;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};
use steadyhand::{CallContext, NoArgs, Tool, ToolError, ToolExecutor, ToolManager};
use steadyhand_server::live::{self, Live, LiveEvent, ServerChanged};
use tokio::sync::Semaphore;

use crate::support;

/// A server with tools and their events.
struct Place {
    executor: ToolExecutor,
    live: Live,
    address: SocketAddr,
}

impl Place {
    async fn with(tools: impl IntoIterator<Item = Tool>) -> Place {
        let manager = ToolManager::new();
        let refused = manager.add_all(tools);
        assert!(refused.is_empty(), "{refused:?}");
        let executor = ToolExecutor::new(manager.clone());
        let live = Live::new(manager);
        live.follow(&executor).expect("a thread");
        let app = Router::new()
            .route("/v1/events", get(live::sse))
            .with_state(live.clone());
        let address = support::serve(app).await;
        Place {
            executor,
            live,
            address,
        }
    }

    /// Tells of so many servers, numbered on.
    fn publish(&self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            self.live.publish(LiveEvent::ServerChanged(ServerChanged {
                server: format!("server-{number}"),
                state: "ready".to_owned(),
                at_ms: number as u64,
                detail: Some("x".repeat(200)),
            }));
        }
    }
}

/// A tool that ends when it is let go, and says how far it is before.
fn gated(name: &str, gate: &Arc<Semaphore>) -> Tool {
    let gate = Arc::clone(gate);
    let run = move |_: CallContext, _: NoArgs| {
        let gate = Arc::clone(&gate);
        async move {
            let permit = gate.acquire().await.map_err(|_| ToolError::new("closed"))?;
            permit.forget();
            Ok::<Value, ToolError>(json!({"secret": "result"}))
        }
    };
    Tool::function(name, "waits", run)
}
