//! The last half minute: a lane for each tool, a bar for each call. Bars stand where their time is, and the picture as a
//! whole moves on; so what is sent of it changes only when a call begins or ends.

use maud::{Markup, html};

use super::super::format::{self, count, visible};
use super::super::parts::{call_path_of_running, tool_link};
use steadyhand::Status;
use steadyhand_server::live::{Ended, Second};
use steadyhand_server::overview::{Lane, Lanes};

/// Calls at the same time that have a row of their own within a lane.
const ROWS_MAX: usize = 4;
const HEIGHT: f64 = 20.0;
/// Shorter ones would not be seen.
const BAR_MS_MIN: u64 = 90;
/// The origin moves in steps, so that positions stay what they are.
const STEP_MS: u64 = 30_000;

pub(in super::super) fn picture(lanes: &Lanes, now_ms: u64) -> Markup {
    let origin_ms = (now_ms / STEP_MS).saturating_sub(1) * STEP_MS - STEP_MS;
    html! {
        div.lanes id="lanes" data-origin=(origin_ms) data-span=(lanes.span_ms) data-testid="lanes" {
            @if lanes.lanes.is_empty() { p.empty { "No calls in the last 30 seconds." } }
            @for lane in &lanes.lanes {
                div.lane id=(format!("lane-{}", visible(&lane.tool))) {
                    span.name { (tool_link(&lane.tool)) }
                    (bars(lane, lanes, origin_ms, now_ms))
                    span.now {
                        @if lane.running.first().is_some_and(|call| call.waiting) {
                            a href="/approvals" { "waits for a yes" }
                            @if lane.running.len() > 1 { " +" (lane.running.len() - 1) }
                        } @else if let Some(call) = lane.running.first() {
                            a href=(call_path_of_running(&call.id)) { (format::running(call.started_ms + call.approval_ms, Some(call.deadline_ms))) }
                            @if lane.running.len() > 1 { " +" (lane.running.len() - 1) }
                        } @else if !lane.seconds.is_empty() {
                            (count(sum(&lane.seconds) / (lanes.span_ms / 1000))) "/s"
                        }
                    }
                }
            }
            @if !lanes.lanes.is_empty() {
                div.lane.axis aria-hidden="true" {
                    span.name {}
                    span.ticks { span { "−30 s" } span { "−20 s" } span { "−10 s" } span { "now" } }
                    span.now {}
                }
            }
            p.legend {
                span { span.swatch.good {} "answered" }
                span { span.swatch.bad {} "failed (tall)" }
                span { span.swatch.info {} "running" }
                @if lanes.more > 0 { span { (lanes.more) " more tools had calls" } }
                @if lanes.lanes.iter().any(|lane| !lane.seconds.is_empty()) { span { "many calls: sums by second" } }
            }
        }
    }
}

fn sum(seconds: &[Second]) -> u64 {
    seconds
        .iter()
        .map(|second| u64::from(second.ok + second.failed))
        .sum()
}

fn bars(lane: &Lane, lanes: &Lanes, origin_ms: u64, now_ms: u64) -> Markup {
    let view = format!("0 0 {} {HEIGHT}", lanes.span_ms);
    let shift = lanes.span_ms as i64 - (now_ms - origin_ms) as i64;
    let (good, bad) = match lane.seconds.is_empty() {
        false => sums(&lane.seconds, origin_ms),
        true => singles(&lane.ended, origin_ms),
    };
    let label = format!(
        "{}: {} answered, {} failed, {} running in the last 30 seconds",
        lane.tool,
        lane.ended
            .iter()
            .filter(|call| call.status == Status::Success)
            .count()
            + lane
                .seconds
                .iter()
                .map(|second| second.ok as usize)
                .sum::<usize>(),
        lane.ended
            .iter()
            .filter(|call| call.status != Status::Success)
            .count()
            + lane
                .seconds
                .iter()
                .map(|second| second.failed as usize)
                .sum::<usize>(),
        lane.running.len()
    );
    html! {
        svg.bars viewBox=(view) preserveAspectRatio="none" role="img" aria-label=(label) {
            title { (label) }
            // A script moves it on; without one the picture is as old as the page.
            g.moves transform=(format!("translate({shift} 0)")) {
                path.good d=(good) {}
                path.bad d=(bad) {}
                @for mark in lanes.marks.iter().filter(|mark| mark.concerns(lane.source.as_deref())) {
                    path.mark d=(format!("M{} 0v{HEIGHT}", mark.at_ms.saturating_sub(origin_ms))) vector-effect="non-scaling-stroke" {}
                }
                @for (row, call) in lane.running.iter().take(ROWS_MAX).enumerate() {
                    @let height = HEIGHT / lane.running.len().min(ROWS_MAX) as f64;
                    rect.(if call.waiting { "wait" } else { "info" }) x=(call.started_ms as i64 - origin_ms as i64) y=(super::short(row as f64 * height))
                        height=(super::short(height - 1.0)) data-start=(call.started_ms)
                        width=(now_ms.saturating_sub(call.started_ms).max(BAR_MS_MIN)) {}
                }
            }
        }
    }
}

/// Each call a bar; those at the same time below each other, failed ones taller.
fn singles(ended: &[Ended], origin_ms: u64) -> (String, String) {
    let (mut good, mut bad) = (String::new(), String::new());
    let placed = placed(ended);
    let rows = placed.iter().max().map_or(1, |row| row + 1);
    for (call, row) in ended.iter().zip(placed) {
        let width = (call.took_ms as u64).max(BAR_MS_MIN);
        let x = call.started_ms as i64 - origin_ms as i64;
        if call.status == Status::Success {
            let height = HEIGHT * 0.6 / rows as f64;
            let y = HEIGHT * 0.2 + row as f64 * height;
            good.push_str(&rect(
                x,
                y,
                width,
                height - if rows > 1 { 0.5 } else { 0.0 },
            ));
        } else {
            bad.push_str(&rect(x, 0.0, width, HEIGHT));
        }
    }
    (good, bad)
}

/// The row of each call: the first that is free when it begins.
fn placed(ended: &[Ended]) -> Vec<usize> {
    let mut free_at = [0u64; ROWS_MAX];
    ended
        .iter()
        .map(|call| {
            let row = free_at.iter().position(|free| *free <= call.started_ms);
            let row = row.unwrap_or(ROWS_MAX - 1);
            free_at[row] = call.started_ms + call.took_ms as u64;
            row
        })
        .collect()
}

/// A second is a column, as high as it had calls; the failed part is at its foot.
fn sums(seconds: &[Second], origin_ms: u64) -> (String, String) {
    let (mut good, mut bad) = (String::new(), String::new());
    let highest = seconds
        .iter()
        .map(|second| second.ok + second.failed)
        .max()
        .unwrap_or(1)
        .max(1);
    for second in seconds {
        let x = (second.second * 1000) as i64 - origin_ms as i64;
        let height = |calls: u32| HEIGHT * f64::from(calls) / f64::from(highest);
        let (ok, failed) = (height(second.ok), height(second.failed));
        good.push_str(&rect(x, HEIGHT - failed - ok, 900, ok));
        if second.failed > 0 {
            bad.push_str(&rect(x, HEIGHT - failed, 900, failed));
        }
    }
    (good, bad)
}

fn rect(x: i64, y: f64, width: u64, height: f64) -> String {
    let (y, height) = (super::short(y), super::short(height.max(0.5)));
    format!("M{x} {y}h{width}v{height}h-{width}z")
}
