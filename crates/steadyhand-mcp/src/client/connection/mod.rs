//! One connection to one server: requests out, answers in. Nothing here waits without an end.

pub(crate) mod mux;
pub(crate) mod operation;
pub(crate) mod questions;
pub(crate) mod slot;
pub(crate) mod unreadable;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, ready};

use futures_util::future::BoxFuture;
use serde::Serialize;
use steadyhand::{BudgetExceeded, CooperativeBudget, RepeatedName};
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::client::catalogue::lists::Changed;
use crate::client::connection::mux::{Desk, Mux, Outlet};
use crate::client::connection::operation::Operation;
use crate::client::connection::slot::{Answer, Heard, Slot, Whose};
use crate::client::http::headers::naming_member;
use crate::client::http::{Head, Link};
use crate::client::lifecycle::era::Era;
use crate::client::stdio::writer::{Haste, NotTaken, Writer};
use crate::measures::Attributes;
use crate::wire::Outgoing;

/// A connection that is up, or was. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Shared>);

struct Shared {
    mux: Arc<Mux>,
    way: Way,
    era: OnceLock<Era>,
    /// The version of the protocol, once it is known.
    version: OnceLock<String>,
}

/// How messages get to the server.
pub(crate) enum Way {
    /// By its stdin.
    Stdio(Arc<Writer>),
    /// By requests.
    Http(Arc<Link>),
}

/// What a request is about, where that stands outside of it, too.
pub(crate) struct Topic<'a> {
    pub(crate) method: &'a str,
    pub(crate) head: Head,
    /// The tool or prompt it names.
    pub(crate) target: Option<&'a str>,
}

impl<'a> Topic<'a> {
    pub(crate) fn of(method: &'a str) -> Topic<'a> {
        Topic {
            method,
            head: Head::default(),
            target: None,
        }
    }
}

impl Connection {
    pub(crate) fn new(mux: Arc<Mux>, way: Way) -> Connection {
        let (era, version) = (OnceLock::new(), OnceLock::new());
        Connection(Arc::new(Shared {
            mux,
            way,
            era,
            version,
        }))
    }

    pub(crate) fn desk(&self) -> &Desk {
        &self.0.mux.desk
    }

    /// What the server was found to speak.
    pub(crate) fn settle(&self, era: Era, version: &str) {
        let _ = self.0.era.set(era);
        let _ = self.0.version.set(version.to_owned());
    }

    /// What OpenTelemetry wants to know about the way to the server.
    pub(crate) fn described(&self) -> Attributes {
        let mut described = vec![("steadyhand.tool.source", self.desk().server.to_string())];
        let version = self.0.version.get();
        described.extend(version.map(|version| ("mcp.protocol.version", version.clone())));
        match &self.0.way {
            Way::Stdio(_) => described.push(("network.transport", "pipe".to_owned())),
            Way::Http(link) => described.extend(link.described()),
        }
        described
    }

    /// The session a request is in, where there are such.
    pub(crate) fn session_id(&self) -> Option<String> {
        match &self.0.way {
            Way::Stdio(_) => None,
            Way::Http(link) => link.session_id(),
        }
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.0.era.get() == Some(&Era::Modern)
    }

    /// Whether requests repeat in their headers what they are about.
    pub(crate) fn has_headers(&self) -> bool {
        self.is_modern() && matches!(self.0.way, Way::Http(_))
    }

