//! OpenAI's Chat Completions, and the many servers that speak it, each with habits of its own.

mod stream;

use serde_json::{Map, Value, json};
use steadyhand::{AiMessage, Content, Message, ToolMessage};

use super::OpenAiFormat;
use crate::client::{
    Delivery, ModelRequest, Reply, RequestSettings, Stop, StreamReader, ToolChoice, Usage,
};
use crate::converted::Converted;
use crate::providers::Provider;
use crate::providers::client::calls::{self, Calls, Found};
use crate::providers::client::parts::{self, Part};
use crate::providers::client::{ClientFormat, has_error, list, number, thinking};
use crate::providers::names::legal_name;
use crate::providers::wire::text;

/// What thinking is called: DeepSeek, OpenRouter, and those who follow them. It goes back to who sent it.
const THINKING: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];
/// Where thinking is kept that came in tags within the answer. It goes back the same way.
const THOUGHT_IN_TAGS: &str = "think";

const PROVIDER: Provider = Provider::OpenAi;

impl ClientFormat for OpenAiFormat {
    fn provider(&self) -> Provider {
        PROVIDER
    }

    fn public_url(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn key_variable(&self) -> Option<&'static str> {
        Some("OPENAI_API_KEY")
    }

    fn path(&self) -> &'static str {
        "chat/completions"
    }

    /// An answer with an error beside it is an answer.
    fn is_error(&self, body: &Value) -> bool {
        has_error(body) && body.get("choices").is_none()
    }

    fn encode(
        &self,
        settings: &RequestSettings<'_>,
        request: &ModelRequest<'_>,
        tools: &Converted,
    ) -> Value {
        let messages: Vec<Value> = request
            .messages
            .iter()
            .map(|one| message(one, settings))
            .collect();
        let mut body = json!({"model": settings.model, "messages": messages});
        if let Some(tokens) = settings.max_tokens {
            // OpenAI's newer models refuse the old name; nobody else knows the new one.
            let is_theirs = settings.is_at_makers;
            let key = match is_theirs {
                true => "max_completion_tokens",
                false => "max_tokens",
            };
            body[key] = json!(tokens);
        }
        if let Some(temperature) = settings.temperature {
            body["temperature"] = json!(temperature);
        }
        if let Some(effort) = settings.thinking {
            body["reasoning_effort"] = effort.clone();
        }
        if request.delivery == Delivery::Streaming {
            body["stream_options"] = json!({"include_usage": true});
        }
        if tools.tools.is_empty() {
            return body;
        }
        body["tools"] = json!(tools.tools);
        match request.choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => body["tool_choice"] = json!("required"),
            ToolChoice::None => body["tool_choice"] = json!("none"),
        }
        body
    }

    fn decode(&self, response: Value, tools: &Converted) -> Result<Reply, &'static str> {
        let Some(choice) = list(&response, "choices").first() else {
            return Err("it has no choices");
        };
        let said = &choice["message"];
        if !said.is_object() {
            return Err("its choice has no message");
        }
        let mut stop = match text(choice, "finish_reason") {
            Some("stop" | "eos") | None => Stop::EndTurn,
            Some("tool_calls" | "function_call") => Stop::ToolUse,
            Some("length" | "model_length") => Stop::Length,
            Some("content_filter") => Stop::Refusal,
            Some(other) => Stop::Other(other.to_owned()),
        };
        if text(said, "refusal").is_some_and(|refusal| !refusal.is_empty()) {
            stop = Stop::Refusal;
        }
        let calls = list(said, "tool_calls");
        let mut found = Calls::default();
        for (index, call) in calls.iter().enumerate() {
            let mut extra = call.as_object().cloned().unwrap_or_default();
            extra.retain(|key, _| !["id", "type", "function", "index"].contains(&key.as_str()));
            found.take(
                Found {
                    id: text(call, "id"),
                    name: text(&call["function"], "name").unwrap_or_default(),
                    args: call["function"].get("arguments"),
                    extra,
                    may_be_cut: stop == Stop::Length && index + 1 == calls.len(),
                },
                tools,
            );
        }
        if !found.is_empty() && stop == Stop::EndTurn {
            stop = Stop::ToolUse;
        }
        let (content, thought) = thinking::apart(spoken(said));
        let mut message = AiMessage::saying(content);
        found.into(&mut message);
        let usage = Usage {
            input_tokens: number(&response["usage"], "prompt_tokens"),
            output_tokens: number(&response["usage"], "completion_tokens"),
        };
        calls::metadata(&mut message, PROVIDER, &response, &stop, usage);
        let mut more = more(said);
        if !thought.is_empty() {
            more.insert(THOUGHT_IN_TAGS.to_owned(), json!(thought));
        }
        if !more.is_empty() {
            message
                .extra
                .insert("additional_kwargs".to_owned(), Value::Object(more));
        }
        Ok(Reply {
            message,
            stop,
            usage,
            raw: response,
        })
    }

    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::new(stream::Stream::default())
    }
}

