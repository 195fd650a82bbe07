//! Keeps the index of a collection as its folders are, without a restart.
//!
//! One task per collection scans the folders and indexes what changed: at the first query, when the
//! system tells of a change, and before a query when the last scan is more than a second old. So a
//! query sees every change made more than a second before it, whether or not the system tells of
//! changes. Where one scan takes longer than 50 ms, that second becomes twenty times its duration.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _, event};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep, timeout_at};

use super::index::{Index, Trouble};
use super::scan::scan;
use super::settings::Shelf;
use crate::progress::Progress;

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
                Err(_) if is_first => return Freshness::NotReady(now),
                // The task is gone with its runtime, or the time is over.
                Ok(Err(_)) | Err(_) => return Freshness::Behind(now),
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
        let (changed, changes) = mpsc::channel(1);
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
        tokio::spawn(work.go_on(wake, changed, changes));
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
    async fn go_on(
        self,
        wake: Arc<Notify>,
        changed: mpsc::Sender<()>,
        mut changes: mpsc::Receiver<()>,
    ) {
        let _stops = StopsWhenDropped(Arc::clone(&self.stop));
        let mut index = None;
        // Kept for as long as the task lives.
        let mut watcher = None;
        let mut asked_to_watch = !self.shelf.watch;
        loop {
            index = self.round(index).await;
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            if !asked_to_watch {
                asked_to_watch = true;
                let (shelf, changed) = (Arc::clone(&self.shelf), changed.clone());
                let watching = tokio::task::spawn_blocking(move || watch_folders(&shelf, changed));
                watcher = watching.await.ok().flatten();
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
                drop(watcher);
                return;
            }
        }
    }

    /// One scan, and the indexing of what it found.
    async fn round(&self, index: Option<Index>) -> Option<Index> {
        let began = Instant::now();
        self.status
            .send_modify(|status| status.scanning = Some(began));
        let work = self.clone();
        let job = tokio::task::spawn_blocking(move || work.sync(index));
        let (index, synced) = job.await.unwrap_or_else(|_| {
            let reason = "indexing came to an unexpected end; its log says where".to_owned();
            (None, Err(Trouble::Failed(reason)))
        });
        self.status.send_modify(|status| {
            status.scanning = None;
            status.progress = None;
            status.notes.clear();
            status.failed = None;
            match synced {
                Ok(Synced { notes, scan_took }) => {
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
        index
    }

    /// On a thread that may block.
    fn sync(&self, index: Option<Index>) -> (Option<Index>, Result<Synced, Trouble>) {
        let began = Instant::now();
        let scan = match scan(&self.shelf, &self.stop) {
            Ok(scan) => scan,
            Err(reason) => return (index, Err(Trouble::Failed(reason))),
        };
        let scan_took = began.elapsed();
        // Somebody may have removed the file: what is written to it then, nobody would find again.
        let index = index.filter(|_| self.path.exists());
        let doubted = self.doubted.swap(false, Ordering::SeqCst);
        let opened = match index {
            Some(index) if !doubted => Ok(index),
            old => {
                drop(old);
                self.open(doubted)
            }
        };
        let mut index = match opened {
            Ok(index) => index,
            Err(trouble) => return (None, Err(trouble)),
        };
        let mut updated = self.update(&mut index, &scan);
        if let Err(Trouble::Broken(reason)) = &updated {
            tracing::warn!(index = %self.path.display(), reason, "the index of documents is broken and made anew");
            drop(index);
            index = match self.open(true) {
                Ok(index) => index,
                Err(trouble) => return (None, Err(trouble)),
            };
            updated = self.update(&mut index, &scan);
        }
        let mut notes = scan.problems;
        if scan.cut {
            notes.push(format!(
                "there are more files than the {} that are indexed; raise max_files in [documents], or choose fewer",
                self.shelf.files_max
            ));
        }
        let synced = updated.map(|()| Synced { notes, scan_took });
        (Some(index), synced)
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

struct Synced {
    notes: Vec<String>,
    scan_took: Duration,
}

/// Asks the system to tell of changes. Where it cannot, scans find them.
fn watch_folders(shelf: &Shelf, changed: mpsc::Sender<()>) -> Option<RecommendedWatcher> {
    let tell = move |event: notify::Result<notify::Event>| {
        // Our own reading is no change.
        let is_change = event.is_ok_and(|event| match event.kind {
            EventKind::Access(access) => {
                access == event::AccessKind::Close(event::AccessMode::Write)
            }
            _ => true,
        });
        if is_change {
            let _ = changed.try_send(());
        }
    };
    let watch = || {
        let mut watcher = notify::recommended_watcher(tell)?;
        for root in &shelf.roots {
            watch_folder(&mut watcher, &root.path)?;
        }
        Ok(watcher)
    };
    let watching: notify::Result<RecommendedWatcher> = watch();
    watching
        .inspect_err(|error| tracing::debug!(%error, "changes of documents are not told, but looked for before a query"))
        .ok()
}

fn watch_folder(watcher: &mut RecommendedWatcher, folder: &Path) -> notify::Result<()> {
    match folder.exists() {
        true => watcher.watch(folder, RecursiveMode::Recursive),
        false => Ok(()),
    }
}
