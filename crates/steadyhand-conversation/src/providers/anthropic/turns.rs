//! Anthropic's rules about messages and those beside them, other than calls and results.

use serde_json::{Value, json};

use super::messages::AnthropicWire;
use crate::problem::{Code, Log};
use crate::providers::wire::{Wire, text};

/// Anthropic takes a system message only behind others, at the end or before the model's turn. Runs when everything is in
/// its place. `origins` says which message that was given each of them was.
pub(super) fn place_system(
    messages: &mut Vec<Value>,
    origins: &mut Vec<usize>,
    base: &str,
    log: &mut Log,
) {
    let is_system = |message: &Value| text(message, "role") == Some("system");
    if !messages.iter().any(is_system) {
        return;
    }
    leave_out_silence(messages, origins, base, log);
    for index in 0..messages.len() {
        if !is_system(&messages[index]) {
            continue;
        }
        let next = messages.get(index + 1);
        let ends_turn = next.is_none_or(|next| text(next, "role") == Some("assistant"));
        let answers = |block: &Value| text(block, "type") == Some("tool_result");
        let blocks = messages[index].get("content").and_then(Value::as_array);
        let has_results = blocks.is_some_and(|blocks| blocks.iter().any(answers));
        if index > 0 && ends_turn && !has_results {
            continue;
        }
        log.found(
            format!("{base}/{}/role", origins[index]),
            Code::WrongRole,
            "a system message cannot stand here",
        )
        .says(
            "messages: Unexpected role \"system\". Allowed roles are \"user\" or \"assistant\""
                .to_owned(),
        )
        .fixed("it is the user's now");
        messages[index]["role"] = json!("user");
    }
}

/// Leaves out messages in which nothing is said, where no words of the user's stand beside them.
fn leave_out_silence(
    messages: &mut Vec<Value>,
    origins: &mut Vec<usize>,
    base: &str,
    log: &mut Log,
) {
    let wire = AnthropicWire::Strict;
    let role = |message: Option<&Value>| {
        message.map(|message| text(message, "role").unwrap_or_default().to_owned())
    };
    let mut index = 0;
    while index < messages.len() {
        let before = role(index.checked_sub(1).and_then(|before| messages.get(before)));
        let next = role(messages.get(index + 1));
        let own = role(messages.get(index));
        let is_beside =
            |role: &str| before.as_deref() == Some(role) || next.as_deref() == Some(role);
        let is_silent = own.as_deref() != Some("assistant") && wire.is_empty(&messages[index]);
        let is_left_out = match own.as_deref() {
            Some("system") => messages.len() > 1,
            _ => is_beside("system") && !is_beside("user"),
        };
        if !is_silent || !is_left_out {
            index += 1;
            continue;
        }
        let origin = origins[index];
        log.found(
            format!("{base}/{origin}"),
            Code::EmptyContent,
            "nothing is said in this message",
        )
        .says(format!(
            "messages.{origin}: user messages must have non-empty content"
        ))
        .fixed("it is left out");
        messages.remove(index);
        origins.remove(index);
    }
}

/// Anthropic takes no turn of the model's that ends with thinking: what an answer leaves that broke off.
pub(super) fn thoughts_at_the_end(messages: &mut [Value], base: &str, log: &mut Log) {
    let is_model = |message: &Value| text(message, "role") == Some("assistant");
    for index in 0..messages.len() {
        // Messages of one role are one turn.
        let is_last = messages.get(index + 1).is_none_or(|next| !is_model(next));
        if !is_last || !is_model(&messages[index]) {
            continue;
        }
        let start = messages[..index]
            .iter()
            .rposition(|message| !is_model(message))
            .map_or(0, |before| before + 1);
        'turn: for at in (start..=index).rev() {
            let blocks = match messages[at].get_mut("content") {
                Some(Value::Array(blocks)) => blocks,
                Some(Value::String(said)) if said.is_empty() => continue,
                _ => break,
            };
            for (part, block) in blocks.iter_mut().enumerate().rev() {
                match text(block, "type") {
                    None if block.is_null() => continue,
                    Some("thinking" | "redacted_thinking") => {}
                    _ => break 'turn,
                }
                log.found(
                    format!("{base}/{at}/content/{part}"),
                    Code::DanglingReasoning,
                    "the turn ends with this thinking",
                )
                .says(format!(
                    "messages.{at}: The final block in an assistant message cannot be `thinking`."
                ))
                .fixed("it is left out");
                *block = Value::Null;
            }
        }
    }
}

/// Anthropic takes no turn of words that are only white space, whoever says them: blank words beside others are taken.
pub(super) fn blank_turns(messages: &mut [Value], base: &str, log: &mut Log) {
    let mut start = 0;
    while start < messages.len() {
        let role = text(&messages[start], "role")
            .unwrap_or_default()
            .to_owned();
        let rest = messages[start..].iter();
        let end = start
            + rest
                .take_while(|one| text(one, "role") == Some(&role))
                .count()
                .max(1);
        blank_turn(
            &mut messages[start..end],
            start,
            role == "assistant",
            base,
            log,
        );
        start = end;
    }
}

fn blank_turn(turn: &mut [Value], first: usize, is_model: bool, base: &str, log: &mut Log) {
    let is_blank = |said: &str| !said.is_empty() && said.trim().is_empty();
    let mut has_blank = false;
    let mut has_others = false;
    for message in turn.iter() {
        match message.get("content") {
            Some(Value::String(said)) if said.is_empty() => {}
            Some(Value::String(said)) if is_blank(said) => has_blank = true,
            Some(Value::Array(blocks)) => {
                for block in blocks.iter().filter(|block| !block.is_null()) {
                    match text(block, "text").filter(|_| text(block, "type") == Some("text")) {
                        Some(said) if is_blank(said) => has_blank = true,
                        Some(_) => return,
                        None => has_others = true,
                    }
                }
            }
            _ => return,
        }
    }
    // Beside a call, blank words of the model are taken.
    if !has_blank || (is_model && has_others) {
        return;
    }
    for (offset, message) in turn.iter_mut().enumerate() {
        let at = format!("{base}/{}/content", first + offset);
        let mut found = |at: String| {
            log.found(at, Code::EmptyContent, "this text is white space only")
                .says("messages: text content blocks must contain non-whitespace text".to_owned())
                .fixed("it is left out");
        };
        let is_blank_whole = text(message, "content").is_some_and(is_blank);
        if is_blank_whole {
            found(at);
            message["content"] = json!([null]);
            continue;
        }
        let Some(Value::Array(blocks)) = message.get_mut("content") else {
            continue;
        };
        for (part, block) in blocks.iter_mut().enumerate() {
            let is_text = text(block, "type") == Some("text");
            if is_text && text(block, "text").is_some_and(is_blank) {
                found(format!("{at}/{part}"));
                *block = Value::Null;
            }
        }
    }
}
