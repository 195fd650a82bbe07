//! What is told live. Small on purpose: ids and outcomes, never arguments, results or messages of tools.

use serde::Serialize;
use steadyhand::{BreakerState, Effect, FailureCode, Status};
use utoipa::ToSchema;

use steadyhand_store::history::CallState;

/// The longest name or id that is told; longer ones come from callers who make them up.
pub(super) const NAME_BYTES_MAX: usize = 256;
/// The longest text.
pub(super) const TEXT_BYTES_MAX: usize = 256;

/// Something happened. Its type is the `event` of the stream, its fields the `data`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum LiveEvent {
    /// `call_started`
    CallStarted(CallStarted),
    /// `call_progress`
    CallProgress(CallProgress),
    /// `attempt_failed`
    AttemptFailed(AttemptFailed),
    /// `fallback_started`
    FallbackStarted(FallbackStarted),
    /// `call_finished`
    CallFinished(CallFinished),
    /// `breaker_changed`
    BreakerChanged(BreakerChanged),
    /// `config_changed`
    ConfigChanged(ConfigChanged),
    /// `server_changed`
    ServerChanged(ServerChanged),
    /// `tools_changed`
    ToolsChanged(ToolsChanged),
    /// `alert_changed`
    AlertChanged(AlertChanged),
    /// `approval_changed`
    ApprovalChanged(ApprovalChanged),
    /// `exchange`
    Exchange(ExchangeTold),
    /// `snapshot`
    Snapshot(Snapshot),
    /// `skipped`
    Skipped(Skipped),
}

impl LiveEvent {
    /// All types, as they stand in the stream.
    pub const TYPES: [&'static str; 14] = [
        "call_started",
        "call_progress",
        "attempt_failed",
        "fallback_started",
        "call_finished",
        "breaker_changed",
        "config_changed",
        "server_changed",
        "tools_changed",
        "alert_changed",
        "approval_changed",
        "exchange",
        "snapshot",
        "skipped",
    ];

