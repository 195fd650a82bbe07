//! Tools as Converse has them: `{toolSpec: {name, description, inputSchema: {json}}}`, under `toolConfig`.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::ConverseFormat;
use crate::problem::{Code, Log};
use crate::providers::anthropic;
use crate::providers::rules::ToolRules;
use crate::providers::tool_checks::{description, is_name};
use crate::providers::wire::text;

impl ToolRules for ConverseFormat {
    fn dialect(&self, schema: Value) -> Result<Value, String> {
        anthropic::dialect(schema)
    }

    fn definition(&self, _tool: &Value, name: &str, description: &str, schema: Value) -> Value {
        let schema = json!({ "json": schema });
        let mut spec = json!({"name": name, "inputSchema": schema});
        // The service takes no empty description.
        if !description.is_empty() {
            spec = json!({"name": name, "description": description, "inputSchema": schema});
        }
        json!({ "toolSpec": spec })
    }

    fn tools_in<'a>(&self, request: &'a Value) -> Option<&'a Value> {
        request.pointer("/toolConfig/tools")
    }

    fn check_tools(&self, tools: &[Value], log: &mut Log) {
        let mut names = HashSet::new();
        for (index, tool) in tools.iter().enumerate() {
            let at = format!("/toolConfig/tools/{index}");
            if tool.get("cachePoint").is_some() || tool.get("systemTool").is_some() {
                continue;
            }
            let Some(spec) = tool.get("toolSpec").filter(|spec| spec.is_object()) else {
                log.found(at, Code::BadToolShape, "a tool is described under toolSpec")
                    .says(format!(
                        "The format of the value at toolConfig.tools.{index} is invalid. Provide a json object for the field and try again."
                    ));
                continue;
            };
            let name = text(spec, "name").unwrap_or_default();
            if !is_name(name, 64) {
                log.found(
                    format!("{at}/toolSpec/name"),
                    Code::BadToolName,
                    format!("the name {name:?} is not taken"),
                )
                .says(format!(
                    "1 validation error detected: Value '{name}' at 'toolConfig.tools.{}.member.toolSpec.name' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
                    index + 1
                ));
            } else if !names.insert(name) {
                log.found(
                    format!("{at}/toolSpec/name"),
                    Code::BadToolName,
                    format!("another tool is called {name}"),
                )
                .says(format!(
                    "The tool {name} is already defined at toolConfig.tools.{index}."
                ));
            }
            description(&format!("{at}/toolSpec"), spec, log);
            if !spec["inputSchema"]["json"].is_object() {
                log.found(
                    format!("{at}/toolSpec/inputSchema"),
                    Code::BadToolSchema,
                    "the tool has no schema under inputSchema.json",
                )
                .says(format!(
                    "The value at toolConfig.tools.{index}.toolSpec.inputSchema.json is invalid. Provide a json object for the field and try again."
                ));
            }
        }
    }
}
