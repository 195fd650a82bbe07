//! Reads the configuration again when one of its files changes, or when SIGHUP asks for it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::Runtime;

/// Editors write a file in several steps; only when they have come to rest is it read.
const REST: Duration = Duration::from_millis(300);

/// Whoever has a file open for writing is waited for, but not for ever.
const WRITING_MAX: Duration = Duration::from_secs(10);

/// Where the system tells that a writer has closed a file.
const ENDS_ARE_TOLD: bool = cfg!(target_os = "linux");

/// Watching goes on until this is dropped.
pub struct Watching(JoinHandle<()>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Runtime {
    /// Reloads on every change of the files that the configuration was read from, and on SIGHUP.
    pub fn watch(&self) -> Result<Watching, notify::Error> {
        let mut look = Look::at(&self.generation().configuration.files)?;
        let runtime = self.clone();
        Ok(Watching(tokio::spawn(async move {
            let mut hangups = hangups();
            let mut is_due = false;
            loop {
                if !std::mem::take(&mut is_due) {
                    tokio::select! {
                        change = look.changes.recv() => if change.is_none() { return },
                        () = hangups.next() => {}
                    }
                }
                look.rest().await;
                // What went wrong is logged, and kept as the runtime's last reload.
                let _ = runtime.reload().await;
                // The new configuration may be made of other files.
                let files = &runtime.generation().configuration.files;
                if *files != look.files
                    && let Ok(other) = Look::at(files)
                {
                    // What happens meanwhile is told to the old one; of files that are new to us, to nobody.
                    let is_new = |file: &PathBuf| !look.files.contains(file);
                    is_due = look.changes.try_recv().is_ok() || files.iter().any(is_new);
                    lock(&other.being_written).extend(lock(&look.being_written).drain());
                    look = other;
                }
            }
        })))
    }
}

/// A look at some files.
struct Look {
    files: Vec<PathBuf>,
    changes: mpsc::Receiver<()>,
    /// Half of a file may well be a configuration, with half of the tools.
    being_written: Arc<Mutex<HashSet<PathBuf>>>,
    _watcher: RecommendedWatcher,
}

impl Look {
    fn at(files: &[PathBuf]) -> Result<Look, notify::Error> {
        let (changed, changes) = mpsc::channel::<()>(1);
        let being_written = Arc::default();
        let watched: HashSet<PathBuf> = files.iter().cloned().collect();
        let writing = Arc::clone(&being_written);
        let hear = move |event: notify::Result<Event>| {
            let concerns_us = match &event {
                Ok(event) => note(event, &watched, &mut lock(&writing)),
                // Something may have been missed.
                Err(_) => true,
            };
            if concerns_us {
                // A full channel means that a reload is due anyway.
                let _ = changed.try_send(());
            }
        };
        let mut watcher = notify::recommended_watcher(hear)?;
        // The folders, not the files: editors put a new file in the place of the old one.
        let folders: HashSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
        for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
            watcher.watch(folder, RecursiveMode::NonRecursive)?;
        }
        Ok(Look {
            files: files.to_vec(),
            changes,
            being_written,
            _watcher: watcher,
        })
    }

    /// Waits until nothing changes any more and nobody writes.
    async fn rest(&mut self) {
        let latest = Instant::now() + WRITING_MAX;
        loop {
            let is_quiet = match timeout(REST, self.changes.recv()).await {
                Ok(Some(())) => false,
                // Nobody watches any more: nothing to wait for.
                Ok(None) => return,
                Err(_) => true,
            };
            let mut being_written = lock(&self.being_written);
            if is_quiet && being_written.is_empty() {
                return;
            }
            if Instant::now() >= latest {
                being_written.clear();
                return;
            }
        }
    }
}

/// Whether an event may mean other settings; notes who writes.
fn note(event: &Event, watched: &HashSet<PathBuf>, being_written: &mut HashSet<PathBuf>) -> bool {
    let mut concerns_us = false;
    for path in event.paths.iter().filter(|path| watched.contains(*path)) {
        concerns_us |= match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => being_written.remove(path),
            EventKind::Access(_) => false,
            EventKind::Create(_) | EventKind::Modify(ModifyKind::Data(_)) if ENDS_ARE_TOLD => {
                being_written.insert(path.clone());
                true
            }
            EventKind::Modify(ModifyKind::Metadata(_)) => true,
            // Another file is in its place, or none.
            _ => {
                being_written.remove(path);
                true
            }
        };
    }
    concerns_us
}

fn lock(paths: &Mutex<HashSet<PathBuf>>) -> MutexGuard<'_, HashSet<PathBuf>> {
    paths.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
struct Hangups(Option<tokio::signal::unix::Signal>);

#[cfg(unix)]
fn hangups() -> Hangups {
    use tokio::signal::unix::{SignalKind, signal};
    Hangups(signal(SignalKind::hangup()).ok())
}

#[cfg(not(unix))]
struct Hangups;

#[cfg(not(unix))]
fn hangups() -> Hangups {
    Hangups
}

impl Hangups {
    async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.0
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
