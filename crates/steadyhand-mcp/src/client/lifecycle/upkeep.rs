//! What goes on while a server is up: its lists kept fresh, doubts about it cleared, its idle time watched.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::client::calls::server_request::{NoListener, ServerRequest};
use crate::client::catalogue::lists::{
    self, Changed, ListError, ListKind, Listed, Pages, read_pages,
};
use crate::client::connection::Connection;
use crate::client::connection::slot::Answer;
use crate::client::lifecycle::handshake;
use crate::client::lifecycle::session;
use crate::client::server::Inner;

/// A server that was silent while a call timed out must answer a ping within this time.
pub(crate) const PING_LIMIT: Duration = Duration::from_secs(5);
/// Between two looks at lists that keep changing: this, and ten times what the last look took …
const REFRESH_PAUSE: Duration = Duration::from_millis(500);
const REFRESH_SHARE: u32 = 10;
/// … and from so many looks in a row on twice as long each time, up to this.
const REFRESHES_AT_ONCE: u32 = 10;
const REFRESH_PAUSE_MAX: Duration = Duration::from_secs(60);
const METHOD_NOT_FOUND: i64 = -32601;

/// Ends when a server that was silent for a whole call does not answer a ping either.
pub(crate) async fn lost_trust(server: &Inner, connection: &Connection) {
    loop {
        connection.doubted().await;
        let since = Instant::now();
        let ping = async {
            match connection.is_modern() {
                true => handshake::discover(connection).answer().await,
                false => {
                    ServerRequest::ours("ping", None)
                        .run(connection, &NoListener)
                        .await
                }
            }
        };
        let answered = match timeout(PING_LIMIT, ping).await {
            // An error is an answer, too.
            Ok(
                Answer::Result(_)
                | Answer::Error(_)
                | Answer::TooLarge(_)
                | Answer::NoMemory(_)
                | Answer::Unreadable(_),
            ) => true,
            Ok(Answer::Lost(_)) => return std::future::pending().await,
            Ok(Answer::TransportError(_) | Answer::Unanswered(_)) | Err(_) => {
                connection.heard_since(since)
            }
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
pub(crate) async fn unused(server: &Inner, connection: &Connection) {
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
pub(crate) async fn keep_fresh(
    server: &Inner,
    connection: &Connection,
) -> std::convert::Infallible {
    let mut limiter = RefreshRateLimiter::default();
    loop {
        let changed = connection.changed().await;
        let began = Instant::now();
        let until = began + server.settings.start.limit;
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
        sleep(limiter.pause_after(began)).await;
    }
}

/// Keeps a server that says hundreds of times a second that its lists have changed from being read as often.
#[derive(Default)]
struct RefreshRateLimiter {
    /// Looks that came one right after the other.
    in_a_row: u32,
    /// The next look comes in a row with the last until then.
    until: Option<Instant>,
}

impl RefreshRateLimiter {
    /// The wait before the next look; this one began then.
    fn pause_after(&mut self, began: Instant) -> Duration {
        let is_in_a_row = self.until.is_some_and(|until| began <= until);
        self.in_a_row = match is_in_a_row {
            true => self.in_a_row.saturating_add(1),
            false => 0,
        };
        let doublings = self.in_a_row.saturating_sub(REFRESHES_AT_ONCE).min(16);
        let now = Instant::now();
        let pause = (REFRESH_PAUSE * 2_u32.pow(doublings))
            .max(now.duration_since(began) * REFRESH_SHARE)
            .min(REFRESH_PAUSE_MAX);
        self.until = Some(now + pause * 2);
        pause
    }
}

/// Reads what a server lists beside its tools, where it has such lists. One that cannot be read costs only itself.
pub(crate) async fn read_lists(
    server: &Inner,
    connection: &Connection,
    changed: Changed,
    until: Instant,
) {
    let greeting = server.state.borrow().greeting.clone().unwrap_or_default();
    for kind in Listed::ALL {
        if !changed.has(kind.changes_with()) {
            continue;
        }
        if !lists::has(&greeting.capabilities, kind) {
            server.take_list(kind, Vec::new(), None);
            continue;
        }
        match read_pages(connection, ListKind::of(kind), until).await {
            Ok(Pages {
                entries,
                notes,
                held,
            }) => {
                server.take_list(kind, entries, Some(held));
                for note in &notes {
                    tracing::warn!(server = server.settings.name, "{note}");
                }
                if server.state.borrow().notes_of[1 + kind as usize] != notes {
                    server.change(|state| state.note(Some(kind), notes));
                }
            }
            // Templates go with resources, and not every server that has those knows of them.
            Err(ListError::Refused(error)) if error.code == METHOD_NOT_FOUND => {
                server.take_list(kind, Vec::new(), None);
            }
            Err(error) => {
                let (name, what) = (&server.settings.name, kind.method());
                tracing::warn!(server = name, ?error, "{what} could not be read");
            }
        }
    }
}
