//! The models through their public surface: recordings, strict providers on real sockets, real SDKs.

mod cancelling;
mod corpus;
mod crash;
mod demo;
#[path = "../../../steadyhand/tests/shared/flooding.rs"]
mod flooding;
mod floods;
mod fuzz;
#[path = "../../../steadyhand/tests/shared/fuzzing.rs"]
mod fuzzing;
mod guard;
mod http;
mod langchain;
mod looping;
mod only_the_executor;
mod peers;
mod property;
mod real_model;
mod recorded;
mod same_everywhere;
mod sdks;
mod support;
mod thinking;
mod wire;
