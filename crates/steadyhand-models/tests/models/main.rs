//! The models through their public surface: recordings, strict providers on real sockets, real SDKs.

mod corpus;
mod crash;
mod demo;
mod guard;
mod http;
mod looping;
mod only_the_executor;
mod property;
mod recorded;
mod same_everywhere;
mod support;
mod wire;
