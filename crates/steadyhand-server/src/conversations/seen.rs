//! Conversations as others look at them: which there are, and what was said in one, turn by turn, each call with its
//! result. Whoever writes one is not disturbed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::Serialize;
use serde_json::Value;
use steadyhand::Message;
use steadyhand_conversation::{Problem, Provider, What};
use steadyhand_process::private;
use utoipa::ToSchema;

use super::{ENDING, FOLDER, NotFound, is_name, names, proxied};
use steadyhand_store::history::Finding;

/// What is read of the beginning of each for a list, to say what it is about.
const BEGINNING_BYTES: u64 = 16 * 1024;
/// What is read of one: its end, which is what people look for.
const END_BYTES: u64 = 1024 * 1024;
/// Conversations of one list.
pub const LISTED_MAX: usize = 50;
/// What is kept of one text; a model's context holds more, nobody reads it here.
const TEXT_BYTES_MAX: usize = 16 * 1024;
const TITLE_CHARS: usize = 120;
const PROBLEMS_MAX: usize = 20;

/// The conversations there are
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConversationList)]
pub struct Conversations {
    /// How many there are in all
    pub count: usize,
    /// The newest first; at most 50
    pub conversations: Vec<ConversationSummary>,
    /// `before` for those that are older; absent where there are none
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub next: Option<String>,
}

/// Where a conversation was held
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ConversationOrigin)]
pub enum Through {
    /// `steadyhand chat`
    Chat,
    /// The proxy, where `keep_conversations` is set
    Proxy,
}

/// One conversation in a line
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ConversationSummary {
    /// Its name
    pub id: String,
    /// Where it was held
    pub through: Through,
    /// The first that was said
    pub title: String,
    /// The provider, of one through the proxy
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub provider: Option<String>,
    /// The model that was asked, of one through the proxy
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub model: Option<String>,
    /// What was mended in its last request
    pub fixes: usize,
    /// When something was last said, in milliseconds since 1970
    pub changed_ms: u64,
    /// The size of its file
    pub bytes: u64,
}

/// One conversation
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConversationRecord)]
pub struct SeenConversation {
    /// Its name
    pub id: String,
    /// Where it was held
    pub through: Through,
    /// The provider, of one through the proxy
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub provider: Option<String>,
    /// The model that was asked, of one through the proxy
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub model: Option<String>,
    /// Who asked, of one through the proxy
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub caller: Option<String>,
    /// What the provider answered last, of one through the proxy
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub status: Option<u16>,
    /// What was mended in the last request on its way to the provider; the first 50
    pub fixes: Vec<Finding>,
    /// How many fixes there were
    pub fix_count: usize,
    /// When something was last said, in milliseconds since 1970
    pub changed_ms: u64,
    /// The size of its file
    pub bytes: u64,
    /// Bytes at its beginning that are not in this answer
    pub left_out_bytes: u64,
    /// Messages at its beginning that were not kept, of one through the proxy
    pub messages_left_out: usize,
    /// Lines of its file that are no messages
    pub unreadable: usize,
    /// The oldest first
    pub turns: Vec<SeenTurn>,
    /// Calls of tools in it
    pub calls: usize,
    /// Ids of calls that have no result: a provider would refuse this conversation
    pub open_calls: Vec<String>,
    /// What a provider would refuse, or misread
    pub problems: Vec<ConversationProblem>,
}

/// What was said in one go: a question, and everything up to the next
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = ConversationTurn)]
pub struct SeenTurn {
    /// In the order it was said
    pub said: Vec<Said>,
    /// Calls that the model asked for
    pub calls: usize,
    /// Of those, the ones that have a result
    pub results: usize,
}

/// One message
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConversationMessage)]
pub struct Said {
    /// Who said it
    pub by: Speaker,
    /// What; at most 16 KiB of it
    pub text: String,
    /// All of it, in bytes
    pub bytes: usize,
    /// Tools the model asked for, each with what came back
    pub calls: Vec<SeenCall>,
}

/// Who said something
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ConversationSpeaker)]
pub enum Speaker {
    /// What the model is told to be
    System,
    /// A person
    Human,
    /// The model
    Model,
    /// A tool, to a call that is not in what was read
    Tool,
    /// Something else
    Other,
}

/// A call and its result
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConversationCall)]
pub struct SeenCall {
    /// The model's id for it
    pub id: String,
    /// The tool
    pub tool: String,
    /// What the model filled in; a text where it could not be read
    pub arguments: Value,
    /// What the model got; absent where there is none
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub result: Option<SeenResult>,
}