    /// Its type, as it stands in the stream.
    pub fn kind(&self) -> &'static str {
        match self {
            LiveEvent::CallStarted(_) => "call_started",
            LiveEvent::CallProgress(_) => "call_progress",
            LiveEvent::AttemptFailed(_) => "attempt_failed",
            LiveEvent::FallbackStarted(_) => "fallback_started",
            LiveEvent::CallFinished(_) => "call_finished",
            LiveEvent::BreakerChanged(_) => "breaker_changed",
            LiveEvent::ConfigChanged(_) => "config_changed",
            LiveEvent::ServerChanged(_) => "server_changed",
            LiveEvent::ToolsChanged(_) => "tools_changed",
            LiveEvent::AlertChanged(_) => "alert_changed",
            LiveEvent::ApprovalChanged(_) => "approval_changed",
            LiveEvent::Exchange(_) => "exchange",
            LiveEvent::Snapshot(_) => "snapshot",
            LiveEvent::Skipped(_) => "skipped",
        }
    }

    /// The tool it is about, if it is about one.
    pub fn tool(&self) -> Option<&str> {
        match self {
            LiveEvent::CallStarted(event) => Some(&event.tool),
            LiveEvent::CallProgress(event) => Some(&event.tool),
            LiveEvent::AttemptFailed(event) => Some(&event.tool),
            LiveEvent::FallbackStarted(event) => Some(&event.tool),
            LiveEvent::CallFinished(event) => Some(&event.tool),
            LiveEvent::BreakerChanged(event) => Some(&event.tool),
            LiveEvent::ApprovalChanged(event) => Some(&event.tool),
            LiveEvent::AlertChanged(_)
            | LiveEvent::ConfigChanged(_)
            | LiveEvent::ServerChanged(_)
            | LiveEvent::ToolsChanged(_)
            | LiveEvent::Exchange(_)
            | LiveEvent::Snapshot(_)
            | LiveEvent::Skipped(_) => None,
        }
    }

    /// The same with texts of a size that is worth telling. Those about calls are made that way.
    pub(super) fn bounded(mut self) -> LiveEvent {
        let text = |text: &mut Option<String>| {
            if let Some(text) = text {
                *text = bounded(text, TEXT_BYTES_MAX);
            }
        };
        match &mut self {
            LiveEvent::ConfigChanged(event) => text(&mut event.problem),
            LiveEvent::ServerChanged(event) => {
                event.server = bounded(&event.server, NAME_BYTES_MAX);
                event.state = bounded(&event.state, NAME_BYTES_MAX);
                text(&mut event.detail);
            }
            LiveEvent::ToolsChanged(event) => text(&mut event.source),
            LiveEvent::AlertChanged(event) => {
                event.subject = bounded(&event.subject, NAME_BYTES_MAX);
                event.message = bounded(&event.message, TEXT_BYTES_MAX);
            }
            LiveEvent::ApprovalChanged(event) => {
                event.call_id = bounded(&event.call_id, NAME_BYTES_MAX);
            }
            LiveEvent::Exchange(event) => text(&mut event.model),
            LiveEvent::CallStarted(_)
            | LiveEvent::CallProgress(_)
            | LiveEvent::AttemptFailed(_)
            | LiveEvent::FallbackStarted(_)
            | LiveEvent::CallFinished(_)
            | LiveEvent::BreakerChanged(_)
            | LiveEvent::Snapshot(_)
            | LiveEvent::Skipped(_) => {}
        }
        self
    }

    /// About how much memory its texts take.
    pub(super) fn text_bytes(&self) -> usize {
        match self {
            LiveEvent::CallStarted(event) => {
                event.id.len() + event.tool.len() + event.caller.as_ref().map_or(0, String::len)
            }
            LiveEvent::CallProgress(event) => {
                event.id.len() + event.tool.len() + event.message.len()
            }
            LiveEvent::AttemptFailed(event) => event.id.len() + event.tool.len(),
            LiveEvent::FallbackStarted(event) => {
                event.id.len() + event.tool.len() + event.fallback.as_ref().map_or(0, String::len)
            }
            LiveEvent::CallFinished(event) => {
                let texts = [&event.caller, &event.source];
                let texts = texts
                    .iter()
                    .map(|text| text.as_ref().map_or(0, String::len));
                event.id.len() + event.tool.len() + texts.sum::<usize>()
            }
            LiveEvent::BreakerChanged(event) => event.tool.len(),
            LiveEvent::ConfigChanged(event) => event.problem.as_ref().map_or(0, String::len),
            LiveEvent::ServerChanged(event) => {
                event.server.len()
                    + event.state.len()
                    + event.detail.as_ref().map_or(0, String::len)
            }
            LiveEvent::ToolsChanged(event) => event.source.as_ref().map_or(0, String::len),
            LiveEvent::AlertChanged(event) => {
                event.id.len() + event.subject.len() + event.message.len()
            }
            LiveEvent::ApprovalChanged(event) => {
                event.id.len() + event.tool.len() + event.call_id.len()
            }
            LiveEvent::Exchange(event) => {
                event.model.as_ref().map_or(0, String::len) + event.codes.len() * 16
            }
            LiveEvent::Snapshot(_) | LiveEvent::Skipped(_) => 0,
        }
    }
}

/// A call came in. Left out where its end is told in the same breath.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct CallStarted {
    /// Tells two calls apart that share an id
    pub number: u64,
    /// The call's id
    pub id: String,
    /// The tool it asks for
    pub tool: String,
    /// In milliseconds since 1970
    pub started_ms: u64,
    /// Who asks
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub caller: Option<String>,
}

/// How far a call is; at most twice a second for each.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct CallProgress {
    /// The call
    pub number: u64,
    /// The call's id
    pub id: String,
    /// Its tool
    pub tool: String,
    /// How much is done
    pub done: f64,
    /// Of how much
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub total: Option<f64>,
    /// In words
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub message: String,
}

/// An attempt failed, and there will be another.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct AttemptFailed {
    /// The call
    pub number: u64,
    /// The call's id
    pub id: String,
    /// Its tool
    pub tool: String,
    /// Counts from 1
    pub attempt: u32,
    /// Why
    #[schema(value_type = String, example = "TIMEOUT")]
    pub code: FailureCode,
    /// The wait before the next
    pub retry_in_ms: f64,
}

/// The tool failed, and something else is asked in its place.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FallbackStarted {
    /// The call
    pub number: u64,
    /// The call's id
    pub id: String,
    /// The tool that failed
    pub tool: String,
    /// The tool that is asked instead, if it is one
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub fallback: Option<String>,
}

