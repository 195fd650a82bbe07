//! The section `[documents]` of the configuration: which files `rag_query` searches.

use std::collections::BTreeMap;
use std::path::PathBuf;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::document::escaped;
use super::source_kind::Fault;
use super::units::Size;

/// What the collection of `[documents]`' own folders is called.
pub const MAIN: &str = "documents";

/// The name of the handler that searches.
pub const RAG_QUERY: &str = "rag_query";
/// What models are told about it where the configuration says nothing.
pub const DESCRIPTION: &str =
    "Searches documents and returns the passages that fit best, each with its source and score";

/// How many passages an answer has at most.
pub const LIMIT_MAX: u64 = 20;
/// How many it has if nobody says.
pub const LIMIT_DEFAULT: u64 = 5;

/// The arguments of `rag_query`, for tools that state none.
pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "What to search for: words or a question"
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": LIMIT_MAX,
                "default": LIMIT_DEFAULT,
                "description": "How many passages to return"
            },
            "collection": {
                "type": "string",
                "description": "Search only this collection of documents; all of them if left out"
            }
        },
        "required": ["query"]
    })
}

/// Folders of documents that `rag_query` searches. Its keys also hold for the collections that do
/// not say otherwise.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentsSettings {
    /// Folders of Markdown, text and HTML files; relative ones start at the configuration file.
    #[serde(default)]
    pub folders: Vec<PathBuf>,
    /// Which files are read, as globs (`*.md`, `guides/**`); without it Markdown, text and HTML.
    #[serde(default = "include_by_default")]
    pub include: Vec<String>,
    /// Which files and folders are left out, as globs (`drafts/`, `*.bak.md`).
    #[serde(default = "exclude_by_default")]
    pub exclude: Vec<String>,
    /// Larger files are left out.
    #[serde(default = "max_file_by_default")]
    pub max_file: Size,
    /// How many files are indexed at most; the rest is left out, and each answer says so.
    #[serde(default = "max_files_by_default")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_files: u32,
    /// Whether the system is asked to tell of changes. Without it they are found before a query.
    #[serde(default = "watch_by_default")]
    pub watch: bool,
    /// More collections by name, each with folders and an index of its own.
    #[serde(default)]
    pub collections: BTreeMap<String, CollectionSettings>,
}

/// One more collection of documents. What it leaves out is as in `[documents]`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectionSettings {
    /// Folders of Markdown, text and HTML files; relative ones start at the configuration file.
    pub folders: Vec<PathBuf>,
    /// Which files are read, as globs (`*.md`, `guides/**`).
    pub include: Option<Vec<String>>,
    /// Which files and folders are left out, as globs (`drafts/`, `*.bak.md`).
    pub exclude: Option<Vec<String>>,
    /// Larger files are left out.
    pub max_file: Option<Size>,
    /// How many files are indexed at most.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_files: Option<u32>,
    /// Whether the system is asked to tell of changes.
    pub watch: Option<bool>,
}

fn include_by_default() -> Vec<String> {
    let endings = [
        "md", "markdown", "mdx", "txt", "text", "rst", "adoc", "org", "html", "htm", "xhtml",
    ];
    endings.map(|ending| format!("*.{ending}")).to_vec()
}

fn exclude_by_default() -> Vec<String> {
    vec!["node_modules/".to_owned()]
}

fn max_file_by_default() -> Size {
    Size(4 * 1024 * 1024)
}

fn max_files_by_default() -> u32 {
    20_000
}

fn watch_by_default() -> bool {
    true
}

impl DocumentsSettings {
    /// The settings for these folders, all else by default.
    pub fn of(folders: impl IntoIterator<Item = impl Into<PathBuf>>) -> DocumentsSettings {
        DocumentsSettings {
            folders: folders.into_iter().map(Into::into).collect(),
            include: include_by_default(),
            exclude: exclude_by_default(),
            max_file: max_file_by_default(),
            max_files: max_files_by_default(),
            watch: watch_by_default(),
            collections: BTreeMap::new(),
        }
    }

    /// Faults that can be seen without looking at the folders.
    pub fn check(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut fault = |at: String, message: String, help: &str| {
            faults.push(Fault {
                at,
                message,
                help: Some(help.to_owned()),
            });
        };
        if self.folders.is_empty() && self.collections.is_empty() {
            fault(
                "/folders".to_owned(),
                "there is no folder to search".to_owned(),
                "name at least one: folders = [\"docs\"]",
            );
        }
        let mut check_globs = |at: &str, globs: &[String]| {
            for (index, glob) in globs.iter().enumerate() {
                if let Err(reason) = Globs::new(std::slice::from_ref(glob)) {
                    let help = "write a glob such as \"*.md\", \"guides/**\" or \"drafts/\"";
                    fault(format!("{at}/{index}"), reason, help);
                }
            }
        };
        check_globs("/include", &self.include);
        check_globs("/exclude", &self.exclude);
        for (name, collection) in &self.collections {
            let at = format!("/collections/{}", escaped(name));
            check_globs(
                &format!("{at}/include"),
                collection.include.as_deref().unwrap_or_default(),
            );
            check_globs(
                &format!("{at}/exclude"),
                collection.exclude.as_deref().unwrap_or_default(),
            );
        }
        for (name, collection) in &self.collections {
            let at = format!("/collections/{}", escaped(name));
            if name == MAIN && !self.folders.is_empty() {
                let message = format!("\"{MAIN}\" is the collection of [documents] itself");
                fault(at.clone(), message, "give this one another name");
            }
            if collection.folders.is_empty() {
                let message = "there is no folder to search".to_owned();
                fault(
                    format!("{at}/folders"),
                    message,
                    "name at least one: folders = [\"docs\"]",
                );
            }
            if collection.max_files == Some(0) {
                fault(
                    format!("{at}/max_files"),
                    "no file would be indexed".to_owned(),
                    "leave max_files out or set at least 1",
                );
            }
        }
        if self.max_files == 0 {
            fault(
                "/max_files".to_owned(),
                "no file would be indexed".to_owned(),
                "leave max_files out or set at least 1",
            );
        }
        faults
    }
}

/// Globs as people write them: without a slash they hold at any depth, one of a folder holds for
/// all that is in it, and case does not matter.
#[derive(Debug)]
pub struct Globs {
    /// As they are written.
    pub globs: Vec<String>,
    /// All of them, compiled.
    pub set: GlobSet,
}

impl Globs {
    /// Reads globs.
    ///
    /// # Errors
    ///
    /// Says which one is no glob.
    pub fn new(globs: &[String]) -> Result<Globs, String> {
        let mut set = GlobSetBuilder::new();
        for glob in globs {
            let trimmed = glob.trim_start_matches("./").trim_end_matches('/');
            if trimmed.is_empty() {
                return Err(format!("\"{glob}\" is no glob"));
            }
            let anywhere = match trimmed.strip_prefix('/') {
                Some(from_root) => from_root.to_owned(),
                None if trimmed.contains('/') => trimmed.to_owned(),
                None => format!("**/{trimmed}"),
            };
            for pattern in [format!("{anywhere}/**"), anywhere] {
                let built = GlobBuilder::new(&pattern)
                    .literal_separator(true)
                    .case_insensitive(true)
                    .build();
                set.add(built.map_err(|error| format!("\"{glob}\" is no glob: {}", error.kind()))?);
            }
        }
        let set = set
            .build()
            .map_err(|error| format!("these globs are too much together: {}", error.kind()))?;
        Ok(Globs {
            globs: globs.to_vec(),
            set,
        })
    }
}
