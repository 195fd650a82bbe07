//! A model's request to run a tool.

use serde_json::Map;
use serde_json::Value;

use super::Extra;
use crate::call::Call;
use crate::clock;

/// A model's request to run a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// What the result will refer to.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, by parameter name.
    pub args: Map<String, Value>,
    /// The fields this library gives no meaning to.
    pub extra: Extra,
}

/// A request to run a tool whose arguments could not be read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InvalidToolCall {
    /// What a result would refer to.
    pub id: Option<String>,
    /// The tool's name.
    pub name: Option<String>,
    /// The arguments exactly as the model wrote them.
    pub args: Option<String>,
    /// Why they could not be read.
    pub error: Option<String>,
    /// The fields this library gives no meaning to.
    pub extra: Extra,
}

impl ToolCall {
    /// A call the provider gave no id: it gets one of its own.
    pub fn new(name: impl Into<String>, args: Map<String, Value>) -> Self {
        Self::with_id(unique_id(), name, args)
    }

    /// A call with the id its provider gave it.
    pub fn with_id(
        id: impl Into<String>,
        name: impl Into<String>,
        args: Map<String, Value>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            args,
            extra: Extra::default(),
        }
    }
}

/// Runs what a model asked for: the outcome will carry the request's id.
impl From<ToolCall> for Call {
    fn from(request: ToolCall) -> Call {
        Call::with_id(request.id, request.name, Value::Object(request.args))
    }
}

/// Letters, digits, dashes and an underscore: every provider but Mistral accepts it as it is.
pub(super) fn unique_id() -> String {
    let id = clock::new_id();
    format!("call_{}", id.replace('-', ""))
}
