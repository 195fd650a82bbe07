//! Keeps the index of a collection as its folders are, without a restart.
//!
//! One task per collection scans the folders and indexes what changed: at the first query, when the
//! system tells of a change, and before a query when the last scan is more than a second old. So a
//! query sees every change made more than a second before it, whether or not the system tells of
//! changes. Where one scan takes longer than 50 ms, that second becomes twenty times its duration.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep, timeout_at};

use super::index::{Index, Trouble};
use super::scan::scan;
use super::shelf::Shelf;
use super::watch::Watching;
use steadyhand_config::progress::Progress;

/// How old the last scan may be when a query begins.
const SCAN_EVERY: Duration = Duration::from_secs(1);
/// Scanning takes a twentieth of the time at most.
const SCAN_SHARE: u32 = 20;
/// Changes come in bursts: an editor writes, renames and deletes to save one file.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// How long a query waits for changes to be indexed before it answers from what is there.
const PATIENCE: Duration = Duration::from_secs(2);
/// Left of a call's time for its answer, where a quarter of it is not less.
const MARGIN: Duration = Duration::from_millis(250);

/// What the keeper of an index has done so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Status {
    /// When the scan began that the index is up to.
    scanned: Option<Instant>,
    /// When the scan began that is going on.
    scanning: Option<Instant>,
    every: Duration,
    /// Files of a scan that are indexed, and those that have to be.
    pub(super) progress: Option<(u64, u64)>,
    /// What the scan could not do.
    pub(super) notes: Vec<String>,
    /// Why there is nothing to search.
    pub(super) failed: Option<String>,
}

impl Status {
    fn is_fresh_at(&self, moment: Instant) -> bool {
        self.scanned.is_some_and(|at| at + self.every >= moment)
    }

    fn will_be_fresh_at(&self, moment: Instant) -> bool {
        self.scanning.is_some_and(|at| at + SCAN_EVERY >= moment)
    }
}

/// How an index came to a query.
pub(super) enum Freshness {
    /// As the folders are.
    Fresh(Status),
    /// Changes are still being indexed.
    Behind(Status),
    /// Not once complete yet.
    NotReady(Status),
}

/// Starts the task that keeps an index fresh, when it is first needed.
pub(super) struct Keeper {
    shelf: Arc<Shelf>,
    index: PathBuf,
    generation: Arc<AtomicU64>,
    progress: Progress,
    task: Mutex<Option<Task>>,
}

impl Keeper {
    pub(super) fn new(
        shelf: Arc<Shelf>,
        index: PathBuf,
        generation: Arc<AtomicU64>,
        progress: Progress,
    ) -> Keeper {
        Keeper {
            shelf,
            index,
            generation,
            progress,
            task: Mutex::default(),
        }
    }

    /// Begins to index. Must be called on a runtime.
    pub(super) fn start(&self) {
        let _ = self.task();
    }

    /// The index is to be made anew before the next query.
    pub(super) fn doubt(&self) {
        let (doubted, ..) = self.task();
        doubted.store(true, Ordering::SeqCst);
    }

    /// Waits until the index is as the folders are now, within the call's time. `tell` hears how
    /// far it is.
    pub(super) async fn fresh(&self, until: Instant, mut tell: impl FnMut(u64, u64)) -> Freshness {
        let (doubted, wake, mut status) = self.task();
        let asked = Instant::now();
        let until = until - MARGIN.min(until.saturating_duration_since(asked) / 4);
        let mut patience = None;
        loop {
            let now = status.borrow_and_update().clone();
            let doubted = doubted.load(Ordering::SeqCst);
            if now.is_fresh_at(asked) && !doubted {
                return Freshness::Fresh(now);
            }
            if let Some((done, total)) = now.progress {
                tell(done, total);
            }
            let is_first = now.scanned.is_none();
            let limit = match is_first {
                true => until,
                false => *patience.get_or_insert(until.min(Instant::now() + PATIENCE)),
            };
            if !now.will_be_fresh_at(asked) || (doubted && now.scanning.is_none()) {
                wake.notify_one();
            }
            match timeout_at(limit, status.changed()).await {
                Ok(Ok(())) => {}
                // The time is over, or the task is gone with its runtime.
                Err(_) | Ok(Err(_)) if is_first => return Freshness::NotReady(now),
                Err(_) | Ok(Err(_)) => return Freshness::Behind(now),
            }
        }
    }

    /// The task, started where there is none or its runtime is gone.
    fn task(&self) -> (Arc<AtomicBool>, Arc<Notify>, watch::Receiver<Status>) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task
            .as_ref()
            .is_none_or(|task| task.status.has_changed().is_err())
        {
            *task = Some(Task::start(self));
        }
        let task = task.as_ref().expect("started above");
        (
            Arc::clone(&task.doubted),
            Arc::clone(&task.wake),
            task.status.clone(),
        )
    }
}

/// Ends its task when dropped.
struct Task {
    stop: Arc<AtomicBool>,
    doubted: Arc<AtomicBool>,
    wake: Arc<Notify>,
    status: watch::Receiver<Status>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake.notify_one();
    }
}

