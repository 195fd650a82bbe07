//! Anthropic's Messages, as strict as the real ones.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::AnthropicFormat;
use crate::providers::strict_rules::{EVENTS, Refusal, StrictRules, event, items, str_of};

impl StrictRules for AnthropicFormat {
    fn check(&self, request: &Value) -> Result<(), Refusal> {
        anthropic(request)
    }

    fn name_in_addresses(&self) -> &'static str {
        "anthropic"
    }

    fn path_ends(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn not_json(&self) -> Value {
        let error = json!({"type": "invalid_request_error", "message": "The request body is not valid JSON"});
        json!({"type": "error", "error": error, "request_id": "req_strict"})
    }

    fn ok(&self, model: &Value) -> Value {
        let usage = json!({"input_tokens": 1, "output_tokens": 1});
        json!({"id": "msg_strict", "type": "message", "role": "assistant", "model": model,
            "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn", "stop_sequence": null, "usage": usage})
    }

    fn stream(&self, reply: &Value, _is_sse: bool) -> (&'static str, String) {
        let mut text = String::new();
        stream(reply, &mut text);
        (EVENTS, text)
    }
}

/// Checks a request as `POST /v1/messages` does.
///
/// # Errors
///
/// 400 and Anthropic's error.
pub fn anthropic(request: &Value) -> Result<(), Refusal> {
    let verdict = check(request);
    verdict.map_err(|message| {
        let error = json!({"type": "invalid_request_error", "message": message});
        let body = json!({"type": "error", "error": error, "request_id": "req_strict"});
        (400, body)
    })
}

fn check(request: &Value) -> Result<(), String> {
    tools(request)?;
    let messages = match request.get("messages") {
        None => return Err("messages: Field required".to_owned()),
        Some(Value::Array(messages)) if messages.is_empty() => {
            return Err("messages: at least one message is required".to_owned());
        }
        Some(Value::Array(messages)) => messages,
        Some(_) => return Err("messages: Input should be a valid array".to_owned()),
    };
    for (index, message) in messages.iter().enumerate() {
        shape(messages, index, message)?;
    }
    if request.get("max_tokens").is_none() {
        return Err("max_tokens: Field required".to_owned());
    }
    let fields = request.as_object().into_iter().flatten();
    let mut unknown = fields.filter(|(key, _)| !KNOWN.contains(&key.as_str()));
    if let Some((key, _)) = unknown.next() {
        return Err(format!("{key}: Extra inputs are not permitted"));
    }
    let turns = merge(messages);
    for (index, turn) in turns.iter().enumerate() {
        pairs(
            turn,
            turns.get(index + 1),
            index.checked_sub(1).map(|before| &turns[before]),
        )?;
    }
    for turn in &turns {
        blank(turn)?;
        ends_with_thinking(turn)?;
    }
    system(request)?;
    cache(request, messages)?;
    thinking(request, &turns)?;
    end(request, messages)
}

fn system(request: &Value) -> Result<(), String> {
    let is_empty = |block: &Value| str_of(block, "type") == "text" && block["text"] == "";
    match items(request, "system").iter().any(is_empty) {
        true => Err("system: text content blocks must be non-empty".to_owned()),
        false => Ok(()),
    }
}

/// The fields of a request; the last ones are those of other hosts and of what is in the making.
const KNOWN: [&str; 32] = [
    "model",
    "tool_choice",
    "tools",
    "messages",
    "system",
    "thinking",
    "output_config",
    "output_format",
    "cache_control",
    "max_tokens",
    "metadata",
    "stop_sequences",
    "temperature",
    "service_tier",
    "top_k",
    "top_p",
    "stream",
    "container",
    "inference_geo",
    "mcp_servers",
    "context_management",
    "anthropic_version",
    "anthropic_beta",
    "betas",
    "compaction",
    "diagnostics",
    "fallback_credit_token",
    "fallbacks",
    "speed",
    "thread",
    "user_profile_id",
    "workspace_id",
];

