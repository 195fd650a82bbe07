//! A tool: a named ability, its definition, and who runs it.

mod settings;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;

use crate::gate::Gate;
use crate::handler::Handler;
use crate::policy::{Adjustment, Policy};
use crate::schema::Preparation;
use crate::state::Need;

/// A named ability. Serialises to its definition in the LangChain shape (SPEC D2).
#[derive(Clone)]
pub struct Tool {
    name: String,
    alias: Option<String>,
    description: String,
    schema: Value,
    kind: &'static str,
    source: Option<Arc<str>>,
    handler: Arc<dyn Handler>,
    needs: Vec<Need>,
    adjustments: Vec<Adjustment>,
    preparation: Option<Preparation>,
    used_arguments: Option<Arc<[String]>>,
    gate: Option<Arc<dyn Gate>>,
}

impl Tool {
    /// A tool with a handler of its own; for functions see [`Tool::function`].
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Value,
        handler: Arc<dyn Handler>,
    ) -> Tool {
        Tool {
            name: name.into(),
            alias: None,
            description: description.into(),
            schema,
            kind: "function",
            source: None,
            handler,
            needs: Vec::new(),
            adjustments: Vec::new(),
            preparation: None,
            used_arguments: None,
            gate: None,
        }
    }

    /// A second name it is found by (`lc_name`).
    #[must_use]
    pub fn alias(mut self, alias: impl Into<String>) -> Tool {
        self.alias = Some(alias.into());
        self
    }

    /// What runs it: `function`, `mock`, `builtin`, `internal`, `http`, `mcp` …
    #[must_use]
    pub fn of_kind(mut self, kind: &'static str) -> Tool {
        self.kind = kind;
        self
    }

    /// Where it comes from.
    #[must_use]
    pub fn from_source(mut self, source: impl Into<Arc<str>>) -> Tool {
        self.source = Some(source.into());
        self
    }

    /// Changes arguments before they are checked: names that its schema spells differently, say (SPEC D5).
    #[must_use]
    pub fn prepared_by(mut self, prepare: impl Fn(&mut Value) + Send + Sync + 'static) -> Tool {
        self.preparation = Some(Arc::new(prepare));
        self
    }

    /// Only these arguments reach what it stands for: a place in a URL or in a command. Others are named in the outcome
    /// (SPEC D20), even where the schema allows them.
    #[must_use]
    pub fn uses_only(mut self, arguments: impl IntoIterator<Item = String>) -> Tool {
        self.used_arguments = Some(arguments.into_iter().collect());
        self
    }

    pub(crate) fn used_arguments(&self) -> Option<&[String]> {
        self.used_arguments.as_deref()
    }

    /// Its calls wait at this gate once their arguments are checked, and before anything is counted.
    #[must_use]
    pub fn gated_by(mut self, gate: Arc<dyn Gate>) -> Tool {
        self.gate = Some(gate);
        self
    }

    /// Whether its calls wait at a gate.
    pub fn is_gated(&self) -> bool {
        self.gate.is_some()
    }

    pub(crate) fn gate(&self) -> Option<&Arc<dyn Gate>> {
        self.gate.as_ref()
    }

    pub(crate) fn preparation(&self) -> Option<&Preparation> {
        self.preparation.as_ref()
    }

    /// The name models call it by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The second name.
    pub fn lc_name(&self) -> Option<&str> {
        self.alias.as_deref()
    }

    /// What models are told about it.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The JSON Schema of its arguments.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// What runs it.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Where it comes from, if from a source.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    pub(crate) fn shared_source(&self) -> Option<Arc<str>> {
        self.source.clone()
    }

    /// What runs it.
    pub fn handler(&self) -> &Arc<dyn Handler> {
        &self.handler
    }

    /// The same tool, run by something else: a handler that stands before its own, say.
    #[must_use]
    pub fn run_by(mut self, handler: Arc<dyn Handler>) -> Tool {
        self.handler = handler;
        self
    }

    pub(crate) fn needs(&self) -> &[Need] {
        &self.needs
    }

    pub(crate) fn needing(mut self, needs: Vec<Need>) -> Tool {
        self.needs = needs;
        self
    }

    /// The same tool under another definition; without a schema of its own it keeps the one it has.
    #[must_use]
    pub fn redefined(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Option<Value>,
    ) -> Tool {
        self.name = name.into();
        self.description = description.into();
        self.schema = schema.unwrap_or(self.schema);
        self
    }

    /// Changes what this tool's policy would be otherwise; later changes come on top of earlier ones.
    #[must_use]
    pub fn adjusted(mut self, change: impl Fn(&mut Policy) + Send + Sync + 'static) -> Tool {
        self.adjustments.push(Arc::new(change));
        self
    }

    /// A policy in full, in place of the manager's default.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Tool {
        self.adjusted(move |default| *default = policy.clone())
    }

    /// Whether it is the other one, and not only like it: same definition, same handler, same policy.
    pub fn is_same_as(&self, other: &Tool) -> bool {
        let same_changes = self.adjustments.len() == other.adjustments.len()
            && self
                .adjustments
                .iter()
                .zip(&other.adjustments)
                .all(|(mine, theirs)| std::ptr::addr_eq(Arc::as_ptr(mine), Arc::as_ptr(theirs)));
        let same_preparation = match (&self.preparation, &other.preparation) {
            (None, None) => true,
            (Some(mine), Some(theirs)) => std::ptr::addr_eq(Arc::as_ptr(mine), Arc::as_ptr(theirs)),
            _ => false,
        };
        let same_gate = match (&self.gate, &other.gate) {
            (None, None) => true,
            (Some(mine), Some(theirs)) => std::ptr::addr_eq(Arc::as_ptr(mine), Arc::as_ptr(theirs)),
            _ => false,
        };
        same_changes
            && same_preparation
            && same_gate
            && std::ptr::addr_eq(Arc::as_ptr(&self.handler), Arc::as_ptr(&other.handler))
            && self.used_arguments == other.used_arguments
            && self.name == other.name
            && self.alias == other.alias
            && self.description == other.description
            && self.source == other.source
            && self.schema == other.schema
    }

    /// The policy it has where `defaults` are the default.
    pub(crate) fn policy_from(&self, defaults: &Policy) -> Policy {
        let mut policy = defaults.clone();
        for adjust in &self.adjustments {
            adjust(&mut policy);
        }
        policy
    }
}

impl Serialize for Tool {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        if let Some(alias) = &self.alias {
            map.serialize_entry("lc_name", alias)?;
        }
        map.serialize_entry("description", &self.description)?;
        map.serialize_entry("schema", &self.schema)?;
        map.end()
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .field("alias", &self.alias)
            .field("kind", &self.kind)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
