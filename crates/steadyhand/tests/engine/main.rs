//! The engine through its public surface, one test per row of the requirements and more.

mod argument_checks;
mod arrivals;
mod batches;
mod breaker_loom;
mod breaker_model;
mod byte_budget;
mod call_logs;
mod cancellation;
mod circuit_breaker;
mod coercion;
mod concurrency_limit;
mod contract;
mod cooperative_budget;
mod define;
mod drops;
mod events;
mod execution;
mod failure_categories;
mod failure_effects;
mod failure_texts;
mod fallbacks;
mod fuzz;
mod fuzz_names;
mod fuzz_texts;
#[path = "../shared/fuzzing.rs"]
#[allow(dead_code, reason = "other crates use more of it")]
mod fuzzing;
mod hostile_schemas;
mod idempotency;
mod json_schema_suite;
mod key_shares;
mod key_store;
mod l_conversation;
mod l_langchain;
mod limit_and_retry;
mod logs;
mod metrics;
mod outcome_views;
mod permits;
mod quiet;
mod retries;
mod schema_keywords;
mod simulation;
mod support;
mod time_limits;
mod told_again;
mod tool_definitions;
mod tool_sources;
mod trace;
mod twelve_probes;
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