fn tools(request: &Value) -> Result<(), String> {
    let tools = match request.get("tools") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(tools)) => tools,
        Some(_) => return Err("tools: Input should be a valid array".to_owned()),
    };
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        if !tool.is_object() {
            return Err(format!("tools.{index}: Input should be an object"));
        }
        if matches!(
            tool.get("type").and_then(Value::as_str),
            None | Some("custom")
        ) {
            let name = str_of(tool, "name");
            if !of_letters(name) || name.len() > 128 {
                return Err(format!(
                    "tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
                ));
            }
            let Some(schema) = tool.get("input_schema").and_then(Value::as_object) else {
                return Err(format!("tools.{index}.custom.input_schema: Field required"));
            };
            if ["oneOf", "allOf", "anyOf"]
                .iter()
                .any(|key| schema.contains_key(*key))
            {
                return Err(format!(
                    "tools.{index}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
                ));
            }
            if schema.get("type") != Some(&json!("object")) {
                return Err(format!(
                    "tools.{index}.custom.input_schema.type: Input should be 'object'"
                ));
            }
            if !jsonschema::draft202012::meta::is_valid(&tool["input_schema"]) {
                return Err(format!(
                    "tools.{index}.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). Learn more about tool use at https://docs.claude.com/en/docs/tool-use."
                ));
            }
        }
        if !names.insert(str_of(tool, "name")) && tool.get("name").is_some() {
            return Err("tools: Tool names must be unique.".to_owned());
        }
    }
    Ok(())
}

fn shape(messages: &[Value], index: usize, message: &Value) -> Result<(), String> {
    if !message.is_object() {
        return Err(format!("messages.{index}: Input should be an object"));
    }
    let role = str_of(message, "role");
    let next = messages.get(index + 1);
    let may_be_system = index > 0 && next.is_none_or(|next| str_of(next, "role") == "assistant");
    if !(role == "user" || role == "assistant" || (role == "system" && may_be_system)) {
        return Err(format!(
            "messages: Unexpected role \"{role}\". Allowed roles are \"user\" or \"assistant\""
        ));
    }
    let fields = message.as_object().into_iter().flatten();
    let mut extra = fields.filter(|(key, _)| !["role", "content"].contains(&key.as_str()));
    if let Some((key, _)) = extra.next() {
        return Err(format!(
            "messages.{index}.{key}: Extra inputs are not permitted"
        ));
    }
    let blocks = match message.get("content") {
        Some(Value::String(_)) => return Ok(()),
        Some(Value::Array(blocks)) => blocks,
        _ => {
            return Err(format!(
                "messages.{index}.content: Input should be a valid array"
            ));
        }
    };
    for (part, block) in blocks.iter().enumerate() {
        let place = format!("messages.{index}.content.{part}");
        one_block(&place, role, block)?;
    }
    Ok(())
}

fn one_block(place: &str, role: &str, block: &Value) -> Result<(), String> {
    if !block.get("type").is_some_and(Value::is_string) {
        return Err(format!("{place}: Input should be an object"));
    }
    match str_of(block, "type") {
        "text" => match block.get("text") {
            Some(Value::String(text)) if text.is_empty() => {
                Err("messages: text content blocks must be non-empty".to_owned())
            }
            Some(Value::String(_)) => Ok(()),
            _ => Err(format!("{place}.text.text: Input should be a valid string")),
        },
        "tool_use" => {
            if role != "assistant" {
                return Err(format!(
                    "{place}: `tool_use` blocks can only be in `assistant` messages"
                ));
            }
            if !of_letters(str_of(block, "id")) {
                return Err(format!(
                    "{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
                ));
            }
            if str_of(block, "name").is_empty() {
                return Err(format!(
                    "{place}.tool_use.name: String should have at least 1 character"
                ));
            }
            if !block.get("input").is_some_and(Value::is_object) {
                return Err(format!(
                    "{place}.tool_use.input: Input should be a valid dictionary"
                ));
            }
            Ok(())
        }
        "tool_result" => result_block(place, role, block),
        "thinking" if block["signature"].is_null() => {
            Err(format!("{place}.thinking.signature: Field required"))
        }
        "thinking" if str_of(block, "signature").is_empty() => {
            Err(format!("{place}: Invalid `signature` in `thinking` block"))
        }
        "thinking" if !block["thinking"].is_string() => {
            Err(format!("{place}.thinking.thinking: Field required"))
        }
        "redacted_thinking" if !block["data"].is_string() => {
            Err(format!("{place}.redacted_thinking.data: Field required"))
        }
        kind if OF_OPENAI.contains(&kind) => Err(no_tag(place, kind)),
        "thinking" | "redacted_thinking" if is_marked(block) => {
            let kind = str_of(block, "type");
            Err(format!(
                "{place}.{kind}.cache_control: Extra inputs are not permitted"
            ))
        }
        _ => Ok(()),
    }
}

