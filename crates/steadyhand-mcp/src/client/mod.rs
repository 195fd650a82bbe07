//! We as a client: servers started, watched over and called.
//!
//! ```text
//!  server.rs, state.rs     a server as others see it           settings.rs   as it is configured
//!  lifecycle/              its start, its watch, its end, its way back, and why it did not start
//!  connection/             requests out, answers in            stdio/, http/  the two ways to reach it
//!  catalogue/              what it lists, and what of it is offered
//!  calls/                  one call, or one request that is passed on
//!  relay.rs                whose request it is, and how a server asks back
//!  record.rs, stored_log.rs, notices.rs   what it prints, and what it says unasked
//! ```

pub(crate) mod calls;
pub(crate) mod catalogue;
pub(crate) mod connection;
pub(crate) mod credentials;
pub(crate) mod hidden;
pub(crate) mod http;
pub(crate) mod lifecycle;
pub(crate) mod login_address;
pub(crate) mod memory;
pub(crate) mod notices;
pub(crate) mod record;
pub(crate) mod relay;
pub(crate) mod requests;
pub(crate) mod server;
pub(crate) mod settings;
pub(crate) mod state;
pub(crate) mod stdio;
pub(crate) mod stored_log;
