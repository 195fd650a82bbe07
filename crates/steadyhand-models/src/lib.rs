//! Models that use tools: Anthropic, Ollama, OpenAI and what speaks its language, in one loop.
//!
//! A [`Model`] answers, an [`Agent`] has its calls run by a [`ToolExecutor`](steadyhand::ToolExecutor) and asks
//! again. [`wire`] translates, and nothing else does. Conversations are the engine's
//! [`Message`](steadyhand::Message)s, which LangChain reads as well.

mod agent;
mod client;
mod demo;
mod error;
mod http;
mod model;
mod scripted;
mod settings;
#[cfg(feature = "testing")]
pub mod testing;
pub mod wire;

pub use agent::Agent;
pub use agent::AgentEvent;
pub use agent::AgentSettings;
pub use agent::AtLimit;
pub use agent::End;
pub use agent::LoopGuard;
pub use agent::Tell;
pub use agent::TurnEnd;
pub use client::Client;
pub use demo::Demo;
pub use error::ModelError;
pub use error::ModelErrorKind;
pub use error::Sent;
pub use model::Delivery;
pub use model::Model;
pub use model::ModelRequest;
pub use model::Notice;
pub use model::NoticeCode;
pub use model::Reply;
pub use model::Retry;
pub use model::Stop;
pub use model::Told;
pub use model::ToolChoice;
pub use model::Usage;
pub use scripted::Scripted;
pub use settings::Dialect;
pub use settings::ModelSettings;
pub use settings::Patience;
pub use tokio_util::sync::CancellationToken;

/// The example of docs/models.md is compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/models.md")]
struct Book;
