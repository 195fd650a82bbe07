//! Tells those who watch of what is no call: a new configuration, servers that come and go, other tools.

use steadyhand::clock;
use steadyhand_mcp::{Phase, Server};

use crate::live::{ConfigChanged, Live, LiveEvent, ServerChanged, ToolsChanged};
use steadyhand_runtime::runtime::Runtime;

/// A configuration was taken over, or refused.
pub(super) fn tell_configuration(runtime: &Runtime, live: &Live, is_new: bool) {
    let problem = match runtime.last_reload() {
        Some(Err(report)) if !is_new => Some(report.to_string()),
        _ => None,
    };
    live.publish(LiveEvent::ConfigChanged(ConfigChanged {
        generation: runtime.generation().number,
        at_ms: clock::wall_ms(),
        problem,
    }));
    if is_new {
        tell_tools(runtime, live, None);
    }
}

/// Follows one server until it is stopped for good.
pub(super) async fn follow(server: Server, runtime: Runtime, live: Live) {
    let mut changes = server.changes();
    let mut told: Option<(Phase, u64)> = None;
    loop {
        let state = changes.borrow_and_update().clone();
        let now = (state.phase, state.tools_version);
        if told.is_none_or(|(phase, _)| phase != state.phase) {
            let detail = state.failure.as_ref().map(|failure| failure.to_string());
            live.publish(LiveEvent::ServerChanged(ServerChanged {
                server: state.name.clone(),
                state: state.phase.word().to_owned(),
                at_ms: clock::wall_ms(),
                detail: detail.filter(|_| state.phase != Phase::Running),
            }));
        }
        if told.is_some_and(|(_, version)| version != state.tools_version) {
            tell_tools(&runtime, &live, Some(state.name.clone()));
        }
        told = Some(now);
        if state.phase == Phase::Stopped || changes.changed().await.is_err() {
            return;
        }
    }
}

fn tell_tools(runtime: &Runtime, live: &Live, source: Option<String>) {
    live.publish(LiveEvent::ToolsChanged(ToolsChanged {
        count: runtime.manager().len(),
        at_ms: clock::wall_ms(),
        source,
    }));
}
