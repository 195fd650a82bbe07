//! One request on its way: what is said and asked about it before its answer goes through here, to its client.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use steadyhand::ReservedBytes;
use tokio::sync::{mpsc, oneshot};

use super::caller_budgets::CallerBudgets;
use super::client::{Answered, Client};
use super::era::Era;
use super::errors;
use super::loss;
use super::message::Message;
use crate::client::relay::{Counterpart, Question};
use crate::wire::{Members, RpcError};

/// Messages that may wait to be sent before the answer: so many, and so many bytes. Then the oldest are dropped, but
/// for questions: whoever asked waits for the answer.
const SAID_MAX: usize = 256;
const SAID_BYTES_MAX: usize = 512 * 1024;

/// What a request is answered with in the end: the result's text, or an error.
pub(super) type Answer = Result<Bytes, RpcError>;

/// One request on its way.
pub(super) struct Inquiry {
    client: Arc<Client>,
    sink: Sink,
    told: ToldMemory,
    state: Mutex<State>,
}

/// Where the memory of what waits to be sent is counted.
#[derive(Clone)]
pub(super) struct ToldMemory {
    pub(super) budgets: Arc<CallerBudgets>,
    /// Whose part it is.
    pub(super) account: Arc<str>,
}

impl ToldMemory {
    fn nothing(&self) -> ReservedBytes {
        self.budgets.of(&self.account).nothing()
    }
}

/// Where messages go that come before the answer.
#[derive(Clone)]
pub(super) enum Sink {
    /// Along with the answer: over HTTP each request may have a stream.
    Own,
    /// Nowhere: the client takes nothing but the answer.
    Closed,
    /// Where everything goes: stdio has one stream.
    Out(mpsc::Sender<Message>),
}

#[derive(Default)]
pub(super) struct State {
    said: VecDeque<QueuedMessage>,
    /// The memory of that.
    said_held: Option<ReservedBytes>,
    /// So many messages were dropped that the client has not heard of.
    dropped: u64,
    /// Questions that a client of the newer protocol has to answer, and where the answers go.
    open: Vec<Open>,
    /// There are questions nobody has been told of.
    is_asked: bool,
    /// Answers that came before their questions.
    given: Given,
    progress_token: Option<Box<RawValue>>,
    pub(super) answer: Option<Answer>,
    is_cancelled: bool,
    pub(super) waker: Option<Waker>,
}

/// Answers of a client, by the server's names for its questions.
pub(super) type Given = HashMap<String, Box<RawValue>>;

struct QueuedMessage {
    message: Message,
    is_question: bool,
}

struct Open {
    question: Question,
    answer: oneshot::Sender<Answered>,
}

/// What whoever drives a request has to do next.
pub(super) enum Next {
    /// Send this on.
    Say(Message),
    /// Let the client answer questions.
    Ask,
    /// Drop it.
    Cancel,
    /// The end.
    Answer(Answer),
}

impl Inquiry {
    pub(super) fn new(
        client: Arc<Client>,
        sink: Sink,
        progress_token: Option<&RawValue>,
        given: Given,
        told: ToldMemory,
    ) -> Arc<Inquiry> {
        Arc::new(Inquiry {
            client,
            sink,
            told,
            state: Mutex::new(State {
                progress_token: progress_token.map(RawValue::to_owned),
                given,
                ..State::default()
            }),
        })
    }

    pub(super) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The client no longer wants to know.
    pub(super) fn cancel(&self) {
        self.change(|state| state.is_cancelled = true);
    }

    /// The answer is there, for whoever waits for it elsewhere.
    pub(super) fn finish(&self, answer: Answer) {
        self.change(|state| {
            state.answer.get_or_insert(answer);
        });
    }

    /// The client has come back with answers: some questions may be left.
    pub(super) fn go_on(&self, mut given: Given, progress_token: Option<&RawValue>) {
        self.change(|state| {
            state.progress_token = progress_token.map(RawValue::to_owned);
            for open in std::mem::take(&mut state.open) {
                match given.remove(&open.question.key) {
                    Some(answer) => drop(open.answer.send(Ok(answer))),
                    None => state.open.push(open),
                }
            }
            state.is_asked = !state.open.is_empty();
        });
    }

    /// The questions that are open, as the client is to be told. None if they have been withdrawn meanwhile.
    pub(super) fn questions(&self) -> Option<Vec<Question>> {
        let state = self.state();
        let open: Vec<Question> = state
            .open
            .iter()
            .map(|open| open.question.clone())
            .collect();
        (!open.is_empty()).then_some(open)
    }

