//! Tools as Anthropic has them: `{name, description, input_schema}`.

use std::collections::HashSet;

use serde_json::{Value, json};
use steadyhand::check_schema;

use super::AnthropicFormat;
use crate::problem::{Code, Log};
use crate::providers::rules::ToolRules;
use crate::providers::schema::{self, rewrite};
use crate::providers::tool_checks::{UNIONS, description, is_name};
use crate::providers::wire::text;

impl ToolRules for AnthropicFormat {
    fn dialect(&self, schema: Value) -> Result<Value, String> {
        dialect(schema)
    }

    fn definition(&self, _tool: &Value, name: &str, description: &str, schema: Value) -> Value {
        json!({"name": name, "description": description, "input_schema": schema})
    }

    fn says_to_tools_that_are_no_list(&self) -> Option<&'static str> {
        Some("tools: Input should be a valid array")
    }

    fn check_tools(&self, tools: &[Value], log: &mut Log) {
        let mut names = HashSet::new();
        for (index, tool) in tools.iter().enumerate() {
            let at = format!("/tools/{index}");
            if !tool.is_object() {
                log.found(at, Code::BadField, "this is no tool")
                    .says(format!("tools.{index}: Input should be an object"));
                continue;
            }
            let name = text(tool, "name").unwrap_or_default();
            if !name.is_empty() && !names.insert(name) {
                log.found(
                    format!("{at}/name"),
                    Code::BadToolName,
                    format!("another tool is called {name}"),
                )
                .says("tools: Tool names must be unique.".to_owned());
            }
            // The provider's own tools have other fields.
            if text(tool, "type").is_some_and(|kind| kind != "custom") {
                continue;
            }
            if !is_name(name, 128) {
                log.found(
                    format!("{at}/name"),
                    Code::BadToolName,
                    format!("the name {name:?} is not taken"),
                )
                .says(format!(
                    "tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
                ));
            }
            description(&at, tool, log);
            check_input_schema(index, tool.get("input_schema"), log);
        }
    }
}

pub(crate) fn dialect(schema: Value) -> Result<Value, String> {
    let schema = schema::plain(schema)?;
    rewrite::check_keys(&schema)?;
    Ok(schema)
}

/// Draft 2020-12 with an object at its root, and no choice there.
fn check_input_schema(index: usize, schema: Option<&Value>, log: &mut Log) {
    let at = format!("/tools/{index}/input_schema");
    let place = format!("tools.{index}.custom.input_schema");
    let Some(schema) = schema.filter(|schema| schema.is_object()) else {
        log.found(at, Code::BadToolSchema, "the tool has no schema")
            .says(format!("{place}: Field required"));
        return;
    };
    if UNIONS.iter().any(|key| schema.get(key).is_some()) {
        log.found(
            at,
            Code::BadToolSchema,
            "the schema has a choice at its root",
        )
        .says(format!(
            "{place}: input_schema does not support oneOf, allOf, or anyOf at the top level"
        ));
        return;
    }
    if schema["type"] != "object" {
        log.found(
            format!("{at}/type"),
            Code::BadToolSchema,
            "the arguments of a tool are an object",
        )
        .says(format!("{place}.type: Input should be 'object'"));
        return;
    }
    if check_schema(schema).is_err() {
        log.found(at, Code::BadToolSchema, "this is no JSON Schema")
            .says(format!("{place}: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). Learn more about tool use at https://docs.claude.com/en/docs/tool-use."));
    }
}
