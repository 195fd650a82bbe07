//! Questions of a server that a client has to answer. Each is answered once, and none is left open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use steadyhand::ReservedBytes;
use tokio_util::sync::CancellationToken;

use crate::client::connection::mux::{Mux, Outlet, Unclear};
use crate::client::connection::slot::Slot;
use crate::client::relay::Question;
use crate::client::requests::{not_served, unable};
use crate::wire::{Outgoing, RpcError};

/// Questions of one server that may be open at the same time.
const OPEN_MAX: usize = 64;
/// Of them, for the clients of one caller.
const OPEN_PER_CALLER_MAX: usize = 32;
/// A question may be so long: there may be pictures in it. Longer ones are refused unread.
const QUESTION_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What is repeated in an answer.
const ID_BYTES_MAX: usize = 1024;
const METHOD_CHARS_SHOWN_MAX: usize = 60;
const INTERNAL: i64 = -32603;
const INVALID_REQUEST: i64 = -32600;

/// The questions that are open.
#[derive(Default)]
pub(crate) struct Questions {
    count: AtomicUsize,
    last: AtomicU64,
    open: Mutex<Vec<Open>>,
}

struct Open {
    /// Ours: a server may use an id twice.
    number: u64,
    /// As the server wrote it.
    id: String,
    /// Whose client has to answer, where callers are told apart.
    account: Option<Arc<str>>,
    /// The requests that wait for it: when they are over, so is the question.
    requests: Vec<Arc<Slot>>,
    withdrawn: CancellationToken,
}

impl Questions {
    /// A request is over: perhaps the last one that needed an answer.
    pub(crate) fn look_again(&self) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        for open in self.lock().iter() {
            if open.requests.iter().all(|request| request.is_over()) {
                open.withdrawn.cancel();
            }
        }
    }

    /// The server no longer wants to know.
    pub(crate) fn cancelled_by_server(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Cancelled<'a> {
            #[serde(borrow, rename = "requestId")]
            id: &'a RawValue,
        }
        let text = params.map_or("null", RawValue::get);
        let Ok(cancelled) = steadyhand::typed_json::from_str::<Cancelled<'_>>(text) else {
            return;
        };
        let open = self.lock();
        if let Some(question) = open.iter().find(|open| open.id == cancelled.id.get()) {
            question.withdrawn.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Open>> {
        self.open.lock()
    }
}

impl Mux {
    /// The server wants something from us.
    pub(crate) fn asked(
        self: &Arc<Self>,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        of: Option<&Arc<Slot>>,
        outlet: &Arc<dyn Outlet>,
    ) {
        let bytes = id.get().len() + method.len() + params.map_or(0, |params| params.get().len());
        if bytes > QUESTION_BYTES_MAX || id.get().len() > ID_BYTES_MAX {
            return refuse_too_long(id, method, bytes, outlet);
        }
        if let Some(answer) = self.desk.policy.answer(method, params) {
            outlet.reply(Outgoing::<Value>::response(id, answer.as_ref()).line());
            return;
        }
        if let Err(error) = self.ask_client(id, method, params, of, outlet) {
            outlet.reply(Outgoing::<Value>::response(id, Err(&error)).line());
        }
    }

    fn ask_client(
        self: &Arc<Self>,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        of: Option<&Arc<Slot>>,
        outlet: &Arc<dyn Outlet>,
    ) -> Result<(), RpcError> {
        let client = self.whose_turn(of).map_err(|unclear| match unclear {
            Unclear::Nobody => not_served(method),
            // Asking the wrong person is worse than not asking.
            Unclear::Several => RpcError::new(
                INVALID_REQUEST,
                format!(
                    "{method} is not answered now: requests of several clients are under way on this connection, \
                     and nothing says whose question this is"
                ),
            ),
        })?;
        if let Some(error) = unable(&*client, method, params) {
            return Err(error);
        }
        let requests = match of {
            Some(request) => vec![Arc::clone(request)],
            None => self.requests_of(&client),
        };
        let held = self
            .desk
            .memory
            .reserve(id.get().len() + params.map_or(0, |params| params.get().len()))
            .map_err(|exceeded| {
                RpcError::new(INTERNAL, format!("{method} is not answered: {exceeded}"))
            })?;
        let asked = Asked::open(self, id, (requests, client.account()), outlet, held)?;
        let question = Question {
            key: id.get().trim_matches('"').to_owned(),
            method: method.to_owned(),
            params: params.map(RawValue::to_owned),
        };
        tokio::spawn(async move {
            let answers = tokio::select! {
                answers = client.ask(vec![question]) => answers,
                () = asked.withdrawn.cancelled() => vec![Err(withdrawn())],
                () = asked.mux.closed.cancelled() => Vec::new(),
            };
            asked.answer(answers.into_iter().next());
        });
        Ok(())
    }
}

