//! From the numbers of a window to what a rule says of them.

use super::rule::{Rule, Watched};
use super::series::Sums;

/// What a rule finds.
pub(super) enum Measured {
    /// It is so.
    TooMuch { value: Option<f64>, message: String },
    /// Below what raises it, and above what clears it.
    Between { value: f64 },
    /// It is not, or not any more.
    Fine { because: String },
}

/// What a rule finds in the numbers of a window.
pub(super) fn measure(rule: &Rule, subject: &str, sums: &Sums) -> Measured {
    let watched = rule.watched;
    let window = humantime::format_duration(rule.window);
    if sums.count == 0 {
        return Measured::Fine {
            because: format!("nothing of the kind in the last {window}"),
        };
    }
    let value = match watched {
        Watched::ErrorRate => sums.marked as f64 / sums.count as f64,
        Watched::Average => sums.average_ms,
        Watched::P95 => sums.p95_ms,
        Watched::ValidationFailures
        | Watched::InvalidResponses
        | Watched::MendedConversations
        | Watched::QueueFull => sums.marked as f64,
        Watched::BreakerOpen
        | Watched::ServerDown
        | Watched::ToolsChanged
        | Watched::ApprovalWaiting => 0.0,
    };
    let shown = watched.shown(value);
    let counts_calls = matches!(
        watched,
        Watched::ErrorRate | Watched::Average | Watched::P95
    );
    let is_enough = !counts_calls || sums.count >= u64::from(rule.calls_min);
    let count = sums.count;
    if value > rule.above && is_enough {
        let message = match watched {
            Watched::ErrorRate => {
                format!(
                    "{subject}: {} of {count} calls failed in the last {window} ({shown})",
                    sums.marked
                )
            }
            Watched::Average => {
                format!("{subject}: {count} calls in the last {window} took {shown} on average")
            }
            Watched::P95 => {
                format!(
                    "{subject}: 5 of 100 of {count} calls in the last {window} took longer than {shown}"
                )
            }
            Watched::ValidationFailures => {
                format!(
                    "{subject}: {shown} calls in the last {window} had arguments that do not fit"
                )
            }
            Watched::InvalidResponses => {
                format!("{subject}: {shown} answers of models in the last {window} were not valid")
            }
            Watched::MendedConversations => {
                format!(
                    "{subject}: {shown} conversations in the last {window} had to be mended; GET /v1/exchanges says where"
                )
            }
            _ => format!("{subject}: {shown} were refused for lack of room in the last {window}"),
        };
        return Measured::TooMuch {
            value: Some(value),
            message,
        };
    }
    match value <= rule.clear_at {
        true => Measured::Fine {
            because: format!(
                "{shown} in the last {window}, at most {} wanted",
                watched.shown(rule.clear_at)
            ),
        },
        false => Measured::Between { value },
    }
}