/// What came back
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConversationResult)]
pub struct SeenResult {
    /// At most 16 KiB of it
    pub text: String,
    /// All of it, in bytes
    pub bytes: usize,
    /// Whether the model was told that the call failed
    pub is_error: bool,
}

/// What a provider would refuse, or misread
#[derive(Debug, Serialize, ToSchema)]
pub struct ConversationProblem {
    /// For programs
    pub code: String,
    /// For people
    pub message: String,
}

/// The conversations below this state folder, the one in which something was said last first; or those before a place
/// that an earlier list gave.
///
/// # Errors
///
/// Where the folder is there and cannot be read.
pub fn list(state: &Path, before: Option<&str>) -> io::Result<Conversations> {
    let folder = state.join(FOLDER);
    if let Err(error) = fs::read_dir(&folder)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let kept = state.join(proxied::FOLDER);
    let chats = names(&folder).into_iter().map(|id| (Through::Chat, id));
    let exchanges = names(&kept).into_iter().map(|id| (Through::Proxy, id));
    let mut all: Vec<(String, Through, String)> = chats
        .chain(exchanges)
        .map(|(through, id)| {
            let folder = match through {
                Through::Chat => &folder,
                Through::Proxy => &kept,
            };
            let file = private::open_to_read(&folder.join(format!("{id}.{ENDING}")));
            let changed_ms = file.map_or(0, |file| facts(&file).0);
            (format!("{changed_ms:013}.{id}"), through, id)
        })
        .collect();
    all.sort_unstable_by(|one, other| other.0.cmp(&one.0));
    let count = all.len();
    let mut shown = all;
    shown.retain(|(place, ..)| before.is_none_or(|before| place.as_str() < before));
    let has_more = shown.len() > LISTED_MAX;
    shown.truncate(LISTED_MAX);
    let next = has_more.then(|| shown.last().map(|(place, ..)| place.clone()));
    let conversations = shown.iter().filter_map(|(_, through, id)| match through {
        Through::Chat => summary(&folder, id),
        Through::Proxy => proxied::summary(&kept, id),
    });
    Ok(Conversations {
        count,
        conversations: conversations.collect(),
        next: next.flatten(),
    })
}

/// None where it went away meanwhile.
fn summary(folder: &Path, id: &str) -> Option<ConversationSummary> {
    let file = private::open_to_read(&folder.join(format!("{id}.{ENDING}"))).ok()?;
    let (changed_ms, bytes) = facts(&file);
    let mut beginning = Vec::new();
    file.take(BEGINNING_BYTES)
        .read_to_end(&mut beginning)
        .ok()?;
    let text = String::from_utf8_lossy(&beginning);
    let messages: Vec<Message> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    Some(ConversationSummary {
        id: id.to_owned(),
        through: Through::Chat,
        title: title(&messages),
        provider: None,
        model: None,
        fixes: 0,
        changed_ms,
        bytes,
    })
}

/// The first that a person said.
pub(super) fn title(messages: &[Message]) -> String {
    let said = messages.iter().find_map(|message| match message {
        Message::Human(said) => Some(said.content.text()),
        _ => None,
    });
    said.unwrap_or_default().chars().take(TITLE_CHARS).collect()
}

pub(super) fn facts(file: &File) -> (u64, u64) {
    let Ok(facts) = file.metadata() else {
        return (0, 0);
    };
    let changed = facts.modified().ok();
    let changed = changed.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    (
        changed.map_or(0, |since| since.as_millis() as u64),
        facts.len(),
    )
}

/// What was said in one, as it is now.
///
/// # Errors
///
/// Where there is none of this name, or it cannot be read.
pub fn read(state: &Path, id: &str) -> Result<SeenConversation, NotFound> {
    if !is_name(id) {
        return Err(NotFound::NoSuch(id.to_owned()));
    }
    let path = state.join(FOLDER).join(format!("{id}.{ENDING}"));
    let cannot = |error: io::Error| NotFound::Io(path.clone(), error);
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return proxied::read(state, id),
        Err(error) => return Err(cannot(error)),
    };
    let (changed_ms, bytes) = facts(&file);
    let left_out_bytes = bytes.saturating_sub(END_BYTES);
    file.seek(SeekFrom::Start(left_out_bytes)).map_err(cannot)?;
    let mut end = Vec::new();
    file.take(END_BYTES).read_to_end(&mut end).map_err(cannot)?;
    let text = String::from_utf8_lossy(&end);
    // A line that began before is none.
    let skipped = usize::from(left_out_bytes > 0);
    let (mut messages, mut unreadable) = (Vec::new(), 0);
    for line in text
        .lines()
        .skip(skipped)
        .filter(|line| !line.trim().is_empty())
    {
        match serde_json::from_str::<Message>(line) {
            Ok(message) => messages.push(message),
            Err(_) => unreadable += 1,
        }
    }
    Ok(SeenConversation {
        left_out_bytes,
        problems: match left_out_bytes {
            0 => problems(&messages),
            // Half a conversation has faults that the whole one has not.
            _ => Vec::new(),
        },
        ..conversation(id, changed_ms, bytes, unreadable, turns(&messages))
    })
}

