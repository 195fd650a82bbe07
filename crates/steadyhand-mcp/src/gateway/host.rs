//! What stands behind a gateway: the tools, who runs them, and the MCP servers.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use steadyhand::{Call, Outcome, Tool, ToolExecutor, ToolManager};
use tokio::sync::watch;

use super::operation::ServedOperation;
use crate::client::catalogue::lists::{Entries, Listed};
use crate::client::server::Server;

/// What stands behind a gateway.
pub trait Host: Send + Sync + 'static {
    /// All tools.
    fn tools(&self) -> &ToolManager;

    /// Runs a call for a caller. The error says, in words, why there is no room for it; nothing was run then.
    fn execute<'a>(
        &'a self,
        call: Call,
        caller: &'a Arc<str>,
    ) -> BoxFuture<'a, Result<Outcome, String>>;

    /// The MCP servers there are now, in the order they are configured in.
    fn servers(&self) -> Vec<Server>;

    /// Told when servers come, go, or change their state; none if they never do.
    fn servers_changed(&self) -> Option<watch::Receiver<u64>>;

    /// What the first `tools/list` of a client waits for: servers whose tools nobody knows yet. It has an end; none if
    /// all tools are there.
    fn first_tools(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// Whether somebody records spans of requests.
    fn records_spans(&self) -> bool {
        false
    }

    /// A request of a client is over. Told only while spans are recorded; must not wait.
    fn operation_ended(&self, _ended: ServedOperation) {}

    /// A tool as `tools/list` is to show it, where that is not what its server says now.
    fn definition(&self, _tool: &Tool) -> Option<Box<RawValue>> {
        None
    }

    /// What clients see of a list of a server.
    fn listed(&self, server: &Server, kind: Listed) -> Entries {
        server.listed(kind)
    }

    /// What clients are told about how to use a server.
    fn instructions(&self, server: &Server) -> Option<String> {
        server.greeting()?.instructions
    }
}

/// Tools alone, without servers.
impl Host for ToolExecutor {
    fn tools(&self) -> &ToolManager {
        ToolExecutor::tools(self)
    }

    fn execute<'a>(
        &'a self,
        call: Call,
        _: &'a Arc<str>,
    ) -> BoxFuture<'a, Result<Outcome, String>> {
        ToolExecutor::execute(self, call).map(Ok).boxed()
    }

    fn servers(&self) -> Vec<Server> {
        Vec::new()
    }

    fn servers_changed(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}
