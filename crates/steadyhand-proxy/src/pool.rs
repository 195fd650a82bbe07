//! Connections that wait to be used again. Each host's habits are learned: a connection is used again only after a
//! pause that connections to this host have outlived before, so that a request does not meet a connection that its
//! host is about to close.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use hyper::client::conn::http1::SendRequest;
use tokio::time::{Instant, sleep_until};

use super::connection::{Dialled, Wire};

/// Longest time that a connection is kept without being used.
const IDLE_KEPT: Duration = Duration::from_secs(15);
const IDLE_MAX: usize = 256;
/// A connection that is open so long after an answer shows that its host keeps connections.
const FIRST_CHECK: Duration = Duration::from_secs(1);
/// Distance to the longest pause that is known to be safe: clocks and networks are not exact.
const MARGIN_MIN: Duration = Duration::from_millis(500);
/// After a host has closed connections right behind an answer, a connection must have been open so long before it is
/// used again.
const REST_MIN: Duration = Duration::from_millis(100);
/// For so long.
const REST_FOR: Duration = Duration::from_secs(600);

/// Connections by host: scheme, name and port.
#[derive(Clone, Default)]
pub(super) struct ConnectionPool(Arc<Mutex<HashMap<String, Host>>>);

#[derive(Default)]
struct Host {
    /// The oldest first.
    idle: Vec<Idle>,
    habits: Habits,
}

struct Idle {
    connection: Connection,
    since: Instant,
}

/// A connection that a request can be sent on.
pub(super) struct Connection {
    pub(super) sender: SendRequest<Body>,
    pub(super) wire: Arc<Wire>,
}

impl ConnectionPool {
    /// A connection that is safe to use again.
    pub(super) fn take(&self, host: &str) -> Option<Connection> {
        self.with(host, |host| {
            let now = Instant::now();
            host.idle.retain(|idle| !idle.connection.sender.is_closed());
            let usable = |idle: &Idle| host.habits.is_safe_after(now - idle.since, now);
            let at = host.idle.iter().rposition(usable)?;
            Some(host.idle.remove(at).connection)
        })
    }

    /// Runs a new connection until either side closes it.
    pub(super) fn run(&self, host: &str, dialled: Dialled) -> Connection {
        let Dialled {
            sender,
            driver,
            wire,
        } = dialled;
        let (pool, host, watched) = (self.clone(), host.to_owned(), Arc::clone(&wire));
        tokio::spawn(async move {
            let mut driver = std::pin::pin!(driver);
            let mut check_at = Instant::now() + FIRST_CHECK;
            loop {
                tokio::select! {
                    _ = &mut driver => return pool.closed(&host, &watched),
                    () = sleep_until(check_at) => match pool.check(&host, &watched) {
                        Some(next) => check_at = next,
                        None => return,
                    },
                }
            }
        });
        Connection { sender, wire }
    }

    /// Takes a connection back once its answer has been read to the end.
    pub(super) fn give_back(&self, host: &str, mut connection: Connection) {
        if connection.sender.is_ready() {
            return self.put(host, connection);
        }
        let (pool, host) = (self.clone(), host.to_owned());
        tokio::spawn(async move {
            if connection.sender.ready().await.is_ok() {
                pool.put(&host, connection);
            }
        });
    }

    fn put(&self, host: &str, connection: Connection) {
        connection.wire.rest();
        self.with(host, |host| {
            // The older ones stay: how long they stay open is what is to be learned.
            if host.idle.len() < IDLE_MAX {
                host.idle.push(Idle {
                    connection,
                    since: Instant::now(),
                });
            }
        });
    }

    /// Looks at a connection that is open: when to look again, or none if it has been idle for long enough.
    fn check(&self, host: &str, wire: &Arc<Wire>) -> Option<Instant> {
        self.with(host, |host| {
            let now = Instant::now();
            let Some(at) = host.position(wire) else {
                return Some(now + FIRST_CHECK);
            };
            let since = host.idle[at].since;
            host.habits.was_open_after(now - since);
            if now - since >= IDLE_KEPT {
                host.idle.remove(at);
                return None;
            }
            let next = since + (now - since) * 2;
            Some(next.clamp(now + FIRST_CHECK / 2, since + IDLE_KEPT))
        })
    }