impl Task {
    fn start(keeper: &Keeper) -> Task {
        let (sender, status) = watch::channel(Status::default());
        let work = Work {
            shelf: Arc::clone(&keeper.shelf),
            path: keeper.index.clone(),
            generation: Arc::clone(&keeper.generation),
            doubted: Arc::default(),
            stop: Arc::default(),
            status: Arc::new(sender),
            progress: keeper.progress.clone(),
        };
        let task = Task {
            stop: Arc::clone(&work.stop),
            doubted: Arc::clone(&work.doubted),
            wake: Arc::default(),
            status,
        };
        let wake = Arc::clone(&task.wake);
        tokio::spawn(work.go_on(wake));
        task
    }
}

/// What the task works with; cheap to clone.
#[derive(Clone)]
struct Work {
    shelf: Arc<Shelf>,
    path: PathBuf,
    generation: Arc<AtomicU64>,
    doubted: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    status: Arc<watch::Sender<Status>>,
    progress: Progress,
}

/// A runtime that shuts down drops the task; its thread is not to go on for minutes then.
struct StopsWhenDropped(Arc<AtomicBool>);

impl Drop for StopsWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Work {
    async fn go_on(self, wake: Arc<Notify>) {
        let _stops = StopsWhenDropped(Arc::clone(&self.stop));
        let (changed, mut changes) = mpsc::channel(1);
        let mut hands = Hands {
            index: None,
            watching: self.shelf.watch.then(|| Watching::new(changed.clone())),
        };
        loop {
            hands = self.round(hands).await;
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            tokio::select! {
                () = wake.notified() => {}
                Some(()) = changes.recv() => {
                    tokio::select! {
                        () = wake.notified() => {}
                        () = sleep(DEBOUNCE) => {}
                    }
                    let _ = changes.try_recv();
                }
            }
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    /// One scan, and the indexing of what it found.
    async fn round(&self, mut hands: Hands) -> Hands {
        let began = Instant::now();
        self.status
            .send_modify(|status| status.scanning = Some(began));
        let work = self.clone();
        let job = tokio::task::spawn_blocking(move || {
            let synced = work.sync(&mut hands);
            if let (Ok(synced), Some(watching)) = (&synced, &mut hands.watching) {
                watching.watch(synced.folders.clone());
            }
            (hands, synced)
        });
        let (hands, synced) = job.await.unwrap_or_else(|_| {
            let reason = "indexing came to an unexpected end; its log says where".to_owned();
            (Hands::default(), Err(Trouble::Failed(reason)))
        });
        self.status.send_modify(|status| {
            status.scanning = None;
            status.progress = None;
            status.notes.clear();
            status.failed = None;
            match synced {
                Ok(Synced {
                    notes, scan_took, ..
                }) => {
                    status.scanned = Some(began);
                    status.every = SCAN_EVERY.max(scan_took * SCAN_SHARE);
                    status.notes = notes;
                }
                Err(Trouble::Failed(reason) | Trouble::Broken(reason)) => {
                    status.scanned = Some(began);
                    status.every = SCAN_EVERY;
                    status.failed = Some(reason);
                }
                Err(Trouble::Stopped) => {}
            }
        });
        hands
    }

    /// On a thread that may block.
    fn sync(&self, hands: &mut Hands) -> Result<Synced, Trouble> {
        let began = Instant::now();
        let scan = scan(&self.shelf, &self.stop).map_err(Trouble::Failed)?;
        if self.stop.load(Ordering::SeqCst) {
            return Err(Trouble::Stopped);
        }
        let scan_took = began.elapsed();
        let doubted = self.doubted.swap(false, Ordering::SeqCst);
        // Somebody may have removed the file: what is written to it then, nobody finds again.
        if doubted || !self.path.exists() {
            hands.index = None;
        }
        let mut index = match hands.index.take() {
            Some(index) => index,
            None => self.open(doubted)?,
        };
        let mut updated = self.update(&mut index, &scan);
        if let Err(Trouble::Broken(reason)) = &updated {
            tracing::warn!(index = %self.path.display(), reason, "the index of documents is broken and made anew");
            drop(index);
            index = self.open(true)?;
            updated = self.update(&mut index, &scan);
        }
        hands.index = Some(index);
        let mut notes = scan.problems;
        if scan.cut {
            notes.push(format!(
                "there are more files than the {} that are indexed; raise max_files in [documents], or choose fewer",
                self.shelf.files_max
            ));
        }
        match updated {
            Ok(()) => {}
            // What is in the index can still be searched.
            Err(Trouble::Failed(reason)) => {
                notes.push(format!("the latest changes are not indexed: {reason}"));
            }
            Err(other) => return Err(other),
        }
        Ok(Synced {
            notes,
            folders: scan.folders,
            scan_took,
        })
    }

    fn open(&self, anew: bool) -> Result<Index, Trouble> {
        let index = match anew {
            true => Index::open_anew(&self.path),
            false => Index::open(&self.path),
        };
        self.generation.fetch_add(1, Ordering::AcqRel);
        index
    }

    fn update(&self, index: &mut Index, scan: &super::scan::Scan) -> Result<(), Trouble> {
        let what = format!("indexing {}", self.shelf.name);
        let mut told = false;
        let updated = index.update(&self.shelf, scan, &self.stop, |done, total| {
            told = true;
            self.progress.step(&what, done, total);
            self.status
                .send_modify(|status| status.progress = Some((done, total)));
        });
        if told {
            self.progress.finished(&what);
        }
        updated
    }
}

/// What goes to the thread that works and comes back.
#[derive(Default)]
struct Hands {
    index: Option<Index>,
    watching: Option<Watching>,
}

struct Synced {
    notes: Vec<String>,
    folders: Vec<PathBuf>,
    scan_took: Duration,
}
