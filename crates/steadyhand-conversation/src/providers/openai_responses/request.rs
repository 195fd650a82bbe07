//! What OpenAI's Responses take in a request.

use serde_json::{Map, Value};

use super::messages::ResponsesWire;
use super::{ResponsesFormat, items};
use crate::host::Host;
use crate::options::Options;
use crate::problem::{Code, Log};
use crate::providers::extra_fields::{self, OF_CHAT};
use crate::providers::foreign::Given;
use crate::providers::openai::{self, NO_MODEL};
use crate::providers::rules::RequestRules;
use crate::providers::wire::{Wire, text};

const ID_MAX: usize = 64;

impl RequestRules for ResponsesFormat {
    fn wire(&self, host: Host) -> &'static dyn Wire {
        match host {
            Host::DeepSeek => &ResponsesWire::DeepSeek,
            host if !host.is_strict() => &ResponsesWire::Compatible,
            _ => &ResponsesWire::OpenAi,
        }
    }

    fn is_served_by(&self, host: Host, domain: &str) -> bool {
        openai::is_served_by(host, domain)
    }

    fn takes_id(&self, id: &str) -> bool {
        !id.is_empty() && id.chars().count() <= ID_MAX
    }

    fn messages_key(&self) -> &'static str {
        "input"
    }

    fn says_to_key(&self, found_under: &str) -> String {
        match found_under {
            "messages" => "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'. Try again with the new parameter.".to_owned(),
            _ => "Missing required parameter: 'input'.".to_owned(),
        }
    }

    fn takes_one_text(&self) -> bool {
        true
    }

    /// A stored prompt or conversation has what the request leaves out.
    fn is_stored(&self, request: &Value) -> bool {
        ["prompt", "conversation", "previous_response_id"]
            .iter()
            .any(|key| request.get(key).is_some_and(|value| !value.is_null()))
    }

    fn says_to_no_messages(&self) -> Option<&'static str> {
        Some("Missing required parameter: 'input'.")
    }

    fn says_to_no_model(&self) -> Option<&'static str> {
        Some(NO_MODEL)
    }

    /// OpenAI adds fields often: only those of its other surface are known to be refused.
    fn says_to_field(&self, key: &str) -> Option<String> {
        let is_refused = ["n", "messages", "functions", "function_call", "stop"].contains(&key);
        is_refused.then(|| format!("Unknown parameter: '{key}'."))
    }

    fn check_contents(&self, _options: &Options, _request: &Value, items: &[Value], log: &mut Log) {
        files(items, log);
    }

    /// OpenAI's own find an output anywhere.
    fn rearrange(
        &self,
        host: Host,
        items: Vec<Value>,
        given: Option<Vec<Given>>,
        base: &str,
        log: &mut Log,
    ) -> (Vec<Value>, Option<Vec<Given>>) {
        match host {
            Host::DeepSeek => items::rearrange(items, given, base, log),
            _ => (items, given),
        }
    }

    /// Other hosts keep no items, and tie nothing to their ids.
    fn settle(&self, host: Host, messages: &mut [Value], base: &str, log: &mut Log) {
        if host.is_strict() {
            extra_fields::leave_out(self, messages, base, log);
            items::unique_items(messages, base, log);
            items::dangling_reasoning(messages, base, log);
            items::parted_reasoning(messages, base, log);
        }
    }

    /// A result without its call becomes words, and DeepSeek takes none between calls and their results.
    fn needs_second_look(&self, host: Host) -> bool {
        host == Host::DeepSeek
    }

    fn refuses_message_field(&self, fields: &Map<String, Value>, key: &str) -> bool {
        match fields.get("type").and_then(Value::as_str) {
            None | Some("message") => OF_CHAT.contains(&key),
            // They are in its answers.
            Some("reasoning") => key == "status",
            Some("function_call") => key == "parsed_arguments",
            Some(_) => false,
        }
    }

    fn says_to_message_field(&self, index: usize, key: &str) -> Option<String> {
        Some(format!("Unknown parameter: 'input[{index}].{key}'."))
    }

    fn has_no_refusals(&self) -> bool {
        true
    }
}

/// OpenAI's Responses take documents and images as files, not sound.
fn files(items: &[Value], log: &mut Log) {
    for (index, item) in items.iter().enumerate() {
        for key in ["content", "output"] {
            let parts = item[key].as_array().map_or(&[][..], Vec::as_slice);
            for (part, file) in parts.iter().enumerate() {
                if text(file, "type") == Some("input_file") {
                    file_type(file, index, key, part, log);
                }
            }
        }
    }
}

fn file_type(file: &Value, index: usize, key: &str, part: usize, log: &mut Log) {
    let at = format!("/input/{index}/{key}/{part}");
    let mime = text(file, "file_data")
        .and_then(|data| data.strip_prefix("data:"))
        .and_then(|data| data.split([';', ',']).next());
    if let Some(mime) = mime.filter(|mime| is_media(mime)) {
        log.found(format!("{at}/file_data"), Code::UnsupportedContent, format!("files of type {mime} are not taken"))
            .says(format!("Invalid file data: 'input[{index}].{key}[{part}].file_data'. Expected a base64-encoded data URL with a valid file MIME type (e.g. 'data:text/plain;base64,SGVsbG8sIFdvcmxkIQ=='), but got unsupported MIME type '{mime}'."));
    }
    let ending = text(file, "file_url")
        .and_then(|url| url.split(['?', '#']).next())
        .and_then(|url| url.rsplit('.').next());
    let sounds = [
        "mp3", "wav", "ogg", "flac", "m4a", "aac", "mp4", "mov", "webm", "avi",
    ];
    if ending.is_some_and(|ending| sounds.contains(&ending.to_ascii_lowercase().as_str())) {
        log.found(
            format!("{at}/file_url"),
            Code::UnsupportedContent,
            "files of this type are not taken",
        )
        .says(
            "The file type you uploaded is not supported. Please try again with a pdf".to_owned(),
        );
    }
}

fn is_media(mime: &str) -> bool {
    mime.starts_with("audio/") || mime.starts_with("video/")
}
