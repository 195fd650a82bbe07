//! Where the configuration is found: the flag, the variable, here and upwards, the user's own.

use std::path::{Path, PathBuf};

use super::surroundings::Surroundings;

/// The name of the file.
pub const FILE_NAME: &str = "steadyhand.toml";
/// The file beside it that is not committed.
pub const LOCAL_FILE_NAME: &str = "steadyhand.local.toml";
/// The variable that names another file.
pub const VARIABLE: &str = "STEADYHAND_CONFIG";

/// The first that there is of: `--config`, `STEADYHAND_CONFIG`, `./steadyhand.toml` and upwards to the
/// root of the repository, the user's own. None means: nothing is configured.
pub fn find(flag: Option<&Path>, surroundings: &Surroundings) -> Option<Found> {
    if let Some(path) = flag {
        return Some(Found {
            path: surroundings.current.join(path),
            by: "--config".to_owned(),
            is_above: false,
        });
    }
    if let Some(path) = surroundings
        .variable(VARIABLE)
        .ok()
        .filter(|path| !path.is_empty())
    {
        return Some(Found {
            path: surroundings.current.join(path),
            by: format!("${VARIABLE}"),
            is_above: false,
        });
    }
    for folder in surroundings.current.ancestors() {
        let path = folder.join(FILE_NAME);
        if path.is_file() {
            return Some(Found {
                path,
                by: "found here or above".to_owned(),
                is_above: folder != surroundings.current,
            });
        }
        if folder.join(".git").exists() || Some(folder) == surroundings.home.as_deref() {
            break;
        }
    }
    let path = surroundings.config_folder()?.join(FILE_NAME);
    path.is_file().then(|| Found {
        path,
        by: "the user's own".to_owned(),
        is_above: false,
    })
}

/// The file, and what led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Absolute.
    pub path: PathBuf,
    /// For people.
    pub by: String,
    /// It was found in a folder above the one we are in.
    pub is_above: bool,
}
