//! Looks at a streamed answer while it passes: the calls in it are put together and checked when it ends. What is said
//! is not held, so a stream takes the memory of its calls, up to a limit.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use steadyhand_conversation::client::StreamReader;
use steadyhand_conversation::{Code, Problem, Provider, What, validate};
use steadyhand_models::Dialect;
use steadyhand_models::wire::{Assembler, Line, Lines};

use super::aws_events::Messages;
use super::coding::{Decoder, Unreadable};

/// What is held of one stream. The calls of one with more than this are not checked.
const HELD_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of one line, and what is fed at once.
const LINE_BYTES_MAX: usize = 1024 * 1024;
const FED_BYTES_MAX: usize = 64 * 1024;
/// What one piece that passes may amount to once it is decoded: looking at more would take too long.
const DECODED_BYTES_MAX: usize = 1024 * 1024;

/// How a stream is cut into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events.
    Events,
    /// A JSON value a line.
    Lines,
    /// One JSON array that grows: Google's, where nobody asks for events.
    Array,
    /// Amazon's binary messages.
    AwsEvents,
}

/// Looks at one answer.
pub(super) struct Tap {
    provider: Provider,
    framing: Framing,
    has_named_events: bool,
    decoder: Decoder,
    lines: Lines,
    messages: Messages,
    /// The event that is being read.
    event: Vec<u8>,
    so_far: SoFar,
    /// Words are held, too: somebody wants to keep the answer.
    wants_all: bool,
    held: usize,
    has_events: bool,
    /// Lines that belong to no event.
    has_other_lines: bool,
    /// The end mark has come.
    has_ended: bool,
    /// There is too much of it to be put together, or a part of it makes no sense. Its end mark is still looked for.
    is_skipped: bool,
    /// It cannot be read at all: nothing is known of it.
    is_unreadable: bool,
}

enum SoFar {
    Assembler(Box<Assembler>),
    /// Pieces that are answers of their own.
    Pieces(Vec<Value>),
    Array(Vec<u8>),
    NamedEvents(Box<dyn StreamReader>),
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// What is wrong with the calls in it.
    pub(super) problems: Vec<Problem>,
    /// The answer, as it would have come at once; without its words, unless they were wanted.
    pub(super) answer: Option<Value>,
    /// The stream ended without its end mark.
    pub(super) is_unfinished: bool,
}

impl Tap {
    pub(super) fn new(
        provider: Provider,
        framing: Framing,
        decoder: Option<Decoder>,
        wants_all: bool,
    ) -> Tap {
        let format = provider.format();
        let named_events = format.named_event_reader();
        let has_named_events = named_events.is_some();
        let so_far = match (framing, named_events) {
            (Framing::Array, _) => SoFar::Array(Vec::new()),
            _ if format.streams_array() => SoFar::Pieces(Vec::new()),
            (_, Some(reader)) => SoFar::NamedEvents(reader),
            (_, None) => {
                let assembler = Assembler::new(Dialect::of(provider), HELD_BYTES_MAX);
                SoFar::Assembler(Box::new(assembler))
            }
        };
        Tap {
            provider,
            framing,
            has_named_events,
            is_unreadable: decoder.is_none(),
            decoder: decoder.unwrap_or(Decoder::Plain),
            lines: Lines::new(LINE_BYTES_MAX),
            messages: Messages::default(),
            event: Vec::new(),
            so_far,
            wants_all,
            held: 0,
            has_events: false,
            has_other_lines: false,
            has_ended: false,
            is_skipped: false,
        }
    }

    /// Looks for the end mark and for nothing else.
    pub(super) fn for_its_end(mut self) -> Tap {
        self.is_skipped = true;
        self.so_far = SoFar::Pieces(Vec::new());
        self
    }

    pub(super) fn provider(&self) -> Provider {
        self.provider
    }

