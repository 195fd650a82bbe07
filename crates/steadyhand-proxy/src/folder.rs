//! A folder of small files that only their owner reads: so many, so large, the oldest make room.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use steadyhand_process::private;

/// A bounded folder below the state folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    files_max: usize,
    bytes_max: usize,
}

impl Folder {
    pub fn new(path: PathBuf, files_max: usize, bytes_max: usize) -> Folder {
        Folder {
            path,
            files_max,
            bytes_max,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub fn has(&self, name: &str) -> bool {
        self.path.join(name).exists()
    }

    /// Writes a file whole, in the place of one that has its name.
    pub fn put(&self, name: &str, text: &[u8]) -> io::Result<PathBuf> {
        if text.len() > self.bytes_max {
            return Err(io::Error::other("it is too large to be kept"));
        }
        private::make_folder(&self.path)?;
        let path = self.path.join(name);
        let unfinished = self
            .path
            .join(format!("{name}.{}.new", uuid::Uuid::new_v4()));
        let mut options = OpenOptions::new();
        let mut file = private::open(&unfinished, options.create_new(true).write(true))?;
        let written = file
            .write_all(text)
            .and_then(|()| std::fs::rename(&unfinished, &path));
        if written.is_err() {
            let _ = std::fs::remove_file(&unfinished);
        }
        written?;
        self.make_room();
        Ok(path)
    }

    fn make_room(&self) {
        let entries = std::fs::read_dir(&self.path)
            .into_iter()
            .flatten()
            .flatten();
        let mut files: Vec<_> = entries
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        if files.len() <= self.files_max {
            return;
        }
        files.sort();
        let too_many = files.len() - self.files_max;
        for (_, path) in &files[..too_many] {
            let _ = std::fs::remove_file(path);
        }
    }
}
