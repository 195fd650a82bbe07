//! One source with the tools it brought, and the policy laid over each of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use steadyhand::{Handler, Tool};
use steadyhand_mcp::Server;

use super::review::Review;
use super::standing_before::{Disabled, Paced, Scrubbed, Why};
use super::{Options, SourceProblem, policy};
use crate::approvals::{Ask, NobodyToAsk};
use crate::cassette;
use crate::chaos::Chaotic;
use crate::scrub;
use crate::source::mcp::PinMode;
use crate::source::{self, Context, LeftOut, Source};
use steadyhand::wildcard::wild;
use steadyhand_config::extensions::Fault;
use steadyhand_config::progress::Progress;
use steadyhand_config::reference::{Resolution, Resolver, Unresolved};
use steadyhand_config::secret;
use steadyhand_config::settings::{Approval, PolicySettings};
use steadyhand_config::{Configuration, ToolTable};

/// A source and its tools. The handlers are kept as long as the source's own settings stay the same.
#[derive(Clone)]
pub(super) struct Loaded {
    pub(super) name: String,
    /// JSON Pointer to its table.
    pub(super) pointer: String,
    pub(super) each: Vec<(String, PolicySettings)>,
    /// What callers get: the raw tools with their policies.
    pub(super) tools: Vec<Tool>,
    /// Why the tools are listed but cannot be called.
    unavailable: Option<String>,
    /// A server that the configuration has switched off.
    pub(super) is_off: bool,
    left_out: Vec<LeftOut>,
    pub(super) problem: Option<SourceProblem>,
    place: Option<String>,
    kind: &'static str,
    /// Resolved, so it may hold secrets: never shown. None when it could not be built from them.
    settings: Option<Value>,
    policy: PolicySettings,
    defaults: PolicySettings,
    pub(super) source: Option<Arc<dyn Source>>,
    /// As the source made them.
    made: Vec<Tool>,
    /// The same, unable to give away what the settings hold.
    raw: Vec<Tool>,
    secrets: Vec<SecretString>,
    alias: Option<String>,
    lacks_a_secret: bool,
    /// Tools of a server that are not used, since another source brings one of the same name.
    pub(super) shadowed: Vec<Shadowed>,
    /// What its server says of itself, as it was looked at last.
    pub(super) review: Arc<Review>,
}

/// A tool of a server that is not used, since another source brings one of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shadowed {
    pub(super) tool: String,
    /// The source whose tool is used.
    pub(super) by: String,
    /// That is a server, too.
    pub(super) by_server: bool,
}

impl Shadowed {
    /// Names both.
    pub(super) fn in_words(&self, server: &str) -> String {
        let Shadowed {
            tool,
            by,
            by_server,
        } = self;
        match by_server {
            true => format!(
                "MCP servers {server} and {by} both bring a tool named {tool}; the one of {by} is used. To have both, remove prefix = false or write rename = {{ … }} under [mcp.{server}]"
            ),
            false => format!(
                "MCP server {server} brings a tool named {tool}, as [tools.{by}] does, which is used. To have both, write rename = {{ … }} under [mcp.{server}]"
            ),
        }
    }
}

