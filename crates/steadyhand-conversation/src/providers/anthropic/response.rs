//! What Anthropic answers.

use serde_json::{Map, Value, json};
use steadyhand::Arguments;

use super::AnthropicFormat;
use crate::problem::Code;
use crate::providers::arguments;
use crate::providers::mender::Mender;
use crate::providers::rules::{AnswerPlace, ResponseRules};
use crate::providers::wire::text;

impl ResponseRules for AnthropicFormat {
    /// The response is the answer.
    fn answer_place(&self) -> Option<AnswerPlace> {
        None
    }

    fn is_error(&self, response: &Value) -> bool {
        text(response, "type") == Some("error")
    }

    fn stop_reason<'a>(&self, response: &'a Value) -> Option<&'a str> {
        text(response, "stop_reason")
    }

    fn stops_for_tools(&self, response: &Value) -> bool {
        response["stop_reason"] == "tool_use"
    }

    /// What an answer has beside the message is refused only when it is sent back.
    fn leave_out_of_answer(&self, fields: &mut Map<String, Value>) {
        fields.retain(|key, _| key == "role" || key == "content");
    }

    fn has_calls_beside_content(&self) -> bool {
        false
    }

    fn parts<'a>(&self, message: &'a Value) -> Option<&'a Value> {
        Some(&message["content"])
    }

    fn object_place(&self, part: usize) -> Option<String> {
        Some(format!("/content/{part}/input"))
    }

    fn arguments(&self, message: &Value, part: usize) -> Arguments {
        arguments::of_call(&message["content"][part]["input"])
    }

    fn mend(&self, mender: &mut Mender<'_>, message: &mut Value) {
        mender.role(message, "");
        // A message by itself may be a text, a response may not.
        let is_response = message.get("stop_reason").is_some();
        let mended = match message.get_mut("content") {
            None | Some(Value::Null) => {
                mender.content("");
                Some(json!([]))
            }
            Some(Value::Array(_)) => None,
            Some(Value::String(_)) if !is_response => None,
            Some(Value::String(said)) => {
                let said = std::mem::take(said);
                mender.fixed(
                    "/content",
                    Code::BadContent,
                    "the content is no list of blocks",
                    "it is one now",
                );
                Some(json!([{"type": "text", "text": said}]))
            }
            Some(block @ Value::Object(_)) => {
                let block = block.take();
                mender.fixed(
                    "/content",
                    Code::BadContent,
                    "the content is no list of blocks",
                    "it is one now",
                );
                Some(json!([block]))
            }
            Some(_) => None,
        };
        if let Some(content) = mended {
            message["content"] = content;
        }
        let Some(Value::Array(blocks)) = message.get_mut("content") else {
            return;
        };
        for (index, block) in blocks.iter_mut().enumerate() {
            let at = format!("/content/{index}");
            if let Value::String(said) = block {
                *block = json!({"type": "text", "text": said});
                mender.fixed(&at, Code::BadContent, "this is no block", "it is one now");
                continue;
            }
            let is_call = text(block, "type") == Some("tool_use");
            let Some(fields) = block.as_object_mut().filter(|_| is_call) else {
                continue;
            };
            mender.id(fields, "id", &at);
            mender.name(fields, &at);
            mender.object(fields, "input", &format!("{at}/input"));
        }
    }

    fn error_response(&self, model: &str, said: &str) -> Value {
        json!({
            "id": "msg_error",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [{"type": "text", "text": said}],
            "stop_reason": "end_turn",
            "stop_sequence": null,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        })
    }

    fn succeed(&self, result: &mut Value, _text: &str) {
        if let Some(fields) = result.as_object_mut() {
            fields.shift_remove("is_error");
        }
    }
}
