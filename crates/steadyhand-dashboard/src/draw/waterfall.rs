//! Where the time of one call went: a row for each part of it, on one axis.

use maud::{Markup, html};

use super::super::format::{span, visible};
use steadyhand_store::history::{CallDetails, CallSummary, Stage, StageKind};

const WIDTH: f64 = 1000.0;

pub(in super::super) fn picture(call: &CallSummary, details: &CallDetails) -> Markup {
    let end = details
        .stages
        .iter()
        .map(|stage| stage.end_ms)
        .fold(0.0, f64::max);
    let total = call.took_ms.unwrap_or(0.0).max(end).max(0.001);
    let ticks = [0.0, 0.25, 0.5, 0.75, 1.0];
    html! {
        table.waterfall data-testid="waterfall" {
            caption.hidden { "Where the time went" }
            thead { tr {
                th scope="col" { "Step" }
                th.number scope="col" { "Took" }
                th scope="col" { span.hidden { "When" } span.ticks aria-hidden="true" { @for tick in ticks { span { (span(tick * total)) } } } }
            } }
            tbody {
                @for stage in &details.stages {
                    @let is_failed = stage.message.is_some();
                    tr {
                        th scope="row" { (label(stage)) }
                        td.number { (span(stage.end_ms - stage.start_ms)) }
                        td.track {
                            svg viewBox=(format!("0 0 {WIDTH} 16")) preserveAspectRatio="none" aria-hidden="true" {
                                @let x = WIDTH * stage.start_ms / total;
                                @let width = (WIDTH * (stage.end_ms - stage.start_ms) / total).max(3.0);
                                rect.(tone(stage)) x=(super::short(x.min(WIDTH - 3.0))) width=(super::short(width)) y="3" height="10" {}
                                @if is_failed { rect.bad x=(super::short((x + width - 4.0).max(0.0))) width="4" y="0" height="16" {} }
                            }
                            @if let Some(message) = &stage.message {
                                span.said { (super::super::format::line(message, 160)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn label(stage: &Stage) -> String {
    let attempt = stage.attempt.unwrap_or(1);
    match stage.kind {
        StageKind::Validate => "Validate arguments".to_owned(),
        StageKind::Approval => "Wait for approval".to_owned(),
        StageKind::Queue => "Wait for a slot".to_owned(),
        StageKind::Attempt => format!("Attempt {attempt}"),
        StageKind::Backoff => "Wait before the next attempt".to_owned(),
        StageKind::Fallback => match &stage.tool {
            Some(tool) => format!("Fallback {}", visible(tool)),
            None => "Fallback".to_owned(),
        },
    }
}

fn tone(stage: &Stage) -> &'static str {
    match stage.kind {
        StageKind::Validate | StageKind::Approval | StageKind::Queue | StageKind::Backoff => "wait",
        StageKind::Attempt if stage.message.is_some() => "bad soft",
        StageKind::Attempt => "info",
        StageKind::Fallback => "warn",
    }
}
