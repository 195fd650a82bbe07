//! Looks which files a collection has now. Reads names and stamps only, no contents.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ignore::WalkBuilder;

use super::shelf::Shelf;

/// Folders deeper than this are not entered.
const DEPTH_MAX: usize = 32;
/// Files and folders looked at in one scan, taken or not: somebody will name `/` one day.
const LOOKED_AT_MAX: usize = 1_000_000;
/// Folders the system is asked to watch: its own limit is for all programs together.
const WATCHED_MAX: usize = 4_096;
/// Problems that are told; one folder without permission can have thousands.
const PROBLEMS_MAX: usize = 5;

/// What a scan found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) files: Vec<FoundFile>,
    /// The folders they can be in; none where there are too many to be watched.
    pub(super) folders: Vec<PathBuf>,
    /// There were more files than the collection may have.
    pub(super) cut: bool,
    pub(super) problems: Vec<String>,
}

/// A file to be indexed.
#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) root: usize,
    /// Relative to its root, with `/` on every system.
    pub(super) relative: String,
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) stamp: String,
    modified: Option<SystemTime>,
}

impl FoundFile {
    /// Whether it has changed in this time before now.
    pub(super) fn changed_within(&self, span: Duration) -> bool {
        let now = SystemTime::from(jiff::Timestamp::now());
        let since = self.modified.map(|time| now.duration_since(time));
        since.is_some_and(|since| since.is_ok_and(|since| since < span))
    }
}

/// Lists the files of a collection; stops early when told to.
pub(super) fn scan(shelf: &Shelf, stop: &AtomicBool) -> Result<Scan, String> {
    let mut scan = Scan::default();
    let mut looked_at = 0;
    for (index, root) in shelf.roots.iter().enumerate() {
        if let Err(reason) = std::fs::read_dir(&root.path) {
            scan.problems.push(unreadable(&root.path, &reason));
            continue;
        }
        walk(shelf, index, &root.path, stop, &mut looked_at, &mut scan);
    }
    if scan.folders.len() > WATCHED_MAX {
        scan.folders.clear();
    }
    if scan.problems.len() >= shelf.roots.len() && scan.files.is_empty() {
        return Err(scan.problems.swap_remove(0));
    }
    Ok(scan)
}

fn walk(
    shelf: &Shelf,
    index: usize,
    root: &Path,
    stop: &AtomicBool,
    looked_at: &mut usize,
    scan: &mut Scan,
) {
    // Links are not followed, so nothing outside of the folder is reached.
    let exclude = shelf.exclude.set.clone();
    let base = root.to_owned();
    let entries = WalkBuilder::new(root)
        .standard_filters(false)
        .hidden(true)
        .follow_links(false)
        .max_depth(Some(DEPTH_MAX))
        // The same files each time, where there are more than the collection may have.
        .sort_by_file_name(|a, b| a.cmp(b))
        .filter_entry(move |entry| !exclude.is_match(relative(entry.path(), &base)))
        .build();
    for entry in entries {
        *looked_at += 1;
        if stop.load(Ordering::Relaxed) {
            return;
        }
        if *looked_at > LOOKED_AT_MAX {
            scan.cut = true;
            return;
        }
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if scan.problems.len() < PROBLEMS_MAX => {
                scan.problems.push(error.to_string());
                continue;
            }
            Err(_) => continue,
        };
        let Some(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() && scan.folders.len() <= WATCHED_MAX {
            scan.folders.push(entry.path().to_owned());
        }
        if !kind.is_file() {
            continue;
        }
        let relative = relative(entry.path(), root);
        if !shelf.takes(&relative) {
            continue;
        }
        if scan.files.len() >= shelf.files_max {
            scan.cut = true;
            return;
        }
        // Gone since the folder was read: the next scan will not see it either.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        scan.files.push(FoundFile {
            root: index,
            relative,
            path: entry.into_path(),
            size: metadata.len(),
            stamp: stamp(&metadata),
            modified: metadata.modified().ok(),
        });
    }
}

/// Changes whenever the file does, as far as the system tells: on Unix also when the time of
/// change was set back, or another file was moved to its place.
fn stamp(metadata: &Metadata) -> String {
    let modified_ns = metadata
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |since| since.as_nanos());
    #[cfg(unix)]
    let more = {
        use std::os::unix::fs::MetadataExt;
        (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
    };
    #[cfg(not(unix))]
    let more = ();
    format!("{modified_ns} {} {more:?}", metadata.len())
}

fn relative(path: &Path, root: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
    match std::path::MAIN_SEPARATOR {
        '/' => relative.into_owned(),
        separator => relative.replace(separator, "/"),
    }
}

fn unreadable(folder: &Path, reason: &std::io::Error) -> String {
    let folder = folder.display();
    match reason.kind() {
        std::io::ErrorKind::NotFound => format!(
            "the folder {folder} does not exist; create it, or change folders in [documents]"
        ),
        _ => format!(
            "the folder {folder} cannot be read: {reason}; change its permissions, or folders in [documents]"
        ),
    }
}