/// One of the chat, of which nothing else is known.
pub(super) fn conversation(
    id: &str,
    changed_ms: u64,
    bytes: u64,
    unreadable: usize,
    turns: Vec<SeenTurn>,
) -> SeenConversation {
    let said = turns.iter().flat_map(|turn| &turn.said);
    let calls: Vec<&SeenCall> = said.flat_map(|said| &said.calls).collect();
    let open_calls = calls.iter().filter(|call| call.result.is_none());
    SeenConversation {
        id: id.to_owned(),
        through: Through::Chat,
        provider: None,
        model: None,
        caller: None,
        status: None,
        fixes: Vec::new(),
        fix_count: 0,
        changed_ms,
        bytes,
        left_out_bytes: 0,
        messages_left_out: 0,
        unreadable,
        open_calls: open_calls.map(|call| call.id.clone()).collect(),
        calls: calls.len(),
        problems: Vec::new(),
        turns,
    }
}

fn problems(messages: &[Message]) -> Vec<ConversationProblem> {
    let Ok(value) = serde_json::to_value(messages) else {
        return Vec::new();
    };
    told(steadyhand_conversation::validate(
        Provider::LangChain,
        What::Match,
        &value,
    ))
}

/// As they are listed.
pub(super) fn told(problems: Vec<Problem>) -> Vec<ConversationProblem> {
    problems
        .into_iter()
        .take(PROBLEMS_MAX)
        .map(|problem| ConversationProblem {
            code: problem.code.as_str().to_owned(),
            message: problem.message,
        })
        .collect()
}

pub(super) fn turns(messages: &[Message]) -> Vec<SeenTurn> {
    let mut results: HashMap<&str, SeenResult> = HashMap::new();
    for message in messages {
        if let Message::Tool(tool) = message {
            let (text, bytes) = bounded(&tool.content.text());
            let is_error = tool.is_error;
            let result = SeenResult {
                text,
                bytes,
                is_error,
            };
            results.insert(&tool.tool_call_id, result);
        }
    }
    let mut turns: Vec<SeenTurn> = Vec::new();
    for message in messages {
        let said = match message {
            Message::System(plain) => said(Speaker::System, &plain.content.text()),
            Message::Human(plain) => said(Speaker::Human, &plain.content.text()),
            Message::Ai(ai) => {
                let mut said = said(Speaker::Model, &ai.content.text());
                let good = ai.tool_calls.iter().map(|call| {
                    let arguments = Value::Object(call.args.clone());
                    (call.id.clone(), call.name.clone(), arguments)
                });
                let bad = ai.invalid_tool_calls.iter().map(|call| {
                    let id = call.id.clone().unwrap_or_default();
                    let arguments = Value::String(call.args.clone().unwrap_or_default());
                    (id, call.name.clone().unwrap_or_default(), arguments)
                });
                said.calls = good
                    .chain(bad)
                    .map(|(id, tool, arguments)| SeenCall {
                        result: results.remove(id.as_str()),
                        id,
                        tool,
                        arguments,
                    })
                    .collect();
                said
            }
            // Shown beside its call; by itself only where that is not there.
            Message::Tool(tool) => match results.remove(tool.tool_call_id.as_str()) {
                Some(result) => Said {
                    by: Speaker::Tool,
                    text: result.text,
                    bytes: result.bytes,
                    calls: Vec::new(),
                },
                None => continue,
            },
            Message::Other(other) => said(Speaker::Other, &other.kind),
        };
        if said.by == Speaker::Human || turns.is_empty() {
            turns.push(SeenTurn::default());
        }
        if let Some(turn) = turns.last_mut() {
            turn.calls += said.calls.len();
            let has_result = |call: &&SeenCall| call.result.is_some();
            turn.results += said.calls.iter().filter(has_result).count();
            turn.said.push(said);
        }
    }
    turns
}

fn said(by: Speaker, text: &str) -> Said {
    let (text, bytes) = bounded(text);
    Said {
        by,
        text,
        bytes,
        calls: Vec::new(),
    }
}

fn bounded(text: &str) -> (String, usize) {
    let end = text.floor_char_boundary(TEXT_BYTES_MAX);
    (text[..end].to_owned(), text.len())
}
