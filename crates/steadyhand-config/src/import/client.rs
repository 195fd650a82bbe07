//! The programs whose configuration files are read: their names, where their files are, their habits.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::foreign::Syntax;
use crate::surroundings::{Surroundings, System};

/// The program a configuration file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Client {
    /// Claude Desktop
    ClaudeDesktop,
    /// Claude Code, and the portable `.mcp.json`
    ClaudeCode,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    VsCode,
    /// Windsurf
    Windsurf,
    /// Gemini CLI
    Gemini,
    /// goose
    Goose,
    /// Codex
    Codex,
    /// Crush
    Crush,
    /// Cline
    Cline,
    /// GitHub Copilot CLI
    Copilot,
    /// A file that does not say whose it is
    Other,
}

/// Which forms of variables a program replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variables {
    /// None: texts are taken as they stand
    Literal,
    /// `${VAR}`, `${VAR:-default}`, `${env:VAR}` and the words of the editors
    Braces,
    /// Those and `$VAR`; one that is not set stays as it is
    BareLenient,
    /// Those and `$VAR`; every one must be set
    BareStrict,
}

/// How a program counts a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeoutUnit {
    Milliseconds,
    Seconds,
    /// Documented differently by different readers of the file: 1000 and more are milliseconds
    BySize,
}

/// Which part of a file counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Everything,
    /// `projects` of `~/.claude.json`
    Project,
    /// All but that
    User,
}

/// A file of a program, and which part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) file: PathBuf,
    pub(super) scope: Scope,
}

impl Client {
    /// The names `[import] mcp = […]` knows.
    pub const KNOWN: [(&'static str, Client); 9] = [
        ("claude-desktop", Client::ClaudeDesktop),
        ("claude-code", Client::ClaudeCode),
        ("cursor", Client::Cursor),
        ("vscode", Client::VsCode),
        ("windsurf", Client::Windsurf),
        ("gemini", Client::Gemini),
        ("goose", Client::Goose),
        ("codex", Client::Codex),
        ("crush", Client::Crush),
    ];

    /// The program of a known name.
    pub fn by_name(name: &str) -> Option<Client> {
        let (_, client) = Client::KNOWN
            .into_iter()
            .find(|(known, _)| *known == name)?;
        Some(client)
    }

    /// The program a file belongs to, by its name and folder.
    pub fn of_file(file: &Path) -> Client {
        let name = |path: &Path| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .to_lowercase()
        };
        let folder = file.parent().map(name).unwrap_or_default();
        match (folder.as_str(), name(file).as_str()) {
            (_, "claude_desktop_config.json") => Client::ClaudeDesktop,
            (_, ".mcp.json" | ".claude.json") => Client::ClaudeCode,
            (".cursor", "mcp.json") => Client::Cursor,
            (".vscode", "mcp.json" | "settings.json") => Client::VsCode,
            ("user", "mcp.json" | "settings.json") => Client::VsCode,
            (_, "mcp_config.json") => Client::Windsurf,
            (".gemini", "settings.json") => Client::Gemini,
            ("goose" | "config", "config.yaml") => Client::Goose,
            (".codex", "config.toml") => Client::Codex,
            (_, "crush.json" | ".crush.json") => Client::Crush,
            (_, "cline_mcp_settings.json") => Client::Cline,
            (_, "mcp-config.json") => Client::Copilot,
            _ => Client::Other,
        }
    }

    /// The files this program reads, the one that wins a clash of names first.
    pub fn files(self, surroundings: &Surroundings) -> Vec<PathBuf> {
        let locations = self.locations(surroundings).into_iter();
        let mut files: Vec<PathBuf> = locations.map(|location| location.file).collect();
        let mut seen = std::collections::HashSet::new();
        files.retain(|file| seen.insert(file.clone()));
        files
    }

