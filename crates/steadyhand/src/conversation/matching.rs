//! Which result answers which call, within one span of a conversation.

use std::collections::HashMap;

use serde_json::Value;

use super::wire::{CallRef, ResultRef, Wire};

/// From this many pairs on, calls are found by a map.
const PAIRS_SCANNED_MAX: usize = 256;

/// The model's messages of one turn and what follows them, up to the model's next turn: what went to the
/// model as the news of one request. Repair never looks further, so what was sent stays as it was.
pub(super) struct Span<'a> {
    pub(super) calls: Vec<(usize, CallRef<'a>)>,
    pub(super) results: Vec<(usize, ResultRef<'a>)>,
    /// For each call the result that answers it.
    pub(super) answers: Vec<Option<usize>>,
    /// For each result what it is.
    pub(super) fits: Vec<Fit>,
}

/// What a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// It answers this call.
    Answers(usize),
    /// It answers this call, which has an answer.
    Duplicate(usize),
    /// It answers none of the span.
    Orphan,
}

impl<'a> Span<'a> {
    /// Reads the calls and results of a span. `first` is the index of its first message; the model's end
    /// at `model_end`.
    pub(super) fn read(
        wire: &dyn Wire,
        messages: &'a [Value],
        first: usize,
        model_end: usize,
    ) -> Span<'a> {
        let mut calls = Vec::new();
        let mut results = Vec::new();
        let mut some_calls = Vec::new();
        let mut some_results = Vec::new();
        for (offset, message) in messages.iter().enumerate() {
            if first + offset < model_end {
                wire.calls(message, &mut some_calls);
                calls.extend(some_calls.drain(..).map(|call| (first + offset, call)));
            }
            wire.results(message, &mut some_results);
            results.extend(
                some_results
                    .drain(..)
                    .map(|result| (first + offset, result)),
            );
        }
        let answers = vec![None; calls.len()];
        let fits = vec![Fit::Orphan; results.len()];
        let mut span = Span {
            calls,
            results,
            answers,
            fits,
        };
        span.match_up(wire);
        span
    }

    /// By id first, in the order of the calls where an id is there twice; then by name; then what is left.
    fn match_up(&mut self, wire: &dyn Wire) {
        let mut by_id = self.by_id();
        for result in 0..self.results.len() {
            let (message, ResultRef { id: Some(id), .. }) = self.results[result] else {
                continue;
            };
            let (open, known) = match &mut by_id {
                Some(map) => map.get_mut(id).map_or((None, None), |of_id| {
                    let first = of_id.calls.first().copied();
                    let open = of_id.calls.get(of_id.next).copied();
                    let open = open.filter(|call| self.calls[*call].0 <= message);
                    of_id.next += usize::from(open.is_some());
                    (open, first.filter(|call| self.calls[*call].0 <= message))
                }),
                None => self.scan(id, message),
            };
            match (open, known) {
                (Some(call), _) => self.answer(call, result),
                (None, Some(call)) => self.fits[result] = Fit::Duplicate(call),
                (None, None) => {}
            }
        }
        self.match_the_nameless(wire);
    }

    /// The first call with this id that is open, and the first at all.
    fn scan(&self, id: &str, message: usize) -> (Option<usize>, Option<usize>) {
        let mut known = None;
        for (index, (at, call)) in self.calls.iter().enumerate() {
            if call.id != Some(id) || *at > message {
                continue;
            }
            if self.answers[index].is_none() {
                return (Some(index), known.or(Some(index)));
            }
            known = known.or(Some(index));
        }
        (None, known)
    }

    fn match_the_nameless(&mut self, wire: &dyn Wire) {
        for with_name in [true, false] {
            // Calls are answered in their order, so what was passed over need not be looked at again.
            let mut next: HashMap<&str, usize> = HashMap::new();
            for result in 0..self.results.len() {
                let (message, ResultRef { id, name, .. }) = self.results[result];
                let is_free = self.fits[result] == Fit::Orphan;
                let by_name = id.is_none() || wire.matches_by_name();
                if !is_free || !by_name || name.is_some() != with_name {
                    continue;
                }
                let start = next.entry(name.unwrap_or_default()).or_default();
                let open = (*start..self.calls.len()).find(|call| {
                    let (at, CallRef { name: of_call, .. }) = self.calls[*call];
                    self.answers[*call].is_none()
                        && at <= message
                        && name.is_none_or(|name| name == of_call)
                });
                *start = open.map_or(self.calls.len(), |call| call + 1);
                if let Some(call) = open {
                    self.answer(call, result);
                }
            }
        }
    }

    fn answer(&mut self, call: usize, result: usize) {
        self.answers[call] = Some(result);
        self.fits[result] = Fit::Answers(call);
    }

    fn by_id(&self) -> Option<HashMap<&'a str, OfId>> {
        if self.calls.len() * self.results.len() <= PAIRS_SCANNED_MAX {
            return None;
        }
        let mut map: HashMap<&str, OfId> = HashMap::with_capacity(self.calls.len());
        for (index, (_, call)) in self.calls.iter().enumerate() {
            if let Some(id) = call.id {
                map.entry(id).or_default().calls.push(index);
            }
        }
        Some(map)
    }
}

/// The calls with one id, and the first of them that is open.
#[derive(Default)]
struct OfId {
    calls: Vec<usize>,
    next: usize,
}
