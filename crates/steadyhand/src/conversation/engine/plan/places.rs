//! Whether results stand where their provider wants them.

use super::{Action, Draft};
use crate::conversation::problem::Code;
use crate::conversation::wire::{Fault, Layout};

impl Draft<'_, '_, '_> {
    /// Turns `Keep` into `Move` where a result does not stand where its provider wants it.
    pub(super) fn check_places(&mut self, actions: &mut [Action]) {
        match self.pass.wire.layout() {
            Layout::Anywhere => {}
            Layout::LeadingParts => self.check_leading_parts(actions),
            Layout::FollowingMessages => self.check_following_messages(actions),
        }
    }

    fn check_leading_parts(&mut self, actions: &mut [Action]) {
        let wire = self.pass.wire;
        let mut is_leading = true;
        let mut next = 0;
        let mut misplaced = Vec::new();
        for (offset, message) in self.messages.iter().enumerate() {
            let index = self.first + offset;
            let in_model = index < self.model_end;
            let mut here = 0..wire.part_count(message);
            let mut said_something = false;
            while next < actions.len() && self.span.results[next].0 == index {
                let part = self.span.results[next].1.part;
                for before in here.start..part {
                    is_leading &= in_model || !wire.has_part(message, before);
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
            is_leading &= in_model || !(rest || said_something);
        }
        for (result, call) in &misplaced {
            self.misplaced(actions, *result, *call, Code::MisplacedResult);
        }
        // Where nothing but the order tells results apart, those that stay must not come behind the others.
        let is_short = (0..self.answers.len()).any(|call| self.is_missing(call));
        if wire.matches_by_name() && (is_short || !misplaced.is_empty()) {
            for (result, action) in actions.iter_mut().enumerate() {
                if let Action::Keep(Some(call)) = *action {
                    let (message, found) = self.span.results[result];
                    let at = self.pointer(message, found.part);
                    self.pass
                        .log
                        .found(
                            at,
                            Code::MisplacedResult,
                            "results of this turn are missing or stand elsewhere",
                        )
                        .fixed("all of them are put together, in the order of the calls");
                    *action = Action::Move(call);
                }
            }
        }
    }

    fn check_following_messages(&mut self, actions: &mut [Action]) {
        // Only the last message of a run of the model's can be directly followed by its results.
        let last = self.model_end.saturating_sub(1);
        let mut zone_end = self.model_end;
        for (message, _) in &self.span.results {
            if *message == zone_end {
                zone_end += 1;
            }
        }
        let mut newest = None;
        for result in 0..actions.len() {
            let Action::Keep(Some(call)) = actions[result] else {
                continue;
            };
            let stands_well =
                self.span.calls[call].0 == last && self.span.results[result].0 < zone_end;
            if !stands_well {
                self.misplaced(actions, result, call, Code::MisplacedResult);
            } else if self.pass.wire.is_ordered() && newest.is_some_and(|newest| newest > call) {
                self.misplaced(actions, result, call, Code::ResultOrder);
            } else {
                newest = Some(call);
            }
        }
    }

    fn misplaced(&mut self, actions: &mut [Action], result: usize, call: usize, code: Code) {
        let (message, found) = self.span.results[result];
        let (of_call, called) = self.span.calls[call];
        let id = called.id.unwrap_or(called.name);
        let fault = Fault::Missing {
            message: of_call,
            ids: &[id],
        };
        let says = self.said_to(fault, message, found);
        let at = self.pointer(message, found.part);
        let (problem, fix) = match code {
            Code::ResultOrder => ("stands behind that of a later call", "moved up"),
            _ => ("does not directly follow it", "moved to its place"),
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