    pub(super) fn locations(self, surroundings: &Surroundings) -> Vec<Location> {
        let project = |below: &str| Some(surroundings.current.join(below));
        let home = |below: &str| Some(surroundings.home.as_ref()?.join(below));
        let applications = || match surroundings.system {
            System::Linux => surroundings.folder("XDG_CONFIG_HOME", ".config"),
            System::Mac => home("Library/Application Support"),
            System::Windows => surroundings.folder("APPDATA", "AppData/Roaming"),
        };
        let below = |folder: Option<PathBuf>, file: &str| Some(folder?.join(file));
        let files = match self {
            Client::ClaudeDesktop => {
                vec![below(applications(), "Claude/claude_desktop_config.json")]
            }
            // Its own order: local to the project and private, shared in the project, the user's.
            Client::ClaudeCode => {
                let user = home(".claude.json");
                let places = [
                    (user.clone(), Scope::Project),
                    (project(".mcp.json"), Scope::Everything),
                    (user, Scope::User),
                ];
                let found = places.into_iter();
                return found
                    .filter_map(|(file, scope)| Some(Location { file: file?, scope }))
                    .collect();
            }
            Client::Cursor => vec![project(".cursor/mcp.json"), home(".cursor/mcp.json")],
            Client::VsCode => vec![
                project(".vscode/mcp.json"),
                below(applications(), "Code/User/mcp.json"),
            ],
            Client::Windsurf => vec![home(".codeium/windsurf/mcp_config.json")],
            Client::Gemini => vec![
                project(".gemini/settings.json"),
                home(".gemini/settings.json"),
            ],
            // Not in the folder for applications on a Mac, but where Linux has it.
            Client::Goose => match surroundings.system {
                System::Windows => {
                    vec![below(applications(), "Block/goose/config/config.yaml")]
                }
                System::Linux | System::Mac => vec![below(
                    surroundings.folder("XDG_CONFIG_HOME", ".config"),
                    "goose/config.yaml",
                )],
            },
            Client::Codex => vec![
                project(".codex/config.toml"),
                below(surroundings.folder("CODEX_HOME", ".codex"), "config.toml"),
            ],
            Client::Crush => {
                let user = match surroundings.system {
                    System::Windows => surroundings.folder("LOCALAPPDATA", "AppData/Local"),
                    System::Linux | System::Mac => {
                        surroundings.folder("XDG_CONFIG_HOME", ".config")
                    }
                };
                vec![
                    project(".crush.json"),
                    project("crush.json"),
                    below(user, "crush/crush.json"),
                ]
            }
            Client::Cline | Client::Copilot | Client::Other => Vec::new(),
        };
        let whole = |file| Location {
            file,
            scope: Scope::Everything,
        };
        files.into_iter().flatten().map(whole).collect()
    }

    pub(super) fn variables(self) -> Variables {
        match self {
            Client::ClaudeDesktop | Client::Codex => Variables::Literal,
            Client::Gemini => Variables::BareLenient,
            Client::Crush => Variables::BareStrict,
            Client::ClaudeCode
            | Client::Cursor
            | Client::VsCode
            | Client::Windsurf
            | Client::Goose
            | Client::Cline
            | Client::Copilot
            | Client::Other => Variables::Braces,
        }
    }

    pub(super) fn timeout_unit(self) -> TimeoutUnit {
        match self {
            Client::Gemini | Client::Copilot => TimeoutUnit::Milliseconds,
            Client::Goose | Client::Crush | Client::Cline | Client::Codex => TimeoutUnit::Seconds,
            Client::ClaudeCode
            | Client::ClaudeDesktop
            | Client::Cursor
            | Client::VsCode
            | Client::Windsurf
            | Client::Other => TimeoutUnit::BySize,
        }
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Client::ClaudeDesktop => "Claude Desktop",
            Client::ClaudeCode => "Claude Code",
            Client::Cursor => "Cursor",
            Client::VsCode => "VS Code",
            Client::Windsurf => "Windsurf",
            Client::Gemini => "Gemini CLI",
            Client::Goose => "goose",
            Client::Codex => "Codex",
            Client::Crush => "Crush",
            Client::Cline => "Cline",
            Client::Copilot => "Copilot CLI",
            Client::Other => "another program",
        })
    }
}

/// How a file is written, by the end of its name.
pub(super) fn syntax(file: &Path) -> Syntax {
    match file.extension().and_then(|end| end.to_str()) {
        Some("toml") => Syntax::Toml,
        Some("yaml" | "yml") => Syntax::Yaml,
        _ => Syntax::Json,
    }
}

/// What editors call the workspace: the folder a project's file belongs to, else where we are.
pub(super) fn workspace(file: &Path, client: Client, surroundings: &Surroundings) -> PathBuf {
    let folder = file.parent().unwrap_or(Path::new("."));
    let near = file.strip_prefix(&surroundings.current);
    let of_project = near.is_ok_and(|near| near.components().count() <= 2);
    let known = client.locations(surroundings);
    let of_user = !of_project && known.iter().any(|location| location.file == file);
    if of_user {
        return surroundings.current.clone();
    }
    let hidden = folder
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with('.'));
    match (hidden, folder.parent()) {
        (true, Some(project)) => surroundings.current.join(project),
        _ => surroundings.current.join(folder),
    }
}
