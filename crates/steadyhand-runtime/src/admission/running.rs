//! The calls that run now: listed, counted, cancelled, waited for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadyhand::{Call, CallProgress, Permission};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::limits::Limits;
use super::not_admitted::{NotAdmitted, NotAdmittedReason};
use steadyhand_config::role::owner_of;

/// All calls that run now, over every way in.
#[derive(Default)]
pub struct Running {
    table: Mutex<Table>,
    emptied: Notify,
}

#[derive(Default)]
struct Table {
    last: u64,
    // By number, not by id: two calls may share an id.
    calls: HashMap<u64, Arc<RunningCall>>,
    /// By who they are, not by what they say they are.
    by_caller: HashMap<Arc<str>, usize>,
    is_closed: bool,
}

impl Table {
    fn has_room(
        &self,
        count: usize,
        owner: &str,
        caller: &str,
        limits: &Limits,
    ) -> Result<(), NotAdmitted> {
        if self.is_closed {
            return Err(closed());
        }
        if self.calls.len() + count > limits.calls {
            return Err(busy(count, limits));
        }
        let of_caller = self.by_caller.get(owner).map_or(0, |count| *count);
        if of_caller + count <= limits.calls_per_caller {
            return Ok(());
        }
        Err(match limits.is_per_caller_said {
            true => too_many(owner_of(caller), of_caller, limits),
            false => busy(count, limits),
        })
    }
}

/// A call that runs now.
pub struct RunningCall {
    pub number: u64,
    pub id: String,
    pub tool: String,
    pub caller: Arc<str>,
    pub since: Instant,
    /// The same as people read it, in milliseconds since 1970.
    pub started_ms: u64,
    /// The caller's own, if it gave one.
    pub deadline: Option<Duration>,
    pub replay_of: Option<String>,
    progress: Arc<CallProgress>,
    token: CancellationToken,
}

impl RunningCall {
    /// How often its tool was started so far.
    pub fn attempts(&self) -> u32 {
        self.progress.attempts()
    }

    /// It waits for an approval: its tool was not started, and its deadline does not count yet.
    pub fn waits_for_approval(&self) -> bool {
        self.progress.waits_for_approval()
    }

    /// How long it has waited for an approval.
    pub fn approval_time(&self) -> Duration {
        self.progress.approval_time()
    }

    /// How much of the time it may take has passed.
    pub fn running_time(&self) -> Duration {
        self.since.elapsed().saturating_sub(self.approval_time())
    }
}

/// A place among the running calls, given back when this goes.
pub struct Place {
    running: Arc<Running>,
    number: u64,
    owner: Arc<str>,
}

impl Running {
    /// Puts a call on the list, and a way to cancel it into the call. NotAdmitted when there are too many.
    pub fn enter(
        self: &Arc<Running>,
        call: &mut Call,
        caller: &Arc<str>,
        limits: &Limits,
    ) -> Result<Place, NotAdmitted> {
        let mut table = self.table();
        table.has_room(1, owner(call, caller), caller, limits)?;
        Ok(self.place(&mut table, call, caller))
    }

    /// The same for many of one caller: there is room for all of them, or none gets in.
    pub fn enter_all(
        self: &Arc<Running>,
        calls: &mut [Call],
        caller: &Arc<str>,
        limits: &Limits,
    ) -> Result<Vec<Place>, NotAdmitted> {
        let Some(first) = calls.first() else {
            return Ok(Vec::new());
        };
        let mut table = self.table();
        table.has_room(calls.len(), owner(first, caller), caller, limits)?;
        let places = calls
            .iter_mut()
            .map(|call| self.place(&mut table, call, caller));
        Ok(places.collect())
    }

    /// From here on nobody gets in.
    pub fn close(&self) {
        self.table().is_closed = true;
    }

