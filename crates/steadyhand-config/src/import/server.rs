//! One server of an imported file: what it is once all spellings are made one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use steadyhand::redact;

use super::client::Client;
use super::text::ImportedText;
use crate::reference::Unresolved;

/// An MCP server another program knows.
#[derive(Clone)]
pub struct ImportedServer {
    /// Its name in the file.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// Whether the file has it switched on.
    pub enabled: bool,
    /// How long it may take.
    pub timeouts: Timeouts,
    /// Which of its tools are wanted.
    pub tools: ToolLists,
    /// Tools the user has allowed to run without asking; `*` is all of them.
    pub approved: Vec<String>,
    /// Where it stands.
    pub origin: Origin,
    /// Fields that could not be resolved; the server cannot be used while there is one.
    pub unresolved: Vec<(String, Unresolved)>,
    /// Keys that mean nothing to us, as they stand.
    pub extra: Map<String, Value>,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum Transport {
    /// A program that speaks on its standard input and output
    Stdio {
        /// The program.
        command: ImportedText,
        /// Its arguments.
        args: Vec<ImportedText>,
        /// Variables it gets; none takes one away.
        env: Vec<(String, Option<ImportedText>)>,
        /// Where it runs.
        cwd: Option<ImportedText>,
    },
    /// Streamable HTTP
    Http {
        /// The endpoint.
        url: ImportedText,
        /// Headers of every request.
        headers: Vec<(String, ImportedText)>,
        /// Whether to try the older HTTP+SSE when this fails: the file does not say which it is.
        or_sse: bool,
    },
    /// The older HTTP+SSE
    Sse {
        /// The endpoint.
        url: ImportedText,
        /// Headers of every request.
        headers: Vec<(String, ImportedText)>,
    },
}

/// How long a server may take, where the file says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// To start and connect.
    pub start: Option<Duration>,
    /// To answer one call.
    pub call: Option<Duration>,
}

/// Which tools of a server are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolLists {
    /// Only these, if given.
    pub allow: Option<Vec<String>>,
    /// Not these.
    pub deny: Vec<String>,
}

/// Where something was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// Whose file it is.
    pub client: Client,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

impl ImportedServer {
    /// Whether it is what `steadyhand connect` writes into the files of other programs.
    pub(super) fn is_ourselves(&self) -> bool {
        match &self.transport {
            Transport::Stdio { command, args, .. } => {
                let program = Path::new(command.expose()).file_stem();
                program.is_some_and(|name| name == "steadyhand")
                    && args.iter().any(|arg| arg.expose() == "mcp-stdio")
            }
            Transport::Http { url, .. } | Transport::Sse { url, .. } => {
                self.name == "steadyhand" && is_local_endpoint(url.expose())
            }
        }
    }
}

/// Whether it is `/mcp` of this machine.
fn is_local_endpoint(url: &str) -> bool {
    let Ok(url) = url::Url::parse(url) else {
        return false;
    };
    let is_local = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    is_local && url.path().trim_end_matches('/') == "/mcp"
}

impl fmt::Debug for ImportedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportedServer")
            .field("name", &self.name)
            .field("transport", &self.transport)
            .field("enabled", &self.enabled)
            .field("timeouts", &self.timeouts)
            .field("tools", &self.tools)
            .field("approved", &self.approved)
            .field("origin", &self.origin)
            .field("unresolved", &self.unresolved)
            .field("extra", &redact::value(&Value::Object(self.extra.clone())))
            .finish()
    }
}
