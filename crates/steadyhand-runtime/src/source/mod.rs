//! Where tools come from when a file names them: one file per kind, one line in the table below.

pub mod builtin;
pub mod command;
pub mod fixed;
pub mod http;
pub mod internal;
pub mod mcp;
pub mod mock;
pub mod openapi;

use std::path::PathBuf;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use steadyhand::ToolSource;
use steadyhand::source::internal::InternalHandlers;
use steadyhand_mcp::Server;

pub use fixed::Fixed;

use crate::net::Client;
use steadyhand::wildcard::wild;
use steadyhand_config::Trust;
use steadyhand_config::extensions::{Fault, SourceKind, read_settings, schema_of};
use steadyhand_config::progress::Progress;

/// All kinds that `kind = "…"` can name.
pub const KINDS: &[Kind] = &[
    Kind::of::<mock::MockSettings>(),
    Kind::of::<builtin::BuiltinSettings>(),
    Kind::of::<internal::InternalSettings>(),
    Kind::of::<http::HttpSettings>(),
    Kind::of::<openapi::OpenapiSettings>(),
    Kind::of::<command::CommandSettings>(),
];

/// What builds the sources of a kind; none for one that no file can name.
pub fn builder(kind: &SourceKind) -> Option<Build> {
    let mut kinds = KINDS.iter().chain([&mcp::SERVER]);
    let kind = kinds.find(|known| known.settings.name == kind.name)?;
    Some(kind.build)
}

/// The settings of one kind of source: the keys of its table besides those of the policy.
pub trait Settings: DeserializeOwned + JsonSchema {
    /// What `kind = "…"` says.
    const KIND: &'static str;

    /// Whether one table brings several tools, whose names are not known before it is loaded.
    const BRINGS_MANY: bool = false;

    /// The keys whose texts have places for arguments.
    const TEMPLATES: &'static [&'static str] = &[];

    /// Faults that can be seen without reaching for anything outside.
    fn check(&self) -> Vec<Fault> {
        Vec::new()
    }

    /// The source. Nothing is opened or contacted yet: that is for [`ToolSource::tools`].
    fn build(self, name: &str, context: &Context) -> Result<Arc<dyn Source>, Fault>;
}

/// A source that a file names.
pub trait Source: ToolSource {
    /// Whether a pattern of `each` means this tool; `*` stands for anything.
    fn means(&self, pattern: &str, tool: &str) -> bool {
        wild(pattern, tool)
    }

    /// The MCP server behind it, whose tools come and go.
    fn server(&self) -> Option<&Server> {
        None
    }

    /// Takes over other settings without building anew what is behind it. False if that cannot be done.
    fn adapt(&self, _settings: &Value, _context: &Context) -> bool {
        false
    }

    /// Why its tools are listed but cannot be called now.
    fn unavailable(&self) -> Option<String> {
        None
    }

    /// What it found and cannot offer, each with the reason. Empty before its tools were asked for.
    fn left_out(&self) -> Vec<LeftOut> {
        Vec::new()
    }
}

/// Something a source found and cannot offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// As the source calls it: `POST /pets`.
    pub name: String,
    /// Why, and what would help.
    pub reason: String,
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
    /// Which files of others are read.
    pub trust: Trust,
    /// Told while something takes long.
    pub progress: Progress,
    /// The user's home folder: `~` in paths.
    pub home: PathBuf,
    /// Of the table at hand: where it stands.
    pub place: Option<String>,
    /// Of the table at hand: as it is written, references not replaced. May be shown.
    pub written: Map<String, Value>,
    /// Of the table at hand: what its references stood for. Never shown.
    pub secrets: Vec<SecretString>,
    /// MCP clients may call through us: what servers ask goes on to them.
    pub relays: bool,
}

/// Builds a source from its name and its settings.
pub type Build = fn(&str, Value, &Context) -> Result<Arc<dyn Source>, Fault>;

/// One row of the table of kinds.
pub struct Kind {
    /// What the configuration knows of it.
    pub settings: SourceKind,
    /// Reads the settings and builds the source.
    pub build: Build,
}

impl Kind {
    /// The row for one type of settings.
    pub const fn of<S: Settings>() -> Kind {
        Kind {
            settings: SourceKind {
                name: S::KIND,
                brings_many: S::BRINGS_MANY,
                templates: S::TEMPLATES,
                schema: schema_of::<S>,
                check: |settings| match read_settings::<S>(settings.clone()) {
                    Ok(settings) => settings.check(),
                    Err(fault) => vec![fault],
                },
            },
            build: |name, settings, context| read_settings::<S>(settings)?.build(name, context),
        }
    }
}

/// A value that is there, be it null: `mock_response: null` is an answer.
pub fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    serde::Deserialize::deserialize(value).map(Some)
}

/// The JSON Schema of an `input` key. A path has been replaced by what the file holds before it is read.
pub fn input_schema(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({
        "type": ["object", "string"],
        "description": "The JSON Schema of its arguments, or the path of a JSON file that holds it",
    })
}
