//! Anthropic's Messages. Blocks of the model's go back as they came: its signatures depend on it.

mod stream;

use serde_json::{Map, Value, json};
use steadyhand::{AiMessage, Content, Message, ToolMessage};

use super::AnthropicFormat;
use crate::client::{ModelRequest, Reply, RequestSettings, Stop, StreamReader, ToolChoice, Usage};
use crate::converted::Converted;
use crate::providers::Provider;
use crate::providers::client::calls::{self, Calls, Found};
use crate::providers::client::parts::{self, Part};
use crate::providers::client::{ClientFormat, list, number, thinking};
use crate::providers::names::legal_name;
use crate::providers::wire::text;

/// Anthropic wants a limit: this is one that all of its models take.
const MAX_TOKENS: u32 = 4096;

const PROVIDER: Provider = Provider::Anthropic;

impl ClientFormat for AnthropicFormat {
    fn provider(&self) -> Provider {
        PROVIDER
    }

    fn public_url(&self) -> &'static str {
        "https://api.anthropic.com"
    }

    fn key_variable(&self) -> Option<&'static str> {
        Some("ANTHROPIC_API_KEY")
    }

    fn path(&self) -> &'static str {
        "v1/messages"
    }

    fn model_list(&self) -> (&'static str, &'static str, &'static str) {
        ("v1/models", "data", "id")
    }

    /// Its own clients take it without, others are told to write it.
    fn base<'a>(&self, url: &'a str) -> &'a str {
        url.strip_suffix("/v1").unwrap_or(url)
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("x-api-key", key.to_owned())
    }

    fn is_error(&self, body: &Value) -> bool {
        text(body, "type") == Some("error")
    }

    fn encode(
        &self,
        settings: &RequestSettings<'_>,
        request: &ModelRequest<'_>,
        tools: &Converted,
    ) -> Value {
        let mut messages: Vec<Value> = Vec::new();
        let mut system: Vec<String> = Vec::new();
        for message in request.messages {
            match message {
                Message::System(told) => system.push(told.content.text().into_owned()),
                Message::Human(said) => {
                    messages.push(json!({"role": "user", "content": said_by_user(&said.content)}));
                }
                Message::Ai(ai) => {
                    messages.push(json!({"role": "assistant", "content": said_by_model(ai)}));
                }
                Message::Tool(result) => {
                    let block = answer(result);
                    match messages.last_mut() {
                        Some(last) if is_results(last) => {
                            if let Some(Value::Array(blocks)) = last.get_mut("content") {
                                blocks.push(block);
                            }
                        }
                        _ => messages.push(json!({"role": "user", "content": [block]})),
                    }
                }
                Message::Other(other) => {
                    let said =
                        text(&Value::Object(other.fields.0.clone()), "content").map(str::to_owned);
                    messages.push(json!({"role": "user", "content": said.unwrap_or_default()}));
                }
            }
        }
        let mut body = json!({
            "model": settings.model,
            "max_tokens": settings.max_tokens.unwrap_or(MAX_TOKENS),
            "messages": messages,
        });
        if !system.is_empty() {
            body["system"] = json!(system.join("\n\n"));
        }
        if let Some(temperature) = settings.temperature {
            body["temperature"] = json!(temperature);
        }
        if let Some(thinking) = settings.thinking {
            body["thinking"] = thinking.clone();
        }
        if tools.tools.is_empty() {
            return body;
        }
        // Without its tools a history with calls is refused: they stay, and are forbidden.
        body["tools"] = json!(tools.tools);
        match request.choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => body["tool_choice"] = json!({"type": "any"}),
            ToolChoice::None => body["tool_choice"] = json!({"type": "none"}),
        }
        body
    }

    fn decode(&self, mut response: Value, tools: &Converted) -> Result<Reply, &'static str> {
        // Ollama's Anthropic surface says null for a call that was cut off.
        if !response["content"].is_array() && !response["content"].is_null() {
            return Err("it has no content");
        }
        if response.get("content").is_none() {
            return Err("it has no content");
        }
        let stop = match text(&response, "stop_reason") {
            Some("end_turn" | "stop_sequence") => Stop::EndTurn,
            Some("tool_use") => Stop::ToolUse,
            Some("max_tokens" | "model_context_window_exceeded") => Stop::Length,
            Some("refusal") => Stop::Refusal,
            Some(other) => Stop::Other(other.to_owned()),
            None => Stop::EndTurn,
        };
        let count = list(&response, "content").len();
        let mut found = Calls::default();
        let mut blocks = list(&response, "content").to_vec();
        for (index, block) in blocks.iter_mut().enumerate() {
            if text(block, "type") != Some("tool_use") {
                continue;
            }
            let id = found.take(
                Found {
                    id: text(block, "id"),
                    name: text(block, "name").unwrap_or_default(),
                    args: block.get("input"),
                    extra: Map::new(),
                    may_be_cut: stop == Stop::Length && index + 1 == count,
                },
                tools,
            );
            block["id"] = json!(id);
        }
        // Without a signature thinking cannot go back: it is in the response, and nowhere else.
        let (blocks, _) = thinking::apart_in_blocks(blocks);
        let mut message = AiMessage::saying(content(blocks));
        found.into(&mut message);
        let usage = usage(&response["usage"]);
        calls::metadata(&mut message, PROVIDER, &response, &stop, usage);
        Ok(Reply {
            message,
            stop,
            usage,
            raw: response.take(),
        })
    }

    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::new(stream::Stream::default())
    }
}

