//! What is to be known at a glance: what is broken, how tools fare, what runs. `GET /v1/overview` answers it, and the
//! dashboard's first page shows it.

pub mod changes;
mod lanes;
mod problems;
mod tools;

use serde::Serialize;
use utoipa::ToSchema;

use crate::http::App;
use crate::views;
pub use lanes::{Lane, Lanes};
pub use problems::{Problem, Severity, page};
use steadyhand_runtime::approvals::{Approval, ApprovalState};
use steadyhand_store::history::{CallSummary, Filter, Fleet, Health, Mark, Trends, Window};
pub use tools::ToolRow;

/// Calls that are listed as the last ones.
const RECENT: usize = 12;
/// Running calls that are listed.
const RUNNING_MAX: usize = 200;

/// What is to be known at a glance
#[derive(Debug, Serialize, ToSchema)]
pub struct Overview {
    /// When this was so, in milliseconds since 1970
    pub at_ms: u64,
    /// What is broken, the most severe first; empty when all tools answer
    pub problems: Vec<Problem>,
    pub figures: Figures,
    /// The last half minute
    pub lanes: Lanes,
    /// Those in trouble first
    pub tools: Vec<ToolRow>,
    /// The last calls, the newest first
    pub recent: Vec<CallSummary>,
    /// All tools together, minute by minute, with what changed; absent when the history cannot be read
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub hour: Option<Trends>,
    /// Why the history cannot be read
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub history_problem: Option<String>,
}

/// The figures of the first line
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OverviewFigures)]
pub struct Figures {
    /// Calls that run now
    pub in_flight: usize,
    /// Of those, the ones that wait for a place
    pub queued: u64,
    /// Calls that ended in the last minute
    pub calls_1m: u64,
    /// Errors and time-outs among the calls of the last five minutes whose tool ran, 0 to 1; absent if none ran
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub error_rate_5m: Option<f64>,
    /// 95 in 100 calls of the last five minutes were at least this fast, in milliseconds
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub p95_5m: Option<f64>,
    /// Breakers that are not closed
    pub breakers_open: usize,
    /// Tools that have one
    pub breakers: usize,
    /// Servers that run, or would on demand
    pub servers_up: usize,
    /// MCP servers in use
    pub servers: usize,
    pub tools: usize,
    /// Calls that wait for a yes
    pub waiting: usize,
    /// Alerts that are not over
    pub alerts: usize,
}

/// What the history knows, read in one go.
struct Past {
    fleet: Fleet,
    hour: Trends,
    recent: Vec<CallSummary>,
}

/// Looks at everything now.
pub async fn look(app: &App) -> Overview {
    let past = views::calls::ask(&app.history, |history| {
        Ok(Past {
            fleet: history.fleet()?,
            hour: history.trends(None, Window::Hour)?,
            recent: history.page(&Filter::default(), None, RECENT)?.calls,
        })
    });
    let (past, history_problem) = match past.await {
        Ok(past) => (Some(past), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let at_ms = steadyhand::clock::wall_ms();
    let (fleet, hour, recent) = match past {
        Some(past) => (past.fleet, Some(past.hour), past.recent),
        None => (Fleet::default(), None, Vec::new()),
    };
    let pulse = app.live.pulse(at_ms.saturating_sub(60_000));
    let marks: &[Mark] = hour.as_ref().map_or(&[], |hour| &hour.marks);
    let waiting = waiting(app);
    let lanes = lanes::lanes(app, &pulse, at_ms, marks);
    let tools = tools::rows(app, &fleet, &pulse);
    let servers = app.runtime.servers();
    let problems = problems::all(app, &tools, &servers, &lanes, &waiting);
    let seconds = pulse.values().flat_map(|tool| &tool.seconds);
    let is_up = |server: &&steadyhand_mcp::ServerState| {
        use steadyhand_mcp::Phase;
        matches!(server.phase, Phase::Running | Phase::Idle)
    };
    let figures = Figures {
        in_flight: app.admission.running.count(),
        queued: tools.iter().map(|tool| tool.queued).sum(),
        calls_1m: seconds.map(|one| u64::from(one.ok + one.failed)).sum(),
        error_rate_5m: fleet.recent.error_rate(),
        p95_5m: fleet.recent.p95,
        breakers_open: tools.iter().filter(|tool| tool.is_guarded()).count(),
        breakers: tools.iter().filter(|tool| tool.breaker.is_some()).count(),
        servers_up: servers.iter().filter(is_up).count(),
        servers: servers.len(),
        tools: tools.len(),
        waiting: waiting.len(),
        alerts: app.alerts.active(),
    };
    Overview {
        at_ms,
        problems,
        figures,
        lanes,
        tools,
        recent,
        hour,
        history_problem,
    }
}

/// Calls that wait for a yes, the oldest first.
fn waiting(app: &App) -> Vec<Approval> {
    let all = app.desk.list().into_iter();
    all.filter(|approval| approval.state == ApprovalState::Waiting)
        .collect()
}

/// How the history fares, in a sentence, if it does not fare well.
pub fn history_trouble(health: &Health) -> Option<String> {
    let reason = health.reason.as_deref()?;
    Some(format!("Calls are not written down: {reason}"))
}
