//! How Mistral speaks over HTTP.

use serde_json::{Value, json};

use super::MistralFormat;
use crate::providers::format::{self, ProviderFormat, kind_of};

impl ProviderFormat for MistralFormat {
    fn let_answer(&self, request: &mut Value) {
        format::let_answer(request);
    }

    fn error_body(&self, code: &str, status: u16, words: &str) -> Value {
        let kind = kind_of(status);
        json!({"object": "error", "message": words, "type": kind, "param": null, "code": code})
    }
}
