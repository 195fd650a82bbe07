//! MCP servers: where each stands, what it does next, why it is not used.

use serde_json::{Value, json};
use steadyhand_mcp::{LogLine, ServerState};
use tokio::time::Instant;

use steadyhand_runtime::runtime::{NotUsed, Runtime};

/// All servers: those in use in the order of the configuration, then the others.
pub fn list(runtime: &Runtime) -> Value {
    let servers = all(runtime);
    json!({"count": servers.len(), "servers": servers})
}

/// The same without a count.
pub fn all(runtime: &Runtime) -> Vec<Value> {
    let used = runtime.servers();
    let unused = runtime.servers_not_used();
    let used = used.iter().map(|state| described(runtime, state));
    used.chain(unused.iter().map(not_used)).collect()
}

/// One server, by its name.
pub fn one(runtime: &Runtime, name: &str) -> Option<Value> {
    let mut servers = all(runtime).into_iter();
    servers.find(|server| server["name"] == name)
}

/// What a server printed, from a line on; the next question begins at `next`.
pub fn log(name: &str, lines: &[LogLine], next: u64) -> Value {
    json!({"name": name, "lines": lines, "next": next})
}

/// Tools that cannot be used, as many as an answer shows of each server.
const UNUSABLE_SHOWN: usize = 100;

fn described(runtime: &Runtime, state: &ServerState) -> Value {
    let now = Instant::now();
    let mut view = json!(state);
    view["tools"] = json!(runtime.offered_by(state));
    if !state.unusable.is_empty() {
        let shown = state.unusable.len().min(UNUSABLE_SHOWN);
        view["unusable"] = json!(state.unusable[..shown]);
        view["unusable_count"] = json!(state.unusable.len());
    }
    if let Some(unstable) = state.unstable() {
        view["unstable"] = json!(unstable.to_string());
    }
    view["status"] = json!(state.phase.word());
    if let Some(failure) = &state.failure {
        view["reason"] = json!(failure.summary());
    }
    view["for_ms"] = json!(now.duration_since(state.since).as_millis() as u64);
    if let Some(at) = state.next_try {
        let wait = at.saturating_duration_since(now);
        view["next_try_in_ms"] = json!(wait.as_millis() as u64);
    }
    view
}

fn not_used(server: &NotUsed) -> Value {
    let mut view = json!({
        "name": server.name,
        "phase": "disabled",
        "status": "disabled",
        "reason": server.reason,
        "tools": 0,
    });
    if let Some(place) = &server.place {
        view["place"] = json!(place);
    }
    view
}
