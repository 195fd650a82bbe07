//! Whose a file is: one that somebody else could have written is used only after a person said so.
//!
//! What is looked at is the file that was opened, not its name. Beside it count the folder it stands in, and the folder
//! of every link on the way to it: whoever can write one of those chooses which file is found there.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use super::source_file::plain;

/// Files of others that a person wants to be used. It lasts as long as the program runs, and is for the content that was
/// there when it was given: who can write the file cannot put something else in its place afterwards.
#[derive(Clone, Default)]
pub struct Trust(Arc<Given>);

#[derive(Default)]
struct Given {
    /// `--trust`: every file, as it is when it is read first.
    everything: bool,
    files: Mutex<HashMap<PathBuf, ContentHash>>,
    refused: Mutex<Vec<UntrustedFile>>,
}

type ContentHash = [u8; 32];

/// As much as is read of a configuration.
const EDITED_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Refusals that are kept to be asked about.
const REFUSED_MAX: usize = 32;

/// A file that is not used, because somebody else could have written it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntrustedFile {
    pub path: PathBuf,
    /// Who that is, and how: a clause that follows the name of the file.
    pub reason: String,
    /// What to do, where there is no person to ask.
    pub help: String,
    hash: ContentHash,
}

/// Why a file is not read.
#[derive(Debug)]
pub enum NotRead {
    Unreadable(io::Error),
    /// A folder, a pipe, a device.
    NoFile,
    TooLarge,
    Untrusted(UntrustedFile),
}

/// In words that follow the name of the file.
impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotRead::Unreadable(error) => write!(f, "it cannot be read: {}", plain(error)),
            NotRead::NoFile => f.write_str("it is no file"),
            NotRead::TooLarge => f.write_str("it is too large"),
            NotRead::Untrusted(file) => {
                write!(f, "it is not used: {}; {}", file.reason, file.help)
            }
        }
    }
}

impl Trust {
    /// For a run with `--trust`.
    pub fn in_everything() -> Trust {
        Trust(Arc::new(Given {
            everything: true,
            ..Given::default()
        }))
    }

