//! What OpenAI's Responses answer.

use serde_json::{Value, json};
use steadyhand::Arguments;

use super::ResponsesFormat;
use crate::problem::Code;
use crate::providers::arguments;
use crate::providers::mender::Mender;
use crate::providers::rules::ResponseRules;
use crate::providers::wire::text;

impl ResponseRules for ResponsesFormat {
    fn said<'a>(&self, response: &'a Value) -> Vec<(String, &'a Value)> {
        let itself = || vec![(String::new(), response)];
        let (base, items) = match response {
            Value::Array(items) => ("", items.as_slice()),
            Value::Object(fields) => match fields.get("output") {
                Some(Value::Array(items)) if text(response, "type").is_none() => {
                    ("/output", items.as_slice())
                }
                _ => return itself(),
            },
            _ => return itself(),
        };
        let place = |(index, item)| (format!("{base}/{index}"), item);
        items.iter().enumerate().map(place).collect()
    }

    /// Its items may be given by themselves.
    fn may_be_list(&self) -> bool {
        true
    }

    /// An item of it may be given by itself. What is not done yet has nothing to show, nor need what broke off: its status
    /// says so.
    fn absent(&self, response: &Value) -> Option<(String, String)> {
        let is_response = response.is_object()
            && (response.get("output").is_some() || text(response, "object") == Some("response"));
        let is_told = matches!(
            text(response, "status"),
            Some("queued" | "in_progress" | "incomplete" | "failed" | "cancelled")
        );
        let output = response.get("output").and_then(Value::as_array);
        let is_missing = output.is_none_or(Vec::is_empty) && text(response, "type").is_none();
        (is_response && is_missing && !is_told).then(|| {
            (
                "/output".to_owned(),
                "the response has no output of the model".to_owned(),
            )
        })
    }

    fn stop_reason<'a>(&self, response: &'a Value) -> Option<&'a str> {
        response.pointer("/incomplete_details/reason")?.as_str()
    }

    fn content_place<'a>(&self, item: &'a Value) -> Option<(&'a Value, &'static str)> {
        let is_message = matches!(text(item, "type"), None | Some("message"));
        is_message.then_some((item, "/content"))
    }

    fn parts<'a>(&self, _item: &'a Value) -> Option<&'a Value> {
        None
    }

    fn arguments(&self, item: &Value, _part: usize) -> Arguments {
        match item.get("input") {
            Some(input) => Arguments::Json(json!({ "input": input })),
            None => arguments::of_call(&item["arguments"]),
        }
    }

    fn mend(&self, mender: &mut Mender<'_>, response: &mut Value) {
        mend(mender, response);
    }

    fn error_response(&self, model: &str, said: &str) -> Value {
        json!({
            "id": "resp_error",
            "object": "response",
            "created_at": 0,
            "status": "completed",
            "model": model,
            "output": [{
                "id": "msg_error",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": said, "annotations": []}],
            }],
            "usage": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
        })
    }
}

fn mend(mender: &mut Mender<'_>, value: &mut Value) {
    let base = match value.get("output") {
        Some(Value::Array(_)) if text(value, "type").is_none() => "/output",
        _ => "",
    };
    let items = match value {
        Value::Array(items) => items,
        Value::Object(fields) if !base.is_empty() => {
            let Some(Value::Array(items)) = fields.get_mut("output") else {
                return;
            };
            items
        }
        other => return mend_item(mender, other, ""),
    };
    for (index, item) in items.iter_mut().enumerate() {
        mend_item(mender, item, &format!("{base}/{index}"));
    }
}

fn mend_item(mender: &mut Mender<'_>, item: &mut Value, at: &str) {
    let kind = text(item, "type").unwrap_or("message").to_owned();
    let Some(fields) = item.as_object_mut() else {
        return;
    };
    if kind == "function_call" {
        mender.id(fields, "call_id", at);
        mender.name(fields, at);
        return mender.text(fields, "arguments", &format!("{at}/arguments"), false);
    }
    if kind != "message" {
        return;
    }
    let place = format!("{at}/content");
    let is_response = fields.contains_key("id");
    match fields.get_mut("content") {
        None | Some(Value::Null) => {
            mender.content(at);
            fields.insert("content".to_owned(), json!([]));
        }
        Some(Value::String(said)) if is_response => {
            let said = std::mem::take(said);
            let part = json!({"type": "output_text", "text": said, "annotations": []});
            mender.fixed(
                &place,
                Code::BadContent,
                "the content is no list of parts",
                "it is one now",
            );
            fields.insert("content".to_owned(), json!([part]));
        }
        Some(_) => {}
    }
}
