//! Reads the configuration again when one of its files changes, or when SIGHUP asks for it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, Debouncer, RecommendedCache, new_debouncer};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Runtime;

/// Editors write a file in several steps; only when they have come to rest is it read.
const REST: Duration = Duration::from_millis(300);

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
            loop {
                tokio::select! {
                    change = look.changes.recv() => if change.is_none() { return },
                    () = hangups.next() => {}
                }
                // What went wrong is logged, and kept as the runtime's last reload.
                let _ = runtime.reload().await;
                // The new configuration may be made of other files.
                let files = &runtime.generation().configuration.files;
                if *files != look.files
                    && let Ok(other) = Look::at(files)
                {
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
    _debouncer: Debouncer<RecommendedWatcher, RecommendedCache>,
}

impl Look {
    fn at(files: &[PathBuf]) -> Result<Look, notify::Error> {
        let (changed, changes) = mpsc::channel::<()>(1);
        let watched: HashSet<PathBuf> = files.iter().cloned().collect();
        let tell = move |events: DebounceEventResult| {
            let concerns_us = match &events {
                Ok(events) => events.iter().any(|event| {
                    !matches!(event.kind, EventKind::Access(_))
                        && event.paths.iter().any(|path| watched.contains(path))
                }),
                // Something may have been missed.
                Err(_) => true,
            };
            if concerns_us {
                // A full channel means that a reload is due anyway.
                let _ = changed.try_send(());
            }
        };
        let mut debouncer = new_debouncer(REST, None, tell)?;
        // The folders, not the files: editors put a new file in the place of the old one.
        let folders: HashSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
        for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
            debouncer.watch(folder, RecursiveMode::NonRecursive)?;
        }
        Ok(Look {
            files: files.to_vec(),
            changes,
            _debouncer: debouncer,
        })
    }
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
