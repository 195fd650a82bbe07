//! What a server is started with, and how its tools are offered.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use steadyhand::ByteBudget;

use hyper::Uri;

use crate::client::calls::parameters::{CamelCase, shipped_mapping};
use crate::client::credentials::Login;
use crate::client::lifecycle::era::Protocol;
use crate::client::requests::RequestPolicy;

/// What every child gets of our own environment.
const INHERITED: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

/// One MCP server.
#[derive(Clone)]
pub struct ServerSettings {
    /// Its name: part of its tools' names.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// Which era of the protocol it is spoken to in.
    pub protocol: Protocol,
    /// How it is started, and started again.
    pub start: StartPolicy,
    /// Which of its tools are offered, as the server names them.
    pub tools: Pick,
    /// Whether its tools are called `server__tool`.
    pub prefix: bool,
    /// Other names for single tools.
    pub rename: BTreeMap<String, String>,
    /// Second names (`lc_name`) of single tools.
    pub aliases: BTreeMap<String, String>,
    /// Parameter names to change, by tool.
    pub params: BTreeMap<String, BTreeMap<String, String>>,
    /// Whether other parameter names are mended.
    pub camel_case: CamelCase,
    /// The same for single tools.
    pub camel_case_of: BTreeMap<String, CamelCase>,
    /// What it is told when it asks us something.
    pub requests: RequestPolicy,
    /// Whether progress renews a call's time limit.
    pub progress_extends: bool,
    /// What to check when it does not start.
    pub check: Vec<String>,
    /// Where it is configured: `.mcp.json:9`.
    pub place: Option<String>,
    /// Takes secrets out of what it prints.
    pub hide: Option<Hide>,
    /// The memory that what it sends is a part of: the process's own if nothing else is said.
    pub memory: ByteBudget,
    /// The same for what it lists and says of itself, where more secrets are known than its own.
    pub hide_listed: Option<Hide>,
    /// Whether there is anything to take out of what its tools answer.
    pub has_secrets: bool,
}

/// Takes secrets out of a text.
pub type Hide = Arc<dyn Fn(String) -> String + Send + Sync>;

/// How a server is reached.
#[derive(Clone)]
pub enum Transport {
    /// A program that speaks on its stdin and stdout.
    Stdio(StdioSettings),
    /// An address.
    Http(HttpSettings),
}

/// A server over HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpSettings {
    /// Its address: `https://…/mcp`.
    pub url: String,
    /// Headers that go with every request. Their values are never shown.
    pub headers: Vec<(String, String)>,
    /// It speaks HTTP+SSE, the way of 2024; tried first then, and last otherwise.
    pub sse: bool,
    /// How the address is shown: without secrets.
    pub shown: String,
    /// What is shown to a server that asks who we are, where no header says it.
    pub login: Option<Login>,
}

/// A program that speaks on its stdin and stdout.
#[derive(Clone, PartialEq, Eq)]
pub struct StdioSettings {
    /// A name on PATH, or a path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it runs; relative paths start here, too.
    pub cwd: PathBuf,
    /// Variables it gets; none takes one away.
    pub env: Vec<(String, Option<String>)>,
    /// Whether it gets all of our own.
    pub inherit_env: bool,
    /// Further folders to look for the program in, before those of PATH.
    pub path_add: Vec<PathBuf>,
    /// How the command is shown: without secrets.
    pub shown: String,
}

/// How a server is started, and started again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartPolicy {
    /// How long one start may take, until its tools are known.
    pub limit: Duration,
    /// The wait before each attempt to connect: three attempts by default (SPEC V14).
    pub waits: Vec<Duration>,
    /// With us, or when one of its tools is called.
    pub when: When,
    /// How often it is started again at once …
    pub restarts: u32,
    /// … within this time; then with growing waits.
    pub within: Duration,
    /// The wait before the first try in the background; it doubles from there on …
    pub retry_first: Duration,
    /// … up to this.
    pub retry_max: Duration,
    /// Stopped when nobody has called it for so long; started again by the next call.
    pub idle_stop: Option<Duration>,
}

/// When a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// With us.
    Boot,
    /// When one of its tools is called; once before, if its tools are not known yet.
    FirstCall,
}

/// Patterns of names: what matches `deny` is left out, then what matches no `allow`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pick {
    /// Offered; all if not said.
    pub allow: Option<Vec<String>>,
    /// Left out.
    pub deny: Vec<String>,
}

