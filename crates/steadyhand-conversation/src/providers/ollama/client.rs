//! Ollama's `/api/chat`: arguments are objects, ids may be missing, thinking is kept apart.

use serde_json::{Map, Value, json};
use steadyhand::{AiMessage, Content, Message};

use super::OllamaFormat;
use crate::client::{
    ModelRequest, Reply, RequestSettings, Stop, StreamReader, Told, ToolChoice, Usage,
};
use crate::converted::Converted;
use crate::providers::Provider;
use crate::providers::client::calls::{self, Calls, Found};
use crate::providers::client::parts::{self, Part};
use crate::providers::client::{ClientFormat, has_error, list, number, thinking};
use crate::providers::names::legal_name;
use crate::providers::wire::text;

const PROVIDER: Provider = Provider::Ollama;

impl ClientFormat for OllamaFormat {
    fn provider(&self) -> Provider {
        PROVIDER
    }

    fn public_url(&self) -> &'static str {
        "http://127.0.0.1:11434"
    }

    fn key_variable(&self) -> Option<&'static str> {
        None
    }

    fn path(&self) -> &'static str {
        "api/chat"
    }

    fn model_list(&self) -> (&'static str, &'static str, &'static str) {
        ("api/tags", "models", "name")
    }

    fn how_to_get(&self, model: &str) -> Option<String> {
        Some(format!("ollama pull {model}"))
    }

    fn how_to_start(&self) -> Option<&'static str> {
        Some("ollama serve")
    }

    fn streams_lines(&self) -> bool {
        true
    }

    fn is_error(&self, body: &Value) -> bool {
        has_error(body)
    }

    fn encode(
        &self,
        settings: &RequestSettings<'_>,
        request: &ModelRequest<'_>,
        tools: &Converted,
    ) -> Value {
        let messages: Vec<Value> = request.messages.iter().map(message).collect();
        let mut options = Map::new();
        // Its own default is small, and what does not fit is cut off without a word.
        options.insert("num_ctx".to_owned(), json!(settings.num_ctx));
        if let Some(temperature) = settings.temperature {
            options.insert("temperature".to_owned(), json!(temperature));
        }
        if let Some(tokens) = settings.max_tokens {
            options.insert("num_predict".to_owned(), json!(tokens));
        }
        let mut body = json!({"model": settings.model, "messages": messages, "options": options});
        if let Some(keep_alive) = settings.keep_alive {
            body["keep_alive"] = keep_alive.clone();
        }
        if let Some(think) = settings.thinking {
            body["think"] = think.clone();
        }
        // It has no way to forbid tools but not to have them.
        if !tools.tools.is_empty() && request.choice != ToolChoice::None {
            body["tools"] = json!(tools.tools);
        }
        body
    }

    fn decode(&self, response: Value, tools: &Converted) -> Result<Reply, &'static str> {
        let said = &response["message"];
        if !said.is_object() {
            return Err("it has no message");
        }
        let mut stop = match text(&response, "done_reason") {
            Some("stop") | None => Stop::EndTurn,
            Some("length") => Stop::Length,
            Some(other) => Stop::Other(other.to_owned()),
        };
        let calls = list(said, "tool_calls");
        let mut found = Calls::default();
        for (index, call) in calls.iter().enumerate() {
            found.take(
                Found {
                    id: text(call, "id"),
                    name: text(&call["function"], "name").unwrap_or_default(),
                    args: call["function"].get("arguments"),
                    extra: Map::new(),
                    may_be_cut: stop == Stop::Length && index + 1 == calls.len(),
                },
                tools,
            );
        }
        if !found.is_empty() && stop == Stop::EndTurn {
            stop = Stop::ToolUse;
        }
        let words = text(said, "content").unwrap_or_default();
        let (words, in_tags) = thinking::apart(Content::Text(words.to_owned()));
        let thought = text(said, "thinking").unwrap_or_default().to_owned() + &in_tags;
        let content = if thought.is_empty() {
            words
        } else {
            let mut blocks = vec![json!({"type": "thinking", "thinking": thought})];
            if !words.text().is_empty() {
                blocks.push(json!({"type": "text", "text": words.text()}));
            }
            Content::Blocks(blocks)
        };
        let mut message = AiMessage::saying(content);
        found.into(&mut message);
        let usage = Usage {
            input_tokens: number(&response, "prompt_eval_count"),
            output_tokens: number(&response, "eval_count"),
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
        Box::new(Stream::default())
    }

    fn context_cut(&self, body: &Value, response: &Value) -> Option<String> {
        context_cut(body, response)
    }
}

