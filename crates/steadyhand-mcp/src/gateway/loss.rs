//! What a client is told of messages that it did not take in time, and that were dropped.

use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::message::Message;

/// Notifications that are addressed to nobody's request in particular, and of which one was dropped, say so like this.
pub(super) fn params(level: &str, count: u64) -> Box<RawValue> {
    let messages = match count {
        1 => "1 message was dropped, because it was".to_owned(),
        count => format!("{count} messages were dropped, because they were"),
    };
    let data = format!("{messages} not read in time");
    let params = json!({"level": level, "logger": "steadyhand", "data": data});
    to_raw_value(&params).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The same as a message.
pub(super) fn message(level: &str, count: u64) -> Message {
    Message::notification("notifications/message", Some(&params(level, count)))
}
