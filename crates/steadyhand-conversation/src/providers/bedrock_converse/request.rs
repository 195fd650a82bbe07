//! What Bedrock's Converse takes in a request.

use serde_json::{Map, Value};

use super::messages::{ConverseWire, join_turns};
use super::{ConverseFormat, whole_request};
use crate::host::Host;
use crate::place::Places;
use crate::problem::{Code, Log};
use crate::providers::extra_fields::{OF_CHAT, is_of_an_answer};
use crate::providers::rules::RequestRules;
use crate::providers::wire::Wire;
use crate::providers::{ids, opening};

const ID_MAX: usize = 64;

impl RequestRules for ConverseFormat {
    fn wire(&self, _host: Host) -> &'static dyn Wire {
        &ConverseWire
    }

    fn is_served_by(&self, host: Host, _domain: &str) -> bool {
        matches!(host, Host::Bedrock | Host::Compatible)
    }

    fn takes_id(&self, id: &str) -> bool {
        !id.is_empty() && id.len() <= ID_MAX && ids::is_of_letters(id, b"_-.:")
    }

    fn new_id(&self, of: &str) -> String {
        format!("tooluse_{}", ids::digest(of, 22))
    }

    /// As Amazon's own clients write it.
    fn model_key(&self) -> &'static str {
        "modelId"
    }

    fn says_to_no_messages(&self) -> Option<&'static str> {
        Some(
            "The messages field in the request is empty. Add a message to the messages field and try again.",
        )
    }

    fn begin(
        &self,
        messages: &mut Vec<Value>,
        origins: &mut Vec<usize>,
        base: &str,
        log: &mut Log,
    ) {
        if !messages
            .first()
            .is_some_and(|one| ConverseWire.is_model(one))
        {
            return;
        }
        log.found(
            format!("{base}/0"),
            Code::WrongRole,
            "the conversation begins with the model's words",
        )
        .says("A conversation must start with a user message. Try again with a conversation that starts with a user message.".to_owned())
        .fixed(opening::NOTED);
        opening::put(&ConverseWire, messages, origins);
    }

    fn end(
        &self,
        _host: Host,
        messages: &mut Vec<Value>,
        origins: &mut Vec<usize>,
        is_model: &[bool],
        base: &str,
        log: &mut Log,
    ) {
        join_turns(messages, origins, is_model, base, log);
    }

    fn mend_request(
        &self,
        request: &mut Value,
        messages: &mut Vec<Value>,
        model: Option<&str>,
        _host: Host,
        places: Places<'_>,
        log: &mut Log,
    ) {
        whole_request::mend(request, messages, model, places, log);
    }

    fn says_to_silence(&self, message: usize) -> Option<String> {
        Some(format!(
            "The content field in the Message object at messages.{message} is empty. Add a ContentBlock object to the content field and try again."
        ))
    }

    fn refuses_message_field(&self, fields: &Map<String, Value>, key: &str) -> bool {
        OF_CHAT.contains(&key) || is_of_an_answer(fields, key)
    }
}
