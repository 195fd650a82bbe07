//! The engine through its public surface.

mod breaker_loom;
mod breaker_model;
mod drops;
mod events;
mod fuzz;
mod l_conversation;
mod l_langchain;
mod limit_and_retry;
mod quiet;
mod simulation;
mod twelve_probes;

/// The very file of the engine, compiled a second time on loom's atomics: `crate::sync` is below.
#[path = "../../src/guard/breaker.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "public in the engine, which uses more of it than the models do"
)]
mod breaker_on_loom;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
}
