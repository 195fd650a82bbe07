//! The stream on which a server of the older era says what belongs to no request. It is opened again whenever it ends.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::client::Body;
use super::event_reader::{EventReader, NextEvent};
use super::exchange::{content_type, get};
use super::{Link, SessionId};
use crate::client::connection::mux::Outlet;
use crate::wire::{Event, read_messages};

/// The wait before it is opened again; it doubles while it does not last.
const WAIT: Duration = Duration::from_secs(1);
/// A server may ask for a shorter one, but not for less than this; that doubles, too, up to the usual wait.
pub(crate) const REOPEN_WAIT_MIN: Duration = Duration::from_millis(250);
const WAIT_MAX: Duration = Duration::from_secs(60);
/// A longer id of an event is not sent back.
pub(crate) const EVENT_ID_BYTES_MAX: usize = 4 * 1024;
/// One that lasted so long was no failure.
const LASTED: Duration = Duration::from_secs(10);

/// Keeps the stream open as long as the server gives one, and tells when it is open, or known not to be, for the first time.
pub(crate) async fn keep(link: Arc<Link>, first: oneshot::Sender<()>) {
    let mut first = Some(first);
    let mut last_event: Option<String> = None;
    let mut wait = WAIT;
    let mut wait_min = REOPEN_WAIT_MIN;
    let mut of_session: Option<u64> = None;
    let mut was_open = false;
    loop {
        let session_changed = link.session_changed.notified();
        let session = link.session.load_full();
        let number = session.as_ref().map(|session| session.number);
        if number != of_session {
            // Another session knows nothing of the events of this one.
            (last_event, of_session, was_open) = (None, number, false);
        }
        let opened = Instant::now();
        let stream = open(&link, session.as_deref(), last_event.as_deref()).await;
        if let Some(first) = first.take() {
            let _ = first.send(());
        }
        match stream {
            Opened::Stream(body) => {
                was_open = true;
                let mut said = None;
                let ended = read(&link, body, &[], |event| {
                    if let Some(id) = &event.id {
                        last_event = resumable(id);
                    }
                    said = event.retry.or(said);
                })
                .await;
                if ended.is_err() && link.look().await.is_err() {
                    return;
                }
                match opened.elapsed() > LASTED {
                    true => (wait, wait_min) = (WAIT, REOPEN_WAIT_MIN),
                    false => wait_min = (wait_min * 2).min(WAIT),
                }
                if let Some(said) = said {
                    wait = said.max(wait_min);
                }
            }
            // It has none: nothing is lost, but what it would say by itself.
            Opened::None => {
                // It had one, and does not know us any more.
                if let (Some(session), true) = (&session, was_open) {
                    was_open = false;
                    let _ = link.renew(session).await;
                    continue;
                }
                session_changed.await;
                continue;
            }
            Opened::Failed => {}
            Opened::Gone => return,
        }
        sleep(wait.min(WAIT_MAX)).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
}

/// The id of an event from which a stream can be taken up again: it is sent back in a header.
pub(super) fn resumable(id: &str) -> Option<String> {
    (!id.is_empty() && id.len() <= EVENT_ID_BYTES_MAX).then(|| id.to_owned())
}

enum Opened {
    Stream(Body),
    None,
    Failed,
    Gone,
}

async fn open(link: &Link, session: Option<&SessionId>, last_event: Option<&str>) -> Opened {
    let url = link.url.load_full();
    match get(link, &url, session, last_event).await {
        Ok(response) => {
            let is_stream = content_type(response.headers()) == Some("text/event-stream");
            match response.status() {
                StatusCode::OK if is_stream => Opened::Stream(response.into_body()),
                status if status.is_server_error() || status == 429 => Opened::Failed,
                _ => Opened::None,
            }
        }
        Err(no) if no.is_unreachable => match link.look().await {
            Ok(()) => Opened::Failed,
            Err(_) => Opened::Gone,
        },
        Err(_) => Opened::Failed,
    }
}

/// Reads a stream to its end. An error means that it broke.
pub(super) async fn read(
    link: &Arc<Link>,
    body: Body,
    already: &[u8],
    mut told: impl FnMut(&Event),
) -> Result<(), String> {
    let outlet: Arc<dyn Outlet> = Arc::clone(link) as _;
    let mut events = EventReader::new(link, body, already);
    loop {
        let event = match events.next().await {
            NextEvent::Event(event) => event,
            NextEvent::End => return Ok(()),
            NextEvent::Broken(why) => return Err(why),
            NextEvent::Unreadable { why, .. } => return Err(why.words()),
        };
        told(&event);
        if !event.is_message() {
            continue;
        }
        match read_messages(&event.data) {
            Some(messages) => {
                for message in messages {
                    link.mux.take(message, None, &outlet);
                    events.spend().await;
                }
            }
            None => {
                link.mux.desk.record.noise(&event.data, event.data.len());
                link.mux.unreadable(&event.data, None);
            }
        }
    }
}
