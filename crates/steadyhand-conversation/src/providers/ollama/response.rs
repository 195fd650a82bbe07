//! What Ollama answers.

use serde_json::{Value, json};

use super::OllamaFormat;
use crate::providers::chat::response::{self, ArgumentsAs, Style};
use crate::providers::mender::Mender;
use crate::providers::rules::{AnswerPlace, ResponseRules};
use crate::providers::wire::text;

const STYLE: Style = Style {
    is_plain_text: true,
    calls_say_type: false,
    arguments: ArgumentsAs::Object,
};

impl ResponseRules for OllamaFormat {
    fn answer_place(&self) -> Option<AnswerPlace> {
        Some(AnswerPlace {
            key: "message",
            pointer: "/message",
            is_list: false,
            own: ["role", "content"],
        })
    }

    fn stop_reason<'a>(&self, response: &'a Value) -> Option<&'a str> {
        text(response, "done_reason")
    }

    fn object_place(&self, part: usize) -> Option<String> {
        Some(format!("/tool_calls/{part}/function/arguments"))
    }

    fn mend(&self, mender: &mut Mender<'_>, response: &mut Value) {
        match response.get_mut("message") {
            Some(message) => response::message(mender, message, "/message", STYLE),
            None => response::message(mender, response, "", STYLE),
        }
    }

    fn error_response(&self, model: &str, said: &str) -> Value {
        json!({
            "model": model,
            "created_at": "1970-01-01T00:00:00Z",
            "message": {"role": "assistant", "content": said},
            "done": true,
            "done_reason": "stop",
        })
    }

    fn name_result(&self, result: &mut Value, name: &str) {
        result["tool_name"] = json!(name);
    }

    fn native_call(&self, id: &str, name: &str, arguments: &Value) -> Option<Value> {
        Some(json!({"id": id, "function": {"name": name, "arguments": arguments}}))
    }
}
