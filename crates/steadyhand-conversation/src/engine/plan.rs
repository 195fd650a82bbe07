//! What must be done to one span: found by reading only, so that nothing is touched where all is well.

mod places;

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Pass;
use crate::matching::{Fit, Span};
use crate::problem::Code;
use crate::providers::ids;
use crate::providers::wire::{Fault, Layout, ResultRef, text};
use crate::texts::{self, Why};

/// How many ids the provider's words list. Each call that has no result repeats them, so where there are many such
/// calls each lists fewer.
const IDS_TOLD_MAX: usize = 50;

/// What must be done to one span.
pub(super) struct Plan {
    pub(super) calls: Vec<PlannedCall>,
    pub(super) results: Vec<PlannedResult>,
    /// Results that stay are put in the order of their calls.
    pub(super) is_put_in_order: bool,
}

pub(super) struct PlannedCall {
    pub(super) message: usize,
    pub(super) part: usize,
    pub(super) id: Option<String>,
    pub(super) name: String,
    /// The id was another one.
    pub(super) renamed: bool,
    /// Another call of the span has its id and its name.
    pub(super) has_twin: bool,
    /// Another call of the span has its id, and results of it may stand anywhere.
    pub(super) shares_id: bool,
    /// What a placeholder says, where the result is missing.
    pub(super) placeholder: Option<&'static str>,
}

pub(super) struct PlannedResult {
    pub(super) message: usize,
    pub(super) part: usize,
    pub(super) action: Action,
    /// It must be made to say which call it answers.
    pub(super) readdress: bool,
}

/// Whether a plan is made even if nothing is wrong: something else must be laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Always,
    IfSomethingIsWrong,
}

/// What is done with a result.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// It stands where it should; the call it answers, if it is in this span.
    Keep(Option<usize>),
    /// It goes to where this call's result belongs.
    Move(usize),
    /// It is kept as text with this mark.
    Text(String),
    /// It says the same as another result of its call.
    Drop,
}

impl Plan {
    /// What must be done, or nothing.
    pub(super) fn of(
        pass: &mut Pass<'_>,
        span: &Span<'_>,
        messages: &[Value],
        first: usize,
        model_end: usize,
        wanted: Wanted,
    ) -> Option<Plan> {
        let changed = wanted == Wanted::Always;
        if span.calls.is_empty() && span.results.is_empty() && !changed {
            return None;
        }
        let mut draft = Draft {
            pass,
            span,
            messages,
            first,
            model_end,
            answers: span.answers.clone(),
            changed,
        };
        let ids = draft.unique_ids();
        let fits = draft.real_before_placeholder();
        let mut actions = draft.actions(&fits);
        let is_put_in_order = draft.check_places(&mut actions);
        let results = draft.results(actions, &ids);
        let calls = draft.calls(ids);
        draft.changed.then_some(Plan {
            calls,
            results,
            is_put_in_order,
        })
    }
}

struct Draft<'a, 'p, 's> {
    pass: &'a mut Pass<'p>,
    span: &'a Span<'s>,
    messages: &'a [Value],
    first: usize,
    model_end: usize,
    answers: Vec<Option<usize>>,
    changed: bool,
}

impl<'s> Draft<'_, '_, 's> {
    fn message(&self, index: usize) -> &Value {
        &self.messages[index - self.first]
    }

    fn pointer(&self, message: usize, part: usize) -> String {
        let part = self.pass.wire.part_pointer(self.message(message), part);
        format!("{}/{message}{part}", self.pass.base)
    }

