//! A record of what was refused, and to whom: the last ones in memory, more of them in a file that turns over.

use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use steadyhand::clock;
use steadyhand_process::private;
use utoipa::ToSchema;

/// Kept in memory.
const REMEMBERED_MAX: usize = 1_000;
/// Waiting to be written; more are counted, and only remembered.
const QUEUE_MAX: usize = 1_024;
/// When the file is put aside for a new one. One is kept.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const TEXT_CHARS_MAX: usize = 256;

/// The record.
pub struct Audit {
    remembered: Mutex<VecDeque<Arc<Refusal>>>,
    to_file: SyncSender<Arc<Refusal>>,
    unwritten: Arc<AtomicU64>,
}

/// Something that was refused
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RefusedRequest)]
pub struct Refusal {
    /// In milliseconds since 1970
    pub at_ms: u64,
    /// Where it came from
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub peer: Option<String>,
    /// Who it was, as far as that is known
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub who: Option<String>,
    /// The method and the path
    pub asked: String,
    /// The tool that was asked for
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub tool: Option<String>,
    /// Why, for machines
    pub code: String,
    /// Why
    pub reason: String,
}

impl Audit {
    /// Writes to this file from the first refusal on.
    pub fn open(path: PathBuf) -> Audit {
        let (to_file, inbox) = sync_channel(QUEUE_MAX);
        let unwritten = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&unwritten);
        let started = std::thread::Builder::new()
            .name("steadyhand-audit".to_owned())
            .spawn(move || write_all(&path, &inbox, &counter));
        if let Err(error) = started {
            tracing::error!(%error, "refusals are not written down: there is no thread for it");
        }
        Audit {
            remembered: Mutex::default(),
            to_file,
            unwritten,
        }
    }

    pub fn record(&self, mut refusal: Refusal) {
        refusal.at_ms = clock::wall_ms();
        for text in [&mut refusal.asked, &mut refusal.reason] {
            bound(text);
        }
        for text in [&mut refusal.who, &mut refusal.tool].into_iter().flatten() {
            bound(text);
        }
        tracing::info!(
            who = refusal.who,
            peer = refusal.peer,
            asked = refusal.asked,
            tool = refusal.tool,
            code = refusal.code,
            "refused"
        );
        let refusal = Arc::new(refusal);
        let mut remembered = self
            .remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if remembered.len() == REMEMBERED_MAX {
            remembered.pop_front();
        }
        remembered.push_back(Arc::clone(&refusal));
        drop(remembered);
        if self.to_file.try_send(refusal).is_err() {
            self.unwritten.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The newest first.
    pub fn latest(&self) -> Vec<Arc<Refusal>> {
        let remembered = self
            .remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        remembered.iter().rev().map(Arc::clone).collect()
    }

    /// How many are in no file.
    pub fn unwritten(&self) -> u64 {
        self.unwritten.load(Ordering::Relaxed)
    }
}

fn bound(text: &mut String) {
    if text.chars().count() > TEXT_CHARS_MAX {
        *text = text.chars().take(TEXT_CHARS_MAX).collect();
    }
}

/// Until the last one who refuses is gone.
fn write_all(path: &Path, inbox: &Receiver<Arc<Refusal>>, unwritten: &AtomicU64) {
    while let Ok(refusal) = inbox.recv() {
        let written = write(path, &refusal);
        let is_first = || unwritten.fetch_add(1, Ordering::Relaxed) == 0;
        if let Err(error) = written
            && is_first()
        {
            let path = path.display();
            tracing::error!(%error, %path, "a refusal could not be written down");
        }
    }
}

fn write(path: &Path, refusal: &Refusal) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        private::make_folder(folder)?;
    }
    if fs::metadata(path).is_ok_and(|about| about.len() > FILE_BYTES_MAX) {
        fs::rename(path, path.with_extension("1.ndjson"))?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    let mut line = serde_json::to_vec(refusal)?;
    line.push(b'\n');
    private::open(path, &mut options)?.write_all(&line)
}
