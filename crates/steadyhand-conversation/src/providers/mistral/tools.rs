//! Tools as Mistral has them, which are OpenAI's with names of its own.

use serde_json::Value;

use super::MistralFormat;
use crate::problem::{Code, Log};
use crate::providers::openai::OpenAiFormat;
use crate::providers::rules::ToolRules;
use crate::providers::schema;
use crate::providers::tool_checks::{TOOLS_MAX, description, functions, is_name};
use crate::providers::wire::text;

impl ToolRules for MistralFormat {
    fn tools_max(&self) -> usize {
        TOOLS_MAX
    }

    fn dialect(&self, schema: Value) -> Result<Value, String> {
        schema::with_items(schema)
    }

    fn definition(&self, tool: &Value, name: &str, description: &str, schema: Value) -> Value {
        OpenAiFormat.definition(tool, name, description, schema)
    }

    fn check_tools(&self, tools: &[Value], log: &mut Log) {
        for (index, function) in functions(tools) {
            let at = format!("/tools/{index}/function");
            let name = text(function, "name").unwrap_or_default();
            if !is_name(name, 64) {
                log.found(format!("{at}/name"), Code::BadToolName, format!("the name {name:?} is not taken"))
                    .says(format!("Function name was {name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64."));
            }
            if function.is_object() {
                description(&at, function, log);
            }
        }
    }
}
