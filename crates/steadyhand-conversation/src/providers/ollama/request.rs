//! What Ollama takes in a request: nearly everything.

use super::OllamaFormat;
use crate::host::Host;
use crate::providers::chat::Chat;
use crate::providers::rules::RequestRules;
use crate::providers::wire::Wire;

impl RequestRules for OllamaFormat {
    fn wire(&self, _host: Host) -> &'static dyn Wire {
        &Chat::Ollama
    }

    fn is_served_by(&self, host: Host, _domain: &str) -> bool {
        host == Host::Compatible
    }

    fn ids_are_optional(&self) -> bool {
        true
    }

    fn takes_id(&self, _id: &str) -> bool {
        true
    }

    fn takes_name(&self, name: &str) -> bool {
        !name.is_empty()
    }

    fn says_to_no_model(&self) -> Option<&'static str> {
        Some("model is required")
    }

    /// Its templates show a model results without ids.
    fn reads_by_order(&self) -> bool {
        true
    }
}
