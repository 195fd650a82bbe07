//! Says how far something is that takes long. Whoever works tells; the command line decides what is shown.

use std::sync::Arc;

/// Takes notice of progress.
pub trait Watcher: Send + Sync {
    /// `done` of `total` steps of `what`; a total of 0 means nobody knows how many.
    fn step(&self, what: &str, done: u64, total: u64);

    /// `what` is over.
    fn finished(&self, what: &str);
}

/// Hands progress on to whoever watches; cheap to clone, silent by default.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<dyn Watcher>>);

impl Progress {
    /// Nobody watches.
    pub fn silent() -> Progress {
        Progress(None)
    }

    /// Tells this watcher.
    pub fn to(watcher: Arc<dyn Watcher>) -> Progress {
        Progress(Some(watcher))
    }

    /// `done` of `total` steps of `what`; a total of 0 means nobody knows how many.
    pub fn step(&self, what: &str, done: u64, total: u64) {
        if let Some(watcher) = &self.0 {
            watcher.step(what, done, total);
        }
    }

    /// `what` is over.
    pub fn finished(&self, what: &str) {
        if let Some(watcher) = &self.0 {
            watcher.finished(what);
        }
    }
}
