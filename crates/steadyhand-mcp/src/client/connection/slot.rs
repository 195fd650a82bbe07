//! A request that waits: where its answer is put, who is told how far it is, and on whose behalf it was made.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::http::TransportError;
use steadyhand::{BudgetExceeded, ByteBudget, RepeatedName, ReservedBytes};

use crate::client::memory::HeldJson;
use crate::client::relay::Counterpart;
use crate::wire::{Members, RpcError};

/// Reports of progress that wait to be read, of one request: so many, and so many bytes. Then the oldest are dropped.
const PROGRESS_MAX: usize = 32;
const PROGRESS_BYTES_MAX: usize = 128 * 1024;
/// A report that is longer is not told.
const REPORT_BYTES_MAX: usize = 64 * 1024;

/// What a request was answered with.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The result, raw.
    Result(HeldJson),
    /// The server's error.
    Error(RpcError),
    /// It was so many bytes long that it was thrown away.
    TooLarge(usize),
    /// There was no memory left for it, so that it was thrown away.
    NoMemory(BudgetExceeded),
    /// Nobody may read it: two readers could read it in two ways, or it is too large to find out.
    Unreadable(RepeatedName),
    /// The connection ended first.
    Lost(Lost),
    /// Something came that is no answer, or nothing.
    TransportError(TransportError),
    /// The server wants to know something first that nobody can tell it; why.
    Unanswered(String),
}

/// The connection ended before the answer came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Why.
    pub(crate) reason: String,
    /// Whether the server can have seen the request.
    pub(crate) was_sent: bool,
}

/// How far a server is with a request.
#[derive(Debug, Deserialize)]
pub(crate) struct Progress {
    #[serde(default)]
    pub(crate) progress: f64,
    #[serde(default)]
    pub(crate) total: Option<f64>,
    #[serde(default)]
    pub(crate) message: Option<String>,
    /// As the server wrote it, without its token, which is ours.
    #[serde(skip)]
    pub(crate) raw: Box<RawValue>,
}

impl State {
    fn next_progress(&mut self) -> Option<Progress> {
        let progress = self.progress.pop_front()?;
        if let Some(held) = &mut self.progress_held {
            held.shrink_to(held.bytes() - progress.bytes());
        }
        Some(progress)
    }

    fn add_progress(&mut self, progress: Progress, memory: &ByteBudget) {
        let bytes = progress.bytes();
        let is_full = |state: &State| {
            let held = state.progress_held.as_ref().map_or(0, ReservedBytes::bytes);
            state.progress.len() >= PROGRESS_MAX || held + bytes > PROGRESS_BYTES_MAX
        };
        while is_full(self) && self.next_progress().is_some() {}
        let held = self.progress_held.get_or_insert_with(|| memory.nothing());
        match held.grow(bytes) {
            Ok(()) => self.progress.push_back(progress),
            Err(exceeded) => tracing::debug!(%exceeded, "progress is not told"),
        }
    }
}

impl Progress {
    /// What it takes.
    fn bytes(&self) -> usize {
        self.raw.get().len() + self.message.as_ref().map_or(0, String::len)
    }

    /// That something has begun, without a word.
    pub(crate) fn silent() -> Progress {
        Progress {
            progress: 0.0,
            total: None,
            message: None,
            raw: RawValue::NULL.to_owned(),
        }
    }

    pub(crate) fn read(params: &RawValue) -> Option<Progress> {
        let mut progress: Progress = steadyhand::typed_json::from_str(params.get()).ok()?;
        progress.raw = Members::of(params)?.without("progressToken").to_raw();
        Some(progress)
    }
}

/// What a waiting request hears next.
#[derive(Debug)]
pub(crate) enum Heard {
    /// How far it is.
    Progress(Progress),
    /// The server wants to know something first: [`Slot::is_asked`] from now on, for a while.
    Asked,
    /// The end.
    Answer(Answer),
}

