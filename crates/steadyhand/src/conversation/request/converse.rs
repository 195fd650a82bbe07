//! Bedrock's rules about a Converse request as a whole: its tools and its end.

use serde_json::{Value, json};

use super::anthropic::refuses_prefill;
use crate::conversation::place::Places;
use crate::conversation::problem::{Code, Log};
use crate::conversation::texts;
use crate::conversation::wire::text;

/// Mends them.
pub(super) fn mend(
    request: &mut Value,
    messages: &mut Vec<Value>,
    model: Option<&str>,
    places: Places<'_>,
    log: &mut Log,
) {
    tools(request, messages, log);
    end(messages, model, places, log);
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
