//! The memory a server takes by what it sends. All that may grow is accounted for in bytes, in the budget of the server
//! and with it in the one of the process; what is small enough to be nobody's trouble is not.

use std::ops::Deref;

use serde_json::value::RawValue;
use steadyhand::{BudgetExceeded, ByteBudget, ReservedBytes};

/// What one server may take, in total: its lists twice, while they are read anew, or a dozen of the largest answers.
pub(crate) const SERVER_BYTES_MAX: usize = 192 * 1024 * 1024;
/// Answers up to this size are not accounted for: their number is bounded by the calls that wait for them.
const SMALL_ANSWER_BYTES: usize = 16 * 1024;
/// The same for what is read and not yet whole: one for each connection.
const SMALL_BUFFER_BYTES: usize = 64 * 1024;
/// What a value, a member or an element of JSON takes once it is read.
const NODE_BYTES: usize = 96;

/// An answer, with the memory that is reserved for it.
#[derive(Debug)]
pub(crate) struct HeldJson {
    json: Box<RawValue>,
    _held: Option<ReservedBytes>,
}

impl HeldJson {
    /// Makes room for a text and copies it.
    pub(crate) fn copy(memory: &ByteBudget, json: &RawValue) -> Result<HeldJson, BudgetExceeded> {
        let bytes = json.get().len();
        let held = match bytes > SMALL_ANSWER_BYTES {
            true => Some(memory.reserve(bytes)?),
            false => None,
        };
        Ok(HeldJson {
            json: json.to_owned(),
            _held: held,
        })
    }

    /// The text alone; what was reserved for it is given back.
    pub(crate) fn into_json(self) -> Box<RawValue> {
        self.json
    }
}

/// Of our own, or accounted for elsewhere.
impl From<Box<RawValue>> for HeldJson {
    fn from(json: Box<RawValue>) -> HeldJson {
        HeldJson { json, _held: None }
    }
}

impl Deref for HeldJson {
    type Target = RawValue;

    fn deref(&self) -> &RawValue {
        &self.json
    }
}

/// A buffer that grows while something is read into it.
pub(crate) struct HeldBuffer(ReservedBytes);

impl HeldBuffer {
    pub(crate) fn new(memory: &ByteBudget) -> HeldBuffer {
        HeldBuffer(memory.nothing())
    }

    /// The buffer has so many bytes now.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        let wanted = match bytes > SMALL_BUFFER_BYTES {
            true => bytes,
            false => 0,
        };
        self.0.shrink_to(wanted);
        self.0.grow(wanted - self.0.bytes())
    }
}

/// Room for reading a text of JSON into values; none is needed for a small one.
pub(crate) fn room_to_read(
    memory: &ByteBudget,
    json: &str,
) -> Result<Option<ReservedBytes>, BudgetExceeded> {
    if json.len() <= SMALL_ANSWER_BYTES {
        return Ok(None);
    }
    memory
        .reserve(json.len() + nodes(json) * NODE_BYTES)
        .map(Some)
}

/// How many values, members and elements a text of JSON has, give or take a few: `[0,0,0]` of 16 MB has eight million.
pub(crate) fn nodes(json: &str) -> usize {
    let bytes = json.as_bytes();
    let (mut at, mut count) = (0, 1);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b',' | b':' | b'[' | b'{' => count += 1,
            b'"' => at = end_of_text(bytes, at),
            _ => {}
        }
    }
    count
}

/// Where a text ends whose opening quote is behind us.
fn end_of_text(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        match bytes[at] {
            b'"' => return at + 1,
            _ => at += 2,
        }
    }
    bytes.len()
}