/// On whose behalf a request is made.
#[derive(Clone)]
pub(crate) enum Whose {
    /// Our own: the handshake, lists, pings.
    Ours,
    /// Our own, and it stays open: nobody waits for its end.
    Standing,
    /// Of someone who cannot be asked anything.
    Nobodys,
    /// Of a client.
    Clients(Arc<dyn Counterpart>),
}

impl fmt::Debug for Whose {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Whose::Ours => "Ours",
            Whose::Standing => "Standing",
            Whose::Nobodys => "Nobodys",
            Whose::Clients(_) => "Clients",
        })
    }
}

pub(crate) struct Slot {
    state: Mutex<State>,
    pub(crate) sent: Arc<AtomicBool>,
    pub(crate) whose: Whose,
}

#[derive(Default)]
struct State {
    answer: Option<Answer>,
    /// What is not read yet: who is far too slow misses the oldest.
    progress: VecDeque<Progress>,
    /// The memory of that.
    progress_held: Option<ReservedBytes>,
    waker: Option<Waker>,
    /// Questions of the server that are open.
    questions: usize,
    is_newly_asked: bool,
    is_over: bool,
    /// Something came that may have been meant as its answer, and the answer itself is waited for.
    is_in_grace: bool,
}

impl Slot {
    pub(crate) fn new(whose: Whose) -> Slot {
        Slot {
            state: Mutex::default(),
            sent: Arc::new(AtomicBool::new(false)),
            whose,
        }
    }

    /// What is next, if there is anything; else the task is woken.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<Heard> {
        let mut state = self.lock();
        if let Some(progress) = state.next_progress() {
            return Poll::Ready(Heard::Progress(progress));
        }
        if let Some(answer) = state.answer.take() {
            return Poll::Ready(Heard::Answer(answer));
        }
        if std::mem::take(&mut state.is_newly_asked) {
            return Poll::Ready(Heard::Asked);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Nobody is woken any more, until it is polled again.
    pub(crate) fn unregister(&self) {
        self.lock().waker = None;
    }

    /// The answer of a request whose exchange is over.
    pub(crate) async fn taken(&self) -> Answer {
        loop {
            if let Heard::Answer(answer) = poll_fn(|cx| self.poll(cx)).await {
                return answer;
            }
        }
    }

    pub(crate) fn lost(&self, reason: &str) {
        self.answer(Answer::Lost(Lost {
            reason: reason.to_owned(),
            was_sent: self.sent.load(Ordering::Acquire),
        }));
    }

    pub(crate) fn answer(&self, answer: Answer) {
        self.change(|state| {
            state.answer = Some(answer);
            state.is_over = true;
        });
    }

    /// How far it is. Of what nobody reads the oldest is dropped; what is too long, or finds no memory, is not told.
    pub(crate) fn progress(&self, progress: Progress, memory: &ByteBudget) {
        if progress.bytes() > REPORT_BYTES_MAX {
            tracing::debug!(
                bytes = progress.bytes(),
                "progress that is too long is not told"
            );
            return;
        }
        self.change(|state| state.add_progress(progress, memory));
    }

    /// Whether the answer itself is to be waited for now: once.
    pub(crate) fn begins_grace(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_in_grace, true)
    }

    /// The server has asked something that someone has to think about.
    pub(crate) fn asked(&self) {
        self.change(|state| {
            state.questions += 1;
            state.is_newly_asked = true;
        });
    }

    /// Someone has thought about it.
    pub(crate) fn told(&self) {
        let mut state = self.lock();
        state.questions = state.questions.saturating_sub(1);
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.lock().questions > 0
    }

    pub(crate) fn was_sent(&self) -> bool {
        self.sent.load(Ordering::Acquire)
    }

    /// Nobody waits for the answer any more.
    pub(crate) fn given_up(&self) {
        self.lock().is_over = true;
    }

    pub(crate) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
