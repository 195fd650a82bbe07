//! Where calls wait for a yes, and where it is said.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use steadyhand::{Asked, clock, cut, redact};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::approval::{Approval, ApprovalState, CannotDecide, Decision, Foreign};
use super::{fingerprint, hidden};
use steadyhand_config::role::owner_of;

/// How long a call waits if nobody says.
const WAIT: Duration = Duration::from_secs(5 * 60);
/// Calls that wait for a yes at the same time, over all callers.
const WAITING_MAX: usize = 1_024;
/// Calls of one caller that wait for a yes at the same time: nobody decides more.
const WAITING_PER_CALLER_MAX: usize = 256;
/// Decided ones that are still listed.
const DECIDED_MAX: usize = 200;
/// Yeses that are remembered within conversations, and for how long.
const REMEMBERED_MAX: usize = 10_000;
const REMEMBERED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// What a person is shown of arguments.
const SHOWN_BYTES_MAX: usize = 16 * 1024;
const REASON_CHARS_MAX: usize = 500;

/// Where calls wait. Cheap to clone: clones are the same desk.
#[derive(Clone)]
pub struct Desk {
    inner: Arc<Inner>,
}

struct Inner {
    /// Somebody looks at it who did not ask.
    is_listed: bool,
    state: Mutex<State>,
    told: Mutex<Vec<Told>>,
    before_start: Mutex<Option<BeforeStart>>,
}

/// Waited for after a yes, before the tool is started.
type BeforeStart = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

type Told = Box<dyn Fn(&Approval) + Send + Sync>;

struct State {
    wait: Duration,
    /// Whoever sits at the client that makes a call may say yes to it there.
    by_caller: bool,
    last: u64,
    waiting: BTreeMap<u64, Waiting>,
    decided: VecDeque<Approval>,
    remembered: HashMap<Remembered, Instant>,
}

/// Whose, in which conversation, and what.
type Remembered = (String, String, String);

struct Waiting {
    approval: Approval,
    /// Whose share of all that wait it is in.
    owner: String,
    since: Instant,
    answer: oneshot::Sender<Said>,
}

/// What the one who waits hears.
pub(super) enum Said {
    Yes { by: String },
    No { by: String, reason: Option<String> },
}

impl Default for Desk {
    fn default() -> Desk {
        Desk::new(true)
    }
}

impl Desk {
    fn new(is_listed: bool) -> Desk {
        Desk {
            inner: Arc::new(Inner {
                is_listed,
                state: Mutex::new(State {
                    wait: WAIT,
                    by_caller: false,
                    last: 0,
                    waiting: BTreeMap::new(),
                    decided: VecDeque::new(),
                    remembered: HashMap::new(),
                }),
                told: Mutex::default(),
                before_start: Mutex::new(None),
            }),
        }
    }

    /// One that nobody looks at: whoever asks is the only one who can be asked.
    pub fn unlisted() -> Desk {
        Desk::new(false)
    }

    pub(super) fn is_listed(&self) -> bool {
        self.inner.is_listed
    }

    /// How long calls that come from here on wait.
    pub fn set_wait(&self, wait: Option<Duration>) {
        self.state().wait = wait.unwrap_or(WAIT);
    }

    /// Whether a client is asked about its own calls from here on.
    pub fn set_by_caller(&self, by_caller: bool) {
        self.state().by_caller = by_caller;
    }

    pub(super) fn may_ask_caller(&self) -> bool {
        self.state().by_caller
    }

    /// Told of everything that becomes of an approval, beside those who are told already. It must not look at the desk.
    pub fn tell(&self, told: impl Fn(&Approval) + Send + Sync + 'static) {
        let mut place = self
            .inner
            .told
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        place.push(Box::new(told));
    }

    /// Waited for after every yes, before the tool is started: what was decided is written down first, so that after a
    /// crash the history knows which calls were never started. It must end by itself.
    pub fn before_start(&self, wait: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static) {
        let mut place = self
            .inner
            .before_start
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *place = Some(Arc::new(wait));
    }

    pub(super) async fn until_written_down(&self) {
        let wait = {
            let place = self.inner.before_start.lock();
            place.unwrap_or_else(PoisonError::into_inner).clone()
        };
        if let Some(wait) = wait {
            wait().await;
        }
    }

    /// Those that wait, the oldest first, then those that were decided, the newest first.
    pub fn list(&self) -> Vec<Approval> {
        let state = self.state();
        let waiting = state
            .waiting
            .values()
            .map(|waiting| waiting.approval.clone());
        waiting.chain(state.decided.iter().rev().cloned()).collect()
    }