    /// Nobody will answer what is asked now.
    pub(super) fn refuse_questions(&self, error: &RpcError) {
        let open = std::mem::take(&mut self.state().open);
        for open in open {
            let _ = open.answer.send(Err(error.clone()));
        }
    }

    /// Whether someone thinks about a question now.
    pub(super) fn is_thought_about(&self) -> bool {
        !self.state().open.is_empty() || self.client.questions.are_open()
    }

    /// Hands over a message that comes before the answer. Who is slow to take them misses the oldest.
    fn say(&self, message: Message) {
        match &self.sink {
            Sink::Closed => {}
            Sink::Out(out) => {
                let is_told = match self.take_loss() {
                    Some((loss, count)) => {
                        let is_told = out.try_send(loss).is_ok();
                        self.state().dropped += if is_told { 0 } else { count };
                        is_told
                    }
                    None => true,
                };
                // After what was dropped before, so that the client hears of it where it happened.
                if !is_told || out.try_send(message).is_err() {
                    self.state().dropped += 1;
                }
            }
            Sink::Own => self.change(|state| state.add_said(message, &self.told)),
        }
    }

    /// What is to be done next, if there is anything. What was dropped is told before what follows it; where messages go
    /// elsewhere, it is told there: the work does not wait for a client that does not read.
    pub(super) fn next(&self) -> Option<Next> {
        let is_own = matches!(self.sink, Sink::Own) && !self.state().is_cancelled;
        match is_own.then(|| self.take_loss()).flatten() {
            Some((loss, _)) => Some(Next::Say(loss)),
            None => self.state().next(),
        }
    }

    /// What the client is told of messages that were dropped, if any were and it wants to hear of it; and how many.
    pub(super) fn take_loss(&self) -> Option<(Message, u64)> {
        let count = std::mem::take(&mut self.state().dropped);
        let level = self.client.loss_level().filter(|_| count > 0)?;
        Some((loss::message(level, count), count))
    }

    /// Hands over a question, which must not get lost.
    async fn say_question(&self, message: Message) {
        match &self.sink {
            Sink::Closed => {}
            Sink::Out(out) => drop(out.send(message).await),
            Sink::Own => self.change(|state| {
                let is_question = true;
                state.said.push_back(QueuedMessage {
                    message,
                    is_question,
                });
            }),
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Asks with requests of our own, as the older protocols have it.
    async fn ask_with_requests(self: Arc<Self>, questions: Vec<Question>) -> Vec<Answered> {
        if matches!(self.sink, Sink::Closed) {
            let text = "the client takes no stream of events, so that it cannot be asked anything";
            return questions
                .iter()
                .map(|_| Err(errors::unanswered(text)))
                .collect();
        }
        let asked = questions.into_iter().map(|question| {
            let inquiry = Arc::clone(&self);
            async move {
                let Some((id, answer)) = inquiry.client.questions.open() else {
                    return Err(errors::unanswered("too many questions are open already"));
                };
                let withdrawing = Withdrawing { inquiry, id };
                let method = &question.method;
                let message = Message::request(id, method, question.params.as_deref());
                withdrawing.inquiry.say_question(message).await;
                answer.await.unwrap_or_else(|_| Err(gone()))
            }
        });
        join_all(asked).await
    }

    /// Has the request answered with the questions, as the newer protocol has it.
    async fn ask_in_answer(self: Arc<Self>, questions: Vec<Question>) -> Vec<Answered> {
        let mut answers = Vec::with_capacity(questions.len());
        self.change(|state| {
            for question in questions {
                let (answer, receiver) = oneshot::channel();
                answers.push(receiver);
                match state.given.remove(&question.key) {
                    Some(given) => drop(answer.send(Ok(given))),
                    None => {
                        state.open.push(Open { question, answer });
                        state.is_asked = true;
                    }
                }
            }
        });
        let _forgetting = Forgetting(&self);
        let answers = answers
            .into_iter()
            .map(|answer| answer.map(|answer| answer.unwrap_or_else(|_| Err(gone()))));
        join_all(answers).await
    }

    fn progress(&self, params: Option<&RawValue>) {
        let Some(token) = self.state().progress_token.clone() else {
            return;
        };
        let members = params.and_then(Members::of).unwrap_or_default();
        let params = members.with("progressToken", &token).to_raw();
        self.say(Message::notification(
            "notifications/progress",
            Some(&params),
        ));
    }

    /// What a tool of our own says about how far it is.
    pub(super) fn tell_progress(&self, done: f64, total: Option<f64>, message: &str) {
        let mut params = serde_json::Map::new();
        params.insert("progress".to_owned(), number(done));
        if let Some(total) = total {
            params.insert("total".to_owned(), number(total));
        }
        if !message.is_empty() {
            params.insert("message".to_owned(), message.into());
        }
        let params = to_raw_value(&params).ok();
        self.progress(params.as_deref());
    }
}

impl Counterpart for Inquiry {
    fn capabilities(&self) -> &Value {
        &self.client.capabilities
    }

    fn ask(self: Arc<Self>, questions: Vec<Question>) -> BoxFuture<'static, Vec<Answered>> {
        match self.client.era {
            Era::Legacy(_) => self.ask_with_requests(questions).boxed(),
            Era::Modern => self.ask_in_answer(questions).boxed(),
        }
    }

    fn tell(&self, method: &str, params: Option<&RawValue>) {
        match method {
            "notifications/progress" => self.progress(params),
            "notifications/message" if !self.client.hears(level(params).as_deref()) => {}
            "notifications/message" => self.say(Message::notification(method, params)),
            // What else there is belongs to the older protocols.
            _ if self.client.era.is_modern() => {}
            _ => self.say(Message::notification(method, params)),
        }
    }

    fn identity(&self) -> usize {
        Arc::as_ptr(&self.client).addr()
    }

    fn account(&self) -> Option<Arc<str>> {
        Some(Arc::clone(&self.told.account)).filter(|account| !account.is_empty())
    }

    fn log_level(&self) -> Option<&str> {
        self.client.level()
    }
}

impl State {
    fn add_said(&mut self, message: Message, told: &ToldMemory) {
        let bytes = message.len();
        if bytes > SAID_BYTES_MAX {
            self.dropped += 1;
            return;
        }
        let is_full = |state: &State| {
            let held = state.said_held.as_ref().map_or(0, ReservedBytes::bytes);
            state.said.len() >= SAID_MAX || held + bytes > SAID_BYTES_MAX
        };
        while is_full(self) {
            self.dropped += 1;
            let Some(oldest) = self.said.iter().position(|said| !said.is_question) else {
                return;
            };
            if let Some(said) = self.said.remove(oldest) {
                self.give_back(&said);
            }
        }
        let held = self.said_held.get_or_insert_with(|| told.nothing());
        if held.grow(bytes).is_err() {
            self.dropped += 1;
            return;
        }
        let is_question = false;
        self.said.push_back(QueuedMessage {
            message,
            is_question,
        });
    }