impl Loaded {
    /// Builds the source of a table and asks it for its tools; where nothing has changed since
    /// `before`, that one goes on.
    pub(super) async fn load(
        table: &ToolTable,
        configuration: &Configuration,
        context: &Context,
        options: &Options,
        before: Option<&Loaded>,
    ) -> Loaded {
        let (settings, resolution) = resolved(table, configuration, options).await;
        let unresolved = unresolved(table, &resolution, configuration);
        let unavailable = table.unusable.clone().or(unresolved);
        let mut secrets = resolution.secrets;
        secrets.extend(table.secrets.iter().cloned());
        secrets.extend(literal_secrets(table, &settings));
        scrub::known().learn(secrets.iter().map(ExposeSecret::expose_secret));
        let mut loaded = Loaded {
            name: table.name.clone(),
            pointer: table.pointer(),
            place: table.place.clone(),
            kind: table.kind.name,
            policy: table.policy.clone(),
            each: table.each.clone(),
            defaults: configuration.root.defaults.clone(),
            tools: Vec::new(),
            left_out: Vec::new(),
            problem: None,
            source: None,
            made: Vec::new(),
            raw: Vec::new(),
            secrets,
            alias: table.alias.clone(),
            lacks_a_secret: unavailable.is_some(),
            shadowed: Vec::new(),
            review: Arc::default(),
            settings: None,
            unavailable,
            is_off: table.is_server() && settings["disabled"] == true,
        };
        if loaded.is_off {
            return loaded;
        }
        // A server is not started with what could not be looked up.
        if let (true, Some(reason)) = (table.is_server(), loaded.unavailable.clone()) {
            loaded.failed(reason, table, before);
            loaded.look_at_definitions(options).await;
            loaded.tools = loaded.policies_laid(options);
            return loaded;
        }
        let same = before
            .filter(|old| old.kind == loaded.kind && old.settings.as_ref() == Some(&settings));
        match same {
            Some(old) => loaded.go_on_from(old),
            None => {
                let context = Context {
                    place: table.place.clone(),
                    written: table.shown.clone().unwrap_or_else(|| table.own.clone()),
                    secrets: loaded.secrets.clone(),
                    ..context.clone()
                };
                let of_before = before.filter(|old| old.kind == loaded.kind);
                let adapted = of_before
                    .and_then(|old| old.source.clone())
                    .filter(|source| source.adapt(&settings, &context));
                let brought = match adapted {
                    Some(source) => {
                        let tools = source.tools().await.map_err(|error| error.reason);
                        tools.map(|tools| (source, tools))
                    }
                    None => bring(table, settings.clone(), &context, options).await,
                };
                match brought {
                    Ok((source, tools)) => {
                        loaded.left_out = source.left_out();
                        loaded.source = Some(source);
                        loaded.settings = Some(settings);
                        loaded.raw = tools.iter().map(|tool| loaded.guarded(tool)).collect();
                        loaded.made = tools;
                    }
                    Err(reason) => loaded.failed(reason, table, before),
                }
            }
        }
        loaded.look_at_definitions(options).await;
        loaded.tools = match same {
            Some(old) if old.has_policy_of(&loaded) && old.has_tools_of(&loaded) => {
                old.tools.clone()
            }
            _ => loaded.policies_laid(options),
        };
        loaded
    }

    fn policies_laid(&self, options: &Options) -> Vec<Tool> {
        let raw = self.raw.iter();
        raw.map(|tool| self.with_policy(tool, options)).collect()
    }

    /// The same source with the tools it has now. A tool that is still the same goes on as it is.
    pub(super) async fn renewed(&self, options: &Options) -> Option<Loaded> {
        let source = self.source.clone()?;
        let made = source.tools().await.ok()?;
        let mut next = self.clone();
        next.left_out = source.left_out();
        next.take_over(made);
        next.look_at_definitions(options).await;
        next.tools = Vec::with_capacity(next.made.len());
        let places = self.places();
        for (made, raw) in next.made.iter().zip(&next.raw) {
            let place = places.get(made.name()).copied();
            let is_same = |place: &usize| {
                self.made[*place].is_same_as(made)
                    && self.holds_hints_of(made.name()) == next.holds_hints_of(made.name())
            };
            let with_policy = match place.filter(is_same) {
                Some(place) => self.tools[place].clone(),
                None => next.with_policy(raw, options),
            };
            next.tools.push(with_policy);
        }
        Some(next)
    }

    /// These are its tools from here on. One that is still the same keeps its handler.
    fn take_over(&mut self, made: Vec<Tool>) {
        let places = self.places();
        let raw = made.iter().map(|tool| {
            let place = places.get(tool.name()).copied();
            match place.filter(|place| self.made[*place].is_same_as(tool)) {
                Some(place) => self.raw[place].clone(),
                None => self.guarded(tool),
            }
        });
        self.raw = raw.collect();
        self.made = made;
    }

