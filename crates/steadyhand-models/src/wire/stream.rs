//! Puts a stream together: bytes in, pieces told as they come, the response it amounts to at the end.

use serde_json::Value;
use steadyhand::with_exact_integers;
use steadyhand_conversation::ThinkingFilter;
use steadyhand_conversation::client::StreamReader;

use super::events::{Line, Lines, TooLong};
use super::refusal;
use crate::error::{ModelError, ModelErrorKind};
use crate::model::Told;
use crate::settings::Dialect;

/// Puts the stream of one answer together. Pure: it can be cut anywhere.
///
/// ```
/// use steadyhand_models::{Dialect, Told, wire::Assembler};
///
/// let mut assembler = Assembler::new(Dialect::Ollama, 1 << 20);
/// let line = br#"{"message":{"role":"assistant","content":"Hi"},"done":true,"done_reason":"stop"}"#;
/// let mut told = Vec::new();
/// assembler.push(&line[..20], &mut |piece| told.push(piece)).unwrap();
/// assembler.push(&line[20..], &mut |piece| told.push(piece)).unwrap();
/// assembler.push(b"\n", &mut |piece| told.push(piece)).unwrap();
/// assert_eq!(told, [Told::Text("Hi".into())]);
/// assert_eq!(assembler.finish(&mut |_| {}).unwrap()["done_reason"], "stop");
/// ```
#[derive(Debug)]
pub struct Assembler {
    dialect: Dialect,
    lines: Lines,
    /// The data of the event that is being read.
    event: Vec<u8>,
    so_far: Box<dyn StreamReader>,
    thinking: ThinkingFilter,
    bytes_left: usize,
    bytes_max: usize,
}

impl Assembler {
    /// For one answer of at most so many bytes.
    pub fn new(dialect: Dialect, bytes_max: usize) -> Assembler {
        Assembler {
            dialect,
            lines: Lines::new(bytes_max),
            event: Vec::new(),
            so_far: dialect.client().stream_reader(),
            thinking: ThinkingFilter::default(),
            bytes_left: bytes_max,
            bytes_max,
        }
    }

    /// Takes in what has come.
    ///
    /// # Errors
    ///
    /// Where the provider reports one, or sends something that is not its protocol, or too much.
    pub fn push(&mut self, bytes: &[u8], tell: &mut dyn FnMut(Told)) -> Result<(), ModelError> {
        self.bytes_left = self
            .bytes_left
            .checked_sub(bytes.len())
            .ok_or_else(|| self.too_large())?;
        self.lines.feed(bytes).map_err(|TooLong| self.too_large())?;
        let thinking = &mut self.thinking;
        let tell = &mut |told: Told| thinking.take(told, tell);
        while let Some(line) = self.lines.next_line() {
            if self.dialect.client().streams_lines() {
                take(self.dialect, self.so_far.as_mut(), line, tell)?;
                continue;
            }
            match Line::of(line) {
                Line::Data(data) => {
                    if !self.event.is_empty() {
                        self.event.push(b'\n');
                    }
                    self.event.extend_from_slice(data);
                }
                Line::End => {
                    let event = std::mem::take(&mut self.event);
                    take(self.dialect, self.so_far.as_mut(), &event, tell)?;
                }
                Line::Event(_) | Line::Other => {}
            }
        }
        Ok(())
    }

    /// Whether all has come that belongs to the answer.
    pub fn is_complete(&self) -> bool {
        self.so_far.is_complete()
    }

    /// The stream has ended: the response, as it would have come at once.
    ///
    /// # Errors
    ///
    /// Where it ended too early.
    pub fn finish(mut self, tell: &mut dyn FnMut(Told)) -> Result<Value, ModelError> {
        // Some do not end their last line, or their last event.
        let mut rest = std::mem::take(&mut self.event);
        let line = self.lines.rest();
        match Line::of(line) {
            _ if self.dialect.client().streams_lines() => rest = line.to_vec(),
            Line::Data(data) => rest.extend_from_slice(data),
            Line::Event(_) | Line::Other | Line::End => {}
        }
        // A piece of a line is none of the provider's fault: what is missing is said below.
        if rest.trim_ascii() == b"[DONE]" || serde_json::from_slice::<Value>(&rest).is_ok() {
            let thinking = &mut self.thinking;
            let tell = &mut |told: Told| thinking.take(told, tell);
            take(self.dialect, self.so_far.as_mut(), &rest, tell)?;
        }
        self.thinking.finish(tell);
        if !self.is_complete() {
            let message = format!("the answer of {} broke off", self.dialect);
            return Err(ModelError::new(ModelErrorKind::BrokeOff, message));
        }
        Ok(self.so_far.into_response())
    }

    fn too_large(&self) -> ModelError {
        let message = format!(
            "the answer of {} is larger than {} bytes",
            self.dialect, self.bytes_max
        );
        ModelError::new(ModelErrorKind::TooLarge, message)
    }
}

/// One event, or one line of Ollama's.
fn take(
    dialect: Dialect,
    so_far: &mut dyn StreamReader,
    data: &[u8],
    tell: &mut dyn FnMut(Told),
) -> Result<(), ModelError> {
    let data = data.trim_ascii();
    if data.is_empty() {
        return Ok(());
    }
    if data == b"[DONE]" {
        so_far.done();
        return Ok(());
    }
    let text = String::from_utf8_lossy(data);
    let event: Value = serde_json::from_str(&with_exact_integers(&text)).map_err(|error| {
        let shown = steadyhand::cut::text(&String::from_utf8_lossy(data), 200);
        super::unreadable(
            dialect,
            &format!("{}, in {shown}", steadyhand::plain_words::json(&error)),
        )
    })?;
    // Every event of every provider is an object. Something else says nothing.
    if !event.is_object() {
        return Ok(());
    }
    super::refuse_repeated_name(dialect, &text)?;
    if let Some(said) = error_in(dialect, &event) {
        let message = format!("{dialect} failed in the middle of its answer: {said}");
        return Err(ModelError::new(ModelErrorKind::Provider, message));
    }
    so_far.take(event, tell);
    Ok(())
}

/// The error that an event tells of.
fn error_in(dialect: Dialect, event: &Value) -> Option<String> {
    Some(match dialect.client().error_in_event(event)? {
        Value::Null => "(it did not say why)".to_owned(),
        error => refusal::in_body(dialect, error)
            .unwrap_or_else(|| refusal::refusal(error.to_string().as_bytes())),
    })
}