    /// The tools of those that wait, and since when.
    pub fn waiting(&self) -> Vec<(String, Instant)> {
        let state = self.state();
        let waiting = state.waiting.values();
        waiting
            .map(|one| (one.approval.tool.clone(), one.since))
            .collect()
    }

    /// Says yes or no to one call.
    pub fn decide(&self, id: &str, decision: Decision) -> Result<Approval, CannotDecide> {
        let mut state = self.state();
        let number = id.strip_prefix("ap").and_then(|number| number.parse().ok());
        let Some(waiting) = number.and_then(|number| state.waiting.get(&number)) else {
            let decided = state.decided.iter().find(|approval| approval.id == id);
            return Err(match decided {
                Some(decided) => CannotDecide::IsOver {
                    id: id.to_owned(),
                    state: decided.state.word(),
                },
                None => CannotDecide::NoSuchApproval(id.to_owned()),
            });
        };
        if waiting.approval.arguments_hash != decision.arguments_hash {
            return Err(CannotDecide::OtherArguments(id.to_owned()));
        }
        let owner = waiting.approval.caller.as_deref().map(owner_of);
        if decision.is_yes && decision.not_of.is_some() && decision.not_of.as_deref() == owner {
            return Err(CannotDecide::OwnCall(id.to_owned()));
        }
        if decision.is_yes && !decision.unseen && !waiting.approval.hidden.is_empty() {
            return Err(CannotDecide::Unseen {
                id: id.to_owned(),
                hidden: waiting.approval.hidden.clone(),
            });
        }
        let Some(waiting) = number.and_then(|number| state.waiting.remove(&number)) else {
            return Err(CannotDecide::NoSuchApproval(id.to_owned()));
        };
        let mut approval = waiting.approval;
        let reason = decision
            .reason
            .map(|reason| reason.chars().take(REASON_CHARS_MAX).collect());
        let said = match decision.is_yes {
            true => Said::Yes {
                by: decision.by.clone(),
            },
            false => Said::No {
                by: decision.by.clone(),
                reason: Option::clone(&reason),
            },
        };
        if waiting.answer.is_closed() {
            // Whoever asked is gone, and only nobody has noticed yet.
            approval.state = ApprovalState::Withdrawn;
            state.decided(approval);
            return Err(CannotDecide::IsOver {
                id: id.to_owned(),
                state: ApprovalState::Withdrawn.word(),
            });
        }
        approval.state = match decision.is_yes {
            true => ApprovalState::Approved,
            false => ApprovalState::Denied,
        };
        approval.decided_by = Some(decision.by);
        approval.decided_from = Some(decision.from);
        approval.reason = reason;
        let approval = state.decided(approval);
        // Told before the one who waits hears it: the record of a yes stands in its queue before the tool may start.
        self.publish(&approval);
        // Whoever asked may have gone in this very moment: then nothing runs.
        let _ = waiting.answer.send(said);
        drop(state);
        Ok(approval)
    }

    /// Whether the same was allowed in the same conversation before.
    pub(super) fn remembers(&self, asked: &Asked<'_>) -> bool {
        let Some(key) = remembered(asked) else {
            return false;
        };
        let now = Instant::now();
        self.state()
            .remembered
            .get(&key)
            .is_some_and(|until| now < *until)
    }

    pub(super) fn remember(&self, asked: &Asked<'_>) {
        let Some(key) = remembered(asked) else {
            return;
        };
        let now = Instant::now();
        let mut state = self.state();
        if state.remembered.len() >= REMEMBERED_MAX {
            state.remembered.retain(|_, until| now < *until);
        }
        if state.remembered.len() < REMEMBERED_MAX {
            state.remembered.insert(key, now + REMEMBERED_FOR);
        }
    }

