//! The events of one stream: read in turns with the other tasks of the thread, within the memory of their server.

use http_body_util::BodyExt as _;
use steadyhand::{BudgetExceeded, CooperativeBudget};

use super::client::{self, Body};
use super::{ANSWER_BYTES_MAX, Link};
use crate::client::memory::HeldBuffer;
use crate::wire::{Event, Events};

pub(super) struct EventReader<'a> {
    link: &'a Link,
    body: Body,
    events: Events,
    held: HeldBuffer,
    turn: CooperativeBudget,
}

/// What is next.
pub(super) enum NextEvent {
    Event(Event),
    /// The stream ended as it should.
    End,
    /// It broke; why.
    Broken(String),
    /// An event that cannot be read to its end: nothing of the stream can be read any more.
    Unreadable {
        why: Unreadable,
        /// It begins like an answer.
        is_answer: bool,
    },
}

/// Why an event cannot be read to its end.
pub(super) enum Unreadable {
    /// So many bytes have come of it.
    TooLarge(usize),
    NoMemory(BudgetExceeded),
}

impl<'a> EventReader<'a> {
    /// `already` has come before.
    pub(super) fn new(link: &'a Link, body: Body, already: &[u8]) -> EventReader<'a> {
        let mut events = Events::new(ANSWER_BYTES_MAX);
        events.feed(already);
        EventReader {
            link,
            body,
            events,
            held: HeldBuffer::new(&link.mux.desk.memory),
            turn: CooperativeBudget::default(),
        }
    }

    /// The next event, or why there is none.
    pub(super) async fn next(&mut self) -> NextEvent {
        loop {
            match self.events.next_event() {
                Ok(Some(event)) => {
                    self.turn.spend(event.data.len()).await;
                    return NextEvent::Event(event);
                }
                Ok(None) => {
                    if let Err(exceeded) = self.held.resize(self.events.held()) {
                        return self.unreadable(Unreadable::NoMemory(exceeded));
                    }
                }
                Err(too_large) => return self.unreadable(Unreadable::TooLarge(too_large.0)),
            }
            let data = match self.body.frame().await {
                None => return NextEvent::End,
                Some(Err(error)) => return NextEvent::Broken(client::words(&error)),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            self.link.mux.hear();
            // Comments, and lines that nobody knows, are no events and come as fast.
            self.turn.spend(data.len()).await;
            self.events.feed(&data);
        }
    }

    /// One of several messages of an event was taken: others may have their turn.
    pub(super) async fn spend(&mut self) {
        self.turn.spend(0).await;
    }

    fn unreadable(&self, why: Unreadable) -> NextEvent {
        NextEvent::Unreadable {
            why,
            is_answer: self.events.begins_as_answer(),
        }
    }

    /// The body, and what has come of it beyond the last event.
    pub(super) fn into_rest(self) -> (Body, Vec<u8>) {
        (self.body, self.events.into_rest())
    }
}

impl Unreadable {
    pub(super) fn words(&self) -> String {
        match self {
            Unreadable::TooLarge(bytes) => {
                format!(
                    "an event of {bytes} bytes, which is too large; at most {ANSWER_BYTES_MAX} bytes are read"
                )
            }
            Unreadable::NoMemory(exceeded) => {
                format!("an event that there is no room for: {exceeded}")
            }
        }
    }
}
