//! `kind = "builtin"`: tools that ship inside the program (SPEC F10). A new one is a file here and a line below.

pub mod search;
pub mod volume;

use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use steadyhand::source::builtin as engine;
use steadyhand::{Handler, Invocation, Output, Tool, ToolError, ToolSource};

use super::{Context, Fault, Fixed, Settings};
use crate::config::check::nearest;

/// A tool that ships inside the program.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BuiltinSettings {
    /// Which one: see `steadyhand tools list` without a configuration
    #[serde(rename = "use")]
    uses: String,
    /// What models are told about it, if not its own words
    description: Option<String>,
    /// The JSON Schema of its arguments, if not its own
    #[serde(default)]
    #[schemars(schema_with = "super::input_schema")]
    input: Option<Value>,
}

/// The names of all builtins, in order.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = engine::all()
        .iter()
        .map(|tool| tool.name().to_owned())
        .collect();
    names.sort();
    names
}

impl BuiltinSettings {
    fn find(&self, _context: &Context) -> Result<Option<Tool>, Fault> {
        Ok(engine::find(&self.uses))
    }
}

impl Settings for BuiltinSettings {
    const KIND: &'static str = "builtin";

    fn check(&self) -> Vec<Fault> {
        let names = names();
        if names.contains(&self.uses) {
            return Vec::new();
        }
        let help = match nearest(&self.uses, names.iter().map(String::as_str)) {
            Some(near) => format!("Did you mean {near}?"),
            None => format!("There are: {}", names.join(", ")),
        };
        vec![Fault {
            at: "/use".to_owned(),
            message: format!("there is no builtin \"{}\"", self.uses),
            help: Some(help),
        }]
    }

    fn build(self, name: &str, context: &Context) -> Result<Arc<dyn ToolSource>, Fault> {
        let tool = match self.find(context)? {
            Some(found) => {
                let description = self
                    .description
                    .unwrap_or_else(|| found.description().to_owned());
                found.redefined(name, description, self.input)
            }
            // As an imported definition may have it: an error of the call, not of the file (F10).
            None => {
                let description = self
                    .description
                    .unwrap_or_else(|| format!("The builtin {}", self.uses));
                let schema = self.input.unwrap_or_else(|| json!({"type": "object"}));
                Tool::new(name, description, schema, Arc::new(Missing(self.uses)))
            }
        };
        Ok(Arc::new(Fixed::new(name, vec![tool.of_kind("builtin")])))
    }
}

struct Missing(String);

impl Handler for Missing {
    fn run<'a>(&'a self, _: &'a Invocation<'a>) -> BoxFuture<'a, Result<Output, ToolError>> {
        let error = ToolError::answer(format!("Builtin handler '{}' not found", self.0));
        Box::pin(ready(Err(error.never_started())))
    }
}
