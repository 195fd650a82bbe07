//! Handlers of the host application, found by name when a tool is called (SPEC F13).

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use serde_json::{Value, json};

use crate::function::ToolFunction;
use crate::handler::{Handler, Invocation};
use crate::output::Output;
use crate::tool::Tool;
use crate::tool_error::ToolError;

/// The application's services by name. Cheap to clone: clones are the same collection.
#[derive(Clone, Default)]
pub struct InternalHandlers {
    by_name: Arc<RwLock<HashMap<String, Arc<Tool>>>>,
}

impl InternalHandlers {
    /// None yet.
    pub fn new() -> InternalHandlers {
        InternalHandlers::default()
    }

    /// Offers a service. One of the same name is replaced; a call that runs is not disturbed.
    pub fn register<M, F>(&self, name: impl Into<String>, service: F)
    where
        F: ToolFunction<M>,
        M: 'static,
    {
        let name = name.into();
        let tool = Tool::with_schema(name.clone(), "a service", json!({}), service);
        self.by_name.write().insert(name, Arc::new(tool));
    }

    /// A tool that calls the service of this name, whenever it is registered.
    pub fn tool(
        &self,
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Value,
        handler: impl Into<String>,
    ) -> Tool {
        let internal = Internal {
            handlers: self.clone(),
            name: handler.into(),
        };
        Tool::new(name, description, schema, Arc::new(internal)).of_kind("internal")
    }

    /// Whether a service of this name is offered.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn find(&self, name: &str) -> Option<Arc<Tool>> {
        let by_name = self.by_name.read();
        by_name.get(name).cloned()
    }
}

struct Internal {
    handlers: InternalHandlers,
    name: String,
}

impl Handler for Internal {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let Some(service) = self.handlers.find(&self.name) else {
                return Err(missing("Internal", &self.name));
            };
            service.handler().run(invocation).await
        })
    }
}

/// A definition that names a handler nobody has: an answer of the tool, since waiting will not help.
pub(super) fn missing(kind: &str, name: &str) -> ToolError {
    ToolError::answer(format!("{kind} handler '{name}' not found")).never_started()
}
