//! From a configuration to tools that can be called, and from one configuration to the next while calls run.

pub mod policy;
mod standing_before;
pub mod watch;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use globset::Glob;
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use steadyhand::source::internal::InternalHandlers;
use steadyhand::{Handler, RefusedTool, Tool, ToolExecutor, ToolManager};

use crate::config::document::escaped;
use crate::config::settings::{Approval, PolicySettings};
use crate::config::{Configuration, Problem, Report, Resolver, Surroundings, ToolTable};
use crate::documents::{self, Documents};
use crate::net::Client;
use crate::progress::Progress;
use crate::source::{Context, Fault, Kind, builtin};
use standing_before::{Disabled, NeedsApproval, Paced, Scrubbed};

/// The tools of a configuration, ready to be called. Cheap to clone: clones are the same runtime.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

struct Inner {
    options: Options,
    manager: ToolManager,
    executor: ToolExecutor,
    /// One pool of connections for all sources, across reloads.
    http: Client,
    documents: Mutex<Option<(Value, Documents)>>,
    generation: ArcSwap<Generation>,
    // One change at a time; calls never wait for it.
    changing: tokio::sync::Mutex<()>,
    last_reload: Mutex<Option<Result<u64, Arc<Report>>>>,
}

/// What a runtime is started with, besides the configuration.
#[derive(Clone)]
pub struct Options {
    /// Variables, folders, the key store.
    pub surroundings: Surroundings,
    /// Where state is kept.
    pub state: PathBuf,
    /// Services of the host application.
    pub internal: InternalHandlers,
    /// Told while something takes long.
    pub progress: Progress,
    /// Tools that need approval and have it: names, or patterns.
    pub approved: Vec<String>,
    /// The bare error, even where a fallback is configured.
    pub without_fallbacks: bool,
}

/// One configuration in force.
pub struct Generation {
    /// Counts from 1.
    pub number: u64,
    /// The settings.
    pub configuration: Configuration,
    /// Sources that could not be loaded, and tools that were refused.
    pub problems: Vec<SourceProblem>,
    sources: Vec<Loaded>,
}

/// Something that is missing from the tools, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceProblem {
    /// The source, or the tool.
    pub name: String,
    /// What happened, and what to do.
    pub reason: String,
    /// Where it is configured.
    pub place: Option<String>,
}

/// A source with the tools it brought. Its handlers are kept as long as its settings stay the same.
#[derive(Clone)]
struct Loaded {
    name: String,
    kind: &'static str,
    /// Resolved, so it may hold secrets: never shown.
    settings: Value,
    policy: PolicySettings,
    each: Vec<(String, PolicySettings)>,
    defaults: PolicySettings,
    raw: Vec<Tool>,
    tools: Vec<Tool>,
    unavailable: Option<String>,
}

impl Options {
    /// The surroundings of this process, state in the usual folder, nobody watching.
    pub fn new(surroundings: Surroundings) -> Options {
        Options {
            state: surroundings.state_folder(),
            surroundings,
            internal: InternalHandlers::new(),
            progress: Progress::silent(),
            approved: Vec::new(),
            without_fallbacks: false,
        }
    }
}

impl Runtime {
    /// Loads every source. A source that fails is a problem of that source: the others work.
    pub async fn start(configuration: Configuration, options: Options) -> Runtime {
        let manager = ToolManager::new();
        let runtime = Runtime {
            inner: Arc::new(Inner {
                executor: ToolExecutor::new(manager.clone()),
                manager,
                http: Client::new(),
                documents: Mutex::new(None),
                generation: ArcSwap::from_pointee(Generation::empty()),
                changing: tokio::sync::Mutex::new(()),
                last_reload: Mutex::new(None),
                options,
            }),
        };
        runtime.put_in_force(configuration).await;
        runtime
    }

    /// Runs calls.
    pub fn executor(&self) -> &ToolExecutor {
        &self.inner.executor
    }

