//! All processes of a group, and how they are stopped.
//!
//! The leader is not reaped before the rest is gone: as long as it is a zombie, its number cannot be
//! given to someone else, and a signal to its group can hit nobody but the group.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use process_wrap::tokio::ChildWrapper;
use rustix::process::{Signal, kill_process_group};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use crate::ending::exit_of;
use crate::guard::Guarded;
use crate::run::{self, Run};
use crate::stragglers;

/// How long KILL may take to work; longer only in a broken kernel or on a dead network disk.
const KILL_WAIT: Duration = Duration::from_secs(3);
/// Without a runtime nobody can wait: so often we look for what was forked meanwhile.
const KILL_ROUNDS: usize = 5;

/// Waits until every program that is being stopped now is gone, or the time is up. Call it before the
/// process ends: programs that are still there then get KILL with no more time to tidy up.
pub async fn settle(limit: Duration) {
    let mut stopping = STOPPING.subscribe();
    let now = stopping.borrow().clone();
    let gone = stopping.wait_for(|stopping| stopping.is_disjoint(&now));
    let _ = timeout(limit, gone).await;
}

/// Dropping them kills them at once.
#[derive(Debug)]
pub(crate) struct Members {
    child: Box<dyn ChildWrapper>,
    run: Arc<Run>,
    guarded: Option<Guarded>,
    over: bool,
}

impl Members {
    pub(crate) fn new(child: Box<dyn ChildWrapper>, run: Arc<Run>, guarded: Guarded) -> Members {
        Members {
            child,
            run,
            guarded: Some(guarded),
            over: false,
        }
    }

    /// From now on `settle` waits for them.
    pub(crate) fn announce_stop(&self) {
        self.run.set_stopping();
        STOPPING.send_modify(|stopping| {
            stopping.insert(self.run.mark.number);
        });
    }

    pub(crate) async fn stop(mut self, own_accord: Duration, grace: Duration) {
        // Most programs leave nothing behind.
        if !self.gone_within(own_accord, &[]).await {
            // A stopped program takes no notice of TERM before CONT.
            self.sweep(&[Signal::TERM, Signal::CONT]).await;
            if !self.gone_within(grace, &[]).await {
                tracing::debug!(leader = ?self.run.leader, "still there after TERM: KILL");
            }
        }
        // To the group in any case: elsewhere than on Linux nobody knows who is left in it.
        if !self.gone_within(KILL_WAIT, &[Signal::KILL]).await {
            tracing::warn!(leader = ?self.run.leader, "a program is still there after KILL");
        }
        self.over = true;
        self.reap().await;
    }

    /// They go on without us.
    pub(crate) fn leave(mut self) {
        self.over = true;
        // At once: our own end may be near.
        self.guarded = None;
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            if run::adopts() {
                // Or another run would take them for its own.
                let run = Arc::clone(&self.run);
                let _ = spawn_blocking(move || stragglers::keep(&run)).await;
            }
            self.reap().await;
        });
    }

    /// Whether all are gone in time; whoever is not gets `signals` each time we look.
    async fn gone_within(&self, limit: Duration, signals: &'static [Signal]) -> bool {
        let until = Instant::now() + limit;
        let mut pause = Duration::from_millis(5);
        loop {
            if self.sweep(signals).await {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }

    /// [`sweep`] on a thread that may wait for the disk.
    async fn sweep(&self, signals: &'static [Signal]) -> bool {
        let run = Arc::clone(&self.run);
        let swept = spawn_blocking(move || sweep(&run, signals));
        swept.await.unwrap_or(false)
    }

    /// Takes the ended leader from the process table, and what else of the run is ours: as process 1 of a
    /// container, or where we adopt orphans.
    async fn reap(&mut self) {
        self.forget();
        let _ = timeout(KILL_WAIT, self.child.inner_mut().wait()).await;
        let _ = self.child.try_wait();
        stragglers::reap(&self.run);
    }

    /// Nobody looks for them any more: from now on their numbers may be given to others.
    fn forget(&mut self) {
        self.guarded = None;
        self.run.end();
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        if !self.over {
            let all_gone = || sweep(&self.run, &[Signal::KILL]);
            let _ = (0..KILL_ROUNDS).any(|_| all_gone());
            self.forget();
            let _ = self.child.inner_mut().try_wait();
        }
        self.forget();
        STOPPING.send_modify(|stopping| {
            stopping.remove(&self.run.mark.number);
        });
    }
}

/// Sends signals to the group, each in one step, and to those who have left it. Whether all were gone.
fn sweep(run: &Run, signals: &[Signal]) -> bool {
    // First: the signal cuts the tie between a parent and the child that left the group.
    let found = stragglers::find(run);
    for signal in signals {
        let _ = kill_process_group(run.leader, *signal);
        let outside = found.living.iter().filter(|one| one.is_outside(run));
        outside.for_each(|straggler| straggler.signal(*signal));
    }
    found.all && found.living.is_empty() && !matches!(exit_of(run.leader), Ok(None))
}

/// The numbers of all runs that are being stopped, in the whole process.
static STOPPING: LazyLock<watch::Sender<HashSet<u64>>> = LazyLock::new(watch::Sender::default);
