//! The pages: each a file, each made from what its REST route answers.

pub(super) mod alerts;
pub(super) mod approvals;
pub(super) mod audit;
pub(super) mod call;
pub(super) mod calls;
mod changes;
pub(super) mod config;
pub(super) mod conversation;
pub(super) mod conversations;
pub(super) mod login;
pub(super) mod overview;
pub(super) mod server;
pub(super) mod servers;
pub(super) mod tool;
pub(super) mod tools;
pub(super) mod trends;
