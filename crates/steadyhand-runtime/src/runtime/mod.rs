//! From a configuration to tools that can be called, and from one configuration to the next while calls run.

mod inspect;
mod loaded;
pub mod policy;
mod review;
mod servers;
mod standing_before;
mod switch;
pub mod watch;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use serde_json::Map;
use serde_json::value::RawValue;
use steadyhand::source::internal::InternalHandlers;
use steadyhand::{KeyStore, RefusedTool, ToolExecutor, ToolManager};
use steadyhand_mcp::StartFailure;
use tokio::runtime::Handle;
use tokio::sync::watch::{Receiver, Sender};

use crate::approvals::Desk;
use crate::cassette::{self, Tape};
use crate::chaos::Chaos;
use crate::net::Client;
use crate::pins::Pins;
use crate::source::{Context, mcp};
use inspect::{clashes, clashes_of_servers, settle_clashes};
use loaded::Loaded;
pub use review::key_of;
pub use servers::NotUsed;
use steadyhand_config::progress::Progress;
use steadyhand_config::services::Services;
use steadyhand_config::{
    Configuration, Extensions, Problem, Report, Surroundings, ToolTable, Trust,
};
pub use switch::{NotSwitched, SWITCH, ToolSwitch};

/// The tools of a configuration, ready to be called. Cheap to clone: clones are the same runtime.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

struct Inner {
    options: Options,
    /// Where sources are started, whoever asks for it: not among the connections of one thread.
    home: Handle,
    manager: ToolManager,
    executor: ToolExecutor,
    /// One pool of connections for all sources, across reloads.
    http: Client,
    generation: ArcSwap<Generation>,
    // One change at a time; calls never wait for it.
    changing: tokio::sync::Mutex<()>,
    last_reload: Mutex<Option<Result<u64, Arc<Report>>>>,
    /// The number of the generation in force.
    changed: Sender<u64>,
    /// Counts changes of the servers' states.
    servers_changed: Sender<u64>,
}

/// The target of log lines that are no warnings, and that are shown wherever warnings are.
pub const NOTICE: &str = "steadyhand::notice";

/// What a runtime is started with, besides the configuration.
#[derive(Clone)]
pub struct Options {
    /// Variables, folders, the key store.
    pub surroundings: Surroundings,
    /// What the configuration is read with.
    pub extensions: &'static Extensions,
    /// Where state is kept.
    pub state: PathBuf,
    /// Services of the host application.
    pub internal: InternalHandlers,
    /// Services that the configuration sets up.
    pub services: Vec<Arc<dyn Services>>,
    /// Told while something takes long.
    pub progress: Progress,
    /// Tools that need approval and have it: names, or patterns.
    pub approved: Vec<String>,
    /// What servers said of themselves before; without it nothing is compared.
    pub pins: Option<Pins>,
    /// Where calls wait for a person; without one there is nobody to ask.
    pub desk: Option<Desk>,
    /// The bare error, even where a fallback is configured.
    pub without_fallbacks: bool,
    /// Servers beside those of the configuration.
    pub servers: Vec<ToolTable>,
    /// Only look: no MCP server is started.
    pub only_look: bool,
    /// Told when a server could not be started, in the words for people (SPEC V17).
    pub degraded: Degraded,
    /// Only this tool will be called: sources that can do nothing for it are not loaded.
    pub only: Option<String>,
    /// MCP clients may call through us: servers are told that they may ask them something.
    pub relays: bool,
    /// Keeps idempotency keys beyond this process.
    pub keys: Option<Arc<dyn KeyStore>>,
    /// Calls are answered from here; no source of the configuration is loaded.
    pub replay: Option<Arc<Tape>>,
    /// What is done to tools on purpose.
    pub chaos: Option<Arc<Chaos>>,
}

/// Told in words for people, and what they are about.
pub type Degraded = Arc<dyn Fn(&str, &StartFailure) + Send + Sync>;

/// One configuration in force.
pub struct Generation {
    /// Counts from 1.
    pub number: u64,
    /// The settings.
    pub configuration: Arc<Configuration>,
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

impl Options {
    /// The surroundings of this process, state in the usual folder, nobody watching.
    pub fn new(surroundings: Surroundings, extensions: &'static Extensions) -> Options {
        Options {
            state: surroundings.state_folder(),
            surroundings,
            extensions,
            internal: InternalHandlers::new(),
            services: Vec::new(),
            progress: Progress::silent(),
            approved: Vec::new(),
            desk: None,
            pins: None,
            without_fallbacks: false,
            servers: Vec::new(),
            only_look: false,
            degraded: Arc::new(|text, _| tracing::error!("{text}")),
            only: None,
            relays: false,
            keys: None,
            replay: None,
            chaos: None,
        }
    }
}

impl Runtime {
    /// Loads every source. A source that fails is a problem of that source: the others work.
    pub async fn start(configuration: Configuration, options: Options) -> Runtime {
        let manager = ToolManager::new();
        let mut executor = ToolExecutor::new(manager.clone());
        if let Some(keys) = &options.keys {
            executor = executor.with_key_store(Arc::clone(keys));
        }
        let runtime = Runtime {
            inner: Arc::new(Inner {
                executor,
                manager,
                http: Client::new(),
                generation: ArcSwap::from_pointee(Generation::empty()),
                changing: tokio::sync::Mutex::new(()),
                last_reload: Mutex::new(None),
                changed: Sender::new(0),
                servers_changed: Sender::new(0),
                home: Handle::current(),
                options,
            }),
        };
        runtime
            .inner
            .manager
            .expect(servers::OnTheirWay(runtime.weak()));
        // Nobody else has it yet: nothing else changes it.
        runtime.put_in_force(configuration).await;
        runtime
    }

