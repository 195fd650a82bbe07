//! The repair itself: messages are mended one by one, then calls and results are paired span by span.

mod layout;
mod plan;

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use plan::{Plan, Wanted};

use crate::envelope::Envelope;
use crate::host::Host;
use crate::matching::{Fit, Span};
use crate::options::Options;
use crate::place::Places;
use crate::problem::{Code, Log};
use crate::providers::foreign;
use crate::providers::wire::{At, Layout, Wire};
use crate::providers::{Provider, is_reference};

/// Mends a list of messages, or a whole request.
pub(super) fn mend(provider: Provider, options: &Options, value: Value, log: &mut Log) -> Value {
    let mended = mend_once(provider, options, value, log);
    let needs_second_look = provider.rules().needs_second_look(options.served_by());
    match needs_second_look && log.len() > 0 {
        true => mend_once(provider, options, mended, log),
        false => mended,
    }
}

fn mend_once(provider: Provider, options: &Options, value: Value, log: &mut Log) -> Value {
    let (mut envelope, messages) = match Envelope::open(provider, value) {
        Ok(opened) => opened,
        Err(value) => return value,
    };
    envelope.check_key(provider, log);
    let base = envelope.base();
    let mut mended = conversation(provider, options, &envelope, messages, log);
    if let Some(request) = envelope.request_mut() {
        let places = Places {
            base: &base,
            origins: &mended.origins,
        };
        let rules = provider.rules();
        let model = request.get(rules.model_key()).and_then(Value::as_str);
        let model = options.model_or(model).map(str::to_owned);
        let (model, host) = (model.as_deref(), options.served_by());
        rules.mend_request(request, &mut mended.messages, model, host, places, log);
    }
    envelope.close(mended.messages)
}

/// Mends the messages only, whatever request they are in.
pub(super) fn mend_history(
    provider: Provider,
    options: &Options,
    value: Value,
    log: &mut Log,
) -> Value {
    match Envelope::open(provider, value) {
        Ok((envelope, messages)) => {
            envelope.check_key(provider, log);
            let mended = conversation(provider, options, &envelope, messages, log);
            envelope.close(mended.messages)
        }
        Err(value) => {
            if !value
                .get(provider.rules().messages_key())
                .is_some_and(Value::is_string)
            {
                log.found("", Code::NoMessages, "there is no list of messages here");
            }
            value
        }
    }
}

/// Messages, and which of those that were given each of them is, or stands behind.
struct Mended {
    messages: Vec<Value>,
    origins: Vec<usize>,
}

fn conversation(
    provider: Provider,
    options: &Options,
    envelope: &Envelope,
    messages: Vec<Value>,
    log: &mut Log,
) -> Mended {
    let host = options.served_by();
    let rules = provider.rules();
    let wire = rules.wire(host);
    let base = envelope.base();
    let mut behind = HashMap::new();
    let is_empty = messages.is_empty();
    let (messages, given) = foreign::translate(provider, messages, &base, log);
    let (mut messages, given) = rules.rearrange(host, messages, given, &base, log);
    let first_finding = log.len();
    rules.prepare(&mut messages, &base, log);
    for (index, message) in messages.iter_mut().enumerate() {
        let mut extra = Vec::new();
        wire.normalise(message, At { base: &base, index }, log, &mut extra);
        if !extra.is_empty() {
            behind.insert(index, extra);
        }
    }
    rules.settle(host, &mut messages, &base, log);
    let mut pass = Pass {
        wire,
        options,
        base: &base,
        log,
        count: messages.len(),
        out: Vec::with_capacity(messages.len() + 4),
        origins: Vec::with_capacity(messages.len() + 4),
        behind,
        seen: HashSet::new(),
        seen_up_to: 0,
        elsewhere: Elsewhere::of(wire, host, envelope.request(), &messages),
    };
    let is_model: Vec<bool> = messages.iter().map(|one| wire.is_model(one)).collect();
    pass.run(messages);
    let mut mended = Mended {
        messages: pass.out,
        origins: pass.origins,
    };
    if mended.messages.is_empty() && !is_empty {
        // What was left out is told of; a conversation has somebody who says something.
        mended.messages.push(wire.user(crate::texts::EMPTY));
        mended.origins.push(0);
    }
    let Mended { messages, origins } = &mut mended;
    rules.begin(messages, origins, &base, log);
    rules.end(host, messages, origins, &is_model, &base, log);
    if let Some(given) = given {
        let of = |index: usize| given.get(index).map(|one| (one.index, one.is_same));
        log.follow(first_finding, &base, of);
        for origin in &mut mended.origins {
            *origin = of(*origin).map_or(*origin, |(index, _)| index);
        }
    }
    mended
}

