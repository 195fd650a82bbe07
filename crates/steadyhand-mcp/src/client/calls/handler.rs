//! Runs a tool of a server: its arguments out, its answer back as an output or as the failure it is.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use steadyhand::{
    BudgetExceeded, Category, Effect, Handler, InexactInteger, Invocation, Output, RepeatedName,
    ToolError,
};
use tokio::task::spawn_blocking;

use crate::client::calls::parameters::{Changes, ParameterNames, Renamed};
use crate::client::calls::result::read_raw_result;
use crate::client::calls::rpc_error::read_rpc_error;
use crate::client::calls::server_request::{Params, ProgressListener, Sender, ServerRequest};
use crate::client::connection::operation::{self, error_of};
use crate::client::connection::slot::{Answer, Lost, Progress};
use crate::client::connection::{Connection, no_memory, too_large, unreadable};
use crate::client::http::headers::ParamHeaders;
use crate::client::memory::{HeldJson, room_to_read};
use crate::client::relay::Passage;
use crate::client::server::{Inner, MARGIN};
use crate::measures::Attributes;

/// A longer result is read on a thread of its own: reading it takes longer than others should wait.
const READ_HERE_BYTES_MAX: usize = 1024 * 1024;

/// One tool of a server.
pub(crate) struct McpTool {
    /// As the server names it.
    name: String,
    server: Weak<Inner>,
    parameters: Arc<ParameterNames>,
    headers: ParamHeaders,
    progress_extends: bool,
}

impl McpTool {
    pub(crate) fn new(
        name: &str,
        server: Weak<Inner>,
        parameters: Arc<ParameterNames>,
        headers: ParamHeaders,
        progress_extends: bool,
    ) -> McpTool {
        McpTool {
            name: name.to_owned(),
            server,
            parameters,
            headers,
            progress_extends,
        }
    }

