//! A breaker: the last results as squares, its three states and the one it is in.

use maud::{Markup, html};
use steadyhand::BreakerState;

use super::super::format::{self, clock, some_span};
use super::super::parts::{call_path, state_words};
use steadyhand_store::history::{CallState, CallSummary};

/// The last calls of a tool, the oldest first.
pub(in super::super) fn squares(calls: &[CallSummary]) -> Markup {
    html! {
        ol.squares aria-label="The last calls, the oldest first" {
            @for call in calls.iter().rev() {
                @let (tone, word) = state_words(call);
                li { a.(tone) href=(call_path(call)) title=(format!("{word}, {}", some_span(call.took_ms))) { span aria-hidden="true" { (sign(call.state)) } span.hidden { (word) " " (clock(call.started_ms)) } } }
            }
        }
    }
}

fn sign(state: CallState) -> &'static str {
    match state {
        CallState::Ok => "✓",
        CallState::Running => "…",
        CallState::Cancelled => "–",
        CallState::Error | CallState::Timeout | CallState::Rejected | CallState::Interrupted => "×",
    }
}

/// The three states, and how it gets from one to the next.
pub(in super::super) fn machine(
    state: BreakerState,
    failures: &str,
    cooldown: &str,
    trial_at_ms: Option<u64>,
) -> Markup {
    let here = |one: BreakerState| (one == state).then_some("step");
    html! {
        ol.machine aria-label="States of the breaker" {
            li.good aria-current=[here(BreakerState::Closed)] { strong { "Closed" } span { "calls pass" } }
            li.arrow aria-hidden="true" { span { (failures) " failures in a row" } "→" }
            li.bad aria-current=[here(BreakerState::Open)] {
                strong { "Open" }
                span {
                    @if state == BreakerState::Open {
                        "next trial " @if let Some(at_ms) = trial_at_ms { (format::until(at_ms)) }
                    } @else { "calls are refused" }
                }
            }
            li.arrow aria-hidden="true" { span { "after " (cooldown) } "→" }
            li.warn aria-current=[here(BreakerState::HalfOpen)] { strong { "Half-open" } span { "one trial decides" } }
        }
    }
}