/// Kinds of parts that only OpenAI has.
const OF_OPENAI: [&str; 8] = [
    "image_url",
    "input_text",
    "output_text",
    "input_image",
    "refusal",
    "file",
    "input_file",
    "input_audio",
];

fn no_tag(place: &str, kind: &str) -> String {
    format!(
        "{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
    )
}

fn result_block(place: &str, role: &str, block: &Value) -> Result<(), String> {
    if role != "user" {
        return Err(format!(
            "{place}: `tool_result` blocks can only be in `user` messages"
        ));
    }
    if !of_letters(str_of(block, "tool_use_id")) {
        return Err(format!(
            "{place}.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        ));
    }
    if !matches!(
        block.get("is_error"),
        None | Some(Value::Null | Value::Bool(_))
    ) {
        return Err(format!(
            "{place}.tool_result.is_error: Input should be a valid boolean"
        ));
    }
    let is_empty = match block.get("content") {
        None => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(blocks)) => {
            for (number, inner) in blocks.iter().enumerate() {
                let kind = str_of(inner, "type");
                if OF_OPENAI.contains(&kind) {
                    return Err(no_tag(
                        &format!("{place}.tool_result.content.{number}"),
                        kind,
                    ));
                }
                let is_text = str_of(inner, "type") == "text";
                if !inner.get("type").is_some_and(Value::is_string) {
                    return Err(format!(
                        "{place}.tool_result.content.0: Input should be an object"
                    ));
                }
                if is_text && !inner["text"].is_string() {
                    return Err(format!(
                        "{place}.tool_result.content.0.text.text: Input should be a valid string"
                    ));
                }
                if is_text && inner["text"] == "" {
                    return Err("messages: text content blocks must be non-empty".to_owned());
                }
            }
            blocks.is_empty()
        }
        Some(Value::Null) => true,
        Some(_) => {
            return Err(format!(
                "{place}.tool_result.content: Input should be a valid array"
            ));
        }
    };
    if is_empty && block["is_error"] == true {
        return Err(format!(
            "{place}.tool_result: content cannot be empty if `is_error` is true"
        ));
    }
    Ok(())
}

/// Messages of one role in a row are one turn.
struct Turn<'a> {
    role: &'a str,
    first: usize,
    /// Each block with the message and the part it is; a bare text is a block too.
    blocks: Vec<(usize, usize, &'a Value)>,
}

fn merge(messages: &[Value]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        // What the system is told stands in the user's turn.
        let role = match str_of(message, "role") {
            "assistant" => "assistant",
            _ => "user",
        };
        if turns.last().is_none_or(|turn| turn.role != role) {
            turns.push(Turn {
                role,
                first: index,
                blocks: Vec::new(),
            });
        }
        let Some(turn) = turns.last_mut() else {
            continue;
        };
        match &message["content"] {
            Value::Array(blocks) => {
                let placed = blocks.iter().enumerate();
                turn.blocks
                    .extend(placed.map(|(part, block)| (index, part, block)));
            }
            Value::String(text) if text.is_empty() => {}
            whole => turn.blocks.push((index, 0, whole)),
        }
    }
    turns
}

