//! A peer for the tests: an MCP server on the official Rust SDK, over stdio.

use std::time::Duration;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, ProgressNotificationParam, RequestMetaObject};
use rmcp::{ErrorData, Json, Peer, RoleServer, ServiceExt, schemars, tool, tool_router};
use serde::{Deserialize, Serialize};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    PeerServer
        .serve(rmcp::transport::stdio())
        .await?
        .waiting()
        .await?;
    Ok(())
}

struct PeerServer;

#[tool_router(server_handler)]
impl PeerServer {
    #[tool(description = "Adds two numbers", annotations(read_only_hint = true))]
    fn add(&self, Parameters(Pair { a, b }): Parameters<Pair>) -> String {
        a.saturating_add(b).to_string()
    }

    #[tool(
        description = "Gives the text back",
        annotations(idempotent_hint = true)
    )]
    fn say(&self, Parameters(Said { text }): Parameters<Said>) -> String {
        text
    }

    #[tool(description = "Sum and product, as structured content")]
    fn calculate(&self, Parameters(Pair { a, b }): Parameters<Pair>) -> Json<Calculated> {
        Json(Calculated {
            sum: a.saturating_add(b),
            product: a.saturating_mul(b),
        })
    }

    #[tool(description = "Counts up to `steps`, with progress")]
    async fn count(
        &self,
        Parameters(Steps { steps }): Parameters<Steps>,
        meta: RequestMetaObject,
        client: Peer<RoleServer>,
    ) -> String {
        let token = meta.get_progress_token();
        for step in 1..=steps {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let Some(token) = token.clone() else { continue };
            let progress =
                ProgressNotificationParam::new(token, f64::from(step)).with_total(f64::from(steps));
            // A client that is gone is noticed by the transport.
            let _ = client.notify_progress(progress).await;
        }
        format!("counted to {steps}")
    }

    #[tool(description = "Fails, as a tool does")]
    fn fail(&self, Parameters(Said { text }): Parameters<Said>) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(text)])
    }

    #[tool(description = "Fails, as the protocol does")]
    fn refuse(&self, Parameters(Said { text }): Parameters<Said>) -> Result<String, ErrorData> {
        Err(ErrorData::internal_error(text, None))
    }

    #[tool(description = "Ends the server")]
    fn crash(&self) -> String {
        std::process::exit(7);
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Pair {
    a: i64,
    b: i64,
}

#[derive(Deserialize, schemars::JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Said {
    text: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Steps {
    steps: u16,
}

#[derive(Serialize, schemars::JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Calculated {
    sum: i64,
    product: i64,
}
