//! Tools as OpenAI has them: `{type: "function", function: {name, description, parameters}}`.

use serde_json::{Value, json};

use super::OpenAiFormat;
use crate::problem::Log;
use crate::providers::rules::ToolRules;
use crate::providers::schema;
use crate::providers::tool_checks::{
    TOOLS_MAX, description, functions, openai_name, openai_schema, too_many,
};

impl ToolRules for OpenAiFormat {
    fn tools_max(&self) -> usize {
        TOOLS_MAX
    }

    fn dialect(&self, schema: Value) -> Result<Value, String> {
        schema::with_items(schema)
    }

    fn definition(&self, _tool: &Value, name: &str, description: &str, schema: Value) -> Value {
        json!({"type": "function", "function": {"name": name, "description": description, "parameters": schema}})
    }

    fn check_tools(&self, tools: &[Value], log: &mut Log) {
        if tools.len() > TOOLS_MAX {
            too_many(tools.len(), log);
        }
        for (index, function) in functions(tools) {
            let at = format!("/tools/{index}/function");
            openai_name(&at, &format!("tools[{index}].function"), function, log);
            let strict = function["strict"] == true;
            openai_schema(&at, function, function.get("parameters"), strict, log);
            if function.is_object() {
                description(&at, function, log);
            }
        }
    }
}
