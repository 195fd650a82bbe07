//! Amazon's event stream, `application/vnd.amazon.eventstream`: binary messages, each with its length, headers and a
//! payload. Bedrock streams in it.

use std::borrow::Cow;

/// The longest message that is read; Amazon's own limit is 16 MiB.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Two lengths and their checksum.
const PRELUDE_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 4;
/// The type of a header's value that is a text.
const TEXT: u8 = 7;

/// It is not in this format, or a message is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotAnEventStream;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// `messageStop`, `chunk`, or the name of an exception.
    pub(super) kind: String,
    pub(super) is_exception: bool,
    pub(super) payload: Vec<u8>,
}

/// Cuts bytes into messages.
#[derive(Debug, Default)]
pub(super) struct Messages {
    buffer: Vec<u8>,
}

impl Messages {
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), NotAnEventStream> {
        if self.buffer.len() + bytes.len() > 2 * MESSAGE_BYTES_MAX {
            return Err(NotAnEventStream);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Whether everything that came belongs to a whole message.
    pub(super) fn is_between(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The next message that is whole.
    pub(super) fn next_message(&mut self) -> Result<Option<Message>, NotAnEventStream> {
        let Some(length) = number(&self.buffer, 0) else {
            return Ok(None);
        };
        if !(PRELUDE_BYTES + CHECKSUM_BYTES..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(NotAnEventStream);
        }
        if self.buffer.len() < length {
            return Ok(None);
        }
        let message = read(&self.buffer[..length]).ok_or(NotAnEventStream)?;
        self.buffer.drain(..length);
        Ok(Some(message))
    }
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_be_bytes(four) as usize)
}

fn read(message: &[u8]) -> Option<Message> {
    let headers_length = number(message, 4)?;
    let headers_end = PRELUDE_BYTES.checked_add(headers_length)?;
    let payload_end = message.len() - CHECKSUM_BYTES;
    let mut headers = message.get(PRELUDE_BYTES..headers_end)?;
    let mut kind = Cow::Borrowed("");
    let mut is_exception = false;
    while let Some((length, rest)) = headers.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (value_type, rest) = rest.split_first()?;
        let (value, rest) = value(*value_type, rest)?;
        headers = rest;
        match name {
            b":event-type" | b":exception-type" | b":error-code" => {
                kind = String::from_utf8_lossy(value);
            }
            b":message-type" => is_exception = value != b"event",
            _ => {}
        }
    }
    Some(Message {
        kind: kind.into_owned(),
        is_exception,
        payload: message.get(headers_end..payload_end)?.to_vec(),
    })
}

/// The value of a header, by its type, and what follows it.
fn value(value_type: u8, rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = match value_type {
        0 | 1 => 0,
        2 => 1,
        3 => 2,
        4 => 4,
        5 | 8 => 8,
        9 => 16,
        6 | TEXT => {
            let (length, rest) = rest.split_at_checked(2)?;
            let length = u16::from_be_bytes(length.try_into().ok()?);
            return rest.split_at_checked(usize::from(length));
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// An exception, as Bedrock sends it in the middle of a stream.
pub(super) fn exception(kind: &str, payload: &[u8]) -> Vec<u8> {
    let mut headers = Vec::new();
    for (name, text) in [
        (":exception-type", kind),
        (":content-type", "application/json"),
        (":message-type", "exception"),
    ] {
        headers.push(name.len() as u8);
        headers.extend_from_slice(name.as_bytes());
        headers.push(TEXT);
        headers.extend_from_slice(&(text.len() as u16).to_be_bytes());
        headers.extend_from_slice(text.as_bytes());
    }
    let length = PRELUDE_BYTES + headers.len() + payload.len() + CHECKSUM_BYTES;
    let mut message = Vec::with_capacity(length);
    message.extend_from_slice(&(length as u32).to_be_bytes());
    message.extend_from_slice(&(headers.len() as u32).to_be_bytes());
    message.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
    message.extend_from_slice(&headers);
    message.extend_from_slice(payload);
    message.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_however_its_bytes_are_cut() {
        let bytes = exception("internalServerException", br#"{"message":"no"}"#);
        let mut messages = Messages::default();
        for byte in &bytes[..bytes.len() - 1] {
            messages.feed(std::slice::from_ref(byte)).expect("short");
            assert_eq!(messages.next_message(), Ok(None));
            assert!(!messages.is_between());
        }
        messages.feed(&bytes[bytes.len() - 1..]).expect("short");
        let message = messages.next_message().expect("a message").expect("whole");
        assert_eq!(message.kind, "internalServerException");
        assert!(message.is_exception);
        assert_eq!(message.payload, br#"{"message":"no"}"#);
        assert!(messages.is_between());
    }

    #[test]
    fn what_is_no_event_stream_is_not_waited_for() {
        let mut messages = Messages::default();
        messages.feed(b"data: {}\n\n").expect("short");
        assert_eq!(messages.next_message(), Err(NotAnEventStream));
    }
}
