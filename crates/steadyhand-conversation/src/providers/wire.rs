//! What the engine of the repair must know of each provider's JSON: where calls and results are.

use serde_json::Value;

use super::Provider;
pub(crate) use super::names::{is_legal_name, legal_name, name_fault};
use crate::host::Host;
use crate::problem::Log;
use crate::texts::as_text;

/// A call as the engine sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallRef<'a> {
    /// Which part of its message it is.
    pub(crate) part: usize,
    pub(crate) id: Option<&'a str>,
    pub(crate) name: &'a str,
    /// Its arguments broke off, so that it cannot have run.
    pub(crate) cut_off: bool,
    /// Its result must be in the conversation; the provider runs some tools itself.
    pub(crate) needs_result: bool,
}

/// A result as the engine sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResultRef<'a> {
    /// Which part of its message it is.
    pub(crate) part: usize,
    pub(crate) id: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
}

/// How results stand to calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Results are parts of the user's turn and lead it; runs of one role are one turn to the provider.
    LeadingParts,
    /// Results are messages that directly follow the message with their calls.
    FollowingMessages,
    /// Results are items anywhere after their calls.
    Anywhere,
}

/// A fault of pairing, for the provider's own words.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault<'a> {
    /// These calls of a message have no result where it belongs.
    Missing { message: usize, ids: &'a [&'a str] },
    /// A result that answers nothing.
    Orphan {
        message: usize,
        part: usize,
        id: &'a str,
    },
    /// A second result.
    Duplicate {
        message: usize,
        part: usize,
        id: &'a str,
        first: usize,
    },
    /// A second call with the same id.
    DuplicateId {
        message: usize,
        part: usize,
        id: &'a str,
    },
}

/// Where a message is: its index, and what a JSON Pointer to it begins with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) base: &'a str,
    pub(crate) index: usize,
}

impl At<'_> {
    pub(crate) fn pointer(&self) -> String {
        format!("{}/{}", self.base, self.index)
    }

    pub(crate) fn field(&self, field: &str) -> String {
        format!("{}/{}/{field}", self.base, self.index)
    }
}

/// One provider's messages, as far as pairing needs them. Parts keep their index until [`Wire::finish`]:
/// what is taken out leaves a null behind.
pub(crate) trait Wire: Sync {
    fn provider(&self) -> Provider;

    fn layout(&self) -> Layout;

    /// Whether results stand before everything else in the turn that has them.
    fn results_lead(&self) -> bool {
        true
    }

    /// Results without an id of a call are matched by name, even if they say an id.
    fn matches_by_name(&self) -> bool {
        false
    }

    /// Whether the model said this.
    fn is_model(&self, message: &Value) -> bool;

    /// Mends what is wrong with one message by itself. What must stand behind the results goes to `behind`.
    fn normalise(&self, message: &mut Value, at: At<'_>, log: &mut Log, behind: &mut Vec<Value>);

    fn calls<'a>(&self, message: &'a Value, found: &mut Vec<CallRef<'a>>);

    fn results<'a>(&self, message: &'a Value, found: &mut Vec<ResultRef<'a>>);

    /// Where a call or result is: what follows the pointer to its message.
    fn part_pointer(&self, message: &Value, part: usize) -> String;

    fn set_call_id(&self, message: &mut Value, part: usize, id: &str);

    /// Takes a result out of its message and leaves a null.
    fn take_result(&self, message: &mut Value, part: usize) -> Value;

    /// A result, to be read.
    fn result<'a>(&self, message: &'a Value, part: usize) -> &'a Value;

    /// A result inside its message.
    fn result_mut<'a>(&self, message: &'a mut Value, part: usize) -> &'a mut Value;

    /// How many parts a message has, those that are null included.
    fn part_count(&self, message: &Value) -> usize;

    /// Whether there is something at this part.
    fn has_part(&self, message: &Value, part: usize) -> bool;

    /// Makes a result answer this call.
    fn address(&self, result: &mut Value, id: Option<&str>, name: &str);

    /// Whether a result already says that it answers this call.
    fn is_addressed(&self, result: ResultRef<'_>, id: Option<&str>, name: &str) -> bool;

    /// What a result says, all of it: what is no text, as JSON.
    fn result_text(&self, result: &Value) -> String;

    /// A result that says this error.
    fn error(&self, id: Option<&str>, name: &str, text: &str) -> Value;

    /// Gives a result that was made the form of the message with its call.
    fn fit(&self, _result: &mut Value, _of_call: &Value) {}

    /// Puts results before everything else in a message, where results lead.
    fn lead(&self, _message: &mut Value, _results: Vec<Value>) {}

    /// The messages that carry these results.
    fn pack(&self, results: Vec<Value>) -> Vec<Value>;

    /// A message of the user that keeps what a result said.
    fn keep_as_text(&self, result: Value, mark: &str) -> Value;

    /// A message of the user that says this.
    fn user(&self, text: &str) -> Value;

    /// Drops the nulls that were left behind. False when nothing is left of the message.
    fn finish(&self, message: &mut Value) -> bool;

    /// Whether nothing is said in a message of the user.
    fn is_empty(&self, message: &Value) -> bool;

    /// What the provider says to a fault.
    fn says(&self, fault: Fault<'_>) -> Option<String>;

    /// What the provider says to a result without a name, where it wants one before all else.
    fn says_to_nameless(&self, _message: usize, _part: usize) -> Option<String> {
        None
    }
}

/// The provider's wire.
pub(crate) fn of(provider: Provider) -> &'static dyn Wire {
    at(provider, Host::Original)
}

/// The wire of a provider, as this host takes it.
pub(crate) fn at(provider: Provider, host: Host) -> &'static dyn Wire {
    provider.rules().wire(host)
}

/// A string field.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// A string field that says something.
pub(crate) fn id<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    text(value, key).filter(|id| !id.is_empty())
}

/// Blocks that nobody else has, and that are no calls or results of the application's.
pub(crate) fn is_only_anthropics(kind: &str) -> bool {
    matches!(
        kind,
        "document" | "search_result" | "tool_reference" | "server_tool_use" | "mcp_tool_use"
    ) || kind.ends_with("_tool_result")
}

/// A mark and what was said under it.
pub(crate) fn joined(mark: &str, said: &str) -> String {
    if said.is_empty() {
        return mark.to_owned();
    }
    format!("{mark}\n{said}")
}

/// What a content says, one line for each part; what is no text, as JSON.
pub(crate) fn content_text(content: Option<&Value>) -> String {
    match content {
        None | Some(Value::Null) => String::new(),
        Some(Value::Array(blocks)) => {
            let words = |block: &Value| {
                let is_text = matches!(
                    text(block, "type"),
                    None | Some("text" | "input_text" | "output_text")
                );
                match text(block, "text").filter(|_| is_text) {
                    Some(text) => text.to_owned(),
                    None => as_text(block),
                }
            };
            let texts: Vec<String> = blocks.iter().map(words).collect();
            texts.join("\n")
        }
        Some(other) => as_text(other),
    }
}
