//! What is remembered of changes: a start, a configuration, servers and their tools.

use steadyhand::clock;

use crate::live::{Live, LiveEvent};
use steadyhand_store::history::{History, Mark, MarkKind};

/// Writes down what changes, so that charts can show it on their axis of time.
pub fn remember(live: &Live, history: &History) {
    let version = env!("CARGO_PKG_VERSION");
    let text = format!("Steadyhand {version} started");
    history.mark(Mark::new(clock::wall_ms(), MarkKind::Start, &text));
    let history = history.clone();
    live.also_tell(move |event| {
        if let Some(mark) = mark_of(event) {
            history.mark(mark);
        }
    });
}

fn mark_of(event: &LiveEvent) -> Option<Mark> {
    match event {
        LiveEvent::ConfigChanged(change) => {
            let number = change.generation;
            Some(match &change.problem {
                None => {
                    let text = format!("Configuration reloaded, generation {number}");
                    Mark::new(change.at_ms, MarkKind::Config, &text)
                }
                Some(_) => {
                    let text =
                        format!("A new configuration was refused, generation {number} stays");
                    Mark::new(change.at_ms, MarkKind::Refused, &text)
                }
            })
        }
        // What is on its way is told when it is there, or is not.
        LiveEvent::ServerChanged(change)
            if !matches!(change.state.as_str(), "running" | "not running") =>
        {
            None
        }
        LiveEvent::ServerChanged(change) => {
            let text = format!("{}: {}", change.server, change.state);
            let mark = Mark::new(change.at_ms, MarkKind::Server, &text);
            Some(mark.of_source(&change.server))
        }
        LiveEvent::ToolsChanged(change) => {
            let source = change.source.as_ref()?;
            let text = format!("Tools of {source} changed");
            Some(Mark::new(change.at_ms, MarkKind::Tools, &text).of_source(source))
        }
        LiveEvent::CallStarted(_)
        | LiveEvent::CallProgress(_)
        | LiveEvent::AttemptFailed(_)
        | LiveEvent::FallbackStarted(_)
        | LiveEvent::CallFinished(_)
        | LiveEvent::BreakerChanged(_)
        | LiveEvent::AlertChanged(_)
        | LiveEvent::ApprovalChanged(_)
        | LiveEvent::Exchange(_)
        | LiveEvent::Snapshot(_)
        | LiveEvent::Skipped(_) => None,
    }
}
