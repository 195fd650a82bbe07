//! What OpenAI's Chat Completions answer.

use serde_json::Value;
use steadyhand::Arguments;

use super::OpenAiFormat;
use crate::providers::chat::response::{self, ArgumentsAs, CHOICES, Style};
use crate::providers::mender::Mender;
use crate::providers::rules::{AnswerPlace, ResponseRules};

const STYLE: Style = Style {
    is_plain_text: false,
    calls_say_type: true,
    arguments: ArgumentsAs::Text,
};

impl ResponseRules for OpenAiFormat {
    fn answer_place(&self) -> Option<AnswerPlace> {
        Some(CHOICES)
    }

    fn stop_reason<'a>(&self, response: &'a Value) -> Option<&'a str> {
        response::finish_reason(response)
    }

    fn stops_for_tools(&self, response: &Value) -> bool {
        response::finish_reason(response) == Some("tool_calls")
    }

    fn parts<'a>(&self, message: &'a Value) -> Option<&'a Value> {
        Some(&message["tool_calls"])
    }

    fn arguments(&self, message: &Value, part: usize) -> Arguments {
        response::arguments(message, part)
    }

    fn mend(&self, mender: &mut Mender<'_>, response: &mut Value) {
        response::mend_choices(mender, response, STYLE);
    }

    fn error_response(&self, model: &str, said: &str) -> Value {
        response::error_response(model, said)
    }

    fn native_call(&self, id: &str, name: &str, arguments: &Value) -> Option<Value> {
        Some(response::native_call(id, name, arguments))
    }
}
