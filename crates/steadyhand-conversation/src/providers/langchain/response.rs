//! What a LangChain model answers: a message.

use serde_json::{Value, json};
use steadyhand::Arguments;

use super::{LangChainFormat, body_and_place};
use crate::providers::arguments;
use crate::providers::mender::{Mender, says_something};
use crate::providers::rules::{AnswerPlace, ResponseRules};

impl ResponseRules for LangChainFormat {
    /// The response is the answer.
    fn answer_place(&self) -> Option<AnswerPlace> {
        None
    }

    fn is_error(&self, _response: &Value) -> bool {
        false
    }

    fn stop_reason<'a>(&self, _response: &'a Value) -> Option<&'a str> {
        None
    }

    fn content_place<'a>(&self, message: &'a Value) -> Option<(&'a Value, &'static str)> {
        let (body, inside) = body_and_place(message);
        let place = match inside {
            "/data" => "/data/content",
            "/kwargs" => "/kwargs/content",
            _ => "/content",
        };
        Some((body, place))
    }

    fn parts<'a>(&self, _message: &'a Value) -> Option<&'a Value> {
        None
    }

    fn arguments(&self, message: &Value, part: usize) -> Arguments {
        langchain_arguments(message, part)
    }

    fn mend(&self, mender: &mut Mender<'_>, message: &mut Value) {
        let inside = body_and_place(message).1;
        let body = match inside.strip_prefix('/') {
            Some(key) => &mut message[key],
            None => message,
        };
        let Some(fields) = body.as_object_mut() else {
            return;
        };
        let acts = ["tool_calls", "invalid_tool_calls", "content_blocks"]
            .iter()
            .any(|key| says_something(fields.get(*key)));
        let is_absent = !fields.contains_key("content");
        // A constructor leaves out what is empty.
        let may_lack = acts && is_absent && inside == "/kwargs";
        if matches!(fields.get("content"), None | Some(Value::Null)) && !may_lack {
            mender.content(inside);
            fields.insert("content".to_owned(), json!(""));
        }
        let Some(Value::Array(calls)) = fields.get_mut("tool_calls") else {
            return;
        };
        for (index, call) in calls.iter_mut().enumerate() {
            let at = format!("{inside}/tool_calls/{index}");
            let Some(call) = call.as_object_mut() else {
                continue;
            };
            mender.id(call, "id", &at);
            mender.name(call, &at);
            mender.object(call, "args", &format!("{at}/args"));
        }
    }

    fn error_response(&self, model: &str, said: &str) -> Value {
        json!({
            "type": "ai",
            "content": said,
            "tool_calls": [],
            "invalid_tool_calls": [],
            "response_metadata": {"model_name": model, "finish_reason": "error"},
        })
    }

    fn succeed(&self, result: &mut Value, _text: &str) {
        result["status"] = json!("success");
    }

    fn name_result(&self, result: &mut Value, name: &str) {
        result["name"] = json!(name);
    }
}

fn langchain_arguments(message: &Value, part: usize) -> Arguments {
    let body = ["kwargs", "data"]
        .iter()
        .find_map(|key| message.get(key))
        .unwrap_or(message);
    let good = body["tool_calls"].as_array().map_or(0, Vec::len);
    match part.checked_sub(good) {
        None => arguments::of_call(&body["tool_calls"][part]["args"]),
        Some(part) => {
            let args = &body["invalid_tool_calls"][part]["args"];
            // Invalid is invalid, even where nothing is left of it.
            Arguments::Text(args.as_str().unwrap_or("{").to_owned())
        }
    }
}
