//! The server: listens, takes connections in, and ends without leaving a call unanswered.

mod applied;
pub mod audited;
mod connection;
mod lanes;
mod news;
pub mod presence;
mod settings;
pub mod tls;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use futures_util::FutureExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::http::{self, Access, App, ServerParts};
use applied::{export, jwt_of, watch_over};
use audited::SettingsInForce;
use connection::Service;
use lanes::Lanes;
use presence::Presence;
pub use settings::{CannotServe, Fault, Settings};
use steadyhand_config::{Configuration, Surroundings};
use steadyhand_runtime::access::login_code;
use steadyhand_runtime::admission::{ConnectionTable, Limits, OpenConnection};
use steadyhand_runtime::audit::{AuditEvent, AuditLog};
use steadyhand_runtime::runtime::Runtime;
use steadyhand_store::history::History;
use tls::Tls;

/// Where a server is started, somebody is about to open its pages.
const LOGIN_LINK_LASTS: Duration = Duration::from_secs(24 * 60 * 60);
/// How long running calls are waited for when the server ends.
pub const DRAIN_MAX: Duration = Duration::from_secs(10);
/// How long calls that were cancelled then, and answers on their way, may take.
const LAST_WORDS_MAX: Duration = Duration::from_secs(2);
/// Connections that wait to be accepted. Where there are more, the system lets a client wait a second before it tries again.
const BACKLOG: u32 = 4096;
/// Connections beyond the limit that are told so at the same time. Further ones wait a moment for a place of either
/// kind, then they are closed: those who say nothing must not keep others from being heard.
const REFUSALS: usize = 32;
const REFUSAL_WAIT: Duration = Duration::from_millis(10);
/// How long a connection waits for room before it is told that there is none, and how often it looks.
const ROOM_WAIT: Duration = Duration::from_millis(250);
const LOOK_FOR_ROOM: Duration = Duration::from_millis(10);
/// Connections that had not been accepted when the end began, and still are.
const LATE_MAX: usize = 4096;
/// When the machine has no more files to open, trying at once again does not help.
const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(50);
/// The part of `limits.connections` that may be open beyond them, for callers that do not have their share.
const CONNECTIONS_RESERVE_PART: usize = 4;
/// Files that are open beside connections: the database, tools' own connections, standard streams.
const OTHER_FILES: usize = 256;

/// A server with an address. It answers once [`Server::accept`] is awaited.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    /// What the configuration said at the start, or the flag in its place.
    configured: SocketAddr,
    app: Arc<App>,
    router: Router,
    connections: Arc<ConnectionTable>,
    refusals: Arc<Semaphore>,
    lanes: Arc<Lanes>,
    tls: Tls,
    /// Cancelled when connections must come to their end.
    ending: CancellationToken,
    presence: Mutex<Option<Presence>>,
}

/// A call that the end of the server waits for.
pub struct Waiting {
    pub tool: String,
    /// Without the wait for an approval, which its deadline does not count either.
    pub elapsed: Duration,
    pub deadline: Duration,
}

/// How the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Calls that had to be cancelled. Their callers were told.
    pub cancelled: usize,
}

