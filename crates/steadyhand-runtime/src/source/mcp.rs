//! `[mcp.name]`: a server of the Model Context Protocol, as a source of tools that come and go.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use steadyhand::wildcard::wild;
use steadyhand::{SourceError, Tool, ToolSource};
use steadyhand_mcp::{
    Elicitation, Hide, Login, Phase, Pick, Protocol, RequestPolicy, Server, ServerSettings,
    StartPolicy, When,
};

use super::{Context, Kind, LeftOut, Settings, Source};
use crate::logins;
use crate::scrub::{self, Scrubber};
use steadyhand_config::extensions::{Fault, SERVER_KIND, read_settings};
use steadyhand_config::units::{Span, TIME_LIMIT};
use steadyhand_config::{Configuration, SecretText, Surroundings, ToolTable};

/// The kind of all tables under `[mcp]`. No `kind = "…"` names it.
pub static SERVER: Kind = Kind::of::<McpSettings>();

/// One MCP server: a command (stdio) or a url (HTTP).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpSettings {
    /// The program of a server on stdio, or a list of the program and its arguments; a text is never split into words
    #[schemars(schema_with = "program_or_list")]
    pub command: Option<String>,
    /// Its arguments, where command is a text
    pub args: Vec<SecretText>,
    /// The folder it runs in
    pub cwd: Option<String>,
    /// Its environment, beside the few variables every server gets
    pub env: BTreeMap<String, SecretText>,
    /// Variables it does not get
    pub env_without: Vec<String>,
    /// Hand on the whole environment of steadyhand
    pub inherit_env: Option<bool>,
    /// Further folders to look for the program in
    pub path_add: Vec<String>,
    /// The address of a server over HTTP
    pub url: Option<SecretText>,
    /// Headers sent with every request
    pub headers: BTreeMap<String, SecretText>,
    /// How we log in where it asks who we are (steadyhand mcp login): all of it may be left to the server
    pub oauth: OAuthTable,
    /// How a server with a url is spoken with: http, or sse for the older way; found out if not said
    pub transport: Option<HttpWay>,
    /// The era of the protocol: auto, legacy (up to 2025-11-25) or modern (from 2026-07-28 on)
    pub protocol: Option<ProtocolSetting>,
    /// How it is started
    pub start: StartSettings,
    /// Which of its tools are offered
    pub tools: AllowDeny,
    /// false keeps the bare names of its tools
    pub prefix: Option<bool>,
    /// Other names for single tools: { tool = "name" }
    pub rename: BTreeMap<String, String>,
    /// Second names of single tools, found as lc_name: { tool = "name" }
    pub alias: BTreeMap<String, String>,
    /// Parameter names to change, by tool: { tool = { device_name = "deviceName" } }
    pub params: BTreeMap<String, BTreeMap<String, String>>,
    /// Turn snake_case parameter names into camelCase: auto, always or off
    pub camel_case: Option<CamelCase>,
    /// The same for single tools: { tool = "off" }
    pub camel_case_of: BTreeMap<String, CamelCase>,
    /// Folders the server may be told about when it asks for roots
    pub roots: Option<Vec<String>>,
    /// What the server hears when it wants to ask a person something: refuse, decline, cancel, or { accept = { … } }
    pub elicitation: Option<ElicitationSettings>,
    /// false: progress does not renew the time limit of a call
    pub progress_extends: Option<bool>,
    /// When it says something else of itself than before: warn, quarantine (kept away until it is accepted) or off
    pub pin: Option<PinMode>,
    /// What to check when it does not start
    pub check: Vec<String>,
    /// `serve` ends if it cannot start
    pub required: Option<bool>,
    /// Leave it out
    pub disabled: Option<bool>,
}

