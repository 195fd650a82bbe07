//! No provider, and so none that refuses anything.

use serde_json::Value;

use super::LangChainFormat;
use crate::providers::strict_rules::{
    EVENTS, Refusal, StrictRules, chat_ok, chat_stream, openai_not_json,
};

impl StrictRules for LangChainFormat {
    fn check(&self, _request: &Value) -> Result<(), Refusal> {
        Ok(())
    }

    /// Most of its clients speak OpenAI's language.
    fn name_in_addresses(&self) -> &'static str {
        "openai"
    }

    fn base_path(&self) -> &'static str {
        "/v1"
    }

    fn path_ends(&self) -> &'static [&'static str] {
        &[]
    }

    fn not_json(&self) -> Value {
        openai_not_json()
    }

    fn ok(&self, model: &Value) -> Value {
        chat_ok(model)
    }

    fn stream(&self, reply: &Value, _is_sse: bool) -> (&'static str, String) {
        let mut text = String::new();
        chat_stream(reply, &mut text);
        (EVENTS, text)
    }
}
