//! What Mistral answers.

use serde_json::{Value, json};
use steadyhand::Arguments;

use super::MistralFormat;
use crate::providers::chat::response::{self, ArgumentsAs, CHOICES, Style};
use crate::providers::mender::Mender;
use crate::providers::rules::{AnswerPlace, ResponseRules};
use crate::providers::wire::text;

const STYLE: Style = Style {
    is_plain_text: false,
    calls_say_type: false,
    arguments: ArgumentsAs::Either,
};

impl ResponseRules for MistralFormat {
    fn answer_place(&self) -> Option<AnswerPlace> {
        Some(CHOICES)
    }

    fn is_error(&self, response: &Value) -> bool {
        text(response, "object") == Some("error")
            || response.get("error").is_some_and(|error| !error.is_null())
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

    fn name_result(&self, result: &mut Value, name: &str) {
        result["name"] = json!(name);
    }

    fn native_call(&self, id: &str, name: &str, arguments: &Value) -> Option<Value> {
        Some(response::native_call(id, name, arguments))
    }
}
