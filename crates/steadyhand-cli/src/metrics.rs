//! `steadyhand metrics`: how often tools were called, how that went, how long it took (SPEC R08).

use std::time::Duration;

use serde_json::Value;

use super::error::Failed;
use super::remote::in_path;
use super::tools::{self, Place, no_such_tool};
use super::{Session, value};
use steadyhand_server::views;

#[derive(clap::Args)]
pub(super) struct MetricsArgs {
    /// One tool; all if not said
    tool: Option<String>,
}

pub(super) async fn run(session: &Session<'_>, args: &MetricsArgs) -> Result<(), Failed> {
    let place = Place::find(session, tools::Need::Names).await?;
    let metrics = match (&place, &args.tool) {
        (Place::There(remote), None) => remote.get("/v1/metrics").await?,
        (Place::There(remote), Some(tool)) => {
            remote
                .get(&format!("/v1/metrics/{}", in_path(tool)))
                .await?
        }
        (Place::Here(runtime), None) => views::metrics::all(runtime),
        (Place::Here(runtime), Some(tool)) => {
            views::metrics::one(runtime, tool).ok_or_else(|| no_such_tool(runtime, tool))?
        }
    };
    if let Place::Here(_) = place {
        session.screen.note(
            "No server of this configuration runs, and counters live in a server: these are empty. steadyhand calls list shows past calls.",
        );
    }
    if session.screen.json {
        session.screen.json(&metrics);
        return Ok(());
    }
    let text = match args.tool {
        Some(_) => of_one(session, &metrics),
        None => value::columns(session.screen, rows(session, &metrics)),
    };
    session.screen.answer(&text);
    Ok(())
}

/// One tool in words: what was run and how that went, how long it took, what was not run, and its breaker.
fn of_one(session: &Session<'_>, metrics: &Value) -> String {
    let count = |name: &str| metrics[name].as_u64().unwrap_or(0);
    let time = |name: &str| {
        let ms = metrics[name].as_f64().unwrap_or(0.0);
        value::duration(Duration::try_from_secs_f64(ms / 1000.0).unwrap_or_default())
    };
    let mut rows: Vec<(&str, String)> = Vec::new();
    let rate = metrics["failureRate"].as_f64().unwrap_or(0.0) * 100.0;
    rows.push((
        "Tool",
        metrics["toolName"].as_str().unwrap_or_default().to_owned(),
    ));
    rows.push((
        "Calls that ran",
        match count("totalExecutions") {
            0 => "none yet".to_owned(),
            total => format!(
                "{total}: {} succeeded, {} failed, {} timed out ({rate:.1} % failed)",
                count("successCount"),
                count("errorCount"),
                count("timeoutCount")
            ),
        },
    ));
    if count("totalExecutions") > 0 {
        rows.push((
            "Time",
            format!(
                "mean {}, half within {}, 95 % within {}, 99 % within {}",
                time("avgExecutionTime"),
                time("p50"),
                time("p95"),
                time("p99")
            ),
        ));
    }
    rows.push((
        "Now",
        format!(
            "{} running, {} waiting for a place",
            count("inFlight"),
            count("queued")
        ),
    ));
    let others = [
        ("rejected", "refused before they ran"),
        ("invalid", "with arguments that do not fit"),
        ("cancelled", "withdrawn"),
        ("joined", "answered by another call with the same key"),
    ];
    let others = others.map(|(name, words)| (count(name), words));
    let others = others.iter().filter(|(count, _)| *count > 0);
    let others: Vec<String> = others
        .map(|(count, words)| format!("{count} {words}"))
        .collect();
    if !others.is_empty() {
        rows.push(("Other calls", others.join(", ")));
    }
    if count("retries") + count("fallbacks") > 0 {
        rows.push((
            "Help",
            format!(
                "{} more after a failure, {} by a fallback",
                value::counted(count("retries") as usize, "attempt"),
                value::counted(count("fallbacks") as usize, "answer")
            ),
        ));
    }
    let codes = metrics["errorsByCode"].as_object();
    let codes = codes
        .into_iter()
        .flatten()
        .map(|(code, count)| format!("{code} {count}"));
    let codes: Vec<String> = codes.collect();
    if !codes.is_empty() {
        rows.push(("Failures", codes.join(", ")));
    }
    rows.push(("Breaker", breaker(&metrics["breaker"])));
    let rows = rows
        .into_iter()
        .map(|(name, text)| vec![name.to_owned(), text]);
    value::columns(session.screen, rows.collect())
}

fn breaker(breaker: &Value) -> String {
    let count = |name: &str| breaker[name].as_u64().unwrap_or(0);
    match breaker["state"].as_str() {
        None => "none".to_owned(),
        Some(state) => format!(
            "{state}, {} in a row, opened {}",
            value::counted(count("failures") as usize, "failure"),
            value::counted(count("trips") as usize, "time")
        ),
    }
}

fn rows(session: &Session<'_>, metrics: &Value) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    if session.screen.stdout_is_terminal {
        rows.push(
            [
                "TOOL", "CALLS", "OK", "ERRORS", "TIMEOUTS", "FAILED", "MEAN", "P50", "P95",
                "RUNNING", "BREAKER",
            ]
            .map(str::to_owned)
            .to_vec(),
        );
    }
    for tool in metrics["tools"].as_array().into_iter().flatten() {
        let count = |name: &str| tool[name].as_u64().unwrap_or(0).to_string();
        let ms = |name: &str| format!("{:.1} ms", tool[name].as_f64().unwrap_or(0.0));
        let rate = tool["failureRate"].as_f64().unwrap_or(0.0) * 100.0;
        let breaker = tool["breaker"]["state"].as_str().unwrap_or("none");
        rows.push(vec![
            tool["toolName"].as_str().unwrap_or_default().to_owned(),
            count("totalExecutions"),
            count("successCount"),
            count("errorCount"),
            count("timeoutCount"),
            format!("{rate:.1} %"),
            ms("avgExecutionTime"),
            ms("p50"),
            ms("p95"),
            count("inFlight"),
            breaker.to_owned(),
        ]);
    }
    rows
}
