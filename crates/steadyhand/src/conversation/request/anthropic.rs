//! Anthropic's rules about a request as a whole: what hosts want in it, thinking, the end, cache marks.

use serde_json::{Value, json};

use super::{extra_fields, go_on};
use crate::conversation::host::Host;
use crate::conversation::place::Places;
use crate::conversation::problem::{Code, Log};
use crate::conversation::wire::text;

const CACHE_MARKS_MAX: usize = 4;

/// Mends them.
pub(super) fn mend(
    request: &mut Value,
    messages: &mut Vec<Value>,
    model: Option<&str>,
    host: Host,
    places: Places<'_>,
    log: &mut Log,
) {
    envelope(request, host, log);
    // Other services have their own models, and rules of their own; for Anthropic's models its rules hold everywhere.
    let is_claude = model.is_some_and(|model| model.contains("claude"));
    if host.is_strict() || is_claude {
        extra_fields::mend_system(request, log);
        thinking(request, messages, log);
        end(messages, model, places, log);
        cache_marks(request, messages, places, log);
    }
}

fn blocks(message: &Value) -> &[Value] {
    match message.get("content") {
        Some(Value::Array(blocks)) => blocks,
        _ => &[],
    }
}

/// Hosts that name the model in their address take none in the body, and want to know the version of it.
fn envelope(request: &mut Value, host: Host, log: &mut Log) {
    let version = match host {
        Host::Bedrock => "bedrock-2023-05-31",
        Host::Vertex => "vertex-2023-10-16",
        Host::Original | Host::Azure | Host::DeepSeek | Host::Compatible => return,
    };
    let Some(fields) = request.as_object_mut() else {
        return;
    };
    // Bedrock says by its address whether the answer is a stream; Vertex wants it said in the body as well.
    let refused: &[&str] = match host {
        Host::Bedrock => &["model", "stream"],
        _ => &["model"],
    };
    for key in refused.iter().filter(|key| fields.contains_key(**key)) {
        log.found(
            format!("/{key}"),
            Code::BadField,
            format!("{host} takes this from the address, not from the body"),
        )
        .says(format!("{key}: Extra inputs are not permitted"))
        .fixed("it is left out");
    }
    fields.retain(|key, _| !refused.contains(&key.as_str()));
    if !fields
        .get("anthropic_version")
        .is_some_and(Value::is_string)
    {
        log.found(
            "/anthropic_version",
            Code::MissingField,
            format!("{host} wants to know the version of Anthropic's API"),
        )
        .says("anthropic_version: Field required".to_owned())
        .fixed(format!("it is {version:?}"));
        fields.insert("anthropic_version".to_owned(), json!(version));
    }
}

fn thinking(request: &mut Value, messages: &[Value], log: &mut Log) {
    if request["thinking"]["type"] != "enabled" {
        return;
    }
    let forced = matches!(text(&request["tool_choice"], "type"), Some("any" | "tool"));
    if forced {
        log.found(
            "/thinking",
            Code::ThinkingForced,
            "thinking is on and a tool is forced",
        )
        .says("Thinking may not be enabled when tool_choice forces tool use.".to_owned())
        .fixed("thinking is off for this request");
        request["thinking"] = json!({"type": "disabled"});
        return;
    }
    let Some((index, found)) = lost_thinking(messages) else {
        return;
    };
    log.found(
        "/thinking",
        Code::ThinkingLost,
        format!("thinking is on, and message {index} has lost its thinking"),
    )
    .says(format!("messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`."))
    .fixed("thinking is off for this request: nobody can write it again");
    request["thinking"] = json!({"type": "disabled"});
}

/// The last turn of the model, if it calls tools and does not begin with thinking; and what it begins with.
fn lost_thinking(messages: &[Value]) -> Option<(usize, &str)> {
    let is_model = |message: &Value| text(message, "role") == Some("assistant");
    let end = messages.iter().rposition(is_model)? + 1;
    // The user has said something new since: what went before is not looked at.
    let follows_results = messages[end..]
        .iter()
        .flat_map(blocks)
        .any(|block| text(block, "type") == Some("tool_result"));
    let start = messages[..end]
        .iter()
        .rposition(|message| !is_model(message))
        .map_or(0, |before| before + 1);
    let turn = &messages[start..end];
    let calls = |block: &Value| text(block, "type") == Some("tool_use");
    if !follows_results || !turn.iter().flat_map(blocks).any(calls) {
        return None;
    }
    // A bare text is a block as well.
    let first = turn
        .iter()
        .find_map(|message| match message.get("content") {
            Some(Value::String(said)) => (!said.is_empty()).then_some("text"),
            _ => blocks(message)
                .first()
                .map(|block| text(block, "type").unwrap_or_default()),
        })?;
    let thinks = matches!(first, "thinking" | "redacted_thinking");
    (!thinks).then_some((start, first))
}