/// How one tool of a server is treated.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Treatment {
    pub(crate) params: BTreeMap<String, String>,
    pub(crate) camel_case: CamelCase,
    pub(crate) alias: Option<String>,
    pub(crate) progress_extends: bool,
}

impl ServerSettings {
    /// A program with its arguments, everything else as it usually is.
    pub fn stdio<A: Into<String>>(
        name: impl Into<String>,
        command: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> ServerSettings {
        let command = command.into();
        let args: Vec<String> = args.into_iter().map(Into::into).collect();
        let words: Vec<&str> = [&command]
            .into_iter()
            .chain(&args)
            .map(String::as_str)
            .collect();
        let shown = words.join(" ");
        let stdio = StdioSettings {
            command,
            args,
            cwd: std::env::current_dir().unwrap_or_default(),
            env: Vec::new(),
            inherit_env: false,
            path_add: Vec::new(),
            shown,
        };
        ServerSettings::new(name.into(), Transport::Stdio(stdio))
    }

    /// A server over HTTP, everything else as it usually is.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> ServerSettings {
        let url = url.into();
        let http = HttpSettings {
            shown: shown_url(&url),
            sse: false,
            headers: Vec::new(),
            login: None,
            url,
        };
        ServerSettings::new(name.into(), Transport::Http(http))
    }

    fn new(name: String, transport: Transport) -> ServerSettings {
        ServerSettings {
            name,
            transport,
            protocol: Protocol::default(),
            start: StartPolicy::default(),
            tools: Pick::default(),
            prefix: true,
            rename: BTreeMap::new(),
            aliases: BTreeMap::new(),
            params: BTreeMap::new(),
            camel_case: CamelCase::default(),
            camel_case_of: BTreeMap::new(),
            requests: RequestPolicy::default(),
            progress_extends: true,
            check: Vec::new(),
            place: None,
            hide: None,
            memory: ByteBudget::process().clone(),
            hide_listed: None,
            has_secrets: false,
        }
    }

    /// The program, to be changed.
    ///
    /// # Panics
    ///
    /// If it is none.
    pub fn as_stdio(&mut self) -> &mut StdioSettings {
        match &mut self.transport {
            Transport::Stdio(stdio) => stdio,
            Transport::Http(_) => panic!("a server over HTTP has no program"),
        }
    }

    /// The address, to be changed.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn as_http(&mut self) -> &mut HttpSettings {
        match &mut self.transport {
            Transport::Http(http) => http,
            Transport::Stdio(_) => panic!("a server on stdio has no address"),
        }
    }

    /// Whether the same process would do: only what is offered, and how, may be different.
    pub(crate) fn is_same_process(&self, other: &ServerSettings) -> bool {
        let is_same = match (&self.transport, &other.transport) {
            (Transport::Stdio(mine), Transport::Stdio(theirs)) => mine == theirs,
            (Transport::Http(mine), Transport::Http(theirs)) => mine == theirs,
            (Transport::Stdio(_), Transport::Http(_))
            | (Transport::Http(_), Transport::Stdio(_)) => false,
        };
        self.name == other.name
            && is_same
            && self.protocol == other.protocol
            && self.start == other.start
            && self.requests == other.requests
    }

    /// Takes secrets out of what it lists and says of itself.
    pub(crate) fn hide_in_lists(&self) -> Option<&Hide> {
        self.hide_listed.as_ref().or(self.hide.as_ref())
    }

    pub(crate) fn treatment(&self, tool: &str) -> Treatment {
        let params = self.params.get(tool).cloned();
        let mode = self.camel_case_of.get(tool).copied();
        Treatment {
            params: params.or_else(|| shipped_mapping(tool)).unwrap_or_default(),
            camel_case: mode.unwrap_or(self.camel_case),
            alias: self.aliases.get(tool).cloned(),
            progress_extends: self.progress_extends,
        }
    }

    /// Whether a tool of the server could have this name among ours.
    pub fn may_bring(&self, tool: &str) -> bool {
        let own = |name: &String| name == tool;
        !self.prefix
            || tool.starts_with(&crate::client::catalogue::names::prefix(&self.name))
            || self.rename.values().any(own)
            || self.aliases.values().any(own)
    }

    /// The folder it runs in, where that is not the one we run in.
    pub(crate) fn shown_cwd(&self) -> Option<String> {
        let Transport::Stdio(stdio) = &self.transport else {
            return None;
        };
        let ours = std::env::current_dir().ok();
        (ours.as_ref() != Some(&stdio.cwd)).then(|| stdio.cwd.display().to_string())
    }

    /// What tells this server from another one that had its name: nothing that is kept on disk may be mixed up.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        match &self.transport {
            Transport::Stdio(stdio) => {
                for part in [&stdio.command].into_iter().chain(&stdio.args) {
                    hash.update(part.len().to_le_bytes());
                    hash.update(part);
                }
                hash.update(stdio.cwd.as_os_str().as_encoded_bytes());
            }
            // Not its headers: a new token makes no other server.
            Transport::Http(http) => hash.update(&http.url),
        }
        hash.finalize()[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

impl Transport {
    /// In a word: `stdio`, `http`.
    pub fn word(&self) -> &'static str {
        match self {
            Transport::Stdio(_) => "stdio",
            Transport::Http(http) if http.sse => "sse",
            Transport::Http(_) => "http",
        }
    }

    /// The command or the address, without secrets.
    pub fn shown(&self) -> &str {
        match self {
            Transport::Stdio(stdio) => &stdio.shown,
            Transport::Http(http) => &http.shown,
        }
    }
}