fn message(message: &Message, settings: &RequestSettings<'_>) -> Value {
    match message {
        Message::System(told) => json!({"role": "system", "content": told.content.text()}),
        Message::Human(said) => json!({"role": "user", "content": content(&said.content)}),
        Message::Ai(ai) => said_by_model(ai, settings),
        Message::Tool(result) => answer(result),
        Message::Other(other) => {
            let said = other.fields.get("content").and_then(Value::as_str);
            json!({"role": "user", "content": said.unwrap_or_default()})
        }
    }
}

fn content(content: &Content) -> Value {
    if let Content::Text(text) = content {
        return json!(text);
    }
    let part = |part: Part<'_>| match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Picture { kind, data } => {
            json!({"type": "image_url", "image_url": {"url": parts::data_address(kind, data)}})
        }
        Part::PictureAt(address) => json!({"type": "image_url", "image_url": {"url": address}}),
        Part::Other(block) if matches!(text(block, "type"), Some("input_audio" | "file")) => {
            block.clone()
        }
        Part::Other(other) => json!({"type": "text", "text": parts::stand_in(other)}),
    };
    Value::Array(parts::parts(content).into_iter().map(part).collect())
}

fn said_by_model(ai: &AiMessage, settings: &RequestSettings<'_>) -> Value {
    let mut message = json!({"role": "assistant", "content": ai.content.text()});
    let is_own = calls::is_from(ai, PROVIDER);
    let calls: Vec<Value> = calls::sent(ai)
        .map(|(id, name, args, extra)| {
            let name = legal_name(PROVIDER, name);
            let arguments = Value::Object(args).to_string();
            let mut call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
            if let (true, Value::Object(fields)) = (is_own, &mut call) {
                for (key, value) in extra.iter() {
                    fields.entry(key.as_str()).or_insert_with(|| value.clone());
                }
            }
            call
        })
        .collect();
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
        if message["content"] == "" {
            message["content"] = Value::Null;
        }
    }
    // OpenAI itself never shows its thinking, and refuses fields it does not know.
    let wants_thinking = is_own && !settings.is_at_makers;
    if let (true, Some(Value::Object(more))) = (wants_thinking, ai.extra.get("additional_kwargs")) {
        for key in THINKING {
            if let Some(thinking) = more.get(key) {
                message[key] = thinking.clone();
            }
        }
        if let Some(Value::String(thought)) = more.get(THOUGHT_IN_TAGS) {
            let said = ai.content.text();
            message["content"] = json!(format!("<think>{thought}</think>\n\n{said}"));
        }
    }
    message
}

fn answer(result: &ToolMessage) -> Value {
    // Pictures are put behind the results by the repair: here they are refused.
    json!({
        "role": "tool",
        "tool_call_id": result.tool_call_id,
        "content": content(&result.content),
    })
}

/// What it says; a refusal is something said, too.
fn spoken(said: &Value) -> Content {
    let content = match &said["content"] {
        Value::String(text) => Content::Text(text.clone()),
        Value::Array(blocks) => {
            let all_text = blocks
                .iter()
                .all(|block| text(block, "type") == Some("text"));
            let content = Content::Blocks(blocks.clone());
            match all_text {
                true => Content::Text(content.text().into_owned()),
                false => content,
            }
        }
        _ => Content::default(),
    };
    match text(said, "refusal") {
        Some(refusal) if content.text().is_empty() => Content::Text(refusal.to_owned()),
        _ => content,
    }
}

/// The fields that have no place of their own, those that say something.
fn more(said: &Value) -> Map<String, Value> {
    let mut more = said.as_object().cloned().unwrap_or_default();
    more.retain(|key, value| {
        let is_empty =
            value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty);
        !["role", "content", "tool_calls"].contains(&key.as_str()) && !is_empty
    });
    more
}
