//! DeepSeek's rule about a request as a whole: what the model thought goes back with the calls it led to.

use serde_json::{Value, json};

use crate::place::Places;
use crate::problem::{Code, Log};
use crate::providers::wire::text;

/// Mends it.
pub(super) fn mend(
    request: &Value,
    messages: &mut [Value],
    model: Option<&str>,
    places: Places<'_>,
    log: &mut Log,
) {
    let model = model.unwrap_or_default();
    let mode = text(&request["thinking"], "type");
    // Its fourth generation thinks unless it is told not to, and wants all of its thoughts back; the ones before it want
    // those since the user's last words.
    let is_fourth = model.contains("v4");
    let thinks = match mode {
        Some(mode) => mode == "enabled",
        None => is_fourth || model.contains("reasoner"),
    };
    if !thinks {
        return;
    }
    let is_user = |message: &Value| text(message, "role") == Some("user");
    let start = match is_fourth {
        true => 0,
        false => messages.iter().rposition(is_user).unwrap_or(0),
    };
    for (index, message) in messages.iter_mut().enumerate().skip(start) {
        let calls = message.get("tool_calls").and_then(Value::as_array);
        let has_calls = calls.is_some_and(|calls| !calls.is_empty());
        let is_model = text(message, "role") == Some("assistant");
        if !is_model
            || !has_calls
            || message
                .get("reasoning_content")
                .is_some_and(Value::is_string)
        {
            continue;
        }
        let says = match is_fourth {
            true => "The `reasoning_content` in the thinking mode must be passed back to the API."
                .to_owned(),
            false => format!(
                "Missing `reasoning_content` field in the assistant message at message index {index}. For more information, please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls"
            ),
        };
        log.found(
            format!("{}/reasoning_content", places.of(index)),
            Code::ThinkingLost,
            "thinking is on, and this message has lost its thinking",
        )
        .says(says)
        .fixed("an empty one stands for it");
        message["reasoning_content"] = json!("");
    }
}
