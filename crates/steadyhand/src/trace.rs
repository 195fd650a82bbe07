//! The spans of a call, as W3C Trace Context names them. Their ids are computed, not kept: a tool is told the
//! span of its attempt, and whoever exports spans finds the same ones from the events, much later.

use std::fmt;

/// A trace and a place in it: the value of a `traceparent` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traceparent {
    /// The trace, never 0.
    pub trace_id: u128,
    /// The span, never 0.
    pub span_id: u64,
    /// Whether whoever began the trace records it.
    pub sampled: bool,
}

impl Traceparent {
    /// Reads one; `None` for anything that the standard would ignore.
    pub fn parse(text: &str) -> Option<Traceparent> {
        let bytes = text.as_bytes();
        let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let (version, rest) = (bytes.get(..2)?, bytes.get(55..)?);
        if !text.is_ascii() || !version.iter().all(is_hex) || version == b"ff" {
            return None;
        }
        // Later versions may add to it, after another hyphen.
        if !rest.is_empty() && (version == b"00" || rest[0] != b'-') {
            return None;
        }
        if [2, 35, 52].iter().any(|hyphen| bytes[*hyphen] != b'-') {
            return None;
        }
        let field = |range: std::ops::Range<usize>| {
            let digits = &text[range];
            let well_formed = digits.bytes().all(|byte| is_hex(&byte));
            well_formed.then(|| u128::from_str_radix(digits, 16).ok())?
        };
        let (trace_id, span_id, flags) = (field(3..35)?, field(36..52)?, field(53..55)?);
        (trace_id != 0 && span_id != 0).then_some(Traceparent {
            trace_id,
            span_id: span_id as u64,
            sampled: flags & 1 == 1,
        })
    }
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace_id,
            self.span_id,
            u8::from(self.sampled)
        )
    }
}

/// Gives the calls of one process their spans: the same ones whenever it is asked.
#[derive(Debug, Clone, Copy)]
pub struct Spans {
    seed: [u64; 2],
}

/// Unlike those of any other process.
impl Default for Spans {
    fn default() -> Spans {
        Spans {
            seed: [fastrand::u64(..), fastrand::u64(..)],
        }
    }
}

impl Spans {
    /// The span of the call of this number ([`Event::Started`](crate::Event::Started)), below the one its
    /// caller names; without one, or with nonsense, it begins a trace.
    pub fn of_call(&self, number: u64, caller: Option<&str>) -> CallSpan {
        let caller = caller.and_then(Traceparent::parse);
        let [high, low] = self.seed;
        let own = || u128::from(mixed(high, number)) << 64 | u128::from(mixed(low, number));
        CallSpan {
            own: Traceparent {
                trace_id: caller.map_or_else(own, |caller| caller.trace_id),
                span_id: mixed(high ^ low, number),
                sampled: caller.is_none_or(|caller| caller.sampled),
            },
            parent: caller.map(|caller| caller.span_id),
        }
    }
}

/// The span of one call, and those of its attempts below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSpan {
    /// The call's own.
    pub own: Traceparent,
    /// The caller's, if it named one.
    pub parent: Option<u64>,
}

impl CallSpan {
    /// The span of an attempt; they are counted from 1.
    pub fn attempt(&self, attempt: u32) -> Traceparent {
        Traceparent {
            span_id: mixed(self.own.span_id, u64::from(attempt)),
            ..self.own
        }
    }
}

/// What a tool hands on: the span of its attempt where spans are recorded, else what the caller sent.
pub(crate) fn for_attempt(
    spans: Option<Spans>,
    number: u64,
    attempt: u32,
    caller: Option<&str>,
) -> Option<Traceparent> {
    match recorded(spans, number, caller) {
        Some(span) => Some(span.attempt(attempt)),
        None => caller.and_then(Traceparent::parse),
    }
}

/// What a call hands on to another call that is made for it.
pub(crate) fn for_call(
    spans: Option<Spans>,
    number: u64,
    caller: Option<&str>,
) -> Option<Traceparent> {
    match recorded(spans, number, caller) {
        Some(span) => Some(span.own),
        None => caller.and_then(Traceparent::parse),
    }
}

/// A span nobody records must not become anyone's parent.
fn recorded(spans: Option<Spans>, number: u64, caller: Option<&str>) -> Option<CallSpan> {
    let span = spans?.of_call(number, caller);
    (number > 0 && span.own.sampled).then_some(span)
}

/// Two numbers as one that looks random (the finish of splitmix64), never 0.
fn mixed(seed: u64, number: u64) -> u64 {
    let mut bits = seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)).max(1)
}