/// One way through a conversation.
struct Pass<'a> {
    wire: &'static dyn Wire,
    options: &'a Options,
    base: &'a str,
    log: &'a mut Log,
    /// How many messages were given.
    count: usize,
    out: Vec<Value>,
    origins: Vec<usize>,
    /// What must stand behind the results of the span in which this message is.
    behind: HashMap<usize, Vec<Value>>,
    /// The ids of calls that were before, read only when a result has no call.
    seen: HashSet<String>,
    seen_up_to: usize,
    elsewhere: Elsewhere,
}

impl Pass<'_> {
    fn run(&mut self, mut messages: Vec<Value>) {
        for (start, model_end, end) in spans(self.wire, &messages) {
            self.span(&mut messages[start..end], start, model_end);
        }
    }

    fn span(&mut self, messages: &mut [Value], first: usize, model_end: usize) {
        let span = Span::read(self.wire, messages, first, model_end);
        let has_behind = !self.behind.is_empty()
            && (first..first + messages.len()).any(|index| self.behind.contains_key(&index));
        let wanted = if has_behind {
            Wanted::Always
        } else {
            Wanted::IfSomethingIsWrong
        };
        match Plan::of(self, &span, messages, first, model_end, wanted) {
            Some(plan) => self.lay_out(messages, first, model_end, plan),
            None => self.take_over(messages, first, model_end),
        }
    }

    /// A span with nothing wrong between its calls and results.
    fn take_over(&mut self, messages: &mut [Value], first: usize, model_end: usize) {
        let (models, tail) = messages.split_at_mut(model_end - first);
        for (offset, message) in models.iter_mut().enumerate() {
            self.push(first + offset, message.take());
        }
        let begin = self.out.len();
        for (offset, message) in tail.iter_mut().enumerate() {
            self.push(model_end + offset, message.take());
        }
        self.mend_silence(begin, model_end, tail.len());
    }

    /// Takes over what is left of a message that was given.
    fn push(&mut self, origin: usize, mut message: Value) {
        if self.wire.finish(&mut message) {
            self.put(origin, message);
        }
    }

    /// Takes over a message as it is.
    fn put(&mut self, origin: usize, message: Value) {
        self.out.push(message);
        self.origins.push(origin);
    }

    /// A turn of the user in which nothing at all is said is refused by providers that lead with parts.
    /// `tail` is how many messages it has.
    fn mend_silence(&mut self, begin: usize, model_end: usize, tail: usize) {
        let is_silent = self.out[begin..].iter().all(|one| self.wire.is_empty(one));
        if tail == 0 || !is_silent || self.wire.layout() != Layout::LeadingParts {
            return;
        }
        let rules = self.wire.provider().rules();
        let says = |index: usize| rules.says_to_silence(index);
        self.log
            .found(
                format!("{}/{model_end}", self.base),
                Code::EmptyContent,
                "nothing is said in this turn",
            )
            .says(says(model_end))
            .fixed("a note says that it was empty");
        for index in model_end + 1..model_end + tail {
            if !self.origins.contains(&index) {
                self.log
                    .found(
                        format!("{}/{index}", self.base),
                        Code::EmptyContent,
                        "nothing is said in this message",
                    )
                    .says(says(index))
                    .fixed("it is left out");
            }
        }
        let mut said = self.wire.user(crate::texts::EMPTY);
        if let Some(kept) = self.out.get_mut(begin) {
            if let (Value::Object(said), Value::Object(kept)) = (&mut said, kept.take()) {
                for (key, value) in kept {
                    said.entry(key).or_insert(value);
                }
            }
            self.out[begin] = said;
        } else {
            self.put(model_end, said);
        }
    }

    /// Whether a call with this id was in an earlier span.
    fn was_called(&mut self, id: &str) -> bool {
        let mut calls = Vec::new();
        for message in &self.out[self.seen_up_to..] {
            if self.wire.is_model(message) {
                self.wire.calls(message, &mut calls);
                let ids = calls.drain(..).filter_map(|call| call.id);
                self.seen.extend(ids.map(str::to_owned));
            }
        }
        self.seen_up_to = self.out.len();
        self.seen.contains(id)
    }
}

