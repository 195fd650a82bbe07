//! Tools as a provider got them.

use std::collections::HashMap;

use serde_json::Value;

/// Tools in a provider's own shape.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Converted {
    /// What goes into the request's `tools`.
    pub tools: Vec<Value>,
    /// The tools that the provider would not take, each with the reason; the others are not affected.
    pub left_out: Vec<LeftOut>,
    pub(crate) names: HashMap<String, String>,
}

/// A tool that a provider does not get.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LeftOut {
    /// The tool.
    pub name: String,
    /// Why.
    pub reason: String,
}

impl Converted {
    /// The tool that the provider knows under this name.
    pub fn original<'a>(&'a self, name: &'a str) -> &'a str {
        self.names.get(name).map_or(name, String::as_str)
    }
}