    /// The tools.
    pub fn manager(&self) -> &ToolManager {
        &self.inner.manager
    }

    /// The configuration in force.
    pub fn generation(&self) -> Arc<Generation> {
        self.inner.generation.load_full()
    }

    /// Why a tool is listed but cannot be called.
    pub fn unavailable(&self, tool: &str) -> Option<String> {
        let generation = self.generation();
        let source = generation
            .sources
            .iter()
            .find(|source| source.brings(tool))?;
        source.unavailable.clone()
    }

    /// Reads the file again. With a problem everything stays as it is, and the report says what is wrong.
    pub async fn reload(&self) -> Result<u64, Arc<Report>> {
        let file = self.generation().configuration.file.clone();
        let surroundings = self.inner.options.surroundings.clone();
        let read = move || Configuration::load(file.as_deref(), &surroundings);
        let loaded = match tokio::task::spawn_blocking(read).await {
            Ok(loaded) => loaded.map_err(Arc::new),
            Err(error) => Err(Arc::new(Report {
                subject: "the configuration".to_owned(),
                problems: vec![Problem::error(error.to_string())],
            })),
        };
        let result = match loaded {
            Ok(configuration) => Ok(self.put_in_force(configuration).await),
            Err(report) => Err(report),
        };
        match &result {
            Ok(generation) => tracing::info!(generation, "the configuration is reloaded"),
            Err(report) => tracing::error!(%report, "the configuration stays as it was"),
        }
        let mut last = self
            .inner
            .last_reload
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *last = Some(result.clone());
        result
    }

    /// How the last reload went.
    pub fn last_reload(&self) -> Option<Result<u64, Arc<Report>>> {
        self.inner
            .last_reload
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Where a tool's policy has a value from: `steadyhand.toml:62`, a variable, or the built-in default.
    pub fn origin_of_policy(&self, tool: &str, pointer: &str) -> String {
        let generation = self.generation();
        let document = &generation.configuration.document;
        let source = generation.sources.iter().find(|source| source.brings(tool));
        let mut places = Vec::new();
        if let Some(source) = source {
            let at = format!("/tools/{}", escaped(&source.name));
            let each = source
                .each
                .iter()
                .rev()
                .filter(|(pattern, _)| applies(pattern, tool));
            places.extend(
                each.map(|(pattern, _)| format!("{at}/each/{}/{pointer}", escaped(pattern))),
            );
            places.push(format!("{at}/{pointer}"));
        }
        places.push(format!("/defaults/{pointer}"));
        let origin = places.iter().find_map(|place| document.origin(place));
        origin.map_or("default".to_owned(), |origin| origin.short())
    }

    /// Waits, for at most this long, until nothing is left of what calls have started.
    pub async fn settle(&self, limit: Duration) {
        crate::source::command::settle(limit).await;
    }

    /// `rag_query` over the folders that are configured; the index goes on if they are still the same.
    fn offer_documents(&self, configuration: &Configuration) {
        let settings = configuration.document.value.get("documents").cloned().unwrap_or_default();
        let mut current = self.inner.documents.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|(before, _)| *before == settings) {
            return;
        }
        let options = &self.inner.options;
        let documents = documents::register(
            &options.internal,
            configuration.root.documents.clone(),
            &configuration.folder,
            &options.state,
            &options.progress,
        );
        *current = Some((settings, documents));
    }

    async fn put_in_force(&self, configuration: Configuration) -> u64 {
        let _changing = self.inner.changing.lock().await;
        let before = self.generation();
        let mut next = Generation {
            number: before.number + 1,
            configuration,
            problems: Vec::new(),
            sources: Vec::new(),
        };
        self.offer_documents(&next.configuration);
        let context = self.context(&next.configuration);
        let tables = match next.configuration.file {
            Some(_) => next.configuration.tools.clone(),
            None => all_builtins(),
        };
        for table in tables {
            let (source, problem) = self
                .load(&table, &next.configuration, &context, &before)
                .await;
            next.sources.push(source);
            next.problems.extend(problem);
        }
        let tools = next
            .sources
            .iter()
            .flat_map(|source| source.tools.iter().cloned());
        let refused = self.inner.manager.replace_all(tools);
        next.problems
            .extend(refused.into_iter().map(SourceProblem::from));
        let number = next.number;
        self.inner.generation.store(Arc::new(next));
        number
    }

