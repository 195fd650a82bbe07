//! What a conversation that somebody hands in says: is something open, is something asked?

use parking_lot::Mutex;
use serde_json::Value;
use steadyhand::{AiMessage, Call, Message, ToolMessage, answer_open_calls};
use tokio_util::sync::CancellationToken;

use super::calls::{finished, started};
use super::{Agent, Tell, grow, notice};
use crate::model::NoticeCode;

/// The answer, where the conversation ends with one. What was withdrawn or failed in the middle is none.
pub(super) fn answered(conversation: &[Message]) -> Option<String> {
    let Message::Ai(ai) = conversation.last()? else {
        return None;
    };
    let about = ai.extra.get("response_metadata");
    let is_part =
        about.is_some_and(|about| BROKEN_OFF.iter().any(|why| about["stop_reason"] == *why));
    (!wants_tools(ai) && !is_part).then(|| ai.content.text().into_owned())
}

/// The stop reasons of words that are no whole answer.
pub(super) const BROKEN_OFF: [&str; 2] = [CANCELLED, FAILED];
pub(super) const CANCELLED: &str = "cancelled";
pub(super) const FAILED: &str = "error";

/// What happened since the user spoke last.
pub(super) fn this_turn(conversation: &[Message]) -> &[Message] {
    let spoke = conversation
        .iter()
        .rposition(|message| matches!(message, Message::Human(_)));
    &conversation[spoke.map_or(0, |spoke| spoke + 1)..]
}

fn wants_tools(ai: &AiMessage) -> bool {
    !ai.tool_calls.is_empty() || !ai.invalid_tool_calls.is_empty()
}

impl Agent {
    /// Calls without a result, from a conversation that was cut off, get one. Under keys they are run, or their
    /// outcome is found; without, nobody knows what became of them, and that is said.
    pub(super) async fn answer_open_calls(
        &self,
        conversation: &mut Vec<Message>,
        cancel: &CancellationToken,
        tell: Tell<'_>,
    ) {
        if self.settings.key_prefix.is_some() {
            self.run_open_calls(conversation, cancel, tell).await;
        }
        let (answered, placeholders) = answer_open_calls(std::mem::take(conversation));
        *conversation = answered;
        if placeholders.is_empty() {
            return;
        }
        let names: Vec<&str> = placeholders.iter().map(|one| one.name.as_str()).collect();
        let text = format!(
            "{} calls had no result in the stored conversation ({}); the model is told so",
            placeholders.len(),
            names.join(", ")
        );
        tell(notice(NoticeCode::OpenCallsAnswered, text));
    }

    async fn run_open_calls(
        &self,
        conversation: &mut Vec<Message>,
        cancel: &CancellationToken,
        tell: Tell<'_>,
    ) {
        let last_ai = conversation
            .iter()
            .rposition(|message| matches!(message, Message::Ai(_)));
        let Some(at) = last_ai else { return };
        let Message::Ai(ai) = &conversation[at] else {
            return;
        };
        let after = &conversation[at + 1..];
        // Once the user has gone on, an answer would come out of turn.
        if after
            .iter()
            .any(|message| !matches!(message, Message::Tool(_)))
        {
            return;
        }
        let has_result = |id: &str| {
            after.iter().any(
                |message| matches!(message, Message::Tool(result) if result.tool_call_id == id),
            )
        };
        let open: Vec<Call> = ai
            .tool_calls
            .iter()
            .filter(|call| !has_result(&call.id))
            .map(|call| {
                self.call(
                    call.id.clone(),
                    &call.name,
                    Value::Object(call.args.clone()).into(),
                    at,
                    cancel,
                )
            })
            .collect();
        if open.is_empty() {
            return;
        }
        for call in &open {
            tell(started(call));
        }
        let told = Mutex::new(&mut *tell);
        let outcomes = self
            .executor
            .execute_batch_telling(open, |_, outcome| {
                let event = finished(outcome, outcome.message());
                told.lock()(event);
            })
            .await;
        let results: Vec<ToolMessage> = outcomes.iter().map(|outcome| outcome.message()).collect();
        for result in results {
            grow(conversation, result, tell);
        }
    }
}
