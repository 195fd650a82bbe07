//! Files and folders that only their owner reads: what we keep. A link that somebody has put in the place of one is not
//! followed, and what others could read is closed to them.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Entries of a state folder that are looked at.
const ENTRIES_MAX: usize = 50_000;
/// No folder of ours is deeper.
const DEPTH_MAX: usize = 4;

/// Makes a folder for what we keep, and those above it. One that is there stays; a link in its place is refused.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let about = match fs::symlink_metadata(folder) {
        Ok(about) => about,
        Err(_) => {
            return DirBuilder::new()
                .recursive(true)
                .mode(FOLDER_MODE)
                .create(folder);
        }
    };
    if about.is_symlink() {
        return Err(is_a_link(folder));
    }
    Ok(())
}

/// Opens a file in a folder of ours as `options` say; one that is made by that is private. What is no file is refused,
/// and so is a folder that is a link.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        refuse_link(folder)?;
    }
    open_in_any_folder(path, options)
}

/// The same in a folder of the user's choice, which may be a link.
pub fn open_in_any_folder(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // A pipe in its place would be waited for.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let opened = options.mode(FILE_MODE).custom_flags(flags).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => is_a_link(path),
        _ => error,
    })?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other(format!("{} is no file", path.display()))),
    }
}

/// Opens one to be read.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().read(true))
}

/// All that a file has, if that is no more than `bytes_max`.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_to_read(path)?;
    file.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    match bytes.len() as u64 > bytes_max {
        true => Err(io::Error::other(format!(
            "{} has more than {bytes_max} bytes",
            path.display()
        ))),
        false => Ok(bytes),
    }
}

/// Puts this in the place of a file, whole or not at all: somebody may look at any moment. `unfinished` is in the same
/// folder.
pub fn replace(path: &Path, unfinished: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let _ = fs::remove_file(unfinished);
    let mut options = OpenOptions::new();
    let mut file = open(unfinished, options.write(true).create_new(true))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let replaced = written.and_then(|()| fs::rename(unfinished, path));
    replaced.inspect_err(|_| {
        let _ = fs::remove_file(unfinished);
    })
}

/// Refuses a link in the place of a file or folder.
pub fn refuse_link(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.is_symlink() => Err(is_a_link(path)),
        _ => Ok(()),
    }
}

/// Closes a folder of ours, with all that is in it, to everybody else. How many files and folders were open to others.
pub fn close_to_others(folder: &Path) -> usize {
    let mut left = ENTRIES_MAX;
    close(folder, DEPTH_MAX, &mut left)
}

fn close(path: &Path, depth: usize, left: &mut usize) -> usize {
    let Ok(about) = fs::symlink_metadata(path) else {
        return 0;
    };
    let kind = about.file_type();
    if kind.is_symlink() || kind.is_socket() || kind.is_fifo() || *left == 0 {
        return 0;
    }
    *left -= 1;
    let mode = about.mode() & 0o7777;
    let is_open = mode & 0o077 != 0;
    let closed = is_open && fs::set_permissions(path, Permissions::from_mode(mode & 0o700)).is_ok();
    let mut count = usize::from(closed);
    if about.is_dir() && depth > 0 {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        for entry in entries {
            count += close(&entry.path(), depth - 1, left);
        }
    }
    count
}

/// Closes the folder itself to everybody else, if it is ours alone: not one that all share, such as `/tmp`. Whether it
/// was open.
pub fn close_folder(folder: &Path) -> bool {
    let Ok(about) = fs::metadata(folder) else {
        return false;
    };
    let mode = about.mode() & 0o7777;
    let is_shared = mode & 0o1002 != 0 || about.uid() != rustix::process::geteuid().as_raw();
    !is_shared
        && mode & 0o077 != 0
        && fs::set_permissions(folder, Permissions::from_mode(mode & 0o700)).is_ok()
}

fn is_a_link(path: &Path) -> io::Error {
    io::Error::other(format!(
        "{} is a symbolic link, which is not followed: put the file or folder itself there, or name another state folder with --state",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use super::{close_to_others, make_folder, open_to_read, read, replace};

    fn mode(path: &Path) -> u32 {
        let about = fs::symlink_metadata(path).expect("it is there");
        about.permissions().mode() & 0o777
    }

    #[test]
    fn s07_what_is_kept_is_private_and_no_link_is_followed() {
        let place = tempfile::tempdir().expect("a folder");
        let (state, other) = (place.path().join("state"), place.path().join("other"));
        fs::write(&other, "of somebody else").expect("a file");
        let folder = state.join("pins");
        let file = folder.join("a.json");
        replace(&file, &folder.join("a.new"), b"1").expect("it is written");
        assert_eq!(
            (mode(&state), mode(&folder), mode(&file)),
            (0o700, 0o700, 0o600)
        );
        // A link in the place of the file is replaced, one beside it is not written through, and none is read.
        fs::remove_file(&file).expect("it goes");
        symlink(&other, &file).expect("a link");
        symlink(&other, folder.join("a.new")).expect("a link");
        let why = open_to_read(&file).expect_err("a link").to_string();
        assert!(why.contains("symbolic link"), "{why}");
        assert!(read(&file, 100).is_err());
        replace(&file, &folder.join("a.new"), b"2").expect("it is written");
        assert_eq!(read(&file, 100).expect("a file"), b"2");
        assert_eq!(fs::read(&other).expect("a file"), b"of somebody else");
        // So is a link in the place of the folder.
        symlink(place.path(), state.join("logins")).expect("a link");
        assert!(make_folder(&state.join("logins")).is_err());
        let inside = state.join("logins").join("x.json");
        fs::write(place.path().join("x.json"), "forged").expect("a file");
        assert!(read(&inside, 100).is_err());
        assert!(replace(&inside, &state.join("logins").join("x.new"), b"3").is_err());
        // The state folder itself may be one.
        symlink(&state, place.path().join("link")).expect("a link");
        let through = place.path().join("link/mcp/x.json");
        replace(&through, &place.path().join("link/mcp/x.new"), b"4").expect("it is written");
    }

    #[test]
    fn s07_what_others_could_read_is_closed_to_them() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("pins");
        fs::create_dir(&folder).expect("a folder");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("a mode");
        let (file, other) = (folder.join("a.json"), place.path().join("other"));
        for path in [&file, &other] {
            fs::write(path, "x").expect("a file");
            fs::set_permissions(path, fs::Permissions::from_mode(0o644)).expect("a mode");
        }
        symlink(&other, folder.join("link")).expect("a link");
        assert_eq!(close_to_others(&folder), 2);
        assert_eq!(
            (mode(&folder), mode(&file), mode(&other)),
            (0o700, 0o600, 0o644)
        );
        assert_eq!(close_to_others(&folder), 0);
    }
}
