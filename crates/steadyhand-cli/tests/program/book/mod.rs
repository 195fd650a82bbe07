//! The book is true: what its pages show is run, loaded and parsed; what is made from the code is as the code is; no link leads nowhere.

mod blocks;
mod codes;
mod commands;
mod fences;
mod links;
mod reference;

use std::path::{Path, PathBuf};

/// The folder of the whole project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All pages, the README first, by their place in the project.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            match path.extension().is_some_and(|kind| kind == "md") {
                true => pages.push(name_of(&path)),
                // The sample is a configuration with its own documents, and no part of the book.
                false if path.is_dir() && !path.ends_with("docs/sample") => folders.push(path),
                false => {}
            }
        }
    }
    pages[1..].sort();
    pages
}

fn name_of(path: &Path) -> String {
    let inside = path.strip_prefix(root()).expect("a file of the project");
    inside.to_string_lossy().replace('\\', "/")
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}