/// How we log in at a server over HTTP.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OAuthTable {
    /// The id of a client that was registered by hand
    pub client_id: Option<String>,
    /// Its secret
    pub client_secret: Option<SecretText>,
    /// An address with a document about this client, for servers that read it there
    pub client_metadata: Option<String>,
    /// What is asked for; what the server names if not said
    pub scopes: Vec<String>,
    /// The port that the browser comes back to, where it had to be registered; any if not said
    pub redirect_port: Option<u16>,
    /// Who logs in: authorization_code (a person, by steadyhand mcp login; the default) or client_credentials (nobody: tokens are fetched and renewed with client_id and client_secret)
    pub grant: Option<GrantSetting>,
    /// How client_credentials sends client_id and client_secret: basic or post; as the authorization server says if not said
    pub client_auth: Option<ClientAuthSetting>,
    /// Where client_credentials gets its tokens, for an authorization server that says nothing about itself
    pub token_url: Option<String>,
    /// Addresses of authorization servers that lie in a private network; others that the server names must be public, or the server's own host and port, or on this machine if the server is
    pub authorization_servers: Vec<String>,
}

/// Who logs in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrantSetting {
    /// A person with a browser.
    #[default]
    AuthorizationCode,
    /// Nobody.
    ClientCredentials,
}

/// How a client shows its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientAuthSetting {
    /// In the header Authorization.
    Basic,
    /// In the body.
    Post,
}

/// What a login needs of the settings.
#[derive(Debug, Deserialize)]
pub struct LoginSettings {
    pub url: SecretText,
    #[serde(default)]
    pub oauth: OAuthTable,
    #[serde(default)]
    pub headers: BTreeMap<String, SecretText>,
    #[serde(default)]
    pub protocol: Option<ProtocolSetting>,
    #[serde(default)]
    pub transport: Option<HttpWay>,
}

impl LoginSettings {
    /// The keys of a server's table that are read for it.
    pub const KEYS: [&str; 5] = ["url", "oauth", "headers", "protocol", "transport"];

    /// The server as it is spoken with before anybody has logged in.
    pub fn server(&self, name: &str) -> ServerSettings {
        let mut settings = ServerSettings::http(name, self.url.expose());
        settings.protocol = protocol(self.protocol);
        let http = settings.as_http();
        http.shown = shown_address(self.url.expose());
        http.sse = self.transport == Some(HttpWay::Sse);
        let headers = self.headers.iter();
        let headers = headers.filter(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
        http.headers = headers
            .map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .collect();
        settings
    }
}

fn protocol(setting: Option<ProtocolSetting>) -> Protocol {
    match setting {
        None | Some(ProtocolSetting::Auto) => Protocol::Auto,
        Some(ProtocolSetting::Legacy) => Protocol::Legacy,
        Some(ProtocolSetting::Modern) => Protocol::Modern,
    }
}

/// What happens when a server changes the definition of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PinMode {
    /// It is told, and taken over.
    #[default]
    Warn,
    /// It is told, and kept away until somebody accepts it.
    Quarantine,
    /// Nothing.
    Off,
}

/// Whether parameter names are turned into camelCase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CamelCase {
    /// Only names the tool's schema does not declare.
    Auto,
    /// All.
    Always,
    /// None.
    Off,
}

/// How a server over HTTP is spoken with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HttpWay {
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE, the way of 2024.
    Sse,
}

/// The era of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProtocolSetting {
    /// The one the server speaks.
    Auto,
    /// Up to 2025-11-25.
    Legacy,
    /// From 2026-07-28 on.
    Modern,
}

/// What a server hears that wants to ask a person something.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ElicitationSettings {
    /// That we cannot do that.
    Refuse,
    /// That the person said no.
    Decline,
    /// That the person went away.
    Cancel,
    /// These values.
    Accept(Value),
}

/// How an MCP server is started.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StartSettings {
    /// How long one start may take
    #[schemars(extend("format" = TIME_LIMIT))]
    pub timeout: Option<Span>,
    /// boot or first-call
    pub when: Option<StartWhen>,
    /// The wait before each attempt to connect; 0s, 2s, 4s if not said
    pub waits: Option<Vec<Span>>,
    /// How often it is started again at once …
    pub restarts: Option<u32>,
    /// … within this time
    #[schemars(extend("format" = TIME_LIMIT))]
    pub within: Option<Span>,
    /// Stop it when it was not called for so long; the next call starts it
    #[schemars(extend("format" = TIME_LIMIT))]
    pub idle_stop: Option<Span>,
}