    /// Reads a file that decides what is run or which secrets are used.
    pub fn read(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, NotRead> {
        let file = open(path).map_err(NotRead::Unreadable)?;
        let about = file.metadata().map_err(NotRead::Unreadable)?;
        if !about.is_file() {
            return Err(NotRead::NoFile);
        }
        if about.len() > bytes_max {
            return Err(NotRead::TooLarge);
        }
        let mut content = Vec::new();
        let read = (&file).take(bytes_max + 1).read_to_end(&mut content);
        read.map_err(NotRead::Unreadable)?;
        if content.len() as u64 > bytes_max {
            return Err(NotRead::TooLarge);
        }
        let doubt = platform::doubt(path, &file).map_err(NotRead::Unreadable)?;
        match doubt {
            None => Ok(content),
            Some((reason, help)) => match self.admit(path, &content, reason, help) {
                Ok(()) => Ok(content),
                Err(untrusted) => Err(NotRead::Untrusted(untrusted)),
            },
        }
    }

    /// The same for a file that is too large to be held as a whole.
    pub fn open(&self, path: &Path, bytes_max: u64) -> Result<Box<dyn Read>, NotRead> {
        let file = open(path).map_err(NotRead::Unreadable)?;
        let about = file.metadata().map_err(NotRead::Unreadable)?;
        if !about.is_file() {
            return Err(NotRead::NoFile);
        }
        if about.len() > bytes_max {
            return Err(NotRead::TooLarge);
        }
        match platform::doubt(path, &file).map_err(NotRead::Unreadable)? {
            None => Ok(Box::new(file.take(bytes_max))),
            // A consent is to what the file has in it now: nothing else may be read.
            Some(_) => Ok(Box::new(Cursor::new(self.read(path, bytes_max)?))),
        }
    }

    /// Reads the private key of a certificate, and says who else can read it, with what ends that.
    pub fn read_private_key(
        &self,
        path: &Path,
        bytes_max: u64,
    ) -> Result<(Vec<u8>, Option<String>), NotRead> {
        let key = self.read(path, bytes_max)?;
        Ok((key, platform::other_readers(path)))
    }

    /// A person wants this file to be used, as it was when it was refused.
    pub fn give(&self, file: &UntrustedFile) {
        self.files().insert(place_of(&file.path), file.hash);
    }

    /// Reads a file of ours that is to be written again, as text. What is put in its place is made from what was trusted.
    pub fn read_to_edit(&self, path: &Path) -> io::Result<String> {
        let content = self.read(path, EDITED_BYTES_MAX).map_err(|why| match why {
            NotRead::Unreadable(error) => error,
            why => io::Error::other(why.to_string()),
        })?;
        String::from_utf8(content).map_err(|error| io::Error::other(error.utf8_error()))
    }

    /// We replace a file ourselves: the new content is trusted where the old one was.
    pub fn hand_on(&self, from: &Path, to: &Path, content: &[u8]) {
        let mut files = self.files();
        if files.contains_key(&place_of(from)) {
            files.insert(place_of(to), hash(content));
        }
    }

    /// What was refused since this was asked last, each file once.
    pub fn take_refused(&self) -> Vec<UntrustedFile> {
        std::mem::take(&mut self.refused())
    }

    fn admit(
        &self,
        path: &Path,
        content: &[u8],
        reason: String,
        help: String,
    ) -> Result<(), UntrustedFile> {
        let hash = hash(content);
        let place = place_of(path);
        let mut files = self.files();
        let known = files.get(&place).copied();
        if known == Some(hash) {
            return Ok(());
        }
        if self.0.everything && known.is_none() {
            files.insert(place, hash);
            return Ok(());
        }
        let untrusted = UntrustedFile {
            path: path.to_owned(),
            reason: match known {
                None => reason,
                Some(_) => format!("{reason}; it was changed since it was trusted"),
            },
            help: match known {
                None => help,
                Some(_) => format!("{help}, and start this program again"),
            },
            hash,
        };
        drop(files);
        let mut refused = self.refused();
        refused.retain(|file| file.path != path);
        if refused.len() < REFUSED_MAX {
            refused.push(untrusted.clone());
        }
        Err(untrusted)
    }

    fn files(&self) -> MutexGuard<'_, HashMap<PathBuf, ContentHash>> {
        self.0.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused(&self) -> MutexGuard<'_, Vec<UntrustedFile>> {
        let refused = &self.0.refused;
        refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a folder is a real one, and nobody but us and root can write it or put another in its place.
pub(super) fn is_ours_alone(folder: &Path) -> bool {
    platform::is_ours_alone(folder)
}

/// Our home folder as the list of users has it.
pub(super) fn home_of_this_user() -> Option<PathBuf> {
    platform::home_of_this_user()
}

/// The same file by another name is the same file.
fn place_of(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn hash(content: &[u8]) -> ContentHash {
    Sha256::digest(content).into()
}

/// A pipe in the place of a file does not hold us up.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    options.open(path)
}

#[cfg(not(unix))]
mod platform {
    use std::fs::File;
    use std::io;
    use std::path::{Path, PathBuf};

    /// Owners and modes are a matter of Unix.
    pub(super) fn doubt(_: &Path, _: &File) -> io::Result<Option<(String, String)>> {
        Ok(None)
    }

    pub(super) fn other_readers(_: &Path) -> Option<String> {
        None
    }

    pub(super) fn is_ours_alone(folder: &Path) -> bool {
        folder.is_dir()
    }

    pub(super) fn home_of_this_user() -> Option<PathBuf> {
        None
    }
}

#[cfg(unix)]
mod platform {
    use std::collections::VecDeque;
    use std::ffi::OsString;
    use std::fs::{self, File, Metadata};
    use std::io;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Component, Path, PathBuf};

    use crate::accounts::Accounts;

    /// As many links as Linux follows.
    const LINKS_MAX: usize = 40;
    const STICKY: u32 = 0o1000;
    const FOR_ANYONE: u32 = 0o002;
    const FOR_ITS_GROUP: u32 = 0o020;
    const READ_BY_ANYONE: u32 = 0o004;
    const READ_BY_ITS_GROUP: u32 = 0o040;

    /// Why the file could be somebody else's work, and what to do about it; nothing where it could not.
    pub(super) fn doubt(path: &Path, file: &File) -> io::Result<Option<(String, String)>> {
        let accounts = Accounts::of_this_process();
        let about = file.metadata()?;
        if let Some(found) = doubt_of_file(path, &about, &accounts) {
            return Ok(Some(found));
        }
        let way = Way::to(path)?;
        // The name leads to another file now than when it was opened: somebody is at work there.
        if (way.end.dev(), way.end.ino()) != (about.dev(), about.ino()) {
            let reason = "it was replaced while it was read".to_owned();
            return Ok(Some((reason, "Try again".to_owned())));
        }
        for link in &way.links {
            let about = fs::symlink_metadata(link)?;
            if !accounts.are_ours(about.uid()) {
                let owner = accounts.user(about.uid());
                let link = link.display();
                let reason = format!(
                    "the link {link} on the way to it belongs to {owner}, {}",
                    whose(&accounts)
                );
                let help = format!("{TRUST_IT}, or name the file without the link");
                return Ok(Some((reason, help)));
            }
        }
        for folder in way.folders() {
            if let Some(found) = doubt_of_folder(folder, &accounts)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Who else can read a private key. The group of one that belongs to root may: that is how programs that do not run as
    /// root get theirs (Debian's group ssl-cert, secrets of systemd).
    pub(super) fn other_readers(path: &Path) -> Option<String> {
        let about = fs::metadata(path).ok()?;
        let mode = about.mode() & 0o7777;
        let accounts = Accounts::of_this_process();
        let group_may = about.uid() == 0 || accounts.is_private_group(about.gid(), about.uid());
        let who = match mode {
            mode if mode & READ_BY_ANYONE != 0 => "everybody".to_owned(),
            mode if mode & READ_BY_ITS_GROUP != 0 && !group_may => {
                format!("everybody in the group {}", accounts.group(about.gid()))
            }
            _ => return None,
        };
        let shown = path.display();
        Some(format!(
            "{shown} is a private key, and {who} can read it (mode {mode:04o}). Keep others from it: chmod 600 {shown}"
        ))
    }

    pub(super) fn is_ours_alone(folder: &Path) -> bool {
        let accounts = Accounts::of_this_process();
        let is_real = |path: &Path| fs::symlink_metadata(path).is_ok_and(|about| about.is_dir());
        let is_sound = |path: &Path| matches!(doubt_of_folder(path, &accounts), Ok(None));
        let is_safe = |path: &Path| is_real(path) && is_sound(path);
        is_safe(folder)
            && folder
                .parent()
                .is_some_and(|above| is_safe(above) && above.parent().is_none_or(is_sound))
    }

    pub(super) fn home_of_this_user() -> Option<PathBuf> {
        let accounts = Accounts::of_this_process();
        let home = accounts.home_of(accounts.current)?;
        home.is_absolute().then_some(home)
    }

    const TRUST_IT: &str = "Look at what is in it; to use it all the same, run this with --trust";

    fn whose(accounts: &Accounts) -> String {
        match accounts.current {
            0 => "not to root".to_owned(),
            current => format!("neither to you ({}) nor to root", accounts.user(current)),
        }
    }

    fn doubt_of_file(
        path: &Path,
        about: &Metadata,
        accounts: &Accounts,
    ) -> Option<(String, String)> {
        let shown = path.display();
        let mode = about.mode() & 0o7777;
        let owner = accounts.user(about.uid());
        if !accounts.are_ours(about.uid()) {
            let reason = format!(
                "it belongs to {owner}, {} (mode {mode:04o})",
                whose(accounts)
            );
            let to = accounts.user_name(accounts.current);
            let help = format!("{TRUST_IT}, or make it yours: chown {to} {shown}");
            return Some((reason, help));
        }
        let (who, mode_change) = writers(path, about, accounts)?;
        let reason = format!("{who} can write it (owner {owner}, mode {mode:04o})");
        let help = format!("{TRUST_IT}, or keep others from writing it: {mode_change} {shown}");
        Some((reason, help))
    }

    fn doubt_of_folder(folder: &Path, accounts: &Accounts) -> io::Result<Option<(String, String)>> {
        let about = fs::metadata(folder)?;
        let shown = folder.display();
        let mode = about.mode() & 0o7777;
        let owner = accounts.user(about.uid());
        if !accounts.are_ours(about.uid()) {
            let reason = format!(
                "its folder {shown} belongs to {owner}, {} (mode {mode:04o})",
                whose(accounts)
            );
            let to = accounts.user_name(accounts.current);
            let help = format!("{TRUST_IT}, or make the folder yours: chown {to} {shown}");
            return Ok(Some((reason, help)));
        }
        // In a sticky folder nobody replaces what belongs to another.
        if about.mode() & STICKY != 0 {
            return Ok(None);
        }
        let found = writers(folder, &about, accounts).map(|(who, mode_change)| {
            let reason = format!(
                "{who} can replace it in its folder {shown} (owner {owner}, mode {mode:04o})"
            );
            let help = format!(
                "{TRUST_IT}, or keep others from writing the folder: {mode_change} {shown}"
            );
            (reason, help)
        });
        Ok(found)
    }

    /// Who else can write it, and what would end that.
    fn writers(
        path: &Path,
        about: &Metadata,
        accounts: &Accounts,
    ) -> Option<(String, &'static str)> {
        let mode = about.mode();
        // Volumes of Kubernetes are 0777 and cannot be written by anybody.
        if mode & (FOR_ANYONE | FOR_ITS_GROUP) == 0 || is_read_only(path) {
            return None;
        }
        if mode & FOR_ANYONE != 0 {
            return Some(("everybody".to_owned(), "chmod go-w"));
        }
        // Where there is a list of further users, the group's bits are for all of them.
        if has_access_list(path) {
            let who = "somebody on its access list".to_owned();
            return Some((who, "setfacl -b"));
        }
        let is_private = accounts.is_private_group(about.gid(), about.uid());
        (!is_private).then(|| {
            let who = format!("everybody in the group {}", accounts.group(about.gid()));
            (who, "chmod g-w")
        })
    }

    fn is_read_only(path: &Path) -> bool {
        let about = rustix::fs::statvfs(path);
        about.is_ok_and(|about| about.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
    }

    #[cfg(target_os = "linux")]
    fn has_access_list(path: &Path) -> bool {
        let mut none: [u8; 0] = [];
        let size = rustix::fs::getxattr(path, "system.posix_acl_access", &mut none);
        size.is_ok_and(|size| size > 0)
    }

    #[cfg(not(target_os = "linux"))]
    fn has_access_list(_: &Path) -> bool {
        false
    }

    /// The way that a name leads, link by link.
    struct Way {
        links: Vec<PathBuf>,
        /// The file itself, without a link in its path.
        path: PathBuf,
        end: Metadata,
    }

    impl Way {
        fn to(path: &Path) -> io::Result<Way> {
            let path = std::path::absolute(path)?;
            let mut ahead: VecDeque<OsString> = parts(&path);
            let mut at = PathBuf::from("/");
            let mut links = Vec::new();
            while let Some(part) = ahead.pop_front() {
                if part == ".." {
                    at.pop();
                    continue;
                }
                let next = at.join(&part);
                if !fs::symlink_metadata(&next)?.is_symlink() {
                    at = next;
                    continue;
                }
                if links.len() == LINKS_MAX {
                    return Err(io::Error::other("too many links lead to it"));
                }
                let target = fs::read_link(&next)?;
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                for part in parts(&target).into_iter().rev() {
                    ahead.push_front(part);
                }
                links.push(next);
            }
            let end = fs::symlink_metadata(&at)?;
            Ok(Way {
                links,
                path: at,
                end,
            })
        }

        /// Where a name was looked up that somebody could have replaced.
        fn folders(&self) -> impl Iterator<Item = &Path> {
            let named = self.links.iter().chain([&self.path]);
            named.filter_map(|path| path.parent())
        }
    }

    fn parts(path: &Path) -> VecDeque<OsString> {
        let parts = path.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        });
        parts.collect()
    }
}
