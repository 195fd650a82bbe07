//! What other crates add to the configuration: the kinds of tools, and checks that need more than this crate has.

use serde_json::{Map, Value};

use super::schema::{KindSchemas, schema_of_file};
use super::settings::{AlertSettings, JwtSettings, TelemetrySettings};
pub use super::source_kind::{Fault, SERVER_KIND, SourceKind, read_settings, schema_of};
use super::transcriber::MqttSettings;

/// Checks of sections by those who use them.
#[derive(Clone, Copy)]
pub struct SectionChecks {
    /// `[server.jwt]`
    pub jwt: fn(&JwtSettings) -> Vec<Fault>,
    /// One of `[[alerts]]`
    pub alert: fn(&AlertSettings) -> Vec<Fault>,
    /// `[telemetry]`
    pub telemetry: fn(&TelemetrySettings) -> Vec<Fault>,
    /// `[transcriber.mqtt]`
    pub mqtt: fn(&MqttSettings) -> Vec<Fault>,
}

/// All that a configuration is read and checked with, besides its own sections.
pub struct Extensions {
    pub(super) kinds: Vec<&'static SourceKind>,
    /// The kind of the tables in `[mcp]`.
    pub(super) server: &'static SourceKind,
    /// Names of the tools of kind `builtin`.
    pub(super) builtin_names: Vec<String>,
    pub(super) checks: SectionChecks,
    pub(super) schemas: KindSchemas,
}

impl Extensions {
    /// These kinds of tools, this kind of MCP servers, tools of these names in the program, and these checks.
    pub fn new(
        kinds: Vec<&'static SourceKind>,
        server: &'static SourceKind,
        builtin_names: Vec<String>,
        checks: SectionChecks,
    ) -> Extensions {
        let schemas = KindSchemas::of(kinds.iter().copied().chain([server]));
        Extensions {
            kinds,
            server,
            builtin_names,
            checks,
            schemas,
        }
    }

    /// The kind of this name.
    pub(super) fn kind(&self, name: &str) -> Option<&'static SourceKind> {
        self.kinds.iter().copied().find(|kind| kind.name == name)
    }

    /// One that every program has.
    pub(super) fn known_kind(&self, name: &str) -> &'static SourceKind {
        self.kind(name).expect("a kind of the table")
    }

    /// The schema of the whole file, for editors.
    pub fn schema(&self) -> Value {
        schema_of_file(&self.kinds, self.server)
    }

    /// The one kind whose own keys a table has most of; none where that does not tell.
    pub fn kind_by_keys(&self, table: &Map<String, Value>) -> Option<&'static SourceKind> {
        let own = |kind: &SourceKind| {
            let keys = self.schemas.kind(kind.name).own_keys();
            let says_something = |key: &&String| {
                keys.contains_key(*key) && !matches!(key.as_str(), "description" | "input")
            };
            table.keys().filter(says_something).count()
        };
        let most = self.kinds.iter().map(|kind| own(kind)).max();
        let most = most.filter(|most| *most > 0)?;
        let mut likely = self.kinds.iter().copied().filter(|kind| own(kind) == most);
        let first = likely.next();
        first.filter(|_| likely.next().is_none())
    }

    /// Whether some kind of tool has a key of this name.
    pub fn knows_key(&self, key: &str) -> bool {
        let has_it = |kind: &&SourceKind| self.schemas.kind(kind.name).own_keys().contains_key(key);
        matches!(key, "kind" | "each") || self.kinds.iter().any(has_it)
    }
}