    fn places(&self) -> HashMap<String, usize> {
        let names = self.made.iter().map(|tool| tool.name().to_owned());
        names.zip(0..).collect()
    }

    fn has_tools_of(&self, other: &Loaded) -> bool {
        let pairs = self.made.iter().zip(&other.made);
        self.made.len() == other.made.len()
            && self.review.hints_held == other.review.hints_held
            && pairs
                .into_iter()
                .all(|(one, another)| one.is_same_as(another))
    }

    fn holds_hints_of(&self, tool: &str) -> bool {
        self.review.hints_held.contains(tool)
    }

    /// Compares what a server says of itself with what it said before.
    async fn look_at_definitions(&mut self, options: &Options) {
        let Some(server) = self.server().cloned() else {
            return;
        };
        let said = self
            .settings
            .as_ref()
            .and_then(|settings| settings.get("pin"));
        let mode = said.and_then(|said| PinMode::deserialize(said).ok());
        let pins = options.pins.as_ref().filter(|_| self.is_server());
        let review = Review::of(&server, mode.unwrap_or_default(), pins).await;
        // The tools and what was said of them at the same moment.
        self.take_over(review.tools.clone());
        self.review = Arc::new(review);
    }

    /// Whether its table is one of an MCP server.
    pub(super) fn is_server(&self) -> bool {
        self.pointer.starts_with("/mcp/")
    }

    /// Where its table stands.
    pub(super) fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// Whether a reference in its settings stands for nothing.
    pub(super) fn lacks_a_secret(&self) -> bool {
        self.lacks_a_secret
    }

    /// The MCP server behind it.
    pub(super) fn server(&self) -> Option<&Server> {
        self.source.as_ref()?.server()
    }

    /// Why the tools are listed but cannot be called.
    pub(super) fn unavailable(&self) -> Option<String> {
        let of_source = || self.source.as_ref()?.unavailable();
        self.unavailable.clone().or_else(of_source)
    }

    /// What it found and cannot offer.
    pub(super) fn left_out(&self) -> Vec<LeftOut> {
        let shadowed = self.shadowed.iter().map(|it| LeftOut {
            name: it.tool.clone(),
            reason: it.in_words(&self.name),
        });
        let kept_away = self.review.kept_away.iter().map(|(tool, reason)| LeftOut {
            name: tool.clone(),
            reason: reason.clone(),
        });
        let off = self
            .tools
            .iter()
            .filter(|tool| self.is_switched_off(tool.name()));
        let off = off.map(|tool| LeftOut {
            name: tool.name().to_owned(),
            reason: format!(
                "it is switched off by enabled = false; steadyhand tools enable {}",
                tool.name()
            ),
        });
        let left_out = self.left_out.iter().cloned();
        left_out
            .chain(shadowed)
            .chain(kept_away)
            .chain(off)
            .collect()
    }

    /// The tools that callers get.
    pub(super) fn offered(&self) -> impl Iterator<Item = &Tool> {
        let is_left_out = |tool: &&Tool| {
            let shadowed = self.shadowed.iter().map(|it| &it.tool);
            let kept_away = self.review.kept_away.iter().map(|(name, _)| name);
            let mut left_out = shadowed.chain(kept_away);
            left_out.any(|name| name == tool.name()) || self.is_switched_off(tool.name())
        };
        self.tools.iter().filter(move |tool| !is_left_out(tool))
    }

    /// Whether the settings leave a tool out.
    pub(super) fn is_switched_off(&self, tool: &str) -> bool {
        let said = self.each.iter().rev();
        let said =
            said.filter(|(pattern, policy)| policy.enabled.is_some() && self.means(pattern, tool));
        let said = said
            .map(|(_, policy)| policy)
            .chain([&self.policy, &self.defaults]);
        let mut said = said.filter_map(|policy| policy.enabled);
        said.next() == Some(false)
    }