    fn context(&self, configuration: &Configuration) -> Context {
        let options = &self.inner.options;
        Context {
            folder: configuration.folder.clone(),
            state: options.state.clone(),
            internal: options.internal.clone(),
            progress: options.progress.clone(),
            http: self.inner.http.clone(),
        }
    }

    async fn load(
        &self,
        table: &ToolTable,
        configuration: &Configuration,
        context: &Context,
        before: &Generation,
    ) -> (Loaded, Option<SourceProblem>) {
        let options = &self.inner.options;
        let mut settings = Value::Object(table.own.clone());
        let resolver = Resolver::new(options.surroundings.clone(), configuration.folder.clone());
        let resolution = resolver.resolve_tree(&mut settings);
        let at = format!("/tools/{}", escaped(&table.name));
        let unavailable = resolution.unresolved.first().map(|(field, unresolved)| {
            let pointer = format!("{at}{field}");
            let place = configuration
                .document
                .nearest_origin(&pointer)
                .map(|origin| origin.short());
            let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
            format!(
                "'{}' is disabled: {} {}{place}; {}",
                table.name, unresolved.reference, unresolved.reason, unresolved.help
            )
        });
        let old = before.sources.iter().find(|old| {
            old.name == table.name && old.kind == table.kind.name && old.settings == settings
        });
        let mut loaded = Loaded {
            name: table.name.clone(),
            kind: table.kind.name,
            policy: table.policy.clone(),
            each: table.each.clone(),
            defaults: configuration.root.defaults.clone(),
            raw: Vec::new(),
            tools: Vec::new(),
            unavailable,
            settings,
        };
        let mut problem = None;
        match old {
            Some(old) => loaded.raw.clone_from(&old.raw),
            None => match bring(table.kind, &table.name, &loaded.settings, context).await {
                Ok(tools) => loaded.raw = guarded(tools, &loaded, resolution.secrets),
                Err(reason) => {
                    let place = configuration.document.nearest_origin(&at);
                    let place = place.map(|origin| origin.short());
                    problem = Some(SourceProblem {
                        name: table.name.clone(),
                        reason: reason.clone(),
                        place,
                    });
                    // What worked before goes on working; what never did is listed with the reason.
                    let last_good = before.sources.iter().find(|old| old.name == table.name);
                    loaded.raw = match last_good {
                        Some(last_good) => last_good.raw.clone(),
                        None if table.kind.brings_many => Vec::new(),
                        None => vec![placeholder(table, &reason)],
                    };
                    loaded.unavailable = loaded.unavailable.or(Some(reason));
                }
            },
        }
        loaded.tools = match old {
            Some(old) if old.has_policy_of(&loaded) => old.tools.clone(),
            _ => loaded
                .raw
                .iter()
                .map(|tool| loaded.with_policy(tool, options))
                .collect(),
        };
        (loaded, problem)
    }
}

impl Loaded {
    fn brings(&self, tool: &str) -> bool {
        self.tools
            .iter()
            .any(|mine| mine.name() == tool || mine.lc_name() == Some(tool))
    }

    fn has_policy_of(&self, other: &Loaded) -> bool {
        self.policy == other.policy && self.each == other.each && self.defaults == other.defaults
    }

    /// The settings that apply to one of its tools, the weakest first: defaults, source, single tool.
    fn settings_of(&self, tool: &str) -> Vec<PolicySettings> {
        let mut settings = vec![self.defaults.clone(), self.policy.clone()];
        for (pattern, policy) in &self.each {
            if applies(pattern, tool) {
                settings.push(policy.clone());
            }
        }
        settings
    }

