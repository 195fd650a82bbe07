//! One server as the rest of the program sees it: its state, its tools, a connection when one is needed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use steadyhand::{ByteBudget, Category, ReservedBytes, Tool, ToolError};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::client::catalogue::catalogue_cache::CachedCatalogue;
use crate::client::catalogue::definition::Unusable;
use crate::client::catalogue::lists::{Entries, Listed, Lists, is_like};
use crate::client::catalogue::offer::{Offer, OfferedTool};
use crate::client::catalogue::subscriptions::Wishes;
use crate::client::catalogue::{Catalogue, Greeting};
use crate::client::connection::Connection;
use crate::client::connection::mux::Desk;
use crate::client::http::Remote;
use crate::client::lifecycle::era::Era;
use crate::client::lifecycle::supervisor;
use crate::client::memory::SERVER_BYTES_MAX;
use crate::client::notices::{NoticeReceiver, Notices};
use crate::client::record::{LogLine, Record};
use crate::client::settings::{ServerSettings, Transport, When};
use crate::client::state::{Phase, ServerState};
use crate::client::stored_log;

/// So long before a call's own limit we give up waiting for a start: then it is us who say what happened, and
/// that nothing was done.
pub(crate) const MARGIN: Duration = Duration::from_millis(25);

/// A server: started and watched over in the background. Cheap to clone; the last clone that goes stops it.
#[derive(Clone)]
pub struct Server {
    pub(crate) inner: Arc<Inner>,
    _life: Arc<Life>,
}

/// When the last handle is gone, the server goes.
struct Life(CancellationToken);

impl Drop for Life {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

pub(crate) struct Inner {
    /// As it is started.
    pub(crate) settings: ServerSettings,
    /// What is offered, and how: may change while it runs.
    current: ArcSwap<ServerSettings>,
    pub(crate) record: Arc<Record>,
    pub(crate) desk: Arc<Desk>,
    lists: ArcSwap<Lists>,
    pub(crate) wishes: Wishes,
    /// Where its address is configured; an error says what is wrong with it.
    pub(crate) remote: Option<Result<Remote, String>>,
    era: Mutex<Option<Era>>,
    pub(crate) connection: ArcSwapOption<Connection>,
    pub(crate) state: watch::Sender<ServerState>,
    pub(crate) offer: Mutex<Offer>,
    /// A call needs the server.
    pub(crate) wake: Notify,
    /// Someone wants it started anew.
    pub(crate) restart: Notify,
    pub(crate) stop: CancellationToken,
    /// Nobody has a handle any more: its calls may end first.
    pub(crate) retired: CancellationToken,
    pub(crate) stopped: CancellationToken,
    pub(crate) calls: AtomicU64,
    is_started: AtomicBool,
    kept_at: Option<PathBuf>,
    logged_at: Option<PathBuf>,
}

impl Server {
    /// A server that is not started yet. What is known of its tools is kept in `state`.
    pub fn new(settings: ServerSettings, state: Option<PathBuf>) -> Server {
        let kept_at = state.as_ref().map(|folder| {
            let name = crate::client::catalogue::names::file_name(&settings.name);
            folder.join("mcp").join(format!("{name}.json"))
        });
        let logged_at = state.map(|folder| stored_log::path(&folder, &settings.name));
        let first = ServerState::of(&settings);
        let retired = CancellationToken::new();
        let record = Record::new(&settings.name, settings.hide.clone());
        let record = Arc::new(record.hiding_in_lists(settings.hide_in_lists().cloned()));
        let memory = settings
            .memory
            .part(format!("MCP server '{}'", settings.name), SERVER_BYTES_MAX);
        let inner = Arc::new(Inner {
            desk: Arc::new(Desk {
                server: settings.name.as_str().into(),
                policy: settings.requests.clone(),
                notices: Notices::of(&settings.name, &memory),
                record: Arc::clone(&record),
                memory,
            }),
            record,
            lists: ArcSwap::default(),
            wishes: Wishes::default(),
            remote: match &settings.transport {
                Transport::Http(http) => Some(Remote::new(http, settings.hide.clone())),
                Transport::Stdio(_) => None,
            },
            era: Mutex::default(),
            connection: ArcSwapOption::empty(),
            state: watch::Sender::new(first),
            offer: Mutex::default(),
            wake: Notify::new(),
            restart: Notify::new(),
            stop: CancellationToken::new(),
            retired: retired.clone(),
            stopped: CancellationToken::new(),
            calls: AtomicU64::new(0),
            is_started: AtomicBool::new(false),
            kept_at,
            logged_at,
            current: ArcSwap::from_pointee(settings.clone()),
            settings,
        });
        if let Some(mut kept) = inner.kept() {
            inner.lists.store(Arc::new(kept.lists()));
            let greeting = kept.greeting.take();
            inner.change(|state| state.greeting = greeting);
            inner.remember(kept.era);
            inner.take_catalogue(kept.catalogue(inner.remote.is_some()));
        }
        Server {
            inner,
            _life: Arc::new(Life(retired)),
        }
    }