/// When an MCP server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartWhen {
    /// With Steadyhand.
    Boot,
    /// When one of its tools is called.
    FirstCall,
}

/// The JSON Schema of a server's command. A list has become a text and its arguments before it is read.
fn program_or_list(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": ["string", "array"],
        "items": {"type": "string"},
    })
}

/// What is wrong with the address of a server. Its query may hold a secret, and is not shown.
fn address_fault(url: &str) -> Option<Fault> {
    let fault = |message: String, help: String| {
        Some(Fault {
            at: "/url".to_owned(),
            message,
            help: Some(help),
        })
    };
    if url.contains("${") {
        return None;
    }
    let shown = url.split(['?', '#', '@']).next().unwrap_or_default();
    let has_scheme = url.starts_with("http://") || url.starts_with("https://");
    if !has_scheme && !url.contains("://") {
        let host = shown.split([':', '/']).next().unwrap_or_default();
        let is_here = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok();
        let scheme = if is_here { "http" } else { "https" };
        let message = "it does not begin with http:// or https://".to_owned();
        return fault(message, format!("Write \"{scheme}://{shown}\""));
    }
    let mut settings = ServerSettings::http("x", url);
    let http = settings.as_http();
    http.shown = "this".to_owned();
    let help = "Write one such as \"https://host/mcp\"".to_owned();
    http.check().err().and_then(|why| fault(why, help))
}

/// Patterns of names: what matches `deny` is left out, then what matches no `allow`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AllowDeny {
    /// Offered
    pub allow: Option<Vec<String>>,
    /// Left out
    pub deny: Vec<String>,
}

impl Settings for McpSettings {
    const KIND: &'static str = SERVER_KIND;
    const BRINGS_MANY: bool = true;

    fn check(&self) -> Vec<Fault> {
        let fault = |at: &str, message: &str, help: &str| Fault {
            at: at.to_owned(),
            message: message.to_owned(),
            help: Some(help.to_owned()),
        };
        let mut faults = Vec::new();
        // One that has neither adds to a server that is imported; the loader knows whether there is one.
        if self.command.is_some() && self.url.is_some() {
            faults.push(fault(
                "/url",
                "the server has both command and url",
                "command is for a server on stdio, url for one over HTTP: keep one",
            ));
        }
        if self.command.is_some() && !self.headers.is_empty() {
            faults.push(fault(
                "/headers",
                "belong to a server over HTTP",
                "A program gets its secrets by env",
            ));
        }
        if self.oauth.client_secret.is_some() && self.oauth.client_id.is_none() {
            faults.push(fault(
                "/oauth/client_secret",
                "belongs to a client_id",
                "Set client_id, too; without both we register by ourselves",
            ));
        }
        let is_unattended = self.oauth.grant == Some(GrantSetting::ClientCredentials);
        if is_unattended && (self.oauth.client_id.is_none() || self.oauth.client_secret.is_none()) {
            faults.push(fault(
                "/oauth/grant",
                "client_credentials needs client_id and client_secret",
                "Set both, the secret by reference: client_secret = \"${env:NAME}\" or \"${file:PATH}\"",
            ));
        }
        let only_unattended = [
            ("client_auth", self.oauth.client_auth.is_some()),
            ("token_url", self.oauth.token_url.is_some()),
        ];
        for (key, is_set) in only_unattended {
            if is_set && !is_unattended {
                faults.push(fault(
                    &format!("/oauth/{key}"),
                    "belongs to grant = \"client_credentials\"",
                    "Set grant, or take this out",
                ));
            }
        }
        if let Some(url) = &self.oauth.token_url
            && !url.contains("${")
            && !url::Url::parse(url).is_ok_and(|url| ["http", "https"].contains(&url.scheme()))
        {
            faults.push(fault(
                "/oauth/token_url",
                "is no http or https URL",
                "Write one such as \"https://login.example.com/oauth2/token\"",
            ));
        }
        for (index, url) in self.oauth.authorization_servers.iter().enumerate() {
            let is_web = |url: url::Url| ["http", "https"].contains(&url.scheme());
            if !url.contains("${") && !url::Url::parse(url).is_ok_and(is_web) {
                faults.push(fault(
                    &format!("/oauth/authorization_servers/{index}"),
                    "is no http or https URL",
                    "Write one such as \"https://sso.corp\"",
                ));
            }
        }
        if self.command.as_deref().is_some_and(|c| c.trim().is_empty()) {
            faults.push(fault("/command", "is empty", "Name the program to start"));
        }
        if let Some(url) = &self.url {
            faults.extend(address_fault(url.expose()));
        }
        if self.start.waits.as_ref().is_some_and(Vec::is_empty) {
            faults.push(fault(
                "/start/waits",
                "has no attempt",
                "Write one wait for each attempt, such as [\"0s\", \"2s\", \"4s\"]",
            ));
        }
        faults
    }

