//! MCP on a JSON wire of its own: servers started, watched over and called.
//!
//! A [`Server`] is started and kept running in the background; its tools go into a
//! [`ToolManager`](steadyhand::ToolManager) like any others. [`serve`] is the other side: we as a server.

mod ask;
mod catalogue;
pub mod causes;
mod coming_back;
mod connection;
mod credentials;
pub mod definition;
mod era;
mod errand;
pub mod failure;
mod greet;
mod handler;
mod hidden;
mod http;
mod input;
mod kept;
mod kept_log;
mod lists;
pub mod measures;
mod memory;
mod mux;
pub mod names;
mod notices;
pub mod oauth;
mod offer;
mod operation;
pub mod parameters;
mod questions;
mod record;
mod relay;
mod requests;
pub mod result;
mod rpc_error;
pub mod serve;
mod server;
mod session;
mod settings;
mod slot;
mod state;
mod stdio;
mod subscriptions;
mod supervisor;
mod unreadable;
mod upkeep;
pub mod wire;
mod writer;

pub use catalogue::Greeting;
pub use credentials::{Credentials, Login, Refusal};
pub use era::Protocol;
pub use failure::{StartFailure, Step, What};
pub use hidden::{hide_in_json, hide_in_value};
pub use kept_log::kept_log;
pub use lists::{Entries, Listed};
pub use notices::{NoNotice, Notice, NoticeReceiver};
pub use offer::OfferedTool;
pub use parameters::CamelCase;
pub use record::{LogLine, Stream};
pub use relay::{Counterpart, Passage, Question, Written};
pub use requests::{Elicitation, RequestPolicy};
pub use server::Server;
pub use settings::{
    Hide, HttpSettings, Pick, ServerSettings, StartPolicy, StdioSettings, Transport, When,
    shown_url,
};
pub use state::{Phase, ServerState, StepDone, Unstable};
pub use supervisor::START_FAILED;
