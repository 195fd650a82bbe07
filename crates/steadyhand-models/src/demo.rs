//! The `demo` model: a fixed script for the first minute without a key. It is no AI, and says so.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use steadyhand::{AiMessage, Message, ToolCall, example_arguments};
use steadyhand_conversation::Provider;

use crate::error::ModelError;
use crate::model::{Model, ModelRequest, Reply, Told, ToolChoice};
use crate::scripted::deliver;

const NOTE: &str = "demo model, a fixed script, not an AI";
/// How many tools one sentence can call.
const CALLS_MAX: usize = 8;

/// A fixed script that uses the tools there are: it reckons, looks at the weather, and calls what is named.
///
/// What it understands: a sum, `weather in <City>`, and `<tool>` or `<tool> {"its": "arguments"}`. The rest it
/// answers with what it is. The same question always gets the same answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Demo;

impl Demo {
    /// The demo model.
    pub fn new() -> Demo {
        Demo
    }
}

impl Model for Demo {
    fn name(&self) -> &str {
        "demo"
    }

    fn provider(&self) -> Provider {
        Provider::LangChain
    }

    fn note(&self) -> Option<&str> {
        Some(NOTE)
    }

    fn answer<'a>(
        &'a self,
        request: ModelRequest<'a>,
        tell: &'a mut (dyn FnMut(Told) + Send),
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let line = line(&request);
            Ok(deliver(line, request.delivery, tell).await)
        })
    }
}

fn line(request: &ModelRequest<'_>) -> AiMessage {
    let asked = request
        .messages
        .iter()
        .rposition(|message| matches!(message, Message::Human(_)));
    let Some(asked) = asked else {
        return AiMessage::saying(introduction(request.tools));
    };
    let results = &request.messages[asked + 1..];
    if results.iter().any(|one| matches!(one, Message::Tool(_))) {
        return AiMessage::saying(report(results));
    }
    let Message::Human(said) = &request.messages[asked] else {
        return AiMessage::saying(introduction(request.tools));
    };
    let said = said.content.text();
    let calls = match request.choice {
        ToolChoice::None => Vec::new(),
        ToolChoice::Auto | ToolChoice::Required => wanted(&said, request.tools),
    };
    if calls.is_empty() {
        return AiMessage::saying(introduction(request.tools));
    }
    AiMessage::calling("", calls)
}

/// The calls that a sentence asks for.
fn wanted(said: &str, tools: &[Value]) -> Vec<ToolCall> {
    let named = named(said, tools);
    if !named.is_empty() {
        return named;
    }
    let with = |tool: &Value, key: &str, value: String| {
        let mut args = Map::new();
        args.insert(key.to_owned(), Value::String(value));
        vec![ToolCall::new(name(tool), args)]
    };
    if let (Some(sum), Some(tool)) = (sum(said), taking(tools, "expression")) {
        return with(tool, "expression", sum);
    }
    let folded = said.to_lowercase();
    let is_weather = ["weather", "rain", "sun", "cold", "warm"]
        .iter()
        .any(|word| folded.contains(word));
    if is_weather && let (Some(city), Some(tool)) = (city(said), taking(tools, "city")) {
        return with(tool, "city", city);
    }
    Vec::new()
}

/// Tools that are called by their names, in the order they are named.
fn named(said: &str, tools: &[Value]) -> Vec<ToolCall> {
    let mut found: Vec<(usize, ToolCall)> = Vec::new();
    for tool in tools {
        let name = name(tool);
        let Some(at) = word_at(said, name) else {
            continue;
        };
        let args = given(&said[at + name.len()..])
            .or_else(|| match example_arguments(&tool["schema"]) {
                Some(Value::Object(args)) => Some(args),
                _ => None,
            })
            .unwrap_or_default();
        found.push((at, ToolCall::new(name, args)));
    }
    found.sort_by_key(|(at, _)| *at);
    let calls = found.into_iter().map(|(_, call)| call);
    calls.take(CALLS_MAX).collect()
}