    /// Sends a request. `params` gets the request's id, for the progress token.
    pub(crate) fn request<P: Serialize>(
        &self,
        topic: Topic<'_>,
        whose: Whose,
        params: impl FnOnce(u64) -> P,
    ) -> Reply {
        let shared = &self.0;
        let (id, slot, in_flight) = shared.mux.open(whose);
        let mut reply = Reply {
            id,
            slot,
            connection: self.clone(),
            since: Instant::now(),
            is_over: false,
            // Nobody may take back the beginning.
            is_quiet: matches!(topic.method, "initialize" | "server/discover"),
            exchange: None,
            turn: CooperativeBudget::default(),
            has_heard: false,
            operation: Operation::new(topic.method, topic.target),
        };
        let params = params(id);
        let request = Outgoing::request(id, topic.method, &params);
        // Closed meanwhile, or before: whoever closes it answers those who wait.
        if self.is_closed() {
            shared.mux.answer_all_lost();
            return reply;
        }
        match &shared.way {
            Way::Stdio(writer) => {
                let haste = match in_flight {
                    0 | 1 => Haste::Direct,
                    _ => Haste::Together,
                };
                let sent = Arc::clone(&reply.slot.sent);
                if let Err(not_taken) = writer.send(request.line(), Some(sent), haste) {
                    let reason = match not_taken {
                        NotTaken::Full => "it does not read what is sent to it".to_owned(),
                        NotTaken::Closed => self.why_closed(),
                    };
                    shared.mux.answer_lost(id, &reason);
                }
            }
            Way::Http(link) => {
                let (link, slot) = (Arc::clone(link), Arc::clone(&reply.slot));
                let exchange = link.exchange(id, slot, topic.head, request.json());
                reply.exchange = Some(Box::pin(exchange));
            }
        }
        reply
    }

    /// Tells the server something. A server that does not read misses it.
    pub(crate) fn notify<P: Serialize>(&self, method: &str, params: Option<&P>) {
        let message = Outgoing::notification(method, params);
        match &self.0.way {
            Way::Stdio(writer) => drop(writer.send(message.line(), None, Haste::Direct)),
            Way::Http(link) => link.say(message.json()),
        }
    }

    /// Ends it: everyone who waits is answered, at once.
    pub(crate) fn close(&self, reason: &str) {
        // First: nothing goes out any more when those who wait are told what was sent.
        if let Way::Stdio(writer) = &self.0.way {
            writer.close();
        }
        self.0.mux.close(reason);
        self.0.mux.answer_all_lost();
    }

    /// Ends the session at a server that has one.
    pub(crate) async fn goodbye(&self) {
        if let Way::Http(link) = &self.0.way {
            link.goodbye().await;
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.mux.closed.is_cancelled()
    }

    /// Whether a call may be sent on it.
    pub(crate) fn is_usable(&self) -> bool {
        let is_there = match &self.0.way {
            Way::Stdio(_) => true,
            Way::Http(link) => !link.is_broken(),
        };
        is_there && !self.is_closed() && !self.0.mux.is_doubted()
    }

    /// Whether a program has read everything it was sent.
    pub(crate) fn was_read(&self) -> bool {
        match &self.0.way {
            Way::Stdio(writer) => writer.was_read(),
            Way::Http(_) => true,
        }
    }

    pub(crate) fn why_closed(&self) -> String {
        self.0.mux.why_closed()
    }

    /// Requests of others that wait for their answers.
    pub(crate) fn in_flight(&self) -> usize {
        self.0.mux.in_flight()
    }

    /// Lists are to be read anew.
    pub(crate) fn tell_changed(&self, what: Changed) {
        self.0.mux.tell_changed(what);
    }

    /// The server said that its lists have changed; which.
    pub(crate) async fn changed(&self) -> Changed {
        self.0.mux.changed().await
    }

    /// Someone doubts that the server is alive.
    pub(crate) async fn doubted(&self) {
        self.0.mux.doubted().await;
    }

    pub(crate) fn trust(&self) {
        self.0.mux.trust();
    }

    /// Whether the server has been heard since then.
    pub(crate) fn heard_since(&self, since: Instant) -> bool {
        self.0.mux.heard_since(since)
    }

    /// Waits until the server has forgotten what it knew of us, and we have begun anew.
    pub(crate) async fn renewed(&self) {
        match &self.0.way {
            Way::Stdio(_) => std::future::pending().await,
            Way::Http(link) => link.renewed().await,
        }
    }
}

/// An answer that is on its way. Dropping it cancels the request.
pub(crate) struct Reply {
    id: u64,
    slot: Arc<Slot>,
    connection: Connection,
    since: Instant,
    is_over: bool,
    /// Whoever no longer waits for it says nothing.
    is_quiet: bool,
    /// Over HTTP: what has to be driven for an answer to come.
    exchange: Option<BoxFuture<'static, ()>>,
    /// A server that reports progress without a pause does not keep whoever waits from looking at the time.
    turn: CooperativeBudget,
    has_heard: bool,
    operation: Operation,
}

impl Reply {
    /// The next thing that is heard of it. May be dropped and asked again.
    pub(crate) fn heard(&mut self) -> impl Future<Output = Heard> + '_ {
        poll_fn(|cx| {
            let is_first = !std::mem::take(&mut self.has_heard);
            if !is_first {
                ready!(self.turn.poll_spend(cx, 0));
            }
            if !is_first && self.exchange.is_some() {
                // What the exchange has brought is read first; before it brings more, others have their turn.
                let next = self.slot.poll(cx);
                if next.is_pending() {
                    ready!(pin!(yield_now()).poll(cx));
                }
                return self.told(next);
            }
            if let Some(exchange) = &mut self.exchange {
                // It is looked at below: an answer that the exchange itself brings needs to wake nobody.
                self.slot.unregister();
                if exchange.as_mut().poll(cx).is_ready() {
                    self.exchange = None;
                }
            }
            let next = self.slot.poll(cx);
            self.told(next)
        })
    }