    /// New ids for the second and later calls of one turn that have the same. None: it keeps its own.
    fn unique_ids(&mut self) -> Vec<Option<String>> {
        let mut made = vec![None; self.span.calls.len()];
        let duplicates = self.duplicate_ids();
        if duplicates.is_empty() {
            return made;
        }
        let provider = self.pass.wire.provider();
        let ids = self.span.calls.iter().filter_map(|(_, call)| call.id);
        let mut taken: HashSet<String> = ids.map(str::to_owned).collect();
        // Numbers that were tried need not be tried again.
        let mut next: HashMap<&str, usize> = HashMap::new();
        for (index, id, times) in duplicates {
            let times = next.entry(id).or_insert(times);
            let fresh = loop {
                let fresh = ids::again(provider, id, *times);
                *times += 1;
                if taken.insert(fresh.clone()) {
                    break fresh;
                }
            };
            let (message, call) = self.span.calls[index];
            let part = call.part;
            let at = self.pointer(message, part);
            let says = self
                .pass
                .wire
                .says(Fault::DuplicateId { message, part, id });
            self.pass
                .log
                .found(
                    at,
                    Code::DuplicateCallId,
                    format!("another call of this turn has the id {id}"),
                )
                .says(says)
                .fixed(format!("this one, and its result, got the id {fresh}"));
            made[index] = Some(fresh);
            self.changed = true;
        }
        made
    }

    /// The calls whose id an earlier call of their turn has, with how often it was there.
    fn duplicate_ids(&self) -> Vec<(usize, &'s str, usize)> {
        let calls = &self.span.calls;
        let layout = self.pass.wire.layout();
        let may_repeat = ids::are_optional(self.pass.wire.provider()) || layout == Layout::Anywhere;
        if calls.len() < 2 || may_repeat {
            return Vec::new();
        }
        let one_turn = layout == Layout::LeadingParts;
        let mut count: HashMap<(usize, &str), usize> = HashMap::with_capacity(calls.len());
        let mut duplicates = Vec::new();
        for (index, (message, call)) in calls.iter().enumerate() {
            let Some(id) = call.id else { continue };
            let turn = if one_turn { 0 } else { *message };
            let times = count.entry((turn, id)).or_default();
            *times += 1;
            if *times > 1 {
                duplicates.push((index, id, *times));
            }
        }
        duplicates
    }

    /// A placeholder of ours gives way to a real result that came after it.
    fn real_before_placeholder(&mut self) -> Vec<Fit> {
        let mut fits = self.span.fits.clone();
        for result in 0..fits.len() {
            let Fit::Duplicate(call) = fits[result] else {
                continue;
            };
            let Some(answer) = self.answers[call] else {
                continue;
            };
            if texts::is_placeholder(&self.text(answer))
                && !texts::is_placeholder(&self.text(result))
            {
                fits.swap(answer, result);
                self.answers[call] = Some(result);
            }
        }
        fits
    }

    fn text(&self, result: usize) -> String {
        let (message, found) = self.span.results[result];
        let result = self.pass.wire.result(self.message(message), found.part);
        self.pass.wire.result_text(result)
    }

    /// What a result shows beside its words, where a provider has that there.
    fn images(&self, result: usize) -> Option<&Value> {
        let (message, found) = self.span.results[result];
        let result = self.pass.wire.result(self.message(message), found.part);
        let shown = [
            "/images",
            "/functionResponse/parts",
            "/function_response/parts",
        ];
        let mut shown = shown.iter().filter_map(|place| result.pointer(place));
        shown.find(|shown| !shown.is_null())
    }

    fn actions(&mut self, fits: &[Fit]) -> Vec<Action> {
        let mut actions = Vec::with_capacity(fits.len());
        for (index, fit) in fits.iter().enumerate() {
            actions.push(match *fit {
                Fit::Answers(call) => Action::Keep(Some(call)),
                Fit::Duplicate(_) | Fit::Orphan if self.is_awaited(index) => Action::Keep(None),
                Fit::Duplicate(call) => self.duplicate(index, call),
                Fit::Orphan => self.orphan(index),
            });
        }
        actions
    }

    /// Whether a result answers a call of an earlier span, where the provider allows that.
    fn is_awaited(&self, result: usize) -> bool {
        let elsewhere = &self.pass.elsewhere;
        elsewhere.allowed && elsewhere.is_awaited(self.span.results[result].0, self.first)
    }

