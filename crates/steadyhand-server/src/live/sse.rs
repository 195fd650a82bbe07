//! The stream of one reader: server-sent events, from where it was, at its own pace.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use utoipa::IntoParams;

use super::event::{LiveEvent, SnapshotReason};
use super::ring::{Filter, Frame};
use super::{Live, READERS_MAX};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The shortest time between two deliveries: a call that begins and ends within it is one event, and a
/// reader of a thousand calls a second is woken ten times.
const PACE: Duration = Duration::from_millis(100);
/// A comment when nothing happens, for what stands between and closes silent connections.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// When a browser tries again after the connection broke.
const RETRY: Duration = Duration::from_secs(1);
const PATTERNS_MAX: usize = 50;

/// What a reader may ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct Asked {
    /// Tools, by name or pattern, with commas between: home_*,search
    #[param(required = false, nullable = false)]
    pub tool: Option<String>,
    /// Types of events, with commas between: call_finished,breaker_changed
    #[serde(rename = "type")]
    #[param(required = false, nullable = false)]
    pub kind: Option<String>,
    /// The id of the last event that is known: what a Last-Event-ID header would say, which browsers cannot
    /// send the first time
    #[param(required = false, nullable = false)]
    pub after: Option<String>,
}

/// Why there is no stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotWatch {
    /// There are as many readers as there may be.
    #[error("{READERS_MAX} readers of events are there already, which is as many as may")]
    TooManyReaders,
    /// The server is about to end.
    #[error("the server is about to end")]
    Closing,
    /// The filter asks for something that does not exist.
    #[error("{0}")]
    BadFilter(String),
}

impl CannotWatch {
    /// What to do.
    pub fn help(&self) -> String {
        match self {
            CannotWatch::TooManyReaders => "Close one of them, then try again".to_owned(),
            CannotWatch::Closing => "Try again when it is back".to_owned(),
            CannotWatch::BadFilter(_) => format!("There are {}", LiveEvent::TYPES.join(", ")),
        }
    }
}

impl IntoResponse for CannotWatch {
    fn into_response(self) -> Response {
        let (status, code) = match self {
            CannotWatch::BadFilter(_) => (StatusCode::BAD_REQUEST, "BAD_REQUEST"),
            CannotWatch::TooManyReaders => (StatusCode::SERVICE_UNAVAILABLE, "BUSY"),
            CannotWatch::Closing => (StatusCode::SERVICE_UNAVAILABLE, "SHUTTING_DOWN"),
        };
        let error = json!({"code": code, "message": self.to_string(), "help": self.help()});
        (status, axum::Json(json!({ "error": error }))).into_response()
    }
}

/// The handler of `GET /v1/events`.
pub async fn sse(
    State(live): State<Live>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
) -> Result<Response, CannotWatch> {
    open(&live, &asked, &headers)
}

/// The stream that was asked for.
pub fn open(live: &Live, asked: &Asked, headers: &HeaderMap) -> Result<Response, CannotWatch> {
    let filter = filter(asked)?;
    let header = headers.get(LAST_EVENT_ID);
    let last = header
        .and_then(|value| value.to_str().ok())
        .or(asked.after.as_deref())
        .filter(|id| !id.trim().is_empty());
    let reader = Reader::new(live, filter, last)?;
    let stream = stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((Ok::<Event, Infallible>(event), reader))
    });
    let mut response = Sse::new(stream)
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
        .into_response();
    // nginx would keep events to itself until it has a page of them.
    response.headers_mut().insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    Ok(response)
}

fn filter(asked: &Asked) -> Result<Filter, CannotWatch> {
    let listed = |text: &Option<String>| -> Vec<String> {
        let parts = text.iter().flat_map(|text| text.split(','));
        parts
            .map(|part| part.trim().to_owned())
            .filter(|part| !part.is_empty())
            .collect()
    };
    let tools = listed(&asked.tool);
    if tools.len() > PATTERNS_MAX {
        return Err(CannotWatch::BadFilter(format!(
            "{} tools are asked for; {PATTERNS_MAX} at most, use a pattern such as home_*",
            tools.len()
        )));
    }
    let known = |wanted: String| {
        let found = LiveEvent::TYPES.iter().find(|known| **known == wanted);
        found
            .copied()
            .ok_or_else(|| CannotWatch::BadFilter(format!("there is no type of event '{wanted}'")))
    };
    let types = listed(&asked.kind).into_iter().map(known);
    Ok(Filter {
        tools,
        types: types.collect::<Result<_, _>>()?,
    })
}

