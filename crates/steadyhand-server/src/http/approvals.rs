//! Calls that wait for a person: listed, allowed, denied.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::limits::{Sent, Wanted};
use super::status::{self, Refused, Why};
use super::{App, Asking, Caller, Named, shapes};
use steadyhand_runtime::access::By;
use steadyhand_runtime::approvals::{Approval, ApprovalState, CannotDecide, Decision, Foreign};

/// A yes or a no
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ApprovalDecision, example = json!({"decision": "deny", "arguments_hash": "sha256:…", "reason": "not at night"}))]
pub struct Decided {
    /// approve or deny
    pub decision: YesOrNo,
    /// What was seen: `arguments_hash` of the approval
    pub arguments_hash: String,
    /// With a yes: the parts that are not shown (`hidden`) are approved, too
    #[serde(default)]
    pub unseen: bool,
    /// Why not; the model is told
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ApprovalChoice)]
pub enum YesOrNo {
    Approve,
    Deny,
}

impl Wanted for Decided {
    const SHAPE: &'static str = "an object: {decision, arguments_hash}";
    const EXAMPLE: &'static str = r#"{"decision": "approve", "arguments_hash": "sha256:…"}"#;
}

/// Calls that wait for a yes
///
/// The oldest first, then those that were decided lately. Who may only call sees its own.
#[utoipa::path(
    get,
    operation_id = "list_approvals",
    path = "/v1/approvals",
    tag = "approvals",
    responses(
        (status = 200, description = "The approvals", body = shapes::ApprovalList),
        shapes::Errors,
    )
)]
pub async fn list(State(app): State<Arc<App>>, Asking(identity): Asking) -> Response {
    let approvals: Vec<Approval> = app
        .desk
        .list()
        .into_iter()
        .filter(|approval| identity.sees(approval.caller.as_deref()))
        .collect();
    let is_waiting = |approval: &&Approval| approval.state == ApprovalState::Waiting;
    status::answer(&json!({
        "waiting": approvals.iter().filter(is_waiting).count(),
        "count": approvals.len(),
        "approvals": approvals,
    }))
}

impl Wanted for Foreign {
    const SHAPE: &'static str = "an object: {tool, arguments, arguments_hash, call_id, wait_ms}";
    const EXAMPLE: &'static str = r#"{"tool": "unlock", "arguments": {}, "arguments_hash": "sha256:…", "call_id": "c1", "wait_ms": 60000}"#;
}

/// Ask on behalf of another process
///
/// For commands on this machine: a call that waits in their own process is listed here, too. Answered when it is
/// decided, has expired, or the server ends.
#[utoipa::path(
    post,
    operation_id = "request_approval",
    path = "/v1/approvals",
    tag = "approvals",
    request_body = Foreign,
    responses(
        (status = 200, description = "What was decided", body = Approval),
        shapes::BodyErrors,
    )
)]
pub async fn ask(
    State(app): State<Arc<App>>,
    caller: Caller,
    sent: Sent<Foreign>,
) -> Result<Response, Refused> {
    let decided = app.desk.decided_for(sent.value, caller.name.to_string());
    tokio::select! {
        decided = decided => match decided {
            Some(approval) => Ok(status::answer(&approval)),
            None => Err(Refused::new(
                Why::Busy,
                "too many calls wait for approval already",
                "Decide some of them: steadyhand approvals",
            )),
        },
        () = app.closing.cancelled() => Err(Refused::new(
            Why::ShuttingDown,
            "the server is about to end",
            "Ask the person where the call is made",
        )),
    }
}

/// Say yes or no
///
/// To one call, once. Refused if the arguments are others than those that were seen, and if parts of them are not shown
/// (`hidden`) and the yes does not say `unseen`. The call's deadline starts after the yes.
#[utoipa::path(
    post,
    operation_id = "decide_approval",
    path = "/v1/approvals/{id}",
    tag = "approvals",
    params(("id" = String, Path, description = "The approval")),
    request_body = Decided,
    responses(
        (status = 200, description = "The approval as it is now", body = Approval),
        shapes::NamedBodyErrors,
    )
)]
pub async fn decide(
    State(app): State<Arc<App>>,
    Named(id): Named,
    caller: Caller,
    sent: Sent<Decided>,
) -> Result<Response, Refused> {
    let said = sent.value;
    let from = match caller.identity.by {
        By::Local => "command",
        By::Nothing | By::Token | By::Key | By::Jwt => "rest",
    };
    let decided = say(&app, &caller, &id, said, from)?;
    Ok(status::answer(&decided))
}

/// What somebody says to one call, and from where.
pub fn say(
    app: &App,
    caller: &Caller,
    id: &str,
    said: Decided,
    from: &'static str,
) -> Result<Approval, Refused> {
    let decision = Decision {
        is_yes: said.decision == YesOrNo::Approve,
        arguments_hash: said.arguments_hash,
        unseen: said.unseen,
        reason: said.reason.filter(|reason| !reason.trim().is_empty()),
        by: caller.name.trim_start_matches('@').to_owned(),
        from,
        not_of: caller.identity.name.as_deref().map(str::to_owned),
    };
    let decided = app.desk.decide(id, decision);
    decided.map_err(|cannot| refused(&cannot))
}

fn refused(cannot: &CannotDecide) -> Refused {
    let message = cannot.to_string();
    match cannot {
        CannotDecide::NoSuchApproval(_) => Refused::new(
            Why::NoSuchApproval,
            message,
            "GET /v1/approvals lists those that wait",
        ),
        CannotDecide::IsOver { .. } => Refused::new(
            Why::CannotDecide,
            message,
            "Nothing was changed; GET /v1/approvals says what became of it",
        ),
        CannotDecide::OtherArguments(_) => Refused::new(
            Why::CannotDecide,
            message,
            "Look at the arguments again, and send their arguments_hash; nothing was run",
        ),
        CannotDecide::Unseen { hidden, .. } => Refused::new(
            Why::CannotDecide,
            message,
            "Find out what they are where the call comes from. Then approve them as well: steadyhand approve ID --unseen, or the same request with \"unseen\": true. Nothing was run",
        )
        .with("hidden", json!(hidden)),
        CannotDecide::OwnCall(_) => {
            Refused::new(Why::NotAllowed, message, "Somebody else must say yes")
        }
    }
}