fn end(messages: &mut Vec<Value>, model: Option<&str>, places: Places<'_>, log: &mut Log) {
    let Some(last) = messages.last() else { return };
    let is_model = text(last, "role") == Some("assistant");
    // A turn the provider paused goes on by itself.
    let is_paused = blocks(last).last().is_some_and(|block| {
        let kind = text(block, "type").unwrap_or_default();
        kind == "server_tool_use" || kind == "mcp_tool_use" || kind.ends_with("_tool_result")
    });
    if is_model && !is_paused && model.is_some_and(refuses_prefill) {
        let says = "This model does not support assistant message prefill. The conversation must end with a user message.";
        go_on(messages, places, says, log);
    } else if is_model {
        trailing_space(messages, places, log);
    }
}

/// A beginning to go on from must not end with white space.
fn trailing_space(messages: &mut [Value], places: Places<'_>, log: &mut Log) {
    let Some(index) = messages.len().checked_sub(1) else {
        return;
    };
    let is_changed = match &mut messages[index]["content"] {
        Value::String(said) => trim_end(said),
        Value::Array(blocks) => trim_last(blocks, |block| text(block, "type") == Some("text")),
        _ => false,
    };
    if is_changed {
        log.found(
            format!("{}/content", places.of(index)),
            Code::TrailingAssistant,
            "the beginning of an answer ends with white space",
        )
        .says(ENDS_WITH_SPACE.to_owned())
        .fixed("the white space is left out");
    }
}

pub(super) const ENDS_WITH_SPACE: &str =
    "messages: final assistant content cannot end with trailing whitespace";

/// Takes the white space from the end of the last text of a message. A text that is nothing else goes, where there is
/// something before it. Whether anything was changed.
pub(super) fn trim_last(blocks: &mut Vec<Value>, is_text: impl Fn(&Value) -> bool) -> bool {
    let mut is_changed = false;
    while let Some(last) = blocks.last_mut().filter(|block| is_text(block)) {
        let Value::String(said) = &mut last["text"] else {
            break;
        };
        if !said.trim().is_empty() {
            return trim_end(said) || is_changed;
        }
        if blocks.len() == 1 {
            break;
        }
        blocks.pop();
        is_changed = true;
    }
    is_changed
}

fn trim_end(said: &mut String) -> bool {
    let kept = said.trim_end().len();
    let is_changed = kept > 0 && kept < said.len();
    if is_changed {
        said.truncate(kept);
    }
    is_changed
}

/// Models from 4.6 on do not go on from their own words.
pub(super) fn refuses_prefill(model: &str) -> bool {
    let Some(name) = model
        .rsplit(['/', '.'])
        .find(|part| part.contains("claude"))
    else {
        return false;
    };
    let numbers = name
        .split(['-', '@', ':'])
        .filter(|part| part.len() <= 2)
        .filter_map(|part| part.parse::<u32>().ok());
    let mut numbers = numbers.take(2);
    let version = (
        numbers.next().unwrap_or_default(),
        numbers.next().unwrap_or_default(),
    );
    version >= (4, 6)
}

/// At most four marks: those at the end of the conversation save the most.
fn cache_marks(request: &Value, messages: &mut [Value], places: Places<'_>, log: &mut Log) {
    let around = marks(&request["tools"]) + marks(&request["system"]);
    let mut marked = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        for (part, block) in blocks(message).iter().enumerate() {
            if is_marked(block) {
                marked.push((index, part));
            }
        }
    }
    let total = around + marked.len();
    let surplus = total.saturating_sub(CACHE_MARKS_MAX);
    for (index, part) in marked.into_iter().take(surplus) {
        log.found(
            format!("{}/content/{part}/cache_control", places.of(index)),
            Code::CacheControl,
            format!("there are {total} cache marks, and {CACHE_MARKS_MAX} are taken"),
        )
        .says(format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {total}."
        ))
        .fixed("the mark is gone; later ones cover what it did");
        if let Some(block) = messages[index]["content"][part].as_object_mut() {
            block.shift_remove("cache_control");
        }
    }
}

fn is_marked(block: &Value) -> bool {
    block
        .get("cache_control")
        .is_some_and(|mark| !mark.is_null())
}

fn marks(list: &Value) -> usize {
    list.as_array()
        .map_or(0, |list| list.iter().filter(|one| is_marked(one)).count())
}