    /// Whether a tool of this name was taken over from it, offered or not.
    pub(super) fn has_seen(&self, tool: &str) -> bool {
        self.made.iter().any(|mine| mine.name() == tool)
    }

    pub(super) fn brings(&self, tool: &str) -> bool {
        self.offered()
            .any(|mine| mine.name() == tool || mine.lc_name() == Some(tool))
    }

    /// Whether a pattern of `each` means this tool.
    pub(super) fn means(&self, pattern: &str, tool: &str) -> bool {
        match &self.source {
            Some(source) => source.means(pattern, tool),
            None => wild(pattern, tool),
        }
    }

    /// Whether a tool of it is known to change nothing: by what its settings, its document or its server say.
    pub(super) fn only_reads(&self, tool: &Tool) -> bool {
        match tool.kind() {
            // Builtins are of this program: those that act are not safe to repeat.
            "mock" | "builtin" => true,
            "http" => {
                let method = self.settings.as_ref().and_then(|it| it["method"].as_str());
                let is_reading = |method: &str| matches!(method, "GET" | "HEAD");
                method.is_none_or(|method| is_reading(&method.to_ascii_uppercase()))
            }
            "openapi" => ["GET *", "HEAD *"]
                .iter()
                .any(|pattern| self.means(pattern, tool.name())),
            "mcp" => self.review.only_reads(tool.name()),
            _ => false,
        }
    }

    /// Policies under `each` that mean no tool: an approval that is asked for nowhere, say.
    pub(super) fn remarks(&self) -> Vec<SourceProblem> {
        // The tools of a server that has not been up yet are not known.
        let is_unknown = self.tools.is_empty() && self.server().is_some();
        if self.source.is_none() || is_unknown {
            return Vec::new();
        }
        let means_none = |pattern: &str| {
            !self
                .tools
                .iter()
                .any(|tool| self.means(pattern, tool.name()))
        };
        let unmatched = self.each.iter().filter(|(pattern, _)| means_none(pattern));
        unmatched
            .map(|(pattern, _)| SourceProblem {
                name: self.name.clone(),
                reason: format!(
                    "each.\"{pattern}\" means none of its tools, so that policy applies to nothing"
                ),
                place: self.place.clone(),
            })
            .collect()
    }

    fn go_on_from(&mut self, old: &Loaded) {
        self.made.clone_from(&old.made);
        self.raw.clone_from(&old.raw);
        self.source.clone_from(&old.source);
        self.settings.clone_from(&old.settings);
        self.left_out.clone_from(&old.left_out);
    }

    /// What worked before goes on working; what never did is listed with the reason.
    fn failed(&mut self, reason: String, table: &ToolTable, before: Option<&Loaded>) {
        let why = match self.unavailable {
            Some(_) => Why::Secret,
            None => Why::Settings,
        };
        let reason = self.unavailable.clone().unwrap_or(reason);
        let place = table.place.clone();
        self.problem = Some(SourceProblem {
            name: table.name.clone(),
            reason: reason.clone(),
            place,
        });
        match before.filter(|old| old.unavailable.is_none() && !old.raw.is_empty()) {
            Some(last_good) => {
                self.made.clone_from(&last_good.made);
                self.raw.clone_from(&last_good.raw);
                self.source.clone_from(&last_good.source);
                self.unavailable = None;
            }
            None => {
                if !table.kind.brings_many {
                    self.raw = vec![placeholder(table, &reason, why)];
                }
                self.unavailable = Some(reason);
            }
        }
    }

    /// A tool that cannot run yet says why; one that can cannot give away what its settings hold.
    fn guarded(&self, tool: &Tool) -> Tool {
        let own = Arc::clone(tool.handler());
        let handler: Arc<dyn Handler> = match &self.unavailable {
            Some(reason) => Arc::new(Disabled {
                reason: reason.clone(),
                why: Why::Secret,
            }),
            None => match self.server().map(Server::settings) {
                Some(server) if server.has_secrets => match server.hide.clone() {
                    Some(hide) => Arc::new(Scrubbed::by(own, hide)),
                    None => own,
                },
                Some(_) => own,
                None if self.secrets.is_empty() => own,
                None => Arc::new(Scrubbed::new(own, self.secrets.clone())),
            },
        };
        let tool = tool.clone().run_by(handler).from_source(self.name.as_str());
        match &self.alias {
            Some(alias) => tool.alias(alias),
            None => tool,
        }
    }