    fn give_back(&mut self, said: &QueuedMessage) {
        if let (Some(held), false) = (&mut self.said_held, said.is_question) {
            held.shrink_to(held.bytes().saturating_sub(said.message.len()));
        }
    }

    /// What is to be done next, if there is anything. What was said comes before the answer.
    pub(super) fn next(&mut self) -> Option<Next> {
        if self.is_cancelled {
            return Some(Next::Cancel);
        }
        if let Some(said) = self.said.pop_front() {
            self.give_back(&said);
            return Some(Next::Say(said.message));
        }
        if let Some(answer) = self.answer.take() {
            return Some(Next::Answer(answer));
        }
        let is_asked = std::mem::take(&mut self.is_asked) && !self.open.is_empty();
        is_asked.then_some(Next::Ask)
    }
}

/// Tells the client, unless it has answered, that a question is withdrawn.
struct Withdrawing {
    inquiry: Arc<Inquiry>,
    id: u64,
}

impl Drop for Withdrawing {
    fn drop(&mut self) {
        if !self.inquiry.client.questions.withdraw(self.id) {
            return;
        }
        let params = serde_json::json!({
            "requestId": self.id,
            "reason": "the request this question belongs to is over",
        });
        if let Ok(params) = to_raw_value(&params) {
            let message = Message::notification("notifications/cancelled", Some(&params));
            self.inquiry.say(message);
        }
    }
}

/// Takes out questions that nobody waits for any more.
struct Forgetting<'a>(&'a Inquiry);

impl Drop for Forgetting<'_> {
    fn drop(&mut self) {
        self.0.state().open.retain(|open| !open.answer.is_closed());
    }
}

/// The level of a message of a log.
pub(super) fn level(params: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct Logged {
        level: String,
    }
    let logged: Logged = steadyhand::typed_json::from_str(params?.get()).ok()?;
    Some(logged.level)
}

/// 3 stays 3.
fn number(value: f64) -> Value {
    let whole = value as i64;
    match whole as f64 == value && whole.unsigned_abs() < 1 << 53 {
        true => whole.into(),
        false => value.into(),
    }
}

fn gone() -> RpcError {
    errors::unanswered("the client went away before it answered")
}
