//! Watches over one server: starts it, sees it end, starts it again. One task per server, asleep most of the time.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::connection::Connection;
use crate::failure::{StartFailure, Step, What};
use crate::lists::{self, Changed, ListError, Listed, read_pages};
use crate::server::Inner;
use crate::session::{self, Session, Stuck, Witness};
use crate::slot::{Answer, Whose};
use crate::state::{Phase, ServerState, StepDone};

/// So many servers start at the same time: the others wait for their turn.
static STARTING: Semaphore = Semaphore::const_new(32);

/// How long a server that is asked to end may take before it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// How long the calls of a server that is no longer wanted may go on.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);
/// A server that was silent while a call timed out must answer a ping within this time.
const PING_LIMIT: Duration = Duration::from_secs(5);
/// Between two looks at a list of tools that keeps changing.
const REFRESH_PAUSE: Duration = Duration::from_millis(500);
/// A call that finds its server down makes it start, but not more often than this.
const WAKE_PAUSE: Duration = Duration::from_secs(1);
/// How long a server that was never up before is asked for its prompts and resources before it counts as up.
const FIRST_LISTS_LIMIT: Duration = Duration::from_secs(5);
const METHOD_NOT_FOUND: i64 = -32601;
/// Lines of stderr that a failure shows.
const TAIL_LINES: usize = 20;

/// The life of a server, until it is no longer wanted.
pub(crate) async fn watch_over(server: Arc<Inner>) {
    tokio::select! {
        () = live(&server) => {}
        () = server.stop.cancelled() => {}
        () = drained(&server) => {}
    }
    // What ran has been dropped with the future above, and is being stopped.
    if let Some(connection) = server.connection.swap(None) {
        connection.close("it is no longer wanted");
    }
    server.change(|state| {
        state.phase = Phase::Stopped;
        state.pid = None;
        state.next_try = None;
    });
    if server.state.borrow().starts > 0 {
        server.record.note("stopped: it is no longer wanted");
    }
    server.keep_log().await;
    server.stopped.cancel();
}

/// Nobody wants the server any more, and its calls are over.
async fn drained(server: &Inner) {
    server.retired.cancelled().await;
    let until = Instant::now() + DRAIN_LIMIT;
    while Instant::now() < until {
        match server.connection.load_full() {
            Some(connection) if connection.in_flight() > 0 => {
                sleep(Duration::from_millis(50)).await;
            }
            _ => return,
        }
    }
}

/// Why a server that was up is not up any more.
enum After {
    /// It ended or hung.
    Broke(What),
    /// Someone wants it started anew.
    Restart,
    /// Nobody has called it for a while.
    Rest,
}

/// How the next session is got.
enum Way {
    /// By the attempts that are configured.
    Connect(Phase),
    /// In the background, since it is known to be down.
    ComeBack(Box<StartFailure>),
}

async fn live(server: &Arc<Inner>) {
    let mut deaths: VecDeque<Instant> = VecDeque::new();
    let mut way = Way::Connect(Phase::Starting);
    if server.may_rest() {
        rest(server).await;
    }
    loop {
        let session = match way {
            Way::ComeBack(failure) => come_back(server, *failure).await,
            Way::Connect(phase) => match connect(server, phase).await {
                Ok(session) => session,
                Err(failure) => come_back(server, failure).await,
            },
        };
        way = match run(server, session).await {
            After::Restart => {
                deaths.clear();
                Way::Connect(Phase::Restarting)
            }
            After::Rest => {
                rest(server).await;
                Way::Connect(Phase::Starting)
            }
            After::Broke(what) => {
                server.change(|state| {
                    state.deaths += 1;
                    state.phase = Phase::Restarting;
                });
                let name = &server.settings.name;
                tracing::warn!(server = name, "MCP server {}", what.of_one_that_ran());
                // A counter that forgets: only what died within the window counts.
                let now = Instant::now();
                deaths.push_back(now);
                deaths.retain(|at| now.duration_since(*at) < server.settings.start.within);
                let count = u32::try_from(deaths.len()).unwrap_or(u32::MAX);
                match count > server.settings.start.restarts {
                    true => Way::ComeBack(Box::new(server.failure(
                        Step::Running,
                        what,
                        Duration::ZERO,
                        count,
                    ))),
                    false => Way::Connect(Phase::Restarting),
                }
            }
        };
    }
}

