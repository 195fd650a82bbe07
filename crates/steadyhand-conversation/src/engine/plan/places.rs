//! Whether results stand where their provider wants them.

use std::collections::{HashMap, HashSet};

use super::{Action, Draft};
use crate::problem::Code;
use crate::providers::wire::{Fault, Layout};

impl Draft<'_, '_, '_> {
    /// Turns `Keep` into `Move` where a result does not stand where its provider wants it.
    ///
    /// Gives back whether the results that stay must be put in the order of their calls.
    pub(super) fn check_places(&mut self, actions: &mut [Action]) -> bool {
        let is_misplaced = match self.pass.wire.layout() {
            Layout::Anywhere => false,
            Layout::LeadingParts => self.check_leading_parts(actions),
            Layout::FollowingMessages => self.check_following_messages(actions),
        };
        let is_short = (0..self.answers.len()).any(|call| self.is_missing(call));
        let is_placed =
            self.pass.wire.layout() != Layout::Anywhere && self.pass.wire.results_lead();
        let is_laid_out = is_placed && (is_misplaced || is_short);
        let is_put_in_order = is_laid_out || self.reads_by_order();
        let in_order = self.check_order(actions, is_put_in_order);
        let is_leading = self.pass.wire.layout() == Layout::LeadingParts;
        if is_leading && is_put_in_order && (is_laid_out || !in_order) {
            self.gather(actions);
        }
        is_put_in_order
    }

    /// Whether results are read by their order alone. Every other provider goes by the ids, and takes any order.
    fn reads_by_order(&self) -> bool {
        self.pass.wire.provider().rules().reads_by_order()
    }

    fn check_leading_parts(&mut self, actions: &mut [Action]) -> bool {
        let wire = self.pass.wire;
        let mut is_leading = true;
        let mut next = 0;
        let mut misplaced = Vec::new();
        for (offset, message) in self.messages.iter().enumerate() {
            let index = self.first + offset;
            let in_model = index < self.model_end;
            let is_free = in_model || !wire.results_lead();
            let mut here = 0..wire.part_count(message);
            let mut said_something = false;
            while next < actions.len() && self.span.results[next].0 == index {
                let part = self.span.results[next].1.part;
                for before in here.start..part {
                    is_leading &= is_free || !wire.has_part(message, before);
                }
                here.start = part + 1;
                match actions[next] {
                    Action::Keep(Some(call)) if in_model || !is_leading => {
                        misplaced.push((next, call));
                    }
                    Action::Keep(_) | Action::Move(_) | Action::Drop => {}
                    Action::Text(_) => said_something = true,
                }
                next += 1;
            }
            let rest = here.clone().any(|part| wire.has_part(message, part));
            is_leading &= is_free || !(rest || said_something);
        }
        for (result, call) in &misplaced {
            self.misplaced(actions, *result, *call, Misplaced::Elsewhere);
        }
        !misplaced.is_empty()
    }

    /// Results that are put in their order stand in one message with the others of their turn.
    fn gather(&mut self, actions: &mut [Action]) {
        let stays = |action: &Action| matches!(action, Action::Keep(Some(_)));
        let Some(first) = actions.iter().position(stays) else {
            return;
        };
        let home = self.span.results[first].0;
        for result in first + 1..actions.len() {
            let Action::Keep(Some(call)) = actions[result] else {
                continue;
            };
            if self.span.results[result].0 != home {
                self.misplaced(actions, result, call, Misplaced::Apart);
            }
        }
    }

    /// Whether all results that stay come in the order of their calls (SPEC R02). Those that do not are moved where
    /// they have to be, and only told of where the provider takes them as they are.
    fn check_order(&mut self, actions: &mut [Action], is_put_in_order: bool) -> bool {
        let mut newest = None;
        let mut in_order = true;
        let shared = self.shared_ids();
        for result in 0..actions.len() {
            let Action::Keep(Some(call)) = actions[result] else {
                continue;
            };
            if shared.contains(&call) {
                continue;
            }
            if newest.is_some_and(|newest| newest > call) {
                in_order = false;
                match is_put_in_order {
                    true => self.misplaced(actions, result, call, Misplaced::Late),
                    false => self.out_of_order(result, call),
                }
            } else {
                newest = Some(call);
            }
        }
        in_order
    }

    /// Calls of which another one has the id, where that is allowed and outputs may come much later: nobody can tell
    /// which of them an output answers, so it is in no wrong order.
    pub(super) fn shared_ids(&self) -> HashSet<usize> {
        if self.pass.wire.layout() != Layout::Anywhere {
            return HashSet::new();
        }
        let mut of_id: HashMap<Option<&str>, Vec<usize>> = HashMap::new();
        for (index, (_, call)) in self.span.calls.iter().enumerate() {
            of_id.entry(call.id).or_default().push(index);
        }
        let shared = of_id.into_values().filter(|calls| calls.len() > 1);
        shared.flatten().collect()
    }

    fn check_following_messages(&mut self, actions: &mut [Action]) -> bool {
        // Only the last message of a run of the model's can be directly followed by its results.
        let last = self.model_end.saturating_sub(1);
        let mut zone_end = self.model_end;
        for (message, _) in &self.span.results {
            if *message == zone_end {
                zone_end += 1;
            }
        }
        let mut is_misplaced = false;
        for result in 0..actions.len() {
            let Action::Keep(Some(call)) = actions[result] else {
                continue;
            };
            let stands_well =
                self.span.calls[call].0 == last && self.span.results[result].0 < zone_end;
            if !stands_well {
                is_misplaced = true;
                self.misplaced(actions, result, call, Misplaced::Elsewhere);
            }
        }
        is_misplaced
    }

    /// A result behind that of a later call, which stays there.
    fn out_of_order(&mut self, result: usize, call: usize) {
        let (message, found) = self.span.results[result];
        let called = self.span.calls[call].1;
        let id = called.id.unwrap_or(called.name);
        let at = self.pointer(message, found.part);
        self.pass.log.found(
            at,
            Code::ResultOrder,
            format!(
                "the result of the call {id} stands behind that of a later call; {} takes it so",
                self.pass.wire.provider()
            ),
        );
    }

    fn misplaced(&mut self, actions: &mut [Action], result: usize, call: usize, how: Misplaced) {
        let (message, found) = self.span.results[result];
        let (of_call, called) = self.span.calls[call];
        let id = called.id.unwrap_or(called.name);
        let says = match how {
            Misplaced::Elsewhere => {
                let fault = Fault::Missing {
                    message: of_call,
                    ids: &[id],
                };
                self.said_to(fault, message, found)
            }
            // No provider refuses these; the model reads results in another order than it asked for them.
            Misplaced::Late | Misplaced::Apart => None,
        };
        let at = self.pointer(message, found.part);
        let (code, problem, fix) = match how {
            Misplaced::Elsewhere => (
                Code::MisplacedResult,
                "does not directly follow it",
                "moved to its place",
            ),
            Misplaced::Late => (
                Code::ResultOrder,
                "stands behind that of a later call",
                "moved up",
            ),
            Misplaced::Apart => (
                Code::MisplacedResult,
                "stands apart from the other results of its turn, which have to be put in order",
                "moved to them",
            ),
        };
        self.pass
            .log
            .found(at, code, format!("the result of the call {id} {problem}"))
            .says(says)
            .fixed(fix);
        actions[result] = Action::Move(call);
        self.changed = true;
    }
}

/// How a result stands in the wrong place.
#[derive(Debug, Clone, Copy)]
enum Misplaced {
    /// It does not follow its call.
    Elsewhere,
    /// It stands behind the result of a later call.
    Late,
    /// It stands in another message than the first result of its turn, and the turn needs mending.
    Apart,
}