fn is_results(message: &Value) -> bool {
    message["role"] == "user" && message["content"][0]["type"] == "tool_result"
}

fn said_by_user(content: &Content) -> Value {
    if let Content::Text(text) = content {
        return json!(text);
    }
    Value::Array(parts::parts(content).into_iter().map(block).collect())
}

fn block(part: Part<'_>) -> Value {
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Picture { kind, data } => {
            json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}})
        }
        Part::PictureAt(address) => {
            json!({"type": "image", "source": {"type": "url", "url": address}})
        }
        // Documents, search results: what Anthropic has a name for.
        Part::Other(block)
            if matches!(
                text(block, "type"),
                Some("document" | "search_result" | "tool_reference")
            ) =>
        {
            block.clone()
        }
        Part::Other(other) => json!({"type": "text", "text": parts::stand_in(other)}),
    }
}

fn said_by_model(ai: &AiMessage) -> Vec<Value> {
    let mut said = Vec::new();
    let mut placed: Vec<&str> = Vec::new();
    let is_own = calls::is_from(ai, PROVIDER);
    if let Content::Blocks(blocks) = &ai.content {
        for block in blocks {
            match text(block, "type") {
                Some("tool_use") if is_own => {
                    if let Some((id, block)) = own_call(block, ai) {
                        placed.push(id);
                        said.push(block);
                    }
                }
                Some("text") if text(block, "text") == Some("") => {}
                Some(_) if is_own => said.push(block.clone()),
                _ if parts::is_inner(block) => {}
                _ => {
                    let content = Content::Blocks(vec![block.clone()]);
                    said.extend(parts::parts(&content).into_iter().map(self::block));
                }
            }
        }
    } else {
        said.extend(parts::parts(&ai.content).into_iter().map(block));
    }
    for (id, name, args, _) in calls::sent(ai) {
        if !placed.contains(&id) {
            let name = legal_name(PROVIDER, name);
            said.push(json!({"type": "tool_use", "id": id, "name": name, "input": args}));
        }
    }
    said
}

/// A block with a call, as it came; its arguments are an object, whatever they were.
fn own_call<'a>(block: &Value, ai: &'a AiMessage) -> Option<(&'a str, Value)> {
    let own = text(block, "id")?;
    let (id, _, args, _) = calls::sent(ai).find(|(id, ..)| *id == own)?;
    let mut block = block.clone();
    if !block["input"].is_object() {
        block["input"] = Value::Object(args);
    }
    Some((id, block))
}

fn answer(result: &ToolMessage) -> Value {
    let content = match &result.content {
        Content::Text(text) => json!(text),
        blocks => Value::Array(parts::parts(blocks).into_iter().map(block).collect()),
    };
    let mut block = json!({
        "type": "tool_result",
        "tool_use_id": result.tool_call_id,
        "content": content,
    });
    if result.is_error {
        block["is_error"] = json!(true);
    }
    block
}

/// A text where that says it all, else the blocks as they came.
fn content(blocks: Vec<Value>) -> Content {
    let texts = blocks
        .iter()
        .take_while(|block| has_only(block, "text", &["type", "text"]))
        .count();
    let is_plain = texts <= 1
        && blocks[texts..]
            .iter()
            .all(|block| has_only(block, "tool_use", &["type", "id", "name", "input"]));
    if !is_plain {
        return Content::Blocks(blocks);
    }
    let said = blocks.first().and_then(|block| text(block, "text"));
    Content::Text(said.unwrap_or_default().to_owned())
}

fn has_only(block: &Value, kind: &str, keys: &[&str]) -> bool {
    let fields = block.as_object();
    text(block, "type") == Some(kind)
        && fields.is_some_and(|fields| fields.keys().all(|key| keys.contains(&key.as_str())))
}

fn usage(counts: &Value) -> Usage {
    let read = [
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    ];
    Usage {
        input_tokens: read.iter().map(|key| number(counts, key)).sum(),
        output_tokens: number(counts, "output_tokens"),
    }
}
