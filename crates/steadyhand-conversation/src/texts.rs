//! The words a repair puts into a conversation: true, short, and always the same.

use serde_json::Value;

use crate::options::Fate;

/// Stands for a message that has no content where the provider wants one.
pub(super) const EMPTY: &str = "(empty message)";
/// Stands for a result that has no content where the provider wants one.
pub(super) const NO_OUTPUT: &str = "(no output)";
/// Stands for the error of a failed call that did not say why.
pub(super) const NO_REASON: &str = "Error: the tool failed without saying why";
/// What follows the model's own words where the model does not go on from there by itself.
pub(super) const CONTINUE: &str = "Continue.";
/// Stands for what was said before a conversation that begins with a call.
pub(super) const NO_BEGINNING: &str = "(the beginning of this conversation is missing)";
/// The name of a call that has none.
pub(super) const NO_NAME: &str = "unknown_tool";
/// The key under which arguments that are no object are kept.
pub(super) const UNREADABLE: &str = "unreadable_arguments";

const NEVER_RAN: &str = "Error: this call was never run.";
const MAY_HAVE_RUN: &str = "Error: this call was started and its outcome is not known; the tool may have run. Check before repeating it.";
const CANCELLED: &str =
    "Error: this call was cancelled before its result came; what it had done by then is not known.";
const LOST: &str = "Error: the result of this call is missing from the conversation; the tool may or may not have run.";
const CUT_OFF: &str =
    "Error: this call was never run: its arguments broke off before they were complete.";

/// What a placeholder says.
pub(super) fn placeholder(fate: Fate) -> &'static str {
    match fate {
        Fate::NeverRan => NEVER_RAN,
        Fate::MayHaveRun => MAY_HAVE_RUN,
        Fate::Cancelled => CANCELLED,
        Fate::Lost => LOST,
    }
}

/// What the placeholder of a call with unfinished arguments says: nobody can have run it.
pub(super) fn cut_off() -> &'static str {
    CUT_OFF
}

/// What a fix says about the placeholder it made.
pub(super) fn fate_in_words(text: &str) -> &'static str {
    match text {
        NEVER_RAN => "was never run",
        MAY_HAVE_RUN => "may have run",
        CANCELLED => "was cancelled",
        CUT_OFF => "was never run because its arguments broke off",
        _ => "may or may not have run",
    }
}

/// Whether a result is one of our own placeholders, which gives way to a real result.
pub(super) fn is_placeholder(text: &str) -> bool {
    [NEVER_RAN, MAY_HAVE_RUN, CANCELLED, LOST, CUT_OFF].contains(&text)
}

/// An error in words: `Error: <message>`.
pub(super) fn error(message: &str) -> String {
    if message.is_empty() {
        NO_REASON.to_owned()
    } else if message.starts_with("Error: ") {
        message.to_owned()
    } else {
        format!("Error: {message}")
    }
}

/// The first line of a result that is kept as text.
pub(super) fn orphan_mark(id: Option<&str>, name: Option<&str>, why: Why) -> String {
    let tool = name
        .filter(|name| !name.is_empty())
        .map_or(String::new(), |name| format!(" of the tool {name}"));
    let call = id
        .filter(|id| !id.is_empty())
        .map_or(String::new(), |id| format!(" for the call {id}"));
    let why = match why {
        Why::NoCall => "there is no such call here",
        Why::Late => "it came too late: the conversation had gone on without it",
        Why::Duplicate => "the call had another result already",
    };
    format!("[A result{tool}{call}; {why}]")
}

/// Why a result is kept as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    NoCall,
    Late,
    Duplicate,
}

/// A call that stands where no call may, as text.
pub(super) fn stray_call(name: &str, arguments: &Value) -> String {
    format!("[A call of the tool {name} with {arguments}]")
}

/// What a value says as a text: a string as it is, anything else as JSON.
pub(super) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
