//! Replaces a `steadyhand.toml`: the new text is checked by the real loader first, then put in place in one step.

use std::fs;
use std::io;
use std::path::Path;

use super::{Configuration, Extensions, Report, Surroundings};

/// Why the file is as it was.
pub enum NotReplaced {
    /// It cannot be written.
    Unwritable(io::Error),
    /// The new text would not be a right configuration.
    Wrong(Report),
}

/// Writes the new text, if it makes a right configuration.
pub fn replace(
    path: &Path,
    text: &str,
    surroundings: &Surroundings,
    extensions: &Extensions,
) -> Result<Configuration, NotReplaced> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = path.parent().unwrap_or(Path::new("."));
    let new = folder.join(format!(".{name}.{}.toml", std::process::id()));
    write_like(path, &new, text).map_err(NotReplaced::Unwritable)?;
    for place in [&new, path] {
        surroundings.trust().hand_on(path, place, text.as_bytes());
    }
    let checked = Configuration::load(Some(&new), surroundings, extensions);
    let replaced = match &checked {
        Ok(_) => fs::rename(&new, path),
        Err(_) => fs::remove_file(&new),
    };
    let configuration = checked.map_err(NotReplaced::Wrong)?;
    replaced.map_err(NotReplaced::Unwritable)?;
    Ok(configuration)
}

/// A file beside another, with its permissions.
fn write_like(old: &Path, new: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = new.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(new, text)?;
    match fs::metadata(old) {
        Ok(old) => fs::set_permissions(new, old.permissions()),
        Err(_) => Ok(()),
    }
}