    fn build(self, name: &str, context: &Context) -> Result<Arc<dyn Source>, Fault> {
        let settings = self.for_server(name, context)?;
        Ok(Arc::new(McpSource {
            server: Server::new(settings, Some(context.state.clone())),
        }))
    }
}

impl McpSettings {
    /// The same for the crate that speaks the protocol.
    pub fn for_server(self, name: &str, context: &Context) -> Result<ServerSettings, Fault> {
        let mut this = self;
        let oauth = std::mem::take(&mut this.oauth);
        let mut own_tokens = None;
        let mut settings = match &this.url {
            Some(url) => {
                let mut settings = this.over_http(name, url.expose(), context)?;
                let login = LoginSettings {
                    url: url.clone(),
                    oauth,
                    headers: BTreeMap::new(),
                    protocol: this.protocol,
                    transport: this.transport,
                };
                let (account, tokens) =
                    logins::account(name, &login, &context.state, context.http.clone());
                own_tokens = Some(tokens);
                let account = Arc::new(account);
                let login = Login::new(logins::identity(name, &login), account);
                settings.as_http().login = Some(login);
                settings
            }
            None => this.on_stdio(name, context),
        };
        let scrubber = Scrubber::new(context.secrets.clone());
        settings.has_secrets = !scrubber.is_empty() || own_tokens.is_some();
        let hide: Hide = Arc::new(move |text| {
            let text = scrubber.text(&text).unwrap_or(text);
            match &own_tokens {
                Some(tokens) => tokens.hide(text),
                None => text,
            }
        });
        settings.hide = Some(Arc::clone(&hide));
        settings.hide_listed = Some(Arc::new(move |text| scrub::known().hide(hide(text))));
        settings.protocol = protocol(this.protocol);
        settings.start = this.start.policy();
        settings.tools = Pick {
            allow: this.tools.allow,
            deny: this.tools.deny,
        };
        settings.prefix = this.prefix.unwrap_or(true);
        settings.rename = this.rename;
        settings.aliases = this.alias;
        settings.params = this.params;
        settings.camel_case = this.camel_case.map(Into::into).unwrap_or_default();
        let modes = this.camel_case_of.into_iter();
        settings.camel_case_of = modes.map(|(tool, mode)| (tool, mode.into())).collect();
        settings.requests = RequestPolicy {
            roots: this.roots.map(|roots| {
                let uri = |folder: &String| {
                    let path = context.folder.join(home(folder, context));
                    url::Url::from_file_path(&path).map_or_else(|()| folder.clone(), Into::into)
                };
                roots.iter().map(uri).collect()
            }),
            elicitation: match this.elicitation {
                None => Elicitation::Relay,
                Some(ElicitationSettings::Refuse) => Elicitation::Refuse,
                Some(ElicitationSettings::Decline) => Elicitation::Decline,
                Some(ElicitationSettings::Cancel) => Elicitation::Cancel,
                Some(ElicitationSettings::Accept(values)) => Elicitation::Accept(values),
            },
            relay: context.relays,
        };
        settings.progress_extends = this.progress_extends.unwrap_or(true);
        settings.check = this.check;
        settings.place = context.place.clone();
        Ok(settings)
    }

