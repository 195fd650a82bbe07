//! Keeps calls and results together: every call of a turn has its result in that turn.

use std::collections::{HashMap, VecDeque};

use super::AiMessage;
use super::Message;
use super::ToolMessage;

/// A result that was missing, and that [`answer_open_calls`] put an error in place of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// Where the message that made the call is, in the messages as they were given.
    pub ai_index: usize,
    /// The call that had no result.
    pub tool_call_id: String,
    /// The tool that was called.
    pub name: String,
}

/// Gives every call without a result a placeholder, an error that says so, and reports which.
///
/// Providers refuse a conversation in which a call has no result. A turn ends at the next AI or human
/// message. A placeholder stands before the first result of a later call, or behind all results of the turn. When a turn
/// has one id several times, its results count for the calls in order. Nothing else is moved or dropped, and
/// a second pass changes nothing.
pub fn answer_open_calls(messages: Vec<Message>) -> (Vec<Message>, Vec<Placeholder>) {
    let gaps = find_gaps(&messages);
    if gaps.is_empty() {
        return (messages, Vec::new());
    }

    let mut answered = Vec::with_capacity(messages.len() + gaps.len());
    let mut placeholders = Vec::with_capacity(gaps.len());
    let mut rest = messages.into_iter();
    let mut taken = 0;
    for gap in gaps {
        answered.extend(rest.by_ref().take(gap.position - taken));
        taken = gap.position;
        answered.push(stand_in(&gap.placeholder).into());
        placeholders.push(gap.placeholder);
    }
    answered.extend(rest);
    (answered, placeholders)
}

/// What a conversation grows by when tools were called: the AI message, then its results in the order
/// of the calls, then any result that answers none of them.
pub fn turn(ai: AiMessage, results: Vec<ToolMessage>) -> Vec<Message> {
    let mut unplaced = results;
    let mut ordered = Vec::with_capacity(unplaced.len());
    for call in &ai.tool_calls {
        if let Some(found) = unplaced
            .iter()
            .position(|result| result.tool_call_id == call.id)
        {
            ordered.push(unplaced.remove(found));
        }
    }
    ordered.append(&mut unplaced);

    let mut messages = vec![Message::from(ai)];
    messages.extend(ordered.into_iter().map(Message::from));
    messages
}

/// A missing result, and the message it belongs in front of.
struct Gap {
    position: usize,
    placeholder: Placeholder,
}

/// The gaps by position, and in the order of the calls where the position is the same.
fn find_gaps(messages: &[Message]) -> Vec<Gap> {
    let mut gaps = Vec::new();
    for (ai_index, message) in messages.iter().enumerate() {
        let Message::Ai(ai) = message else { continue };
        let after = &messages[ai_index + 1..];
        let answers = answers(ai, after);
        let is_open = |index: &usize| !answers.iter().any(|(_, call)| *call == Some(*index));
        for index in (0..ai.tool_calls.len()).filter(is_open) {
            let call = &ai.tool_calls[index];
            // Where results stand in the order of their calls, they still do with this one.
            let later = answers
                .iter()
                .find(|(_, call)| call.is_some_and(|call| call > index));
            let offset = later.map_or_else(|| results_end(after), |(at, _)| *at);
            let placeholder = Placeholder {
                ai_index,
                tool_call_id: call.id.clone(),
                name: call.name.clone(),
            };
            gaps.push(Gap {
                position: ai_index + 1 + offset,
                placeholder,
            });
        }
    }
    gaps
}

/// The results of a turn by their place, each with the call it answers.
fn answers(ai: &AiMessage, after: &[Message]) -> Vec<(usize, Option<usize>)> {
    let mut open: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (index, call) in ai.tool_calls.iter().enumerate() {
        open.entry(&call.id).or_default().push_back(index);
    }
    let answers = results_of_turn(after).map(|(at, result)| {
        let calls = open.get_mut(result.tool_call_id.as_str());
        (at, calls.and_then(VecDeque::pop_front))
    });
    answers.collect()
}

fn results_end(after: &[Message]) -> usize {
    results_of_turn(after)
        .last()
        .map_or(0, |(index, _)| index + 1)
}

fn results_of_turn(after: &[Message]) -> impl Iterator<Item = (usize, &ToolMessage)> {
    let of_turn = after
        .iter()
        .take_while(|message| !matches!(message, Message::Ai(_) | Message::Human(_)));
    of_turn
        .enumerate()
        .filter_map(|(index, message)| match message {
            Message::Tool(result) => Some((index, result)),
            Message::System(_) | Message::Human(_) | Message::Ai(_) | Message::Other(_) => None,
        })
}

/// Says only what is known: a lost result does not mean that the tool did not act.
fn stand_in(missing: &Placeholder) -> ToolMessage {
    let reason = "the result of this call is missing from the conversation; the tool may or may not have run";
    let mut message = ToolMessage::error(&missing.tool_call_id, reason);
    message.name = Some(missing.name.clone());
    message
}
