//! Where the time of a call went, from what was told of its attempts.

use steadyhand::{Failure, FailureCode};

use super::pending::Open;
use super::record::{Stage, StageKind};

/// The stages of a call that has ended, in order. An attempt that worked has no event of its own: it ends here.
pub(super) fn stages(open: &mut Open, took_ms: f64, failure: Option<&Failure>) -> Vec<Stage> {
    let mut stages = Vec::with_capacity(open.tries.len() + 1);
    let mut add = |kind, start_ms: f64, end_ms: f64, attempt, tool, message| {
        let start_ms = start_ms.max(0.0);
        if end_ms > start_ms || kind == StageKind::Attempt {
            let end_ms = end_ms.max(start_ms);
            stages.push(Stage {
                kind,
                start_ms,
                end_ms,
                attempt,
                tool,
                message,
            });
        }
    };
    let end = open
        .fallback
        .as_ref()
        .map_or(took_ms, |fallback| fallback.start_ms);
    let mut at = 0.0;
    if let Some(wait) = &open.approval {
        let approved_ms = wait.end_ms.unwrap_or(end);
        add(StageKind::Validate, at, wait.start_ms, None, None, None);
        add(
            StageKind::Approval,
            wait.start_ms,
            approved_ms,
            None,
            None,
            None,
        );
        at = approved_ms.max(wait.start_ms);
    }
    for one in &mut open.tries {
        let attempt = Some(one.attempt);
        let waited_ms = open.waits.iter().find(|(of, _)| *of == one.attempt);
        let ready = micros(one.start_ms - waited_ms.map_or(0.0, |(_, ms)| *ms));
        let before = match one.attempt {
            // From the approval to the start it is written down.
            1 if open.approval.is_some() => StageKind::Queue,
            1 => StageKind::Validate,
            _ => StageKind::Backoff,
        };
        add(before, at, ready, attempt, None, None);
        add(StageKind::Queue, ready, one.start_ms, attempt, None, None);
        at = *one.end_ms.get_or_insert(end.max(one.start_ms));
        let message = one.message.clone();
        add(StageKind::Attempt, one.start_ms, at, attempt, None, message);
    }
    let rest = match (open.tries.last(), failure) {
        // Withdrawn or out of time while it waited.
        (Some(last), _) => last.retry_in_ms.map(|_| StageKind::Backoff),
        (None, Some(failure)) if waited_in_vain(failure.code) => Some(StageKind::Queue),
        (None, _) => Some(StageKind::Validate),
    };
    if let Some(rest) = rest {
        add(rest, at, end, None, None, None);
    }
    if let Some(fallback) = &open.fallback {
        let end = fallback.end_ms.unwrap_or(took_ms);
        let (tool, message) = (fallback.tool.clone(), fallback.message.clone());
        add(
            StageKind::Fallback,
            fallback.start_ms,
            end,
            None,
            tool,
            message,
        );
    }
    stages
}

fn waited_in_vain(code: FailureCode) -> bool {
    matches!(
        code,
        FailureCode::Timeout | FailureCode::Overloaded | FailureCode::Cancelled
    )
}

/// Milliseconds to the microsecond: nobody reads more, and all of it is written down.
pub(super) fn micros(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}