    fn over_http(&self, name: &str, url: &str, context: &Context) -> Result<ServerSettings, Fault> {
        let mut settings = ServerSettings::http(name, url);
        let http = settings.as_http();
        let written = context.written.get("url").and_then(Value::as_str);
        http.shown = shown_address(written.unwrap_or(url));
        let headers = self.headers.iter();
        http.headers = headers
            .map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .collect();
        http.sse = self.transport == Some(HttpWay::Sse);
        let fault = |message| Fault {
            at: "/url".to_owned(),
            message,
            help: Some(
                "url = \"https://host/mcp\", headers = { Authorization = \"Bearer ${env:TOKEN}\" }"
                    .to_owned(),
            ),
        };
        http.check().map_err(fault)?;
        Ok(settings)
    }

    fn on_stdio(&self, name: &str, context: &Context) -> ServerSettings {
        let command = self.command.as_deref().unwrap_or_default();
        let args: Vec<String> = self
            .args
            .iter()
            .map(|arg| arg.expose().to_owned())
            .collect();
        let mut settings = ServerSettings::stdio(name, home(command, context), args);
        let stdio = settings.as_stdio();
        stdio.cwd = match &self.cwd {
            Some(cwd) => context.folder.join(home(cwd, context)),
            None => context.folder.clone(),
        };
        let own =
            |(name, value): (&String, &SecretText)| (name.clone(), Some(value.expose().to_owned()));
        stdio.env = self.env.iter().map(own).collect();
        let without = self.env_without.iter();
        stdio.env.extend(without.map(|name| (name.clone(), None)));
        stdio.inherit_env = self.inherit_env.unwrap_or(false);
        let folders = self.path_add.iter();
        stdio.path_add = folders
            .map(|folder| context.folder.join(home(folder, context)))
            .collect();
        stdio.shown = shown(&context.written);
        settings
    }
}

impl StartSettings {
    fn policy(&self) -> StartPolicy {
        let usual = StartPolicy::default();
        let span = |span: Option<Span>, usual: Duration| span.map_or(usual, |span| span.0);
        StartPolicy {
            limit: span(self.timeout, usual.limit),
            waits: match &self.waits {
                Some(waits) => waits.iter().map(|wait| wait.0).collect(),
                None => usual.waits,
            },
            when: match self.when {
                Some(StartWhen::FirstCall) => When::FirstCall,
                Some(StartWhen::Boot) | None => When::Boot,
            },
            restarts: self.restarts.unwrap_or(usual.restarts),
            within: span(self.within, usual.within),
            idle_stop: self.idle_stop.map(|span| span.0),
            ..usual
        }
    }
}

impl From<CamelCase> for steadyhand_mcp::CamelCase {
    fn from(mode: CamelCase) -> Self {
        match mode {
            CamelCase::Auto => steadyhand_mcp::CamelCase::Auto,
            CamelCase::Always => steadyhand_mcp::CamelCase::Always,
            CamelCase::Off => steadyhand_mcp::CamelCase::Off,
        }
    }
}

/// A server as a source.
struct McpSource {
    server: Server,
}

impl ToolSource for McpSource {
    fn name(&self) -> &str {
        self.server.name()
    }

    /// Those that are known now. Nobody waits for a server to start (SPEC V16).
    fn tools(&self) -> BoxFuture<'_, Result<Vec<Tool>, SourceError>> {
        ready(Ok(self.server.tools())).boxed()
    }
}

impl Source for McpSource {
    /// A pattern of `each` is about the server's own names, or about ours.
    fn means(&self, pattern: &str, tool: &str) -> bool {
        let own = self.server.own_name(tool);
        own.is_some_and(|own| wild(pattern, &own)) || wild(pattern, tool)
    }