/// Where each span begins, where the model's part of it ends, and where it ends.
fn spans(wire: &dyn Wire, messages: &[Value]) -> Vec<(usize, usize, usize)> {
    let sides: Vec<bool> = messages.iter().map(|one| wire.is_model(one)).collect();
    let mut spans = Vec::new();
    let mut start = 0;
    while start < messages.len() {
        let model_end = start + run_of(&sides[start..], true);
        let end = model_end + run_of(&sides[model_end..], false);
        spans.push((start, model_end, end));
        start = end;
    }
    spans
}

fn run_of(sides: &[bool], side: bool) -> usize {
    sides.iter().take_while(|one| **one == side).count()
}

/// Pairs that reach over spans, for the one provider that allows it.
#[derive(Default)]
struct Elsewhere {
    /// For each call the output that answers it, and the other way round.
    outputs: HashMap<usize, usize>,
    calls: HashMap<usize, usize>,
    /// Calls may be in a conversation that the provider keeps.
    stored: bool,
    allowed: bool,
}

impl Elsewhere {
    fn of(wire: &dyn Wire, host: Host, request: Option<&Value>, messages: &[Value]) -> Elsewhere {
        let mut elsewhere = Elsewhere::default();
        // DeepSeek finds an output only behind its call.
        if wire.layout() != Layout::Anywhere || host == Host::DeepSeek {
            return elsewhere;
        }
        elsewhere.allowed = true;
        let has = |key| {
            request.is_some_and(|request| request.get(key).is_some_and(|value| !value.is_null()))
        };
        elsewhere.stored =
            has("previous_response_id") || has("conversation") || messages.iter().any(is_reference);
        elsewhere.pair(wire, messages);
        elsewhere
    }

    /// What a span does not match by itself: an output answers the first call from before that has its id.
    fn pair(&mut self, wire: &dyn Wire, messages: &[Value]) {
        let mut open: HashMap<&str, VecDeque<usize>> = HashMap::new();
        for (start, model_end, end) in spans(wire, messages) {
            let span = Span::read(wire, &messages[start..end], start, model_end);
            for (fit, (output, result)) in span.fits.iter().zip(&span.results) {
                let id = result.id.filter(|_| !matches!(fit, Fit::Answers(_)));
                let call = id.and_then(|id| open.get_mut(id)?.pop_front());
                if let Some(call) = call {
                    self.outputs.insert(call, *output);
                    self.calls.insert(*output, call);
                }
            }
            for (answer, (index, call)) in span.answers.iter().zip(&span.calls) {
                if let Some(id) = call.id.filter(|_| answer.is_none()) {
                    open.entry(id).or_default().push_back(*index);
                }
            }
        }
    }

    /// Whether a call that has no output in its span, which ends at `end`, has one later.
    fn will_be_answered(&self, call: usize, end: usize) -> bool {
        self.outputs.get(&call).is_some_and(|output| *output >= end)
    }

    /// Whether an output without a call in its span, which starts at `first`, answers one from before.
    fn is_awaited(&self, output: usize, first: usize) -> bool {
        self.stored || self.calls.get(&output).is_some_and(|call| *call < first)
    }
}
