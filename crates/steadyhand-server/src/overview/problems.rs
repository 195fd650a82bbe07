//! What is broken right now: a line for each problem, the most severe first, with the place to look at.

use serde::Serialize;
use steadyhand::BreakerState;
use steadyhand_mcp::{Phase, ServerState};
use utoipa::ToSchema;

use super::lanes::Lanes;
use super::tools::ToolRow;
use crate::alerts::Alert;
use crate::http::App;
use steadyhand_runtime::approvals::Approval;
use steadyhand_runtime::pins::Change;

/// From this share of failed calls on a tool is a problem, if there were so many.
const ERROR_RATE: f64 = 0.2;
const CALLS_MIN: u64 = 5;
/// A call that has used this much of its time is told, if it runs for so long.
const HUNG_SHARE: f64 = 0.5;
const HUNG_MS: f64 = 10_000.0;
/// Problems that are listed.
const LISTED_MAX: usize = 20;

/// Something is broken
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OverviewProblem)]
pub struct Problem {
    pub severity: Severity,
    /// The thing
    pub subject: String,
    /// What is the matter with it, and what happens next
    pub message: String,
    /// The page of the dashboard that tells more
    pub path: String,
    /// What that page shows of it
    pub see: String,
    /// When it will be tried again, or would be over, in milliseconds since 1970
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub until_ms: Option<u64>,
}

/// How bad it is
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ProblemSeverity)]
pub enum Severity {
    /// Calls fail
    Error,
    /// Calls may fail, or are slow
    Warning,
}

pub(super) fn all(
    app: &App,
    tools: &[ToolRow],
    servers: &[ServerState],
    lanes: &Lanes,
    waiting: &[Approval],
) -> Vec<Problem> {
    let mut problems: Vec<Problem> = servers.iter().filter_map(of_server).collect();
    problems.extend(app.runtime.not_real().into_iter().map(of_not_real));
    problems.extend(of_configuration(app));
    problems.extend(of_sources(app, servers));
    problems.extend(tools.iter().filter_map(of_tool));
    problems.extend(of_running(lanes));
    let changes = app.pins.changes();
    let undecided = changes
        .iter()
        .filter(|change| !change.rejected && !app.runtime.is_switched_off(&change.tool));
    problems.extend(undecided.filter_map(of_change).take(LISTED_MAX));
    problems.extend(waiting.iter().take(LISTED_MAX).map(of_approval));
    if let Some(message) = super::history_trouble(&app.history.health()) {
        problems.push(Problem::new(
            Severity::Warning,
            "History",
            message,
            "/config",
            "See its state",
        ));
    }
    if let Some(reason) = app.audit.trouble() {
        problems.push(Problem::new(
            Severity::Warning,
            "Audit log",
            format!("decisions and changes are not written down: {reason}"),
            "/audit",
            "See the log",
        ));
    }
    if let Some(reason) = app.runtime.executor().key_store_trouble() {
        problems.push(Problem::new(
            Severity::Error,
            "Idempotency keys",
            format!("calls with one are refused: {reason}"),
            "/config",
            "See its state",
        ));
    }
    for alert in app.alerts.unseen() {
        // What is told already is not told twice.
        if problems.iter().all(|known| known.subject != alert.subject) {
            problems.push(of_alert(&alert));
        }
    }
    problems.sort_by_key(|problem| problem.severity);
    problems.truncate(LISTED_MAX);
    problems
}

impl Problem {
    fn new(severity: Severity, subject: &str, message: String, path: &str, see: &str) -> Problem {
        Problem {
            severity,
            subject: subject.to_owned(),
            message,
            path: path.to_owned(),
            see: see.to_owned(),
            until_ms: None,
        }
    }
}

/// Nobody may take it for the real thing.
fn of_not_real((subject, message): (&str, String)) -> Problem {
    Problem::new(
        Severity::Warning,
        subject,
        message,
        "/calls",
        "See the calls",
    )
}

fn of_server(server: &ServerState) -> Option<Problem> {
    let path = page("servers", &server.name);
    let failure = server.failure.as_ref();
    let failure = failure.map(|failure| failure.summary_with_last_words());
    let unstable = server.unstable();
    let (severity, message) = match (server.phase, failure) {
        (Phase::Down, Some(why)) => (Severity::Error, format!("is not running: {why}")),
        (Phase::Down, None) => (Severity::Error, "is not running".to_owned()),
        (Phase::Starting | Phase::Restarting, Some(why)) => {
            (Severity::Warning, format!("is being started again: {why}"))
        }
        (
            Phase::Idle | Phase::Starting | Phase::Running | Phase::Restarting | Phase::Stopped,
            _,
        ) => {
            let message = format!("is unstable: it {}", unstable?);
            (Severity::Warning, message)
        }
    };
    let mut problem = Problem::new(severity, &server.name, message, &path, "See its stderr");
    problem.until_ms = server.next_try.map(|at| {
        let wait = at.saturating_duration_since(tokio::time::Instant::now());
        steadyhand::clock::wall_ms() + wait.as_millis() as u64
    });
    Some(problem)
}