    /// Starts to watch over it, in the background. A second time does nothing.
    pub fn start(&self) {
        if !self.inner.is_started.swap(true, Ordering::AcqRel) {
            // Whoever looks from now on sees that it is on its way.
            if !self.inner.may_rest() {
                self.inner.change(|state| state.phase = Phase::Starting);
            }
            tokio::spawn(supervisor::watch_over(Arc::clone(&self.inner)));
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.settings.name
    }

    /// Its settings.
    pub fn settings(&self) -> Arc<ServerSettings> {
        self.inner.current.load_full()
    }

    /// Takes over other settings without starting it anew. False, and nothing is changed, if they need another
    /// process.
    pub fn adapt(&self, settings: ServerSettings) -> bool {
        if !self.inner.settings.is_same_process(&settings) {
            return false;
        }
        let tools = {
            let mut offer = self.inner.offer();
            offer.pick(&settings);
            offer.len()
        };
        self.inner.current.store(Arc::new(settings));
        self.inner.change(|state| {
            state.tools = tools;
            state.tools_version += 1;
        });
        true
    }

    /// Its tools as they are known now; those of a server that is down say so when they are called.
    pub fn tools(&self) -> Vec<Tool> {
        self.inner.offer().tools(self)
    }

    /// The same, each with its definition.
    pub fn offered(&self) -> Vec<OfferedTool> {
        self.inner.offer().offered(self)
    }

    /// Whether it has said which tools it has, now or in an earlier run.
    pub fn knows_tools(&self) -> bool {
        self.inner.knows_tools()
    }

    /// The definition of one of its tools as the server wrote it, but for the name, which is ours.
    pub fn definition(&self, tool: &str) -> Option<Box<RawValue>> {
        self.inner.offer().definition(tool)
    }

    /// What it lists beside its tools, each entry as it wrote it: all pages, as far as they are known now. Empty if
    /// it has no such list. A change is told by [`Server::changes`] (`prompts_version`, `resources_version`).
    pub fn listed(&self, kind: Listed) -> Entries {
        Arc::clone(self.inner.lists.load().get(kind))
    }

    /// The same; none as long as nobody knows it.
    pub fn known(&self, kind: Listed) -> Option<Entries> {
        self.inner.lists.load().known(kind)
    }

    /// What it said about itself, now or when it was last up.
    pub fn greeting(&self) -> Option<Greeting> {
        self.inner.state.borrow().greeting.clone()
    }

    /// What it says from now on that concerns nobody in particular. Whoever is too slow misses some, and hears how many.
    pub fn notices(&self) -> NoticeReceiver {
        self.inner.desk.notices.subscribe()
    }

    /// Its own name of one of its tools.
    pub fn own_name(&self, tool: &str) -> Option<String> {
        self.inner.offer().own_name(tool).map(str::to_owned)
    }

    /// Whether it has added one of its tools after it was started.
    pub fn is_added_later(&self, tool: &str) -> bool {
        self.inner.offer().is_added_later(tool)
    }

    /// Whether it is starting for the first time, and nobody knows its tools from an earlier time.
    pub fn is_starting_unknown(&self) -> bool {
        let state = self.inner.state.borrow();
        state.phase == Phase::Starting && !self.inner.knows_tools_in(&state)
    }

    /// Whether it is the very same.
    pub fn is(&self, other: &Server) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Whether a tool of this name may be about to come: it is not up, and could have it.
    pub fn may_still_bring(&self, tool: &str) -> bool {
        let state = self.inner.state.borrow();
        let is_open = !self.inner.knows_tools_in(&state) || state.phase.is_on_its_way();
        is_open && self.settings().may_bring(tool)
    }

    /// Why nobody can say whether it has a tool of this name, if it is the one that should know.
    pub fn why_unknown(&self, tool: &str) -> Option<ToolError> {
        let state = self.inner.state.borrow();
        let may_be_its_own = self.settings().may_bring(tool);
        let is_unknown = !self.inner.knows_tools_in(&state) && state.phase != Phase::Running;
        (may_be_its_own && is_unknown).then(|| self.inner.away(&state))
    }

    /// Its tools that cannot be offered, under the names they would have here, and why.
    pub fn unusable(&self) -> Vec<Unusable> {
        self.inner.offer().unusable(&self.settings())
    }

    /// Why a tool of this name, which it lists, cannot be called.
    pub fn why_unusable(&self, tool: &str) -> Option<ToolError> {
        let reason = self.inner.offer().why_unusable(&self.settings(), tool)?;
        let server = self.name();
        let message = format!("{tool} of MCP server '{server}' cannot be called: {reason}");
        Some(ToolError::answer(message).never_started())
    }

    /// What is known of its start when somebody's time is up who waits for it; none if nobody has to wait.
    pub fn why_late(&self) -> Option<String> {
        let state = self.inner.state.borrow();
        let is_late = state.phase.is_on_its_way();
        is_late.then(|| self.inner.late(&state))
    }

    /// The memory that is held now for what it sends.
    pub fn memory(&self) -> &ByteBudget {
        &self.inner.desk.memory
    }

    /// Where it stands.
    pub fn state(&self) -> ServerState {
        let mut state = self.inner.state.borrow().clone();
        state.noise_lines = self.inner.record.noise_lines();
        state
    }

    /// Told when its state or its tools change.
    pub fn changes(&self) -> watch::Receiver<ServerState> {
        self.inner.state.subscribe()
    }

    /// What it printed last.
    pub fn logs(&self) -> Vec<LogLine> {
        self.logs_from(0).0
    }

    /// What is still there of the lines from this one on, and the number of the next one to come.
    pub fn logs_from(&self, first: u64) -> (Vec<LogLine>, u64) {
        self.inner.record.lines_from(first)
    }

    /// Waits, for at most so long, until it is up, known to be down, or at rest until a call comes. Whether it
    /// is up.
    pub async fn settled(&self, limit: Duration) -> bool {
        let mut changes = self.changes();
        let settled = changes.wait_for(|state| !state.phase.is_on_its_way());
        match timeout(limit, settled).await {
            Ok(Ok(state)) => state.phase == Phase::Running,
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Starts it anew; calls that run on it end, with the truth about them.
    pub fn restart(&self) {
        self.inner.restart.notify_one();
    }

    /// A call will come: a server that rests is started.
    pub fn wake(&self) {
        self.inner.wake.notify_one();
    }

    /// Stops it for good, with all it has started.
    pub async fn stop(&self) {
        self.inner.stop.cancel();
        if self.inner.is_started.load(Ordering::Acquire) {
            self.inner.stopped.cancelled().await;
        }
    }
}

impl Inner {
    /// A connection to send a call on. Waits while the server is on its way up; fails at once when it is known
    /// to be down (SPEC D17). Nothing has been sent when this fails.
    pub(crate) async fn ready(&self, until: Instant) -> Result<Arc<Connection>, ToolError> {
        if let Some(connection) = self.usable() {
            return Ok(connection);
        }
        self.wake.notify_one();
        let mut changes = self.state.subscribe();
        loop {
            {
                let state = changes.borrow_and_update();
                match state.phase {
                    Phase::Running => {
                        if let Some(connection) = self.usable() {
                            return Ok(connection);
                        }
                    }
                    Phase::Down | Phase::Stopped => return Err(self.away(&state)),
                    Phase::Idle | Phase::Starting | Phase::Restarting => {}
                }
            }
            match tokio::time::timeout_at(until - MARGIN, changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Err(self.not_yet(&changes.borrow())),
            }
        }
    }

    fn usable(&self) -> Option<Arc<Connection>> {
        let connection = self.connection.load_full()?;
        connection.is_usable().then_some(connection)
    }

    /// Where it is, if it is not a program of ours.
    pub(crate) fn remote(&self) -> Option<&Remote> {
        self.remote.as_ref()?.as_ref().ok()
    }

    /// The era it was found to speak.
    pub(crate) fn era(&self) -> Option<Era> {
        *self.era.lock()
    }

    pub(crate) fn remember(&self, era: Option<Era>) {
        *self.era.lock() = era;
    }

    /// Known to be down: no retry, and no mark against the tool (SPEC D17).
    pub(crate) fn away(&self, state: &ServerState) -> ToolError {
        let name = &self.settings.name;
        let why = match (&state.failure, state.phase) {
            (_, Phase::Stopped) => "it has been stopped".to_owned(),
            (Some(failure), _) => failure.summary_with_last_words(),
            (None, _) => "it is not running".to_owned(),
        };
        let next = match state.next_try {
            Some(at) => {
                let wait = at.saturating_duration_since(Instant::now());
                format!("; the next try is in {} s", wait.as_secs() + 1)
            }
            None => String::new(),
        };
        never_sent(format!("MCP server '{name}' is not running: {why}{next}"))
    }

    fn not_yet(&self, state: &ServerState) -> ToolError {
        never_sent(format!("{}; the call was not sent", self.late(state)))
    }

    /// It is not up when a call's time is up: how far it is, how often it failed, and its last words.
    fn late(&self, state: &ServerState) -> String {
        let name = &self.settings.name;
        let step = state.step.filter(|_| state.phase.is_on_its_way());
        let attempt = match state.attempt {
            attempt @ 2.. => Some(format!("attempt {attempt} of {}", state.attempts_max)),
            _ => None,
        };
        let at = step.map(|step| format!("at {step}"));
        let at: Vec<String> = attempt.into_iter().chain(at).collect();
        let at = match at.is_empty() {
            true => String::new(),
            false => format!(" ({})", at.join(", ")),
        };
        let said = || {
            let last = self.record.stderr_tail(1).pop();
            last.filter(|_| step.is_some())
                .map(|last| format!("it has said: {last}"))
        };
        let known = state.so_far().or_else(said);
        let known = known.map(|known| format!("; {known}")).unwrap_or_default();
        let word = state.phase.word();
        format!("MCP server '{name}' was still {word}{at} when the call's time was up{known}")
    }

    /// What the server says about its tools holds from now on.
    pub(crate) fn take_catalogue(&self, catalogue: Catalogue) {
        let (unusable, notes, seen_ms) = (
            Arc::clone(&catalogue.unusable),
            catalogue.notes.clone(),
            catalogue.seen_ms,
        );
        let (changed, tools) = {
            let mut offer = self.offer();
            let is_first_start = self.state.borrow().starts == 0;
            let changed = offer.renew(catalogue, &self.current.load(), is_first_start);
            (changed, offer.len())
        };
        self.state.send_modify(|state| {
            state.unusable = unusable;
            state.note(None, notes);
            state.tools = tools;
            state.tools_seen_ms = Some(seen_ms);
            if changed {
                state.tools_version += 1;
            }
        });
    }

    /// What the server says about its prompts or resources holds from now on. Whether anything is different.
    pub(crate) fn take_list(
        &self,
        kind: Listed,
        entries: Vec<Box<RawValue>>,
        held: Option<ReservedBytes>,
    ) -> bool {
        let lists = self.lists.load();
        if lists.known(kind).is_some() && is_like(lists.get(kind), &entries) {
            return false;
        }
        self.lists.store(Arc::new(lists.with(kind, entries, held)));
        self.change(|state| match kind {
            Listed::Prompts => state.prompts_version += 1,
            Listed::Resources | Listed::ResourceTemplates => state.resources_version += 1,
        });
        true
    }

    fn kept(&self) -> Option<CachedCatalogue> {
        let path = self.kept_at.as_deref()?;
        let mut kept = CachedCatalogue::load(path, &self.settings.fingerprint())?;
        if let Some(hide) = self.settings.hide_in_lists()
            && kept.hide(hide)
            && let Err(error) = kept.save(path)
        {
            let (server, path) = (&self.settings.name, path.display());
            tracing::warn!(server, %error, %path, "a secret in this file could not be taken out of it: delete the file");
        }
        Some(kept)
    }

    /// Keeps what is known of it; that it cannot be kept is no reason not to use it.
    pub(crate) async fn keep(&self) {
        let Some(path) = self.kept_at.clone() else {
            return;
        };
        let kept = CachedCatalogue::of(
            self.settings.fingerprint(),
            self.offer().catalogue(),
            &self.lists.load(),
            self.state.borrow().greeting.clone(),
            self.era(),
        );
        let save = move || kept.save(&path);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(save).await {
            let server = &self.settings.name;
            tracing::warn!(server, %error, "its list of tools could not be kept on disk");
        }
    }

    /// Keeps what it printed; that it cannot be kept is no reason not to go on.
    pub(crate) async fn keep_log(&self) {
        let (Some(path), lines) = (self.logged_at.clone(), self.record.take_unkept()) else {
            return;
        };
        if lines.is_empty() {
            return;
        }
        let append = move || stored_log::append(&path, &lines);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(append).await {
            let server = &self.settings.name;
            tracing::warn!(server, %error, "what it printed could not be kept on disk");
        }
    }

    /// Nobody has to start it before a call comes.
    pub(crate) fn may_rest(&self) -> bool {
        self.settings.start.when == When::FirstCall && self.knows_tools()
    }

    /// Whether its tools are known, from an earlier time or now.
    pub(crate) fn knows_tools(&self) -> bool {
        self.knows_tools_in(&self.state.borrow())
    }

    fn knows_tools_in(&self, state: &ServerState) -> bool {
        state.tools_seen_ms.is_some()
    }

    pub(crate) fn offer(&self) -> MutexGuard<'_, Offer> {
        self.offer.lock()
    }
}

/// The call never reached the server, and trying again at once would not help.
fn never_sent(message: String) -> ToolError {
    ToolError::of(Category::Network, message)
        .never_started()
        .declared_final()
}
