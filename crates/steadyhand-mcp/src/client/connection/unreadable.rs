//! Answers that cannot be read, brought to the call they belong to (SPEC V12): as soon as that is known, and not after
//! its time limit.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde::de::IgnoredAny;
use tokio::time::sleep;

use crate::client::connection::mux::Mux;
use crate::client::connection::slot::Answer;
use crate::client::http::{Kind, TransportError};
use crate::wire::UnreadableAnswer;

/// How long the answer itself is waited for after something that may only be a line of a log about it.
const GRACE: Duration = Duration::from_secs(1);
/// Answers that may belong to several requests; the oldest are forgotten.
const UNATTRIBUTED_MAX: usize = 16;
/// JSON-RPC's codes of a server that could not read a request: it does not know the request's id then.
const NOT_READ: [i64; 2] = [-32700, -32600];

/// Answers that may belong to several requests.
#[derive(Default)]
pub(crate) struct Unattributed(Mutex<Vec<Pending>>);

struct Pending {
    candidates: Vec<u64>,
    answer: TransportError,
    is_certain: bool,
}

impl Mux {
    /// A line or an event that is no message. If it was meant as an answer, the request it answers fails with its
    /// content. `of` is the request whose own stream it came on, where there are such.
    pub(crate) fn unreadable(self: &Arc<Self>, line: &[u8], of: Option<u64>) {
        let Some(UnreadableAnswer { id, is_certain }) = UnreadableAnswer::look(line) else {
            return;
        };
        let fault = match serde_json::from_slice::<IgnoredAny>(line) {
            Ok(_) => "that is not JSON-RPC 2.0".to_owned(),
            Err(error) => {
                let fault = steadyhand::plain_words::json(&error);
                format!("that is not valid JSON ({fault})")
            }
        };
        let content = self.desk.record.quoted(line);
        let answer =
            TransportError::new(Kind::NotMcp, format!("sent an answer {fault}: {content}"));
        // On a stream of its own, the answer may still come.
        let is_certain = is_certain && (of.is_none() || of == id);
        match of.or(id) {
            Some(id) => self.fail_unread(id, answer, is_certain),
            None => self.attribute(answer, is_certain),
        }
    }

    /// An answer that does not say what it answers.
    pub(crate) fn without_id(self: &Arc<Self>, answer: Answer) {
        let open = self.open_requests();
        match (answer, &open[..]) {
            (Answer::Error(error), [id]) if NOT_READ.contains(&error.code) => {
                self.answer_id(*id, Answer::Error(error));
            }
            (Answer::Result(result), [_, ..]) => {
                let content = self.desk.record.quoted(result.get().as_bytes());
                let text = format!("sent an answer without the id of a request: {content}");
                self.attribute(TransportError::new(Kind::NotMcp, text), false);
            }
            (Answer::Error(error), [_, ..]) => {
                let content = self.desk.record.quoted(error.message.as_bytes());
                let text = format!("sent an error without the id of a request: {content}");
                self.attribute(TransportError::new(Kind::NotMcp, text), false);
            }
            _ => tracing::debug!("an answer without an id"),
        }
    }

    /// An answer to a request that was never sent: it is meant for one that was.
    pub(crate) fn with_wrong_id(self: &Arc<Self>, id: u64, answer: Answer) {
        let content = match &answer {
            Answer::Result(result) => result.get(),
            Answer::Error(error) => &error.message,
            _ => "",
        };
        let content = self.desk.record.quoted(content.as_bytes());
        let text = format!("sent an answer with the id {id}, which no request has: {content}");
        self.attribute(TransportError::new(Kind::NotMcp, text), false);
    }

    /// A request was answered as it should be: what could not be read was for another one.
    pub(crate) fn attribute_after(self: &Arc<Self>, answered: u64) {
        for pending in self.unattributed().take_certain(answered) {
            if let [id] = pending.candidates[..] {
                self.fail_unread(id, pending.answer, pending.is_certain);
            }
        }
    }

    fn attribute(self: &Arc<Self>, answer: TransportError, is_certain: bool) {
        match self.open_requests()[..] {
            [] => {}
            [id] => self.fail_unread(id, answer, is_certain),
            ref candidates => self.unattributed().add(Pending {
                candidates: candidates.to_vec(),
                answer,
                is_certain,
            }),
        }
    }

    fn fail_unread(self: &Arc<Self>, id: u64, answer: TransportError, is_certain: bool) {
        if is_certain {
            return self.fail(id, answer);
        }
        // Once for each request: a server that logs a million such lines gets no million tasks.
        if self.waiting_for(id).is_some_and(|slot| slot.begins_grace()) {
            let mux = Arc::clone(self);
            tokio::spawn(async move {
                sleep(GRACE).await;
                mux.fail(id, answer);
            });
        }
    }
}

impl Unattributed {
    fn add(&self, pending: Pending) {
        let mut all = self.lock();
        if all.len() >= UNATTRIBUTED_MAX {
            all.remove(0);
        }
        all.push(pending);
    }

    /// Those that are known to belong to one request, now that this one has its answer.
    fn take_certain(&self, answered: u64) -> Vec<Pending> {
        let mut all = self.lock();
        for pending in all.iter_mut() {
            pending.candidates.retain(|id| *id != answered);
        }
        all.extract_if(.., |pending| pending.candidates.len() < 2)
            .collect()
    }

    /// A request that nobody waits for any more: whether it was the one that was answered stays open.
    pub(crate) fn forget(&self, id: u64) {
        self.lock()
            .retain(|pending| !pending.candidates.contains(&id));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Pending>> {
        self.0.lock()
    }
}