    fn left_out(&self) -> Vec<LeftOut> {
        let unusable = self.server.unusable().into_iter();
        unusable
            .map(|tool| LeftOut {
                name: tool.name,
                reason: tool.reason,
            })
            .collect()
    }

    /// Another choice of tools, other names: no reason to start a server anew.
    fn adapt(&self, settings: &Value, context: &Context) -> bool {
        let settings = read_settings::<McpSettings>(settings.clone());
        let settings = settings.and_then(|new| new.for_server(self.server.name(), context));
        settings.is_ok_and(|settings| self.server.adapt(settings))
    }

    fn server(&self) -> Option<&Server> {
        Some(&self.server)
    }

    fn unavailable(&self) -> Option<String> {
        let state = self.server.state();
        match (state.phase, &state.failure) {
            (Phase::Down, Some(failure)) => {
                let name = self.server.name();
                Some(format!(
                    "MCP server '{name}' is not running: {}",
                    failure.summary()
                ))
            }
            _ => None,
        }
    }
}

/// What is known of servers from earlier times, without a look at anything else.
pub struct Kept {
    context: Context,
}

impl Kept {
    pub fn new(configuration: &Configuration, surroundings: &Surroundings) -> Kept {
        Kept {
            context: Context {
                folder: configuration.folder.clone(),
                state: surroundings.state_folder(),
                internal: Default::default(),
                http: crate::net::Client::new(),
                trust: surroundings.trust().clone(),
                progress: Default::default(),
                home: surroundings.home.clone().unwrap_or_default(),
                place: None,
                written: Map::new(),
                secrets: Vec::new(),
                relays: false,
            },
        }
    }

    /// The same in another state folder.
    #[must_use]
    pub fn in_state(mut self, state: &std::path::Path) -> Kept {
        self.context.state = state.to_owned();
        self
    }

    /// The names of a server's tools; none if they cannot be told without its secrets.
    pub fn tool_names(&self, table: &ToolTable) -> Vec<String> {
        let settings: Result<McpSettings, _> =
            serde_json::from_value(Value::Object(table.own.clone()));
        let settings = settings.map(|settings| settings.for_server(&table.name, &self.context));
        let Ok(Ok(settings)) = settings else {
            return Vec::new();
        };
        let server = Server::new(settings, Some(self.context.state.clone()));
        let tools = server.tools();
        tools.iter().map(|tool| tool.name().to_owned()).collect()
    }
}

/// Whether a table could bring a tool of this name.
pub fn may_bring(name: &str, own: &Map<String, Value>, tool: &str) -> bool {
    let named = |key: &str| {
        let names = own.get(key).and_then(Value::as_object);
        names.is_some_and(|names| names.values().any(|name| name == tool))
    };
    own.get("prefix") == Some(&json!(false))
        || tool.starts_with(&steadyhand_mcp::names::prefix(name))
        || named("rename")
        || named("alias")
}

/// The command as it is written: references not replaced, what looks like a key hidden.
fn shown(written: &Map<String, Value>) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let command = written.get("command").map(text).unwrap_or_default();
    let args = written.get("args").and_then(Value::as_array);
    let mut words = vec![command];
    words.extend(args.into_iter().flatten().map(text));
    steadyhand::redact::text(&words.join(" ")).to_string()
}

/// An address as it is written, without what may be a secret in it.
fn shown_address(written: &str) -> String {
    if !written.contains("${") {
        return steadyhand_mcp::shown_url(written);
    }
    let (address, query) = match written.split_once('?') {
        Some((address, _)) => (address, "?…"),
        None => (written, ""),
    };
    format!("{}{query}", steadyhand::redact::text(address))
}

/// `~/…` in a path.
fn home(path: &str, context: &Context) -> String {
    match path.strip_prefix("~/") {
        Some(rest) => PathBuf::from(&context.home)
            .join(rest)
            .display()
            .to_string(),
        None => path.to_owned(),
    }
}
