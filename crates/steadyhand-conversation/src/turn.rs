//! One turn of tools: the calls in what a model said, and the results in the shape its provider wants.

use serde_json::Value;

use crate::options::Fate;
use crate::providers::Provider;
use crate::providers::wire;
use crate::{response, results, texts};
use steadyhand::Outcome;
use steadyhand::{Arguments, Call};

/// The calls in what a model said. Give them to the executor, and the outcomes to [`Turn::results`].
///
/// ```
/// # use serde_json::json;
/// use steadyhand_conversation::{Provider, Turn};
/// let said = json!({"role": "assistant", "content": [
///     {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Rome"}},
/// ]});
/// let turn = Turn::read(Provider::Anthropic, &said);
/// assert_eq!(turn.calls()[0].name, "weather");
/// ```
#[derive(Debug, Clone)]
pub struct Turn {
    provider: Provider,
    calls: Vec<Call>,
    /// The ids the provider gave; some give none.
    ids: Vec<Option<String>>,
    /// The names the provider knows the tools by.
    names: Vec<String>,
}

impl Turn {
    /// Reads a message of the model's, or the whole response it is in. Arguments that broke off stay text,
    /// which the executor answers and never runs. So do those of the call that a response ran out of tokens in,
    /// where they came as an object: that cannot show where it broke off.
    pub fn read(provider: Provider, said: &Value) -> Turn {
        Turn::read_named(provider, said, |name| name.to_owned())
    }

    /// [`Turn::read`], with the provider's short names turned back to those of the tools.
    pub fn read_named(provider: Provider, said: &Value, original: impl Fn(&str) -> String) -> Turn {
        let wire = wire::of(provider);
        let mut turn = Turn {
            provider,
            calls: Vec::new(),
            ids: Vec::new(),
            names: Vec::new(),
        };
        let mut found = Vec::new();
        let is_cut = response::is_cut_off(provider.rules(), said);
        let messages = provider.rules().said(said);
        let last = messages.len().saturating_sub(1);
        for (number, (_, message)) in messages.into_iter().enumerate() {
            wire.calls(message, &mut found);
            for call in found.drain(..) {
                // What OpenAI runs itself is no call for us.
                if !call.needs_result {
                    continue;
                }
                let mut args = provider.rules().arguments(message, call.part);
                if is_cut
                    && number == last
                    && response::is_last(provider.rules(), message, call.part)
                {
                    args = cut_off(args);
                }
                let name = original(call.name);
                turn.calls.push(match call.id {
                    Some(id) => Call::with_id(id, name, args),
                    None => Call::new(name, args),
                });
                turn.ids.push(call.id.map(str::to_owned));
                turn.names.push(call.name.to_owned());
            }
        }
        turn
    }

    /// The calls, in the model's order.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The messages that answer the turn: one result per call, in the order of the calls.
    ///
    /// `outcomes[i]` answers call `i`; a call without an outcome gets a placeholder that says so.
    pub fn results(&self, outcomes: &[Outcome]) -> Vec<Value> {
        let wire = wire::of(self.provider);
        let result = |index: usize| {
            let id = self.ids[index].as_deref();
            let name = &self.names[index];
            let Some(outcome) = outcomes.get(index) else {
                return wire.error(id, name, texts::placeholder(Fate::Lost));
            };
            let mut result = results::of_outcome(self.provider, id, outcome);
            // The provider knows the tool by the name it called it by.
            self.provider.rules().name_result(&mut result, name);
            result
        };
        let results: Vec<Value> = (0..self.calls.len()).map(result).collect();
        if results.is_empty() {
            return Vec::new();
        }
        wire.pack(results)
    }
}

/// What there is of arguments, as the text that broke off. Text shows by itself whether it is whole.
fn cut_off(args: Arguments) -> Arguments {
    match args {
        Arguments::Text(text) => Arguments::Text(text),
        Arguments::Json(value) => {
            let text = value.to_string();
            Arguments::Text(text.strip_suffix('}').unwrap_or("{").to_owned())
        }
    }
}
