//! LangChain's messages go over no wire of their own: what does is in the form of chat completions.

use std::collections::HashSet;

use serde_json::Value;

use super::LangChainFormat;
use crate::providers::format::{ProviderFormat, name_of, remove};

impl ProviderFormat for LangChainFormat {
    fn answer_messages(&self, answer: &Value) -> Vec<Value> {
        vec![answer.clone()]
    }

    fn keep_calls(&self, _answer: &mut Value, _is_meant: &dyn Fn(&str) -> bool) {}

    fn leave_out_words(&self, _answer: &mut Value) {}

    fn tool_names(&self, tools: &[Value]) -> HashSet<String> {
        tools.iter().filter_map(name_of).collect()
    }

    fn forbid_tools(&self, request: &mut Value) {
        remove(request, "tools");
    }
}
