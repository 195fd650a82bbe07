//! Tools in Qwen's format, as Ollama takes them (SPEC V18). Their schema is the tool's own.
//!
//! Ollama itself hands only a part of a schema to the model's template (`type`, `anyOf`, `items`, `description`, `enum`,
//! `properties`, `required`). That is its business and changes with its versions: what it is sent is whole.

use serde_json::Value;

use super::OllamaFormat;
use crate::problem::{Code, Log};
use crate::providers::openai::OpenAiFormat;
use crate::providers::rules::ToolRules;
use crate::providers::schema::{refs, roots};
use crate::providers::tool_checks::description;
use crate::providers::wire::text;

impl ToolRules for OllamaFormat {
    /// Its tools go by `lc_name` where there is one.
    fn tool_name<'a>(&self, tool: &'a Value) -> &'a str {
        let name = text(tool, "lc_name").or_else(|| text(tool, "name"));
        name.unwrap_or_default()
    }

    fn dialect(&self, schema: Value) -> Result<Value, String> {
        with_choices(refs::inline(schema)?)
    }

    fn definition(&self, tool: &Value, name: &str, description: &str, schema: Value) -> Value {
        OpenAiFormat.definition(tool, name, description, schema)
    }

    fn bundle(&self, definitions: Vec<Value>) -> Vec<Value> {
        let count = definitions.len();
        tracing::debug!("🔧 Converted {count} tools from LangChain to Qwen format");
        definitions
    }

    /// `{type: "function", function: {name, description, parameters}}` (SPEC V18). Ollama takes anything else without a
    /// word, and the model then sees an empty tool or none.
    fn check_tools(&self, tools: &[Value], log: &mut Log) {
        for (index, tool) in tools.iter().enumerate() {
            let at = format!("/tools/{index}");
            let is_function = text(tool, "type") == Some("function");
            let Some(function) = tool.get("function").filter(|one| one.is_object()) else {
                let looks_like = match tool.get("schema").is_some() {
                    true => "this tool is in LangChain's shape",
                    false => "this is no tool in Ollama's shape",
                };
                log.found(
                    at,
                    Code::BadToolShape,
                    format!("{looks_like}: the model does not see it; write {OLLAMAS_SHAPE}"),
                );
                continue;
            };
            if !is_function {
                log.found(
                    format!("{at}/type"),
                    Code::BadToolShape,
                    "the type of a tool is \"function\"",
                );
            }
            let at = format!("{at}/function");
            if text(function, "name").is_none_or(str::is_empty) {
                log.found(
                    format!("{at}/name"),
                    Code::BadToolName,
                    "the tool has no name",
                );
            }
            description(&at, function, log);
            check_parameters(&at, function.get("parameters"), log);
        }
    }
}

const OLLAMAS_SHAPE: &str =
    r#"{"type": "function", "function": {"name": …, "description": …, "parameters": …}}"#;

/// The schema with the properties of a choice at its root beside the choice: Ollama shows the model properties only.
fn with_choices(schema: Value) -> Result<Value, String> {
    let mut plain = roots::plain(schema.clone())?;
    let Value::Object(fields) = &mut plain else {
        return Ok(plain);
    };
    for key in ["allOf", "anyOf", "oneOf", "description"] {
        match schema.get(key) {
            Some(own) => fields.insert(key.to_owned(), own.clone()),
            // A note of ours about the choice, which is here itself.
            None => fields.shift_remove(key),
        };
    }
    Ok(plain)
}

/// Ollama refuses hardly anything; what it does not know it drops. The arguments are an object all the same (SPEC V18).
fn check_parameters(at: &str, schema: Option<&Value>, log: &mut Log) {
    let at = format!("{at}/parameters");
    let Some(Value::Object(schema)) = schema else {
        log.found(
            at,
            Code::BadToolSchema,
            "the tool has no parameters: the model cannot know its arguments; without any, write {\"type\": \"object\", \"properties\": {}}",
        );
        return;
    };
    if schema.get("type").is_none_or(|kind| kind != "object") {
        log.found(
            format!("{at}/type"),
            Code::BadToolSchema,
            "the arguments of a tool are an object",
        );
    }
    let properties = schema.get("properties");
    if properties.is_some_and(|properties| !properties.is_object() && !properties.is_null()) {
        log.found(
            format!("{at}/properties"),
            Code::BadToolSchema,
            "the properties are no object",
        )
        .says("Value looks like object, but can't find closing '}' symbol".to_owned());
    }
}
