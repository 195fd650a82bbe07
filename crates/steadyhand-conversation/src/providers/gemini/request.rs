//! What Google takes in a request.

use serde_json::{Map, Value};

use super::messages::GeminiWire;
use super::{GeminiFormat, signatures};
use crate::host::Host;
use crate::place::Places;
use crate::problem::Log;
use crate::providers::rules::RequestRules;
use crate::providers::wire::Wire;
use crate::providers::{names, opening};

impl RequestRules for GeminiFormat {
    fn wire(&self, _host: Host) -> &'static dyn Wire {
        &GeminiWire
    }

    fn is_served_by(&self, host: Host, domain: &str) -> bool {
        match host {
            Host::Original => domain.ends_with("googleapis.com"),
            host => matches!(host, Host::Vertex | Host::Compatible),
        }
    }

    fn ids_are_optional(&self) -> bool {
        true
    }

    fn takes_id(&self, _id: &str) -> bool {
        true
    }

    fn takes_name(&self, name: &str) -> bool {
        let first = name.bytes().next();
        names::is_plain(name, b"_-.:")
            && first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
    }

    fn messages_key(&self) -> &'static str {
        "contents"
    }

    fn says_to_key(&self, found_under: &str) -> String {
        format!("Invalid JSON payload received. Unknown name \"{found_under}\": Cannot find field.")
    }

    fn says_to_no_messages(&self) -> Option<&'static str> {
        Some("* GenerateContentRequest.contents: contents is not specified")
    }

    /// Somebody must have spoken before the first call.
    fn begin(
        &self,
        messages: &mut Vec<Value>,
        origins: &mut Vec<usize>,
        base: &str,
        log: &mut Log,
    ) {
        let says = "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
        opening::put_before_calls(&GeminiWire, usize::MAX, says, messages, origins, base, log);
    }

    fn mend_request(
        &self,
        _request: &mut Value,
        messages: &mut Vec<Value>,
        model: Option<&str>,
        _host: Host,
        places: Places<'_>,
        log: &mut Log,
    ) {
        signatures::mend(messages, model, places, log);
    }

    fn says_to_silence(&self, message: usize) -> Option<String> {
        Some(format!(
            "* GenerateContentRequest.contents[{message}].parts: contents.parts must not be empty."
        ))
    }

    fn refuses_message_field(&self, _fields: &Map<String, Value>, key: &str) -> bool {
        !matches!(key, "role" | "parts")
    }

    fn says_to_message_field(&self, index: usize, key: &str) -> Option<String> {
        Some(format!(
            "Invalid JSON payload received. Unknown name \"{key}\" at 'contents[{index}]': Cannot find field."
        ))
    }
}
