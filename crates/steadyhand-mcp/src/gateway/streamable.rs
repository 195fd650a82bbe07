//! Streamable HTTP, both eras on one address, without any HTTP: headers and bodies in, standings and messages out.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::dispatch::{Gateway, Handled, Inner};
use super::era::Era;
use super::errors::Standing;
use super::events::{Answering, Events, Flow, Telling, comment, frame, message, priming};
use super::exchange::{Accepted, Content, Post, Reply, Who, answered};
use super::headers::Headers;
use super::inquiry::Next;
use super::message::Message;
use super::news::{Ear, Versions, Wanted};
use super::reading::{Pending, Stage};
use super::stream::Stream;
use super::work::Work;

/// Someone who waits so long for an answer gets a stream: a silent connection looks like a dead one.
const SILENCE_MAX: Duration = Duration::from_secs(10);

impl Gateway {
    /// `POST`: a message, or several. Dropping the future ends what is being worked on.
    pub async fn post(&self, post: Post<'_>) -> Reply {
        let stage = self.inner.read(&post);
        self.inner.reply(stage).await
    }

    /// `GET`: the stream of what a session is told, or the rest of one that was cut off.
    pub fn get(&self, headers: &dyn Headers, who: Option<&Who>) -> Reply {
        let session = match self.inner.session_of(headers, who) {
            Ok(session) => session,
            Err(refusal) => return refusal.reply(RawValue::NULL),
        };
        if !Accepted::read(headers).events {
            return Reply::nothing(Standing::NotAcceptable);
        }
        let mut told = session.told();
        if let Some(last) = headers.get("last-event-id") {
            match Place::read(last) {
                Some(Place::Stream { number, place }) => {
                    if let Some(stream) = session.stream(number) {
                        let flow = Flow::Kept(stream.read_after(place));
                        return Reply::events(Events::new(None, flow));
                    }
                }
                Some(Place::News(before)) => told = before,
                None => {}
            }
        }
        let (now, mailbox) = (
            self.inner.versions.subscribe(),
            Arc::clone(&session.mailbox),
        );
        let telling = Telling {
            inner: Arc::clone(&self.inner),
            listener: session.listen(),
            ear: Ear::new(now, told, Wanted::ALL, mailbox),
        };
        Reply::standing(Events::new(Some(comment()), Flow::News(Box::new(telling))))
    }

    /// `DELETE`: the end of a session.
    pub fn delete(&self, headers: &dyn Headers, who: Option<&Who>) -> Reply {
        match self.inner.session_of(headers, who) {
            Ok(session) => {
                self.inner.sessions.end(&session.id);
                Reply::nothing(Standing::Answered)
            }
            Err(refusal) => refusal.reply(RawValue::NULL),
        }
    }
}

/// Where a client was when it was cut off.
enum Place {
    Stream { number: u64, place: u64 },
    News(Versions),
}

impl Place {
    fn read(id: &str) -> Option<Place> {
        let mut parts = id.split('-');
        let first = parts.next()?;
        let mut number = || parts.next()?.parse().ok();
        if first == "news" {
            return Some(Place::News(Versions {
                tools: number()?,
                prompts: number()?,
                resources: number()?,
            }));
        }
        Some(Place::Stream {
            number: first.parse().ok()?,
            place: number()?,
        })
    }
}

impl Inner {
    async fn reply(self: &Arc<Self>, stage: Stage) -> Reply {
        match stage {
            Stage::Reply(reply) => reply,
            Stage::Pending(pending) => self.finish(pending).await,
            Stage::Listen { id, wish, who } => {
                match self.listen(id.clone(), wish, who.as_ref()).await {
                    Ok(listening) => {
                        let flow = Flow::Subscription(Box::new(listening));
                        Reply::standing(Events::new(None, flow))
                    }
                    Err(error) => Reply::error(Standing::of(&error, Era::Modern), &id, &error),
                }
            }
            Stage::Batch(stages) => {
                let replies = stages.into_iter().map(|stage| Box::pin(self.reply(stage)));
                let replies = join_all(replies).await;
                let messages = replies.into_iter().filter_map(|reply| match reply.content {
                    Content::Json(message) => Some(message),
                    Content::Nothing | Content::Events(_) => None,
                });
                let messages: Vec<Message> = messages.collect();
                match messages.is_empty() {
                    true => Reply::nothing(Standing::Accepted),
                    false => Reply::json(Standing::Answered, Message::batch(messages)),
                }
            }
        }
    }

    /// Waits for the answer. As soon as something else is to be said, the answer becomes a stream.
    async fn finish(self: &Arc<Self>, mut pending: Pending) -> Reply {
        let era = pending.work.inquiry.client().era;
        let said = loop {
            let next = pending.work.next();
            let next = match pending.accepted.events {
                true => timeout(SILENCE_MAX, next).await.ok(),
                false => Some(next.await),
            };
            match next {
                Some(Next::Answer(answer)) => {
                    return answered(&pending.id, Handled::Now(answer), era, pending.accepted);
                }
                Some(Next::Ask) => match self.suspended.park(pending.work) {
                    Ok(answer) => {
                        return answered(&pending.id, Handled::Now(answer), era, pending.accepted);
                    }
                    Err(goes_on) => pending.work = goes_on,
                },
                Some(Next::Cancel) => return Reply::nothing(Standing::Accepted),
                Some(Next::Say(message)) => break Some(message),
                None => break None,
            }
        };
        match pending.session {
            None => {
                let first = said.map_or_else(comment, |message| frame(None, &message));
                let answering = Answering {
                    inner: Arc::clone(self),
                    id: pending.id,
                    work: Some(pending.work),
                };
                Reply::events(Events::new(Some(first), Flow::Answer(Box::new(answering))))
            }
            Some((session, running)) => {
                let stream = session.open_stream(&pending.id);
                let first = match &said {
                    Some(message) => {
                        stream.push(message);
                        None
                    }
                    None if era.has("2025-11-25") => Some(priming(stream.number)),
                    None => Some(comment()),
                };
                let reader = stream.read_after(0);
                let (id, work) = (pending.id, pending.work);
                // It goes on when the connection breaks: the client may come back for the rest.
                tokio::spawn(async move {
                    stream_on(work, &id, &stream).await;
                    stream.end();
                    drop(running);
                });
                Reply::events(Events::new(first, Flow::Kept(reader)))
            }
        }
    }
}

/// Sends everything that comes of a request to its stream.
async fn stream_on(mut work: Work, id: &RawValue, stream: &Stream) {
    loop {
        match work.next().await {
            Next::Say(said) => stream.push(&said),
            Next::Answer(answer) => return stream.answer(&message(id, answer)),
            // In a session, questions are requests.
            Next::Ask => {}
            Next::Cancel => return,
        }
    }
}