impl HttpSettings {
    /// The address; an error says what is wrong with it, or with a header.
    pub(crate) fn checked(&self) -> Result<Uri, String> {
        let shown = &self.shown;
        let no = |why: &str| format!("{shown} is no address of a server: {why}");
        let url = url::Url::parse(&self.url)
            .map_err(|error| no(steadyhand::plain_words::address(&error)))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(no("it must begin with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let instead = "a name and a password in it would be sent nowhere; use a header";
            return Err(no(instead));
        }
        let mut url = url;
        url.set_fragment(None);
        url.as_str().parse().map_err(|_| no("it cannot be sent"))
    }

    /// Looks at the address and the headers without sending anything.
    pub fn check(&self) -> Result<(), String> {
        self.checked()?;
        let mut headers = self.headers.iter();
        headers.try_for_each(|(name, value)| crate::client::http::header(name, value).map(drop))
    }
}

/// An address as people may see it: what stands in its query may be a secret.
pub fn shown_url(url: &str) -> String {
    let Ok(mut parsed) = url::Url::parse(url) else {
        return "(no address)".to_owned();
    };
    let _ = parsed.set_password(None);
    let _ = parsed.set_username("");
    let has_query = parsed.query().is_some();
    parsed.set_query(None);
    parsed.set_fragment(None);
    match has_query {
        true => format!("{parsed}?…"),
        false => parsed.to_string(),
    }
}

impl StdioSettings {
    /// The whole environment of the program.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let inherited = std::env::vars_os().filter(|(name, value)| {
            let is_usual = name.to_str().is_some_and(|name| INHERITED.contains(&name));
            // A shell's function, not a value.
            let is_function = value.to_string_lossy().starts_with("()");
            (is_usual || self.inherit_env) && !is_function
        });
        let mut all: BTreeMap<OsString, OsString> = inherited.collect();
        for (name, value) in &self.env {
            match value {
                Some(value) => all.insert(name.into(), value.into()),
                None => all.remove(&OsString::from(name)),
            };
        }
        let path = all.remove(&OsString::from("PATH")).unwrap_or_default();
        // A folder with a colon in its name cannot stand in PATH.
        let fits = |folder: &&PathBuf| std::env::join_paths([folder]).is_ok();
        let folders = self.path_add.iter().filter(fits).cloned();
        let joined = std::env::join_paths(folders.chain(std::env::split_paths(&path)));
        all.insert("PATH".into(), joined.unwrap_or(path));
        all.into_iter().collect()
    }
}

impl Default for StartPolicy {
    fn default() -> StartPolicy {
        StartPolicy {
            limit: Duration::from_secs(20),
            waits: [0, 2, 4].map(Duration::from_secs).to_vec(),
            when: When::Boot,
            restarts: 5,
            within: Duration::from_secs(60),
            retry_first: Duration::from_secs(5),
            retry_max: Duration::from_secs(60),
            idle_stop: None,
        }
    }
}

impl Pick {
    /// Whether a tool is offered.
    pub fn takes(&self, tool: &str) -> bool {
        let any = |patterns: &[String]| {
            patterns
                .iter()
                .any(|pattern| steadyhand::wildcard::wild(pattern, tool))
        };
        !any(&self.deny) && self.allow.as_deref().is_none_or(any)
    }
}
