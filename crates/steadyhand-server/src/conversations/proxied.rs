//! Conversations that went through the proxy and were kept there (`keep_conversations`): a file each, its first line
//! says what it is, every other one is a message in the provider's own JSON, as it was sent.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use steadyhand_conversation::{self as conversation, Provider, What};
use steadyhand_process::private;

use super::seen::{self, ConversationSummary, SeenConversation, Through};
use super::translate::translated;
use super::{ENDING, NotFound};
use steadyhand_store::history::Finding;

/// Folder in the state folder.
pub const FOLDER: &str = "proxy-conversations";
/// The largest file.
pub const BYTES_MAX: usize = 1024 * 1024;
/// The longest first line: fixes are listed in it.
const HEAD_BYTES_MAX: u64 = 64 * 1024;

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Head {
    /// The name in the proxy's address.
    pub provider: String,
    /// Whose JSON it is.
    pub format: Provider,
    pub model: Option<String>,
    pub caller: Option<String>,
    /// What the provider answered last.
    pub status: u16,
    /// The first that a person said.
    pub title: String,
    /// What was mended in the last request, the first of them.
    pub fixes: Vec<Finding>,
    pub fix_count: usize,
    /// Messages at the beginning that are not in the file.
    pub messages_left_out: usize,
    /// Lines at the end that are the model's last answer.
    pub answered: usize,
}

/// The first that a person said in these messages.
pub fn title(format: Provider, said: &[Value]) -> String {
    seen::title(&translated(format, said))
}

/// None where it went away meanwhile, or is no file of ours.
pub(super) fn summary(folder: &Path, id: &str) -> Option<ConversationSummary> {
    let file = File::open(folder.join(format!("{id}.{ENDING}"))).ok()?;
    let (changed_ms, bytes) = seen::facts(&file);
    let mut line = String::new();
    BufReader::new(file.take(HEAD_BYTES_MAX))
        .read_line(&mut line)
        .ok()?;
    let head: Head = serde_json::from_str(&line).ok()?;
    Some(ConversationSummary {
        id: id.to_owned(),
        through: Through::Proxy,
        title: head.title,
        provider: Some(head.provider),
        model: head.model,
        fixes: head.fix_count,
        changed_ms,
        bytes,
    })
}

/// What was said in one, as it was sent, and the last answer.
pub(super) fn read(state: &Path, id: &str) -> Result<SeenConversation, NotFound> {
    let path = state.join(FOLDER).join(format!("{id}.{ENDING}"));
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => NotFound::NoSuch(id.to_owned()),
        _ => NotFound::Io(path.clone(), error),
    };
    let file = private::open_to_read(&path).map_err(cannot)?;
    let (changed_ms, bytes) = seen::facts(&file);
    let mut text = String::new();
    file.take(BYTES_MAX as u64 + HEAD_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(cannot)?;
    let mut lines = text.lines();
    let head = serde_json::from_str::<Head>(lines.next().unwrap_or_default());
    let head = head.map_err(|error| cannot(io::Error::new(io::ErrorKind::InvalidData, error)))?;
    let (mut said, mut unreadable) = (Vec::new(), 0);
    for line in lines {
        match serde_json::from_str::<Value>(line) {
            Ok(message) => said.push(message),
            Err(_) => unreadable += 1,
        }
    }
    let sent = &said[..said.len().saturating_sub(head.answered)];
    let problems = match head.messages_left_out {
        0 => conversation::validate(head.format, What::Match, &Value::from(sent)),
        // Half a conversation has faults that the whole one has not.
        _ => Vec::new(),
    };
    let turns = seen::turns(&translated(head.format, &said));
    Ok(SeenConversation {
        through: Through::Proxy,
        provider: Some(head.provider),
        model: head.model,
        caller: head.caller,
        status: Some(head.status),
        fixes: head.fixes,
        fix_count: head.fix_count,
        messages_left_out: head.messages_left_out,
        problems: seen::told(problems),
        ..seen::conversation(id, changed_ms, bytes, unreadable, turns)
    })
}