    async fn call(&self, invocation: &Invocation<'_>) -> Result<Output, ToolError> {
        let server = self.server.upgrade().ok_or_else(gone)?;
        let connection = server.ready(invocation.until).await?;
        server.calls.fetch_add(1, Ordering::Relaxed);
        let passage = invocation.luggage::<Passage>();
        let renamed = self.arguments(invocation.args);
        let arguments = renamed.as_ref().unwrap_or(invocation.args);
        let written = passage.and_then(|passage| as_written(passage, arguments));
        if let (Some(passage), None) = (passage, written) {
            refuse_inexact(passage)?;
        }
        let request = ServerRequest {
            method: "tools/call",
            params: Params::Call {
                name: &self.name,
                arguments,
                written,
            },
            passage,
            traceparent: invocation.traceparent(),
            headers: (!self.headers.is_empty()).then_some(&self.headers),
            sender: Sender::Caller,
            connect_until: Some(invocation.until - MARGIN),
        };
        if let Some(passage) = passage {
            passage.forget_answer();
        }
        let listener = Told {
            invocation,
            progress_extends: self.progress_extends,
            tool: &self.name,
            connection: &connection,
        };
        let answer = request.run(&connection, &listener).await;
        invocation.describe(|| values(error_of("tools/call", &answer)));
        match answer {
            Answer::Result(result) => {
                let (read, result) = read_answer(&connection, result).await;
                if let (Some(passage), Some(result)) = (passage, result) {
                    passage.hold_result(result);
                }
                read
            }
            Answer::Error(error) => {
                let read = read_rpc_error(error.code, &error.message, error.data.as_ref());
                if let Some(passage) = passage {
                    passage.put_error(error);
                }
                Err(read)
            }
            Answer::NoMemory(exceeded) => Err(no_room(&server.settings.name, &exceeded)),
            // It has run, and what it says will be as large the next time.
            Answer::TooLarge(bytes) => {
                let (server, what) = (&server.settings.name, too_large(bytes));
                let message = format!("MCP server '{server}' sent {what}");
                Err(ToolError::answer(message).result_lost())
            }
            Answer::Unreadable(why) => {
                let message = format!(
                    "MCP server '{}' sent {}",
                    server.settings.name,
                    unreadable(&why)
                );
                let error = ToolError::answer(message);
                Err(match why {
                    // One of the two ways may say that the tool has not ended.
                    RepeatedName::At { .. } => error.effect(Effect::Unknown),
                    RepeatedName::TooDeep | RepeatedName::TooMany => error.result_lost(),
                })
            }
            Answer::Lost(lost) => Err(lost_call(&server.settings.name, &lost)),
            Answer::TransportError(error) => Err(error.to_tool_error(&server.settings.name)),
            Answer::Unanswered(why) => {
                let message = format!("the tool asks for more input before it goes on: {why}");
                Err(ToolError::answer(message).effect(Effect::Unknown))
            }
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

/// Reads a result. A large one is read where nobody waits for the thread, and only if there is memory for its values;
/// then it is given back with what was read of it.
async fn read_answer(
    connection: &Connection,
    result: HeldJson,
) -> (Result<Output, ToolError>, Option<HeldJson>) {
    let desk = connection.desk();
    let room = match room_to_read(&desk.memory, result.get()) {
        Ok(None) => return (read_raw_result(result.get()), Some(result)),
        Ok(Some(room)) => room,
        Err(exceeded) => return (Err(no_room(&desk.server, &exceeded)), None),
    };
    if result.get().len() <= READ_HERE_BYTES_MAX {
        return (read_raw_result(result.get()), Some(result));
    }
    let read = spawn_blocking(move || {
        let read = read_raw_result(result.get());
        drop(room);
        (read, Some(result))
    });
    read.await.unwrap_or_else(|_| {
        let message = "the server's result cannot be read";
        (Err(ToolError::answer(message).result_lost()), None)
    })
}

/// It has run; what it says is lost.
fn no_room(server: &str, exceeded: &BudgetExceeded) -> ToolError {
    let message = format!("MCP server '{server}' sent {}", no_memory(exceeded));
    ToolError::answer(message).result_lost()
}

/// The arguments to the letter, if nothing has been changed in them: numbers beyond what we can hold pass, too.
fn as_written<'a>(passage: &'a Passage, arguments: &Value) -> Option<&'a RawValue> {
    if passage.sends_value() {
        return None;
    }
    let raw = passage.arguments()?;
    let written: Value = serde_json::from_str(raw.get()).ok()?;
    (written == *arguments).then_some(raw)
}

/// Arguments that were changed on their way are sent as values: an integer that a value would round is refused.
fn refuse_inexact(passage: &Passage) -> Result<(), ToolError> {
    let raw = passage.arguments().map(RawValue::get).unwrap_or_default();
    match InexactInteger::first_in(raw) {
        None => Ok(()),
        Some(inexact) => {
            let message = format!("Invalid parameters: {}", inexact.message());
            Err(ToolError::of(Category::Validation, message).never_started())
        }
    }
}

/// What a call is told on its way.
struct Told<'a> {
    invocation: &'a Invocation<'a>,
    progress_extends: bool,
    /// As the server names it.
    tool: &'a str,
    connection: &'a Connection,
}

/// Attributes as an invocation is described with them.
fn values(attributes: Attributes) -> Vec<(&'static str, Value)> {
    let value = |(name, value): (&'static str, String)| match name {
        "server.port" => (name, json!(value.parse::<u16>().unwrap_or_default())),
        _ => (name, json!(value)),
    };
    attributes.into_iter().map(value).collect()
}

impl ProgressListener for Told<'_> {
    fn progress(&self, progress: Progress) {
        if let Some(passage) = self.invocation.luggage::<Passage>() {
            let client = passage.client();
            client.tell("notifications/progress", Some(&progress.raw));
        }
        let message = progress.message.unwrap_or_default();
        self.invocation
            .progress(progress.progress, progress.total, message);
        if self.progress_extends {
            self.invocation.still_alive();
        }
    }

    /// A person takes their time; only the call's own deadline ends that.
    fn thinking(&self) {
        self.invocation.still_alive();
    }

    fn sent(&self, id: u64) {
        self.invocation.describe(|| {
            let mut about = operation::about("tools/call", Some(self.tool));
            about.extend(self.connection.described());
            about.push(("jsonrpc.request.id", id.to_string()));
            let session = self.connection.session_id();
            about.extend(session.map(|id| ("mcp.session.id", id)));
            values(about)
        });
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
