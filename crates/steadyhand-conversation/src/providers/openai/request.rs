//! What OpenAI's Chat Completions take in a request.

use serde_json::{Map, Value};

use super::{OpenAiFormat, deepseek};
use crate::host::Host;
use crate::options::Options;
use crate::place::Places;
use crate::problem::{Code, Log};
use crate::providers::chat::Chat;
use crate::providers::extra_fields::is_of_an_answer;
use crate::providers::rules::RequestRules;
use crate::providers::wire::{Wire, text};

const ID_MAX: usize = 40;

impl RequestRules for OpenAiFormat {
    fn wire(&self, host: Host) -> &'static dyn Wire {
        match host {
            Host::DeepSeek => &Chat::DeepSeek,
            host if !host.is_strict() => &Chat::Compatible,
            _ => &Chat::OpenAi,
        }
    }

    fn is_served_by(&self, host: Host, domain: &str) -> bool {
        is_served_by(host, domain)
    }

    fn takes_id(&self, id: &str) -> bool {
        !id.is_empty() && id.chars().count() <= ID_MAX
    }

    fn says_to_key(&self, _found_under: &str) -> String {
        "Missing required parameter: 'messages'.".to_owned()
    }

    fn says_to_no_messages(&self) -> Option<&'static str> {
        Some(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        )
    }

    fn says_to_no_model(&self) -> Option<&'static str> {
        Some(NO_MODEL)
    }

    fn check_contents(
        &self,
        options: &Options,
        request: &Value,
        messages: &[Value],
        log: &mut Log,
    ) {
        let model = options.model_or(text(request, "model")).unwrap_or_default();
        if !model.contains("audio") && !model.is_empty() {
            audio(messages, log);
        }
    }

    fn check_fields(&self, request: &Value, log: &mut Log) {
        tool_choice(request, log);
    }

    fn mend_request(
        &self,
        request: &mut Value,
        messages: &mut Vec<Value>,
        model: Option<&str>,
        host: Host,
        places: Places<'_>,
        log: &mut Log,
    ) {
        if host == Host::DeepSeek {
            deepseek::mend(request, messages, model, places, log);
        }
    }

    fn refuses_message_field(&self, fields: &Map<String, Value>, key: &str) -> bool {
        is_of_an_answer(fields, key)
    }

    fn says_to_message_field(&self, index: usize, key: &str) -> Option<String> {
        Some(format!("Unknown parameter: 'messages[{index}].{key}'."))
    }
}

/// What both of its surfaces say.
pub(crate) const NO_MODEL: &str = "you must provide a model parameter";

/// Who has rules of OpenAI's own, for both of its surfaces.
pub(crate) fn is_served_by(host: Host, domain: &str) -> bool {
    match host {
        Host::Original => domain.ends_with("openai.com"),
        host => matches!(host, Host::Azure | Host::DeepSeek | Host::Compatible),
    }
}

fn tool_choice(value: &Value, log: &mut Log) {
    match value.get("tool_choice") {
        Some(Value::String(choice)) if !matches!(choice.as_str(), "none" | "auto" | "required") => {
            log.found(
                "/tool_choice",
                Code::BadField,
                format!("there is no choice {choice:?}"),
            )
            .says(format!(
                "Invalid value: '{choice}'. Supported values are: 'none', 'auto', and 'required'."
            ));
        }
        Some(choice @ Value::Object(_)) => {
            let Some(name) = text(&choice["function"], "name") else {
                return;
            };
            let tools = value["tools"].as_array().map_or(&[][..], Vec::as_slice);
            if !tools.iter().any(|tool| tool["function"]["name"] == name) {
                log.found(
                    "/tool_choice/function/name",
                    Code::BadField,
                    format!("no tool is called {name:?}"),
                )
                .says(format!("Invalid value for 'function_call': no function named '{name}' was specified in the 'functions' parameter."));
            }
        }
        _ => {}
    }
}

/// Only audio models of OpenAI's hear.
fn audio(messages: &[Value], log: &mut Log) {
    for (index, message) in messages.iter().enumerate() {
        let parts = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        let heard = |part: &Value| text(part, "type") == Some("input_audio");
        if let Some(part) = parts.iter().position(heard) {
            log.found(
                format!("/messages/{index}/content/{part}"),
                Code::UnsupportedContent,
                "this model takes no audio",
            )
            .says(format!("Invalid 'messages[{index}]'. Content blocks are expected to be either text or image_url type."));
        }
    }
}