fn pairs(
    turn: &Turn<'_>,
    next: Option<&Turn<'_>>,
    before: Option<&Turn<'_>>,
) -> Result<(), String> {
    if turn.role == "user" {
        return results(turn, before);
    }
    let mut ids: Vec<&str> = Vec::new();
    for (index, part, block) in &turn.blocks {
        if str_of(block, "type") != "tool_use" {
            continue;
        }
        let id = str_of(block, "id");
        if ids.contains(&id) {
            return Err(format!(
                "messages.{index}.content.{part}: `tool_use` ids must be unique"
            ));
        }
        ids.push(id);
    }
    // Only the results that lead the next turn count.
    let leading: Vec<&str> = next
        .map(|next| {
            let results = next.blocks.iter().map(|(_, _, block)| block);
            let results = results.take_while(|block| str_of(block, "type") == "tool_result");
            results.map(|block| str_of(block, "tool_use_id")).collect()
        })
        .unwrap_or_default();
    let open: Vec<&str> = ids
        .iter()
        .filter(|id| !leading.contains(id))
        .copied()
        .collect();
    if !open.is_empty() {
        return Err(format!(
            "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
            turn.first,
            open.join(", ")
        ));
    }
    Ok(())
}

fn results(turn: &Turn<'_>, before: Option<&Turn<'_>>) -> Result<(), String> {
    if turn.blocks.is_empty() {
        return Err(format!(
            "messages.{}: user messages must have non-empty content",
            turn.first
        ));
    }
    let called = |id: &str| {
        before.is_some_and(|before| {
            before.blocks.iter().any(|(_, _, block)| {
                str_of(block, "type") == "tool_use" && str_of(block, "id") == id
            })
        })
    };
    let mut answered = HashSet::new();
    for (index, part, block) in &turn.blocks {
        if str_of(block, "type") != "tool_result" {
            continue;
        }
        let id = str_of(block, "tool_use_id");
        if !called(id) {
            return Err(format!(
                "messages.{index}.content.{part}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            ));
        }
        if !answered.insert(id) {
            return Err(format!(
                "messages.{index}.content.{part}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
            ));
        }
    }
    Ok(())
}

/// A turn of words that are only white space; the model's may be blank beside its calls.
fn blank(turn: &Turn<'_>) -> Result<(), String> {
    let words = turn.blocks.iter().map(|(_, _, block)| match block {
        Value::String(said) => Some(said.as_str()),
        block => (str_of(block, "type") == "text").then(|| str_of(block, "text")),
    });
    let words: Vec<Option<&str>> = words.collect();
    let has_others = words.iter().any(Option::is_none);
    let mut said = words.iter().flatten().peekable();
    let is_blank = said.peek().is_some() && said.all(|said| said.trim().is_empty());
    if is_blank && !(turn.role == "assistant" && has_others) {
        return Err("messages: text content blocks must contain non-whitespace text".to_owned());
    }
    Ok(())
}

fn cache(request: &Value, messages: &[Value]) -> Result<(), String> {
    let of = |list: &[Value]| list.iter().filter(|one| is_marked(one)).count();
    let in_messages: usize = messages
        .iter()
        .map(|message| of(items(message, "content")))
        .sum();
    let total = of(items(request, "tools")) + of(items(request, "system")) + in_messages;
    if total > 4 {
        return Err(format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {total}."
        ));
    }
    Ok(())
}

fn is_marked(block: &Value) -> bool {
    !matches!(block.get("cache_control"), None | Some(Value::Null))
}

fn is_thought(block: &Value) -> bool {
    ["thinking", "redacted_thinking"].contains(&str_of(block, "type"))
}

fn ends_with_thinking(turn: &Turn<'_>) -> Result<(), String> {
    match turn.blocks.last() {
        Some((message, _, block)) if turn.role == "assistant" && is_thought(block) => Err(format!(
            "messages.{message}: The final block in an assistant message cannot be `thinking`."
        )),
        _ => Ok(()),
    }
}

fn thinking(request: &Value, turns: &[Turn<'_>]) -> Result<(), String> {
    let has_results = |turn: &Turn<'_>| {
        let mut blocks = turn.blocks.iter();
        blocks.any(|(_, _, block)| str_of(block, "type") == "tool_result")
    };
    let is_open = |turn: &&Turn<'_>| turn.role == "assistant" || has_results(turn);
    let open: Vec<&Turn<'_>> = turns.iter().rev().take_while(is_open).collect();
    let kind = &request["thinking"]["type"];
    if kind != "enabled" {
        return Ok(());
    }
    if ["any", "tool"].contains(&str_of(&request["tool_choice"], "type")) {
        return Err("Thinking may not be enabled when tool_choice forces tool use.".to_owned());
    }
    let [.., said, answered] = turns else {
        return Ok(());
    };
    let starts = |turn: &Turn<'_>| {
        let first = turn.blocks.first();
        first.map(|(_, _, block)| match block {
            Value::String(_) => "text".to_owned(),
            block => str_of(block, "type").to_owned(),
        })
    };
    let is_loop = said.role == "assistant"
        && starts(answered).as_deref() == Some("tool_result")
        && said
            .blocks
            .iter()
            .any(|(_, _, block)| str_of(block, "type") == "tool_use");
    let first = starts(said).unwrap_or_default();
    // What was thought at the beginning of a turn serves for all its calls.
    let has_thought = open.iter().any(|turn| {
        let first = turn.blocks.first();
        turn.role == "assistant" && first.is_some_and(|(_, _, block)| is_thought(block))
    });
    if is_loop && !has_thought {
        return Err(format!(
            "messages.{}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`.",
            said.first
        ));
    }
    Ok(())
}

