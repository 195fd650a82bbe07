//! What a client is told of its own accord: lists that have changed, resources that are new, words of servers' logs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{Notify, watch};

use super::message::Message;
use crate::wire::Members;

/// Letters that may wait for one client; then the oldest are lost.
const LETTERS_MAX: usize = 256;
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// How often each list has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Versions {
    pub(super) tools: u64,
    pub(super) prompts: u64,
    pub(super) resources: u64,
}

/// Something a client may want to know.
#[derive(Debug, Clone)]
pub(super) enum News {
    Tools,
    Prompts,
    Resources,
    Letter(Letter),
}

/// Something that is addressed to some clients only.
#[derive(Debug, Clone)]
pub(super) enum Letter {
    /// A resource that was subscribed to has changed.
    Updated {
        uri: Arc<str>,
        params: Arc<RawValue>,
    },
    /// A message of a server's log.
    Logged(Arc<RawValue>),
}

/// What waits for one client to take it.
#[derive(Default)]
pub(super) struct Mailbox {
    letters: Mutex<VecDeque<Letter>>,
    arrived: Notify,
}

impl Mailbox {
    /// Never waits. That a resource has changed is told once, however often it did.
    pub(super) fn put(&self, letter: Letter) {
        let mut letters = self.letters();
        let is_same = |other: &Letter| match (&letter, other) {
            (Letter::Updated { uri, .. }, Letter::Updated { uri: other, .. }) => uri == other,
            _ => false,
        };
        if letters.iter().any(is_same) {
            return;
        }
        if letters.len() >= LETTERS_MAX {
            letters.pop_front();
        }
        letters.push_back(letter);
        drop(letters);
        self.arrived.notify_one();
    }

    async fn take(&self) -> Letter {
        loop {
            let letter = self.letters().pop_front();
            if let Some(letter) = letter {
                return letter;
            }
            self.arrived.notified().await;
        }
    }

    fn letters(&self) -> MutexGuard<'_, VecDeque<Letter>> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which lists a client wants to hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) tools: bool,
    pub(super) prompts: bool,
    pub(super) resources: bool,
}

impl Wanted {
    pub(super) const ALL: Wanted = Wanted {
        tools: true,
        prompts: true,
        resources: true,
    };
}

/// One who listens. Several changes of a list that it had no time for are one to it.
pub(super) struct Ear {
    now: watch::Receiver<Versions>,
    told: Versions,
    wanted: Wanted,
    mailbox: Arc<Mailbox>,
}

impl Ear {
    /// Hears what is new since `told`.
    pub(super) fn new(
        now: watch::Receiver<Versions>,
        told: Versions,
        wanted: Wanted,
        mailbox: Arc<Mailbox>,
    ) -> Ear {
        Ear {
            now,
            told,
            wanted,
            mailbox,
        }
    }

    pub(super) fn told(&self) -> Versions {
        self.told
    }

    /// The next that is new; none when there will be nothing any more. May be dropped and asked again.
    pub(super) async fn next(&mut self) -> Option<News> {
        loop {
            let now = *self.now.borrow_and_update();
            if std::mem::replace(&mut self.told.tools, now.tools) != now.tools && self.wanted.tools
            {
                return Some(News::Tools);
            }
            let told = std::mem::replace(&mut self.told.prompts, now.prompts);
            if told != now.prompts && self.wanted.prompts {
                return Some(News::Prompts);
            }
            let told = std::mem::replace(&mut self.told.resources, now.resources);
            if told != now.resources && self.wanted.resources {
                return Some(News::Resources);
            }
            tokio::select! {
                changed = self.now.changed() => changed.ok()?,
                letter = self.mailbox.take() => return Some(News::Letter(letter)),
            }
        }
    }
}

impl News {
    /// As the client is told; with the id of its subscription, where it has one.
    pub(super) fn message(&self, subscription: Option<&RawValue>) -> Message {
        let (method, params) = match self {
            News::Tools => ("notifications/tools/list_changed", None),
            News::Prompts => ("notifications/prompts/list_changed", None),
            News::Resources => ("notifications/resources/list_changed", None),
            News::Letter(Letter::Updated { params, .. }) => {
                ("notifications/resources/updated", Some(params))
            }
            News::Letter(Letter::Logged(params)) => ("notifications/message", Some(params)),
        };
        let params = params.map(|params| &**params);
        match subscription {
            None => Message::notification(method, params),
            Some(id) => Message::notification(method, Some(&tagged(params, id))),
        }
    }
}

/// Parameters with the id of a subscription.
pub(super) fn tagged(params: Option<&RawValue>, subscription: &RawValue) -> Box<RawValue> {
    let meta = to_raw_value(&Members(vec![(SUBSCRIPTION_ID.into(), subscription)]));
    let meta = meta.unwrap_or_else(|_| RawValue::NULL.to_owned());
    let members = params.and_then(Members::of).unwrap_or_default();
    members.with("_meta", &meta).to_raw()
}
