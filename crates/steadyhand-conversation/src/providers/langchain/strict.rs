//! No provider, and so none that refuses anything.

use serde_json::Value;

use super::LangChainFormat;
use crate::providers::strict_rules::{Refusal, StrictRules};

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
}