    fn with_policy(&self, raw: &Tool, options: &Options) -> Tool {
        let settings = self.settings_of(raw.name());
        let last =
            |pick: fn(&PolicySettings) -> Option<Approval>| settings.iter().rev().find_map(pick);
        let mut handler: Arc<dyn Handler> = Arc::clone(raw.handler());
        let rate = settings
            .iter()
            .rev()
            .find_map(|settings| settings.limits.as_ref()?.rate);
        if let Some(rate) = rate {
            handler = Arc::new(Paced::new(handler, rate));
        }
        let is_approved = options
            .approved
            .iter()
            .any(|pattern| applies(pattern, raw.name()));
        if !is_approved
            && last(|settings| settings.approval).is_some_and(|needs| needs != Approval::Never)
        {
            handler = Arc::new(NeedsApproval);
        }
        let without_fallbacks = options.without_fallbacks;
        raw.clone()
            .from_source(self.name.as_str())
            .run_by(handler)
            .adjusted(move |policy| {
                settings
                    .iter()
                    .for_each(|settings| policy::lay_over(policy, settings));
                if without_fallbacks {
                    policy.fallback = None;
                }
            })
    }
}

/// Whether a pattern of `each` or `--approve` means this tool.
fn applies(pattern: &str, tool: &str) -> bool {
    pattern == tool || Glob::new(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(tool))
}

async fn bring(
    kind: &'static Kind,
    name: &str,
    settings: &Value,
    context: &Context,
) -> Result<Vec<Tool>, String> {
    let in_words = |fault: Fault| match fault.help {
        Some(help) => format!("{}; {help}", fault.message),
        None => fault.message,
    };
    let source = (kind.build)(name, settings.clone(), context).map_err(in_words)?;
    source.tools().await.map_err(|error| error.reason)
}

/// Tools that cannot run yet say why; the others cannot give away what their settings hold.
fn guarded(tools: Vec<Tool>, loaded: &Loaded, secrets: Vec<SecretString>) -> Vec<Tool> {
    if let Some(reason) = &loaded.unavailable {
        let disabled: Arc<dyn Handler> = Arc::new(Disabled {
            reason: reason.clone(),
        });
        return tools
            .into_iter()
            .map(|tool| tool.run_by(Arc::clone(&disabled)))
            .collect();
    }
    if secrets.is_empty() {
        return tools;
    }
    let scrubbed = |tool: Tool| {
        let handler = Arc::new(Scrubbed::new(Arc::clone(tool.handler()), secrets.clone()));
        tool.run_by(handler)
    };
    tools.into_iter().map(scrubbed).collect()
}

/// A tool that is listed although its source could not be built.
fn placeholder(table: &ToolTable, reason: &str) -> Tool {
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
        .filter(|input| input.is_object())
        .cloned();
    let schema = schema.unwrap_or_else(|| json!({"type": "object"}));
    let handler = Arc::new(Disabled {
        reason: reason.to_owned(),
    });
    Tool::new(&table.name, description, schema, handler).of_kind(table.kind.name)
}

/// With no configuration, all builtins are callable by their own names.
fn all_builtins() -> Vec<ToolTable> {
    let kind = crate::source::kind("builtin").expect("a kind of the table");
    let table = |name: &str| {
        let mut own = Map::new();
        own.insert("use".to_owned(), json!(name));
        ToolTable {
            name: name.to_owned(),
            kind,
            own,
            policy: PolicySettings::default(),
            each: Vec::new(),
        }
    };
    builtin::names().iter().map(|name| table(name)).collect()
}

impl Generation {
    fn empty() -> Generation {
        Generation {
            number: 0,
            configuration: Configuration::empty(),
            problems: Vec::new(),
            sources: Vec::new(),
        }
    }
}

impl From<RefusedTool> for SourceProblem {
    fn from(refused: RefusedTool) -> SourceProblem {
        SourceProblem {
            name: refused.name,
            reason: refused.fault,
            place: None,
        }
    }
}