    /// Puts a call on the desk. None if there is no room.
    pub(super) fn enter(&self, asked: &Asked<'_>, approval: &'static str) -> Option<Question> {
        let shown = redact::value(asked.args);
        let cut = cut::value(&shown, SHOWN_BYTES_MAX).into_owned();
        let caller = asked.caller.map(owner_of).unwrap_or_default();
        self.put(asked.owner.unwrap_or(caller), |id, asked_ms, wait| {
            Approval {
                id,
                state: ApprovalState::Waiting,
                tool: asked.tool_name.to_owned(),
                arguments_cut: cut != shown,
                hidden: hidden::parts(asked.args, &cut),
                arguments: cut,
                arguments_hash: fingerprint::of(asked.tool_name, asked.args),
                approval,
                call_id: asked.call_id.to_owned(),
                caller: asked.caller.map(str::to_owned),
                conversation: asked.conversation.map(str::to_owned),
                asked_ms,
                expires_ms: asked_ms + wait.as_millis() as u64,
                decided_ms: None,
                decided_by: None,
                decided_from: None,
                reason: None,
            }
        })
    }

    /// Puts a call of another process on the desk and waits until it is decided. None if there is no room.
    pub async fn decided_for(&self, foreign: Foreign, caller: String) -> Option<Approval> {
        let owner = owner_of(&caller).to_owned();
        let mut question = self.put(&owner, |id, asked_ms, wait| {
            let wait_ms = foreign.wait_ms.min(wait.as_millis() as u64);
            foreign.into_approval(id, caller, asked_ms, asked_ms + wait_ms)
        })?;
        let left_ms = question
            .approval
            .expires_ms
            .saturating_sub(clock::wall_ms());
        question.wait = Duration::from_millis(left_ms);
        let id = question.approval.id.clone();
        let _ = question.answered().await;
        let state = self.state();
        let mut decided = state.decided.iter().rev();
        decided.find(|approval| approval.id == id).cloned()
    }

    fn put(
        &self,
        owner: &str,
        approval: impl FnOnce(String, u64, Duration) -> Approval,
    ) -> Option<Question> {
        let mut state = self.state();
        let waiting = state.waiting.values();
        let own = waiting.filter(|waiting| waiting.owner == owner).count();
        if state.waiting.len() >= WAITING_MAX || own >= WAITING_PER_CALLER_MAX {
            return None;
        }
        state.last += 1;
        let (number, wait) = (state.last, state.wait);
        let approval = approval(format!("ap{number}"), clock::wall_ms(), wait);
        let (answer, heard) = oneshot::channel();
        let waiting = Waiting {
            approval: approval.clone(),
            owner: owner.to_owned(),
            since: Instant::now(),
            answer,
        };
        state.waiting.insert(number, waiting);
        drop(state);
        self.publish(&approval);
        Some(Question {
            desk: self.clone(),
            number,
            wait,
            approval,
            heard: Some(heard),
        })
    }

    /// It is not waited for any more. False where it was decided already.
    fn over(&self, number: u64, how: ApprovalState) -> bool {
        let mut state = self.state();
        let Some(waiting) = state.waiting.remove(&number) else {
            return false;
        };
        let mut approval = waiting.approval;
        approval.state = how;
        let approval = state.decided(approval);
        drop(state);
        self.publish(&approval);
        true
    }

    fn publish(&self, approval: &Approval) {
        let told = self
            .inner
            .told
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for told in &*told {
            told(approval);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn decided(&mut self, mut approval: Approval) -> Approval {
        approval.decided_ms = Some(clock::wall_ms());
        if self.decided.len() == DECIDED_MAX {
            self.decided.pop_front();
        }
        self.decided.push_back(approval.clone());
        approval
    }
}

/// A call on the desk. Withdrawn when this goes before it was answered.
pub(super) struct Question {
    desk: Desk,
    number: u64,
    pub(super) wait: Duration,
    pub(super) approval: Approval,
    heard: Option<oneshot::Receiver<Said>>,
}

impl Question {
    /// What was said; none if nobody said anything in time.
    pub(super) async fn answered(mut self) -> Option<Said> {
        let heard = self.heard.as_mut()?;
        let said = tokio::time::timeout(self.wait, heard).await;
        match said {
            Ok(Ok(said)) => Some(said),
            Ok(Err(_)) | Err(_) => {
                if self.desk.over(self.number, ApprovalState::Expired) {
                    return None;
                }
                // Decided in the very moment in which it would have expired: what is on record is what counts.
                self.heard.as_mut()?.try_recv().ok()
            }
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.desk.over(self.number, ApprovalState::Withdrawn);
    }
}

fn remembered(asked: &Asked<'_>) -> Option<Remembered> {
    let conversation = asked.conversation?.to_owned();
    let caller = asked.caller.map(owner_of).unwrap_or_default();
    Some((
        asked.owner.unwrap_or(caller).to_owned(),
        conversation,
        fingerprint::of(asked.tool_name, asked.args),
    ))
}