/// The address, before there is anything to serve: a port that is taken is found out first.
pub async fn listen(settings: &Settings) -> Result<TcpListener, CannotServe> {
    bind(settings.listen).map_err(|error| CannotServe::address(settings.listen, &error))
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A server that was restarted does not wait for connections of the one before it.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

impl Server {
    /// Gives a runtime an address.
    pub fn new(
        listener: TcpListener,
        runtime: Runtime,
        history: History,
        settings: &Settings,
        parts: ServerParts,
    ) -> Result<Server, CannotServe> {
        let address = listener
            .local_addr()
            .map_err(|error| CannotServe::address(settings.listen, &error))?;
        let proxies = settings.proxy.iter().flat_map(|all| all.values());
        let bodies = proxies.filter_map(|proxy| proxy.body.map(|size| size.0 as usize));
        let mut limits = Limits::of(&settings.limits, bodies.max().unwrap_or(0));
        let files = files_max().saturating_sub(OTHER_FILES).max(2);
        limits.connections = limits.connections.min(files - files.div_ceil(5)).max(1);
        let connections_max = limits.connections + connections_reserve(limits.connections);
        let jwt = jwt_of(settings, None, &runtime)?;
        let access = Access::new(
            address,
            settings.token.as_ref(),
            &settings.allowed_hosts,
            jwt,
            Some(Arc::clone(&parts.door)),
        );
        let tls = Tls::of(settings.tls.as_ref(), runtime.trust())?;
        let mut app = App::new(runtime, history, limits, access, parts);
        app.pages = app.pages.filter(|_| settings.dashboard);
        let app = Arc::new(app);
        // Without it calls go on, and nobody can watch them.
        if let Err(error) = app.live.follow(app.runtime.executor()) {
            tracing::error!(%error, "live events are not told: there is no thread for it");
        }
        if let Err(error) = app.alerts.follow(app.runtime.executor()) {
            tracing::error!(%error, "alerts are not raised: there is no thread for it");
        }
        app.tell_of_approvals();
        export(&app, settings);
        watch_over(&app, settings);
        app.proxy.apply(&settings.proxy);
        Ok(Server {
            listener,
            address,
            configured: settings.listen,
            router: http::router(Arc::clone(&app)),
            app,
            connections: ConnectionTable::new(connections_max),
            refusals: Arc::new(Semaphore::new(REFUSALS)),
            lanes: Arc::new(Lanes::open()),
            tls,
            ending: CancellationToken::new(),
            presence: Mutex::new(None),
        })
    }

    /// Where it listens, the port it was given included.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it serves.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// A link that logs a browser in once, where nobody is asked for credentials: decisions want some all the same.
    pub fn login_link(&self) -> Option<String> {
        let is_open = self.app.access.load().is_open();
        (is_open && self.app.pages.is_some()).then(|| {
            let code = login_code::make(&self.app.door.local, LOGIN_LINK_LASTS);
            format!("{}://{}/login?code={code}", self.scheme(), self.address)
        })
    }

    /// How it is spoken to.
    pub fn scheme(&self) -> &'static str {
        match self.tls.acceptor() {
            Some(_) => "https",
            None => "http",
        }
    }

    /// Writes down that it serves, and by which configuration.
    pub fn note_start(&self) {
        let generation = self.app.runtime.generation();
        let settings = SettingsInForce::of(&generation.configuration);
        let version = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "address": self.address.to_string(),
        });
        let audit = &self.app.audit;
        audit.note(AuditEvent::of_server("server.start").changed(None, Some(version)));
        let loaded = AuditEvent::of_server("config.loaded").on(&settings.file);
        audit.note(loaded.changed(None, Some(settings.view(generation.number))));
    }

    /// Who decided and changed what here.
    pub fn audit(&self) -> AuditLog {
        self.app.audit.clone()
    }

    /// Lets commands of the same configuration find it, for as long as it lives.
    pub fn announce(&self, state: &std::path::Path) -> io::Result<()> {
        let _ = self.app.state.set(state.to_owned());
        let generation = self.app.runtime.generation();
        let file = generation.configuration.file.as_deref();
        let (instance, local) = (&self.app.instance, &self.app.door.local);
        let certificate = self.tls.fingerprint();
        let presence = Presence::announce(state, file, self.address, instance, local, certificate)?;
        *self.presence() = Some(presence);
        Ok(())
    }

    /// Follows the configuration: tells of every new one, and takes over what it says of the server and can change
    /// while it runs. For ever.
    pub async fn follow(&self, surroundings: &Surroundings) -> Infallible {
        let runtime = &self.app.runtime;
        let mut changes = runtime.changes();
        changes.mark_unchanged();
        let mut told = *changes.borrow();
        let mut followed: Vec<Followed> = Vec::new();
        let mut settings_before = SettingsInForce::of(&runtime.generation().configuration);
        loop {
            followed.retain(|one| {
                runtime
                    .server(one.server.name())
                    .is_some_and(|it| it.is(&one.server))
            });
            for state in runtime.servers() {
                let server = runtime.server(&state.name);
                let new = server.filter(|server| !followed.iter().any(|one| one.server.is(server)));
                followed.extend(new.map(|server| Followed::begin(server, &self.app)));
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            let number = *changes.borrow_and_update();
            news::tell_configuration(runtime, &self.app.live, number != told);
            if number == told {
                if let Some(Err(report)) = runtime.last_reload() {
                    let event = AuditEvent::of_server("config.refused");
                    let count = report.problems.len();
                    let problems = serde_json::json!({"problems": count});
                    self.app
                        .audit
                        .note(event.changed(None, Some(problems)).result("refused"));
                }
            } else {
                let settings = SettingsInForce::of(&runtime.generation().configuration);
                let changed = settings_before.differences(&settings);
                let event = AuditEvent::of_server("config.changed").on(&settings.file);
                let (old, new) = (settings_before.view(told), settings.view(number));
                let mut after = new;
                after["changed"] = changed;
                self.app.audit.note(event.changed(Some(old), Some(after)));
                settings_before = settings;
            }
            told = number;
            // A key store that is asked for a token may take its time.
            let (generation, surroundings) = (runtime.generation(), surroundings.clone());
            let read = move || settings_of(&generation.configuration, &surroundings);
            match tokio::task::spawn_blocking(read).await {
                Ok(Ok(settings)) => self.adapt(&settings),
                Ok(Err(cannot)) => tracing::error!(
                    reason = cannot.message,
                    "the server goes on with the token and the hosts it had"
                ),
                Err(error) => tracing::error!(%error, "the settings of the server were not read"),
            }
        }
    }

    fn adapt(&self, settings: &Settings) {
        export(&self.app, settings);
        watch_over(&self.app, settings);
        self.app.proxy.apply(&settings.proxy);
        if let Err(cannot) = self.may_go_on(settings) {
            tracing::error!(
                reason = cannot.message,
                "the server goes on with the token it had"
            );
            return;
        }
        let before = self.app.access.load().jwt.clone();
        let jwt = match jwt_of(settings, before, &self.app.runtime) {
            Ok(jwt) => jwt,
            Err(cannot) => {
                tracing::error!(
                    reason = cannot.message,
                    "the server goes on with the issuer it had"
                );
                return;
            }
        };
        let access = Access::new(
            self.address,
            settings.token.as_ref(),
            &settings.allowed_hosts,
            jwt,
            Some(Arc::clone(&self.app.door)),
        );
        self.app.access.store(Arc::new(access));
        self.tls
            .renew(settings.tls.as_ref(), self.app.runtime.trust());
        let certificate = self.tls.fingerprint();
        let renewed = self
            .presence()
            .as_mut()
            .map(|presence| presence.renew(certificate));
        if let Some(Err(error)) = renewed {
            tracing::warn!(%error, "commands will not know the new certificate of this server");
        }
    }

    fn presence(&self) -> MutexGuard<'_, Option<Presence>> {
        self.presence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address stays, whatever the new settings say of it.
    fn may_go_on(&self, settings: &Settings) -> Result<(), CannotServe> {
        if settings.listen != self.configured {
            tracing::warn!(
                listen = %settings.listen,
                "server.listen has changed, which applies when the server is started again"
            );
        }
        settings.check(self.address, &self.app.door.keys)
    }

    /// Raises alerts and takes them back, for ever.
    pub async fn watch(&self) -> Infallible {
        let desk = self.app.desk.clone();
        let waiting = move || desk.waiting();
        let pins = &self.app.pins;
        self.app
            .alerts
            .watch(&self.app.runtime, pins, waiting)
            .await
    }

    /// Takes connections in, for ever.
    pub async fn accept(&self) -> Infallible {
        loop {
            let (stream, peer) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(AFTER_FAILED_ACCEPT).await;
                    continue;
                }
            };
            self.take_in(stream, peer).await;
        }
    }

    async fn take_in(&self, stream: TcpStream, peer: SocketAddr) {
        if let Some(open) = self.connections.take_in(peer.ip()) {
            return self.serve(stream, peer, open);
        }
        let Ok(place) = timeout(REFUSAL_WAIT, Arc::clone(&self.refusals).acquire_owned()).await
        else {
            // Too many wait already.
            return;
        };
        let Ok(place) = place else {
            return;
        };
        let (service, connections) = (self.service(), Arc::clone(&self.connections));
        let lanes = Arc::clone(&self.lanes);
        tokio::spawn(async move {
            match when_there_is_room(&connections, peer).await {
                Some(open) => {
                    drop(place);
                    serve_on(&lanes, service, stream, peer, open);
                }
                None => {
                    service.refuse(stream, peer).await;
                    drop(place);
                }
            }
        });
    }

    fn service(&self) -> Service {
        Service {
            app: Arc::clone(&self.app),
            router: self.router.clone(),
            acceptor: self.tls.acceptor(),
            ending: self.ending.clone(),
        }
    }

    fn serve(&self, stream: TcpStream, peer: SocketAddr, open: OpenConnection) {
        serve_on(&self.lanes, self.service(), stream, peer, open);
    }

    /// Who has connected already is told, too.
    fn take_in_the_late(&self) {
        for _ in 0..LATE_MAX {
            let accepted = tokio::task::unconstrained(self.listener.accept()).now_or_never();
            let Some(Ok((stream, peer))) = accepted else {
                return;
            };
            if let Some(open) = self.connections.take_in(peer.ip()) {
                self.serve(stream, peer, open);
            }
        }
    }

    /// Ends: no new connections, no new calls. Running calls are waited for, then cancelled; each is answered.
    /// `tell` hears every second what is waited for.
    pub async fn drain(self, mut tell: impl FnMut(&[Waiting])) -> Drained {
        self.app.closing.cancel();
        self.app.live.close();
        self.app.gateway.close();
        self.app.admission.running.close();
        self.take_in_the_late();
        drop(self.listener);
        let until = Instant::now() + DRAIN_MAX;
        let mut second = Duration::ZERO;
        while Instant::now() < until && self.app.admission.running.count() > 0 {
            // Nobody can approve a call here any more.
            self.app.admission.running.cancel_waiting();
            if timeout(second, self.app.admission.running.until_none())
                .await
                .is_ok()
            {
                break;
            }
            tell(&waiting(&self.app));
            second = Duration::from_secs(1);
        }
        let _ = tokio::time::timeout_at(until, self.app.proxy.until_none()).await;
        let cancelled = self.app.admission.running.cancel_all();
        self.app.proxy.end();
        let _ = timeout(LAST_WORDS_MAX, self.app.admission.running.until_none()).await;
        self.ending.cancel();
        let _ = timeout(LAST_WORDS_MAX, self.connections.until_none()).await;
        // How long they lasted is exported, too.
        self.app.gateway.end_sessions();
        let _ = timeout(LAST_WORDS_MAX, self.app.runtime.stop_servers()).await;
        self.app.otlp.shut_down(LAST_WORDS_MAX).await;
        let history = self.app.history.clone();
        let written = tokio::task::spawn_blocking(move || history.flush(LAST_WORDS_MAX)).await;
        if !written.unwrap_or(false) {
            tracing::warn!("not every call is in the history: it could not be written in time");
        }
        Drained { cancelled }
    }
}

