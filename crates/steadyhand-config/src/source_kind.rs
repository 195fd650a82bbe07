//! The kinds of tools, as far as a file can be checked by them, and what can be wrong with their settings.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value;
use steadyhand::plain_words;
use steadyhand::typed_json::Typed;

/// The name of the kind of tables in `[mcp]`.
pub const SERVER_KIND: &str = "mcp";

/// One value that `kind = "…"` takes, as far as a file can be checked by it.
pub struct SourceKind {
    /// What `kind = "…"` says.
    pub name: &'static str,
    /// Whether one table brings several tools, whose names are not known before it is loaded.
    pub brings_many: bool,
    /// The keys whose texts have places for arguments.
    pub templates: &'static [&'static str],
    /// The JSON Schema of its settings.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
    /// Reads the settings and looks for faults.
    pub check: fn(&Value) -> Vec<Fault>,
}

/// Something in a table of settings that cannot work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// JSON Pointer to the place in the table: `/headers/Authorization`.
    pub at: String,
    /// What is wrong with it.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Fault {
    /// The same fault, of a table within the table.
    #[must_use]
    pub fn below(mut self, place: &str) -> Fault {
        self.at.insert_str(0, place);
        self
    }
}

/// Reads the settings of a kind of tool.
///
/// # Errors
///
/// Says which setting does not fit, and why.
pub fn read_settings<S: DeserializeOwned>(settings: Value) -> Result<S, Fault> {
    serde_path_to_error::deserialize(Typed(settings)).map_err(|error| {
        let fault = plain_words::misfit(error.inner());
        let path = error.path().to_string();
        Fault {
            at: String::new(),
            message: match path.as_str() {
                "." => fault,
                _ => format!("{path}: {fault}"),
            },
            help: None,
        }
    })
}

/// The schema of settings of this type.
pub fn schema_of<S: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.root_schema_for::<S>()
}
