//! placeholder until the helper is done
use serde_json::Value;
#[derive(Debug, Clone, PartialEq)]
pub enum Content { Text(String), Blocks(Vec<Value>) }
#[derive(Debug, Clone, PartialEq)]
pub struct ToolMessage { pub content: Content, pub tool_call_id: String, pub name: Option<String>, pub artifact: Option<Value>, pub is_error: bool }
impl ToolMessage { pub fn new(id: impl Into<String>, content: Content) -> ToolMessage { ToolMessage { content, tool_call_id: id.into(), name: None, artifact: None, is_error: false } } }
