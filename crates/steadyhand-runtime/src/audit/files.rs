//! The files of an audit log: segments of records, and, in another folder, the length as it was signed off last.
//!
//! A record is appended first, then the length is signed. So a log is never shorter than what was signed, whenever the
//! process is killed; one that is was cut by somebody.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use steadyhand_process::private;
use tokio::time::Instant;

use super::record::{AuditEvent, AuditRecord, DAMAGED, FIRST_HASH, hex};

/// How long another process may hold the log.
const LOCK_MAX: Duration = Duration::from_secs(2);
const LOCK_AGAIN: Duration = Duration::from_millis(2);
/// Segments that make up a log of its largest size: one of them goes at a time.
const SEGMENTS: u64 = 8;
const SEGMENT_BYTES_MIN: u64 = 16 * 1024;
/// What is read of the signed length, and of the key.
const SMALL_BYTES_MAX: u64 = 64 * 1024;

/// Where a log is, and how much of it is kept.
#[derive(Debug, Clone)]
pub struct AuditOptions {
    /// The segments.
    pub folder: PathBuf,
    /// The signed length, in another folder.
    pub head: PathBuf,
    /// What it is signed with.
    pub key: PathBuf,
    pub node: String,
    pub keep: Duration,
    pub max_bytes: u64,
}

/// The length of a log as it was signed off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// How many records were ever written.
    pub(super) records: u64,
    /// The digest of the last one.
    pub(super) hash: String,
    /// The first record that is still kept, and the digest of the one before it.
    pub(super) first: u64,
    pub(super) first_prev: String,
    /// The segment that is written, by its first record, and its length.
    pub(super) segment: u64,
    pub(super) bytes: u64,
    pub(super) at_ms: u64,
    /// Signs all of the above.
    #[serde(default)]
    hmac: String,
}

/// What the signed length is.
#[derive(Debug)]
pub(super) enum Signed {
    Nothing,
    This(Head),
    /// It is there, and not as we signed it: why.
    Wrong(String),
}

impl Head {
    fn fresh() -> Head {
        Head {
            records: 0,
            hash: FIRST_HASH.to_owned(),
            first: 1,
            first_prev: FIRST_HASH.to_owned(),
            segment: 1,
            bytes: 0,
            at_ms: 0,
            hmac: String::new(),
        }
    }

    fn signature(&self, key: &[u8]) -> io::Result<String> {
        let unsigned = Head {
            hmac: String::new(),
            ..self.clone()
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(io::Error::other)?;
        mac.update(&serde_json::to_vec(&unsigned)?);
        Ok(hex(&mac.finalize().into_bytes()))
    }
}

impl AuditOptions {
    fn segment_path(&self, first: u64) -> PathBuf {
        self.folder.join(format!("{first:012}.ndjson"))
    }

    fn segment_bytes(&self) -> u64 {
        (self.max_bytes / SEGMENTS).max(SEGMENT_BYTES_MIN)
    }

    /// The segments there are, by their first records.
    pub(super) fn segments(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut segments = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let is_segment = path.extension().is_some_and(|end| end == "ndjson");
            let first = path
                .file_stem()
                .and_then(|name| name.to_str()?.parse().ok());
            if let (true, Some(first)) = (is_segment, first) {
                segments.push((first, path));
            }
        }
        segments.sort_unstable_by_key(|(first, _)| *first);
        Ok(segments)
    }

