//! The MCP servers of a runtime: started with it, their tools taken over as they come and go.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, join_all, ready};
use serde_json::json;
use steadyhand::{Arrivals, Category, ToolError};
use steadyhand_mcp::failure::continuing;
use steadyhand_mcp::{Phase, Server, ServerState, StartFailure};

use tokio::sync::watch::Receiver;

use super::inspect::{clashes_of_servers, settle_clashes};
use super::{Generation, Inner, Runtime};

/// A server that will be up or known to be down within this time, whatever its limits are.
const SETTLING_MAX: Duration = Duration::from_secs(600);

/// A server that is configured and not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotUsed {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
    /// Where it is configured.
    pub place: Option<String>,
}

impl Runtime {
    /// Where each MCP server stands, in the order of the configuration.
    pub fn servers(&self) -> Vec<ServerState> {
        self.all_servers().iter().map(Server::state).collect()
    }

    /// An MCP server by name.
    pub fn server(&self, name: &str) -> Option<Server> {
        let mut servers = self.all_servers().into_iter();
        servers.find(|server| server.name() == name)
    }

    /// Servers that are configured and not used, each with the reason.
    pub fn servers_not_used(&self) -> Vec<NotUsed> {
        let generation = self.generation();
        let sources = generation.sources.iter();
        let unused = sources.filter(|source| source.is_server() && source.server().is_none());
        let unused = unused.map(|source| NotUsed {
            name: source.name.clone(),
            reason: match source.is_off {
                true => "switched off: disabled = true".to_owned(),
                false => source.unavailable().unwrap_or_default(),
            },
            place: source.place().map(str::to_owned),
        });
        let imported = generation.configuration.imported.servers.iter();
        let off = imported.filter(|server| !server.enabled).map(|server| {
            let file = &server.origin.file;
            let file = self.inner.options.surroundings.shown(file);
            NotUsed {
                name: server.name.clone(),
                reason: "switched off in that file".to_owned(),
                place: Some(format!("{}:{}", file.display(), server.origin.line)),
            }
        });
        unused.chain(off).collect()
    }

    /// Why the server of a tool did not start; of a tool nobody knows, the one that may have it.
    pub fn failed_start_of(&self, tool: &str) -> Option<Arc<StartFailure>> {
        let known = self.manager().find(tool);
        let is_it = |server: &Server| match &known {
            Some(known) => known.kind() == "mcp" && known.source() == Some(server.name()),
            None => server.why_unknown(tool).is_some(),
        };
        let servers = self.all_servers().into_iter();
        let mut states = servers.filter(is_it).map(|server| server.state());
        states.find_map(|state| state.failure.filter(|_| state.phase == Phase::Down))
    }

    /// What failed and what goes on working, for people (SPEC V15, V17): none while the server is not known to
    /// be down.
    pub fn degradation(&self, server: &str) -> Option<(String, Arc<StartFailure>)> {
        let server = self.server(server)?;
        let state = server.state();
        let failure = state.failure.filter(|_| state.phase == Phase::Down)?;
        let tools = self.manager().list();
        let local = tools.iter().filter(|tool| tool.kind() != "mcp");
        let local: Vec<&str> = local.map(|tool| tool.name()).collect();
        let text = format!(
            "{}\n{}",
            failure.v17(&server.settings().check),
            continuing(&local)
        );
        Some((text, failure))
    }

    /// How many of a server's tools are offered, once they are taken over.
    pub fn offered_by(&self, server: &ServerState) -> usize {
        let generation = self.generation();
        let mut sources = generation.sources.iter();
        let source = sources.find(|source| {
            let own = source.server();
            own.is_some_and(|own| own.name() == server.name)
        });
        let left_out = source.map_or(0, |source| source.tools.len() - source.offered().count());
        server.tools.saturating_sub(left_out)
    }

    /// Starts a server anew. Whether there is one of this name.
    pub fn restart_server(&self, name: &str) -> bool {
        let server = self.server(name);
        if let Some(server) = &server {
            server.restart();
        }
        server.is_some()
    }

    /// Waits, for at most so long, until every server is up or known to be down and the tools are there.
    pub async fn servers_settled(&self, limit: Duration) {
        let servers = self.all_servers();
        join_all(servers.iter().map(|server| server.settled(limit))).await;
        for server in &servers {
            self.renew(server.name()).await;
        }
    }

