//! Where tools come from when a file names them: one file per kind, one line in the table below.

pub mod builtin;
pub mod http;
pub mod openapi;

use std::path::PathBuf;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value;
use steadyhand::source::ToolSource;
use steadyhand::source::internal::InternalHandlers;

use crate::net::Client;
use crate::progress::Progress;

/// All kinds that `kind = "…"` can name.
pub const KINDS: &[Kind] = &[
    Kind::of::<http::HttpSettings>(),
    Kind::of::<openapi::OpenapiSettings>(),
];

/// The settings of one kind of source: the keys of its table besides those of the policy.
pub trait Settings: DeserializeOwned + JsonSchema {
    /// What `kind = "…"` says.
    const KIND: &'static str;

    /// Faults that can be seen without reaching for anything outside.
    fn check(&self) -> Vec<Fault> {
        Vec::new()
    }

    /// The source. Nothing is opened or contacted yet: that is for [`ToolSource::tools`].
    fn build(self, name: &str, context: &Context) -> Result<Arc<dyn ToolSource>, Fault>;
}

/// Something in the settings of a source that cannot work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// JSON Pointer to the place in the source's table: `/headers/Authorization`.
    pub at: String,
    /// What is wrong with it.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// What all sources share.
#[derive(Clone)]
pub struct Context {
    /// Relative paths start here: the folder of the configuration file.
    pub folder: PathBuf,
    /// Where sources may keep what they can make again (an index, a downloaded document).
    pub state: PathBuf,
    /// Services of the host application.
    pub internal: InternalHandlers,
    /// The one client for outgoing HTTP.
    pub http: Client,
    /// Told while something takes long.
    pub progress: Progress,
}

/// One row of the table of kinds.
pub struct Kind {
    /// What `kind = "…"` says.
    pub name: &'static str,
    /// The JSON Schema of its settings.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
    /// Reads the settings and looks for faults.
    pub check: fn(&Value) -> Vec<Fault>,
    /// Reads the settings and builds the source.
    pub build: fn(&str, Value, &Context) -> Result<Arc<dyn ToolSource>, Fault>,
}

impl Kind {
    /// The row for one type of settings.
    pub const fn of<S: Settings>() -> Kind {
        Kind {
            name: S::KIND,
            schema: |generator| generator.root_schema_for::<S>(),
            check: |settings| match read::<S>(settings.clone()) {
                Ok(settings) => settings.check(),
                Err(fault) => vec![fault],
            },
            build: |name, settings, context| read::<S>(settings)?.build(name, context),
        }
    }
}

fn read<S: Settings>(settings: Value) -> Result<S, Fault> {
    serde_path_to_error::deserialize(settings).map_err(|error| Fault {
        at: String::new(),
        message: error.to_string(),
        help: None,
    })
}
