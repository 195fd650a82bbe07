//! Tools as Google has them: `{functionDeclarations: [{name, description, parameters}]}`.

use serde_json::{Value, json};

use super::{GeminiFormat, declaration};
use crate::place::escape;
use crate::problem::{Code, Log};
use crate::providers::rules::{RequestRules, ToolRules};
use crate::providers::schema::{refs, rewrite, roots};
use crate::providers::tool_checks::{TOOLS_MAX, description};
use crate::providers::wire::text;

impl ToolRules for GeminiFormat {
    fn tools_max(&self) -> usize {
        TOOLS_MAX
    }

    fn dialect(&self, schema: Value) -> Result<Value, String> {
        roots::plain(refs::inline(rewrite::modern(schema))?)
    }

    fn definition(&self, _tool: &Value, name: &str, description: &str, schema: Value) -> Value {
        declaration::declaration(name, description, schema)
    }

    fn bundle(&self, definitions: Vec<Value>) -> Vec<Value> {
        match definitions.is_empty() {
            true => definitions,
            false => vec![json!({"functionDeclarations": definitions})],
        }
    }

    fn takes_one_tool(&self) -> bool {
        true
    }

    fn check_tools(&self, tools: &[Value], log: &mut Log) {
        for (index, tool) in tools.iter().enumerate() {
            let key = ["functionDeclarations", "function_declarations"]
                .into_iter()
                .find(|key| tool.get(key).is_some());
            let Some(key) = key else {
                // Google's own tools are one key each; what has a name is a function of somebody else's shape.
                if let Some(odd) = ["name", "function"]
                    .iter()
                    .find(|key| tool.get(key).is_some())
                {
                    log.found(
                        format!("/tools/{index}"),
                        Code::BadToolShape,
                        "functions are listed under functionDeclarations",
                    )
                    .says(format!("Invalid JSON payload received. Unknown name \"{odd}\" at 'tools[{index}]': Cannot find field."));
                }
                continue;
            };
            let functions = tool[key].as_array().map_or(&[][..], Vec::as_slice);
            for (number, function) in functions.iter().enumerate() {
                let at = format!("/tools/{index}/{key}/{number}");
                let place = format!("tools[{index}].function_declarations[{number}]");
                let name = text(function, "name").unwrap_or_default();
                if !self.takes_name(name) {
                    log.found(format!("{at}/name"), Code::BadToolName, format!("the name {name:?} is not taken"))
                        .says(format!("* GenerateContentRequest.{place}.name: Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.) or dashes (-), with a maximum length of 64."));
                }
                description(&at, function, log);
                check_parameters(&at, &place, function.get("parameters"), log);
            }
        }
    }
}

/// Google reads a part of OpenAPI's schemas.
fn check_parameters(at: &str, place: &str, schema: Option<&Value>, log: &mut Log) {
    let Some(Value::Object(schema)) = schema else {
        return;
    };
    for key in ["additionalProperties", "$schema"] {
        if schema.contains_key(key) {
            log.found(format!("{at}/parameters/{}", escape(key)), Code::BadToolSchema, format!("{key} is not read here"))
                .says(format!("Invalid JSON payload received. Unknown name \"{key}\" at '{place}.parameters': Cannot find field."));
        }
    }
}