    fn duplicate(&mut self, result: usize, call: usize) -> Action {
        self.changed = true;
        let (message, ResultRef { part, id, name }) = self.span.results[result];
        let answer = self.answers[call].unwrap_or(result);
        let first = self.span.results[answer].0;
        let id = id.unwrap_or_default();
        let fault = Fault::Duplicate {
            message,
            part,
            id,
            first,
        };
        let text = self.text(result);
        let says_the_same = texts::is_placeholder(&text)
            || (text == self.text(answer) && self.images(result) == self.images(answer));
        let at = self.pointer(message, part);
        let says = self.pass.wire.says(fault);
        let found = self.pass.log.found(
            at,
            Code::DuplicateResult,
            format!("the call {id} has another result"),
        );
        found.says(says);
        if says_the_same {
            found.fixed("this one says nothing new and is left out");
            return Action::Drop;
        }
        found.fixed("this one is kept as text of the user");
        let name = name.or(Some(self.span.calls[call].1.name));
        Action::Text(texts::orphan_mark(Some(id), name, Why::Duplicate))
    }

    fn orphan(&mut self, result: usize) -> Action {
        let (message, ResultRef { part, id, name }) = self.span.results[result];
        self.changed = true;
        let why = match id {
            Some(id) if self.pass.was_called(id) => Why::Late,
            _ => Why::NoCall,
        };
        let id_text = id.unwrap_or_default();
        let problem = match why {
            Why::Late => {
                format!("the result for {id_text} comes after the model had gone on without it")
            }
            Why::NoCall | Why::Duplicate => format!("this result ({id_text}) answers no call"),
        };
        let at = self.pointer(message, part);
        let fault = Fault::Orphan {
            message,
            part,
            id: id_text,
        };
        let says = self.said_to(fault, message, self.span.results[result].1);
        self.pass
            .log
            .found(at, Code::OrphanResult, problem)
            .says(says)
            .fixed("it is kept as text of the user: it may be all that tells of what was done");
        Action::Text(texts::orphan_mark(id, name, why))
    }

    /// What the provider says to a result: some look at other things before they look for its call.
    fn said_to(&self, fault: Fault<'_>, message: usize, found: ResultRef<'_>) -> Option<String> {
        let rules = self.pass.wire.provider().rules();
        let before = match message.checked_sub(self.first + 1) {
            Some(offset) => self.messages.get(offset),
            None => self.pass.out.last(),
        };
        let role = before.and_then(|before| text(before, "role"));
        if let Some(says) = role.and_then(|role| rules.says_to_result_behind(role)) {
            return Some(says);
        }
        let nameless = self.said_to_nameless(message, found);
        nameless.or_else(|| self.pass.wire.says(fault))
    }

    fn said_to_nameless(&self, message: usize, found: ResultRef<'_>) -> Option<String> {
        let is_nameless = found.name.is_none_or(str::is_empty);
        let says = || self.pass.wire.says_to_nameless(message, found.part);
        is_nameless.then(says).flatten()
    }

    /// What the provider says to calls without results.
    fn said_to_missing(&self, message: usize, ids: &[&str]) -> Option<String> {
        let count = self.pass.count;
        let rules = self.pass.wire.provider().rules();
        if message + 1 == count
            && let Some(says) = rules.says_to_open_end(count)
        {
            return Some(says.to_owned());
        }
        self.pass.wire.says(Fault::Missing { message, ids })
    }

    fn is_missing(&self, call: usize) -> bool {
        self.answers[call].is_none()
    }

    fn results(&mut self, actions: Vec<Action>, ids: &[Option<String>]) -> Vec<PlannedResult> {
        let mut planned = Vec::with_capacity(actions.len());
        for (index, action) in actions.into_iter().enumerate() {
            let (message, found) = self.span.results[index];
            let readdress = match action {
                Action::Keep(Some(call)) | Action::Move(call) => {
                    self.must_readdress(index, call, ids[call].as_deref())
                }
                Action::Keep(None) | Action::Text(_) | Action::Drop => false,
            };
            planned.push(PlannedResult {
                message,
                part: found.part,
                action,
                readdress,
            });
        }
        planned
    }

