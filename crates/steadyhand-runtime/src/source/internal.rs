//! Tools of kind `internal`: services of the host application, by name (SPEC F13).

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Context, Fault, Fixed, Settings, Source};
use steadyhand_config::documents;

/// A service that the application registers in code, or `rag_query`, the search in `[documents]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InternalSettings {
    /// The name the application has registered it under; without it the tool's own name.
    pub handler: Option<String>,
    /// What models are told about the tool.
    pub description: Option<String>,
    /// JSON Schema of the arguments, or the path of a file that holds it.
    #[serde(default)]
    #[schemars(schema_with = "super::input_schema")]
    pub input: Option<Value>,
}

impl Settings for InternalSettings {
    const KIND: &'static str = "internal";

    fn check(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self
            .handler
            .as_deref()
            .is_some_and(|name| name.trim().is_empty())
        {
            faults.push(Fault {
                at: "/handler".to_owned(),
                message: "the handler has no name".to_owned(),
                help: Some("leave it out if it is called as the tool is".to_owned()),
            });
        }
        faults
    }

    fn build(self, name: &str, context: &Context) -> Result<Arc<dyn Source>, Fault> {
        if let Some(fault) = self.check().into_iter().next() {
            return Err(fault);
        }
        let handler = self.handler.unwrap_or_else(|| name.to_owned());
        let is_search = handler == documents::RAG_QUERY;
        let description = self.description.unwrap_or_else(|| match is_search {
            true => documents::DESCRIPTION.to_owned(),
            false => format!("Calls the service '{handler}' of the application"),
        });
        let schema = self.input.unwrap_or_else(|| match is_search {
            true => documents::schema(),
            false => json!({"type": "object"}),
        });
        let tool = context.internal.tool(name, description, schema, handler);
        Ok(Arc::new(Fixed::new(name, vec![tool])))
    }
}
