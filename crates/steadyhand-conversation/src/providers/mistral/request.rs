//! What Mistral takes in a request.

use serde_json::{Map, Value};

use super::{MistralFormat, roles};
use crate::host::Host;
use crate::place::Places;
use crate::problem::Log;
use crate::providers::chat::Chat;
use crate::providers::extra_fields::is_of_an_answer;
use crate::providers::rules::RequestRules;
use crate::providers::wire::Wire;
use crate::providers::{ids, opening};

const ID_LEN: usize = 9;

/// What others have beside the role and the content, and it refuses.
const REFUSED: &[&str] = &[
    "annotations",
    "audio",
    "function_call",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "refusal",
];

impl RequestRules for MistralFormat {
    fn wire(&self, _host: Host) -> &'static dyn Wire {
        &Chat::Mistral
    }

    fn is_served_by(&self, host: Host, domain: &str) -> bool {
        match host {
            Host::Original => domain.ends_with("mistral.ai"),
            host => host == Host::Compatible,
        }
    }

    fn takes_id(&self, id: &str) -> bool {
        id.len() == ID_LEN && ids::is_of_letters(id, b"")
    }

    fn legal_id(&self, id: &str) -> String {
        ids::digest(id, ID_LEN)
    }

    fn new_id(&self, of: &str) -> String {
        ids::digest(of, ID_LEN)
    }

    fn says_to_no_messages(&self) -> Option<&'static str> {
        Some("Conversation must have at least one message")
    }

    fn says_to_no_model(&self) -> Option<&'static str> {
        Some("Model name parameter is required for serving mode")
    }

    fn prepare(&self, messages: &mut [Value], base: &str, log: &mut Log) {
        roles::follow(messages, base, log);
    }

    /// It overlooks calls in the first message.
    fn begin(
        &self,
        messages: &mut Vec<Value>,
        origins: &mut Vec<usize>,
        base: &str,
        log: &mut Log,
    ) {
        let says = "Unexpected tool call id in tool results";
        opening::put_before_calls(&Chat::Mistral, 1, says, messages, origins, base, log);
    }

    fn mend_request(
        &self,
        _request: &mut Value,
        messages: &mut Vec<Value>,
        _model: Option<&str>,
        _host: Host,
        places: Places<'_>,
        log: &mut Log,
    ) {
        roles::end(messages, places, log);
    }

    fn says_to_result_behind(&self, role: &str) -> Option<String> {
        matches!(role, "user" | "system")
            .then(|| format!("Unexpected role 'tool' after role '{role}'"))
    }

    fn says_to_open_end(&self, count: usize) -> Option<&'static str> {
        Some(match count {
            1 => roles::ALONE,
            _ => roles::ENDS_BADLY,
        })
    }

    fn refuses_message_field(&self, fields: &Map<String, Value>, key: &str) -> bool {
        let is_users = fields.get("role").is_some_and(|role| role == "user");
        (is_users && matches!(key, "name" | "tool_calls"))
            || REFUSED.contains(&key)
            || is_of_an_answer(fields, key)
    }

    fn says_to_message_field(&self, _index: usize, _key: &str) -> Option<String> {
        Some("Extra inputs are not permitted".to_owned())
    }

    fn has_no_refusals(&self) -> bool {
        true
    }
}
