//! No provider, and so none that refuses anything.

use serde_json::Value;

use super::LangChainFormat;
use crate::providers::strict_rules::{Refusal, StrictRules};

impl StrictRules for LangChainFormat {
    fn check(&self, _request: &Value) -> Result<(), Refusal> {
        Ok(())
    }
}