    /// Looks at what passes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.is_unreadable {
            return;
        }
        let mut decoder = std::mem::replace(&mut self.decoder, Decoder::Plain);
        let mut decoded = 0;
        let looked = decoder.push(bytes, &mut |piece| {
            decoded += piece.len();
            if decoded > DECODED_BYTES_MAX.max(bytes.len()) {
                return Err(Unreadable);
            }
            piece
                .chunks(FED_BYTES_MAX)
                .try_for_each(|piece| self.look(piece))
        });
        self.decoder = decoder;
        if looked.is_err() {
            self.give_up();
        }
    }

    /// What was seen, now that the stream has ended.
    pub(super) fn finish(mut self) -> Seen {
        // Some do not end their last line.
        let rest = self.lines.rest().to_vec();
        if !rest.is_empty() && self.line(&rest).is_err() {
            self.give_up();
        }
        if !self.event.is_empty() && self.take_event().is_err() {
            self.give_up();
        }
        if self.is_unreadable {
            return Seen::default();
        }
        let wants_all = self.wants_all;
        let mut seen = match self.so_far {
            _ if self.is_skipped => Seen::default(),
            SoFar::Assembler(assembler) => match assembler.finish(&mut |_| {}) {
                Ok(answer) => checked(self.provider, answer),
                Err(_) => Seen::default(),
            },
            SoFar::Pieces(pieces) => of_pieces(self.provider, pieces),
            SoFar::NamedEvents(reader) => checked(self.provider, reader.into_response()),
            SoFar::Array(bytes) => match serde_json::from_slice::<Value>(&bytes) {
                Ok(Value::Array(pieces)) => {
                    let mut pieces_seen = pieces.iter();
                    self.has_ended = pieces_seen.any(|one| self.provider.format().is_end_mark(one));
                    of_pieces(self.provider, pieces)
                }
                Ok(answer) => {
                    self.has_ended = true;
                    checked(self.provider, answer)
                }
                Err(_) => Seen::default(),
            },
        };
        let is_stream = self.has_events || !self.has_other_lines;
        seen.is_unfinished = is_stream && !self.has_ended;
        if !wants_all {
            // Words were not held: that there are none says nothing.
            let is_known = |code: Code| !matches!(code, Code::EmptyContent | Code::NoMessages);
            seen.problems.retain(|problem| is_known(problem.code));
        }
        seen
    }

    fn look(&mut self, piece: &[u8]) -> Result<(), Unreadable> {
        if let SoFar::Array(bytes) = &mut self.so_far {
            if bytes.len() + piece.len() > HELD_BYTES_MAX {
                return Err(Unreadable);
            }
            bytes.extend_from_slice(piece);
            return Ok(());
        }
        if self.framing == Framing::AwsEvents {
            return self.look_at_messages(piece);
        }
        self.lines.feed(piece).map_err(|_| Unreadable)?;
        let mut lines = std::mem::replace(&mut self.lines, Lines::new(0));
        let mut looked = Ok(());
        while let (Some(line), true) = (lines.next_line(), looked.is_ok()) {
            looked = self.line(line);
        }
        self.lines = lines;
        looked
    }

    /// Bedrock wraps the events of Anthropic's API; those of Converse have their name beside them.
    fn look_at_messages(&mut self, piece: &[u8]) -> Result<(), Unreadable> {
        self.messages.feed(piece).map_err(|_| Unreadable)?;
        while let Some(message) = self.messages.next_message().map_err(|_| Unreadable)? {
            self.has_events = true;
            let payload = &message.payload;
            if message.is_exception {
                self.has_ended = true;
                self.is_skipped = true;
            } else if self.has_named_events {
                let mut event = format!("{{\"{}\":", message.kind).into_bytes();
                event.extend_from_slice(payload);
                event.push(b'}');
                self.take(&event)?;
            } else if let Ok(wrapped) = serde_json::from_slice::<Value>(payload)
                && let Some(bytes) = wrapped["bytes"].as_str()
                && let Ok(event) = BASE64.decode(bytes)
            {
                self.take(&event)?;
            }
        }
        Ok(())
    }

    /// Whether everything that came belongs to a whole message of Amazon's.
    pub(super) fn is_between_messages(&self) -> bool {
        !self.is_unreadable && self.messages.is_between()
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Unreadable> {
        if self.event.len() + line.len() > LINE_BYTES_MAX {
            return Err(Unreadable);
        }
        if self.framing == Framing::Lines {
            self.event.extend_from_slice(line);
            return self.take_event();
        }
        // Not every body that is taken for a stream is one.
        self.has_other_lines |= !line.starts_with(b":") && Line::of(line) == Line::Other;
        match Line::of(line) {
            Line::Data(data) => {
                self.has_events = true;
                if !self.event.is_empty() {
                    self.event.push(b'\n');
                }
                self.event.extend_from_slice(data);
                Ok(())
            }
            Line::End => self.take_event(),
            Line::Event(_) | Line::Other => Ok(()),
        }
    }

    fn take_event(&mut self) -> Result<(), Unreadable> {
        let mut event = std::mem::take(&mut self.event);
        let taken = self.take(&event);
        // Its memory serves the next one.
        event.clear();
        self.event = event;
        taken
    }

    fn take(&mut self, event: &[u8]) -> Result<(), Unreadable> {
        if event.is_empty() || (!self.wants_all && self.provider.format().brings_words_only(event))
        {
            return Ok(());
        }
        self.has_ended = self.has_ended || self.provider.format().is_end_mark_in(event);
        self.held += event.len();
        self.is_skipped |= self.held > HELD_BYTES_MAX;
        if !self.is_skipped && self.hold(event).is_err() {
            self.is_skipped = true;
        }
        if self.is_skipped {
            self.so_far = SoFar::Pieces(Vec::new());
        }
        Ok(())
    }

    fn hold(&mut self, event: &[u8]) -> Result<(), Unreadable> {
        match &mut self.so_far {
            SoFar::Assembler(assembler) => {
                let mut push = |bytes: &[u8]| {
                    let pushed = assembler.push(bytes, &mut |_| {});
                    pushed.map_err(|_| Unreadable)
                };
                if self.framing == Framing::Lines {
                    push(event)?;
                    return push(b"\n");
                }
                for line in event.split(|byte| *byte == b'\n') {
                    push(b"data: ")?;
                    push(line)?;
                    push(b"\n")?;
                }
                push(b"\n")
            }
            SoFar::Pieces(pieces) => {
                let piece = serde_json::from_slice(event).map_err(|_| Unreadable)?;
                pieces.push(piece);
                Ok(())
            }
            SoFar::NamedEvents(reader) => {
                let event = serde_json::from_slice(event).map_err(|_| Unreadable)?;
                reader.take(event, &mut |_| {});
                Ok(())
            }
            SoFar::Array(_) => Ok(()),
        }
    }

    fn give_up(&mut self) {
        self.is_unreadable = true;
        self.event = Vec::new();
        self.lines = Lines::new(0);
        self.so_far = SoFar::Pieces(Vec::new());
    }
}

/// A whole answer, checked (SPEC R02).
pub(super) fn checked(provider: Provider, answer: Value) -> Seen {
    let mut problems = validate(provider, What::Response, &answer);
    // An error that came with a good status is the provider's own answer.
    problems.retain(|problem| problem.code != Code::ErrorResponse);
    Seen {
        problems,
        answer: Some(answer),
        is_unfinished: false,
    }
}

/// Pieces that are answers of their own: each brings whole calls; together they are one answer.
pub(super) fn of_pieces(provider: Provider, pieces: Vec<Value>) -> Seen {
    let format = provider.format();
    let mut problems = Vec::new();
    let mut whole: Option<Value> = None;
    for piece in pieces {
        if format.has_answer(&piece) {
            problems.extend(checked(provider, piece.clone()).problems);
        }
        match &mut whole {
            None => whole = Some(piece),
            Some(whole) => format.add_piece(whole, piece),
        }
    }
    Seen {
        problems,
        answer: whole,
        is_unfinished: false,
    }
}
