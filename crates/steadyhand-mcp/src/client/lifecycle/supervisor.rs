//! Watches over one server: starts it, sees it end, starts it again. One task per server, asleep most of the time.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use crate::client::catalogue::lists::Changed;
use crate::client::catalogue::subscriptions;
use crate::client::connection::Connection;
use crate::client::lifecycle::era::Era;
use crate::client::lifecycle::failure::{StartFailure, Step, What};
use crate::client::lifecycle::handshake::{Beginning, Greeted, NotGreeted};
use crate::client::lifecycle::reconnect::come_back;
use crate::client::lifecycle::session::{self, Session, Stuck, Witness};
use crate::client::lifecycle::upkeep;
use crate::client::server::Inner;
use crate::client::state::{Phase, ServerState, StepDone};
use crate::measures::{self, Measure};

/// So many servers start at the same time: the others wait for their turn.
static STARTING: Semaphore = Semaphore::const_new(32);

/// How long a server that is asked to end may take before it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// How long the calls of a server that is no longer wanted may go on.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);
/// How long a server that was never up before is asked for its prompts and resources before it counts as up.
const FIRST_LISTS_LIMIT: Duration = Duration::from_secs(5);
/// Lines of stderr that a failure shows.
const TAIL_LINES: usize = 20;

/// The target of the line about a start that failed in all its attempts: whoever shows the lines of SPEC V17 leaves it out.
pub const START_FAILED: &str = "steadyhand_mcp::start_failed";

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
        connection.goodbye().await;
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
                let how = last_words(server, &what);
                let name = &server.settings.name;
                tracing::warn!(server = name, "MCP server {how}");
                server.change(|state| {
                    state.died(how);
                    state.phase = Phase::Restarting;
                });
                if let What::Unreachable(_) = &what {
                    // Nothing of ours can start it: known to be down, and looked for all the time (SPEC D17).
                    let failure = server.failure(Step::Connect, what, Duration::ZERO, 1);
                    way = Way::ComeBack(Box::new(failure));
                    continue;
                }
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
            Ok(session) if attempt > 1 => {
                // Shown wherever warnings are: the attempt before it was one.
                tracing::info!(
                    target: "steadyhand::notice",
                    server = name,
                    "MCP connection succeeded on attempt {attempt}"
                );
                return Ok(session);
            }
            Ok(session) => {
                tracing::info!(
                    server = name,
                    "MCP connection succeeded on attempt {attempt}"
                );
                return Ok(session);
            }
            Err(failure) => {
                let summary = failure.summary();
                tracing::info!(
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
        target: START_FAILED,
        server = name,
        reason = failure.summary(),
        stderr = failure.stderr.join("\n"),
        check = failure.hints(&server.settings.check),
        "MCP connection failed after {total} attempts"
    );
    Err(failure)
}

