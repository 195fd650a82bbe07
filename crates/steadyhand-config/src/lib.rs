//! The configuration: found, read, checked as a whole, and turned into settings.

#![allow(
    missing_docs,
    reason = "a part of the program, not a library for others: names say what things are"
)]

#[cfg(unix)]
mod accounts;
pub mod check;
pub mod check_models;
mod check_proxy;
pub mod connect;
pub mod demo;
pub mod document;
pub mod documents;
pub mod edit;
pub mod excerpt;
pub mod extensions;
pub mod find;
pub mod flex_chat;
pub mod foreign;
pub mod import;
pub mod keyring;
pub mod listen;
mod loading;
pub mod marks;
pub mod models;
mod ownership;
pub mod problem;
mod programs;
pub mod progress;
pub mod proxy;
pub mod reference;
mod repair;
pub mod replace;
pub mod role;
pub mod schema;
pub mod secret;
pub mod services;
pub mod settings;
mod shape;
mod source_file;
pub mod source_kind;
pub mod surroundings;
pub mod template;
pub mod text;
pub mod transcriber;
pub mod units;
pub mod words;

use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value};

pub use document::Document;
pub use extensions::Extensions;
use extensions::SourceKind;
pub use ownership::Trust;
pub use problem::{Problem, Report};
pub use reference::Resolver;
pub use settings::{PolicySettings, Root};
pub use surroundings::Surroundings;
pub use text::SecretText;

pub use ownership::{NotRead, UntrustedFile};

use import::Imported;
use loading::Loading;
pub use loading::server_table;
use units::Span;

/// Overrides of single values: `STEADYHAND__SERVER__LISTEN=0.0.0.0:80`.
const OVERRIDE_PREFIX: &str = "STEADYHAND__";

/// How long a first list of tools waits if nothing is said.
const FIRST_LIST_WAIT: Duration = Duration::from_secs(5);

/// A configuration without errors.
pub struct Configuration {
    /// The file; none when nothing is configured, or this is the demo set.
    pub file: Option<PathBuf>,
    /// Relative paths start here.
    pub folder: PathBuf,
    /// All values with their origins.
    pub document: Document,
    /// The sections.
    pub root: Root,
    /// The tools, in the order of the file, then the MCP servers.
    pub tools: Vec<ToolTable>,
    /// MCP servers of other programs' files.
    pub imported: Imported,
    /// How many rounds of tools a Flex Chat file allows.
    pub max_iterations: Option<u32>,
    /// What deserves a look.
    pub warnings: Vec<Problem>,
    /// Every file that was read: a change of one is a reason to read again.
    pub files: Vec<PathBuf>,
    /// JSON Pointers to tables of tools and servers that have errors: none in a configuration that is run.
    pub faulty_tables: Vec<String>,
    /// The file is there, and nothing is in it, not even a comment.
    pub is_blank: bool,
    /// There is no file, so this is the demo set.
    pub is_demo: bool,
}

/// The table of one tool, or of one MCP server, taken apart.
#[derive(Clone)]
pub struct ToolTable {
    /// The section it stands in: `tools` or `mcp`.
    pub section: &'static str,
    /// The tool's name, or that of the source that brings several.
    pub name: String,
    /// What runs it.
    pub kind: &'static SourceKind,
    /// The keys of its kind, references not replaced yet.
    pub own: Map<String, Value>,
    /// How it is called.
    pub policy: PolicySettings,
    /// How single tools of it are called, by name or pattern.
    pub each: Vec<(String, PolicySettings)>,
    /// A second name it is found by.
    pub alias: Option<String>,
    /// It comes from a file of another program: `${…}` in it means nothing to us.
    pub is_imported: bool,
    /// Keys of it that do, where the rest is ours.
    pub imported_keys: Vec<String>,
    /// Where it is defined: `steadyhand.toml:12`.
    pub place: Option<String>,
    /// As it may be shown, where that is not `own`: a server from another program's file.
    pub shown: Option<Map<String, Value>>,
    /// What must be hidden wherever it turns up: a server from another program's file.
    pub secrets: Vec<SecretString>,
    /// Why it cannot be used, where another program's file says something we cannot resolve.
    pub unusable: Option<String>,
}

impl ToolTable {
    /// JSON Pointer to it.
    pub fn pointer(&self) -> String {
        format!("/{}/{}", self.section, document::escaped(&self.name))
    }

    /// An MCP server.
    pub fn is_server(&self) -> bool {
        self.section == "mcp"
    }

    /// Whether it says which program or address its server is.
    pub fn says_how_to_reach_it(&self) -> bool {
        self.own.contains_key("command") || self.own.contains_key("url")
    }

    /// Keeps its name and policy, and answers nothing: its own settings cannot be used.
    fn become_a_mock(&mut self, extensions: &Extensions) {
        self.kind = extensions.known_kind("mock");
        self.own = Map::from_iter([("mock_response".to_owned(), Value::Null)]);
    }

