//! What connects another program with this one: what its file must say, where that file is, and one line to paste.

pub mod change;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::Surroundings;
use crate::import::Client as Known;
use crate::settings::ServerSettings;

/// The variable with the token, where the configuration does not name another.
const TOKEN_VARIABLE: &str = "STEADYHAND_TOKEN";
/// What VS Code asks its user for.
const INPUT: &str = "steadyhand-token";

/// A program that can use our tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// Claude Code
    ClaudeCode,
    /// Claude Desktop
    ClaudeDesktop,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    VsCode,
    /// Codex
    Codex,
    /// A request by hand
    Curl,
}

/// How it reaches us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The server that runs: what it knows is shared by all.
    Http,
    /// A process of its own, started by the client.
    Stdio,
}

/// Whose file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The one of this folder, which can be shared
    Project,
    /// The one of this user
    User,
}

/// What others must know of us.
pub struct Us {
    /// The name we get in their files.
    pub name: String,
    /// `http://127.0.0.1:7400`
    pub base: String,
    /// The variable that holds the token, where one is needed.
    pub token: Option<String>,
    /// The program and its arguments, for those who start it.
    pub command: Vec<String>,
}

impl Way {
    pub fn word(self) -> &'static str {
        match self {
            Way::Http => "http",
            Way::Stdio => "stdio",
        }
    }
}

impl Client {
    pub const ALL: [Client; 6] = [
        Client::ClaudeCode,
        Client::ClaudeDesktop,
        Client::Cursor,
        Client::VsCode,
        Client::Codex,
        Client::Curl,
    ];

