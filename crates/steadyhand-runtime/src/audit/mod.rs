//! The audit log: who decided and changed what, when, from where. Append-only, hash-chained, its length signed off.
//!
//! One thread writes it from a bounded queue. Calls never wait for it; an action of an operator does, until the record
//! that it was asked for is on the disk.

mod files;
mod reading;
mod record;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steadyhand::clock;
use tokio::sync::oneshot;

pub use files::AuditOptions;
pub use record::{AuditActor, AuditEvent, AuditOrigin, AuditRecord};

/// Records that wait for the thread; further ones are counted, and the count is a record.
const QUEUE_MAX: usize = 1024;
/// Records that are written at once.
const BATCH_MAX: usize = 128;
/// How long an action waits for its record.
const WRITING_MAX: Duration = Duration::from_secs(5);

/// The log. Cheap to clone: clones are the same log.
#[derive(Clone)]
pub struct AuditLog {
    /// None where it is switched off.
    inner: Option<Arc<Inner>>,
}

struct Inner {
    options: AuditOptions,
    /// Whether an action is refused that cannot be written down.
    required: bool,
    queue: SyncSender<Entry>,
    unwritten: Arc<AtomicU64>,
    trouble: Arc<Mutex<Option<String>>>,
}

struct Entry {
    /// None only waits for those before it.
    event: Option<AuditEvent>,
    /// Told when it is on the disk.
    written: Option<oneshot::Sender<Result<(), String>>>,
}

impl AuditLog {
    /// Switched off.
    pub fn off() -> AuditLog {
        AuditLog { inner: None }
    }

    /// Never fails: a log that cannot be written says so.
    pub fn open(options: AuditOptions, required: bool) -> AuditLog {
        let (queue, inbox) = sync_channel(QUEUE_MAX);
        let (unwritten, trouble) = (Arc::default(), Arc::default());
        let writer = Writer {
            options: options.clone(),
            unwritten: Arc::clone(&unwritten),
            trouble: Arc::clone(&trouble),
        };
        let started = std::thread::Builder::new()
            .name("steadyhand-audit-log".to_owned())
            .spawn(move || writer.work(&inbox));
        if let Err(error) = started {
            let mut told = trouble.lock().unwrap_or_else(PoisonError::into_inner);
            *told = Some(format!("there is no thread to write it: {error}"));
        }
        AuditLog {
            inner: Some(Arc::new(Inner {
                options,
                required,
                queue,
                unwritten,
                trouble,
            })),
        }
    }

    /// Where it is; nothing where it is switched off.
    pub fn options(&self) -> Option<&AuditOptions> {
        self.inner.as_ref().map(|inner| &inner.options)
    }

    /// Writes down what has happened, soon. Never blocks.
    pub fn note(&self, event: AuditEvent) {
        self.send(Some(event), None);
    }

    /// Writes down what is about to happen: it is on the disk when this returns. The error says why it is not, and
    /// comes only where an action must not happen without.
    pub async fn before(&self, event: AuditEvent) -> Result<(), String> {
        let Some(inner) = &self.inner else {
            return Ok(());
        };
        let (written, is_written) = oneshot::channel();
        self.send(Some(event), Some(written));
        match (in_time(is_written).await, inner.required) {
            (Err(why), true) => Err(why),
            _ => Ok(()),
        }
    }

    /// Waits until everything so far is on the disk, for a bounded time.
    pub async fn flush(&self) {
        let (written, is_written) = oneshot::channel();
        self.send(None, Some(written));
        // What is wrong is told by `trouble`, and in the log.
        let _ = in_time(is_written).await;
    }

    /// Why it is not written, if it is not.
    pub fn trouble(&self) -> Option<String> {
        let inner = self.inner.as_ref()?;
        let trouble = inner.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.clone()
    }

    /// Records that were lost because it could not be written.
    pub fn unwritten(&self) -> u64 {
        let inner = self.inner.as_ref();
        inner.map_or(0, |inner| inner.unwritten.load(Ordering::Relaxed))
    }

    fn send(
        &self,
        event: Option<AuditEvent>,
        written: Option<oneshot::Sender<Result<(), String>>>,
    ) {
        let Some(inner) = &self.inner else {
            if let Some(written) = written {
                let _ = written.send(Ok(()));
            }
            return;
        };
        let is_record = event.is_some();
        // Whoever waits for an entry that found no room hears that its sender is gone.
        if inner.queue.try_send(Entry { event, written }).is_err() && is_record {
            inner.unwritten.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn in_time(written: oneshot::Receiver<Result<(), String>>) -> Result<(), String> {
    match tokio::time::timeout(WRITING_MAX, written).await {
        Ok(Ok(written)) => written,
        Ok(Err(_)) => Err("too many records wait to be written".to_owned()),
        Err(_) => Err(format!("it was not written within {WRITING_MAX:?}")),
    }
}

/// The thread's own.
struct Writer {
    options: AuditOptions,
    unwritten: Arc<AtomicU64>,
    trouble: Arc<Mutex<Option<String>>>,
}

impl Writer {
    /// Until the last one who could write is gone.
    fn work(&self, inbox: &Receiver<Entry>) {
        let mut told_unwritten = 0;
        while let Ok(first) = inbox.recv() {
            let mut batch = vec![first];
            batch.extend(inbox.try_iter().take(BATCH_MAX - 1));
            let (events, waiting): (Vec<_>, Vec<_>) = batch
                .into_iter()
                .map(|entry| (entry.event, entry.written))
                .unzip();
            let mut events: Vec<AuditEvent> = events.into_iter().flatten().collect();
            let count = events.len() as u64;
            let unwritten = self.unwritten.load(Ordering::Relaxed);
            if unwritten > told_unwritten {
                let lost = unwritten - told_unwritten;
                let event = AuditEvent::of_server("audit.lost");
                events.push(event.on(&format!("{lost} records")).result("lost"));
            }
            let waiting: Vec<_> = waiting.into_iter().flatten().collect();
            let written = match events.is_empty() {
                true => Ok(()),
                false => self
                    .options
                    .append(events, !waiting.is_empty(), clock::wall_ms()),
            };
            let written = written.map_err(|error| {
                format!(
                    "{} cannot be written: {error}",
                    self.options.folder.display()
                )
            });
            match &written {
                Ok(()) => told_unwritten = unwritten,
                Err(_) => {
                    self.unwritten.fetch_add(count, Ordering::Relaxed);
                }
            }
            self.tell(written.as_ref().err());
            for one in waiting {
                // Whoever waited may have given up.
                let _ = one.send(written.clone());
            }
        }
    }

    fn tell(&self, trouble: Option<&String>) {
        let mut told = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match (trouble, &*told) {
            (Some(why), None) => tracing::error!(reason = why, "the audit log is not written"),
            (None, Some(_)) => tracing::info!("the audit log is written again"),
            _ => {}
        }
        *told = trouble.cloned();
    }
}
