//! Tools that answer from a cassette: their definitions are the recorded ones, nothing is started or contacted.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use schemars::json_schema;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use steadyhand::{Handler, Invocation, Output, Tool, ToolError};
use steadyhand_mcp::Passage;
use steadyhand_mcp::parameters::{CamelCase, ParameterNames, shipped_mapping};

use super::line::{Call, Definition};
use super::nearest::{nearest, shown};
use super::{Tape, canonical};
use crate::source::{Fixed, Source};
use steadyhand_config::ToolTable;
use steadyhand_config::extensions::SourceKind;
use steadyhand_config::settings::{Approval, PolicySettings};

/// What runs these tools, as lists and histories say it.
const KIND: &str = "replay";

/// No file can name it: `--replay` does.
static REPLAY: SourceKind = SourceKind {
    name: KIND,
    brings_many: true,
    templates: &[],
    schema: |_| json_schema!(false),
    check: |_| Vec::new(),
};

/// The one table of a configuration whose tools are replayed.
pub fn table(tape: &Tape) -> ToolTable {
    let file = tape.path().display().to_string();
    let mut own = Map::new();
    own.insert("file".to_owned(), json!(file));
    ToolTable {
        section: "tools",
        name: KIND.to_owned(),
        kind: &REPLAY,
        own,
        policy: PolicySettings::default(),
        each: tape.definitions().iter().map(policy_of).collect(),
        alias: None,
        is_imported: true,
        place: Some(file),
        shown: None,
        secrets: Vec::new(),
        unusable: None,
        imported_keys: Vec::new(),
    }
}

/// Arguments are checked as they were then. Nobody is asked for a yes: nothing is run.
fn policy_of(tool: &Definition) -> (String, PolicySettings) {
    let policy = PolicySettings {
        idempotent: Some(tool.safe_to_repeat),
        coerce: Some(tool.coerce),
        strict: Some(tool.strict),
        approval: Some(Approval::Never),
        ..PolicySettings::default()
    };
    (tool.name.clone(), policy)
}

/// The tools of a cassette.
pub fn source(tape: &Arc<Tape>) -> Arc<dyn Source> {
    let tools = tape.definitions().iter().map(|tool| replayed(tool, tape));
    Arc::new(Fixed::new(KIND, tools.collect()))
}

fn replayed(definition: &Definition, tape: &Arc<Tape>) -> Tool {
    let handler = Replay {
        tape: Arc::clone(tape),
        is_mcp: definition.kind == "mcp",
    };
    let (name, schema) = (&definition.name, definition.schema.clone());
    let tool = Tool::new(name, &definition.description, schema, Arc::new(handler)).of_kind(KIND);
    let tool = match &definition.lc_name {
        Some(alias) => tool.alias(alias),
        None => tool,
    };
    if definition.kind != "mcp" {
        return tool;
    }
    // Names of parameters are mended before the check, as they were when it was recorded (SPEC D5).
    let mapping: BTreeMap<String, String> = shipped_mapping(name).unwrap_or_default();
    let names = ParameterNames::new(&definition.schema, &mapping, CamelCase::default());
    tool.prepared_by(move |args| drop(names.before_check(args)))
}

struct Replay {
    tape: Arc<Tape>,
    is_mcp: bool,
}

impl Handler for Replay {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(ready(self.tell(invocation)))
    }
}

impl Replay {
    fn tell(&self, invocation: &Invocation<'_>) -> Result<Output, ToolError> {
        let Some(call) = self.tape.next(invocation.tool_name, invocation.args) else {
            let message = self.unknown(invocation.tool_name, invocation.args);
            tracing::error!("{message}");
            return Err(ToolError::answer(message).never_started());
        };
        match (&call.output, &call.failure) {
            (Some(said), _) => {
                let output = said.output();
                if let Some(passage) = invocation.luggage::<Passage>().filter(|_| self.is_mcp)
                    && let Some(result) = result_of(&output)
                {
                    passage.put_result(result);
                }
                Ok(output)
            }
            (None, Some(failure)) => {
                let fallback = call.fallback.as_ref().map(|said| said.output());
                Err(ToolError::told_again(failure.clone(), fallback))
            }
            (None, None) => Err(neither(call, &self.tape)),
        }
    }

    /// Which call it is, what is recorded instead, and what to do.
    fn unknown(&self, tool: &str, arguments: &Value) -> String {
        let wanted = canonical::of(arguments);
        let (file, recorded) = (self.tape.name(), self.tape.arguments_of(tool));
        let near = match recorded.len() {
            0 => "no call of it is".to_owned(),
            1 => format!("one other call of it is: {}", shown(recorded[0])),
            count => {
                let near = nearest(&wanted, &recorded).join(" and ");
                format!("{count} other calls of it are, nearest {near}")
            }
        };
        format!(
            "{tool} with {} is not recorded in {file}; {near}. Nothing was run. Record it: make the same call with \
             --record {file} in the place of --replay {file}",
            shown(&wanted)
        )
    }
}

fn neither(call: &Call, tape: &Tape) -> ToolError {
    let (tool, file) = (&call.tool, tape.name());
    let message = format!(
        "a call of {tool} in {file} has neither an output nor a failure; record it again, or take the line out"
    );
    ToolError::answer(message).never_started()
}

/// What an MCP client gets of a server's answer that is more than a text: parts, `_meta`, members nobody knows.
fn result_of(output: &Output) -> Option<Box<RawValue>> {
    let result = match (output.artifact(), output.value()) {
        (Some(whole @ Value::Object(fields)), _) if fields.contains_key("content") => whole.clone(),
        (None, Value::Array(parts)) if output.own_text().is_some() => json!({"content": parts}),
        _ => return None,
    };
    to_raw_value(&result).ok()
}
