//! Reads a streamed answer: its words as they come, and at its end what it amounts to.

use serde_json::Value;
use steadyhand_conversation::Provider;
use steadyhand_models::wire::{Assembler, Line, Lines};
use steadyhand_models::{Dialect, ModelError, ModelErrorKind, Told};

use super::super::tap::{Framing, of_pieces};
use super::super::trouble::Trouble;

/// The largest answer that is put together.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Reads one stream.
pub(super) enum Reader {
    Assembler(Box<Assembler>),
    Pieces(Box<Pieces>),
}

/// Google's pieces are answers of their own.
pub(super) struct Pieces {
    provider: Provider,
    framing: Framing,
    lines: Lines,
    event: Vec<u8>,
    pieces: Vec<Value>,
    bytes: usize,
}

impl Reader {
    pub(super) fn new(provider: Provider, framing: Framing) -> Reader {
        // Tools are run only for whole answers of Bedrock's: its stream is binary.
        if !provider.format().streams_array() {
            let assembler = Assembler::new(Dialect::of(provider), BYTES_MAX);
            return Reader::Assembler(Box::new(assembler));
        }
        Reader::Pieces(Box::new(Pieces {
            provider,
            framing,
            lines: Lines::new(BYTES_MAX),
            event: Vec::new(),
            pieces: Vec::new(),
            bytes: 0,
        }))
    }

    /// Takes in what has come; gives back the words in it.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, Trouble> {
        let mut words = Vec::new();
        match self {
            Reader::Assembler(assembler) => {
                let pushed = assembler.push(bytes, &mut |told| {
                    if let Told::Text(text) = told {
                        words.push(text);
                    }
                });
                pushed.map_err(trouble)?;
            }
            Reader::Pieces(pieces) => pieces.push(bytes, &mut words)?,
        }
        Ok(words)
    }

    /// The stream has ended: what it amounts to, and words that were not told yet.
    pub(super) fn finish(self, provider: Provider) -> Result<(Value, Vec<String>), Trouble> {
        let mut words = Vec::new();
        let answer = match self {
            Reader::Assembler(assembler) => {
                let finished = assembler.finish(&mut |told| {
                    if let Told::Text(text) = told {
                        words.push(text);
                    }
                });
                finished.map_err(|error| match error.kind {
                    ModelErrorKind::BrokeOff => Trouble::Unfinished(provider),
                    _ => trouble(error),
                })?
            }
            Reader::Pieces(pieces) => pieces.finish(&mut words)?,
        };
        Ok((answer, words))
    }
}

impl Pieces {
    fn push(&mut self, bytes: &[u8], words: &mut Vec<String>) -> Result<(), Trouble> {
        self.bytes += bytes.len();
        if self.bytes > BYTES_MAX {
            return Err(Trouble::Garbage("it is too large".to_owned()));
        }
        if self.framing == Framing::Array {
            self.event.extend_from_slice(bytes);
            return Ok(());
        }
        let fed = self.lines.feed(bytes);
        fed.map_err(|_| Trouble::Garbage("a line is too long".to_owned()))?;
        while let Some(line) = self.lines.next_line() {
            match Line::of(line) {
                Line::Data(data) => self.event.extend_from_slice(data),
                Line::End if !self.event.is_empty() => {
                    let piece = read(&self.event)?;
                    self.event.clear();
                    words.extend(texts(&piece));
                    self.pieces.push(piece);
                }
                Line::End | Line::Event(_) | Line::Other => {}
            }
        }
        Ok(())
    }

    fn finish(mut self, words: &mut Vec<String>) -> Result<Value, Trouble> {
        if let Line::Data(data) = Line::of(self.lines.rest()) {
            self.event.extend_from_slice(data);
        }
        if !self.event.is_empty() {
            let rest = match read(&self.event)? {
                Value::Array(pieces) => pieces,
                piece => vec![piece],
            };
            words.extend(rest.iter().flat_map(texts));
            self.pieces.extend(rest);
        }
        let format = self.provider.format();
        let mut pieces = self.pieces.iter();
        let unfinished = Trouble::Unfinished(self.provider);
        if !pieces.any(|piece| format.is_end_mark(piece)) {
            return Err(unfinished);
        }
        of_pieces(self.provider, self.pieces)
            .answer
            .ok_or(unfinished)
    }
}

/// An answer with tool calls that can be read in two ways is not executed.
pub(super) fn refuse_repeated_name(bytes: &[u8]) -> Result<(), Trouble> {
    let repeated = steadyhand_models::wire::repeated_name_beside_calls(bytes);
    repeated.map_or(Ok(()), |repeated| {
        let message = format!("{}. Its tool calls were not run", repeated.message());
        Err(Trouble::Garbage(message))
    })
}

fn read(bytes: &[u8]) -> Result<Value, Trouble> {
    refuse_repeated_name(bytes)?;
    serde_json::from_slice(bytes).map_err(|error| {
        Trouble::Garbage(format!(
            "an event of it is no JSON: {}",
            steadyhand::plain_words::json(&error)
        ))
    })
}

fn texts(piece: &Value) -> Vec<String> {
    let parts = piece.pointer("/candidates/0/content/parts");
    let parts = parts.and_then(Value::as_array).into_iter().flatten();
    parts
        .filter(|part| part["thought"] != true)
        .filter_map(|part| part["text"].as_str())
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
        .collect()
}

fn trouble(error: ModelError) -> Trouble {
    match error.kind {
        ModelErrorKind::Provider => Trouble::BrokeOff(error.message),
        _ => Trouble::Garbage(error.message),
    }
}
