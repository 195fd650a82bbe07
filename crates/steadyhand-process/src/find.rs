//! Finds the file of a program, and where else one is when it is not where it was looked for.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// A program that cannot be found or executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound {
    /// As it was asked for.
    pub name: String,
    /// The PATH that was searched; none when the name is a path.
    pub path: Option<OsString>,
    /// The file itself: the one the name says, or one on PATH that cannot be executed.
    pub file: Option<PathBuf>,
    /// Where such a program is although PATH does not hold it.
    pub elsewhere: Vec<PathBuf>,
    /// What is wrong.
    pub reason: Reason,
}

/// Why a program cannot be executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// There is no such file.
    Missing,
    /// The file is there, but this user may not execute it.
    NotExecutable,
    /// It is a folder.
    IsFolder,
}

/// Where tools put programs without telling PATH, below the home folder. `*` is any folder.
const HOME_PLACES: [&str; 8] = [
    ".nvm/versions/node/*/bin",
    ".volta/bin",
    ".asdf/shims",
    ".local/bin",
    ".cargo/bin",
    ".pyenv/shims",
    ".bun/bin",
    ".deno/bin",
];
/// The same for everyone.
const PLACES: [&str; 3] = ["/usr/local/bin", "/opt/homebrew/bin", "/snap/bin"];

/// The file to execute. A name without a slash is looked for on `path`, whose relative folders start at
/// `folder`, where the program is to run; a path starts at `base`.
pub fn find_command(
    name: &str,
    base: &Path,
    path: &OsStr,
    folder: &Path,
) -> Result<PathBuf, NotFound> {
    find_command_with_home(name, base, path, folder, env::home_dir().as_deref())
}

/// [`find_command`] for a user whose home folder is `home`.
pub fn find_command_with_home(
    name: &str,
    base: &Path,
    path: &OsStr,
    folder: &Path,
    home: Option<&Path>,
) -> Result<PathBuf, NotFound> {
    match name.contains('/') {
        true => at_path(name, &base.join(name), folder),
        false => on_path(name, path, folder, home),
    }
}

fn at_path(name: &str, file: &Path, folder: &Path) -> Result<PathBuf, NotFound> {
    which::which_in(file, None::<&str>, folder).map_err(|_| NotFound {
        name: name.to_owned(),
        path: None,
        elsewhere: Vec::new(),
        reason: match (file.is_dir(), file.exists()) {
            (true, _) => Reason::IsFolder,
            (false, true) => Reason::NotExecutable,
            (false, false) => Reason::Missing,
        },
        file: Some(file.to_owned()),
    })
}

fn on_path(
    name: &str,
    path: &OsStr,
    folder: &Path,
    home: Option<&Path>,
) -> Result<PathBuf, NotFound> {
    which::which_in(name, Some(path), folder).map_err(|_| {
        let folders = env::split_paths(path).map(|entry| folder.join(entry));
        let file = match name.is_empty() {
            true => None,
            false => folders
                .map(|entry| entry.join(name))
                .find(|it| it.is_file()),
        };
        NotFound {
            name: name.to_owned(),
            path: Some(path.to_owned()),
            elsewhere: elsewhere(name, home),
            reason: match file {
                Some(_) => Reason::NotExecutable,
                None => Reason::Missing,
            },
            file,
        }
    })
}

fn elsewhere(name: &str, home: Option<&Path>) -> Vec<PathBuf> {
    let in_home = home
        .into_iter()
        .flat_map(|home| HOME_PLACES.iter().flat_map(|place| folders(home, place)));
    let folders = in_home.chain(PLACES.iter().map(PathBuf::from));
    let is_program = |file: &PathBuf| which::which_in(file, None::<&str>, "/").is_ok();
    let files = folders.map(|folder| folder.join(name));
    files.filter(is_program).collect()
}

/// The folders that a place stands for, of several versions the newest first.
fn folders(home: &Path, place: &str) -> Vec<PathBuf> {
    let Some((above, below)) = place.split_once("/*/") else {
        return vec![home.join(place)];
    };
    let entries = fs::read_dir(home.join(above))
        .into_iter()
        .flatten()
        .flatten();
    let mut versions: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    versions.sort_by_cached_key(|version| std::cmp::Reverse(numbers(version)));
    versions.iter().map(|it| it.join(below)).collect()
}

/// `v22.14.0` as numbers: 9 comes before 22.
fn numbers(version: &Path) -> Vec<u64> {
    let name = version.file_name().unwrap_or_default().to_string_lossy();
    let parts = name.split(|letter: char| !letter.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}