    /// Runs calls.
    pub fn executor(&self) -> &ToolExecutor {
        &self.inner.executor
    }

    /// The one pool of outgoing connections.
    pub fn http(&self) -> &Client {
        &self.inner.http
    }

    /// The tools.
    pub fn manager(&self) -> &ToolManager {
        &self.inner.manager
    }

    /// The configuration in force.
    pub fn generation(&self) -> Arc<Generation> {
        self.inner.generation.load_full()
    }

    /// Reads the file again. With a problem everything stays as it is, and the report says what is wrong. It goes on when
    /// nobody waits for it any more, and what it starts stays where everything was started.
    pub async fn reload(&self) -> Result<u64, Arc<Report>> {
        let runtime = self.clone();
        let reloading = async move { runtime.read_again().await };
        let ended = self.inner.home.spawn(reloading).await;
        ended.unwrap_or_else(|error| Err(Arc::new(broken_off(error.to_string()))))
    }

    async fn read_again(&self) -> Result<u64, Arc<Report>> {
        // Before reading: of two reloads at once, the one that has read last is in force in the end.
        let _changing = self.inner.changing.lock().await;
        let before = self.generation();
        let file = before.configuration.file.clone();
        let surroundings = self.inner.options.surroundings.clone();
        let extensions = self.inner.options.extensions;
        let read = move || Configuration::load(file.as_deref(), &surroundings, extensions);
        let loaded = match tokio::task::spawn_blocking(read).await {
            Ok(loaded) => loaded.and_then(|next| not_emptied(&before.configuration, next)),
            Err(error) => Err(broken_off(error.to_string())),
        };
        let result = match loaded {
            Ok(configuration) => Ok(self.put_in_force(configuration).await),
            Err(report) => Err(Arc::new(report)),
        };
        match &result {
            Ok(generation) => {
                let tools = self.inner.manager.len();
                tracing::info!(target: NOTICE, generation, tools, "the configuration is reloaded");
            }
            Err(report) => {
                tracing::error!(%report, "the configuration stays as it was");
                for problem in &report.problems {
                    tracing::error!("{}", problem.on_one_line());
                }
            }
        }
        let is_refused = result.is_err();
        let mut last = self
            .inner
            .last_reload
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *last = Some(result.clone());
        drop(last);
        if is_refused {
            // The number stays; those who follow look at how it went.
            self.inner.changed.send_modify(|_| {});
        }
        result
    }

    /// Tells of every new generation by its number.
    pub fn changes(&self) -> Receiver<u64> {
        self.inner.changed.subscribe()
    }