/// Serves a connection on one of the threads for that.
fn serve_on(
    lanes: &Lanes,
    service: Service,
    stream: TcpStream,
    peer: SocketAddr,
    open: OpenConnection,
) {
    // It belongs to whoever waits for it: there it is registered anew.
    let stream = match stream.into_std() {
        Ok(stream) => stream,
        Err(error) => {
            return tracing::debug!(%error, %peer, "a connection that cannot be served");
        }
    };
    lanes.serve(async move {
        match TcpStream::from_std(stream) {
            Ok(stream) => service.serve(stream, peer, open).await,
            Err(error) => tracing::debug!(%error, %peer, "a connection that cannot be served"),
        }
    });
}

/// Waits a little for a connection that makes room, or ends.
async fn when_there_is_room(
    connections: &Arc<ConnectionTable>,
    peer: SocketAddr,
) -> Option<OpenConnection> {
    let until = Instant::now() + ROOM_WAIT;
    loop {
        sleep(LOOK_FOR_ROOM).await;
        let open = connections.take_in(peer.ip());
        if open.is_some() || Instant::now() >= until {
            return open;
        }
    }
}

/// An MCP server whose changes are told, until this goes.
struct Followed {
    server: steadyhand_mcp::Server,
    telling: tokio::task::JoinHandle<()>,
}

