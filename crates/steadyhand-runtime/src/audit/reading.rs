//! Reading an audit log: its records, and whether all of them are there and as they were written.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};

use serde::Serialize;

use super::files::{AuditOptions, Signed};
use super::record::{AuditRecord, DAMAGED};

/// The longest line that is read.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// What a whole log is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// How many records were ever written.
    pub records: u64,
    /// The first that is kept.
    pub first: u64,
    pub segments: usize,
    /// The digest of the last one: keep it elsewhere, and a later log can be held against it.
    pub hash: String,
    /// Records after the last signed length: of a process that writes now, or was killed.
    pub unsigned: u64,
}

/// The first thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// The first record that is missing, or not as it was written.
    pub record: u64,
    /// Where it stands, or should.
    pub place: String,
    pub reason: String,
}

/// A log that was verified; none was ever written where there is nothing.
pub(super) type Verdict = Result<Option<Verified>, Broken>;

impl AuditOptions {
    /// Looks through all of it, or from a record on: what is wrong before that is known to whoever asks.
    pub fn verify(&self, from: u64) -> io::Result<Verdict> {
        // The signed length first: whoever writes meanwhile only adds to the log.
        let signed = self.signed()?;
        let segments = self.segments()?;
        let broken = |record: u64, place: String, reason: &str| {
            Ok(Err(Broken {
                record,
                place,
                reason: reason.to_owned(),
            }))
        };
        let head_place = self.head.display().to_string();
        let head = match signed {
            Signed::This(head) => head,
            Signed::Nothing if segments.is_empty() => return Ok(Ok(None)),
            Signed::Nothing => {
                return broken(1, head_place, "the signed length is missing");
            }
            Signed::Wrong(why) => return broken(1, head_place, &why),
        };
        let (mut next, mut prev) = (head.first, head.first_prev.clone());
        let mut unsigned = 0;
        let last = segments.last().map(|(first, _)| *first);
        for (first, path) in &segments {
            if *first < head.first {
                // Dropped, and only its file has not gone yet.
                continue;
            }
            let mut file = BufReader::new(File::open(path)?);
            for number in 1.. {
                let mut line = Vec::new();
                Read::by_ref(&mut file)
                    .take(LINE_BYTES_MAX)
                    .read_until(b'\n', &mut line)?;
                if line.is_empty() {
                    break;
                }
                let place = format!("{}:{number}", path.display());
                let Some(line) = line.strip_suffix(b"\n") else {
                    if next > head.records && last == Some(*first) {
                        // Being written, or cut off by a kill: it was never signed.
                        break;
                    }
                    return broken(next, place, "it is cut");
                };
                let record = match AuditRecord::read(line) {
                    Ok(record) => record,
                    Err(_) if next < from => continue,
                    Err(why) => return broken(next, place, why),
                };
                if record.n < from {
                    (next, prev) = (record.n + 1, record.hash);
                    continue;
                }
                if next < from {
                    (next, prev) = (record.n, record.prev.clone());
                }
                if record.n > next {
                    let reason = format!("{} before this one", missing(next, record.n - 1));
                    return broken(next, place, &reason);
                }
                if record.n < next || record.prev != prev {
                    let reason = "it does not follow the record before it";
                    return broken(record.n.min(next), place, reason);
                }
                if record.n == head.records && record.hash != head.hash {
                    let reason = "it is another than the one that was signed off";
                    return broken(record.n, place, reason);
                }
                if record.action == DAMAGED {
                    let what = record.subject.unwrap_or_default();
                    let reason =
                        format!("something was wrong when this record was written: {what}");
                    return broken(record.n, place, &reason);
                }
                unsigned += u64::from(record.n > head.records);
                next = record.n + 1;
                prev = record.hash;
            }
        }
        if next <= head.records {
            let reason = format!("{} at the end", missing(next, head.records));
            return broken(next, self.folder.display().to_string(), &reason);
        }
        Ok(Ok(Some(Verified {
            records: next - 1,
            first: head.first,
            segments: segments.len(),
            hash: prev,
            unsigned,
        })))
    }

    /// Records, the newest first, before one of them and since a moment. Lines that are no record are left out:
    /// [`AuditOptions::verify`] tells of them.
    pub fn latest(
        &self,
        before: Option<u64>,
        since_ms: u64,
        limit: usize,
    ) -> io::Result<Vec<AuditRecord>> {
        let mut found = Vec::new();
        for (first, path) in self.segments()?.into_iter().rev() {
            if before.is_some_and(|before| first >= before) {
                continue;
            }
            let bytes = match fs::read(&path) {
                Ok(bytes) => bytes,
                // Dropped in between.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            for line in bytes.split(|byte| *byte == b'\n').rev() {
                let Ok(record) = AuditRecord::read(line) else {
                    continue;
                };
                if before.is_some_and(|before| record.n >= before) {
                    continue;
                }
                if record.at_ms < since_ms || found.len() == limit {
                    return Ok(found);
                }
                found.push(record);
            }
        }
        Ok(found)
    }

    /// Gives every line since a moment to someone, the oldest first, as it stands in the log.
    pub fn each_line(
        &self,
        since_ms: u64,
        mut to: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<u64> {
        let mut count = 0;
        for (_, path) in self.segments()? {
            let mut file = BufReader::new(File::open(&path)?);
            loop {
                let mut line = Vec::new();
                Read::by_ref(&mut file)
                    .take(LINE_BYTES_MAX)
                    .read_until(b'\n', &mut line)?;
                if line.is_empty() {
                    break;
                }
                let body = line.strip_suffix(b"\n").unwrap_or(&line);
                let record = AuditRecord::read(body);
                if record.is_ok_and(|record| record.at_ms < since_ms) {
                    continue;
                }
                // What is no record any more is exported as well: whoever verifies the export must see it.
                to(&line)?;
                count += 1;
            }
        }
        Ok(count)
    }
}

fn missing(first: u64, last: u64) -> String {
    match first == last {
        true => format!("record {first} is missing"),
        false => format!("records {first} to {last} are missing"),
    }
}