    /// What a first list of tools has to wait for, if anything: servers that start for the first time, so that nobody
    /// knows their tools yet. Waits for as long as the configuration says (`first_list_wait`).
    pub fn first_tools(&self) -> Option<BoxFuture<'static, ()>> {
        let mut missing = self.all_servers();
        missing.retain(|server| server.is_starting_unknown() || !self.has_tools_of(server));
        if missing.is_empty() {
            return None;
        }
        let limit = self.generation().configuration.first_list_wait();
        let runtime = self.clone();
        let waiting = async move {
            let waits = missing.iter().map(|server| async {
                if server.is_starting_unknown() {
                    server.settled(limit).await;
                }
                if !runtime.has_tools_of(server) {
                    runtime.renew(server.name()).await;
                }
            });
            join_all(waits).await;
        };
        Some(waiting.boxed())
    }

    /// Whether the tools that a server says it has are taken over.
    fn has_tools_of(&self, server: &Server) -> bool {
        let generation = self.generation();
        let mut sources = generation.sources.iter();
        let source = sources.find(|source| source.server().is_some_and(|it| it.is(server)));
        source.is_none_or(|source| source.tools.len() == server.state().tools)
    }

    /// Waits for a tool that a server may be about to bring; an error says why it does not come.
    pub async fn arrival(&self, tool: &str) -> Result<(), ToolError> {
        if self.manager().find(tool).is_some() {
            return Ok(());
        }
        match self.arriving(tool) {
            Some(arrival) => arrival.await,
            None => Ok(()),
        }
    }

    /// Waits until a server that is required turns out not to start; for ever, if all of them do.
    pub async fn required_failed(&self) -> Arc<StartFailure> {
        let mut changes = self.server_changes();
        loop {
            changes.mark_unchanged();
            let generation = self.generation();
            let tables = generation.configuration.tools.iter();
            let required = tables.filter(|table| table.own.get("required") == Some(&json!(true)));
            for table in required.filter(|table| table.is_server()) {
                let state = self.server(&table.name).map(|server| server.state());
                if let Some(state) = state
                    && let (Phase::Down, 0, Some(failure)) =
                        (state.phase, state.starts, state.failure)
                {
                    return failure;
                }
            }
            // The sender lives as long as this runtime.
            let _ = changes.changed().await;
        }
    }

    /// Tells that the state of a server has changed.
    pub fn server_changes(&self) -> Receiver<u64> {
        self.inner.servers_changed.subscribe()
    }

    /// Stops all servers, with everything they have started.
    pub async fn stop_servers(&self) {
        let servers = self.all_servers();
        join_all(servers.iter().map(Server::stop)).await;
    }

    pub(super) fn weak(&self) -> Weak<Inner> {
        Arc::downgrade(&self.inner)
    }

    /// Starts the servers that are new; those that were there go on.
    pub(super) fn start_servers(&self, now: &Generation, before: &Generation) {
        let servers = |generation: &Generation| -> Vec<Server> {
            let all = generation.sources.iter();
            all.filter_map(|source| source.server().cloned()).collect()
        };
        let old = servers(before);
        for server in servers(now) {
            if !old.iter().any(|old| old.is(&server)) {
                server.start();
                tokio::spawn(follow(
                    self.weak(),
                    server.changes(),
                    server.name().to_owned(),
                ));
            }
        }
    }

    pub fn all_servers(&self) -> Vec<Server> {
        let generation = self.generation();
        let sources = generation.sources.iter();
        sources
            .filter_map(|source| source.server().cloned())
            .collect()
    }

    /// Takes over the tools a server has now.
    pub async fn renew(&self, server: &str) {
        let _changing = self.inner.changing.lock().await;
        let now = self.generation();
        let place = now
            .sources
            .iter()
            .position(|source| source.server().is_some_and(|it| it.name() == server));
        let Some(place) = place else {
            return;
        };
        let Some(renewed) = now.sources[place].renewed(&self.inner.options).await else {
            return;
        };
        let mut sources = now.sources.clone();
        sources[place] = renewed;
        settle_clashes(&mut sources, &now.sources);
        let clashed = clashes_of_servers(&now.sources);
        let mut problems = now.problems.clone();
        problems.retain(|problem| !clashed.contains(problem));
        problems.extend(clashes_of_servers(&sources));
        let offered = sources.iter().flat_map(|source| source.offered().cloned());
        let (tools, manager) = (offered.collect::<Vec<_>>(), self.inner.manager.clone());
        // Thousands of schemas take their time; calls must not wait for it.
        let replaced = tokio::task::spawn_blocking(move || manager.replace_all(tools)).await;
        for refusal in &replaced.unwrap_or_default() {
            tracing::warn!(server, "{refusal}");
        }
        self.inner.generation.store(Arc::new(Generation {
            number: now.number,
            configuration: Arc::clone(&now.configuration),
            problems,
            sources,
        }));
        self.keep_definitions();
    }

    /// Writes down which definitions tools have now.
    pub(super) fn keep_definitions(&self) {
        if let Some(pins) = &self.inner.options.pins {
            pins.save_soon();
        }
    }

    fn arriving(&self, tool: &str) -> Option<BoxFuture<'static, Result<(), ToolError>>> {
        if let Some(why) = self.why_never(tool) {
            return Some(ready(Err(why)).boxed());
        }
        let generation = self.generation();
        let mut candidates: Vec<Server> = Vec::new();
        for source in &generation.sources {
            let Some(server) = source.server() else {
                continue;
            };
            // It may have the tool already, and only we have not taken it over.
            let is_new = || server.own_name(tool).is_some() && !source.has_seen(tool);
            if server.may_still_bring(tool) || is_new() {
                candidates.push(server.clone());
            }
        }
        if candidates.is_empty() {
            return None;
        }
        let runtime = self.clone();
        let tool = tool.to_owned();
        let arrival = async move {
            let waits = candidates.iter().map(|server| async {
                server.wake();
                server.settled(SETTLING_MAX).await;
                runtime.renew(server.name()).await;
            });
            join_all(waits).await;
            if runtime.manager().find(&tool).is_some() {
                return Ok(());
            }
            let unusable = candidates.iter().map(|server| server.why_unusable(&tool));
            // Which tools a server has that has never been up, nobody knows.
            let unknown = candidates.iter().map(|server| server.why_unknown(&tool));
            let why = unusable.chain(unknown).flatten().next();
            why.map_or(Ok(()), Err)
        };
        Some(arrival.boxed())
    }
}

