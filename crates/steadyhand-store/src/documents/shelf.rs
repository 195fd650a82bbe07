//! The collections of documents: their folders, and which files in them are read.

use std::path::{Path, PathBuf};

use steadyhand_config::documents::{DocumentsSettings, Globs, MAIN};

/// Each collection with all its settings; relative folders start at `folder`.
pub(super) fn shelves(settings: &DocumentsSettings, folder: &Path) -> Result<Vec<Shelf>, String> {
    let mut shelves = Vec::new();
    if !settings.folders.is_empty() {
        shelves.push(Shelf {
            name: MAIN.to_owned(),
            roots: roots(&settings.folders, folder),
            include: Globs::new(&settings.include)?,
            exclude: Globs::new(&settings.exclude)?,
            file_bytes_max: settings.max_file.0,
            files_max: settings.max_files as usize,
            watch: settings.watch,
        });
    }
    for (name, own) in &settings.collections {
        shelves.push(Shelf {
            name: name.clone(),
            roots: roots(&own.folders, folder),
            include: Globs::new(own.include.as_ref().unwrap_or(&settings.include))?,
            exclude: Globs::new(own.exclude.as_ref().unwrap_or(&settings.exclude))?,
            file_bytes_max: own.max_file.unwrap_or(settings.max_file).0,
            files_max: own.max_files.unwrap_or(settings.max_files) as usize,
            watch: own.watch.unwrap_or(settings.watch),
        });
    }
    Ok(shelves)
}

/// One collection, ready to be scanned.
#[derive(Debug)]
pub(super) struct Shelf {
    pub(super) name: String,
    pub(super) roots: Vec<Root>,
    pub(super) include: Globs,
    pub(super) exclude: Globs,
    pub(super) file_bytes_max: u64,
    pub(super) files_max: usize,
    pub(super) watch: bool,
}

/// A folder of a collection.
#[derive(Debug)]
pub(super) struct Root {
    /// As the configuration has it: what sources begin with where there are several folders.
    pub(super) shown: String,
    pub(super) path: PathBuf,
}

impl Shelf {
    /// Whether a file of this relative path is to be read.
    pub(super) fn takes(&self, relative: &str) -> bool {
        self.include.set.is_match(relative) && !self.exclude.set.is_match(relative)
    }

    /// Where a passage comes from, as an answer says it.
    pub(super) fn source(&self, root: usize, relative: &str) -> String {
        match self.roots.get(root) {
            Some(root) if self.roots.len() > 1 => format!("{}/{relative}", root.shown),
            _ => relative.to_owned(),
        }
    }

    /// All that decides what the index holds: another text needs another index.
    pub(super) fn fingerprint(&self) -> String {
        let roots: Vec<_> = self.roots.iter().map(|root| &root.path).collect();
        format!(
            "{:?}",
            (
                roots,
                &self.include.globs,
                &self.exclude.globs,
                self.file_bytes_max,
                self.files_max
            )
        )
    }
}

fn roots(folders: &[PathBuf], base: &Path) -> Vec<Root> {
    let root = |folder: &PathBuf| {
        let shown = folder.to_string_lossy().replace('\\', "/");
        let shown = shown.trim_start_matches("./").trim_end_matches('/');
        let joined = base.join(folder);
        Root {
            shown: shown.to_owned(),
            path: std::path::absolute(&joined).unwrap_or(joined),
        }
    };
    folders.iter().map(root).collect()
}
