//! Any request to a server that is no call of a tool, passed on as it is and answered as it is.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use crate::client::calls::server_request::{Params, ProgressListener, Sender, ServerRequest};
use crate::client::connection::slot::{Answer, Progress};
use crate::client::connection::{no_memory, too_large, unreadable};
use crate::client::hidden::{hide_in_json, hide_in_value};
use crate::client::relay::Passage;
use crate::client::server::Server;
use crate::wire::RpcError;

/// The server is away: what the SDKs call a closed connection.
pub(crate) const AWAY: i64 = -32000;
/// What the SDKs answer when time is up.
const TIMED_OUT: i64 = -32001;
pub(crate) const INTERNAL: i64 = -32603;

impl Server {
    /// Asks it anything that is no call of a tool: `prompts/get`, `resources/read`, `completion/complete`, or whatever
    /// comes later. Parameters and result are raw; of `_meta` the server gets what the passage has, and a progress
    /// token of ours.
    ///
    /// What a client of the older era asks and a server of the newer one does not know is answered here:
    /// `resources/subscribe` and `resources/unsubscribe` change what is listened to, `logging/setLevel` and `ping` are
    /// accepted. What was subscribed, and the level, are told again to a server that begins anew. There is one
    /// subscription for all clients: whoever serves several counts them.
    ///
    /// Waits for a server that is on its way, and fails at once when it is down. What it reports on the way is told
    /// to the passage's client as `notifications/progress`, **without a progress token**: the client puts in the
    /// one it knows the request by. Whatever goes wrong between us and the server is an error of JSON-RPC that says
    /// so: −32000 if it is away, −32001 when time is up, −32603 else. Errors of the server itself come as they are.
    pub async fn ask(
        &self,
        method: &str,
        params: Option<&RawValue>,
        passage: &Arc<Passage>,
        until: Instant,
    ) -> Result<Box<RawValue>, RpcError> {
        let server = &self.inner;
        let name = &server.settings.name;
        let connection = server.ready(until).await;
        let connection = connection.map_err(|error| RpcError::new(AWAY, error.to_string()))?;
        server.calls.fetch_add(1, Ordering::Relaxed);
        if connection.is_modern() {
            let greeting = self.greeting().unwrap_or_default();
            let ours = server.wishes.answer(method, params, &greeting.capabilities);
            if let Some(answer) = ours {
                if method == "resources/subscribe" && answer.is_ok() {
                    // Whoever is told that it is so hears of everything from now on.
                    server.wishes.listened_to(until).await;
                }
                return answer;
            }
        }
        let request = ServerRequest {
            method,
            params: Params::Raw(params),
            passage: Some(passage),
            traceparent: None,
            headers: None,
            sender: Sender::Caller,
            connect_until: None,
        };
        let began = Instant::now();
        let answer = timeout_at(until, request.run(&connection, &**passage)).await;
        match answer {
            Ok(Answer::Result(result)) => {
                server.wishes.note(method, params);
                let result = result.into_json();
                let hide = server.record.hide();
                let hidden = hide.and_then(|hide| hide_in_json(&result, hide));
                Ok(hidden.unwrap_or(result))
            }
            Ok(Answer::Error(mut error)) => {
                if let Some(hide) = server.record.hide() {
                    error.message = hide(error.message);
                    error.data.iter_mut().for_each(|it| hide_in_value(it, hide));
                }
                Err(error)
            }
            Ok(Answer::NoMemory(exceeded)) => Err(RpcError::new(
                INTERNAL,
                format!("MCP server '{name}' sent {}", no_memory(&exceeded)),
            )),
            Ok(Answer::Unreadable(why)) => Err(RpcError::new(
                INTERNAL,
                format!("MCP server '{name}' sent {}", unreadable(&why)),
            )),
            Ok(Answer::TooLarge(bytes)) => Err(RpcError::new(
                INTERNAL,
                format!("MCP server '{name}' sent {}", too_large(bytes)),
            )),
            Ok(Answer::Lost(lost)) => {
                let when = match lost.was_sent {
                    true => "during",
                    false => "before it got",
                };
                let reason = lost.reason;
                let text = format!("MCP server '{name}' went away {when} {method}: {reason}");
                Err(RpcError::new(AWAY, text))
            }
            Ok(Answer::TransportError(error)) => Err(error.to_rpc_error(name, method)),
            Ok(Answer::Unanswered(why)) => {
                let text =
                    format!("MCP server '{name}' asks for more before it answers {method}: {why}");
                Err(RpcError::new(INTERNAL, text))
            }
            Err(_) => {
                let seconds = began.elapsed().as_secs_f64();
                let text =
                    format!("MCP server '{name}' did not answer {method} within {seconds:.1} s");
                Err(RpcError::new(TIMED_OUT, text))
            }
        }
    }
}

impl ProgressListener for Passage {
    fn progress(&self, progress: Progress) {
        self.client()
            .tell("notifications/progress", Some(&progress.raw));
    }

    /// Whoever asks has a limit of their own, which a person's thinking does not move.
    fn thinking(&self) {}
}
