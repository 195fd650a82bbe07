//! OpenAI's Responses: a conversation is a list of items, and so is an answer.

mod stream;

use serde_json::{Map, Value, json};
use steadyhand::{AiMessage, Content, Message};

use super::ResponsesFormat;
use crate::client::{ModelRequest, Reply, RequestSettings, Stop, StreamReader, ToolChoice, Usage};
use crate::converted::Converted;
use crate::providers::Provider;
use crate::providers::client::calls::{self, Calls, Found};
use crate::providers::client::parts::{self, Part};
use crate::providers::client::{ClientFormat, has_error, list, number, thinking};
use crate::providers::names::legal_name;
use crate::providers::wire::text;

const PROVIDER: Provider = Provider::OpenAiResponses;

impl ClientFormat for ResponsesFormat {
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
        "responses"
    }

    fn is_error(&self, body: &Value) -> bool {
        has_error(body) && (text(body, "status") == Some("failed") || body.get("output").is_none())
    }

    fn error_in_event<'a>(&self, event: &'a Value) -> Option<&'a Value> {
        match text(event, "type") {
            Some("response.failed") => Some(match &event["response"] {
                response if self.is_error(response) => response,
                _ => &Value::Null,
            }),
            Some("error") => Some(event),
            _ => self.is_error(event).then_some(event),
        }
    }

    fn encode(
        &self,
        settings: &RequestSettings<'_>,
        request: &ModelRequest<'_>,
        tools: &Converted,
    ) -> Value {
        let mut input = Vec::new();
        for message in request.messages {
            items(message, &mut input);
        }
        // The conversation is ours: nothing of it is kept there.
        let mut body = json!({"model": settings.model, "input": input, "store": false});
        if let Some(tokens) = settings.max_tokens {
            body["max_output_tokens"] = json!(tokens);
        }
        if let Some(temperature) = settings.temperature {
            body["temperature"] = json!(temperature);
        }
        if let Some(thinking) = settings.thinking {
            body["reasoning"] = match thinking {
                Value::String(effort) => json!({"effort": effort}),
                other => other.clone(),
            };
            // What is not kept there must come back in full.
            body["include"] = json!(["reasoning.encrypted_content"]);
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
        if !response["output"].is_array() {
            return Err("it has no output");
        }
        let why = text(&response["incomplete_details"], "reason");
        let mut stop = match (text(&response, "status"), why) {
            (_, Some("max_output_tokens")) => Stop::Length,
            (_, Some("content_filter")) => Stop::Refusal,
            (Some("completed") | None, None) => Stop::EndTurn,
            (_, Some(why)) => Stop::Other(why.to_owned()),
            (Some(status), None) => Stop::Other(status.to_owned()),
        };
        let output = list(&response, "output");
        let mut found = Calls::default();
        let mut blocks: Vec<Value> = Vec::new();
        let mut is_plain = true;
        for (index, item) in output.iter().enumerate() {
            match text(item, "type") {
                Some("function_call") => {
                    found.take(
                        Found {
                            id: text(item, "call_id"),
                            name: text(item, "name").unwrap_or_default(),
                            args: item.get("arguments"),
                            extra: Map::new(),
                            may_be_cut: (stop == Stop::Length && index + 1 == output.len())
                                || text(item, "status") == Some("incomplete"),
                        },
                        tools,
                    );
                }
                Some("message") | None => {
                    for part in list(item, "content") {
                        is_plain &= list(part, "annotations").is_empty() && is_spoken(part);
                        blocks.extend(spoken(part, &mut stop));
                    }
                }
                Some(_) => {
                    is_plain = false;
                    blocks.push(item.clone());
                }
            }
        }
        if !found.is_empty() && stop == Stop::EndTurn {
            stop = Stop::ToolUse;
        }
        let (content, _) = thinking::apart(Content::Blocks(blocks));
        let content = match is_plain {
            true => Content::Text(content.text().into_owned()),
            false => content,
        };
        let mut message = AiMessage::saying(content);
        found.into(&mut message);
        let usage = Usage {
            input_tokens: number(&response["usage"], "input_tokens"),
            output_tokens: number(&response["usage"], "output_tokens"),
        };
        calls::metadata(&mut message, PROVIDER, &response, &stop, usage);
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

fn items(message: &Message, input: &mut Vec<Value>) {
    match message {
        Message::System(told) => {
            input
                .push(json!({"type": "message", "role": "system", "content": told.content.text()}));
        }
        Message::Human(said) => {
            let content = content(&said.content);
            input.push(json!({"type": "message", "role": "user", "content": content}));
        }
        Message::Ai(ai) => said_by_model(ai, input),
        Message::Tool(result) => {
            input.push(json!({
                "type": "function_call_output",
                "call_id": result.tool_call_id,
                "output": content(&result.content),
            }));
        }
        Message::Other(other) => {
            let said = other.fields.get("content").and_then(Value::as_str);
            input.push(
                json!({"type": "message", "role": "user", "content": said.unwrap_or_default()}),
            );
        }
    }
}

fn content(content: &Content) -> Value {
    if let Content::Text(text) = content {
        return json!(text);
    }
    let part = |part: Part<'_>| match part {
        Part::Text(text) => json!({"type": "input_text", "text": text}),
        Part::Picture { kind, data } => {
            json!({"type": "input_image", "image_url": parts::data_address(kind, data)})
        }
        Part::PictureAt(address) => json!({"type": "input_image", "image_url": address}),
        Part::Other(block) if text(block, "type") == Some("input_file") => block.clone(),
        Part::Other(other) => json!({"type": "input_text", "text": parts::stand_in(other)}),
    };
    Value::Array(parts::parts(content).into_iter().map(part).collect())
}

fn said_by_model(ai: &AiMessage, input: &mut Vec<Value>) {
    if calls::is_from(ai, PROVIDER)
        && let Content::Blocks(blocks) = &ai.content
    {
        // Without its content a reasoning is one that nobody there has.
        let whole = |block: &&Value| {
            text(block, "type") == Some("reasoning") && text(block, "encrypted_content").is_some()
        };
        // With an id it would need the ids of the items behind it, which a conversation does not keep.
        input.extend(blocks.iter().filter(whole).cloned().map(|mut reasoning| {
            if let Some(fields) = reasoning.as_object_mut() {
                fields.shift_remove("id");
                // That is in answers only.
                fields.shift_remove("status");
            }
            reasoning
        }));
    }
    let said = ai.content.text();
    if !said.is_empty() {
        let part = json!({"type": "output_text", "text": said, "annotations": []});
        input.push(json!({"type": "message", "role": "assistant", "content": [part]}));
    }
    for (id, name, args, _) in calls::sent(ai) {
        let name = legal_name(PROVIDER, name);
        let arguments = Value::Object(args).to_string();
        input.push(
            json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments}),
        );
    }
}

/// A part of a message, as a block that everybody reads.
fn spoken(part: &Value, stop: &mut Stop) -> Option<Value> {
    match text(part, "type") {
        Some("refusal") => {
            *stop = Stop::Refusal;
            Some(json!({"type": "text", "text": text(part, "refusal")?}))
        }
        // Thinking, or something that is yet to come: nothing to be read out.
        _ if !is_spoken(part) => Some(part.clone()),
        _ => {
            let mut block = part.as_object()?.clone();
            block.insert("type".to_owned(), json!("text"));
            Some(Value::Object(block))
        }
    }
}

fn is_spoken(part: &Value) -> bool {
    matches!(
        text(part, "type"),
        None | Some("output_text" | "text" | "input_text" | "refusal")
    )
}
