//! A model: what answers a conversation.

use std::fmt;

use futures_util::future::BoxFuture;
use steadyhand_conversation::Provider;
pub use steadyhand_conversation::client::{
    Delivery, ModelRequest, Notice, NoticeCode, Reply, Retry, Stop, Told, ToolChoice, Usage,
};

use crate::error::ModelError;

/// What answers a conversation: a provider's model, or a script.
///
/// Models never run tools. They say which ones they want, and the [`Agent`](crate::Agent) has them run by a
/// [`ToolExecutor`](steadyhand::ToolExecutor).
pub trait Model: fmt::Debug + Send + Sync {
    /// The name people know it by: `claude-sonnet-4-5`, `qwen3:8b`, `demo`.
    fn name(&self) -> &str;

    /// Whose rules its conversations follow.
    fn provider(&self) -> Provider;

    /// What people are told about it beside its name; for scripts, that they are no AI.
    fn note(&self) -> Option<&str> {
        None
    }

    /// Asks it once. What it says while it answers goes to `tell`. Dropping the future ends the exchange.
    fn answer<'a>(
        &'a self,
        request: ModelRequest<'a>,
        tell: &'a mut (dyn FnMut(Told) + Send),
    ) -> BoxFuture<'a, Result<Reply, ModelError>>;
}
