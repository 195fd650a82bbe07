//! `steadyhand metrics`: how often tools were called, how that went, how long it took (SPEC R08).

use serde_json::Value;

use super::error::Failed;
use super::remote::in_path;
use super::tools::{self, Place, no_such_tool};
use super::{Session, value};
use crate::views;

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
        Some(_) => value::shown(session.screen, &flat(&metrics)),
        None => value::columns(session.screen, rows(session, &metrics)),
    };
    session.screen.answer(&text);
    Ok(())
}

/// The breaker's fields beside the others.
fn flat(metrics: &Value) -> Value {
    let mut flat = metrics.clone();
    if let Some(fields) = flat.as_object_mut()
        && let Some(Value::Object(breaker)) = fields.remove("breaker")
    {
        for (name, field) in breaker {
            fields.insert(format!("breaker.{name}"), field);
        }
    }
    flat
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