/// Nothing is started before a call needs it.
async fn rest(server: &Inner) {
    server.change(|state| {
        state.phase = Phase::Idle;
        state.pid = None;
        state.step = None;
    });
    tokio::select! {
        () = server.wake.notified() => {}
        () = server.restart.notified() => {}
    }
}

/// Attempts until one succeeds, with the waits that are configured (SPEC V14).
async fn connect(server: &Arc<Inner>, phase: Phase) -> Result<Session, StartFailure> {
    let name = &server.settings.name;
    let waits = &server.settings.start.waits;
    let total = waits.len().max(1);
    let mut last: Option<StartFailure> = None;
    for attempt in 1..=total {
        let wait = waits.get(attempt - 1).copied().unwrap_or_default();
        let number = u32::try_from(attempt).unwrap_or(u32::MAX);
        server.change(|state| {
            state.phase = phase;
            state.attempt = number;
            state.step = None;
            state.pid = None;
            state.next_try = (!wait.is_zero()).then(|| Instant::now() + wait);
        });
        tracing::info!(
            server = name,
            "MCP connection attempt {attempt} of {total}, delay {} ms",
            wait.as_millis()
        );
        tokio::select! {
            () = sleep(wait) => {}
            () = server.restart.notified() => {}
        }
        server.change(|state| state.next_try = None);
        match start_once(server, number).await {
            Ok(session) => {
                tracing::info!(
                    server = name,
                    "MCP connection succeeded on attempt {attempt}"
                );
                return Ok(session);
            }
            Err(failure) => {
                let summary = failure.summary();
                tracing::warn!(
                    server = name,
                    attempt,
                    "MCP connection attempt failed: {summary}"
                );
                let shown = Arc::new(failure.clone());
                server.change(|state| state.failure = Some(shown));
                last = Some(failure);
            }
        }
    }
    let failure = last.unwrap_or_else(|| {
        let what = What::Malformed("it was not tried".to_owned());
        server.failure(Step::Start, what, Duration::ZERO, 0)
    });
    tracing::warn!(
        server = name,
        reason = failure.summary(),
        stderr = failure.stderr.join("\n"),
        check = failure.hints(&server.settings.check),
        "MCP connection failed after {total} attempts"
    );
    Err(failure)
}

/// Tries in the background, with growing waits, until the server is back. A call that arrives makes it sooner.
async fn come_back(server: &Arc<Inner>, mut failure: StartFailure) -> Session {
    let start = &server.settings.start;
    let attempts = failure.attempts;
    let mut wait = start.retry_first;
    // A call from before the failure is no new one.
    let _ = timeout(Duration::ZERO, server.wake.notified()).await;
    loop {
        let tried = Instant::now();
        let next = tried + wait;
        failure.attempts = attempts;
        let shown = Arc::new(failure);
        server.change(|state| {
            state.phase = Phase::Down;
            state.pid = None;
            state.failure = Some(Arc::clone(&shown));
            state.next_try = Some(next);
        });
        tokio::select! {
            () = sleep_until(next) => {}
            () = server.restart.notified() => {}
            () = async {
                server.wake.notified().await;
                sleep_until(tried + WAKE_PAUSE).await;
            } => {}
        }
        let attempt = attempts.saturating_add(1);
        match start_once(server, attempt).await {
            Ok(session) => {
                let name = &server.settings.name;
                tracing::info!(server = name, "MCP server is back");
                return session;
            }
            Err(again) => {
                tracing::debug!(
                    server = server.settings.name,
                    "still down: {}",
                    again.summary()
                );
                failure = again;
            }
        }
        wait = (wait * 2).min(start.retry_max);
    }
}

