//! Answers that come piece by piece, as server-sent events.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::dispatch::Inner;
use super::inquiry::{Answer, Next};
use super::listen::Listening;
use super::message::Message;
use super::news::Ear;
use super::session::Listener;
use super::stream::Reader;
use super::work::Work;

/// A comment when nothing happens, for what stands between and closes silent connections.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Pieces of a message up to this size are copied together; a larger one is sent from where it is.
const COPIED_BYTES_MAX: usize = 16 * 1024;

/// One event, in pieces. The memory that is reserved for a large one is held until it is sent.
#[derive(Debug, Clone)]
pub(super) struct Frame(Vec<Bytes>);

impl Frame {
    fn of(text: impl Into<Bytes>) -> Frame {
        Frame(vec![text.into()])
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    pub(super) fn into_pieces(self) -> Vec<Bytes> {
        self.0
    }
}

/// A stream of events, in bytes.
pub struct Events(BoxStream<'static, Bytes>);

impl futures_util::Stream for Events {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.poll_next_unpin(cx)
    }
}

impl Events {
    /// `first` is sent at once.
    pub(super) fn new(first: Option<Frame>, flow: Flow) -> Events {
        let flow = stream::unfold(flow, |mut flow| async move {
            let next = match timeout(KEEP_ALIVE, flow.next()).await {
                Ok(next) => next?,
                Err(_) => comment(),
            };
            Some((next, flow))
        });
        let frames = stream::iter(first).chain(flow);
        Events(
            frames
                .flat_map(|frame| stream::iter(frame.into_pieces()))
                .boxed(),
        )
    }

    /// A whole answer, for who takes nothing but events.
    pub(super) fn single(message: &Message) -> Events {
        Events(stream::iter(frame(None, message).0).boxed())
    }
}

/// What is streamed.
pub(super) enum Flow {
    /// What comes before a request's answer, and the answer: gone when its client is.
    Answer(Box<Answering>),
    /// The same from what is kept of it.
    Kept(Reader),
    /// What is told of its own accord, in a session.
    News(Box<Telling>),
    /// The same for a subscription.
    Subscription(Box<Listening>),
}

impl Flow {
    /// May be dropped and asked again.
    async fn next(&mut self) -> Option<Frame> {
        match self {
            Flow::Answer(answering) => answering.next().await,
            Flow::Kept(reader) => reader.next().await,
            Flow::News(telling) => telling.next().await,
            Flow::Subscription(listening) => {
                let message = listening.next().await?;
                Some(frame(None, &message))
            }
        }
    }
}

/// A request of the newer protocol whose answer is streamed.
pub(super) struct Answering {
    pub(super) inner: Arc<Inner>,
    pub(super) id: Box<RawValue>,
    pub(super) work: Option<Work>,
}

impl Answering {
    async fn next(&mut self) -> Option<Frame> {
        let answer = loop {
            match self.work.as_mut()?.next().await {
                Next::Say(message) => return Some(frame(None, &message)),
                Next::Answer(answer) => break answer,
                Next::Ask => match self.inner.suspended.park(self.work.take()?) {
                    Ok(answer) => break answer,
                    Err(goes_on) => self.work = Some(goes_on),
                },
                Next::Cancel => {
                    self.work = None;
                    return None;
                }
            }
        };
        self.work = None;
        Some(frame(None, &message(&self.id, answer)))
    }
}

/// A session that is told what is new.
pub(super) struct Telling {
    pub(super) inner: Arc<Inner>,
    pub(super) listener: Listener,
    pub(super) ear: Ear,
}

impl Telling {
    async fn next(&mut self) -> Option<Frame> {
        let session = &self.listener.session;
        let news = tokio::select! {
            news = self.ear.next() => news?,
            () = self.listener.replaced() => return None,
            () = session.ended.cancelled() => return None,
            () = self.inner.closing.cancelled() => return None,
        };
        let told = self.ear.told();
        session.set_told(told);
        let id = format!("news-{}-{}-{}", told.tools, told.prompts, told.resources);
        Some(frame(Some(&id), &news.message(None)))
    }
}

/// An answer as a message.
pub(super) fn message(id: &RawValue, answer: Answer) -> Message {
    match answer {
        Ok(result) => Message::result(id, result),
        Err(error) => Message::error(id, &error),
    }
}

/// One event.
pub(super) fn frame(id: Option<&str>, message: &Message) -> Frame {
    let mut pieces = Vec::with_capacity(1);
    let mut text = Vec::with_capacity(message.len().min(COPIED_BYTES_MAX) + 64);
    if let Some(id) = id {
        text.extend_from_slice(b"id: ");
        text.extend_from_slice(id.as_bytes());
        text.push(b'\n');
    }
    text.extend_from_slice(b"event: message\ndata: ");
    for piece in message.pieces() {
        if piece.len() > COPIED_BYTES_MAX {
            pieces.push(std::mem::take(&mut text).into());
            pieces.push(piece.clone());
        } else {
            text.extend_from_slice(piece);
        }
    }
    text.extend_from_slice(b"\n\n");
    pieces.push(text.into());
    Frame(pieces)
}

/// An event that says nothing but where to go on.
pub(super) fn priming(stream: u64) -> Frame {
    Frame::of(format!("id: {stream}-0\ndata: \n\n"))
}

/// Something, so that the client sees that there will be more.
pub(super) fn comment() -> Frame {
    Frame::of(": \n\n")
}
