//! What Bedrock's Converse answers.

use serde_json::{Value, json};
use steadyhand::Arguments;

use super::ConverseFormat;
use crate::problem::Code;
use crate::providers::arguments;
use crate::providers::mender::Mender;
use crate::providers::rules::{AnswerPlace, ResponseRules};
use crate::providers::wire::text;
use crate::texts::as_text;

impl ResponseRules for ConverseFormat {
    fn answer_place(&self) -> Option<AnswerPlace> {
        Some(AnswerPlace {
            key: "output",
            pointer: "/output/message",
            is_list: false,
            own: ["role", "content"],
        })
    }

    /// An exception of the service's is a message by itself.
    fn is_error(&self, response: &Value) -> bool {
        response.get("output").is_none() && response.get("message").is_some_and(Value::is_string)
    }

    fn stop_reason<'a>(&self, response: &'a Value) -> Option<&'a str> {
        text(response, "stopReason")
    }

    fn stops_for_tools(&self, response: &Value) -> bool {
        response["stopReason"] == "tool_use"
    }

    fn has_calls_beside_content(&self) -> bool {
        false
    }

    fn parts<'a>(&self, message: &'a Value) -> Option<&'a Value> {
        Some(&message["content"])
    }

    fn object_place(&self, part: usize) -> Option<String> {
        Some(format!("/content/{part}/toolUse/input"))
    }

    fn arguments(&self, message: &Value, part: usize) -> Arguments {
        arguments::of_call(&message["content"][part]["toolUse"]["input"])
    }

    fn mend(&self, mender: &mut Mender<'_>, response: &mut Value) {
        match response.pointer_mut("/output/message") {
            Some(message) => mend(mender, message, "/output/message"),
            None => mend(mender, response, ""),
        }
    }

    fn error_response(&self, _model: &str, said: &str) -> Value {
        json!({
            "output": {"message": {"role": "assistant", "content": [{"text": said}]}},
            "stopReason": "end_turn",
            "usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0},
            "metrics": {"latencyMs": 0},
        })
    }

    fn succeed(&self, result: &mut Value, _text: &str) {
        if let Some(fields) = result["toolResult"].as_object_mut() {
            fields.shift_remove("status");
        }
    }
}

fn mend(mender: &mut Mender<'_>, message: &mut Value, at: &str) {
    if !message.is_object() {
        let said = match message.take() {
            Value::Null => String::new(),
            other => as_text(&other),
        };
        mender.fixed(at, Code::BadContent, "this is no message", "it is one now");
        *message = json!({"role": "assistant", "content": [{"text": said}]});
        return;
    }
    mender.role(message, at);
    let mended = match message.get_mut("content") {
        Some(Value::Array(_)) => None,
        None | Some(Value::Null) => {
            mender.content(at);
            Some(json!([]))
        }
        Some(Value::String(said)) => Some(json!([{"text": said}])),
        Some(other) => Some(json!([other.take()])),
    };
    if let Some(content) = mended {
        if message["content"].is_string() || message["content"].is_null() {
            let at = format!("{at}/content");
            let fault = "the content is no list of blocks";
            if message["content"].is_string() {
                mender.fixed(&at, Code::BadContent, fault, "it is one now");
            }
        }
        message["content"] = content;
    }
    let Some(Value::Array(blocks)) = message.get_mut("content") else {
        return;
    };
    for (index, block) in blocks.iter_mut().enumerate() {
        let at = format!("{at}/content/{index}/toolUse");
        let Some(call) = block.get_mut("toolUse").and_then(Value::as_object_mut) else {
            continue;
        };
        mender.id(call, "toolUseId", &at);
        mender.name(call, &at);
        mender.object(call, "input", &format!("{at}/input"));
    }
}
