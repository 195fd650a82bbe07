//! Tool definitions as each provider wants them, from the one LangChain-shaped definition (SPEC V18, V19).

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::converted::{Converted, LeftOut};
use crate::providers::Provider;
use crate::providers::names::{is_legal_name, legal_name};
use crate::providers::rules::Rules;
use crate::providers::wire::text;
use steadyhand::check_schema;
use steadyhand::cut::json_bytes;
use steadyhand::schema_limits::SCHEMA_BYTES_MAX;

/// The name a provider knows a tool by: its own, or a short one that the provider takes.
pub fn short_name(provider: Provider, name: &str) -> Cow<'_, str> {
    legal_name(provider, name)
}

/// Converts definitions, which stay as they are: `{name, lc_name?, description, schema}` each.
///
/// What a provider refuses is rewritten; a tool it cannot be made to take is left out, never the turn.
pub fn convert_tools<'a>(
    provider: Provider,
    definitions: impl IntoIterator<Item = &'a Value>,
) -> Converted {
    let rules = provider.rules();
    let definitions: Vec<&Value> = definitions.into_iter().collect();
    // A name that is taken as it is must not be lost to a short one that happens to be the same.
    let own = |tool: &&Value| is_legal_name(provider, rules.tool_name(tool));
    let taken: HashSet<&str> = definitions
        .iter()
        .filter(|tool| own(tool))
        .map(|tool| rules.tool_name(tool))
        .collect();
    let mut converted = Converted::default();
    let mut declared = Vec::new();
    for tool in &definitions {
        let original = rules.tool_name(tool);
        let name = legal_name(provider, original);
        let is_short = name != original;
        let clash = converted.names.contains_key(&*name) || (is_short && taken.contains(&*name));
        let result = if clash {
            Err(format!("another tool is called {name} there"))
        } else if declared.len() == rules.tools_max() {
            Err(format!(
                "the provider takes {} tools and has them",
                rules.tools_max()
            ))
        } else {
            one(rules, &name, tool)
        };
        match result {
            Ok(tool) => {
                converted
                    .names
                    .insert(name.into_owned(), original.to_owned());
                declared.push(tool);
            }
            Err(reason) => {
                tracing::warn!(
                    tool = original,
                    provider = provider.as_str(),
                    "tool left out: {reason}"
                );
                converted.left_out.push(LeftOut {
                    name: original.to_owned(),
                    reason,
                });
            }
        }
    }
    converted.tools = rules.bundle(declared);
    converted
}

/// The definitions as an MCP server lists them.
pub fn mcp_tools<'a>(definitions: impl IntoIterator<Item = &'a Value>) -> Vec<Value> {
    let one = |tool: &Value| {
        json!({
            "name": text(tool, "name"),
            "description": text(tool, "description"),
            "inputSchema": object_schema(tool),
        })
    };
    definitions.into_iter().map(one).collect()
}

fn one(rules: &dyn Rules, name: &str, tool: &Value) -> Result<Value, String> {
    if rules.tool_name(tool).is_empty() {
        return Err("it has no name".to_owned());
    }
    let description = text(tool, "description").unwrap_or_default();
    let schema = object_schema(tool);
    check_schema(&schema)?;
    let schema = rules.dialect(schema)?;
    if json_bytes(&schema, SCHEMA_BYTES_MAX) > SCHEMA_BYTES_MAX {
        return Err(format!(
            "its schema is larger than {SCHEMA_BYTES_MAX} bytes once its references are written out"
        ));
    }
    Ok(rules.definition(tool, name, description, schema))
}

/// The schema of a tool's arguments, with an object at its root.
fn object_schema(tool: &Value) -> Value {
    let schema = tool.get("schema").or_else(|| tool.get("parameters"));
    match schema {
        Some(Value::Object(fields)) if fields.contains_key("type") => Value::Object(fields.clone()),
        Some(Value::Object(fields)) => {
            let mut object = Map::new();
            object.insert("type".to_owned(), json!("object"));
            object.extend(fields.clone());
            Value::Object(object)
        }
        _ => json!({"type": "object", "properties": {}}),
    }
}