    /// The length that was signed off.
    pub(super) fn signed(&self) -> io::Result<Signed> {
        let bytes = match private::read(&self.head, SMALL_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Signed::Nothing),
            Err(error) => return Err(error),
        };
        let wrong = |why: &str| Signed::Wrong(format!("{} {why}", self.head.display()));
        let Ok(head) = serde_json::from_slice::<Head>(&bytes) else {
            return Ok(wrong("is damaged"));
        };
        let key = match private::read(&self.key, SMALL_BYTES_MAX) {
            Ok(key) => key,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(wrong(&format!(
                    "cannot be checked: {} is missing",
                    self.key.display()
                )));
            }
            Err(error) => return Err(error),
        };
        match head.signature(&key)? == head.hmac {
            true => Ok(Signed::This(head)),
            false => Ok(wrong("is not as it was signed")),
        }
    }

    /// Writes the length, signed.
    fn sign(&self, head: &mut Head, is_durable: bool) -> io::Result<()> {
        let key = self.key_or_new()?;
        head.hmac = head.signature(&key)?;
        let unfinished = self.head.with_extension("json.new");
        make_folder(&self.head)?;
        let mut file = private::open(&unfinished, only_ours().create(true).truncate(true))?;
        file.write_all(&serde_json::to_vec(head)?)?;
        if is_durable {
            file.sync_data()?;
        }
        fs::rename(&unfinished, &self.head)
    }

    fn key_or_new(&self) -> io::Result<Vec<u8>> {
        match private::read(&self.key, SMALL_BYTES_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            read => return read,
        }
        make_folder(&self.key)?;
        let key = crate::access::random().into_bytes();
        let mut file = private::open(&self.key, only_ours().create_new(true))?;
        file.write_all(&key)?;
        file.sync_all()?;
        Ok(key)
    }

    fn lock(&self) -> io::Result<File> {
        let path = self.folder.join("lock");
        make_folder(&path)?;
        let file = private::open(&path, only_ours().create(true).truncate(false))?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(fs::TryLockError::Error(error)) => return Err(error),
                Err(fs::TryLockError::WouldBlock) if begun.elapsed() < LOCK_MAX => {
                    std::thread::park_timeout(LOCK_AGAIN);
                }
                Err(fs::TryLockError::WouldBlock) => {
                    return Err(io::Error::other("another process holds it"));
                }
            }
        }
    }

    /// Appends records, then signs the new length. All of them are in the log when this returns, on the disk if they
    /// must be.
    pub(super) fn append(
        &self,
        events: Vec<AuditEvent>,
        is_durable: bool,
        now_ms: u64,
    ) -> io::Result<()> {
        let _lock = self.lock()?;
        let (mut head, noticed) = self.where_it_ends()?;
        let noticed = noticed.map(|what| {
            tracing::error!(reason = what, "the audit log is not as it was left");
            AuditEvent::of_server(DAMAGED).on(&what).result("noticed")
        });
        let mut file = self.writable(&head)?;
        if head.bytes >= self.segment_bytes() {
            (head.segment, head.bytes) = (head.records + 1, 0);
            let path = self.segment_path(head.segment);
            if path.exists() {
                // Begun by a process that was killed before it could sign it.
                head = self.with_what_followed(head, &path)?;
            }
            file = self.writable(&head)?;
        }
        let dropped = self.drop_old(&mut head, now_ms)?;
        let events = noticed.into_iter().chain(dropped).chain(events);
        let mut lines = Vec::new();
        for event in events {
            let record = event.record(head.records + 1, now_ms, &self.node, &head.hash);
            let (line, hash) = record.line()?;
            lines.extend_from_slice(&line);
            head.records += 1;
            head.hash = hash;
        }
        file.write_all(&lines)?;
        if is_durable {
            file.sync_data()?;
        }
        head.bytes += lines.len() as u64;
        head.at_ms = now_ms;
        self.sign(&mut head, is_durable)
    }

    fn writable(&self, head: &Head) -> io::Result<File> {
        let path = self.segment_path(head.segment);
        let is_new = head.bytes == 0;
        let mut options = only_ours();
        options.append(true).create(is_new);
        let file = private::open(&path, &mut options)?;
        if is_new && let Some(folder) = path.parent() {
            sync_folder(folder)?;
        }
        Ok(file)
    }

    /// The end of the log; and what is wrong with it, if it is not where it was signed off.
    fn where_it_ends(&self) -> io::Result<(Head, Option<String>)> {
        let segments = self.segments()?;
        let head = match self.signed()? {
            Signed::This(head) => head,
            Signed::Nothing if segments.is_empty() => {
                // Signed before its first record: a log without a signed length was robbed of it.
                let mut head = Head::fresh();
                self.sign(&mut head, true)?;
                return Ok((head, None));
            }
            Signed::Nothing => {
                let what = format!("the signed length is missing: {}", self.head.display());
                return Ok((self.after_the_last(&segments)?, Some(what)));
            }
            Signed::Wrong(what) => return Ok((self.after_the_last(&segments)?, Some(what))),
        };
        let path = self.segment_path(head.segment);
        let length = match fs::metadata(&path) {
            Ok(about) => about.len(),
            Err(error) if error.kind() == ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        if length < head.bytes {
            let what = format!(
                "{} has {length} bytes, and had {} when {} records were signed off",
                path.display(),
                head.bytes,
                head.records
            );
            return Ok((self.anew(head), Some(what)));
        }
        if length > head.bytes && !ends_a_line(&path, head.bytes)? {
            let what = format!("{} was changed before its end", path.display());
            return Ok((self.anew(head), Some(what)));
        }
        match length > head.bytes {
            true => Ok((self.with_what_followed(head, &path)?, None)),
            false => Ok((head, None)),
        }
    }

    /// Records that were written when the process was killed before it could sign them; what was not whole goes.
    fn with_what_followed(&self, mut head: Head, path: &Path) -> io::Result<Head> {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        file.seek(SeekFrom::Start(head.bytes))?;
        let mut rest = Vec::new();
        Read::by_ref(&mut file)
            .take(self.max_bytes.max(SEGMENT_BYTES_MIN))
            .read_to_end(&mut rest)?;
        for line in rest.split_inclusive(|byte| *byte == b'\n') {
            let Some(record) = line.strip_suffix(b"\n").map(AuditRecord::read) else {
                break;
            };
            match record {
                Ok(record) if record.n == head.records + 1 && record.prev == head.hash => {
                    head.records = record.n;
                    head.hash = record.hash;
                    head.bytes += line.len() as u64;
                }
                _ => break,
            }
        }
        file.set_len(head.bytes)?;
        Ok(head)
    }

    /// The end of a log whose signed length cannot be used: after its last whole record, in a segment of its own.
    fn after_the_last(&self, segments: &[(u64, PathBuf)]) -> io::Result<Head> {
        let mut head = Head::fresh();
        if let Some((first, _)) = segments.first() {
            head.first = *first;
        }
        for (_, path) in segments {
            for line in fs::read(path)?.split(|byte| *byte == b'\n') {
                if let Ok(record) = AuditRecord::read(line) {
                    if record.n == head.first {
                        head.first_prev.clone_from(&record.prev);
                    }
                    if record.n > head.records {
                        (head.records, head.hash) = (record.n, record.hash);
                    }
                }
            }
        }
        Ok(self.anew(head))
    }

    /// Goes on in a new segment; where one of that name is there, it is not written over.
    fn anew(&self, mut head: Head) -> Head {
        while self.segment_path(head.records + 1).exists() {
            head.records += 1;
        }
        (head.segment, head.bytes) = (head.records + 1, 0);
        head
    }

    /// Whole segments that are too old, or too many. The digest of the last record in them stays.
    fn drop_old(&self, head: &mut Head, now_ms: u64) -> io::Result<Vec<AuditEvent>> {
        let segments = self.segments()?;
        let mut total = 0;
        for (_, path) in &segments {
            total += fs::metadata(path).map_or(0, |about| about.len());
        }
        let oldest_ms = now_ms.saturating_sub(self.keep.as_millis() as u64);
        let mut dropped = Vec::new();
        for pair in segments.windows(2) {
            let [(first, path), (next, next_path)] = pair else {
                break;
            };
            if *first >= head.segment {
                break;
            }
            let Some(following) = first_record(next_path)? else {
                break;
            };
            // The record that follows is no older than the last one in the segment.
            let is_old = following.at_ms < oldest_ms;
            if total <= self.max_bytes && !is_old {
                break;
            }
            // Signed off first: a segment that is still there then does no harm, one that is missing would.
            (head.first, head.first_prev) = (*next, following.prev.clone());
            self.sign(head, true)?;
            total -= fs::metadata(path).map_or(0, |about| about.len());
            fs::remove_file(path)?;
            dropped.push(
                AuditEvent::of_server("audit.dropped")
                    .on(&format!("records {first} to {}", next - 1))
                    .changed(None, Some(serde_json::json!({"hash": following.prev}))),
            );
        }
        Ok(dropped)
    }
}

/// Whether a line ends there.
fn ends_a_line(path: &Path, place: u64) -> io::Result<bool> {
    let Some(last) = place.checked_sub(1) else {
        return Ok(true);
    };
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(last))?;
    let mut byte = [0];
    file.read_exact(&mut byte)?;
    Ok(byte == *b"\n")
}

fn first_record(path: &Path) -> io::Result<Option<AuditRecord>> {
    let mut line = Vec::new();
    let file = io::BufReader::new(File::open(path)?);
    io::BufRead::read_until(&mut file.take(1024 * 1024), b'\n', &mut line)?;
    let line = line.strip_suffix(b"\n").unwrap_or(&line);
    Ok(AuditRecord::read(line).ok())
}

fn make_folder(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent() else {
        return Ok(());
    };
    private::make_folder(folder)
}

fn only_ours() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    options
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
