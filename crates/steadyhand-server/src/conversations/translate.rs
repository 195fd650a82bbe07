//! Messages in a provider's own JSON as ours, for people to look at: who said what, and which call has which result.
//! Nothing of it is sent anywhere, so what people do not read (thinking, the bytes of an image) is left out.

use std::collections::VecDeque;

use serde_json::{Map, Value};
use steadyhand::{AiMessage, Content, InvalidToolCall, Message, ToolCall, ToolMessage};
use steadyhand_conversation::Provider;

/// What was said, in the order it was said.
pub(super) fn translated(provider: Provider, said: &[Value]) -> Vec<Message> {
    let mut reader = Reader::default();
    for message in said {
        match provider {
            Provider::Anthropic => reader.anthropic(message),
            Provider::BedrockConverse => reader.converse(message),
            Provider::OpenAi | Provider::Mistral | Provider::Ollama => reader.chat(message),
            Provider::OpenAiResponses => reader.item(message),
            Provider::Gemini => reader.gemini(message),
            Provider::LangChain => {
                let read = serde_json::from_value(message.clone());
                reader
                    .messages
                    .extend(read.ok().into_iter().collect::<Vec<Message>>());
            }
        }
    }
    reader.messages
}

#[derive(Default)]
struct Reader {
    messages: Vec<Message>,
    /// Calls whose provider gives them no id: results come in their order, or say their name.
    nameless: VecDeque<(String, String)>,
    made: usize,
}

/// What one message has.
#[derive(Default)]
struct Parts {
    text: String,
    calls: Vec<ToolCall>,
    broken: Vec<InvalidToolCall>,
    results: Vec<ToolMessage>,
}