/// One start, from finding the program to knowing its tools.
pub(crate) async fn start_once(server: &Arc<Inner>, attempt: u32) -> Result<Session, StartFailure> {
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
    let phase = server.state.borrow().phase;
    server.record.begin();
    let failed = |step, what| server.failure(step, what, began.elapsed(), attempt);
    let session = start_session(server).await;
    let mut session = session.map_err(|Stuck { step, what }| failed(step, what))?;
    server.step(Step::Initialize);
    let mut beginning = Beginning {
        settings: &server.settings,
        desk: &server.desk,
        remote: server.remote(),
        remembered: server.era(),
        until,
    };
    let mut greeted = beginning.greet(&mut session).await;
    if let Err(NotGreeted::DiedOfTheQuestion(end)) = &greeted {
        let (name, how) = (&server.settings.name, format!("{end:?}"));
        tracing::info!(
            server = name,
            how,
            "it ended when asked for its era: it is asked in the old way"
        );
        server.remember(Some(Era::Legacy));
        beginning.remembered = Some(Era::Legacy);
        let again = start_session(server).await;
        session = again.map_err(|Stuck { step, what }| failed(step, what))?;
        server.step(Step::Initialize);
        greeted = beginning.greet(&mut session).await;
    }
    let Greeted { mut greeting, era } = greeted.map_err(|not| match not {
        NotGreeted::Stuck(Stuck { step, what }) => failed(step, what),
        NotGreeted::DiedOfTheQuestion(end) => failed(Step::Initialize, end.into()),
    })?;
    if let Some(hide) = server.settings.hide_in_lists() {
        greeting.hide(hide);
    }
    server.remember(Some(era));
    let is_known = server.state.borrow().greeting.is_some();
    // What was known of one that was away holds until it has been read anew: no call waits for that.
    let is_back = is_known && server.knows_tools() && phase == Phase::Down;
    if !is_back {
        server.step(Step::ListTools);
        let listed = session.list(&server.settings, until).await;
        server.take_catalogue(listed.map_err(|what| failed(Step::ListTools, what))?);
    }
    server.step_done();
    server.change(|state| state.greeting = Some(greeting));
    match is_known {
        true if is_back => session.connection.tell_changed(Changed::ALL),
        true => session.connection.tell_changed(Changed::BESIDE_TOOLS),
        false => {
            let until = until.min(Instant::now() + FIRST_LISTS_LIMIT);
            upkeep::read_lists(server, &session.connection, Changed::BESIDE_TOOLS, until).await;
        }
    }
    if !is_back {
        server.keep().await;
    }
    let pid = session.pid();
    server
        .connection
        .store(Some(Arc::new(session.connection.clone())));
    server.change(|state| {
        state.phase = Phase::Running;
        state.step = None;
        state.pid = pid;
        state.starts += 1;
        state.failure = None;
        state.next_try = None;
        state.start_ms = Some(began.elapsed().as_secs_f64() * 1000.0);
    });
    Ok(session)
}

async fn start_session(server: &Arc<Inner>) -> Result<Session, Stuck> {
    let remote = server.remote.as_ref();
    session::start(&server.settings, remote, &server.desk, &**server).await
}

/// The time a server is up.
async fn run(server: &Arc<Inner>, mut session: Session) -> After {
    let connection = session.connection.clone();
    let pid = session.pid();
    let mut lasted = Lasted::begin(&connection);
    let after = tokio::select! {
        end = session.broken() => After::Broke(end.into()),
        () = upkeep::lost_trust(server, &connection) => {
            let limit = upkeep::PING_LIMIT;
            After::Broke(What::Silent { limit, pid })
        }
        () = server.restart.notified() => After::Restart,
        () = upkeep::unused(server, &connection) => After::Rest,
        never = upkeep::keep_fresh(server, &connection) => match never {},
        never = subscriptions::keep(server, &connection) => match never {},
    };
    lasted.broke = matches!(after, After::Broke(_));
    drop(lasted);
    server.connection.store(None);
    let reason = match &after {
        After::Broke(what) => format!("it {}", last_words(server, what)),
        After::Restart => "it was restarted".to_owned(),
        After::Rest => "it was not used".to_owned(),
    };
    server.record.note(&format!("is down: {reason}"));
    match &after {
        // Each call has a connection of its own, and learns by itself what becomes of it.
        After::Broke(What::Unreachable(_)) => drop(session),
        _ => {
            // Calls learn of it before the program has been stopped, which may take its time.
            connection.close(&reason);
            tokio::spawn(async move { session.stop(&reason, GRACE).await });
        }
    }
    server.keep_log().await;
    after
}

/// Counts how long a server was up, however that ends.
struct Lasted {
    connection: Connection,
    since: Instant,
    broke: bool,
}

impl Lasted {
    fn begin(connection: &Connection) -> Lasted {
        Lasted {
            connection: connection.clone(),
            since: Instant::now(),
            broke: false,
        }
    }
}

impl Drop for Lasted {
    fn drop(&mut self) {
        let mut attributes = self.connection.described();
        if self.broke {
            attributes.push(("error.type", "connection_lost".to_owned()));
        }
        measures::record(Measure::ClientSession, attributes, self.since.elapsed());
    }
}

/// How it ended, and what it said last.
fn last_words(server: &Inner, what: &What) -> String {
    let how = what.of_one_that_ran();
    let how = match server.record.hide() {
        Some(hide) => hide(how),
        None => how,
    };
    match server.record.stderr_tail(1).pop() {
        Some(said) => format!("{how}; its last words: {said}"),
        None => how,
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
        let what = match self.record.hide() {
            Some(hide) => what.hidden(hide),
            None => what,
        };
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
            if matches!(step, Step::FindCommand | Step::Connect) {
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