    /// How the last reload went.
    pub fn last_reload(&self) -> Option<Result<u64, Arc<Report>>> {
        self.inner
            .last_reload
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// What is not the real thing here, in words: answers from a cassette, failures on purpose.
    pub fn not_real(&self) -> Vec<(&'static str, String)> {
        let options = &self.inner.options;
        let replay = options.replay.as_ref().map(|tape| {
            let file = tape.name();
            (
                "Replay",
                format!("answers come from {file}, no tool is run"),
            )
        });
        let chaos = options.chaos.as_ref().map(|chaos| {
            let (attempts, struck) = chaos.counts();
            let plan = chaos.in_words();
            let message = format!(
                "tools fail, hang or take long on purpose ({plan}): {struck} of {attempts} attempts so far"
            );
            ("Chaos", message)
        });
        replay.into_iter().chain(chaos).collect()
    }

    /// A tool as its MCP server wrote it when it was recorded.
    pub fn recorded_definition(&self, tool: &str) -> Option<Box<RawValue>> {
        self.inner.options.replay.as_ref()?.mcp_definition(tool)
    }

    /// What servers said of themselves before.
    pub fn pins(&self) -> Option<&Pins> {
        self.inner.options.pins.as_ref()
    }

    /// Which files of others are used.
    pub fn trust(&self) -> &Trust {
        self.inner.options.surroundings.trust()
    }

    /// Where state is kept.
    pub fn state(&self) -> &Path {
        &self.inner.options.state
    }

    /// Waits, for at most this long, until nothing is left of the programs that calls have started.
    pub async fn settle(&self, limit: Duration) {
        steadyhand_process::settle(limit).await;
    }

    async fn put_in_force(&self, configuration: Configuration) -> u64 {
        let before = self.generation();
        let mut next = Generation {
            number: before.number + 1,
            configuration: Arc::new(configuration),
            problems: Vec::new(),
            sources: Vec::new(),
        };
        let secret_names = next.configuration.root.defaults.redact.clone();
        steadyhand::redact::set_secret_names(secret_names.unwrap_or_default());
        let replay = self.inner.options.replay.as_deref();
        if replay.is_none() {
            let options = &self.inner.options;
            for services in &options.services {
                let (handlers, state) = (&options.internal, &options.state);
                services.offer(&next.configuration, handlers, state, &options.progress);
            }
        }
        let context = self.context(&next.configuration);
        let configured = next.configuration.tools.clone();
        let tables = [configured, self.inner.options.servers.clone()].concat();
        let tables = match replay {
            Some(tape) => vec![cassette::table(tape)],
            None => self.wanted(tables),
        };
        // All at once: one that is slow to load holds up no other.
        let sources = join_all(tables.iter().map(|table| {
            let old = before.sources.iter().find(|old| old.name == table.name);
            Loaded::load(
                table,
                &next.configuration,
                &context,
                &self.inner.options,
                old,
            )
        }));
        let mut sources = sources.await;
        settle_clashes(&mut sources, &before.sources);
        next.problems = sources
            .iter()
            .filter_map(|source| source.problem.clone())
            .collect();
        next.problems
            .extend(sources.iter().flat_map(Loaded::remarks));
        next.problems.extend(clashes(&sources));
        next.problems.extend(clashes_of_servers(&sources));
        next.sources = sources;
        let tools = next
            .sources
            .iter()
            .flat_map(|source| source.offered().cloned());
        let refused = self.inner.manager.replace_all(tools);
        next.problems
            .extend(refused.into_iter().map(SourceProblem::from));
        let number = next.number;
        let next = Arc::new(next);
        self.inner.generation.store(Arc::clone(&next));
        self.keep_definitions();
        if !self.inner.options.only_look {
            self.start_servers(&next, &before);
        }
        self.inner.changed.send_replace(number);
        self.inner.servers_changed.send_modify(|count| *count += 1);
        number
    }

    /// The tables that can matter. A document with many tools need not be loaded for one that is known.
    fn wanted(&self, tables: Vec<ToolTable>) -> Vec<ToolTable> {
        let Some(only) = &self.inner.options.only else {
            return tables;
        };
        let single = |name: &str| {
            let is_it = |table: &&ToolTable| {
                !table.kind.brings_many
                    && (table.name == name || table.alias.as_deref() == Some(name))
            };
            tables.iter().find(is_it)
        };
        // A server that cannot have the tool is not started for it.
        let may_matter =
            |table: &ToolTable| !table.is_server() || mcp::may_bring(&table.name, &table.own, only);
        let mut name = only.as_str();
        for _ in 0..=tables.len() {
            let Some(table) = single(name) else {
                let has_fallback = name != only;
                let matters = |table: &ToolTable| has_fallback || may_matter(table);
                return tables.into_iter().filter(matters).collect();
            };
            match table
                .policy
                .fallback
                .as_ref()
                .and_then(|fallback| fallback.tool.as_deref())
            {
                Some(fallback) => name = fallback,
                None => {
                    return tables
                        .iter()
                        .filter(|table| !table.kind.brings_many)
                        .cloned()
                        .collect();
                }
            }
        }
        tables
    }

    fn context(&self, configuration: &Configuration) -> Context {
        let options = &self.inner.options;
        Context {
            folder: configuration.folder.clone(),
            state: options.state.clone(),
            internal: options.internal.clone(),
            trust: options.surroundings.trust().clone(),
            progress: options.progress.clone(),
            http: self.inner.http.clone(),
            home: options.surroundings.home.clone().unwrap_or_default(),
            place: None,
            written: Map::new(),
            secrets: Vec::new(),
            relays: options.relays,
        }
    }
}

fn broken_off(why: String) -> Report {
    Report {
        subject: "the configuration".to_owned(),
        problems: vec![Problem::error(why)],
    }
}

/// A file that was emptied is more likely being written, or lost, than meant: what is in force stays.
fn not_emptied(before: &Configuration, next: Configuration) -> Result<Configuration, Report> {
    if !next.is_blank || before.is_blank {
        return Ok(next);
    }
    let file = next.file.unwrap_or_default().display().to_string();
    let help = "write the settings again; to serve without tools, put a comment in it, or restart";
    Err(Report {
        problems: vec![Problem::error(format!("{file} has become empty")).help(help)],
        subject: file,
    })
}

impl Generation {
    fn empty() -> Generation {
        Generation {
            number: 0,
            configuration: Arc::new(Configuration::empty()),
            problems: Vec::new(),
            sources: Vec::new(),
        }
    }
}

impl fmt::Display for SourceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A reason that names the thing and the place needs no heading.
        if self.reason.starts_with(&format!("'{}'", self.name)) {
            return f.write_str(&self.reason);
        }
        match &self.place {
            Some(place) => write!(f, "{} ({place}): {}", self.name, self.reason),
            None => write!(f, "{}: {}", self.name, self.reason),
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
