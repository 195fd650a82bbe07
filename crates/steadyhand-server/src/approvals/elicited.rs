//! The question as a form at the caller's own MCP client, where a person there may answer it.

use std::convert::Infallible;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use steadyhand::{Asked, cut};
use steadyhand_mcp::{Counterpart, Passage, Question};

use super::approval::{Approval, Decision};
use super::desk::Desk;

/// What a form shows of arguments.
const SHOWN_BYTES_MAX: usize = 2 * 1024;

/// Whether the call comes from a client that can be asked.
pub(super) fn can_ask(asked: &Asked<'_>) -> bool {
    let passage = asked.luggage::<Passage>();
    passage.and_then(Passage::decider).is_some()
}

/// Asks there, and says at the desk what was answered. Never ends: a form that is closed is no answer where somebody
/// else may still say yes.
pub(super) async fn ask(asked: &Asked<'_>, approval: &Approval, desk: &Desk) -> Infallible {
    let passage = asked.luggage::<Passage>();
    if let Some(client) = passage.and_then(Passage::decider) {
        let said = answered(Arc::clone(client), approval).await;
        let said = said.or_else(|| (!desk.is_listed()).then_some((false, None)));
        if let Some((is_yes, reason)) = said {
            // Somebody was faster: theirs counts.
            let _ = desk.decide(&approval.id, decision(approval, is_yes, reason));
        }
    }
    std::future::pending().await
}

fn decision(approval: &Approval, is_yes: bool, reason: Option<String>) -> Decision {
    Decision {
        is_yes,
        arguments_hash: approval.arguments_hash.clone(),
        reason,
        by: match &approval.caller {
            Some(caller) => format!("whoever sits at {}", caller.trim_start_matches('@')),
            None => "whoever sits at the client".to_owned(),
        },
        not_of: None,
    }
}

/// Yes or no, and why not; none where nothing was said.
async fn answered(
    client: Arc<dyn Counterpart>,
    approval: &Approval,
) -> Option<(bool, Option<String>)> {
    let question = Question {
        key: "steadyhand-approval".to_owned(),
        method: "elicitation/create".to_owned(),
        params: Some(to_raw_value(&form(approval)).ok()?),
    };
    let answers = client.ask(vec![question]).await;
    let answer = answers.into_iter().next()?.ok()?;
    read(&answer)
}

fn form(approval: &Approval) -> Value {
    let arguments = cut::value(&approval.arguments, SHOWN_BYTES_MAX);
    json!({
        "message": format!("{} wants to run with {arguments}", approval.tool),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": "May it run?",
                    "enum": ["approve", "deny"],
                },
                "reason": {
                    "type": "string",
                    "title": "Why not",
                    "description": "The model is told",
                    "maxLength": 500,
                },
            },
            "required": ["decision"],
        },
    })
}

/// Only what says yes in so many words is a yes.
fn read(answer: &RawValue) -> Option<(bool, Option<String>)> {
    #[derive(Deserialize)]
    struct Answer {
        action: String,
        #[serde(default)]
        content: Value,
    }
    let answer: Answer = steadyhand::typed_json::from_str(answer.get()).ok()?;
    let reason = answer.content["reason"].as_str().map(str::to_owned);
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    match (answer.action.as_str(), answer.content["decision"].as_str()) {
        ("accept", Some("approve")) => Some((true, None)),
        ("accept", Some("deny")) | ("decline", _) => Some((false, reason)),
        _ => None,
    }
}
