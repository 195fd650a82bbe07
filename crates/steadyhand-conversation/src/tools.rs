//! Tool definitions as each provider wants them, from the one LangChain-shaped definition (SPEC V18, V19).

mod gemini;
mod ollama;
mod refs;
mod rewrite;
mod roots;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::provider::Provider;
use super::wire::{is_legal_name, legal_name, text};
use steadyhand::check_schema;
use steadyhand::cut::json_bytes;
use steadyhand::schema_limits::SCHEMA_BYTES_MAX;

/// What OpenAI takes, and others with it.
const TOOLS_MAX: usize = 128;

/// Tools in a provider's own shape.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Converted {
    /// What goes into the request's `tools`.
    pub tools: Vec<Value>,
    /// The tools that the provider would not take, each with the reason; the others are not affected.
    pub left_out: Vec<LeftOut>,
    names: HashMap<String, String>,
}

/// A tool that a provider does not get.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LeftOut {
    /// The tool.
    pub name: String,
    /// Why.
    pub reason: String,
}

impl Converted {
    /// The tool that the provider knows under this name.
    pub fn original<'a>(&'a self, name: &'a str) -> &'a str {
        self.names.get(name).map_or(name, String::as_str)
    }
}

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
    let definitions: Vec<&Value> = definitions.into_iter().collect();
    // A name that is taken as it is must not be lost to a short one that happens to be the same.
    let own = |tool: &&Value| is_legal_name(provider, name_of(provider, tool));
    let taken: HashSet<&str> = definitions
        .iter()
        .filter(|tool| own(tool))
        .map(|tool| name_of(provider, tool))
        .collect();
    let mut converted = Converted::default();
    let mut declared = Vec::new();
    for tool in &definitions {
        let original = name_of(provider, tool);
        let name = legal_name(provider, original);
        let is_short = name != original;
        let clash = converted.names.contains_key(&*name) || (is_short && taken.contains(&*name));
        let result = if clash {
            Err(format!("another tool is called {name} there"))
        } else if declared.len() == limit(provider) {
            Err(format!("the provider takes {TOOLS_MAX} tools and has them"))
        } else {
            one(provider, &name, tool)
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
    if provider == Provider::Ollama {
        let count = declared.len();
        tracing::debug!("🔧 Converted {count} tools from LangChain to Qwen format");
    }
    converted.tools = match provider {
        Provider::Gemini if !declared.is_empty() => {
            vec![json!({"functionDeclarations": declared})]
        }
        _ => declared,
    };
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

fn limit(provider: Provider) -> usize {
    match provider {
        Provider::OpenAi | Provider::OpenAiResponses | Provider::Gemini | Provider::Mistral => {
            TOOLS_MAX
        }
        Provider::Anthropic
        | Provider::Ollama
        | Provider::BedrockConverse
        | Provider::LangChain => usize::MAX,
    }
}

/// Ollama's tools go by `lc_name` where there is one (SPEC V18).
fn name_of(provider: Provider, tool: &Value) -> &str {
    let name = text(tool, "name").unwrap_or_default();
    match provider {
        Provider::Ollama => text(tool, "lc_name").unwrap_or(name),
        _ => name,
    }
}

fn one(provider: Provider, name: &str, tool: &Value) -> Result<Value, String> {
    if name_of(provider, tool).is_empty() {
        return Err("it has no name".to_owned());
    }
    let description = text(tool, "description").unwrap_or_default();
    let schema = object_schema(tool);
    check_schema(&schema)?;
    let schema = dialect(provider, schema)?;
    if json_bytes(&schema, SCHEMA_BYTES_MAX) > SCHEMA_BYTES_MAX {
        return Err(format!(
            "its schema is larger than {SCHEMA_BYTES_MAX} bytes once its references are written out"
        ));
    }
    Ok(match provider {
        Provider::Anthropic => {
            json!({"name": name, "description": description, "input_schema": schema})
        }
        Provider::BedrockConverse => {
            let schema = json!({ "json": schema });
            let mut spec = json!({"name": name, "inputSchema": schema});
            // The service takes no empty description.
            if !description.is_empty() {
                spec = json!({"name": name, "description": description, "inputSchema": schema});
            }
            json!({ "toolSpec": spec })
        }
        Provider::Ollama => ollama::function(name, description, schema),
        Provider::OpenAi | Provider::Mistral => {
            json!({"type": "function", "function": {"name": name, "description": description, "parameters": schema}})
        }
        Provider::OpenAiResponses => {
            json!({"type": "function", "name": name, "description": description, "parameters": schema, "strict": false})
        }
        Provider::Gemini => gemini::declaration(name, description, schema),
        Provider::LangChain => {
            let mut definition = json!({"name": name, "description": description});
            if let Some(alias) = text(tool, "lc_name") {
                definition = json!({"name": name, "lc_name": alias, "description": description});
            }
            definition["schema"] = schema;
            definition
        }
    })
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

/// The schema in the words the provider reads.
fn dialect(provider: Provider, schema: Value) -> Result<Value, String> {
    match provider {
        Provider::LangChain => Ok(schema),
        Provider::Anthropic | Provider::BedrockConverse => {
            let schema = roots::plain(rewrite::modern(schema))?;
            rewrite::check_keys(&schema)?;
            Ok(schema)
        }
        Provider::OpenAi | Provider::OpenAiResponses | Provider::Mistral => {
            let mut schema = roots::plain(rewrite::modern(schema))?;
            rewrite::give_items(&mut schema, &json!({}));
            if let Some(root) = schema.as_object_mut() {
                root.entry("properties").or_insert_with(|| json!({}));
            }
            Ok(schema)
        }
        Provider::Gemini => {
            let schema = roots::plain(refs::inline(rewrite::modern(schema))?)?;
            Ok(schema)
        }
        Provider::Ollama => with_choices(refs::inline(schema)?),
    }
}

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
