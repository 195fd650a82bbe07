//! The configuration: found, read, checked as a whole, and turned into settings.

pub mod check;
pub mod document;
pub mod find;
pub mod keyring;
pub mod problem;
pub mod reference;
pub mod schema;
pub mod secret;
pub mod settings;
pub mod surroundings;
pub mod text;
pub mod units;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

pub use document::Document;
pub use problem::{Problem, Report};
pub use reference::Resolver;
pub use settings::{PolicySettings, Root};
pub use surroundings::Surroundings;
pub use text::SecretText;

use crate::source::Kind;
use document::SourceFile;

/// Overrides of single values: `STEADYHAND__SERVER__LISTEN=0.0.0.0:80`.
const OVERRIDE_PREFIX: &str = "STEADYHAND__";

/// Sections of later parts of the program.
const NOT_ACTIVE_YET: [&str; 6] = ["server", "models", "mcp", "proxy", "alerts", "telemetry"];

/// A configuration without errors.
pub struct Configuration {
    /// The file; none when nothing is configured.
    pub file: Option<PathBuf>,
    /// Relative paths start here.
    pub folder: PathBuf,
    /// All values with their origins.
    pub document: Document,
    /// The sections.
    pub root: Root,
    /// The tools, in the order of the file.
    pub tools: Vec<ToolTable>,
    /// What deserves a look.
    pub warnings: Vec<Problem>,
    /// Every file that was read: a change of one is a reason to read again.
    pub files: Vec<PathBuf>,
}

/// The table of one tool, taken apart.
#[derive(Clone)]
pub struct ToolTable {
    /// The tool's name, or that of the source that brings several.
    pub name: String,
    /// What runs it.
    pub kind: &'static Kind,
    /// The keys of its kind, references not replaced yet.
    pub own: Map<String, Value>,
    /// How it is called.
    pub policy: PolicySettings,
    /// How single tools of it are called, by name or pattern.
    pub each: Vec<(String, PolicySettings)>,
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
            warnings: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Sections that are understood, but belong to a part of the program that is not there yet.
    pub fn inactive(&self) -> Vec<String> {
        let present = |section: &&&str| self.document.value.get(**section).is_some();
        NOT_ACTIVE_YET
            .iter()
            .filter(present)
            .map(|section| format!("[{section}]"))
            .collect()
    }

    /// Reads and checks. All problems come back in one report, and nothing has been changed.
    pub fn load(path: Option<&Path>, surroundings: &Surroundings) -> Result<Configuration, Report> {
        let mut problems = Vec::new();
        let mut files = Vec::new();
        let mut document = Document::default();
        if let Some(path) = path {
            read(path, surroundings, &mut document, &mut files, &mut problems);
            let local = path.with_file_name(find::LOCAL_FILE_NAME);
            if local.is_file() {
                read(
                    &local,
                    surroundings,
                    &mut document,
                    &mut files,
                    &mut problems,
                );
            }
        }
        override_by_variables(&mut document, surroundings);
        let folder = path
            .and_then(Path::parent)
            .unwrap_or(&surroundings.current)
            .to_owned();
        let checked = check::check(&document, &folder);
        files.extend(checked.files);
        problems.extend(checked.problems);
        if problems.iter().any(|problem| !problem.is_warning) {
            let subject = path.map_or("the environment".into(), |path| surroundings.shown(path));
            return Err(Report {
                subject: subject.display().to_string(),
                problems,
            });
        }
        Ok(Configuration {
            file: path.map(Path::to_owned),
            folder,
            document,
            root: checked.root,
            tools: checked.tools,
            warnings: problems,
            files,
        })
    }
}

fn read(
    path: &Path,
    surroundings: &Surroundings,
    document: &mut Document,
    files: &mut Vec<PathBuf>,
    problems: &mut Vec<Problem>,
) {
    files.push(path.to_owned());
    match SourceFile::read(path, surroundings.shown(path)) {
        Err(problem) => problems.push(problem),
        Ok(file) => {
            let (over, found) = Document::from_toml(&file);
            document.overlay(over);
            problems.extend(found);
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