struct Reader {
    live: Live,
    filter: Filter,
    reached: u64,
    newest: watch::Receiver<u64>,
    /// Taken from the ring and not delivered yet.
    waiting: VecDeque<Event>,
    delivered_at: Option<Instant>,
}

impl Reader {
    fn new(live: &Live, filter: Filter, last: Option<&str>) -> Result<Reader, CannotWatch> {
        let inner = &live.inner;
        if inner.closing.is_cancelled() {
            return Err(CannotWatch::Closing);
        }
        let before = inner.readers.fetch_add(1, Ordering::Relaxed);
        let mut reader = Reader {
            live: live.clone(),
            filter,
            reached: 0,
            newest: inner.newest.subscribe(),
            waiting: VecDeque::new(),
            delivered_at: None,
        };
        // Dropping the reader gives its place back.
        if before >= inner.readers_max.load(Ordering::Relaxed) {
            return Err(CannotWatch::TooManyReaders);
        }
        match last.map(|id| (id, live.place(id))) {
            Some((_, Some(number))) => reader.reached = number,
            Some((id, None)) => reader.begin_with_snapshot(match id.starts_with(&inner.run) {
                true => SnapshotReason::TooOld,
                false => SnapshotReason::OtherRun,
            }),
            None => reader.begin_with_snapshot(SnapshotReason::Start),
        }
        Ok(reader)
    }

    /// Tells a reader where things stand, and gives it an id to come back with.
    fn begin_with_snapshot(&mut self, reason: SnapshotReason) {
        let (snapshot, newest) = self.live.snapshot(reason);
        self.reached = newest;
        let event = LiveEvent::Snapshot(snapshot);
        let json = serde_json::to_string(&event).unwrap_or_default();
        self.waiting.push_back(
            Event::default()
                .id(self.live.id(newest))
                .event(event.kind())
                .retry(RETRY)
                .data(json),
        );
    }

    /// The next event; `None` when the server ends.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            let closing = self.live.inner.closing.clone();
            tokio::select! {
                () = self.refill() => {}
                () = closing.cancelled() => return None,
            }
        }
    }

    /// Waits for events, then takes those there are.
    async fn refill(&mut self) {
        if let Some(delivered_at) = self.delivered_at {
            sleep_until(delivered_at + PACE).await;
        }
        loop {
            // Marked as seen before it is read: what comes in between wakes us.
            self.newest.borrow_and_update();
            let batch = self.live.read(self.reached, &self.filter);
            self.reached = batch.reached;
            if let Some(missed) = batch.missed {
                let json = serde_json::to_string(&missed).unwrap_or_default();
                // Without an id: who comes back with the last one may still find what is missing.
                let event = Event::default().event("skipped").data(json);
                self.waiting.push_back(event);
            }
            let live = &self.live;
            let events = batch.frames.iter().map(|frame| event(live, frame));
            self.waiting.extend(events);
            if !self.waiting.is_empty() {
                self.delivered_at = Some(Instant::now());
                return;
            }
            self.wait().await;
        }
    }

    async fn wait(&mut self) {
        let Some(due) = self.live.next_due() else {
            // The sender lives as long as we do.
            let _ = self.newest.changed().await;
            return;
        };
        tokio::select! {
            _ = self.newest.changed() => {}
            () = sleep_until(due) => self.live.tell_held(Instant::now()),
        }
    }
}

fn event(live: &Live, frame: &Frame) -> Event {
    Event::default()
        .id(live.id(frame.number))
        .event(frame.event.kind())
        .data(frame.json())
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.live.inner.readers.fetch_sub(1, Ordering::Relaxed);
    }
}
