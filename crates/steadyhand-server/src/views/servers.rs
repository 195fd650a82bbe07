//! MCP servers: where each stands, what it printed last, when it is tried again.

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::runtime::Runtime;

/// Lines of a server's own words that are shown beside its state.
const LINES: usize = 20;

/// Of all servers, in the order of the configuration.
pub(crate) fn all(runtime: &Runtime) -> Vec<Value> {
    let states = runtime.servers();
    let one = |state: &steadyhand_mcp::ServerState| {
        let mut view = json!(state);
        view["state"] = json!(state.phase.word());
        view["for_ms"] = json!(state.since.elapsed().as_millis() as u64);
        let next = state
            .next_try
            .map(|at| at.saturating_duration_since(Instant::now()));
        view["next_try_ms"] = json!(next.map(|wait| wait.as_millis() as u64));
        let lines = runtime.server_logs(&state.name).unwrap_or_default();
        let last = &lines[lines.len().saturating_sub(LINES)..];
        view["printed"] = json!(last);
        view
    };
    states.iter().map(one).collect()
}
