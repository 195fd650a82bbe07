//! A server from its start to its end: tried, greeted, watched over, started again; and what is said when it does not start.

pub mod causes;
pub(crate) mod era;
pub mod failure;
pub(crate) mod handshake;
pub(crate) mod reconnect;
pub(crate) mod session;
pub(crate) mod supervisor;
pub(crate) mod upkeep;
