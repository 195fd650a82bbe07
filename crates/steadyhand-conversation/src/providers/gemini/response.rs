//! What Google answers.

use serde_json::{Map, Value, json};
use steadyhand::Arguments;

use super::GeminiFormat;
use crate::problem::Code;
use crate::providers::arguments;
use crate::providers::mender::{Mender, NO_CONTENT, says_something};
use crate::providers::rules::{AnswerPlace, ResponseRules, absent_at};
use crate::texts::as_text;

const PLACE: AnswerPlace = AnswerPlace {
    key: "candidates",
    pointer: "/candidates/0/content",
    is_list: true,
    own: ["role", "parts"],
};

impl ResponseRules for GeminiFormat {
    fn answer_place(&self) -> Option<AnswerPlace> {
        Some(PLACE)
    }

    fn is_error(&self, response: &Value) -> bool {
        let has_error = response.get("error").is_some_and(|error| !error.is_null());
        has_error
            || response
                .get(0)
                .is_some_and(|one| one.get("error").is_some())
    }

    /// Each of its pieces is a response.
    fn is_stream(&self, response: &Value) -> bool {
        response.is_array()
    }

    /// It says why there is none.
    fn absent(&self, response: &Value) -> Option<(String, String)> {
        let reason = response
            .pointer("/promptFeedback/blockReason")
            .or_else(|| response.pointer("/candidates/0/finishReason"));
        let reason = reason.and_then(Value::as_str);
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        absent_at(PLACE, response, &reason)
    }

    fn fill(&self, response: &mut Value, error: &Map<String, Value>) -> bool {
        let Some(candidate @ Value::Object(_)) = response.pointer_mut("/candidates/0") else {
            return false;
        };
        candidate["content"] = error["candidates"][0]["content"].clone();
        true
    }

    fn stop_reason<'a>(&self, response: &'a Value) -> Option<&'a str> {
        response.pointer("/candidates/0/finishReason")?.as_str()
    }

    fn content_place<'a>(&self, message: &'a Value) -> Option<(&'a Value, &'static str)> {
        Some((message, "/parts"))
    }

    fn has_calls_beside_content(&self) -> bool {
        false
    }

    fn parts<'a>(&self, message: &'a Value) -> Option<&'a Value> {
        Some(&message["parts"])
    }

    fn object_place(&self, part: usize) -> Option<String> {
        Some(format!("/parts/{part}/functionCall/args"))
    }

    fn arguments(&self, message: &Value, part: usize) -> Arguments {
        let part = &message["parts"][part];
        let call = part
            .get("functionCall")
            .or_else(|| part.get("function_call"));
        arguments::of_call(call.map_or(&Value::Null, |call| &call["args"]))
    }

    fn mend(&self, mender: &mut Mender<'_>, response: &mut Value) {
        let candidates = response.get_mut("candidates").and_then(Value::as_array_mut);
        let Some(candidates) = candidates else {
            return mend(mender, response, "");
        };
        for (index, candidate) in candidates.iter_mut().enumerate() {
            if let Some(content) = candidate.get_mut("content") {
                mend(mender, content, &format!("/candidates/{index}/content"));
            }
        }
    }

    fn error_response(&self, model: &str, said: &str) -> Value {
        json!({
            "candidates": [{
                "index": 0,
                "content": {"role": "model", "parts": [{"text": said}]},
                "finishReason": "OTHER",
            }],
            "modelVersion": model,
            "usageMetadata": {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0},
        })
    }

    fn succeed(&self, result: &mut Value, text: &str) {
        result["functionResponse"]["response"] = json!({ "output": text });
    }

    fn name_result(&self, result: &mut Value, name: &str) {
        result["functionResponse"]["name"] = json!(name);
    }
}

fn mend(mender: &mut Mender<'_>, content: &mut Value, at: &str) {
    if !content.is_object() {
        let said = match content.take() {
            Value::Null => String::new(),
            other => as_text(&other),
        };
        mender.fixed(at, Code::BadContent, "this is no content", "it is one now");
        *content = json!({"role": "model", "parts": [{"text": said}]});
        return;
    }
    match content.get_mut("parts") {
        None | Some(Value::Null) => {
            mender.fixed(
                &format!("{at}/parts"),
                Code::EmptyContent,
                NO_CONTENT,
                "it has an empty one",
            );
            content["parts"] = json!([{"text": ""}]);
        }
        Some(part @ Value::Object(_)) => {
            let part = part.take();
            mender.fixed(
                &format!("{at}/parts"),
                Code::BadContent,
                "the parts are no list",
                "they are one now",
            );
            content["parts"] = json!([part]);
        }
        Some(_) => {}
    }
    let Some(Value::Array(parts)) = content.get_mut("parts") else {
        return;
    };
    for (index, part) in parts.iter_mut().enumerate() {
        let at = format!("{at}/parts/{index}");
        let key = ["functionCall", "function_call"]
            .into_iter()
            .find(|key| part.get(key).is_some_and(Value::is_object));
        let Some(call) = key.and_then(|key| part[key].as_object_mut()) else {
            continue;
        };
        mender.name(call, &at);
        // No arguments are no fault here.
        if says_something(call.get("args")) {
            mender.object(call, "args", &at);
        }
    }
}