fn of_configuration(app: &App) -> Option<Problem> {
    let Some(Err(report)) = app.runtime.last_reload() else {
        return None;
    };
    let count = report.problems.len();
    let message = format!(
        "the last change was refused, with {count} {}; generation {} stays in force",
        if count == 1 { "problem" } else { "problems" },
        app.runtime.generation().number
    );
    Some(Problem::new(
        Severity::Error,
        "Configuration",
        message,
        "/config",
        "See what is wrong",
    ))
}

/// Sources that could not be loaded. Those of servers are told by the server.
fn of_sources(app: &App, servers: &[ServerState]) -> Vec<Problem> {
    let is_server = |name: &str| servers.iter().any(|server| server.name == name);
    let generation = app.runtime.generation();
    let problems = generation.problems.iter().filter(|it| !is_server(&it.name));
    problems
        .map(|it| {
            Problem::new(
                Severity::Warning,
                &it.name,
                it.reason.clone(),
                "/config",
                "See where it is set",
            )
        })
        .collect()
}

fn of_tool(tool: &ToolRow) -> Option<Problem> {
    let path = page("tools", &tool.name);
    let said = tool
        .last_error
        .as_ref()
        .map(|error| format!(": {}", error.message));
    let said = said.unwrap_or_default();
    match tool.breaker {
        Some(BreakerState::Open) => {
            let failures = tool.failures;
            let message = format!("breaker open, {failures} failures in a row{said}");
            let mut problem = Problem::new(Severity::Error, &tool.name, message, &path, "See why");
            problem.until_ms = tool.trial_at_ms;
            return Some(problem);
        }
        Some(BreakerState::HalfOpen) => {
            let message = format!("breaker half-open, one trial decides{said}");
            return Some(Problem::new(
                Severity::Warning,
                &tool.name,
                message,
                &path,
                "See why",
            ));
        }
        Some(BreakerState::Closed) | None => {}
    }
    let rate = tool
        .recent
        .error_rate()
        .filter(|rate| *rate >= ERROR_RATE)?;
    if tool.recent.ran < CALLS_MIN {
        return None;
    }
    let message = format!(
        "{:.0} % of the calls it ran failed in the last 5 minutes{said}",
        rate * 100.0
    );
    Some(Problem::new(
        Severity::Warning,
        &tool.name,
        message,
        &path,
        "See why",
    ))
}

/// Calls that run for long, in view of what they may take.
fn of_running(lanes: &Lanes) -> Vec<Problem> {
    let now_ms = steadyhand::clock::wall_ms();
    let calls = lanes
        .lanes
        .iter()
        .flat_map(|lane| lane.running.iter().map(move |call| (lane, call)));
    calls
        .filter(|(_, call)| {
            let elapsed_ms = now_ms.saturating_sub(call.started_ms + call.approval_ms) as f64;
            !call.waiting && elapsed_ms >= HUNG_MS && elapsed_ms >= HUNG_SHARE * call.deadline_ms
        })
        .map(|(lane, call)| {
            let message = "a call runs for more than half of the time it may take".to_owned();
            let path = page("calls", &call.id);
            let mut problem = Problem::new(
                Severity::Warning,
                &lane.tool,
                message,
                &path,
                "See the call",
            );
            let begun_ms = call.started_ms + call.approval_ms;
            problem.until_ms = Some(begun_ms + call.deadline_ms as u64);
            problem
        })
        .collect()
}

/// A tool that is kept away until somebody has looked at what it says of itself.
fn of_change(change: &Change) -> Option<Problem> {
    if !change.quarantined {
        return None;
    }
    let message = match change.differences.is_empty() {
        true if change.is_new => "it is new; it is kept away until it is accepted",
        true => "its definition is suspicious; it is kept away until it is accepted",
        false => "its definition changed; it is kept away until it is accepted",
    };
    let path = page("tools", &change.tool);
    Some(Problem::new(
        Severity::Warning,
        &change.tool,
        message.to_owned(),
        &path,
        "See what changed",
    ))
}

/// What no other line tells: slow on average, arguments that do not fit, answers of models that are broken.
fn of_alert(alert: &Alert) -> Problem {
    let said = alert.message.strip_prefix(&format!("{}: ", alert.subject));
    let message = said.unwrap_or(&alert.message).to_owned();
    let see = "See the alert";
    Problem::new(Severity::Warning, &alert.subject, message, "/alerts", see)
}

/// A call that waits for a yes.
fn of_approval(approval: &Approval) -> Problem {
    let caller = approval.caller.as_deref().unwrap_or("unknown");
    let message = format!("waits for a yes or a no, asked by {caller}");
    let (tool, see) = (&approval.tool, "Decide");
    let mut problem = Problem::new(Severity::Warning, tool, message, "/approvals", see);
    problem.until_ms = Some(approval.expires_ms);
    problem
}

/// The address of a page about something that has a name of its own.
pub fn page(kind: &str, name: &str) -> String {
    format!("/{kind}/{}", in_path(name))
}

/// A name as a part of a path.
fn in_path(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC)
        .to_string()
        .replace("%5F", "_")
        .replace("%2D", "-")
        .replace("%2E", ".")
}
