//! What a client is told of its own accord: lists that have changed, resources that are new, words of servers' logs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::value::{RawValue, to_raw_value};
use steadyhand::{ByteBudget, ReservedBytes};
use tokio::sync::{Notify, watch};

use super::client::Client;
use super::loss;
use super::message::Message;
use super::shares::TakenShare;
use crate::wire::Members;

/// Letters that may wait for one client: so many, and so many bytes. Then the oldest are dropped, and counted.
const LETTERS_MAX: usize = 256;
const LETTERS_BYTES_MAX: usize = 256 * 1024;
/// What may wait for all clients, of what servers tell them.
pub(super) const TOLD_BYTES_MAX: usize = 64 * 1024 * 1024;
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
pub(super) struct Mailbox {
    letters: Mutex<Letters>,
    arrived: Notify,
    /// The resources it hears of, and what each of them takes of its caller's share.
    watched: Mutex<HashMap<Arc<str>, Option<TakenShare>>>,
}

struct Letters {
    waiting: VecDeque<Letter>,
    held: ReservedBytes,
    dropped: u64,
    /// How many of them the client has not heard of.
    untold: u64,
    /// Who they are for, where that is told what was dropped.
    client: Option<Arc<Client>>,
}

impl Letter {
    fn bytes(&self) -> usize {
        match self {
            Letter::Updated { uri, params } => uri.len() + params.get().len(),
            Letter::Logged(params) => params.get().len(),
        }
    }
}

impl Letters {
    /// The next one; before it, that some were dropped, where the client hears messages at all.
    fn take(&mut self) -> Option<Letter> {
        let untold = std::mem::take(&mut self.untold);
        let level = self.client.as_ref().and_then(|client| client.loss_level());
        match level {
            Some(level) if untold > 0 => Some(Letter::Logged(loss::params(level, untold).into())),
            _ => self.take_oldest(),
        }
    }

    fn take_oldest(&mut self) -> Option<Letter> {
        let letter = self.waiting.pop_front()?;
        let left = self.held.bytes().saturating_sub(letter.bytes());
        self.held.shrink_to(left);
        Some(letter)
    }

    fn drop_oldest(&mut self) -> bool {
        let is_dropped = self.take_oldest().is_some();
        if is_dropped {
            self.count_dropped();
        }
        is_dropped
    }

    fn count_dropped(&mut self) {
        self.dropped += 1;
        self.untold += 1;
        if self.dropped.is_power_of_two() {
            let dropped = self.dropped;
            tracing::debug!(dropped, "a client does not take what servers tell it");
        }
    }

    /// Makes room by dropping the oldest. False if there is none even so.
    fn add(&mut self, letter: Letter) -> bool {
        let bytes = letter.bytes();
        let is_full = |letters: &Letters| {
            letters.waiting.len() >= LETTERS_MAX || letters.held.bytes() + bytes > LETTERS_BYTES_MAX
        };
        while is_full(self) && self.drop_oldest() {}
        let has_room = bytes <= LETTERS_BYTES_MAX && self.held.grow(bytes).is_ok();
        match has_room {
            true => self.waiting.push_back(letter),
            false => self.count_dropped(),
        }
        has_room
    }
}

impl Mailbox {
    /// An empty one. `memory` is its caller's.
    pub(super) fn new(memory: ByteBudget) -> Mailbox {
        Mailbox {
            letters: Mutex::new(Letters {
                waiting: VecDeque::new(),
                held: memory.nothing(),
                dropped: 0,
                untold: 0,
                client: None,
            }),
            arrived: Notify::new(),
            watched: Mutex::default(),
        }
    }

    /// Whom it is for: who is told of what was dropped.
    pub(super) fn belong_to(&self, client: &Arc<Client>) {
        self.letters().client = Some(Arc::clone(client));
    }

    /// Never waits. That a resource has changed is told once, however often it did.
    pub(super) fn put(&self, letter: Letter) {
        let mut letters = self.letters();
        let is_same = |other: &Letter| match (&letter, other) {
            (Letter::Updated { uri, .. }, Letter::Updated { uri: other, .. }) => uri == other,
            _ => false,
        };
        if letters.waiting.iter().any(is_same) {
            return;
        }
        let has_arrived = letters.add(letter);
        drop(letters);
        if has_arrived {
            self.arrived.notify_one();
        }
    }

    /// It hears of a resource, which counts in its caller's share until it does no more, or is gone.
    pub(super) fn watches(&self, uri: &Arc<str>, share: Option<TakenShare>) {
        self.watched().insert(Arc::clone(uri), share);
    }

    pub(super) fn watches_no_more(&self, uri: &str) {
        self.watched().remove(uri);
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<Arc<str>, Option<TakenShare>>> {
        self.watched.lock()
    }

    async fn take(&self) -> Letter {
        loop {
            let letter = self.letters().take();
            if let Some(letter) = letter {
                return letter;
            }
            self.arrived.notified().await;
        }
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock()
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::gateway::era::Era;

    fn logged(data: &Value) -> Letter {
        let params = to_raw_value(&json!({"level": "error", "data": data})).expect("JSON");
        Letter::Logged(params.into())
    }

    async fn data_of_next(mailbox: &Mailbox) -> Value {
        let Letter::Logged(params) = mailbox.take().await else {
            panic!("it is a message");
        };
        serde_json::from_str::<Value>(params.get()).expect("JSON")["data"].clone()
    }

    #[tokio::test]
    async fn s01_a_client_that_does_not_read_hears_what_was_dropped_and_then_what_was_kept() {
        let client = Arc::new(Client::new(Era::settled(None), None, json!({})));
        let mailbox = Mailbox::new(ByteBudget::new("a test", 64 * 1024 * 1024));
        mailbox.belong_to(&client);
        let filler = "x".repeat(1024);
        for number in 0..5_000 {
            mailbox.put(logged(&json!([number, filler])));
        }
        let held = mailbox.letters().held.bytes();
        assert!(held <= LETTERS_BYTES_MAX, "{held}");
        let loss = data_of_next(&mailbox).await.to_string();
        let kept = mailbox.letters().waiting.len();
        assert_eq!(
            loss,
            format!(
                "\"{} messages were dropped, because they were not read in time\"",
                5_000 - kept
            )
        );
        for number in 5_000 - kept..5_000 {
            assert_eq!(data_of_next(&mailbox).await[0], number);
        }
        // It is told once.
        mailbox.put(logged(&json!("next")));
        assert_eq!(data_of_next(&mailbox).await, "next");
    }

    #[tokio::test]
    async fn s01_a_client_that_wants_to_hear_only_the_worst_hears_of_the_loss_at_that_level() {
        let client = Arc::new(Client::new(Era::settled(None), None, json!({})));
        assert!(client.set_level("emergency"));
        let mailbox = Mailbox::new(ByteBudget::new("a test", 64 * 1024 * 1024));
        mailbox.belong_to(&client);
        for number in 0..300 {
            mailbox.put(Letter::Updated {
                uri: format!("test://{number}").into(),
                params: to_raw_value(&json!({})).expect("JSON").into(),
            });
        }
        let Letter::Logged(loss) = mailbox.take().await else {
            panic!("it is told");
        };
        assert!(loss.get().contains("\"emergency\"") && loss.get().contains("44 messages"));
        // One that asked for no messages gets none of ours either.
        let silent = Arc::new(Client::new(Era::Modern, None, json!({})));
        assert_eq!(silent.loss_level(), None);
    }
}
