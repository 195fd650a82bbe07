//! The same tool through other executors, taking turns in one run: rig's ToolSet and rmcp's in-memory pair.

use std::hint::black_box;
use std::sync::Arc;

use futures_util::future::join_all;
use rig_agent::tool::{Tool, ToolContext, ToolSet};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool as McpTool,
};
use rmcp::service::{Peer, RequestContext, RoleClient, RoleServer};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde::Deserialize;
use serde_json::{Map, Value};
use steadyhand_benches::floor::Floor;
use steadyhand_benches::measure::{Case, measure};
use steadyhand_benches::{Sum, TEXT, as_text, call_with_text, executor, one_thread, sum, table};

const BATCH: usize = 100;

fn main() {
    let runtime = one_thread();
    let floor = Floor::new();
    let executor = executor();
    let rig = Arc::new(ToolSet::from_tools(vec![Adder]));
    // Both ends of the pair live on this runtime: their tasks run whenever we wait for an answer.
    let (_server, _client, peer) = runtime.block_on(mcp_pair());
    let runtime = &runtime;
    let cases = vec![
        Case::new("string floor", |times| {
            runtime.block_on(async {
                for _ in 0..times {
                    black_box(floor.call("sum", black_box(TEXT)).await);
                }
            });
        }),
        Case::new("steadyhand", |times| {
            runtime.block_on(async {
                for _ in 0..times {
                    let call = call_with_text("sum", black_box(TEXT));
                    black_box(as_text(&executor.execute(call).await));
                }
            });
        }),
        Case::new("rig ToolSet", |times| {
            runtime.block_on(async {
                for _ in 0..times {
                    black_box(call_rig(&rig).await);
                }
            });
        }),
        Case::new("rmcp in-memory pair", |times| {
            runtime.block_on(async {
                for _ in 0..times {
                    black_box(call_mcp(&peer).await);
                }
            });
        }),
        Case::new("string floor, batch of 100", |times| {
            runtime.block_on(async {
                for _ in 0..times {
                    black_box(
                        join_all((0..BATCH).map(|_| floor.call("sum", black_box(TEXT)))).await,
                    );
                }
            });
        }),
        Case::new("steadyhand, batch of 100", |times| {
            runtime.block_on(async {
                for _ in 0..times {
                    let calls = (0..BATCH).map(|_| call_with_text("sum", black_box(TEXT)));
                    let outcomes = executor.execute_batch(calls.collect()).await;
                    black_box(outcomes.iter().map(as_text).collect::<Vec<_>>());
                }
            });
        }),
        Case::new("rig ToolSet, batch of 100", |times| {
            runtime.block_on(async {
                for _ in 0..times {
                    black_box(join_all((0..BATCH).map(|_| call_rig(&rig))).await);
                }
            });
        }),
        Case::new("rmcp in-memory pair, batch of 100", |times| {
            runtime.block_on(async {
                for _ in 0..times {
                    black_box(join_all((0..BATCH).map(|_| call_mcp(&peer))).await);
                }
            });
        }),
    ];
    table::print(&measure(cases));
}

/// Rig's way to write the tool. It does not check arguments against the schema.
struct Adder;

impl Tool for Adder {
    const NAME: &'static str = "sum";
    type Args = Sum;
    type Output = Value;
    type Error = std::convert::Infallible;

    fn description(&self) -> String {
        "Adds two numbers".to_owned()
    }

    fn parameters(&self) -> Value {
        schemars::schema_for!(Sum).to_value()
    }

    async fn call(&self, _: &mut ToolContext, args: Sum) -> Result<Value, Self::Error> {
        Ok(Value::from(sum(args).await.expect("it adds")))
    }
}

async fn call_rig(tools: &ToolSet) -> String {
    let mut context = ToolContext::new();
    let result = tools.execute("sum", black_box(TEXT), &mut context).await;
    result.output().render()
}

/// An MCP server with the tool. It does not check arguments against the schema.
#[derive(Clone)]
struct McpServer;

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = schemars::schema_for!(Sum).to_value();
        let schema = schema.as_object().cloned().expect("a schema is an object");
        let tool = McpTool::new("sum", "Adds two numbers", Arc::new(schema));
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let args = Value::Object(request.arguments.unwrap_or_default());
        let args = Sum::deserialize(args)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let text = sum(args).await.expect("it adds").to_string();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

async fn mcp_pair() -> (impl Sized, impl Sized, Peer<RoleClient>) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let server = tokio::spawn(async move {
        let running = McpServer.serve(far).await.expect("the server starts");
        running.waiting().await
    });
    let client = ().serve(near).await.expect("the client connects");
    let peer = client.peer().clone();
    (server, client, peer)
}

async fn call_mcp(peer: &Peer<RoleClient>) -> String {
    let args: Map<String, Value> = serde_json::from_str(black_box(TEXT)).expect("JSON");
    let request = CallToolRequestParams::new("sum").with_arguments(args);
    let result = peer.call_tool(request).await.expect("the tool answers");
    serde_json::to_string(&result).expect("a result is JSON")
}