    fn closed(&self, host: &str, wire: &Arc<Wire>) {
        self.with(host, |host| {
            let now = Instant::now();
            let since = host.position(wire).map(|at| host.idle.remove(at).since);
            if wire.was_closed_unannounced() {
                // One that is not idle was closed in the middle of something, or right behind an answer.
                let idle_for = since.map_or(Duration::ZERO, |since| now - since);
                host.habits.was_closed_after(idle_for, now);
            }
        });
    }

    fn with<T>(&self, host: &str, work: impl FnOnce(&mut Host) -> T) -> T {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match hosts.get_mut(host) {
            Some(host) => work(host),
            None => work(hosts.entry(host.to_owned()).or_default()),
        }
    }
}

impl Host {
    fn position(&self, wire: &Arc<Wire>) -> Option<usize> {
        let is_it = |idle: &Idle| Arc::ptr_eq(&idle.connection.wire, wire);
        self.idle.iter().position(is_it)
    }
}

/// What is known of how a host treats connections that nobody uses.
#[derive(Debug, Default)]
struct Habits {
    /// Longest pause after which a connection was still open, as far as later closes do not contradict it.
    open_after: Duration,
    /// How long a connection has to be open after an answer, and until when that is asked of it.
    rest: Option<(Duration, Instant)>,
}

impl Habits {
    fn is_safe_after(&self, pause: Duration, now: Instant) -> bool {
        let margin = (self.open_after / 4).max(MARGIN_MIN);
        let rest = self.rest.filter(|(_, until)| now < *until);
        pause + margin <= self.open_after && rest.is_none_or(|(rest, _)| pause >= rest)
    }

    fn was_open_after(&mut self, pause: Duration) {
        self.open_after = self.open_after.max(pause);
    }

    fn was_closed_after(&mut self, pause: Duration, now: Instant) {
        self.open_after = self.open_after.min(pause);
        if pause < FIRST_CHECK {
            let before = self.rest.map_or(REST_MIN, |(rest, _)| rest);
            let rest = before.max(pause * 4).min(FIRST_CHECK);
            self.rest = Some((rest, now + REST_FOR));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_used_again_within_pauses_that_others_have_outlived() {
        let now = Instant::now();
        let mut habits = Habits::default();
        assert!(
            !habits.is_safe_after(Duration::ZERO, now),
            "nothing is known yet"
        );
        habits.was_open_after(4 * SECOND);
        assert!(habits.is_safe_after(Duration::ZERO, now));
        assert!(habits.is_safe_after(3 * SECOND, now));
        assert!(
            !habits.is_safe_after(4 * SECOND, now),
            "too near to the edge"
        );
        habits.was_closed_after(2 * SECOND, now);
        assert!(!habits.is_safe_after(2 * SECOND, now));
        assert!(habits.is_safe_after(SECOND, now));
        habits.was_open_after(8 * SECOND);
        assert!(habits.is_safe_after(6 * SECOND, now), "it was an exception");
    }

    #[tokio::test(start_paused = true)]
    async fn behind_a_host_that_closes_after_answers_a_connection_must_have_rested() {
        let now = Instant::now();
        let mut habits = Habits::default();
        habits.was_open_after(8 * SECOND);
        habits.was_closed_after(Duration::ZERO, now);
        assert!(!habits.is_safe_after(REST_MIN, now));
        habits.was_open_after(8 * SECOND);
        assert!(!habits.is_safe_after(Duration::ZERO, now));
        assert!(habits.is_safe_after(REST_MIN, now));
        assert!(
            habits.is_safe_after(Duration::ZERO, now + REST_FOR),
            "that is over"
        );
    }
}
