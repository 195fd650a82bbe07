//! MCP on a JSON wire of its own: servers started, watched over and called.
//!
//! A [`Server`] is started and kept running in the background; its tools go into a
//! [`ToolManager`](steadyhand::ToolManager) like any others. [`gateway`] is the other side: we as a server.

mod client;
pub mod gateway;
pub mod measures;
pub mod oauth;
pub mod wire;

pub use client::calls::parameters;
pub use client::calls::parameters::CamelCase;
pub use client::calls::result;
pub use client::catalogue::Greeting;
pub use client::catalogue::definition;
pub use client::catalogue::lists::{Entries, Listed};
pub use client::catalogue::names;
pub use client::catalogue::offer::OfferedTool;
pub use client::credentials::{Credentials, Login, Refusal};
pub use client::hidden::{hide_in_json, hide_in_value};
pub use client::lifecycle::causes;
pub use client::lifecycle::era::Protocol;
pub use client::lifecycle::failure;
pub use client::lifecycle::failure::{StartFailure, Step, What};
pub use client::lifecycle::supervisor::START_FAILED;
pub use client::notices::{NoNotice, Notice, NoticeReceiver};
pub use client::record::{LogLine, Stream};
pub use client::relay::{Counterpart, Passage, Question, Written};
pub use client::requests::{Elicitation, RequestPolicy};
pub use client::server::Server;
pub use client::settings::{
    Hide, HttpSettings, Pick, ServerSettings, StartPolicy, StdioSettings, Transport, When,
    shown_url,
};
pub use client::state::{Phase, ServerState, StepDone, Unstable};
pub use client::stored_log::kept_log;
/// Its name until 0.1.0.
pub use gateway as serve;
