//! The way back of a server that is known to be down.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::client::http::Remote;
use crate::client::lifecycle::failure::StartFailure;
use crate::client::lifecycle::session::Session;
use crate::client::lifecycle::supervisor::start_once;
use crate::client::server::Inner;
use crate::client::state::Phase;

/// A call that finds its server down makes it start, but not more often than this.
const WAKE_PAUSE: Duration = Duration::from_secs(1);
/// How often a server over the network that is away is knocked at: at first, for so long, and later when it is called.
const KNOCK_PAUSE: Duration = Duration::from_millis(25);
const KNOCK_SPAN: Duration = Duration::from_secs(10);
const KNOCK_PAUSE_LATER: Duration = Duration::from_millis(100);
/// The wait for one that takes connections and is not well yet.
const NOT_WELL_PAUSE: Duration = Duration::from_millis(250);

/// Tries in the background, with growing waits, until the server is back. A call that arrives makes it sooner.
pub(crate) async fn come_back(server: &Arc<Inner>, mut failure: StartFailure) -> Session {
    let attempts = failure.attempts;
    let mut pace = Pace::of(server);
    // A call from before the failure is no new one.
    let _ = timeout(Duration::ZERO, server.wake.notified()).await;
    loop {
        failure.attempts = attempts;
        let shown = Arc::new(failure.clone());
        let next = Instant::now() + pace.wait;
        server.change(|state| {
            state.phase = Phase::Down;
            state.pid = None;
            state.failure = Some(Arc::clone(&shown));
            state.next_try = Some(next);
        });
        pace.pause(server).await;
        match start_once(server, attempts.saturating_add(1)).await {
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
    }
}

/// How often a server that is down is tried.
struct Pace {
    since: Instant,
    wait: Duration,
    wait_max: Duration,
    /// It took a connection the last time, and was not well all the same.
    was_open: bool,
}

impl Pace {
    fn of(server: &Inner) -> Pace {
        Pace {
            since: Instant::now(),
            wait: server.settings.start.retry_first,
            wait_max: server.settings.start.retry_max,
            was_open: false,
        }
    }

    /// Waits until it is time to try, or worth it.
    async fn pause(&mut self, server: &Inner) {
        match server.remote() {
            Some(remote) => self.knock(server, remote).await,
            None => self.wait_for(server, WAKE_PAUSE).await,
        }
    }

    /// Until the next try is due, or a call makes it due.
    async fn wait_for(&mut self, server: &Inner, wake_pause: Duration) {
        let tried = Instant::now();
        let next = tried + self.wait;
        self.wait = (self.wait * 2).min(self.wait_max);
        tokio::select! {
            () = sleep_until(next) => {}
            () = server.restart.notified() => {}
            () = async {
                server.wake.notified().await;
                sleep_until(tried + wake_pause).await;
            } => {}
        }
    }

    /// Someone else brings it back, at any moment. To knock costs next to nothing: at first it is done all the time,
    /// later whenever someone calls.
    async fn knock(&mut self, server: &Inner, remote: &Remote) {
        if std::mem::take(&mut self.was_open) {
            sleep(NOT_WELL_PAUSE).await;
        }
        while remote.probe().await.is_err() {
            match self.since.elapsed() < KNOCK_SPAN {
                true => sleep(KNOCK_PAUSE).await,
                false => self.wait_for(server, KNOCK_PAUSE_LATER).await,
            }
        }
        self.was_open = true;
    }
}
