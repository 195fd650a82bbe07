//! Tools as OpenAI's Responses have them: `{type: "function", name, description, parameters, strict}`.

use serde_json::{Value, json};

use super::ResponsesFormat;
use crate::problem::{Code, Log};
use crate::providers::rules::ToolRules;
use crate::providers::schema;
use crate::providers::tool_checks::{TOOLS_MAX, description, openai_name, openai_schema, too_many};
use crate::providers::wire::text;

impl ToolRules for ResponsesFormat {
    fn tools_max(&self) -> usize {
        TOOLS_MAX
    }

    fn dialect(&self, schema: Value) -> Result<Value, String> {
        schema::with_items(schema)
    }

    fn definition(&self, _tool: &Value, name: &str, description: &str, schema: Value) -> Value {
        json!({"type": "function", "name": name, "description": description, "parameters": schema, "strict": false})
    }

    fn check_tools(&self, tools: &[Value], log: &mut Log) {
        if tools.len() > TOOLS_MAX {
            too_many(tools.len(), log);
        }
        for (index, tool) in tools.iter().enumerate() {
            let at = format!("/tools/{index}");
            let Some(kind) = text(tool, "type") else {
                log.found(at, Code::BadToolShape, "this tool does not say its type")
                    .says(format!(
                        "Missing required parameter: 'tools[{index}].type'."
                    ));
                continue;
            };
            if kind != "function" {
                continue;
            }
            description(&at, tool, log);
            openai_name(&at, &format!("tools[{index}]"), tool, log);
            // Strict is on here unless it is switched off, but it then mends the schema itself.
            openai_schema(
                &at,
                tool,
                tool.get("parameters"),
                tool["strict"] == true,
                log,
            );
        }
    }
}