    fn place(self: &Arc<Running>, table: &mut Table, call: &mut Call, caller: &Arc<str>) -> Place {
        let token = CancellationToken::new();
        call.cancellation = Some(token.clone());
        let progress: Arc<CallProgress> = Arc::default();
        call.progress = Some(Arc::clone(&progress));
        table.last += 1;
        let number = table.last;
        let running = RunningCall {
            number,
            id: call.id.clone(),
            tool: call.name.clone(),
            caller: Arc::clone(caller),
            since: Instant::now(),
            started_ms: steadyhand::clock::wall_ms(),
            deadline: call.deadline,
            replay_of: call.replay_of.clone(),
            progress,
            token,
        };
        table.calls.insert(number, Arc::new(running));
        let owner = owner(call, caller);
        let known = table.by_caller.get_key_value(owner);
        let owner = known.map_or_else(|| owner.into(), |(owner, _)| Arc::clone(owner));
        *table.by_caller.entry(Arc::clone(&owner)).or_default() += 1;
        Place {
            running: Arc::clone(self),
            number,
            owner,
        }
    }

    /// The oldest first.
    pub fn list(&self) -> Vec<Arc<RunningCall>> {
        let table = self.table();
        let mut calls: Vec<(u64, Arc<RunningCall>)> = table
            .calls
            .iter()
            .map(|(number, call)| (*number, Arc::clone(call)))
            .collect();
        drop(table);
        calls.sort_unstable_by_key(|(number, _)| *number);
        calls.into_iter().map(|(_, call)| call).collect()
    }

    /// The oldest with this id that is meant.
    pub fn find(
        &self,
        id: &str,
        is_meant: impl Fn(&RunningCall) -> bool,
    ) -> Option<Arc<RunningCall>> {
        let table = self.table();
        let of_id = table.calls.values();
        let of_id = of_id.filter(|call| call.id == id && is_meant(call));
        of_id.min_by_key(|call| call.since).map(Arc::clone)
    }

    pub fn count(&self) -> usize {
        self.table().calls.len()
    }

    /// Ends every call with this id that is meant. Says how many.
    pub fn cancel(&self, id: &str, is_meant: impl Fn(&RunningCall) -> bool) -> usize {
        self.cancel_where(|call| call.id == id && is_meant(call))
    }

    /// Ends every call that waits for an approval. Says how many.
    pub fn cancel_waiting(&self) -> usize {
        self.cancel_where(RunningCall::waits_for_approval)
    }

    pub fn cancel_all(&self) -> usize {
        self.cancel_where(|_| true)
    }

    /// Waits until no call runs.
    pub async fn until_none(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.count() == 0 {
                return;
            }
            emptied.await;
        }
    }

    fn cancel_where(&self, is_meant: impl Fn(&RunningCall) -> bool) -> usize {
        let table = self.table();
        let meant: Vec<CancellationToken> = table
            .calls
            .values()
            .filter(|call| is_meant(call))
            .map(|call| call.token.clone())
            .collect();
        // Cancelling wakes tasks, which want the table.
        drop(table);
        meant.iter().for_each(CancellationToken::cancel);
        meant.len()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.running.table();
        table.calls.remove(&self.number);
        if let Some(count) = table.by_caller.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                table.by_caller.remove(&self.owner);
            }
        }
        let is_empty = table.calls.is_empty();
        drop(table);
        if is_empty {
            self.running.emptied.notify_waiters();
        }
    }
}

/// Whose share a call is in: who it has proved to be, where anybody was asked.
fn owner<'a>(call: &'a Call, caller: &'a str) -> &'a str {
    let owner = call.permit.as_ref().and_then(Permission::owner);
    owner.unwrap_or_else(|| owner_of(caller))
}

fn closed() -> NotAdmitted {
    NotAdmitted::new(
        NotAdmittedReason::ShuttingDown,
        "the server is about to end and takes no more calls",
        "Call again when it is back; nothing was run",
    )
}

fn busy(count: usize, limits: &Limits) -> NotAdmitted {
    NotAdmitted::new(
        NotAdmittedReason::Busy,
        format!(
            "there is no room for {count} more: at most {} calls run at the same time",
            match limits.is_per_caller_said {
                true => limits.calls,
                false => limits.calls_per_caller,
            }
        ),
        "Try again in a moment, or raise limits = { calls = … } under [server]; nothing was run",
    )
}

fn too_many(caller: &str, running: usize, limits: &Limits) -> NotAdmitted {
    NotAdmitted::new(
        NotAdmittedReason::CallerBusy,
        format!(
            "{} has {running} calls running, and one caller may have {}",
            caller.trim_start_matches('@'),
            limits.calls_per_caller
        ),
        "Wait for one to end, or raise limits = { per_caller = … } under [server]; nothing was run",
    )
}