    /// As it is typed.
    pub fn word(self) -> &'static str {
        match self {
            Client::ClaudeCode => "claude-code",
            Client::ClaudeDesktop => "claude-desktop",
            Client::Cursor => "cursor",
            Client::VsCode => "vscode",
            Client::Codex => "codex",
            Client::Curl => "curl",
        }
    }

    /// As people call it.
    pub fn title(self) -> &'static str {
        match self {
            Client::ClaudeCode => "Claude Code",
            Client::ClaudeDesktop => "Claude Desktop",
            Client::Cursor => "Cursor",
            Client::VsCode => "VS Code",
            Client::Codex => "Codex",
            Client::Curl => "curl",
        }
    }

    /// How it reaches us if nobody says. Over HTTP where it can: one server, one history, one set of breakers.
    pub fn usual_way(self) -> Way {
        match self {
            // Its file knows programs only.
            Client::ClaudeDesktop => Way::Stdio,
            Client::ClaudeCode | Client::Cursor | Client::VsCode | Client::Codex | Client::Curl => {
                Way::Http
            }
        }
    }

    /// Why it cannot go this way.
    pub fn refuses(self, way: Way) -> Option<&'static str> {
        match (self, way) {
            (Client::ClaudeDesktop, Way::Http) => Some(
                "the file of Claude Desktop knows only programs that it starts; leave --http out",
            ),
            (Client::Curl, Way::Stdio) => Some("curl speaks HTTP; leave --stdio out"),
            _ => None,
        }
    }

    fn known(self) -> Option<Known> {
        match self {
            Client::ClaudeCode => Some(Known::ClaudeCode),
            Client::ClaudeDesktop => Some(Known::ClaudeDesktop),
            Client::Cursor => Some(Known::Cursor),
            Client::VsCode => Some(Known::VsCode),
            Client::Codex => Some(Known::Codex),
            Client::Curl => None,
        }
    }

    /// Whose file is meant if nobody says: the one that is made to be edited by hand.
    pub fn usual_scope(self) -> Scope {
        match self {
            Client::ClaudeCode | Client::VsCode => Scope::Project,
            Client::ClaudeDesktop | Client::Cursor | Client::Codex | Client::Curl => Scope::User,
        }
    }

    /// The file it reads; none where it has no such file, or nobody has a home.
    pub fn file(self, scope: Scope, surroundings: &Surroundings) -> Option<PathBuf> {
        let mut files = self.known()?.files(surroundings).into_iter();
        match (self, scope) {
            (Client::ClaudeDesktop, Scope::Project) => None,
            (Client::ClaudeCode, Scope::Project) => files.find(|file| file.ends_with(".mcp.json")),
            (Client::ClaudeCode, Scope::User) => files.find(|file| file.ends_with(".claude.json")),
            // The one of the project wins, so it comes first.
            (_, Scope::Project) => files.next(),
            (_, Scope::User) => files.next_back(),
        }
    }

    /// What stands under our name in its file.
    pub fn entry(self, way: Way, us: &Us) -> Map<String, Value> {
        let mut entry = Map::new();
        let mut put = |key: &str, value: Value| drop(entry.insert(key.to_owned(), value));
        match (self, way) {
            (Client::ClaudeCode | Client::VsCode, Way::Http) => put("type", json!("http")),
            (Client::ClaudeCode | Client::VsCode, Way::Stdio) => put("type", json!("stdio")),
            _ => {}
        }
        match way {
            Way::Stdio => {
                put("command", json!(us.command.first()));
                put("args", json!(us.command.get(1..).unwrap_or_default()));
            }
            Way::Http => {
                put("url", json!(us.endpoint()));
                if let Some(variable) = &us.token {
                    match self {
                        Client::Codex => put("bearer_token_env_var", json!(variable)),
                        _ => put(
                            "headers",
                            json!({"Authorization": format!("Bearer {}", self.reference(variable))}),
                        ),
                    }
                }
            }
        }
        entry
    }

    /// How its file names a value that is not in it.
    fn reference(self, variable: &str) -> String {
        match self {
            Client::ClaudeCode => format!("${{{variable}}}"),
            Client::VsCode => format!("${{input:{INPUT}}}"),
            Client::Cursor | Client::ClaudeDesktop | Client::Codex => {
                format!("${{env:{variable}}}")
            }
            Client::Curl => format!("${variable}"),
        }
    }

    /// What VS Code asks its user for, where a token is needed.
    pub fn input(self, way: Way, us: &Us) -> Option<Value> {
        let is_asked = self == Client::VsCode && way == Way::Http && us.token.is_some();
        is_asked.then(|| {
            json!({
                "type": "promptString",
                "id": INPUT,
                "description": "The token or key of Steadyhand",
                "password": true,
            })
        })
    }

    /// What its file says where nothing else is in it; for curl, a request.
    pub fn snippet(self, way: Way, us: &Us) -> String {
        if self == Client::Curl {
            return self.line(way, us);
        }
        let input = self.input(way, us);
        let change = change::Change {
            client: self,
            name: &us.name,
            entry: &self.entry(way, us),
            input: input.as_ref(),
        };
        // Nothing can be wrong with an empty file.
        change.of("").unwrap_or_default()
    }

    /// One line that can be pasted into a terminal and does it.
    pub fn line(self, way: Way, us: &Us) -> String {
        let name = quoted(&us.name);
        let command = || {
            let words = us.command.iter().map(|word| quoted(word));
            words.collect::<Vec<_>>().join(" ")
        };
        let header = |variable: &String| {
            // In double quotes, and not replaced by the shell: the file shall hold the reference.
            let reference = self.reference(variable);
            format!(" --header 'Authorization: Bearer {reference}'")
        };
        match (self, way) {
            (Client::ClaudeCode, Way::Http) => {
                let header = us.token.as_ref().map(header).unwrap_or_default();
                let url = us.endpoint();
                format!("claude mcp add --transport http {name} {url}{header}")
            }
            (Client::ClaudeCode, Way::Stdio) => format!("claude mcp add {name} -- {}", command()),
            (Client::Codex, Way::Http) => {
                let token = us.token.as_ref();
                let token = token.map(|token| format!(" --bearer-token-env-var {token}"));
                let url = us.endpoint();
                format!(
                    "codex mcp add {name} --url {url}{}",
                    token.unwrap_or_default()
                )
            }
            (Client::Codex, Way::Stdio) => format!("codex mcp add {name} -- {}", command()),
            (Client::VsCode, way) if us.token.is_none() || way == Way::Stdio => {
                let mut entry = Map::new();
                entry.insert("name".to_owned(), json!(us.name));
                entry.extend(self.entry(way, us));
                format!(
                    "code --add-mcp {}",
                    quoted(&Value::Object(entry).to_string())
                )
            }
            (Client::Curl, _) => {
                let header = us.token.as_ref().map(|variable| {
                    format!(" -H \"Authorization: Bearer {}\"", self.reference(variable))
                });
                format!("curl -s {}/v1/tools{}", us.base, header.unwrap_or_default())
            }
            (Client::ClaudeDesktop | Client::Cursor | Client::VsCode, _) => {
                let way = match way == self.usual_way() {
                    true => String::new(),
                    false => format!(" --{}", way.word()),
                };
                format!("steadyhand connect {}{way} --install", self.word())
            }
        }
    }
}

impl Us {
    /// Where MCP is spoken.
    pub fn endpoint(&self) -> String {
        format!("{}/mcp", self.base)
    }
}

/// The variable that a configuration has its token from.
pub fn token_variable(server: &ServerSettings) -> String {
    let written = server.token.as_ref().map(|token| token.expose().trim());
    let name = written.and_then(|written| {
        let inner = written.strip_prefix("${env:")?.strip_suffix('}')?;
        let name = inner.split(":-").next()?;
        (!name.is_empty() && !name.contains(['$', '{', '}'])).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| TOKEN_VARIABLE.to_owned())
}

/// Ourselves with full paths: who starts us knows neither our folder nor our PATH.
pub fn own_command(configuration: Option<&Path>, state: Option<&Path>) -> Vec<String> {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("steadyhand"));
    let mut words = vec![program.display().to_string()];
    for (flag, path) in [("--config", configuration), ("--state", state)] {
        if let Some(path) = path {
            words.push(flag.to_owned());
            words.push(path.display().to_string());
        }
    }
    words.push("mcp-stdio".to_owned());
    words
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned)
}