/// The models whose names say 4-6 or more do not take a beginning of their own answer.
fn end(request: &Value, messages: &[Value]) -> Result<(), String> {
    let model = str_of(request, "model");
    let new = [
        "4-6", "4-7", "4-8", "sonnet-5", "opus-5", "haiku-5", "fable-5",
    ];
    let is_new = new.iter().any(|version| model.contains(version));
    let last = messages.last().map(|last| str_of(last, "role"));
    if is_new && last == Some("assistant") {
        return Err("This model does not support assistant message prefill. The conversation must end with a user message.".to_owned());
    }
    let content = messages.last().map(|last| &last["content"]);
    let said = match content {
        Some(Value::Array(blocks)) => blocks.last().map(|block| &block["text"]),
        content => content,
    };
    let said = said.and_then(Value::as_str).unwrap_or_default();
    if last == Some("assistant") && said.trim_end() != said {
        return Err(
            "messages: final assistant content cannot end with trailing whitespace".to_owned(),
        );
    }
    Ok(())
}

fn of_letters(text: &str) -> bool {
    let legal = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    !text.is_empty() && text.chars().all(legal)
}

fn stream(reply: &Value, text: &mut String) {
    let mut begun = reply.clone();
    begun["content"] = json!([]);
    begun["stop_reason"] = Value::Null;
    event("message_start", json!({ "message": begun }), text);
    let blocks = reply["content"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, block) in blocks.iter().enumerate() {
        let mut opened = block.clone();
        let delta = match block["type"].as_str() {
            Some("tool_use") => {
                opened["input"] = json!({});
                json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
            }
            Some("thinking") => {
                opened["thinking"] = json!("");
                json!({"type": "thinking_delta", "thinking": block["thinking"]})
            }
            _ => {
                opened["text"] = json!("");
                json!({"type": "text_delta", "text": block["text"]})
            }
        };
        let opened = json!({"index": index, "content_block": opened});
        event("content_block_start", opened, text);
        event(
            "content_block_delta",
            json!({"index": index, "delta": delta}),
            text,
        );
        event("content_block_stop", json!({ "index": index }), text);
    }
    let delta = json!({"stop_reason": reply["stop_reason"], "stop_sequence": null});
    let usage = json!({"output_tokens": 1});
    event(
        "message_delta",
        json!({"delta": delta, "usage": usage}),
        text,
    );
    event("message_stop", json!({}), text);
}