    /// Notes what was heard.
    fn told(&mut self, next: Poll<Heard>) -> Poll<Heard> {
        next.map(|heard| {
            self.has_heard = true;
            if let Heard::Answer(answer) = &heard {
                self.is_over = true;
                let took = self.since.elapsed();
                self.operation.ended(&self.connection, answer, took);
            }
            heard
        })
    }

    /// Whether it waits for a connection: the server has not seen any of it, and does not if this is dropped now.
    pub(crate) fn is_unsent(&self) -> bool {
        matches!(self.connection.0.way, Way::Http(_)) && !self.slot.was_sent()
    }

    /// The request's id.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The server wants to know something from someone first.
    pub(crate) fn is_asked(&self) -> bool {
        self.slot.is_asked()
    }

    /// The answer; how far it is does not matter.
    pub(crate) async fn answer(mut self) -> Answer {
        loop {
            if let Heard::Answer(answer) = self.heard().await {
                return answer;
            }
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let took = self.since.elapsed();
        self.operation.given_up(&self.connection, took);
        if self.connection.is_closed() {
            return;
        }
        let shared = &self.connection.0;
        if !shared.mux.give_up(self.id) || self.is_quiet {
            return;
        }
        if self.must_be_cancelled() {
            let cancelled = Cancelled {
                request_id: self.id,
                reason: "the caller no longer waits for it",
            };
            self.connection
                .notify("notifications/cancelled", Some(&cancelled));
        }
        if !shared.mux.heard_since(self.since) {
            shared.mux.doubt();
        }
    }
}

impl Reply {
    /// Whether the server has to be told that nobody waits any more.
    fn must_be_cancelled(&self) -> bool {
        match &self.connection.0.way {
            Way::Stdio(writer) => !writer.withdraw(&self.slot.sent),
            // There, the end of the exchange says it.
            Way::Http(_) if self.connection.is_modern() => false,
            Way::Http(_) => self.slot.was_sent(),
        }
    }
}

/// What a request in the newer era says about itself in its headers.
pub(crate) fn head_of(method: &str, name: Option<&str>) -> Head {
    Head::modern(method, name.filter(|_| naming_member(method).is_some()))
}

/// The end of a request whose answer there was no memory for, in words.
pub(crate) fn no_memory(exceeded: &BudgetExceeded) -> String {
    format!("an answer that there is no room for: {exceeded}")
}

/// A result that nobody may read, in words.
pub(crate) fn unreadable(why: &RepeatedName) -> String {
    let means = match why {
        RepeatedName::At { .. } => "can be read in two ways",
        RepeatedName::TooDeep | RepeatedName::TooMany => "cannot be read",
    };
    format!("a result that {means}: {}", why.message())
}

/// The end of a request that could not be answered, in words.
pub(crate) fn too_large(bytes: usize) -> String {
    let bytes_max = crate::client::http::ANSWER_BYTES_MAX;
    format!("an answer of {bytes} bytes, which is too large; at most {bytes_max} bytes are read")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled {
    request_id: u64,
    reason: &'static str,
}