    fn must_readdress(&mut self, result: usize, call: usize, new_id: Option<&str>) -> bool {
        let (message, found) = self.span.results[result];
        let called = self.span.calls[call].1;
        let id = new_id.or(called.id);
        if self.pass.wire.is_addressed(found, id, called.name) {
            return false;
        }
        self.changed = true;
        if new_id.is_none() {
            let at = self.pointer(message, found.part);
            let whom = id.unwrap_or(called.name).to_owned();
            let says = self.said_to_nameless(message, found);
            self.pass
                .log
                .found(
                    at,
                    Code::BadResultId,
                    format!("this result does not say that it answers {whom}"),
                )
                .says(says)
                .fixed("now it does");
        } else {
            let at = self.pointer(message, found.part);
            let whom = id.unwrap_or_default().to_owned();
            self.pass
                .log
                .found(
                    at,
                    Code::DuplicateCallId,
                    "another call of this turn has the same id",
                )
                .fixed(format!("this result got its call's new id {whom}"));
        }
        true
    }

    fn calls(&mut self, ids: Vec<Option<String>>) -> Vec<PlannedCall> {
        let end = self.first + self.messages.len();
        let mut missing: Vec<usize> = Vec::new();
        for index in 0..self.span.calls.len() {
            let (message, call) = self.span.calls[index];
            let is_open = self.is_missing(index) && call.needs_result;
            if is_open && !self.pass.elsewhere.will_be_answered(message, end) {
                missing.push(index);
            }
        }
        let mut placeholders = vec![None; self.span.calls.len()];
        if !missing.is_empty() {
            self.changed = true;
            self.report_missing(&missing, &mut placeholders);
        }
        if !self.changed {
            return Vec::new();
        }
        let twins = self.twins(&missing);
        let shared = self.shared_ids();
        let planned = |(index, new_id): (usize, Option<String>)| {
            let (message, call) = self.span.calls[index];
            PlannedCall {
                has_twin: twins.contains(&index),
                shares_id: shared.contains(&index),
                message,
                part: call.part,
                renamed: new_id.is_some(),
                id: new_id.or_else(|| call.id.map(str::to_owned)),
                name: call.name.to_owned(),
                placeholder: placeholders[index],
            }
        };
        ids.into_iter().enumerate().map(planned).collect()
    }

    /// Those of the calls that have the id and the name of another one, where that is allowed: a placeholder with
    /// the id could be taken for the other's. Without it, the order tells.
    fn twins(&self, missing: &[usize]) -> HashSet<usize> {
        if missing.is_empty() || !ids::are_optional(self.pass.wire.provider()) {
            return HashSet::new();
        }
        let key = |index: usize| {
            let call = self.span.calls[index].1;
            (call.id, call.name)
        };
        let mut count: HashMap<(Option<&str>, &str), usize> = HashMap::new();
        for index in 0..self.span.calls.len() {
            *count.entry(key(index)).or_default() += 1;
        }
        let has_twin = |index: &usize| count[&key(*index)] > 1;
        missing.iter().copied().filter(has_twin).collect()
    }

    fn report_missing(&mut self, missing: &[usize], placeholders: &mut [Option<&'static str>]) {
        // A turn is refused once, for all of its calls.
        let mut of_turn: HashMap<usize, Vec<&str>> = HashMap::new();
        let one_turn = self.pass.wire.layout() == Layout::LeadingParts;
        let told = (IDS_TOLD_MAX * IDS_TOLD_MAX / missing.len()).clamp(1, IDS_TOLD_MAX);
        for index in missing {
            let (message, call) = self.span.calls[*index];
            let turn = if one_turn { self.first } else { message };
            let ids = of_turn.entry(turn).or_default();
            if ids.len() < told {
                ids.push(call.id.unwrap_or(call.name));
            }
        }
        for index in missing {
            let (message, call) = self.span.calls[*index];
            let turn = if one_turn { self.first } else { message };
            let fate = call
                .id
                .map_or_else(Default::default, |id| self.pass.options.fate_of(id));
            let text = if call.cut_off {
                texts::cut_off()
            } else {
                texts::placeholder(fate)
            };
            placeholders[*index] = Some(text);
            let ids = &of_turn[&turn];
            let says = self.said_to_missing(message, ids);
            let id = call.id.map_or_else(String::new, |id| format!(" {id}"));
            let at = self.pointer(message, call.part);
            self.pass
                .log
                .found(
                    at,
                    Code::MissingResult,
                    format!("the call{id} of {} has no result", call.name),
                )
                .says(says)
                .fixed(format!(
                    "a placeholder says that it {}",
                    texts::fate_in_words(text)
                ));
        }
    }
}
