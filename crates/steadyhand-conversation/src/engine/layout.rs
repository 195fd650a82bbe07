//! Puts a span together anew: each result where its provider wants it.

use serde_json::Value;

use super::Pass;
use super::plan::{Action, Plan, PlannedCall, PlannedResult};
use crate::providers::wire::Layout;

/// A result on its way to its call.
struct Carried {
    call: usize,
    value: Value,
}

impl Pass<'_> {
    /// Carries a plan out.
    pub(super) fn lay_out(
        &mut self,
        messages: &mut [Value],
        first: usize,
        model_end: usize,
        plan: Plan,
    ) {
        let Plan {
            calls,
            results,
            is_put_in_order,
        } = plan;
        for call in calls.iter().filter(|call| call.renamed) {
            let id = call.id.as_deref().unwrap_or_default();
            self.wire
                .set_call_id(&mut messages[call.message - first], call.part, id);
        }
        let mut carried = Vec::new();
        let mut texts: Vec<(usize, Value)> = Vec::new();
        for result in &results {
            self.carry(result, &calls, messages, first, &mut carried, &mut texts);
        }
        for (index, call) in calls.iter().enumerate() {
            if let Some(text) = call.placeholder {
                let id = call.id.as_deref().filter(|_| !call.has_twin);
                let mut value = self.wire.error(id, &call.name, text);
                self.wire.fit(&mut value, &messages[call.message - first]);
                carried.push(Carried { call: index, value });
            }
        }
        carried.sort_by_key(|one| one.call);
        match self.wire.layout() {
            Layout::LeadingParts => {
                let carried = self.join(messages, first, &results, carried);
                self.lay_out_parts(messages, first, model_end, carried, texts);
            }
            Layout::FollowingMessages => {
                let results = Following {
                    calls: &calls,
                    results: &results,
                    first,
                    is_put_in_order,
                };
                self.lay_out_messages(messages, model_end, results, carried, texts);
            }
            Layout::Anywhere => {
                let kept = Kept::of(&results, &calls, first);
                self.lay_out_items(messages, (first, model_end), &kept, carried, texts);
            }
        }
    }

    /// Puts results among those that stay in a message, in the order of the calls. Gives back those for which there
    /// is no such message.
    fn join(
        &self,
        messages: &mut [Value],
        first: usize,
        results: &[PlannedResult],
        mut carried: Vec<Carried>,
    ) -> Vec<Carried> {
        let stays = results.iter().filter_map(|result| match result.action {
            Action::Keep(Some(call)) => Some((call, result)),
            Action::Keep(None) | Action::Move(_) | Action::Text(_) | Action::Drop => None,
        });
        let stays: Vec<(usize, &PlannedResult)> = stays.collect();
        let Some(home) = stays.first().map(|(_, result)| result.message - first) else {
            return carried;
        };
        if carried.is_empty() || !self.wire.results_lead() {
            return carried;
        }
        for (call, result) in stays {
            let value = self
                .wire
                .take_result(&mut messages[result.message - first], result.part);
            carried.push(Carried { call, value });
        }
        carried.sort_by_key(|one| one.call);
        let results = carried.into_iter().map(|one| one.value).collect();
        self.wire.lead(&mut messages[home], results);
        Vec::new()
    }

    /// Does to one result what the plan says, but for putting it in its place.
    fn carry(
        &self,
        result: &PlannedResult,
        calls: &[PlannedCall],
        messages: &mut [Value],
        first: usize,
        carried: &mut Vec<Carried>,
        texts: &mut Vec<(usize, Value)>,
    ) {
        let message = &mut messages[result.message - first];
        let address = |value: &mut Value, call: usize| {
            if result.readdress {
                let call = &calls[call];
                self.wire.address(value, call.id.as_deref(), &call.name);
            }
        };
        match &result.action {
            Action::Keep(Some(call)) => {
                address(self.wire.result_mut(message, result.part), *call);
            }
            Action::Keep(None) => {}
            Action::Move(call) => {
                let mut value = self.wire.take_result(message, result.part);
                address(&mut value, *call);
                carried.push(Carried { call: *call, value });
            }
            Action::Text(mark) => {
                let value = self.wire.take_result(message, result.part);
                texts.push((result.message - first, self.wire.keep_as_text(value, mark)));
            }
            Action::Drop => {
                self.wire.take_result(message, result.part);
            }
        }
    }

    fn lay_out_parts(
        &mut self,
        messages: &mut [Value],
        first: usize,
        model_end: usize,
        carried: Vec<Carried>,
        texts: Vec<(usize, Value)>,
    ) {
        let models = model_end - first;
        let mut texts = texts.into_iter().peekable();
        let (said, tail) = messages.split_at_mut(models);
        for (offset, message) in said.iter_mut().enumerate() {
            self.push(first + offset, message.take());
        }
        let before = model_end.saturating_sub(1).max(first);
        let brings_results = !carried.is_empty();
        if brings_results {
            let values = carried.into_iter().map(|one| one.value).collect();
            for message in self.wire.pack(values) {
                self.put(before, message);
            }
        }
        let begin = self.out.len();
        let mut of_model = Vec::new();
        while let Some((_, text)) = texts.next_if(|(of, _)| *of < models) {
            of_model.push(text);
        }
        for (offset, message) in tail.iter_mut().enumerate() {
            let origin = model_end + offset;
            self.push(origin, message.take());
            while let Some((_, text)) = texts.next_if(|(of, _)| *of == models + offset) {
                self.put(origin, text);
            }
        }
        // Not before, or they would stand in front of results that lead.
        let last = first + models + tail.len();
        for text in of_model {
            self.put(last.saturating_sub(1).max(first), text);
        }
        if !brings_results {
            self.mend_silence(begin, model_end, tail.len());
        }
    }

    fn lay_out_messages(
        &mut self,
        messages: &mut [Value],
        model_end: usize,
        plan: Following<'_>,
        carried: Vec<Carried>,
        texts: Vec<(usize, Value)>,
    ) {
        let first = plan.first;
        let mut carried = carried.into_iter().peekable();
        let kept = plan
            .results
            .iter()
            .filter_map(|result| match result.action {
                Action::Keep(Some(call)) => Some((call, result.message)),
                _ => None,
            });
        let mut kept: Vec<(usize, usize)> = kept.collect();
        kept.sort_by_key(|(call, _)| plan.calls[*call].message);
        let mut kept = kept.into_iter().peekable();
        for index in first..model_end {
            self.push(index, messages[index - first].take());
            let is_here = |call: usize| plan.calls[call].message == index;
            let mut here: Vec<Carried> = Vec::new();
            while let Some((call, message)) = kept.next_if(|(call, _)| is_here(*call)) {
                let value = messages[message - first].take();
                here.push(Carried { call, value });
            }
            while let Some(one) = carried.next_if(|one| is_here(one.call)) {
                here.push(one);
            }
            if plan.is_put_in_order {
                here.sort_by_key(|one| one.call);
            }
            for one in here {
                self.push(index, one.value);
            }
        }
        for index in first..first + messages.len() {
            let extra = self.behind.remove(&index).unwrap_or_default();
            for message in extra {
                self.put(index, message);
            }
        }
        let mut texts = texts.into_iter().peekable();
        for (offset, message) in messages.iter_mut().enumerate().skip(model_end - first) {
            self.push(first + offset, message.take());
            while let Some((_, text)) = texts.next_if(|(of, _)| *of == offset) {
                self.put(first + offset, text);
            }
        }
    }

    fn lay_out_items(
        &mut self,
        messages: &mut [Value],
        (first, model_end): (usize, usize),
        kept: &Kept,
        carried: Vec<Carried>,
        texts: Vec<(usize, Value)>,
    ) {
        let mut texts = texts.into_iter().peekable();
        let mut carried = carried.into_iter().peekable();
        for (offset, message) in messages.iter_mut().enumerate() {
            if let Some(call) = kept.call_at(offset) {
                while let Some(one) = carried.next_if(|one| one.call < call) {
                    self.put(first + offset, one.value);
                }
            } else if offset >= model_end - first && kept.is_behind_all(offset) {
                let mut found = Vec::new();
                self.wire.results(message, &mut found);
                let is_result = !found.is_empty();
                if !is_result {
                    for one in carried.by_ref() {
                        self.put(first + offset, one.value);
                    }
                }
            }
            self.push(first + offset, message.take());
            while let Some((_, text)) = texts.next_if(|(of, _)| *of == offset) {
                self.put(first + offset, text);
            }
        }
        for one in carried {
            self.put(first + messages.len() - 1, one.value);
        }
    }
}

/// Results that stay where they are, in the order of their calls.
struct Kept {
    /// The place of each in its span, and its call.
    places: Vec<(usize, usize)>,
}

impl Kept {
    fn of(results: &[PlannedResult], calls: &[PlannedCall], first: usize) -> Kept {
        let place = |result: &PlannedResult| match result.action {
            Action::Keep(Some(call)) if !calls[call].shares_id => {
                Some((result.message - first, call))
            }
            _ => None,
        };
        Kept {
            places: results.iter().filter_map(place).collect(),
        }
    }

    fn call_at(&self, offset: usize) -> Option<usize> {
        let found = self.places.binary_search_by_key(&offset, |(at, _)| *at);
        found.ok().map(|index| self.places[index].1)
    }

    fn is_behind_all(&self, offset: usize) -> bool {
        self.places.last().is_none_or(|(at, _)| *at < offset)
    }
}

/// What is planned for results that follow their calls as messages.
struct Following<'a> {
    calls: &'a [PlannedCall],
    results: &'a [PlannedResult],
    first: usize,
    is_put_in_order: bool,
}
