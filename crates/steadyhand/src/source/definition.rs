//! Tools from JSON definitions with an `implementation`: mock, builtin, internal (SPEC F09, F10, F13).

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::internal::{InternalHandlers, missing};
use super::{builtin, mock};
use crate::handler::{Handler, Invocation};
use crate::manager::RefusedTool;
use crate::output::Output;
use crate::plain_words;
use crate::tool::Tool;
use crate::tool_error::ToolError;

/// A tool from its definition: `{name, description, schema, lc_name?, implementation: {type, …}}`.
/// The schema may also stand under `parameters`, as Flex Chat writes it.
pub fn tool(definition: &Value, internal: &InternalHandlers) -> Result<Tool, RefusedTool> {
    let name = definition
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let definition = Definition::deserialize(definition).map_err(|error| RefusedTool {
        name: name.to_owned(),
        fault: format!(
            "its definition cannot be read: {}",
            plain_words::misfit(&error)
        ),
    })?;
    let own_schema = definition.schema.or(definition.parameters);
    let schema = own_schema
        .clone()
        .unwrap_or_else(|| json!({"type": "object"}));
    let (name, description) = (definition.name, definition.description);
    let tool = match definition.implementation {
        Implementation::Mock { mock_response } => {
            mock::tool(name, description, schema, mock_response)
        }
        Implementation::Builtin { handler } => match builtin::find(&handler) {
            Some(found) => found.redefined(name, description, own_schema),
            None => {
                Tool::new(name, description, schema, Arc::new(Missing(handler))).of_kind("builtin")
            }
        },
        Implementation::Internal { handler } => internal.tool(name, description, schema, handler),
    };
    Ok(match definition.lc_name {
        Some(alias) => tool.alias(alias),
        None => tool,
    })
}

#[derive(Deserialize)]
struct Definition {
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: String,
    schema: Option<Value>,
    parameters: Option<Value>,
    lc_name: Option<String>,
    implementation: Implementation,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Implementation {
    Mock { mock_response: Value },
    Builtin { handler: String },
    Internal { handler: String },
}

struct Missing(String);

impl Handler for Missing {
    fn run<'a>(&'a self, _: &'a Invocation<'a>) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(ready(Err(missing("Builtin", &self.0))))
    }
}