/// One start, from finding the program to knowing its tools.
async fn start_once(server: &Arc<Inner>, attempt: u32) -> Result<Session, StartFailure> {
    let tried = try_to_start(server, attempt).await;
    if let Err(failure) = &tried {
        server
            .record
            .note(&format!("did not start: {}", failure.summary()));
        server.keep_log().await;
    }
    server.change(|state| state.tries += 1);
    tried
}

async fn try_to_start(server: &Arc<Inner>, attempt: u32) -> Result<Session, StartFailure> {
    // Never closed.
    let _turn = STARTING.acquire().await;
    let began = Instant::now();
    let until = began + server.settings.start.limit;
    server.record.begin();
    let failed = |step, what| server.failure(step, what, began.elapsed(), attempt);
    let session = session::start(&server.settings, &server.desk, &**server).await;
    let mut session = session.map_err(|Stuck { step, what }| failed(step, what))?;
    server.step(Step::Initialize);
    let greeting = match session.greet(&server.settings, until).await {
        Ok(greeting) => greeting,
        Err(what) => return Err(failed(Step::Initialize, what)),
    };
    server.step(Step::ListTools);
    let catalogue = match session.list(&server.settings, until).await {
        Ok(catalogue) => catalogue,
        Err(what) => return Err(failed(Step::ListTools, what)),
    };
    server.take_catalogue(catalogue);
    server.step_done();
    let is_known = server.state.borrow().greeting.is_some();
    server.change(|state| state.greeting = Some(greeting));
    match is_known {
        // What was known holds until it has been read anew: no call waits for that.
        true => session.connection.tell_changed(Changed::BESIDE_TOOLS),
        false => {
            let until = until.min(Instant::now() + FIRST_LISTS_LIMIT);
            read_lists(server, &session.connection, Changed::BESIDE_TOOLS, until).await;
        }
    }
    server.keep().await;
    let pid = session.pid;
    server
        .connection
        .store(Some(Arc::new(session.connection.clone())));
    server.change(|state| {
        state.phase = Phase::Running;
        state.step = None;
        state.pid = Some(pid);
        state.starts += 1;
        state.failure = None;
        state.next_try = None;
        state.start_ms = Some(began.elapsed().as_secs_f64() * 1000.0);
    });
    Ok(session)
}

/// The time a server is up.
async fn run(server: &Arc<Inner>, mut session: Session) -> After {
    let connection = session.connection.clone();
    let after = tokio::select! {
        end = session.broken() => After::Broke(end.into()),
        () = lost_trust(server, &connection) => {
            let (limit, pid) = (PING_LIMIT, Some(session.pid));
            After::Broke(What::Silent { limit, pid })
        }
        () = server.restart.notified() => After::Restart,
        () = unused(server, &connection) => After::Rest,
        never = keep_fresh(server, &connection) => match never {},
    };
    server.connection.store(None);
    let reason = match &after {
        After::Broke(what) => {
            let said = server.record.stderr_tail(1).pop();
            let said = said.map(|line| format!("; its last words: {line}"));
            format!("it {}{}", what.of_one_that_ran(), said.unwrap_or_default())
        }
        After::Restart => "it was restarted".to_owned(),
        After::Rest => "it was not used".to_owned(),
    };
    // Calls learn of it before the program has been stopped, which may take its time.
    connection.close(&reason);
    server.record.note(&format!("is down: {reason}"));
    tokio::spawn(async move { session.stop(&reason, GRACE).await });
    server.keep_log().await;
    after
}

/// Ends when a server that was silent for a whole call does not answer a ping either.
async fn lost_trust(server: &Inner, connection: &Connection) {
    loop {
        connection.doubted().await;
        let since = Instant::now();
        let ping = connection
            .request("ping", Whose::Ours, |_| json!({}))
            .answer();
        let answered = match timeout(PING_LIMIT, ping).await {
            // An error is an answer, too.
            Ok(Answer::Result(_) | Answer::Error(_) | Answer::TooLarge(_)) => true,
            Ok(Answer::Lost(_)) => return std::future::pending().await,
            Err(_) => connection.heard_since(since),
        };
        if !answered {
            return;
        }
        connection.trust();
        // Those who wait for it look again.
        server.change(|_| {});
    }
}

