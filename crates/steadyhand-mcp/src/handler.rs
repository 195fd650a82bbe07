//! Runs a tool of a server: its arguments out, its answer back as an output or as the failure it is.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use steadyhand::{Category, Effect, Handler, Invocation, Output, ToolError};

use crate::connection::{Answer, Heard, Lost, too_large};
use crate::parameters::{Changes, ParameterNames, Renamed};
use crate::result::read_raw_result;
use crate::rpc_error::read_rpc_error;
use crate::server::Inner;

/// One tool of a server.
pub(crate) struct McpTool {
    /// As the server names it.
    name: String,
    server: Weak<Inner>,
    parameters: Arc<ParameterNames>,
    progress_extends: bool,
}

#[derive(Serialize)]
struct CallParams<'a> {
    name: &'a str,
    arguments: &'a Value,
    #[serde(rename = "_meta")]
    meta: Meta<'a>,
}

#[derive(Serialize)]
struct Meta<'a> {
    #[serde(rename = "progressToken")]
    progress_token: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
}

impl McpTool {
    pub(crate) fn new(
        name: &str,
        server: Weak<Inner>,
        parameters: Arc<ParameterNames>,
        progress_extends: bool,
    ) -> McpTool {
        McpTool {
            name: name.to_owned(),
            server,
            parameters,
            progress_extends,
        }
    }

    async fn call(&self, invocation: &Invocation<'_>) -> Result<Output, ToolError> {
        let server = self.server.upgrade().ok_or_else(gone)?;
        let connection = server.ready(invocation.until).await?;
        server.calls.fetch_add(1, Ordering::Relaxed);
        let arguments = self.arguments(invocation.args);
        let mut reply = connection.request("tools/call", |id| CallParams {
            name: &self.name,
            arguments: arguments.as_ref().unwrap_or(invocation.args),
            meta: Meta {
                progress_token: id,
                traceparent: invocation.traceparent(),
            },
        });
        let answer = loop {
            match reply.heard().await {
                Heard::Answer(answer) => break answer,
                Heard::Progress(progress) => {
                    let message = progress.message.unwrap_or_default();
                    invocation.progress(progress.progress, progress.total, message);
                    if self.progress_extends {
                        invocation.still_alive();
                    }
                }
            }
        };
        match answer {
            Answer::Result(result) => read_raw_result(result.get()),
            Answer::Error(error) => Err(read_rpc_error(
                error.code,
                &error.message,
                error.data.as_ref(),
            )),
            // It has run, and what it says will be as large the next time.
            Answer::TooLarge(bytes) => {
                let (server, what) = (&server.settings.name, too_large(bytes));
                let message = format!("MCP server '{server}' sent {what}");
                Err(ToolError::answer(message).effect(Effect::Done))
            }
            Answer::Lost(lost) => Err(lost_call(&server.settings.name, &lost)),
        }
    }

    /// The arguments under the names the server wants, where those differ from what its schema says.
    fn arguments(&self, checked: &Value) -> Option<Value> {
        if !self.parameters.changes_after_check() {
            return None;
        }
        let mut args = checked.clone();
        let renamed = self.parameters.after_check(&mut args);
        tell_renamed(&self.name, &renamed);
        Some(args)
    }
}

impl Handler for McpTool {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(self.call(invocation))
    }
}

/// Says which names were changed (SPEC V13).
pub(crate) fn tell_renamed(tool: &str, renamed: &[Renamed]) {
    if !renamed.is_empty() {
        tracing::info!(tool, "parameter names: {}", Changes(renamed));
    }
}

/// The server went away in the middle. Whether it has run is known only if it cannot have seen the call.
fn lost_call(server: &str, lost: &Lost) -> ToolError {
    let reason = &lost.reason;
    match lost.was_sent {
        true => ToolError::of(
            Category::Network,
            format!("MCP server '{server}' went away during the call: {reason}"),
        ),
        false => ToolError::of(
            Category::Network,
            format!("MCP server '{server}' went away before the call was sent: {reason}"),
        )
        .never_started(),
    }
}

fn gone() -> ToolError {
    ToolError::of(
        Category::Network,
        "the MCP server of this tool is no longer configured",
    )
    .never_started()
    .declared_final()
}
