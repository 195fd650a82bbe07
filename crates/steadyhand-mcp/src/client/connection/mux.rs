//! What a server sends, brought to whom it concerns: answers by id, progress by token, questions and remarks by
//! whose request they belong to.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::value::RawValue;
use steadyhand::{BudgetExceeded, ByteBudget};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::client::catalogue::lists::Changed;
use crate::client::connection::questions::Questions;
use crate::client::connection::slot::{Answer, Progress, Slot, Whose};
use crate::client::connection::unreadable::Unattributed;
use crate::client::hidden::hide_in_json;
use crate::client::http::TransportError;
use crate::client::memory::HeldJson;
use crate::client::notices::{NOTICE_BYTES_MAX, Notices};
use crate::client::record::Record;
use crate::client::relay::Counterpart;
use crate::client::requests::RequestPolicy;
use crate::wire::meta::META_SUBSCRIPTION;
use crate::wire::{Incoming, Members, Outgoing, RpcError, examined, rename_marks};

/// What every connection of one server shares.
pub(crate) struct Desk {
    /// The server's name.
    pub(crate) server: Arc<str>,
    pub(crate) policy: RequestPolicy,
    pub(crate) notices: Notices,
    pub(crate) record: Arc<Record>,
    /// What it may take.
    pub(crate) memory: ByteBudget,
}

impl Desk {
    /// Passes on what concerns nobody in particular, without secrets.
    fn tell(&self, method: &str, params: Option<&RawValue>) {
        let hidden = self.hidden(params);
        self.notices.tell(method, hidden.as_deref().or(params));
    }

    /// The parameters without secrets; none if they had none.
    fn hidden(&self, params: Option<&RawValue>) -> Option<Box<RawValue>> {
        hide_in_json(params?, self.record.hide()?)
    }
}

/// A way back to the server, for answers to its questions.
pub(crate) trait Outlet: Send + Sync {
    /// Hands over one message. Never waits.
    fn say(&self, line: Vec<u8>);
    /// The same with what a server can have as much of as it likes: answers that nobody had to think about. They never
    /// take the room of anything else; those there is no room for are dropped.
    fn reply(&self, line: Vec<u8>);
}

/// The requests that are under way on one connection.
pub(crate) struct Mux {
    next_id: AtomicU64,
    standing: AtomicUsize,
    waiting: Mutex<HashMap<u64, Arc<Slot>, RandomState>>,
    /// Answers that could not be read, and may be those of several requests.
    unattributed: Unattributed,
    pub(crate) desk: Arc<Desk>,
    pub(crate) questions: Questions,
    changed: AtomicU8,
    changed_told: Notify,
    /// Someone gave up waiting for an answer, and nothing had been heard meanwhile.
    doubted: Notify,
    is_doubted: AtomicBool,
    started: Instant,
    /// Milliseconds from the start to when the server was last heard.
    heard: AtomicU64,
    pub(crate) closed: CancellationToken,
    why_closed: OnceLock<String>,
}

impl Mux {
    pub(crate) fn new(desk: Arc<Desk>) -> Mux {
        Mux {
            next_id: AtomicU64::new(1),
            standing: AtomicUsize::new(0),
            waiting: Mutex::default(),
            unattributed: Unattributed::default(),
            desk,
            questions: Questions::default(),
            changed: AtomicU8::new(0),
            changed_told: Notify::new(),
            doubted: Notify::new(),
            is_doubted: AtomicBool::new(false),
            started: Instant::now(),
            heard: AtomicU64::new(0),
            closed: CancellationToken::new(),
            why_closed: OnceLock::new(),
        }
    }

