//! The question as a form at the caller's own MCP client, where a person there may answer it.

use std::convert::Infallible;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use steadyhand::Asked;
use steadyhand_mcp::{Counterpart, Passage, Question};

use super::approval::{Approval, Decision, in_words};
use super::desk::Desk;

/// Whether the call comes from a client that can be asked, and may be: the configuration says so.
pub(super) fn can_ask(asked: &Asked<'_>, desk: &Desk) -> bool {
    desk.may_ask_caller() && has_forms(asked)
}

/// Whether the call comes from a client that can show a form.
pub(super) fn has_forms(asked: &Asked<'_>) -> bool {
    let passage = asked.luggage::<Passage>();
    passage.and_then(Passage::decider).is_some()
}

/// Asks there, and says at the desk what was answered. Never ends: a form that is closed is no answer where somebody
/// else may still say yes.
pub(super) async fn ask(asked: &Asked<'_>, approval: &Approval, desk: &Desk) -> Infallible {
    let passage = asked.luggage::<Passage>().filter(|_| desk.may_ask_caller());
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
        // Asked for by a form of its own.
        unseen: is_yes && !approval.hidden.is_empty(),
        reason,
        by: match &approval.caller {
            Some(caller) => format!("whoever sits at {}", caller.trim_start_matches('@')),
            None => "whoever sits at the client".to_owned(),
        },
        from: "mcp",
        not_of: None,
    }
}

/// Yes or no, and why not; none where nothing was said.
async fn answered(
    client: Arc<dyn Counterpart>,
    approval: &Approval,
) -> Option<(bool, Option<String>)> {
    let said = asked("steadyhand-approval", &form(approval), &client).await?;
    if !said.0 || approval.hidden.is_empty() {
        return Some(said);
    }
    // The second step: a yes to what nobody was shown.
    asked(
        "steadyhand-approval-unseen",
        &unseen_form(approval),
        &client,
    )
    .await
}

async fn asked(
    key: &str,
    form: &Value,
    client: &Arc<dyn Counterpart>,
) -> Option<(bool, Option<String>)> {
    let question = Question {
        key: key.to_owned(),
        method: "elicitation/create".to_owned(),
        params: Some(to_raw_value(form).ok()?),
    };
    let answers = Arc::clone(client).ask(vec![question]).await;
    let answer = answers.into_iter().next()?.ok()?;
    read(&answer)
}

fn form(approval: &Approval) -> Value {
    let (tool, arguments) = (&approval.tool, &approval.arguments);
    let mut message = format!("{tool} wants to run with {arguments}");
    if !approval.hidden.is_empty() {
        message.push_str(&format!(". Not shown: {}", in_words(&approval.hidden)));
    }
    question(&message)
}

fn unseen_form(approval: &Approval) -> Value {
    question(&format!(
        "Parts of the arguments of {} are not shown: {}. Approve them unseen? The arguments as a whole: {}",
        approval.tool,
        in_words(&approval.hidden),
        approval.arguments_hash,
    ))
}

fn question(message: &str) -> Value {
    json!({
        "message": message,
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
