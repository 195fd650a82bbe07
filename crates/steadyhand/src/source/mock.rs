//! Tools that answer the same whatever they are asked (SPEC F09): for tests and demonstrations.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::handler::{Handler, Invocation};
use crate::output::Output;
use crate::redact;
use crate::tool::Tool;
use crate::tool_error::ToolError;

/// A tool that answers with `response`. Its arguments are checked and logged, not used.
pub fn tool(
    name: impl Into<String>,
    description: impl Into<String>,
    schema: Value,
    response: Value,
) -> Tool {
    Tool::new(name, description, schema, Arc::new(Mock(response))).of_kind("mock")
}

struct Mock(Value);

impl Handler for Mock {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        tracing::debug!(
            tool = invocation.tool_name,
            args = %redact::value(invocation.args),
            "mock called"
        );
        Box::pin(ready(Ok(Output::json(self.0.clone()))))
    }
}
