//! Tools as LangChain has them: `{name, description, schema}`, which every other shape is made from.

use serde_json::{Value, json};

use super::LangChainFormat;
use crate::problem::{Code, Log};
use crate::providers::rules::ToolRules;
use crate::providers::tool_checks::description;
use crate::providers::wire::text;

impl ToolRules for LangChainFormat {
    fn dialect(&self, schema: Value) -> Result<Value, String> {
        Ok(schema)
    }

    fn definition(&self, tool: &Value, name: &str, description: &str, schema: Value) -> Value {
        let mut definition = json!({"name": name, "description": description});
        if let Some(alias) = text(tool, "lc_name") {
            definition = json!({"name": name, "lc_name": alias, "description": description});
        }
        definition["schema"] = schema;
        definition
    }

    fn check_tools(&self, tools: &[Value], log: &mut Log) {
        for (index, tool) in tools.iter().enumerate() {
            let at = format!("/tools/{index}");
            if !tool.is_object() {
                log.found(at, Code::BadToolShape, "this is no tool");
                continue;
            }
            // Its models also take tools in the shape of their provider.
            let is_native = ["function", "input_schema", "functionDeclarations"]
                .iter()
                .any(|key| tool.get(key).is_some());
            if is_native || tool.get("lc").is_some() {
                continue;
            }
            if text(tool, "name").is_none_or(str::is_empty) {
                log.found(
                    format!("{at}/name"),
                    Code::BadToolName,
                    "the tool has no name",
                );
            }
            description(&at, tool, log);
            let schema = ["schema", "parameters", "args_schema"]
                .iter()
                .find_map(|key| tool.get(key));
            if !schema.is_some_and(Value::is_object) {
                log.found(
                    format!("{at}/schema"),
                    Code::BadToolSchema,
                    "the tool has no schema for its arguments",
                );
            }
        }
    }
}
