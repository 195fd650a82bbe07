//! A message to a client, ready to be sent.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use steadyhand::{BudgetExceeded, ByteBudget, ReservedBytes};

use crate::wire::{Outgoing, RpcError};

/// A result up to this size is copied into its message; a larger one is sent from where it is.
const COPIED_BYTES_MAX: usize = 16 * 1024;

/// A message, without the end of its line. In pieces, so that a long list is not copied for each client.
#[derive(Debug, Clone)]
pub struct Message(Pieces);

#[derive(Debug, Clone)]
enum Pieces {
    One(Bytes),
    Three([Bytes; 3]),
    Many(Vec<Bytes>),
}

/// Bytes with the memory that is reserved for them, which is given back when the last of them are gone.
struct HeldBytes {
    bytes: Bytes,
    _held: ReservedBytes,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes of an answer that count as memory for as long as there are any of them. Few of them do not.
pub fn held_bytes(bytes: Bytes, memory: &ByteBudget) -> Result<Bytes, BudgetExceeded> {
    if bytes.len() <= COPIED_BYTES_MAX {
        return Ok(bytes);
    }
    let held = memory.reserve(bytes.len())?;
    Ok(Bytes::from_owner(HeldBytes { bytes, _held: held }))
}

impl Message {
    /// A result.
    pub(super) fn result(id: &RawValue, result: Bytes) -> Message {
        let id = id.get();
        if result.len() > COPIED_BYTES_MAX {
            let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":");
            let tail = Bytes::from_static(b"}");
            return Message(Pieces::Three([head.into(), result, tail]));
        }
        let mut text = Vec::with_capacity(result.len() + id.len() + 40);
        text.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        text.extend_from_slice(id.as_bytes());
        text.extend_from_slice(b",\"result\":");
        text.extend_from_slice(&result);
        text.push(b'}');
        Message(Pieces::One(text.into()))
    }

    /// A result whose large part is there already: `start` begins the object, `list` ends it but for the brace.
    pub(super) fn list(id: &RawValue, start: &str, list: Bytes) -> Message {
        let head = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{start}",
            id.get()
        );
        let tail = Bytes::from_static(b"}}");
        Message(Pieces::Three([head.into(), list, tail]))
    }

    pub(super) fn error(id: &RawValue, error: &RpcError) -> Message {
        Message::of(&Outgoing::<RawValue>::response(id, Err(error)))
    }

    pub(super) fn notification(method: &str, params: Option<&RawValue>) -> Message {
        Message::of(&Outgoing::notification(method, params))
    }

    /// A request of ours. The older protocols allow requests without parameters, some clients do not.
    pub(super) fn request(id: u64, method: &str, params: Option<&RawValue>) -> Message {
        let none = RawValue::from_string("{}".to_owned());
        let none = none.unwrap_or_else(|_| RawValue::NULL.to_owned());
        let params = params.unwrap_or(&none);
        Message::of(&Outgoing::request(id, method, params))
    }

    fn of(message: &impl Serialize) -> Message {
        let mut text = Vec::with_capacity(256);
        // What is written here were texts and JSON before, which always serialise.
        let _ = serde_json::to_writer(&mut text, message);
        on_one_line(&mut text);
        Message(Pieces::One(text.into()))
    }

    /// Several messages as one, as the protocol of 2025-03-26 has it.
    pub(super) fn batch(messages: Vec<Message>) -> Message {
        let mut all = Vec::with_capacity(2 * messages.len() + 1);
        for (place, message) in messages.into_iter().enumerate() {
            all.push(Bytes::from_static(if place > 0 { b"," } else { b"[" }));
            match message.into_pieces() {
                Ok(whole) => all.push(whole),
                Err(pieces) => all.extend(pieces),
            }
        }
        all.push(Bytes::from_static(b"]"));
        Message(Pieces::Many(all))
    }

    /// Its bytes, one piece after the other.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        match &self.0 {
            Pieces::One(all) => std::slice::from_ref(all).iter(),
            Pieces::Three(pieces) => pieces.iter(),
            Pieces::Many(pieces) => pieces.iter(),
        }
    }

    /// The same, by move: in one piece where it is in one.
    pub fn into_pieces(self) -> Result<Bytes, Vec<Bytes>> {
        match self.0 {
            Pieces::One(all) => Ok(all),
            Pieces::Three(pieces) => Err(pieces.into()),
            Pieces::Many(pieces) => Err(pieces),
        }
    }

    /// How long it is.
    pub fn len(&self) -> usize {
        self.pieces().map(Bytes::len).sum()
    }

    /// No message is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// JSON of others may be spread over lines; in a text of it, a line break stands for itself only between its parts.
pub(super) fn on_one_line(text: &mut [u8]) {
    if memchr::memchr2(b'\n', b'\r', text).is_none() {
        return;
    }
    for byte in text {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}
