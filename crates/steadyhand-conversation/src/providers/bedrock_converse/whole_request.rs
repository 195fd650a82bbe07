//! Bedrock's rules about a Converse request as a whole: its tools and its end.

use serde_json::{Value, json};

use crate::place::Places;
use crate::problem::{Code, Log};
use crate::providers::anthropic::{ENDS_WITH_SPACE, refuses_prefill, trim_last};
use crate::providers::wire::text;
use crate::texts;

/// Mends them.
pub(super) fn mend(
    request: &mut Value,
    messages: &mut Vec<Value>,
    model: Option<&str>,
    places: Places<'_>,
    log: &mut Log,
) {
    tools(request, messages, log);
    // Each maker's models have rules of their own behind Bedrock's.
    if model.is_some_and(|model| model.contains("claude")) {
        unsigned_reasoning(messages, places, log);
        reasoning_at_the_end(messages, places, log);
        thinking(request, messages, places, log);
    }
    end(messages, model, places, log);
}

const OF_MODEL: &str = "The model returned the following errors: ";

/// Claude reads only reasoning that it has signed, or that is encrypted.
fn unsigned_reasoning(messages: &mut [Value], places: Places<'_>, log: &mut Log) {
    let is_unsigned = |block: &Value| {
        let reasoning = &block["reasoningContent"];
        let is_signed = text(&reasoning["reasoningText"], "signature")
            .is_some_and(|signature| !signature.is_empty());
        reasoning.is_object() && !is_signed && reasoning.get("redactedContent").is_none()
    };
    for (index, message) in messages.iter_mut().enumerate() {
        let Some(Value::Array(blocks)) = message.get_mut("content") else {
            continue;
        };
        if !blocks.iter().any(is_unsigned) {
            continue;
        }
        let numbered = blocks.iter().enumerate();
        for (part, _) in numbered.filter(|(_, block)| is_unsigned(block)) {
            log.found(
                format!("{}/content/{part}/reasoningContent", places.of(index)),
                Code::MissingSignature,
                "this reasoning has no signature",
            )
            .says(format!(
                "{OF_MODEL}messages.{index}.content.{part}.thinking.signature: Field required"
            ))
            .fixed("the reasoning is left out: nobody can sign it again");
        }
        blocks.retain(|block| !is_unsigned(block));
        if blocks.is_empty() {
            blocks.push(json!({"text": texts::EMPTY}));
        }
    }
}

fn is_reasoning(block: &Value) -> bool {
    block.get("reasoningContent").is_some()
}

/// A turn that ends with reasoning is what an answer leaves that broke off.
fn reasoning_at_the_end(messages: &mut [Value], places: Places<'_>, log: &mut Log) {
    for (index, message) in messages.iter_mut().enumerate() {
        let Some(Value::Array(blocks)) = message.get_mut("content") else {
            continue;
        };
        while let Some(part) = blocks.len().checked_sub(1)
            && is_reasoning(&blocks[part])
        {
            log.found(
                format!("{}/content/{part}/reasoningContent", places.of(index)),
                Code::DanglingReasoning,
                "the turn ends with this reasoning",
            )
            .says(format!(
                "{OF_MODEL}messages.{index}: The final block in an assistant message cannot be `thinking`."
            ))
            .fixed("it is left out");
            blocks.pop();
            if blocks.is_empty() {
                blocks.push(json!({"text": texts::EMPTY}));
            }
        }
    }
}

/// Thinking is switched off where a tool is forced, or where the last turn with calls has lost its reasoning.
fn thinking(request: &mut Value, messages: &mut [Value], places: Places<'_>, log: &mut Log) {
    let fields = "/additionalModelRequestFields";
    let is_on = request
        .pointer(&format!("{fields}/thinking/type"))
        .is_some_and(|kind| kind == "enabled");
    if !is_on {
        return;
    }
    let choice = request.pointer("/toolConfig/toolChoice");
    let is_forced = choice.is_some_and(|choice| {
        let is_set = |key: &str| choice.get(key).is_some_and(|value| !value.is_null());
        is_set("any") || is_set("tool")
    });
    let (code, problem, says) = match is_forced {
        true => (
            Code::ThinkingForced,
            "thinking is on and a tool is forced".to_owned(),
            "Thinking may not be enabled when tool_choice forces tool use.".to_owned(),
        ),
        false => match lost_reasoning(messages) {
            None => return,
            Some(index) => (
                Code::ThinkingLost,
                format!("thinking is on, and message {index} has lost its reasoning"),
                format!(
                    "messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block"
                ),
            ),
        },
    };
    log.found(format!("{fields}/thinking"), code, problem)
        .says(format!("{OF_MODEL}{says}"))
        .fixed("thinking is off for this request");
    request["additionalModelRequestFields"]["thinking"] = json!({"type": "disabled"});
    forget_reasoning(messages, places, log);
}

fn is_model(message: &Value) -> bool {
    text(message, "role") == Some("assistant")
}

fn blocks(message: &Value) -> &[Value] {
    match message.get("content") {
        Some(Value::Array(blocks)) => blocks,
        _ => &[],
    }
}

fn has(message: &Value, key: &str) -> bool {
    blocks(message).iter().any(|block| block.get(key).is_some())
}

