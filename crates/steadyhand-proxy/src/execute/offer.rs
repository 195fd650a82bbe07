//! The tools that a model is offered beside the client's own, and what its client says about tools.

use std::collections::HashSet;

use serde_json::{Value, json};
use steadyhand::wildcard::wild;
use steadyhand_conversation::{Converted, Provider, convert_tools, short_name};

use crate::upstream::Execute;
use steadyhand_server::http::{App, Caller};

/// What OpenAI takes, and others with it.
const TOOLS_MAX: usize = 128;

/// The tools of ours that a model is offered.
pub(super) struct Offer {
    provider: Provider,
    converted: Converted,
    names: HashSet<String>,
}

impl Offer {
    /// For this request; none where there are none, or its client wants none to be called.
    pub(super) fn of(
        app: &App,
        caller: &Caller,
        provider: Provider,
        settings: &Execute,
        request: &Value,
    ) -> Option<Offer> {
        if provider.format().forbids_tools(request) {
            return None;
        }
        let theirs = declared(provider, request.get("tools"));
        let is_meant = |name: &str| {
            settings.tools.is_empty() || settings.tools.iter().any(|pattern| wild(pattern, name))
        };
        let tools = app.runtime.manager().list();
        let definitions: Vec<Value> = tools
            .iter()
            .filter(|tool| is_meant(tool.name()) && caller.identity.tools.include(tool.name()))
            .filter(|tool| app.runtime.unavailable(tool.name()).is_none())
            // A tool of the client's own is its own business.
            .filter(|tool| !theirs.contains(&*short_name(provider, tool.name())))
            .filter_map(|tool| serde_json::to_value(tool).ok())
            .take(TOOLS_MAX.saturating_sub(theirs.len()))
            .collect();
        let converted = convert_tools(provider, &definitions);
        let list = Value::Array(converted.tools.clone());
        let names = declared(provider, Some(&list));
        (!names.is_empty()).then_some(Offer {
            provider,
            converted,
            names,
        })
    }

    pub(super) fn is_ours(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// The tool that the provider knows under this name.
    pub(super) fn original(&self, name: &str) -> String {
        self.converted.original(name).to_owned()
    }

    /// Adds them to a request.
    pub(super) fn put(&self, request: &mut Value) {
        let Some(fields) = request.as_object_mut() else {
            return;
        };
        let list = fields.entry("tools").or_insert_with(|| json!([]));
        if !list.is_array() {
            *list = json!([]);
        }
        if let Value::Array(list) = list {
            list.extend(self.converted.tools.iter().cloned());
        }
    }

    /// A call that had to be made has been made: the next one need not.
    pub(super) fn relax(&self, request: &mut Value) {
        self.provider.format().let_answer(request);
    }

    /// No more calls: the model is to answer now.
    pub(super) fn end(&self, request: &mut Value) {
        if request.is_object() {
            self.provider.format().forbid_tools(request);
        }
    }
}

/// The names of tools in a request's own shape.
fn declared(provider: Provider, tools: Option<&Value>) -> HashSet<String> {
    let tools = tools
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    provider.format().tool_names(tools)
}