    fn has_policy_of(&self, other: &Loaded) -> bool {
        self.policy == other.policy && self.each == other.each && self.defaults == other.defaults
    }

    /// The settings that apply to one of its tools, the weakest first: defaults, source, single tool.
    pub(super) fn settings_of(&self, tool: &str) -> Vec<PolicySettings> {
        let mut settings = vec![self.defaults.clone(), self.policy.clone()];
        let each = self
            .each
            .iter()
            .filter(|(pattern, _)| self.means(pattern, tool));
        settings.extend(each.map(|(_, policy)| policy.clone()));
        settings
    }

    fn with_policy(&self, raw: &Tool, options: &Options) -> Tool {
        let settings = self.settings_of(raw.name());
        let mut handler: Arc<dyn Handler> = Arc::clone(raw.handler());
        let rate = settings
            .iter()
            .rev()
            .find_map(|settings| settings.limits.as_ref()?.rate);
        if let Some(rate) = rate {
            handler = Arc::new(Paced::new(handler, rate));
        }
        if let Some(chaos) = options.chaos.as_ref()
            && chaos.concerns(raw.name())
        {
            handler = Arc::new(Chaotic::new(handler, Arc::clone(chaos)));
        }
        let approval = settings.iter().rev().find_map(|settings| settings.approval);
        let is_approved = options
            .approved
            .iter()
            .any(|pattern| wild(pattern, raw.name()));
        let mut tool = raw.clone().run_by(handler);
        if self.holds_hints_of(raw.name()) {
            // What it says of itself is not what was accepted: only what the configuration says makes it repeatable.
            tool = tool.adjusted(|policy| policy.safe_to_repeat = false);
        }
        let remembers = match approval {
            None | Some(Approval::Never) => None,
            Some(Approval::Ask) => Some(true),
            Some(Approval::Always) => Some(false),
        };
        if let Some(remembers) = remembers.filter(|_| !is_approved) {
            tool = tool.gated_by(match options.desk.clone() {
                Some(desk) => Arc::new(Ask { desk, remembers }),
                None => Arc::new(NobodyToAsk),
            });
        }
        let without_fallbacks = options.without_fallbacks;
        tool.adjusted(move |policy| {
            settings
                .iter()
                .for_each(|settings| policy::lay_over(policy, settings));
            if without_fallbacks {
                policy.fallback = None;
            }
        })
    }
}

/// What a server is given in the clear and must be hidden all the same: by its name, or by its look.
fn literal_secrets(table: &ToolTable, settings: &Value) -> Vec<SecretString> {
    let mut secrets = Vec::new();
    if !table.is_server() {
        return secrets;
    }
    let named = ["env", "headers"].map(|key| settings.get(key).and_then(Value::as_object));
    let named = named.into_iter().flatten().flatten();
    let args = settings.get("args").and_then(Value::as_array);
    let args = args.into_iter().flatten().map(|arg| ("", arg));
    for (name, value) in named
        .map(|(name, value)| (name.as_str(), value))
        .chain(args)
    {
        if let Some(value) = value.as_str()
            && secret::is_secret(&[name], value)
        {
            secret::keep_secret(&mut secrets, value);
        }
    }
    secrets
}

