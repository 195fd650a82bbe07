//! `kind = "builtin"`: tools that ship inside the program (SPEC F10). A new one is a file here and a line below.

mod math;
pub mod search;
pub mod volume;

use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use steadyhand::source::builtin as engine;
use steadyhand::{Handler, Invocation, Output, Tool, ToolError};

use super::{Context, Fault, Fixed, Settings, Source};
use steadyhand_config::words::nearest;

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
    /// For use = "search": the service that is asked
    search: Option<search::SearchSettings>,
    /// For use = "volume": the program that is asked
    volume: Option<volume::VolumeSettings>,
}

/// The names of all builtins, in order.
pub fn names() -> Vec<String> {
    let own = ["math_eval", "search", "volume"].map(str::to_owned);
    let engine = engine::all().into_iter().map(|tool| tool.name().to_owned());
    let mut names: Vec<String> = engine.chain(own).collect();
    names.sort();
    names
}

impl BuiltinSettings {
    fn find(&self, context: &Context) -> Result<Option<Tool>, Fault> {
        Ok(match self.uses.as_str() {
            "math_eval" => Some(math::tool()),
            "search" => Some(match &self.search {
                Some(settings) => {
                    search::tool(settings, context).map_err(|fault| fault.below("/search"))?
                }
                None => search::unconfigured(),
            }),
            "volume" => {
                let settings = self.volume.clone().unwrap_or_default();
                Some(volume::tool(&settings, context).map_err(|fault| fault.below("/volume"))?)
            }
            other => engine::find(other),
        })
    }
}

impl Settings for BuiltinSettings {
    const KIND: &'static str = "builtin";

    fn check(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let names = names();
        if !names.contains(&self.uses) {
            let help = match nearest(&self.uses, names.iter().map(String::as_str)) {
                Some(near) => format!("Did you mean {near}?"),
                None => format!("There are: {}", names.join(", ")),
            };
            let message = format!("there is no builtin \"{}\"", self.uses);
            faults.push(Fault {
                at: "/use".to_owned(),
                message,
                help: Some(help),
            });
        }
        let settings = [
            ("search", self.search.is_some()),
            ("volume", self.volume.is_some()),
        ];
        for (name, is_there) in settings {
            if is_there && self.uses != name {
                faults.push(Fault {
                    at: format!("/{name}"),
                    message: format!("these settings are for use = \"{name}\""),
                    help: Some(format!("Remove them, or write use = \"{name}\"")),
                });
            }
        }
        let search = self.search.iter().flat_map(search::check);
        faults.extend(search.map(|fault| fault.below("/search")));
        let volume = self
            .volume
            .iter()
            .filter_map(|settings| volume::check(settings).err());
        faults.extend(volume.map(|fault| fault.below("/volume")));
        faults
    }

    fn build(self, name: &str, context: &Context) -> Result<Arc<dyn Source>, Fault> {
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
                let refusal = format!("Builtin handler '{}' not found", self.uses);
                Tool::new(name, description, schema, Arc::new(Refuses(refusal)))
            }
        };
        Ok(Arc::new(Fixed::new(name, vec![tool.of_kind("builtin")])))
    }
}

/// Answers every call with the same "no": what is missing, and what to do about it.
struct Refuses(String);

impl Handler for Refuses {
    fn run<'a>(&'a self, _: &'a Invocation<'a>) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(ready(Err(ToolError::answer(&self.0).never_started())))
    }
}