    /// A new request: its id, where its answer will be, and how many are under way now that someone waits for.
    pub(crate) fn open(&self, whose: Whose) -> (u64, Arc<Slot>, usize) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        if let Whose::Standing = whose {
            self.standing.fetch_add(1, Ordering::Relaxed);
        }
        let slot = Arc::new(Slot::new(whose));
        let mut waiting = self.waiting();
        waiting.insert(id, Arc::clone(&slot));
        let standing = self.standing.load(Ordering::Relaxed);
        (id, slot, waiting.len() - standing.min(waiting.len()))
    }

    /// Takes the request out again when it goes, answered or not.
    pub(crate) fn guard(&self, id: u64) -> impl Drop + '_ {
        struct Guard<'a>(&'a Mux, u64);
        impl Drop for Guard<'_> {
            fn drop(&mut self) {
                self.0.give_up(self.1);
            }
        }
        Guard(self, id)
    }

    /// Brings a message to whom it concerns. `of` is the request whose own stream it came on, where there are such.
    pub(crate) fn take(
        self: &Arc<Self>,
        message: Incoming<'_>,
        of: Option<&Arc<Slot>>,
        outlet: &Arc<dyn Outlet>,
    ) {
        self.desk.record.heard(&message);
        match message {
            Incoming::Response { id, result } => {
                let answer = self.answer_of(result);
                let Some(id) = id else {
                    return self.without_id(answer);
                };
                match self.remove(id) {
                    Some(slot) => self.answer(&slot, answer),
                    None if id >= self.next_id.load(Ordering::Relaxed) => {
                        return self.with_wrong_id(id, answer);
                    }
                    // Too late, or twice: nobody waits for it.
                    None => tracing::debug!(id, "an answer nobody waits for"),
                }
                self.attribute_after(id);
            }
            Incoming::Request { id, method, params } => match params.map(examined).transpose() {
                Ok(params) => self.asked(id, method, params.as_deref(), of, outlet),
                Err(repeated) => {
                    let error = RpcError::new(-32602, repeated.message());
                    let answer = Outgoing::<RawValue>::response(id, Err(&error));
                    outlet.reply(answer.line());
                }
            },
            Incoming::Notification { method, params } => match params.map(examined).transpose() {
                Ok(params) => self.notified(method, params.as_deref(), of),
                Err(repeated) => tracing::debug!(
                    server = &*self.desk.server,
                    method,
                    fault = repeated.message(),
                    "a notification was passed over"
                ),
            },
        }
    }

    /// An answer that there was no memory for.
    pub(crate) fn no_memory(&self, id: u64, exceeded: BudgetExceeded) {
        self.answer_id(id, Answer::NoMemory(exceeded));
    }

    /// What a request was answered with. A result that can be read in two ways is none.
    fn answer_of(&self, result: Result<&RawValue, RpcError>) -> Answer {
        let result = match result {
            Ok(result) => examined(result),
            Err(mut error) => {
                if let Some(data) = &mut error.data {
                    rename_marks(data);
                }
                return Answer::Error(error);
            }
        };
        match result.map(|result| HeldJson::copy(&self.desk.memory, &result)) {
            Ok(Ok(result)) => Answer::Result(result),
            Ok(Err(exceeded)) => Answer::NoMemory(exceeded),
            Err(repeated) => Answer::Unreadable(repeated),
        }
    }

    /// An answer that was thrown away.
    pub(crate) fn too_large(&self, id: u64, bytes: usize) -> bool {
        let slot = self.remove(id);
        if let Some(slot) = &slot {
            self.answer(slot, Answer::TooLarge(bytes));
        }
        slot.is_some()
    }

    fn notified(&self, method: &str, params: Option<&RawValue>, of: Option<&Arc<Slot>>) {
        match method {
            "notifications/progress" => {
                if let Some((slot, progress)) = self.progress(params) {
                    slot.progress(progress, &self.desk.memory);
                }
            }
            "notifications/tools/list_changed" => self.tell_changed(Changed::TOOLS),
            "notifications/prompts/list_changed" => self.tell_changed(Changed::PROMPTS),
            "notifications/resources/list_changed" => self.tell_changed(Changed::RESOURCES),
            "notifications/cancelled" => self.questions.cancelled_by_server(params),
            "notifications/message" if is_too_long(params) => {
                tracing::debug!(
                    server = &*self.desk.server,
                    "a message that is too long is not told"
                );
            }
            "notifications/message" => match self.whose_turn(of) {
                Ok(client) => client.tell(method, self.desk.hidden(params).as_deref().or(params)),
                Err(_) => self.desk.tell(method, params),
            },
            "notifications/subscriptions/acknowledged" => {
                let slot = of.cloned().or_else(|| self.subscription(params));
                if let Some(slot) = slot {
                    slot.progress(Progress::silent(), &self.desk.memory);
                }
            }
            _ => self.desk.tell(method, params),
        }
    }

    fn progress(&self, params: Option<&RawValue>) -> Option<(Arc<Slot>, Progress)> {
        #[derive(Deserialize)]
        struct Token<'a> {
            #[serde(rename = "progressToken", borrow)]
            token: &'a RawValue,
        }
        let Token { token } = steadyhand::typed_json::from_str(params?.get()).ok()?;
        let id = token.get().trim_matches('"').parse().ok()?;
        let slot = self.waiting().get(&id).cloned()?;
        Some((slot, Progress::read(params?)?))
    }

    /// The request of ours that stays open and that this belongs to.
    fn subscription(&self, params: Option<&RawValue>) -> Option<Arc<Slot>> {
        let meta = Members::of(params?)?.get("_meta").and_then(Members::of)?;
        let id = meta.get(META_SUBSCRIPTION)?.get().trim_matches('"');
        self.waiting().get(&id.parse().ok()?).cloned()
    }

    /// The one client a word of the server can be meant for. On a connection that is shared there is no sign where it
    /// belongs: so only if all requests under way are of the same client, who is then the only one.
    pub(crate) fn whose_turn(
        &self,
        of: Option<&Arc<Slot>>,
    ) -> Result<Arc<dyn Counterpart>, Unclear> {
        let clear = |whose: &Whose| match whose {
            Whose::Clients(client) => Ok(Arc::clone(client)),
            Whose::Nobodys | Whose::Ours | Whose::Standing => Err(Unclear::Nobody),
        };
        if let Some(slot) = of {
            return clear(&slot.whose);
        }
        let waiting = self.waiting();
        let mut found: Option<Arc<dyn Counterpart>> = None;
        let mut of_nobody = false;
        for slot in waiting.values() {
            match (&slot.whose, &found) {
                (Whose::Ours | Whose::Standing, _) => {}
                (Whose::Nobodys, _) => of_nobody = true,
                (Whose::Clients(client), None) => found = Some(Arc::clone(client)),
                (Whose::Clients(client), Some(before)) if is_same(client, before) => {}
                (Whose::Clients(_), Some(_)) => return Err(Unclear::Several),
            }
        }
        match found {
            Some(_) if of_nobody => Err(Unclear::Several),
            Some(client) => Ok(client),
            None => Err(Unclear::Nobody),
        }
    }

    /// The requests of a client that are under way.
    pub(crate) fn requests_of(&self, client: &Arc<dyn Counterpart>) -> Vec<Arc<Slot>> {
        let is_its = |slot: &&Arc<Slot>| match &slot.whose {
            Whose::Clients(own) => is_same(own, client),
            Whose::Nobodys | Whose::Ours | Whose::Standing => false,
        };
        self.waiting().values().filter(is_its).cloned().collect()
    }

    /// Takes a request out of those that wait.
    pub(crate) fn remove(&self, id: u64) -> Option<Arc<Slot>> {
        let slot = self.waiting().remove(&id)?;
        if let Whose::Standing = slot.whose {
            self.standing.fetch_sub(1, Ordering::Relaxed);
        }
        Some(slot)
    }

    /// Answers a request, if anyone waits for that.
    pub(crate) fn answer_id(&self, id: u64, answer: Answer) {
        if let Some(slot) = self.remove(id) {
            self.answer(&slot, answer);
        }
    }

    /// There will be no answer.
    pub(crate) fn fail(&self, id: u64, trouble: TransportError) {
        self.answer_id(id, Answer::TransportError(trouble));
    }

    pub(crate) fn answer(&self, slot: &Slot, answer: Answer) {
        slot.answer(answer);
        self.questions.look_again();
    }

    /// Nobody waits for this request any more. False if it was over already.
    pub(crate) fn give_up(&self, id: u64) -> bool {
        let Some(slot) = self.remove(id) else {
            return false;
        };
        self.unattributed.forget(id);
        slot.given_up();
        self.questions.look_again();
        true
    }

    pub(crate) fn answer_lost(&self, id: u64, reason: &str) {
        if let Some(slot) = self.remove(id) {
            slot.lost(reason);
            self.questions.look_again();
        }
    }

    /// Everyone who waits is answered, at once.
    pub(crate) fn answer_all_lost(&self) {
        let all: Vec<_> = self.waiting().drain().collect();
        self.standing.store(0, Ordering::Relaxed);
        let reason = self.why_closed();
        for (_, slot) in all {
            slot.lost(&reason);
        }
        self.questions.look_again();
    }

    /// From now on nothing is sent any more.
    pub(crate) fn close(&self, reason: &str) {
        let _ = self.why_closed.set(reason.to_owned());
        self.closed.cancel();
    }

    pub(crate) fn why_closed(&self) -> String {
        let why = self.why_closed.get();
        why.cloned()
            .unwrap_or_else(|| "the connection ended".to_owned())
    }

    /// Requests that someone waits for.
    pub(crate) fn in_flight(&self) -> usize {
        let waiting = self.waiting();
        let is_ours = |slot: &&Arc<Slot>| matches!(slot.whose, Whose::Ours | Whose::Standing);
        waiting.values().filter(|slot| !is_ours(slot)).count()
    }

    /// One look again, however many say that something has changed.
    pub(crate) fn tell_changed(&self, what: Changed) {
        self.changed.fetch_or(what.0, Ordering::AcqRel);
        self.changed_told.notify_one();
    }

    /// Waits until lists have changed; which.
    pub(crate) async fn changed(&self) -> Changed {
        loop {
            let changed = self.changed.swap(0, Ordering::AcqRel);
            if changed != 0 {
                return Changed(changed);
            }
            self.changed_told.notified().await;
        }
    }

    pub(crate) fn doubt(&self) {
        self.is_doubted.store(true, Ordering::Release);
        self.doubted.notify_one();
    }

    pub(crate) async fn doubted(&self) {
        self.doubted.notified().await;
    }

    pub(crate) fn is_doubted(&self) -> bool {
        self.is_doubted.load(Ordering::Acquire)
    }

    pub(crate) fn trust(&self) {
        self.is_doubted.store(false, Ordering::Release);
    }

    pub(crate) fn hear(&self) {
        self.heard.store(self.ms(Instant::now()), Ordering::Relaxed);
    }

    pub(crate) fn heard_since(&self, since: Instant) -> bool {
        self.heard.load(Ordering::Relaxed) >= self.ms(since)
    }

    fn ms(&self, at: Instant) -> u64 {
        // Rounded up, so that "since" means after.
        at.saturating_duration_since(self.started).as_millis() as u64 + 1
    }

    /// The requests that an answer without a readable id can be for.
    pub(crate) fn open_requests(&self) -> Vec<u64> {
        let waiting = self.waiting();
        let open = waiting
            .iter()
            .filter(|(_, slot)| !matches!(slot.whose, Whose::Standing));
        open.map(|(id, _)| *id).collect()
    }

    pub(crate) fn unattributed(&self) -> &Unattributed {
        &self.unattributed
    }

    /// A request that waits for its answer.
    pub(crate) fn waiting_for(&self, id: u64) -> Option<Arc<Slot>> {
        self.waiting().get(&id).cloned()
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Arc<Slot>, RandomState>> {
        self.waiting.lock()
    }
}

/// Why nobody can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unclear {
    /// No request under way is of anyone who can be asked.
    Nobody,
    /// It may be meant for one of several.
    Several,
}

/// Whether what a server says of its own accord is too long to be told.
fn is_too_long(params: Option<&RawValue>) -> bool {
    params.is_some_and(|params| params.get().len() > NOTICE_BYTES_MAX)
}

fn is_same(one: &Arc<dyn Counterpart>, other: &Arc<dyn Counterpart>) -> bool {
    one.identity() == other.identity()
}