    /// Another value for one of a server's `start` settings.
    pub fn set_start(&mut self, key: &str, value: Value) {
        let start = self.own.entry("start").or_insert_with(|| Map::new().into());
        start[key] = value;
    }
}

impl Configuration {
    /// Nothing configured.
    pub fn empty() -> Configuration {
        Configuration {
            file: None,
            folder: PathBuf::new(),
            document: Document::default(),
            root: Root::default(),
            tools: Vec::new(),
            imported: Imported::default(),
            max_iterations: None,
            warnings: Vec::new(),
            files: Vec::new(),
            faulty_tables: Vec::new(),
            is_blank: false,
            is_demo: false,
        }
    }

    /// Reads and checks; the demo set where there is no file. All problems come back in one report, and nothing has been changed.
    pub fn load(
        path: Option<&Path>,
        surroundings: &Surroundings,
        extensions: &Extensions,
    ) -> Result<Configuration, Report> {
        let (configuration, problems) =
            Configuration::load_what_is_right(path, surroundings, extensions);
        match problems.iter().any(|problem| !problem.is_warning) {
            true => Err(configuration.report(problems, surroundings)),
            false => Ok(configuration),
        }
    }

    /// What is right of a file, and everything that is wrong with it: for those who look at a file, not for those who run it.
    pub fn load_what_is_right(
        path: Option<&Path>,
        surroundings: &Surroundings,
        extensions: &Extensions,
    ) -> (Configuration, Vec<Problem>) {
        let mut loading = Loading::new(path, surroundings, extensions);
        match path {
            Some(path) => loading.read_main(path),
            None => loading.read_demo(),
        }
        override_by_variables(&mut loading.document, surroundings);
        let checked = check::check(&loading.document, &loading.folder, surroundings, extensions);
        loading.files.extend(checked.files);
        loading.problems.extend(checked.problems);
        loading.tools = checked.tools;
        loading.read_imports(&checked.root.import);
        loading.connect_imported();
        let problems = loading.problems;
        if problems.iter().any(|problem| !problem.is_warning) {
            let is_faulty = |table: &ToolTable| checked.faulty_tables.contains(&table.pointer());
            let tools = &mut loading.tools;
            tools.retain(|table| !is_faulty(table) || check::is_tool_name(&table.name));
            tools.retain(|table| !is_faulty(table) || !table.kind.brings_many);
            for table in tools.iter_mut().filter(|table| is_faulty(table)) {
                table.become_a_mock(extensions);
            }
            for table in tools {
                if checked.faulty_fallbacks.contains(&table.pointer()) {
                    table.policy.fallback = None;
                }
            }
            loading.document.value = checked.repaired;
        }
        let warnings = problems.iter().filter(|problem| problem.is_warning);
        let configuration = Configuration {
            file: path.map(Path::to_owned),
            folder: loading.folder,
            document: loading.document,
            root: checked.root,
            tools: loading.tools,
            imported: loading.imported,
            max_iterations: loading.max_iterations,
            warnings: warnings.cloned().collect(),
            files: loading.files,
            faulty_tables: checked.faulty_tables,
            is_blank: loading.is_blank,
            is_demo: path.is_none(),
        };
        (configuration, problems)
    }

    /// How long calls wait for a yes, if it says: no secret is needed to know it.
    pub fn approval_wait(&self) -> Option<Duration> {
        self.span_of_server("approval_wait")
    }

    /// How long a first list of tools waits for MCP servers that start for the first time.
    pub fn first_list_wait(&self) -> Duration {
        self.span_of_server("first_list_wait")
            .unwrap_or(FIRST_LIST_WAIT)
    }

    fn span_of_server(&self, setting: &str) -> Option<Duration> {
        let said = self.document.value.get("server")?.get(setting)?;
        said.as_str()?.parse::<Span>().ok().map(|span| span.0)
    }

    /// What is wrong, as one error.
    pub fn report(&self, problems: Vec<Problem>, surroundings: &Surroundings) -> Report {
        let file = self.file.as_deref();
        let subject = file.map_or("the environment".into(), |file| surroundings.shown(file));
        Report {
            subject: subject.display().to_string(),
            problems,
        }
    }
}

fn override_by_variables(document: &mut Document, surroundings: &Surroundings) {
    for (name, text) in surroundings.variables() {
        let Some(path) = name.strip_prefix(OVERRIDE_PREFIX) else {
            continue;
        };
        let keys: Vec<String> = path.split("__").map(str::to_lowercase).collect();
        if keys.iter().any(String::is_empty) {
            continue;
        }
        // A value as TOML would read it, or else a text.
        let value = toml::from_str::<Map<String, Value>>(&format!("value = {text}"))
            .ok()
            .and_then(|mut table| table.remove("value"))
            .unwrap_or_else(|| Value::String(text.clone()));
        document.set(&keys, value, &name);
    }
}
