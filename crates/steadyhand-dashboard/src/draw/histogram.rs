//! How long calls took: a column for each step of time.

use maud::{Markup, html};

use super::super::format::{count, span};
use steadyhand_store::history::Spread;

pub(in super::super) fn picture(times: &[Spread]) -> Markup {
    let highest = times
        .iter()
        .map(|step| step.calls)
        .max()
        .unwrap_or(0)
        .max(1);
    html! {
        @if times.is_empty() {
            p.empty { "No calls in this time." }
        } @else {
            ol.histogram tabindex="0" aria-label="Calls by how long they took" {
                @for step in times {
                    li {
                        span.number { (count(step.calls)) span.hidden { " took up to " } }
                        svg viewBox="0 0 10 100" preserveAspectRatio="none" aria-hidden="true" {
                            @let height = (100.0 * step.calls as f64 / highest as f64).max(if step.calls > 0 { 2.0 } else { 0.5 });
                            rect x="0" width="10" y=(super::short(100.0 - height)) height=(super::short(height)) {}
                        }
                        span.step { (span(step.up_to_ms)) }
                    }
                }
            }
        }
    }
}
