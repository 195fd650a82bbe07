//! Tools of kind `internal`: services of the host application, by name (SPEC F13).

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use steadyhand::Tool;
use steadyhand::source::internal::InternalHandlers;
use steadyhand::source::{SourceError, ToolSource};

use super::{Context, Fault, Settings};
use crate::documents;

/// The file of a schema is not read further.
const SCHEMA_BYTES_MAX: u64 = 1024 * 1024;

/// A service that the application registers in code, or `rag_query`, the search in `[documents]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InternalSettings {
    /// The name the application has registered it under; without it the tool's own name.
    pub handler: Option<String>,
    /// What models are told about the tool.
    pub description: Option<String>,
    /// JSON Schema of the arguments, or the path of a file that holds it.
    #[schemars(schema_with = "schema_or_path")]
    pub input: Option<Value>,
}

fn schema_or_path(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["object", "string"]})
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
        if matches!(&self.input, Some(input) if !input.is_object() && !input.is_string()) {
            faults.push(Fault {
                at: "/input".to_owned(),
                message: "this is no JSON Schema".to_owned(),
                help: Some("write { type = \"object\", … } or the path of a JSON file".to_owned()),
            });
        }
        faults
    }

    fn build(self, name: &str, context: &Context) -> Result<Arc<dyn ToolSource>, Fault> {
        if let Some(fault) = self.check().into_iter().next() {
            return Err(fault);
        }
        let handler = self.handler.unwrap_or_else(|| name.to_owned());
        let is_search = handler == documents::RAG_QUERY;
        let description = self.description.unwrap_or_else(|| match is_search {
            true => documents::DESCRIPTION.to_owned(),
            false => format!("Calls the service '{handler}' of the application"),
        });
        let input = match self.input {
            Some(Value::String(path)) => Input::File(context.folder.join(path)),
            Some(schema) => Input::Schema(schema),
            None if is_search => Input::Schema(documents::schema()),
            None => Input::Schema(json!({"type": "object"})),
        };
        Ok(Arc::new(InternalSource {
            name: name.to_owned(),
            handler,
            description,
            input,
            handlers: context.internal.clone(),
        }))
    }
}

struct InternalSource {
    name: String,
    handler: String,
    description: String,
    input: Input,
    handlers: InternalHandlers,
}

enum Input {
    Schema(Value),
    File(PathBuf),
}

impl ToolSource for InternalSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn tools(&self) -> BoxFuture<'_, Result<Vec<Tool>, SourceError>> {
        Box::pin(async move {
            let schema = match &self.input {
                Input::Schema(schema) => schema.clone(),
                Input::File(path) => read_schema(path).await.map_err(|reason| SourceError {
                    source_name: self.name.clone(),
                    reason,
                })?,
            };
            let (name, description) = (self.name.clone(), self.description.clone());
            let tool = self
                .handlers
                .tool(name, description, schema, self.handler.clone());
            Ok(vec![tool.from_source(self.name.clone())])
        })
    }
}

async fn read_schema(path: &PathBuf) -> Result<Value, String> {
    let shown = path.display();
    let metadata = tokio::fs::metadata(path).await;
    let size = metadata
        .map_err(|error| format!("the schema {shown} cannot be read: {error}; check `input`"))?
        .len();
    if size > SCHEMA_BYTES_MAX {
        return Err(format!(
            "the schema {shown} is larger than 1 MiB; check `input`"
        ));
    }
    let text = tokio::fs::read(path)
        .await
        .map_err(|error| format!("the schema {shown} cannot be read: {error}; check `input`"))?;
    serde_json::from_slice(&text).map_err(|error| format!("the schema {shown} is no JSON: {error}"))
}
