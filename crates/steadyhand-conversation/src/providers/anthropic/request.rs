//! What Anthropic takes in a request.

use serde_json::Value;

use super::messages::AnthropicWire;
use super::{AnthropicFormat, turns, whole_request};
use crate::host::Host;
use crate::place::Places;
use crate::problem::{Code, Log};
use crate::providers::ids;
use crate::providers::rules::RequestRules;
use crate::providers::wire::Wire;

impl RequestRules for AnthropicFormat {
    fn wire(&self, host: Host) -> &'static dyn Wire {
        match host.is_strict() {
            true => &AnthropicWire::Strict,
            false => &AnthropicWire::Compatible,
        }
    }

    fn is_served_by(&self, host: Host, domain: &str) -> bool {
        host != Host::Original || domain.ends_with("anthropic.com")
    }

    fn takes_id(&self, id: &str) -> bool {
        !id.is_empty() && ids::is_of_letters(id, b"_-")
    }

    fn new_id(&self, of: &str) -> String {
        format!("toolu_{}", ids::digest(of, 24))
    }

    fn says_to_no_messages(&self) -> Option<&'static str> {
        Some("messages: at least one message is required")
    }

    fn says_to_no_model(&self) -> Option<&'static str> {
        Some("model: Field required")
    }

    fn says_to_field(&self, key: &str) -> Option<String> {
        let is_refused = !FIELDS.contains(&key);
        is_refused.then(|| format!("{key}: Extra inputs are not permitted"))
    }

    fn check_fields(&self, request: &Value, log: &mut Log) {
        if request.get("max_tokens").is_none() {
            log.found("/max_tokens", Code::MissingField, "this field is required")
                .says("max_tokens: Field required".to_owned());
        }
    }

    fn settle(&self, host: Host, messages: &mut [Value], base: &str, log: &mut Log) {
        if host.is_strict() {
            turns::thoughts_at_the_end(messages, base, log);
            turns::blank_turns(messages, base, log);
        }
    }

    fn end(
        &self,
        host: Host,
        messages: &mut Vec<Value>,
        origins: &mut Vec<usize>,
        _is_model: &[bool],
        base: &str,
        log: &mut Log,
    ) {
        if host.is_strict() {
            turns::place_system(messages, origins, base, log);
        }
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
        whole_request::mend(request, messages, model, host, places, log);
    }

    /// It takes what the system is told later, but not first.
    fn may_begin_with_system(&self) -> bool {
        false
    }

    fn says_to_silence(&self, message: usize) -> Option<String> {
        Some(format!(
            "messages.{message}: user messages must have non-empty content"
        ))
    }
}

/// Those of Anthropic itself, and those that other hosts want in the body.
const FIELDS: &[&str] = &[
    "anthropic_beta",
    "anthropic_version",
    "betas",
    "cache_control",
    "compaction",
    "container",
    "context_management",
    "diagnostics",
    "fallback_credit_token",
    "fallbacks",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "output_format",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "thread",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
    "user_profile_id",
    "workspace_id",
];