/// Where the turn begins that the model is in the middle of: behind the last words of the user's that came without a
/// result. None where it is the user's turn to be answered.
fn open_turn(messages: &[Value]) -> Option<usize> {
    let last = messages.last()?;
    let is_inside = |message: &Value| is_model(message) || has(message, "toolResult");
    if !is_inside(last) {
        return None;
    }
    let before = messages.iter().rposition(|message| !is_inside(message));
    Some(before.map_or(0, |before| before + 1))
}

/// The last turn of the model, if it calls tools, was answered, and has no reasoning at its beginning or behind a result
/// in it: what it thought before its first call serves for the calls that follow.
fn lost_reasoning(messages: &[Value]) -> Option<usize> {
    let index = messages.len().checked_sub(2)?;
    let is_answered = has(&messages[index + 1], "toolResult") && has(&messages[index], "toolUse");
    let begins_with_it = |message: &Value| blocks(message).first().is_some_and(is_reasoning);
    let turn = &messages[open_turn(messages).unwrap_or(index)..=index];
    let is_lost = !turn.iter().any(begins_with_it);
    (is_answered && is_lost).then_some(index)
}

/// Reasoning is refused in an open turn while thinking is switched off.
fn forget_reasoning(messages: &mut [Value], places: Places<'_>, log: &mut Log) {
    let Some(start) = open_turn(messages) else {
        return;
    };
    for (offset, message) in messages[start..].iter_mut().enumerate() {
        let index = start + offset;
        let Some(Value::Array(blocks)) = message.get_mut("content") else {
            continue;
        };
        let reasons = blocks.iter().enumerate();
        for (part, _) in reasons.filter(|(_, block)| is_reasoning(block)) {
            log.found(
                format!("{}/content/{part}/reasoningContent", places.of(index)),
                Code::ThinkingLost,
                "thinking is off, and the model has thought in the turn it is in",
            )
            .says(format!("{OF_MODEL}messages.{index}.content.{part}: When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`. To use thinking blocks, enable `thinking` in your request."))
            .fixed("the reasoning is left out");
        }
        blocks.retain(|block| !is_reasoning(block));
        if blocks.is_empty() {
            blocks.push(json!({"text": texts::EMPTY}));
        }
    }
}

/// A history with calls or results needs `toolConfig`. The tools of the history are named in it, as ones that are gone.
fn tools(request: &mut Value, messages: &[Value], log: &mut Log) {
    let tools = request.pointer("/toolConfig/tools");
    let has_tools = tools
        .and_then(Value::as_array)
        .is_some_and(|tools| !tools.is_empty());
    if has_tools {
        return;
    }
    let mut names: Vec<&str> = Vec::new();
    let mut is_used = false;
    for block in messages
        .iter()
        .filter_map(|message| message["content"].as_array())
        .flatten()
    {
        is_used |= block.get("toolUse").is_some() || block.get("toolResult").is_some();
        let name = block.get("toolUse").and_then(|call| text(call, "name"));
        if let Some(name) = name.filter(|name| !names.contains(name)) {
            names.push(name);
        }
    }
    if !is_used {
        return;
    }
    if names.is_empty() {
        names.push(texts::NO_NAME);
    }
    log.found(
        "/toolConfig",
        Code::MissingTools,
        "the history calls tools and the request defines none",
    )
    .says(
        "The toolConfig field must be defined when using toolUse and toolResult content blocks."
            .to_owned(),
    )
    .fixed("the tools of the history are defined, each as one that is not available any more");
    let tool = |name: &str| {
        json!({"toolSpec": {
            "name": name,
            "description": "This tool is not available any more. Do not call it.",
            "inputSchema": {"json": {"type": "object"}},
        }})
    };
    let tools: Vec<Value> = names.into_iter().map(tool).collect();
    if !request["toolConfig"].is_object() {
        request["toolConfig"] = json!({});
    }
    request["toolConfig"]["tools"] = json!(tools);
}

fn end(messages: &mut Vec<Value>, model: Option<&str>, places: Places<'_>, log: &mut Log) {
    let is_model = messages
        .last()
        .is_some_and(|last| text(last, "role") == Some("assistant"));
    if !is_model || !model.is_some_and(refuses_prefill) {
        if is_model && model.is_some_and(|model| model.contains("claude")) {
            trailing_space(messages, places, log);
        }
        return;
    }
    log.found(
        places.of(messages.len().saturating_sub(1)),
        Code::TrailingAssistant,
        "the conversation ends with the model's own words",
    )
    .says("This model does not support assistant message prefill. The conversation must end with a user message.".to_owned())
    .fixed("the user asks it to go on");
    messages.push(json!({"role": "user", "content": [{"text": texts::CONTINUE}]}));
}

/// A beginning to go on from must not end with white space.
fn trailing_space(messages: &mut [Value], places: Places<'_>, log: &mut Log) {
    let Some(index) = messages.len().checked_sub(1) else {
        return;
    };
    let blocks = messages[index]["content"].as_array_mut();
    let is_changed =
        blocks.is_some_and(|blocks| trim_last(blocks, |block| block.get("text").is_some()));
    if is_changed {
        log.found(
            format!("{}/content", places.of(index)),
            Code::TrailingAssistant,
            "the beginning of an answer ends with white space",
        )
        .says(format!("{OF_MODEL}{ENDS_WITH_SPACE}"))
        .fixed("the white space is left out");
    }
}
