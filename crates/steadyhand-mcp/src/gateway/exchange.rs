//! What comes in over HTTP and what goes out, without any HTTP.

use std::sync::Arc;

use serde_json::value::RawValue;
use steadyhand::{ByteBudget, Permit};

use super::answer::list_start;
use super::dispatch::Handled;
use super::era::Era;
use super::errors::Standing;
use super::events::{Events, message};
use super::headers::Headers;
use super::inquiry::Sink;
use super::message::Message;
use super::shares::CallerShares;
use crate::wire::RpcError;

/// Somebody whom the transport knows, and what they may use.
#[derive(Clone)]
pub struct Who {
    /// The one name nobody else has, where they have one. What they call themselves comes behind it.
    pub name: Option<Arc<str>>,
    /// Whom limits count them as: what they have proved to be, or where they come from; never what they say.
    pub account: Arc<str>,
    /// They operate the server: some room is kept for them.
    pub is_operator: bool,
    /// What their calls are held to; nothing without one.
    pub permit: Option<Arc<dyn Permit>>,
    /// They may use some tools only, and hear of nothing else that servers have.
    pub is_limited: bool,
    /// Whoever sits at the client may say yes to its calls.
    pub may_decide: bool,
    /// The memory that the answer may take.
    pub memory: ByteBudget,
    /// Their shares of what callers share here. Without, only what all of them may have limits them.
    pub shares: Option<Arc<dyn CallerShares>>,
}

/// A request over HTTP.
pub struct Post<'a> {
    /// Its headers.
    pub headers: &'a dyn Headers,
    /// Its body.
    pub body: &'a [u8],
    /// Who asks, if the caller said so; else it is the client's own name.
    pub caller: Option<Arc<str>>,
    /// The trace it is part of.
    pub traceparent: Option<&'a str>,
    /// Who it is, where that is known.
    pub who: Option<Who>,
}

/// An answer over HTTP.
pub struct Reply {
    /// How it stands.
    pub standing: Standing,
    /// The session, where one begins.
    pub session: Option<Arc<str>>,
    /// What is answered.
    pub content: Content,
    /// It is a stream of news, which goes on for as long as its client likes.
    pub is_standing: bool,
}

/// The body of an answer.
pub enum Content {
    /// None.
    Nothing,
    /// JSON.
    Json(Message),
    /// Server-sent events.
    Events(Events),
}

impl Reply {
    pub(super) fn nothing(standing: Standing) -> Reply {
        Reply {
            standing,
            session: None,
            content: Content::Nothing,
            is_standing: false,
        }
    }

    pub(super) fn json(standing: Standing, message: Message) -> Reply {
        Reply {
            content: Content::Json(message),
            ..Reply::nothing(standing)
        }
    }

    pub(super) fn error(standing: Standing, id: &RawValue, error: &RpcError) -> Reply {
        Reply::json(standing, Message::error(id, error))
    }

    pub(super) fn events(events: Events) -> Reply {
        Reply {
            content: Content::Events(events),
            ..Reply::nothing(Standing::Answered)
        }
    }
}

impl Reply {
    /// A stream that ends when its client likes.
    pub(super) fn standing(events: Events) -> Reply {
        Reply {
            is_standing: true,
            ..Reply::events(events)
        }
    }
}

/// Why there is no session for a request.
pub(super) struct Refusal {
    pub(super) standing: Standing,
    pub(super) error: Option<RpcError>,
}

impl Refusal {
    pub(super) fn reply(&self, id: &RawValue) -> Reply {
        match &self.error {
            Some(error) => Reply::error(self.standing, id, error),
            None => Reply::nothing(self.standing),
        }
    }
}

/// What a client takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accepted {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepted {
    pub(super) fn read(headers: &dyn Headers) -> Accepted {
        let said = headers.get("accept").unwrap_or_default();
        let events = said.contains("text/event-stream");
        Accepted {
            json: !events || said.contains("application/json") || said.contains("*/*"),
            events,
        }
    }

    pub(super) fn sink(self) -> Sink {
        match self.events {
            true => Sink::Own,
            false => Sink::Closed,
        }
    }
}

/// What is answered at once, as the client takes it.
pub(super) fn answered(id: &RawValue, now: Handled, era: Era, accepted: Accepted) -> Reply {
    let (standing, message) = match now {
        Handled::Page(page) => (Standing::Answered, Message::list(id, list_start(era), page)),
        Handled::Now(answer) => {
            let standing = match &answer {
                Ok(_) => Standing::Answered,
                Err(error) => Standing::of(error, era),
            };
            (standing, message(id, answer))
        }
        Handled::Work(_) => return Reply::nothing(Standing::Accepted),
    };
    match accepted.json || standing != Standing::Answered {
        true => Reply::json(standing, message),
        false => Reply::events(Events::single(&message)),
    }
}