impl Reader {
    fn anthropic(&mut self, message: &Value) {
        let mut parts = Parts::default();
        let blocks = match &message["content"] {
            Value::String(text) => {
                parts.text.push_str(text);
                &[][..]
            }
            content => content.as_array().map_or(&[][..], Vec::as_slice),
        };
        for block in blocks {
            let kind = text(block, "type");
            match kind {
                "text" => parts.say(text(block, "text")),
                "thinking" | "redacted_thinking" => {}
                "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                    self.call(
                        &mut parts,
                        block.get("id"),
                        text(block, "name"),
                        &block["input"],
                    );
                }
                kind if kind.ends_with("tool_result") => {
                    let is_error = block["is_error"] == true;
                    self.result(
                        &mut parts,
                        block.get("tool_use_id"),
                        "",
                        &block["content"],
                        is_error,
                    );
                }
                kind => parts.name(kind),
            }
        }
        self.push(text(message, "role"), parts);
    }

    /// Of Bedrock's Converse: a block is what its only key says.
    fn converse(&mut self, message: &Value) {
        let mut parts = Parts::default();
        for block in message["content"].as_array().into_iter().flatten() {
            let kind = block.as_object().and_then(|fields| fields.keys().next());
            match kind.map_or("", String::as_str) {
                "text" => parts.say(text(block, "text")),
                "reasoningContent" | "cachePoint" => {}
                "toolUse" => {
                    let call = &block["toolUse"];
                    let id = call.get("toolUseId");
                    self.call(&mut parts, id, text(call, "name"), &call["input"]);
                }
                "toolResult" => {
                    let result = &block["toolResult"];
                    let is_error = result["status"] == "error";
                    let id = result.get("toolUseId");
                    self.result(&mut parts, id, "", &result["content"], is_error);
                }
                kind => parts.name(kind),
            }
        }
        self.push(text(message, "role"), parts);
    }

    fn chat(&mut self, message: &Value) {
        let role = text(message, "role");
        let mut parts = Parts::default();
        if matches!(role, "tool" | "function") {
            let name = match text(message, "name") {
                "" => text(message, "tool_name"),
                name => name,
            };
            self.result(
                &mut parts,
                message.get("tool_call_id"),
                name,
                &message["content"],
                false,
            );
            return self.push(role, parts);
        }
        parts.text = content(&message["content"]);
        parts.say(text(message, "refusal"));
        let calls = message["tool_calls"].as_array();
        for call in calls.into_iter().flatten() {
            let (of, arguments) = match call.get("custom") {
                Some(custom) => (custom, &custom["input"]),
                None => (&call["function"], &call["function"]["arguments"]),
            };
            self.call(&mut parts, call.get("id"), text(of, "name"), arguments);
        }
        self.push(role, parts);
    }

    /// Of OpenAI's Responses: calls and results are items of their own.
    fn item(&mut self, item: &Value) {
        let mut parts = Parts::default();
        let id = item.get("call_id");
        match text(item, "type") {
            "" | "message" => {
                parts.text = content(&item["content"]);
                self.push(text(item, "role"), parts);
            }
            "reasoning" => {}
            "function_call" => {
                self.call(&mut parts, id, text(item, "name"), &item["arguments"]);
                self.add(parts);
            }
            "custom_tool_call" => {
                self.call(&mut parts, id, text(item, "name"), &item["input"]);
                self.add(parts);
            }
            "function_call_output" | "custom_tool_call_output" => {
                self.result(&mut parts, id, "", &item["output"], false);
                self.push("tool", parts);
            }
            kind => {
                parts.name(kind);
                self.push("assistant", parts);
            }
        }
    }

    fn gemini(&mut self, message: &Value) {
        let mut parts = Parts::default();
        for part in message["parts"].as_array().into_iter().flatten() {
            let either = |camel: &str, snake: &str| part.get(camel).or_else(|| part.get(snake));
            if part["thought"] == true {
                continue;
            }
            if let Some(call) = either("functionCall", "function_call") {
                self.call(
                    &mut parts,
                    call.get("id"),
                    text(call, "name"),
                    &call["args"],
                );
            } else if let Some(result) = either("functionResponse", "function_response") {
                let (id, name) = (result.get("id"), text(result, "name"));
                self.result(&mut parts, id, name, &result["response"], false);
            } else if part.get("text").is_some() {
                parts.say(text(part, "text"));
            } else if let Some((kind, _)) = part.as_object().and_then(|part| part.iter().next()) {
                parts.name(kind);
            }
        }
        self.push(text(message, "role"), parts);
    }

    fn call(&mut self, parts: &mut Parts, id: Option<&Value>, name: &str, arguments: &Value) {
        let id = match id.and_then(Value::as_str).filter(|id| !id.is_empty()) {
            Some(id) => id.to_owned(),
            None => {
                // Those of an earlier turn are not answered any more.
                if parts.calls.is_empty() && parts.broken.is_empty() {
                    self.nameless.clear();
                }
                self.made += 1;
                let id = format!("call {}", self.made);
                self.nameless.push_back((id.clone(), name.to_owned()));
                id
            }
        };
        match read(arguments) {
            Ok(args) => parts.calls.push(ToolCall::with_id(id, name, args)),
            Err(args) => parts.broken.push(InvalidToolCall {
                id: Some(id),
                name: Some(name.to_owned()),
                args: Some(args),
                ..InvalidToolCall::default()
            }),
        }
    }

    fn result(
        &mut self,
        parts: &mut Parts,
        id: Option<&Value>,
        name: &str,
        said: &Value,
        is_error: bool,
    ) {
        let given = id.and_then(Value::as_str).filter(|id| !id.is_empty());
        let id = match given {
            Some(id) => id.to_owned(),
            None => {
                let at = self.nameless.iter().position(|(_, of)| of == name);
                let found = self.nameless.remove(at.unwrap_or(0));
                found.map(|(id, _)| id).unwrap_or_default()
            }
        };
        parts.results.push(ToolMessage {
            is_error,
            ..ToolMessage::new(id, Content::Text(content(said)))
        });
    }

    /// Calls that are items of their own belong to what the model said before them.
    fn add(&mut self, parts: Parts) {
        match self.messages.last_mut() {
            Some(Message::Ai(said)) => {
                said.tool_calls.extend(parts.calls);
                said.invalid_tool_calls.extend(parts.broken);
            }
            _ => self.push("assistant", parts),
        }
    }

    fn push(&mut self, role: &str, parts: Parts) {
        let has_results = !parts.results.is_empty();
        let results = parts.results.into_iter().map(Message::Tool);
        if matches!(role, "assistant" | "model") {
            let said = AiMessage {
                invalid_tool_calls: parts.broken,
                ..AiMessage::calling(parts.text, parts.calls)
            };
            self.messages.push(said.into());
            // What the provider runs itself is answered in the same breath.
            self.messages.extend(results);
            return;
        }
        self.messages.extend(results);
        // Results alone are nothing that a person said.
        if has_results && parts.text.trim().is_empty() {
            return;
        }
        self.messages.push(match role {
            "system" | "developer" => Message::system(parts.text),
            _ => Message::human(parts.text),
        });
    }
}

impl Parts {
    fn say(&mut self, words: &str) {
        self.text.push_str(words);
    }

    /// What cannot be read here is named.
    fn name(&mut self, kind: &str) {
        self.text.push_str(&format!("[{kind}]"));
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// What a content says: a text, parts of which some are texts, or a value of its own.
fn content(said: &Value) -> String {
    match said {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) if parts.iter().all(|part| part["type"].is_string()) => {
            let mut words = Parts::default();
            for part in parts {
                match part["text"].as_str() {
                    Some(text) => words.say(text),
                    None => words.name(text(part, "type")),
                }
            }
            words.text
        }
        value => value.to_string(),
    }
}

/// Arguments as an object, or as the text that is none.
fn read(arguments: &Value) -> Result<Map<String, Value>, String> {
    match arguments {
        Value::Null => Ok(Map::new()),
        Value::Object(arguments) => Ok(arguments.clone()),
        Value::String(text) if text.trim().is_empty() => Ok(Map::new()),
        Value::String(text) => serde_json::from_str(text).map_err(|_| text.clone()),
        other => Err(other.to_string()),
    }
}
