//! Conversations on disk: one file each, one message per line, so that a crash loses at most the line being written.

pub mod proxied;
pub mod seen;
mod translate;

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use steadyhand::Message;
use steadyhand_process::private;

const FOLDER: &str = "conversations";
const ENDING: &str = "jsonl";
/// Older ones are taken away when a new one begins.
const KEPT_MAX: usize = 200;
/// More is no conversation that a model could read.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A conversation that grows with what is said. Nobody else writes to it meanwhile.
#[derive(Debug)]
pub struct Stored {
    id: String,
    path: PathBuf,
    file: File,
}

/// A conversation as it was found.
#[derive(Debug)]
pub struct Found {
    /// Where it goes on.
    pub stored: Stored,
    /// What was said.
    pub messages: Vec<Message>,
    /// Lines that were no messages, such as one that a crash cut off. They are left out.
    pub unreadable: usize,
}

/// Why a conversation cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    /// There is none of this name.
    #[error("there is no conversation {0:?}")]
    NoSuch(String),
    /// There is none at all.
    #[error("there is no conversation yet")]
    None,
    /// Another program has it open.
    #[error("conversation {0} is open in another chat")]
    Open(String),
    /// Its file cannot be read.
    #[error("{}: {}", .0.display(), steadyhand_config::document::plain(.1))]
    Io(PathBuf, #[source] io::Error),
}

impl Stored {
    /// A new one below this state folder.
    ///
    /// # Errors
    ///
    /// Where its file cannot be made.
    pub fn begin(state: &Path) -> io::Result<Stored> {
        let folder = state.join(FOLDER);
        private::make_folder(&folder)?;
        forget_the_oldest(&folder);
        let random = uuid::Uuid::new_v4().simple().to_string();
        let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
        let id = format!("{now}-{}", &random[..6]);
        let path = folder.join(format!("{id}.{ENDING}"));
        let file = opened(&path, OpenOptions::new().create_new(true))?;
        let _ = file.try_lock();
        Ok(Stored { id, path, file })
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes down what was said.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub fn append(&mut self, message: &Message) -> io::Result<()> {
        let mut line = serde_json::to_string(message)?;
        line.push('\n');
        self.file.write_all(line.as_bytes())
    }

    /// Another conversation in the place of this one: whole, or as it was.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub fn replace(&mut self, messages: &[Message]) -> io::Result<()> {
        let unfinished = self.path.with_extension("new");
        let _ = std::fs::remove_file(&unfinished);
        let mut file = opened(&unfinished, OpenOptions::new().create_new(true))?;
        file.write_all(text_of(messages)?.as_bytes())?;
        std::fs::rename(&unfinished, &self.path)?;
        let _ = file.try_lock();
        self.file = file;
        Ok(())
    }
}

/// A conversation by its name; without one, the last.
///
/// # Errors
///
/// Where there is none, it is open elsewhere, or cannot be read.
pub fn find(state: &Path, id: Option<&str>) -> Result<Found, NotFound> {
    let folder = state.join(FOLDER);
    let id = match id {
        // Names are parts of paths: what is no name of ours is none at all.
        Some(id) if !is_name(id) => return Err(NotFound::NoSuch(id.to_owned())),
        Some(id) => id.to_owned(),
        None => names(&folder).pop().ok_or(NotFound::None)?,
    };
    let path = folder.join(format!("{id}.{ENDING}"));
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => NotFound::NoSuch(id.clone()),
        _ => NotFound::Io(path.clone(), error),
    };
    let mut file = opened(&path, &mut OpenOptions::new()).map_err(cannot)?;
    if let Err(std::fs::TryLockError::WouldBlock) = file.try_lock() {
        return Err(NotFound::Open(id));
    }
    let mut text = Vec::new();
    let read = (&mut file).take(BYTES_MAX).read_to_end(&mut text);
    read.map_err(|error| NotFound::Io(path.clone(), error))?;
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut messages = Vec::new();
    let mut unreadable = 0;
    for line in lines {
        match serde_json::from_str(line) {
            Ok(message) => messages.push(message),
            Err(_) => unreadable += 1,
        }
    }
    let mut stored = Stored { id, path, file };
    // What comes next must not be glued to half a line.
    if unreadable > 0 || (!text.is_empty() && !text.ends_with('\n')) {
        let path = stored.path.clone();
        stored
            .replace(&messages)
            .map_err(|error| NotFound::Io(path, error))?;
    }
    Ok(Found {
        stored,
        messages,
        unreadable,
    })
}

/// The same in a file of the user's choice.
///
/// # Errors
///
/// Where it cannot be written.
pub fn save(path: &Path, messages: &[Message]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    // A file of the user's own choice, which may be a link.
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.write(true).create(true).truncate(true).open(path)?;
    file.write_all(text_of(messages)?.as_bytes())
}

fn text_of(messages: &[Message]) -> io::Result<String> {
    let mut text = String::new();
    for message in messages {
        text.push_str(&serde_json::to_string(message)?);
        text.push('\n');
    }
    Ok(text)
}

/// What people say is read by nobody else on this machine.
fn opened(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    private::open(path, options.read(true).write(true))
}

/// Their names, the oldest first: they begin with the time.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let id = name.strip_suffix(ENDING)?.strip_suffix('.')?;
        is_name(id).then(|| id.to_owned())
    };
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort();
    names
}

fn is_name(id: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !id.is_empty() && id.len() <= 64 && id.bytes().all(is_part)
}

fn forget_the_oldest(folder: &Path) {
    let names = names(folder);
    let many = (names.len() + 1).saturating_sub(KEPT_MAX);
    for name in &names[..many] {
        let _ = std::fs::remove_file(folder.join(format!("{name}.{ENDING}")));
    }
}
