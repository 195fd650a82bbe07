//! Asks the system to tell of changes in folders. Where it cannot, scans find them all the same.

use std::collections::HashSet;
use std::path::PathBuf;

use notify::{Config, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _, event};
use tokio::sync::mpsc;

/// The folders of a collection that are watched. Each by itself: what is excluded costs nothing.
pub(super) struct Watching {
    changed: mpsc::Sender<()>,
    watcher: Option<RecommendedWatcher>,
    folders: HashSet<PathBuf>,
    given_up: bool,
}

impl Watching {
    /// Tells `changed`; watches nothing yet.
    pub(super) fn new(changed: mpsc::Sender<()>) -> Watching {
        Watching {
            changed,
            watcher: None,
            folders: HashSet::new(),
            given_up: false,
        }
    }

    /// Watches these folders and no others. On a thread that may block.
    pub(super) fn watch(&mut self, folders: Vec<PathBuf>) {
        let folders: HashSet<PathBuf> = folders.into_iter().collect();
        if self.given_up || folders == self.folders {
            return;
        }
        if let Err(error) = self.change_to(&folders) {
            tracing::debug!(%error, "changes of documents are not told of, but looked for before a query");
            self.given_up = true;
            self.watcher = None;
        }
        self.folders = folders;
    }

    fn change_to(&mut self, folders: &HashSet<PathBuf>) -> notify::Result<()> {
        let watcher = match &mut self.watcher {
            Some(watcher) => watcher,
            None => self.watcher.insert(new_watcher(self.changed.clone())?),
        };
        let mut paths = watcher.paths_mut();
        for gone in self.folders.difference(folders) {
            // Mostly removed, and no longer watched for that reason.
            let _ = paths.remove(gone);
        }
        for new in folders.difference(&self.folders) {
            match paths.add(new, RecursiveMode::NonRecursive) {
                // Removed since it was seen: the next scan will not see it.
                Err(error) if !new.exists() => tracing::trace!(%error, "a folder is gone"),
                added => added?,
            }
        }
        paths.commit()
    }
}

fn new_watcher(changed: mpsc::Sender<()>) -> notify::Result<RecommendedWatcher> {
    let tell = move |event: notify::Result<notify::Event>| {
        // Our own reading is no change.
        let is_change = event.is_ok_and(|event| match event.kind {
            EventKind::Access(access) => {
                access == event::AccessKind::Close(event::AccessMode::Write)
            }
            _ => true,
        });
        if is_change {
            // Full means that somebody has been told already.
            let _ = changed.try_send(());
        }
    };
    RecommendedWatcher::new(tell, Config::default().with_follow_symlinks(false))
}
