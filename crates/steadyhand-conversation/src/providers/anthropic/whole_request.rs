//! Anthropic's rules about a request as a whole: what hosts want in it, thinking, the end, cache marks.

use serde_json::{Value, json};

use crate::host::Host;
use crate::place::Places;
use crate::problem::{Code, Log};
use crate::providers::opening::go_on;
use crate::providers::wire::text;

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
        mend_system(request, log);
        thinking(request, messages, places, log);
        end(messages, model, places, log);
        cache_marks(request, messages, places, log);
    }
}

/// Anthropic takes no empty text in what the system is told.
fn mend_system(request: &mut Value, log: &mut Log) {
    let Some(Value::Array(blocks)) = request.get_mut("system") else {
        return;
    };
    let is_empty = |block: &Value| text(block, "type") == Some("text") && block["text"] == "";
    if !blocks.iter().any(is_empty) {
        return;
    }
    let mut kept: Vec<Value> = Vec::with_capacity(blocks.len());
    for (index, mut block) in blocks.drain(..).enumerate() {
        if !is_empty(&block) {
            kept.push(block);
            continue;
        }
        log.found(
            format!("/system/{index}"),
            Code::EmptyContent,
            "this text is empty",
        )
        .says("system: text content blocks must be non-empty".to_owned())
        .fixed("it is left out");
        // Its cache mark goes to the block before it, which ends the same cached beginning.
        let mark = block.get_mut("cache_control").map(Value::take);
        let before = kept.last_mut().and_then(Value::as_object_mut);
        if let (Some(mark), Some(before)) = (mark.filter(|mark| !mark.is_null()), before) {
            before.entry("cache_control").or_insert(mark);
        }
    }
    let is_silent = kept.is_empty();
    *blocks = kept;
    if let (true, Some(fields)) = (is_silent, request.as_object_mut()) {
        fields.shift_remove("system");
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

/// A model that has thought at the beginning of its turn need not think again between its calls; one that has not, or
/// that is forced to call, cannot go on while thinking is on.
fn thinking(request: &mut Value, messages: &mut [Value], places: Places<'_>, log: &mut Log) {
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
    } else if let Some((index, found)) = lost_thinking(messages) {
        log.found(
            "/thinking",
            Code::ThinkingLost,
            format!("thinking is on, and message {index} has lost its thinking"),
        )
        .says(format!("messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`."))
        .fixed("thinking is off for this request: nobody can write it again");
    } else {
        return;
    }
    request["thinking"] = json!({"type": "disabled"});
    forget_thoughts(messages, places, log);
}

fn is_model(message: &Value) -> bool {
    text(message, "role") == Some("assistant")
}

fn has_results(message: &Value) -> bool {
    let mut blocks = blocks(message).iter();
    blocks.any(|block| text(block, "type") == Some("tool_result"))
}

fn is_thought(block: &Value) -> bool {
    matches!(text(block, "type"), Some("thinking" | "redacted_thinking"))
}

/// Where the turn begins that the model is in the middle of: behind the last words of the user's that came without a
/// result. None where it is the user's turn to be answered.
fn open_turn(messages: &[Value]) -> Option<usize> {
    let end = messages.iter().rposition(is_model)? + 1;
    if end < messages.len() && !messages[end..].iter().any(has_results) {
        return None;
    }
    let is_inside = |message: &Value| is_model(message) || has_results(message);
    let before = messages[..end]
        .iter()
        .rposition(|message| !is_inside(message));
    Some(before.map_or(0, |before| before + 1))
}

/// Thinking is refused in an open turn while it is switched off: what a repair switches off takes it along.
fn forget_thoughts(messages: &mut [Value], places: Places<'_>, log: &mut Log) {
    let Some(start) = open_turn(messages) else {
        return;
    };
    for (offset, message) in messages[start..].iter_mut().enumerate() {
        let index = start + offset;
        if !is_model(message) {
            continue;
        }
        let Some(Value::Array(blocks)) = message.get_mut("content") else {
            continue;
        };
        for (part, _) in blocks
            .iter()
            .enumerate()
            .filter(|(_, block)| is_thought(block))
        {
            log.found(
                format!("{}/content/{part}", places.of(index)),
                Code::ThinkingLost,
                "thinking is off, and the model has thought in the turn it is in",
            )
            .says(format!("messages.{index}.content.{part}: When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`. To use thinking blocks, enable `thinking` in your request."))
            .fixed("the thinking is left out");
        }
        blocks.retain(|block| !is_thought(block));
    }
}

/// The last turn of the model, if it calls tools and has no thinking at its beginning or behind a result in it; and what
/// it begins with.
fn lost_thinking(messages: &[Value]) -> Option<(usize, &str)> {
    let end = messages.iter().rposition(is_model)? + 1;
    // The user has said something new since: what went before is not looked at.
    let follows_results = messages[end..].iter().any(has_results);
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
    // What it thought before its first call serves for the calls that follow.
    let begins_with_thought = |message: &Value| blocks(message).first().is_some_and(is_thought);
    let thinks = messages[open_turn(messages).unwrap_or(start)..end]
        .iter()
        .any(begins_with_thought);
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

pub(crate) const ENDS_WITH_SPACE: &str =
    "messages: final assistant content cannot end with trailing whitespace";

/// Takes the white space from the end of the last text of a message. A text that is nothing else goes, where there is
/// something before it. Whether anything was changed.
pub(crate) fn trim_last(blocks: &mut Vec<Value>, is_text: impl Fn(&Value) -> bool) -> bool {
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

/// The first models that think as much as they want to.
const ADAPTIVE: (u32, u32) = (4, 6);

/// Models from 4.6 on do not go on from their own words.
pub(crate) fn refuses_prefill(model: &str) -> bool {
    version(model).is_some_and(|version| version >= ADAPTIVE)
}

/// The version in the name of one of Anthropic's models.
fn version(model: &str) -> Option<(u32, u32)> {
    let name = model
        .rsplit(['/', '.'])
        .find(|part| part.contains("claude"))?;
    let numbers = name
        .split(['-', '@', ':'])
        .filter(|part| part.len() <= 2)
        .filter_map(|part| part.parse::<u32>().ok());
    let mut numbers = numbers.take(2);
    Some((
        numbers.next().unwrap_or_default(),
        numbers.next().unwrap_or_default(),
    ))
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
