//! One turn of tools: the calls in what a model said, and the results in the shape its provider wants.

use serde_json::{Value, json};

use super::options::Fate;
use super::provider::Provider;
use super::{response, results, texts, wire};
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
        let is_cut = response::is_cut_off(provider, said);
        let messages = response::said(provider, said);
        let last = messages.len().saturating_sub(1);
        for (number, (_, message)) in messages.into_iter().enumerate() {
            wire.calls(message, &mut found);
            for call in found.drain(..) {
                // What OpenAI runs itself is no call for us.
                if !call.needs_result {
                    continue;
                }
                let mut args = arguments(provider, message, call.part);
                if is_cut && number == last && response::is_last(provider, message, call.part) {
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
            match self.provider {
                Provider::Gemini => result["functionResponse"]["name"] = json!(name),
                Provider::Ollama => result["tool_name"] = json!(name),
                Provider::Mistral | Provider::LangChain => result["name"] = json!(name),
                Provider::Anthropic
                | Provider::OpenAi
                | Provider::OpenAiResponses
                | Provider::BedrockConverse => {}
            }
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

fn arguments(provider: Provider, message: &Value, part: usize) -> Arguments {
    let found = match provider {
        Provider::Anthropic => &message["content"][part]["input"],
        Provider::BedrockConverse => &message["content"][part]["toolUse"]["input"],
        Provider::OpenAi | Provider::Mistral | Provider::Ollama => {
            let call = &message["tool_calls"][part];
            match call.get("custom") {
                Some(custom) => return Arguments::Json(json!({"input": custom["input"]})),
                None => &call["function"]["arguments"],
            }
        }
        Provider::OpenAiResponses => match message.get("input") {
            Some(input) => return Arguments::Json(json!({ "input": input })),
            None => &message["arguments"],
        },
        Provider::Gemini => {
            let part = &message["parts"][part];
            let call = part
                .get("functionCall")
                .or_else(|| part.get("function_call"));
            call.map_or(&Value::Null, |call| &call["args"])
        }
        Provider::LangChain => return langchain_arguments(message, part),
    };
    read(found)
}

fn langchain_arguments(message: &Value, part: usize) -> Arguments {
    let body = ["kwargs", "data"]
        .iter()
        .find_map(|key| message.get(key))
        .unwrap_or(message);
    let good = body["tool_calls"].as_array().map_or(0, Vec::len);
    match part.checked_sub(good) {
        None => read(&body["tool_calls"][part]["args"]),
        Some(part) => {
            let args = &body["invalid_tool_calls"][part]["args"];
            // Invalid is invalid, even where nothing is left of it.
            Arguments::Text(args.as_str().unwrap_or("{").to_owned())
        }
    }
}

/// A call without arguments has an empty object.
fn read(found: &Value) -> Arguments {
    match found {
        Value::Null => Arguments::Json(json!({})),
        Value::String(text) if text.trim().is_empty() => Arguments::Json(json!({})),
        Value::String(text) => Arguments::Text(text.clone()),
        other => Arguments::Json(other.clone()),
    }
}