/// Where a name stands as a word of its own. Plain words of the language are none: `echo` is, `time` is not.
fn word_at(said: &str, name: &str) -> Option<usize> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
    let stands_alone = |at: usize| {
        let before = said[..at].chars().next_back();
        let after = said[at + name.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    };
    let is_given = |at: usize| given(&said[at + name.len()..]).is_some();
    let is_word = name.chars().all(char::is_alphabetic) && name != "echo";
    said.match_indices(name).map(|(at, _)| at).find(|at| {
        !name.is_empty() && stands_alone(*at) && (!is_word || is_given(*at) || said.trim() == name)
    })
}

/// The object that directly follows a name.
fn given(rest: &str) -> Option<Map<String, Value>> {
    let rest = rest.trim_start();
    if !rest.starts_with('{') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Map<String, Value>>();
    values.next()?.ok()
}

/// The longest piece of a sentence that is a sum.
fn sum(said: &str) -> Option<String> {
    let is_part = |letter: char| letter.is_ascii_digit() || "+-*/^%(). ".contains(letter);
    let pieces = said.split(|letter: char| !is_part(letter)).map(|piece| {
        // The end of a sentence is no part of it.
        piece.trim().trim_end_matches('.').trim()
    });
    let is_sum = |piece: &&str| {
        let digits = piece.chars().filter(char::is_ascii_digit).count();
        digits >= 2 && piece.contains(['+', '-', '*', '/', '^', '%'])
    };
    pieces
        .filter(is_sum)
        .max_by_key(|piece| piece.len())
        .map(str::to_owned)
}

/// The word with a capital letter that follows `in`, or the last one there is.
fn city(said: &str) -> Option<String> {
    let words: Vec<&str> = said
        .split_whitespace()
        .map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()))
        .collect();
    let is_name = |word: &&&str| word.chars().next().is_some_and(char::is_uppercase);
    let after_in = words
        .iter()
        .position(|word| *word == "in")
        .and_then(|at| words.get(at + 1))
        .filter(is_name);
    let last = || words.iter().skip(1).rfind(is_name);
    after_in.or_else(last).map(|word| (*word).to_owned())
}

fn taking<'a>(tools: &'a [Value], parameter: &str) -> Option<&'a Value> {
    tools
        .iter()
        .find(|tool| tool["schema"]["properties"].get(parameter).is_some())
}

fn name(tool: &Value) -> &str {
    tool["name"].as_str().unwrap_or_default()
}

/// What the tools said, in the order they were called.
fn report(results: &[Message]) -> String {
    let mut lines = Vec::new();
    for message in results {
        let Message::Tool(result) = message else {
            continue;
        };
        let said = result.content.text();
        let name = result.name.as_deref().unwrap_or("the tool");
        let said = steadyhand::cut::text(said.trim(), 600);
        lines.push(match result.is_error {
            true => format!(
                "{name} did not work: {}",
                said.trim_start_matches("Error: ")
            ),
            false => format!("{name} says: {}", spoken(&said)),
        });
    }
    lines.join("\n")
}

/// A result as a person would say it: `{"result": 408}` is 408. What has more in it than words and numbers stays as it is.
fn spoken(said: &str) -> String {
    let plain = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let words = |fields: &Map<String, Value>| {
        if let Some(only) = fields.values().next().filter(|_| fields.len() == 1) {
            return plain(only);
        }
        let pairs = fields
            .iter()
            .map(|(name, value)| Some(format!("{name} {}", plain(value)?)));
        let pairs: Option<Vec<String>> = pairs.collect();
        pairs
            .filter(|pairs| !pairs.is_empty())
            .map(|pairs| pairs.join(", "))
    };
    let fields = serde_json::from_str::<Map<String, Value>>(said).ok();
    fields
        .and_then(|fields| words(&fields))
        .unwrap_or_else(|| said.to_owned())
}

fn introduction(tools: &[Value]) -> String {
    let names: Vec<&str> = tools.iter().map(name).take(12).collect();
    let tools = match names.as_slice() {
        [] => "There are no tools here.".to_owned(),
        names => format!("Name one of the tools: {}.", names.join(", ")),
    };
    format!(
        "I am the {NOTE}. I can reckon (12 * 34), look at the weather in a city, and call what you name. {tools}"
    )
}
