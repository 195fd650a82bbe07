//! What stands behind our MCP server: the tools and the servers of a runtime.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use steadyhand::{Call, Outcome, Permission, Tool, ToolManager};
use steadyhand_mcp::serve::{Host, ServedOperation};
use steadyhand_mcp::{Entries, Listed, Server};
use tokio::sync::watch;

use crate::telemetry::otlp::ServerSpans;
use steadyhand_runtime::access::budget_permit;
use steadyhand_runtime::admission::Admission;
use steadyhand_runtime::runtime::Runtime;

/// A runtime, for MCP clients.
pub struct Behind {
    runtime: Runtime,
    /// Calls go on the list of a server, and within its limits.
    admission: Option<Arc<Admission>>,
    /// What the calls of the one client of a process are counted by, if by anything.
    permit: Option<Permission>,
    /// Where spans of requests go.
    spans: Option<ServerSpans>,
}

impl Behind {
    /// For the one client of a process.
    pub fn alone(runtime: Runtime) -> Behind {
        let permit = budget_permit(&runtime.generation().configuration, "this client");
        Behind {
            runtime,
            admission: None,
            permit,
            spans: None,
        }
    }

    /// For the clients of a server.
    pub fn of_server(runtime: Runtime, admission: Arc<Admission>, spans: ServerSpans) -> Behind {
        Behind {
            runtime,
            admission: Some(admission),
            permit: None,
            spans: Some(spans),
        }
    }

    async fn run(&self, mut call: Call, caller: &Arc<str>) -> Result<Outcome, String> {
        let place = match &self.admission {
            None => {
                call.permit = call.permit.or_else(|| self.permit.clone());
                None
            }
            Some(admission) => {
                let place = admission
                    .running
                    .enter(&mut call, caller, &admission.limits);
                let place = place.map_err(|refused| refused.in_words())?;
                // A client of the older protocols may come back for the answer: its call goes on.
                let held = admission.hold_arguments(&call);
                Some((place, held.map_err(|refused| refused.in_words())?))
            }
        };
        let outcome = self.runtime.executor().execute(call).await;
        drop(place);
        Ok(outcome)
    }
}

impl Host for Behind {
    fn tools(&self) -> &ToolManager {
        self.runtime.manager()
    }

    fn execute<'a>(
        &'a self,
        call: Call,
        caller: &'a Arc<str>,
    ) -> BoxFuture<'a, Result<Outcome, String>> {
        self.run(call, caller).boxed()
    }

    fn servers(&self) -> Vec<Server> {
        self.runtime.all_servers()
    }

    fn servers_changed(&self) -> Option<watch::Receiver<u64>> {
        Some(self.runtime.server_changes())
    }

    fn first_tools(&self) -> Option<BoxFuture<'static, ()>> {
        self.runtime.first_tools()
    }

    fn records_spans(&self) -> bool {
        self.spans.is_some() && self.runtime.executor().records_spans()
    }

    fn operation_ended(&self, ended: ServedOperation) {
        if let Some(spans) = &self.spans {
            spans.take(&ended);
        }
    }

    fn definition(&self, tool: &Tool) -> Option<Box<RawValue>> {
        let recorded = || self.runtime.recorded_definition(tool.name());
        self.runtime.definition(tool).or_else(recorded)
    }

    fn listed(&self, server: &Server, kind: Listed) -> Entries {
        self.runtime.listed(server, kind)
    }

    fn instructions(&self, server: &Server) -> Option<String> {
        self.runtime.instructions(server)
    }
}
