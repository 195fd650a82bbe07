//! We as an MCP server: everything that stands behind us, for any number of clients of both eras of the protocol.
//!
//! ```text
//!  stdio.rs                one client on stdin and stdout      streamable.rs, reading.rs   many, over HTTP
//!  dispatch.rs             what may be asked, and who answers  calls.rs, passing.rs        tools; prompts, resources …
//!  inquiry.rs, work.rs     one request on its way              suspended.rs                … while its client thinks
//!  listing.rs, routes.rs   the lists as bytes, and who has what   list_refresher.rs           … kept up to date
//!  answer.rs, splice.rs    results, word for word              news.rs, listen.rs          what is told unasked
//!  session*.rs, stream.rs  sessions of the older protocols     errors.rs                   every code there is
//!  shares.rs               what callers share                  caller_budgets.rs           … of memory
//! ```

mod answer;
mod caller_budgets;
mod calls;
mod client;
mod dispatch;
mod era;
mod errors;
mod events;
mod exchange;
mod headers;
mod host;
mod inquiry;
mod list_refresher;
mod listen;
mod listing;
mod loss;
mod message;
mod news;
mod operation;
mod passing;
mod reading;
mod request;
mod routes;
mod session;
mod sessions;
mod shares;
mod splice;
mod stdio;
mod stream;
mod streamable;
mod subscriptions;
mod suspended;
mod url_elicitation;
mod work;

pub use dispatch::Gateway;
pub use errors::Standing;
pub use events::Events;
pub use exchange::{Content, Post, Reply, Who};
pub use headers::Headers;
pub use host::Host;
pub use message::{Message, held_bytes};
pub use operation::{ServedOperation, ServerSpan};
pub use shares::{
    CallerShares, SUSPENDED_REQUESTS_MAX, SharedLimit, TakenShare, WATCHED_RESOURCES_MAX,
};