impl Runtime {
    /// Why a tool cannot come: its server lists it and it cannot be offered, or its server is configured and cannot
    /// be used.
    fn why_never(&self, tool: &str) -> Option<ToolError> {
        let generation = self.generation();
        let mut servers = generation.sources.iter().filter_map(|it| it.server());
        if let Some(why) = servers.find_map(|server| server.why_unusable(tool)) {
            return Some(why);
        }
        let kept_away = generation
            .sources
            .iter()
            .flat_map(|it| &it.review.kept_away);
        if let Some((name, reason)) = kept_away.into_iter().find(|(name, _)| name == tool) {
            let message = format!("{name} cannot be called: {reason}");
            return Some(ToolError::answer(message).never_started());
        }
        let mut sources = generation.sources.iter();
        let prefix = |name: &str| steadyhand_mcp::names::prefix(name);
        let unused = sources.find(|source| {
            let is_unused = source.is_server() && source.server().is_none() && !source.is_off;
            is_unused && tool.starts_with(&prefix(&source.name))
        })?;
        let reason = unused.unavailable()?;
        let error = match unused.lacks_a_secret() {
            true => ToolError::of(Category::Authentication, reason),
            false => ToolError::answer(reason),
        };
        Some(error.never_started())
    }
}

/// Tools of servers that are not up yet.
pub(super) struct OnTheirWay(pub(super) Weak<Inner>);

impl Arrivals for OnTheirWay {
    fn arriving(&self, name: &str) -> Option<BoxFuture<'static, Result<(), ToolError>>> {
        let inner = self.0.upgrade()?;
        Runtime { inner }.arriving(name)
    }

    fn why_late(&self, name: &str) -> Option<String> {
        let inner = self.0.upgrade()?;
        let servers = Runtime { inner }.all_servers().into_iter();
        let late = servers.filter(|server| server.may_still_bring(name));
        let late: Vec<String> = late.filter_map(|server| server.why_late()).collect();
        (!late.is_empty()).then(|| late.join("; "))
    }
}

/// What tells that a server says something else of itself than before.
#[derive(PartialEq)]
struct Versions {
    tools: u64,
    prompts: u64,
    resources: u64,
    instructions: Option<String>,
    is_up: bool,
}

impl Versions {
    fn of(state: &ServerState) -> Versions {
        let greeting = state.greeting.as_ref();
        Versions {
            tools: state.tools_version,
            prompts: state.prompts_version,
            resources: state.resources_version,
            instructions: greeting.and_then(|greeting| greeting.instructions.clone()),
            is_up: state.phase == Phase::Running,
        }
    }
}

/// Follows a server as long as it lives: its tools are taken over, its failures told, and the breakers of its tools
/// closed when it is back (SPEC D17).
async fn follow(runtime: Weak<Inner>, mut changes: Receiver<ServerState>, name: String) {
    let mut versions = None;
    let (mut starts, mut deaths) = (0, 0);
    let mut was_down = false;
    loop {
        let state = changes.borrow_and_update().clone();
        let Some(inner) = runtime.upgrade() else {
            return;
        };
        let runtime = Runtime { inner };
        let now = Versions::of(&state);
        if versions.as_ref() != Some(&now) {
            versions = Some(now);
            runtime.renew(&name).await;
        }
        // Those that died with it have counted against its tools; the next ones wait for it (SPEC V16).
        if (state.starts, state.deaths) != (starts, deaths) {
            (starts, deaths) = (state.starts, state.deaths);
            runtime.close_breakers(&name);
        }
        let is_down = state.phase == Phase::Down;
        if is_down && !was_down {
            runtime.tell_degraded(&name);
        }
        was_down = is_down;
        runtime
            .inner
            .servers_changed
            .send_modify(|count| *count += 1);
        drop(runtime);
        if state.phase == Phase::Stopped || changes.changed().await.is_err() {
            return;
        }
    }
}

impl Runtime {
    fn close_breakers(&self, server: &str) {
        let generation = self.generation();
        let sources = generation.sources.iter();
        let mut of_it =
            sources.filter(|source| source.server().is_some_and(|it| it.name() == server));
        for tool in of_it.next().iter().flat_map(|source| &source.tools) {
            self.manager().reset_breaker(tool.name());
        }
    }

    /// Says what failed, and what goes on working (SPEC V15, V17).
    fn tell_degraded(&self, server: &str) {
        if let Some((text, failure)) = self.degradation(server) {
            (self.inner.options.degraded)(&text, &failure);
        }
    }
}