/// Why one more question for a client of this caller is not asked, beside those that are open.
fn no_room<'a>(
    open: impl Iterator<Item = Option<&'a str>>,
    account: Option<&str>,
) -> Option<String> {
    let (mut count, mut own) = (0, 0);
    for other in open {
        count += 1;
        own += usize::from(other == account);
    }
    match account {
        Some(account) if own >= OPEN_PER_CALLER_MAX => Some(format!(
            "{} has {OPEN_PER_CALLER_MAX} open questions of this server, which is as many as one caller may have; the client was not asked",
            account.trim_start_matches('@')
        )),
        _ if count >= OPEN_MAX => Some(format!(
            "{OPEN_MAX} questions are open already; the client was not asked"
        )),
        _ => None,
    }
}

/// Tells the server that nobody reads this. One whose id is too long to be repeated hears nothing.
fn refuse_too_long(id: &RawValue, method: &str, bytes: usize, outlet: &Arc<dyn Outlet>) {
    tracing::debug!(bytes, "a request of a server that is too long");
    if id.get().len() > ID_BYTES_MAX {
        return;
    }
    let method: String = method.chars().take(METHOD_CHARS_SHOWN_MAX).collect();
    let text = format!(
        "{method} of {bytes} bytes is too long; at most {QUESTION_BYTES_MAX} bytes are read"
    );
    let error = RpcError::new(INVALID_REQUEST, text);
    outlet.reply(Outgoing::<Value>::response(id, Err(&error)).line());
}

pub(crate) fn withdrawn() -> RpcError {
    RpcError::new(INTERNAL, "the request this question belongs to is over")
}

/// One question that is open; however this ends, the server is told.
struct Asked {
    mux: Arc<Mux>,
    number: u64,
    id: Box<RawValue>,
    requests: Vec<Arc<Slot>>,
    withdrawn: CancellationToken,
    outlet: Arc<dyn Outlet>,
    is_answered: bool,
    _held: ReservedBytes,
}

impl Asked {
    fn open(
        mux: &Arc<Mux>,
        id: &RawValue,
        (requests, account): (Vec<Arc<Slot>>, Option<Arc<str>>),
        outlet: &Arc<dyn Outlet>,
        held: ReservedBytes,
    ) -> Result<Asked, RpcError> {
        let withdrawn = CancellationToken::new();
        let number = mux.questions.last.fetch_add(1, Ordering::Relaxed);
        {
            let mut open = mux.questions.lock();
            let accounts = open.iter().map(|open| open.account.as_deref());
            if let Some(full) = no_room(accounts, account.as_deref()) {
                return Err(RpcError::new(INTERNAL, full));
            }
            open.push(Open {
                number,
                id: id.get().to_owned(),
                account,
                requests: requests.clone(),
                withdrawn: withdrawn.clone(),
            });
            mux.questions.count.store(open.len(), Ordering::Release);
        }
        for request in &requests {
            request.asked();
        }
        // One of them may have ended before the question was open.
        mux.questions.look_again();
        Ok(Asked {
            mux: Arc::clone(mux),
            number,
            id: id.to_owned(),
            requests,
            withdrawn,
            outlet: Arc::clone(outlet),
            is_answered: false,
            _held: held,
        })
    }

    fn answer(mut self, answer: Option<Result<Box<RawValue>, RpcError>>) {
        let answer = answer.unwrap_or_else(|| Err(no_answer()));
        self.say(answer);
    }

    fn say(&mut self, answer: Result<Box<RawValue>, RpcError>) {
        self.is_answered = true;
        let answer = answer.as_deref();
        self.outlet
            .say(Outgoing::<RawValue>::response(&self.id, answer).line());
    }
}

pub(crate) fn no_answer() -> RpcError {
    RpcError::new(INTERNAL, "the client gave no answer")
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.is_answered {
            self.say(Err(no_answer()));
        }
        {
            let mut open = self.mux.questions.lock();
            open.retain(|open| open.number != self.number);
            self.mux
                .questions
                .count
                .store(open.len(), Ordering::Release);
        }
        for request in &self.requests {
            request.told();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s02_questions_for_one_caller_leave_room_for_those_for_others() {
        let mut open = vec![Some("@greedy"); OPEN_PER_CALLER_MAX];
        let full = |open: &[Option<&'static str>], account| no_room(open.iter().copied(), account);
        let text = full(&open, Some("@greedy")).expect("its share is taken");
        assert!(text.starts_with("greedy has 32 open questions"), "{text}");
        assert_eq!(full(&open, Some("@other")), None);
        // Where callers are not told apart, there is one limit.
        assert_eq!(full(&open, None), None);
        open.extend(vec![None; OPEN_MAX - OPEN_PER_CALLER_MAX]);
        assert!(full(&open, Some("@other")).is_some() && full(&open, None).is_some());
    }
}
