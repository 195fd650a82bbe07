//! A call that waits for a person, what somebody says to it, and why that may be nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::hidden::HiddenPart;

/// A call that waits for a person, or did
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Approval {
    /// Its name
    pub id: String,
    /// waiting, approved, denied, expired or withdrawn
    pub state: ApprovalState,
    /// The tool
    pub tool: String,
    /// What it would get, secrets hidden
    pub arguments: Value,
    /// A part of the arguments is not shown: they are too large
    pub arguments_cut: bool,
    /// The parts that are not shown: secrets, and what is too large. A yes to them takes `unseen`
    pub hidden: Vec<HiddenPart>,
    /// What a yes is bound to: send it with the decision
    pub arguments_hash: String,
    /// ask or always
    pub approval: &'static str,
    /// The call
    pub call_id: String,
    /// Who asks
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub caller: Option<String>,
    /// In which conversation
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub conversation: Option<String>,
    /// In milliseconds since 1970
    pub asked_ms: u64,
    /// When it is too late
    pub expires_ms: u64,
    /// When it was decided, expired or withdrawn
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub decided_ms: Option<u64>,
    /// Who decided
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub decided_by: Option<String>,
    /// From where, for the audit log: `rest`, `dashboard`, `command`, `mcp`
    #[serde(skip)]
    pub decided_from: Option<&'static str>,
    /// Why not
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub reason: Option<String>,
}

/// A call of another process on this machine that waits for a person there; it may be decided here, too
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ApprovalRequest)]
pub struct Foreign {
    /// The tool
    pub tool: String,
    /// What it would get, secrets hidden
    pub arguments: Value,
    /// A part of the arguments is not shown
    #[serde(default)]
    pub arguments_cut: bool,
    /// The parts that are not shown
    #[serde(default)]
    pub hidden: Vec<HiddenPart>,
    /// What a yes is bound to
    pub arguments_hash: String,
    /// Whether it asks every time
    #[serde(default)]
    pub always: bool,
    /// The call
    pub call_id: String,
    /// In which conversation
    pub conversation: Option<String>,
    /// How long it waits
    pub wait_ms: u64,
}

impl Foreign {
    pub(super) fn into_approval(
        self,
        id: String,
        caller: String,
        asked_ms: u64,
        expires_ms: u64,
    ) -> Approval {
        Approval {
            id,
            state: ApprovalState::Waiting,
            tool: self.tool,
            arguments: self.arguments,
            arguments_cut: self.arguments_cut,
            hidden: self.hidden,
            arguments_hash: self.arguments_hash,
            approval: if self.always { "always" } else { "ask" },
            call_id: self.call_id,
            caller: Some(caller),
            conversation: self.conversation,
            asked_ms,
            expires_ms,
            decided_ms: None,
            decided_by: None,
            decided_from: None,
            reason: None,
        }
    }
}

/// Where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalState {
    /// Nobody has said anything.
    Waiting,
    /// Somebody said yes.
    Approved,
    /// Somebody said no.
    Denied,
    /// Nobody said anything in time.
    Expired,
    /// Whoever asked does not want it any more.
    Withdrawn,
}

impl ApprovalState {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            ApprovalState::Waiting => "waiting",
            ApprovalState::Approved => "approved",
            ApprovalState::Denied => "denied",
            ApprovalState::Expired => "expired",
            ApprovalState::Withdrawn => "withdrawn",
        }
    }
}

/// What somebody says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Yes.
    pub is_yes: bool,
    /// The hash of the arguments that were seen.
    pub arguments_hash: String,
    /// The parts that are not shown are meant, too.
    pub unseen: bool,
    /// Why not.
    pub reason: Option<String>,
    /// Who.
    pub by: String,
    /// From where, as the audit log names it.
    pub from: &'static str,
    /// Whose calls it must not be: nobody says yes to what they ask for themselves.
    pub not_of: Option<String>,
}

/// Why a decision is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotDecide {
    /// Nothing of this name waits, nor did.
    #[error("there is no approval {0:?}")]
    NoSuchApproval(String),
    /// It is not waiting any more.
    #[error("{id} is not waited for any more: {state}")]
    IsOver {
        /// The approval.
        id: String,
        /// What became of it.
        state: &'static str,
    },
    /// The arguments are other ones than those that were seen.
    #[error("the arguments of {0} are not the ones this decision is about")]
    OtherArguments(String),
    /// A yes to arguments that are not all shown, and nobody said that those are meant, too.
    #[error("parts of the arguments of {id} are not shown: {}", in_words(.hidden))]
    Unseen {
        /// The approval.
        id: String,
        /// What is not shown.
        hidden: Vec<HiddenPart>,
    },
    /// It is the decider's own call.
    #[error("{0} is a call of the very one who decides")]
    OwnCall(String),
}

/// The parts that are not shown, one after the other.
pub fn in_words(hidden: &[HiddenPart]) -> String {
    let parts: Vec<String> = hidden.iter().map(HiddenPart::in_words).collect();
    parts.join("; ")
}