fn message(message: &Message) -> Value {
    match message {
        Message::System(told) => json!({"role": "system", "content": told.content.text()}),
        Message::Human(said) => said_by(&said.content, "user"),
        Message::Ai(ai) => said_by_model(ai),
        Message::Tool(result) => {
            let mut answer = said_by(&result.content, "tool");
            if let Some(name) = &result.name {
                answer["tool_name"] = json!(legal_name(PROVIDER, name));
            }
            answer["tool_call_id"] = json!(result.tool_call_id);
            answer
        }
        Message::Other(other) => {
            let said = other.fields.get("content").and_then(Value::as_str);
            json!({"role": "user", "content": said.unwrap_or_default()})
        }
    }
}

/// Text and pictures are apart; only what is at hand can be shown.
fn said_by(content: &Content, role: &str) -> Value {
    let mut said = String::new();
    let mut pictures = Vec::new();
    for part in parts::parts(content) {
        match part {
            Part::Text(text) => said.push_str(text),
            Part::Picture { data, .. } => pictures.push(json!(data)),
            Part::PictureAt(address) => said.push_str(&format!("[a picture at {address}]")),
            Part::Other(other) => said.push_str(&parts::stand_in(other)),
        }
    }
    let mut message = json!({"role": role, "content": said});
    if !pictures.is_empty() {
        message["images"] = Value::Array(pictures);
    }
    message
}

fn said_by_model(ai: &AiMessage) -> Value {
    let mut message = json!({"role": "assistant", "content": ai.content.text()});
    if calls::is_from(ai, PROVIDER)
        && let Content::Blocks(blocks) = &ai.content
    {
        let thinking: String = blocks
            .iter()
            .filter_map(|block| text(block, "thinking"))
            .collect();
        if !thinking.is_empty() {
            message["thinking"] = json!(thinking);
        }
    }
    let calls: Vec<Value> = calls::sent(ai)
        .map(|(id, name, args, _)| {
            let name = legal_name(PROVIDER, name);
            json!({"id": id, "function": {"name": name, "arguments": args}})
        })
        .collect();
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    message
}

/// What to say when the model cannot have seen all that was sent: Ollama cuts what does not fit, without a word.
///
/// A tokenizer makes a token of at most so many bytes of prose or JSON on average; fewer tokens than that
/// were never all of it.
fn context_cut(body: &Value, response: &Value) -> Option<String> {
    const PROSE_BYTES: usize = 7;
    const JSON_BYTES: usize = 4;
    let read = number(response, "prompt_eval_count");
    let num_ctx = number(&body["options"], "num_ctx");
    if read == 0 {
        return None;
    }
    let prose: usize = list(body, "messages")
        .iter()
        .map(|message| text(message, "content").map_or(0, str::len))
        .sum();
    let tools = body.get("tools").map_or(0, |tools| tools.to_string().len());
    let sent = (prose / PROSE_BYTES + tools / JSON_BYTES) as u64;
    let written = number(response, "eval_count");
    let is_full = num_ctx > 0 && read + written >= num_ctx;
    if read >= sent && !is_full {
        return None;
    }
    let what = match read < sent {
        true => format!("at least {sent} tokens were sent, and {read} reached the model"),
        false => format!("its context is full ({read} tokens read, {written} written)"),
    };
    Some(format!(
        "the model did not see all of the conversation: {what}; num_ctx is {num_ctx}, set a larger one"
    ))
}

/// The stream: one JSON value per line.
#[derive(Debug, Default)]
struct Stream {
    response: Map<String, Value>,
    message: Map<String, Value>,
    is_done: bool,
}

impl StreamReader for Stream {
    fn take(&mut self, mut line: Value, tell: &mut dyn FnMut(Told)) {
        if let Value::Object(message) = line["message"].take() {
            for (key, value) in message {
                self.grow(key, value, tell);
            }
        }
        if let Value::Object(fields) = line {
            self.is_done |= fields.get("done") == Some(&Value::Bool(true));
            self.response
                .extend(fields.into_iter().filter(|(key, _)| key != "message"));
        }
    }

    fn is_complete(&self) -> bool {
        self.is_done
    }

    fn into_response(self: Box<Self>) -> Value {
        let mut this = *self;
        this.response
            .insert("message".to_owned(), Value::Object(this.message));
        Value::Object(this.response)
    }
}

impl Stream {
    fn grow(&mut self, key: String, value: Value, tell: &mut dyn FnMut(Told)) {
        match (key.as_str(), &value) {
            ("content", Value::String(said)) if !said.is_empty() => tell(Told::Text(said.clone())),
            ("thinking", Value::String(said)) if !said.is_empty() => {
                tell(Told::Thinking(said.clone()));
            }
            ("tool_calls", Value::Array(calls)) => {
                for call in calls {
                    let name = text(&call["function"], "name").unwrap_or_default();
                    tell(Told::Call(name.to_owned()));
                }
            }
            _ => {}
        }
        match (self.message.get_mut(&key), value) {
            (Some(_), Value::Null) => {}
            (Some(Value::String(said)), Value::String(piece)) if key != "role" => {
                said.push_str(&piece);
            }
            (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
            (_, value) => {
                self.message.insert(key, value);
            }
        }
    }
}
