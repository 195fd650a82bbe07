//! The engine through its public surface, one test per row of the requirements and more.

mod arrivals;
mod breaker_loom;
mod breaker_model;
mod byte_budget;
mod contract;
mod cooperative_budget;
mod d_rows;
mod define;
mod drops;
mod events;
mod f_rows;
mod fuzz;
mod fuzz_names;
mod fuzz_texts;
#[path = "../shared/fuzzing.rs"]
#[allow(dead_code, reason = "other crates use more of it")]
mod fuzzing;
mod hostile_schemas;
mod json_schema_suite;
mod key_shares;
mod key_store;
mod l_conversation;
mod l_langchain;
mod limit_and_retry;
mod logs;
mod permits;
mod quiet;
mod r_rows;
mod simulation;
mod support;
mod t_rows;
mod told_again;
mod trace;
mod twelve_probes;
mod v_rows;
mod waits;

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
