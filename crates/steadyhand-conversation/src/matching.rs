//! Which result answers which call, within one span of a conversation.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use crate::providers::ids;
use crate::providers::wire::{CallRef, ResultRef, Wire};

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
        // Who needs no ids does not mind if one is there twice; then the name tells.
        if self.calls.len() > 1 && ids::are_optional(wire.provider()) {
            self.match_by_id_and_name();
        }
        self.match_by_id();
        self.match_the_nameless(wire);
    }

    fn match_by_id_and_name(&mut self) {
        let mut open: HashMap<(&str, &str), VecDeque<usize>> = HashMap::new();
        for (index, (_, call)) in self.calls.iter().enumerate() {
            if let Some(id) = call.id {
                open.entry((id, call.name)).or_default().push_back(index);
            }
        }
        for result in 0..self.results.len() {
            let (message, ResultRef { id, name, .. }) = self.results[result];
            let key = id.zip(name);
            let Some(open) = key.and_then(|key| open.get_mut(&key)) else {
                continue;
            };
            let next = open.front().copied();
            if let Some(call) = next.filter(|call| self.calls[*call].0 <= message) {
                open.pop_front();
                self.answer(call, result);
            }
        }
    }

    fn match_by_id(&mut self) {
        let mut by_id = self.by_id();
        for result in 0..self.results.len() {
            let (message, ResultRef { id: Some(id), .. }) = self.results[result] else {
                continue;
            };
            if self.fits[result] != Fit::Orphan {
                continue;
            }
            let (open, known) = match &mut by_id {
                Some(map) => map.get_mut(id).map_or((None, None), |of_id| {
                    let first = of_id.calls.first().copied();
                    let open = of_id.first_open(&self.answers);
                    let is_before = |call: &usize| self.calls[*call].0 <= message;
                    (open.filter(is_before), first.filter(is_before))
                }),
                None => self.scan(id, message),
            };
            match (open, known) {
                (Some(call), _) => self.answer(call, result),
                (None, Some(call)) => self.fits[result] = Fit::Duplicate(call),
                (None, None) => {}
            }
        }
    }

    /// The first call with this id that is open, and the first at all.
    fn scan(&self, id: &str, message: usize) -> (Option<usize>, Option<usize>) {
        let mut known = None;
        let mut optional = None;
        for (index, (at, call)) in self.calls.iter().enumerate() {
            if call.id != Some(id) || *at > message {
                continue;
            }
            known = known.or(Some(index));
            match self.answers[index] {
                None if call.needs_result => return (Some(index), known),
                None => optional = optional.or(Some(index)),
                Some(_) => {}
            }
        }
        (optional, known)
    }

    fn match_the_nameless(&mut self, wire: &dyn Wire) {
        let is_free = |fit: &Fit| *fit == Fit::Orphan;
        if !self.fits.iter().any(is_free) {
            return;
        }
        // A result with an id nobody has is not meant for a call with another one, if there is a choice.
        if wire.matches_by_name() {
            let calls = self.open_calls(|call| call.id.is_none().then_some(call.name));
            self.match_in_order(calls, |result| result.name.filter(|_| result.id.is_some()));
        }
        let by_name = |result: ResultRef<'a>| result.id.is_none() || wire.matches_by_name();
        let calls = self.open_calls(|call| Some(call.name));
        self.match_in_order(calls, |result| result.name.filter(|_| by_name(result)));
        let calls = self.open_calls(|_| Some(""));
        self.match_in_order(calls, |result| {
            (by_name(result) && result.name.is_none()).then_some("")
        });
    }

    /// Gives each free result the first open call under its key.
    fn match_in_order(
        &mut self,
        mut open: HashMap<&'a str, VecDeque<usize>>,
        key: impl Fn(ResultRef<'a>) -> Option<&'a str>,
    ) {
        for result in 0..self.results.len() {
            let (message, found) = self.results[result];
            let key = key(found).filter(|_| self.fits[result] == Fit::Orphan);
            let Some(open) = key.and_then(|key| open.get_mut(key)) else {
                continue;
            };
            let next = open.front().copied();
            // The calls are in their order, so none of the others is before the result either.
            if let Some(call) = next.filter(|call| self.calls[*call].0 <= message) {
                open.pop_front();
                self.answer(call, result);
            }
        }
    }

    /// The calls without an answer, in their order, under the key of each.
    fn open_calls(
        &self,
        key: impl Fn(CallRef<'a>) -> Option<&'a str>,
    ) -> HashMap<&'a str, VecDeque<usize>> {
        let mut open: HashMap<&str, VecDeque<usize>> = HashMap::new();
        for (index, (_, call)) in self.calls.iter().enumerate() {
            let key = key(*call).filter(|_| self.answers[index].is_none());
            if let Some(key) = key {
                open.entry(key).or_default().push_back(index);
            }
        }
        open
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
        // Calls that must have a result come first to it.
        for needs_result in [true, false] {
            for (index, (_, call)) in self.calls.iter().enumerate() {
                if let Some(id) = call.id.filter(|_| call.needs_result == needs_result) {
                    map.entry(id).or_default().calls.push(index);
                }
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

impl OfId {
    fn first_open(&mut self, answers: &[Option<usize>]) -> Option<usize> {
        while let Some(call) = self.calls.get(self.next).copied() {
            if answers[call].is_none() {
                return Some(call);
            }
            self.next += 1;
        }
        None
    }
}