/// A call ended. `GET /v1/calls/{id}` has the rest.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct CallFinished {
    /// The call
    pub number: u64,
    /// The call's id
    pub id: String,
    /// The tool it asked for
    pub tool: String,
    /// When it came in, in milliseconds since 1970
    pub started_ms: u64,
    /// All of it
    pub took_ms: f64,
    /// How it ended
    #[schema(value_type = String, example = "success")]
    pub status: Status,
    /// The same in the word of lists: ok, error, timeout, cancelled, rejected
    pub state: CallState,
    /// Who asked
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub caller: Option<String>,
    /// Where the tool comes from
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub source: Option<String>,
    /// Why it failed
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = String)]
    pub code: Option<FailureCode>,
    /// What a failed call did out there
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = String, example = "unknown")]
    pub effect: Option<Effect>,
    /// How often the tool was started; left out when once
    #[serde(skip_serializing_if = "is_one")]
    #[schema(required = false)]
    pub attempts: u32,
    /// A fallback answered in the tool's place
    #[serde(skip_serializing_if = "is_false")]
    #[schema(required = false)]
    pub fallback_used: bool,
}

/// A breaker moved.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct BreakerChanged {
    /// The tool
    pub tool: String,
    /// Before
    #[schema(value_type = String, example = "closed")]
    pub from: BreakerState,
    /// After
    #[schema(value_type = String, example = "open")]
    pub to: BreakerState,
    /// In milliseconds since 1970
    pub at_ms: u64,
}

/// A configuration was put in force, or was refused and the one before stays.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ConfigChanged {
    /// The one in force now
    pub generation: u64,
    /// In milliseconds since 1970
    pub at_ms: u64,
    /// Why a new one was refused
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub problem: Option<String>,
}

/// An MCP server is in another state.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ServerChanged {
    /// Its name
    pub server: String,
    /// One word
    pub state: String,
    /// In milliseconds since 1970
    pub at_ms: u64,
    /// Why, in words
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub detail: Option<String>,
}

/// There are other tools than before.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ToolsChanged {
    /// How many there are now
    pub count: usize,
    /// In milliseconds since 1970
    pub at_ms: u64,
    /// The source whose tools are others
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub source: Option<String>,
}

/// An alert was raised, acknowledged, silenced or is over.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct AlertChanged {
    /// The alert: `GET /v1/alerts` has the rest
    pub id: String,
    /// raised, acknowledged or cleared
    pub state: String,
    /// What is watched
    pub watched: String,
    /// The tool or server it is about
    pub subject: String,
    /// In words
    pub message: String,
    /// In milliseconds since 1970
    pub at_ms: u64,
}

/// A call waits for a yes, or does not any more.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ApprovalChanged {
    /// The approval: `GET /v1/approvals` has the rest
    pub id: String,
    /// waiting, approved, denied, expired or withdrawn
    pub state: String,
    /// The tool
    pub tool: String,
    /// The call
    pub call_id: String,
    /// In milliseconds since 1970
    pub at_ms: u64,
}

/// An exchange with a provider through the proxy in which something was mended, refused, broken or missing.
/// `GET /v1/exchanges` has the rest.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ExchangeTold {
    /// The name in the proxy's address
    pub provider: String,
    /// The model that was asked
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub model: Option<String>,
    /// When it ended, in milliseconds since 1970
    pub at_ms: u64,
    /// The status that was answered
    pub status: u16,
    /// How many changes were made to the conversation
    pub fixes: usize,
    /// How much is wrong with the calls in the answer
    pub problems: usize,
    /// The kinds of both, each once
    pub codes: Vec<&'static str>,
    /// Why there was no answer, or no whole one
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub failure: Option<&'static str>,
    /// The provider refused the conversation by a rule that we do not know
    #[serde(skip_serializing_if = "is_false")]
    #[schema(required = false)]
    pub unknown_rule: bool,
}

/// What is to be known now, for a reader that cannot go on from where it was: everything it showed before is void.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Snapshot {
    /// Why it is sent
    pub reason: SnapshotReason,
    /// Calls that run now, the oldest first; at most 200
    pub running: Vec<CallStarted>,
    /// How many there are
    pub running_count: usize,
    /// Breakers that are not closed; at most 200
    pub breakers: Vec<BreakerNow>,
}

/// Why a snapshot is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotReason {
    /// The reader is new.
    Start,
    /// What it has not seen is no longer kept.
    TooOld,
    /// It comes from another run of the program.
    OtherRun,
}

/// Where a breaker stands.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct BreakerNow {
    /// The tool
    pub tool: String,
    /// Its state
    #[schema(value_type = String, example = "open")]
    pub state: BreakerState,
}

/// Events are missing here: the reader, or we, were too slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Skipped {
    /// At most so many
    pub count: u64,
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A text from outside, cut to a size.
pub(super) fn bounded(text: &str, bytes_max: usize) -> String {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