/// The settings of a table with its references replaced.
async fn resolved(
    table: &ToolTable,
    configuration: &Configuration,
    options: &Options,
) -> (Value, Resolution) {
    if table.is_imported {
        return (Value::Object(table.own.clone()), Resolution::default());
    }
    let resolver = Resolver::new(options.surroundings.clone(), configuration.folder.clone());
    let (templates, mut settings) = (table.kind.templates, table.own.clone());
    let imported = table.imported_keys.clone();
    let resolve = move || {
        let mut resolution = Resolution::default();
        let ours = settings
            .iter_mut()
            .filter(|(key, _)| !imported.contains(key));
        for (key, value) in ours {
            let resolver = resolver
                .clone()
                .in_templates(templates.contains(&key.as_str()));
            let of_key = resolver.resolve_tree_of(key, value);
            resolution.unresolved.extend(of_key.unresolved);
            resolution.secrets.extend(of_key.secrets);
        }
        (Value::Object(settings), resolution)
    };
    // A locked key store may take its seconds to answer.
    match tokio::task::spawn_blocking(resolve).await {
        Ok(resolved) => resolved,
        Err(error) => {
            let lost = Unresolved {
                reference: "${…}".to_owned(),
                column: 1,
                reason: format!("it could not be looked up ({error})"),
                help: "please report this".to_owned(),
            };
            let resolution = Resolution {
                unresolved: vec![(String::new(), lost)],
                ..Resolution::default()
            };
            (Value::Object(table.own.clone()), resolution)
        }
    }
}

/// Why a tool is disabled, if one of its references stands for nothing.
fn unresolved(
    table: &ToolTable,
    resolution: &Resolution,
    configuration: &Configuration,
) -> Option<String> {
    let (field, unresolved) = resolution.unresolved.first()?;
    let pointer = format!("{}{field}", table.pointer());
    let origin = configuration.document.nearest_origin(&pointer);
    let place = origin
        .map(|origin| format!(" ({})", origin.short()))
        .unwrap_or_default();
    Some(format!(
        "'{}' is disabled: {} in its {}{place}: {}; {}",
        table.name,
        unresolved.reference,
        steadyhand_config::words::dotted(field),
        unresolved.reason,
        unresolved.help
    ))
}

async fn bring(
    table: &ToolTable,
    settings: Value,
    context: &Context,
    options: &Options,
) -> Result<(Arc<dyn Source>, Vec<Tool>), String> {
    let in_words = |fault: Fault| {
        let place = match fault.at.is_empty() {
            true => String::new(),
            false => format!("{}: ", steadyhand_config::words::dotted(&fault.at)),
        };
        let help = fault
            .help
            .map(|help| format!("; {help}"))
            .unwrap_or_default();
        format!("{place}{}{help}", fault.message)
    };
    let source = match &options.replay {
        Some(tape) => cassette::source(tape),
        None => {
            let build = source::builder(table.kind);
            let build =
                build.ok_or_else(|| format!("no file can name the kind {}", table.kind.name))?;
            build(&table.name, settings, context).map_err(in_words)?
        }
    };
    let tools = told(
        &context.progress,
        &format!("loading {}", table.name),
        source.tools(),
    )
    .await;
    let tools = tools.map_err(|error| error.reason)?;
    Ok((source, tools))
}

/// Says every second that something still goes on.
async fn told<T>(progress: &Progress, what: &str, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    let mut seconds = 0;
    loop {
        match tokio::time::timeout(Duration::from_secs(1), &mut work).await {
            Ok(done) => {
                progress.finished(what);
                return done;
            }
            Err(_) => {
                progress.step(what, seconds, 0);
                seconds += 1;
            }
        }
    }
}

/// A tool that is listed although its source could not be built.
fn placeholder(table: &ToolTable, reason: &str, why: Why) -> Tool {
    let text = |key: &str| {
        table
            .own
            .get(key)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let description =
        text("description").unwrap_or_else(|| format!("A tool of kind {}", table.kind.name));
    let schema = table
        .own
        .get("input")
        .cloned()
        .unwrap_or_else(|| json!({"type": "object"}));
    let handler = Arc::new(Disabled {
        reason: reason.to_owned(),
        why,
    });
    Tool::new(&table.name, description, schema, handler)
        .of_kind(table.kind.name)
        .from_source(table.name.as_str())
}