impl Followed {
    fn begin(server: steadyhand_mcp::Server, app: &App) -> Followed {
        let telling = news::follow(server.clone(), app.runtime.clone(), app.live.clone());
        Followed {
            server,
            telling: tokio::spawn(telling),
        }
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.telling.abort();
    }
}

fn waiting(app: &App) -> Vec<Waiting> {
    let calls = app.admission.running.list();
    calls
        .iter()
        .map(|call| Waiting {
            tool: call.tool.clone(),
            elapsed: call.running_time(),
            deadline: app.deadline_of(call),
        })
        .collect()
}

/// Connections beyond those that one caller may have in use.
fn connections_reserve(connections: usize) -> usize {
    connections.div_ceil(CONNECTIONS_RESERVE_PART)
}

/// A file that may not grow any more (`ulimit -f`) is an error of the one who writes it, as on a full disk: without
/// this the signal that comes with it would end the process.
#[cfg(unix)]
pub fn outlive_limits_of_files() {
    use tokio::signal::unix::{SignalKind, signal};
    // The handler stays when what listens to it goes.
    let handled = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
    if let Err(error) = handled {
        tracing::debug!(%error, "a limit on the size of files would end this process");
    }
}

#[cfg(not(unix))]
pub fn outlive_limits_of_files() {}

/// How many files this process may open; as many as it is allowed to have.
#[cfg(unix)]
fn files_max() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    current.map_or(usize::MAX, |files| files as usize)
}

#[cfg(not(unix))]
fn files_max() -> usize {
    usize::MAX
}

/// The settings of a configuration, references replaced.
pub fn settings_of(
    configuration: &Configuration,
    surroundings: &Surroundings,
) -> Result<Settings, CannotServe> {
    Settings::read(configuration, surroundings)
}