/// Ends when nobody has used the server for as long as it may idle.
async fn unused(server: &Inner, connection: &Connection) {
    let Some(limit) = server.settings.start.idle_stop else {
        return std::future::pending().await;
    };
    loop {
        let before = server.calls.load(Ordering::Relaxed);
        sleep(limit).await;
        if server.calls.load(Ordering::Relaxed) == before && connection.in_flight() == 0 {
            return;
        }
    }
}

/// Reads lists anew whenever the server says that they have changed.
async fn keep_fresh(server: &Inner, connection: &Connection) -> std::convert::Infallible {
    loop {
        let changed = connection.changed().await;
        let until = Instant::now() + server.settings.start.limit;
        if changed.has(Changed::TOOLS) {
            match session::list_tools(connection, until).await {
                Ok(catalogue) => server.take_catalogue(catalogue),
                Err(error) => {
                    let name = &server.settings.name;
                    tracing::warn!(server = name, ?error, "its changed tools could not be read");
                }
            }
        }
        read_lists(server, connection, changed, until).await;
        server.keep().await;
        sleep(REFRESH_PAUSE).await;
    }
}

/// Reads what a server lists beside its tools, where it has such lists. One that cannot be read costs only itself.
async fn read_lists(server: &Inner, connection: &Connection, changed: Changed, until: Instant) {
    let greeting = server.state.borrow().greeting.clone().unwrap_or_default();
    for kind in Listed::ALL {
        if !changed.has(kind.changes_with()) {
            continue;
        }
        if !lists::has(&greeting.capabilities, kind) {
            server.take_list(kind, Vec::new());
            continue;
        }
        match read_pages(connection, kind.method(), kind.member(), until).await {
            Ok((entries, notes)) => {
                server.take_list(kind, entries);
                for note in notes {
                    tracing::warn!(server = server.settings.name, "{note}");
                }
            }
            // Templates go with resources, and not every server that has those knows of them.
            Err(ListError::Refused(error)) if error.code == METHOD_NOT_FOUND => {
                server.take_list(kind, Vec::new());
            }
            Err(error) => {
                let (name, what) = (&server.settings.name, kind.method());
                tracing::warn!(server = name, ?error, "{what} could not be read");
            }
        }
    }
}

impl Inner {
    /// Changes the state, and tells those who watch.
    pub(crate) fn change(&self, change: impl FnOnce(&mut ServerState)) {
        self.state.send_modify(|state| {
            let before = state.phase;
            change(state);
            if state.phase != before {
                state.since = Instant::now();
            }
        });
    }

    /// The step it is at is over, and well.
    fn step_done(&self) {
        self.change(|state| {
            if let Some(step) = state.step.take() {
                let took_ms = state.step_since.elapsed().as_secs_f64() * 1000.0;
                state.steps.push(StepDone { step, took_ms });
            }
        });
    }

    fn failure(&self, step: Step, what: What, elapsed: Duration, attempts: u32) -> StartFailure {
        let noise = self.record.noise_of_start();
        StartFailure {
            transport: self.settings.transport.word(),
            elapsed,
            attempts,
            command: self.state.borrow().command.clone(),
            program: self.state.borrow().program.clone(),
            place: self.settings.place.clone(),
            cwd: self.settings.shown_cwd(),
            stderr: self.record.stderr_tail(TAIL_LINES),
            noise_lines: noise.lines,
            noise_samples: noise.samples,
            ..StartFailure::new(&self.settings.name, step, what)
        }
    }
}

impl Witness for Inner {
    fn step(&self, step: Step) {
        self.step_done();
        self.change(|state| {
            if step == Step::FindCommand {
                state.steps.clear();
            }
            state.step = Some(step);
            state.step_since = Instant::now();
        });
    }

    fn found(&self, program: &Path) {
        self.change(|state| state.program = Some(program.display().to_string()));
    }

    fn started(&self, pid: u32) {
        let program = self.state.borrow().program.clone().unwrap_or_default();
        self.record.note(&format!("started {program}, pid {pid}"));
        self.change(|state| state.pid = Some(pid));
    }
}
