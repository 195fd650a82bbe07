//! One conversation in every provider's JSON, and what all checks of a repair have in common.

use serde_json::{Value, json};
use steadyhand::Message;
use steadyhand_conversation::strict;
use steadyhand_conversation::{Code, Fix, Provider, What, repair, validate};

/// Something said or done.
#[derive(Debug, Clone)]
pub(super) enum Step {
    User(String),
    Ai(String, Vec<Called>),
    Result(String, String),
}

#[derive(Debug, Clone)]
pub(super) struct Called {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) args: Value,
}

pub(super) fn user(text: &str) -> Step {
    Step::User(text.to_owned())
}

pub(super) fn says(text: &str) -> Step {
    Step::Ai(text.to_owned(), Vec::new())
}

/// Calls the tool `look` once for each id.
pub(super) fn calls(ids: &[&str]) -> Step {
    let call = |id: &&str| Called {
        id: long(id),
        name: "look".to_owned(),
        args: json!({"at": id}),
    };
    Step::Ai(String::new(), ids.iter().map(call).collect())
}

pub(super) fn result(id: &str, text: &str) -> Step {
    Step::Result(long(id), text.to_owned())
}

/// An id that every provider takes.
pub(super) fn long(id: &str) -> String {
    format!("call{id:0>5}")
}

/// The key of the messages.
pub(super) fn key(provider: Provider) -> &'static str {
    match provider {
        Provider::Gemini => "contents",
        Provider::OpenAiResponses => "input",
        _ => "messages",
    }
}

/// A whole request that has these messages.
pub(super) fn request(provider: Provider, messages: Value) -> Value {
    let schema = json!({"type": "object", "properties": {"at": {"type": "string"}}});
    let function = json!({"name": "look", "description": "Looks", "parameters": schema});
    match provider {
        Provider::Anthropic => {
            json!({"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": messages,
                "tools": [{"name": "look", "description": "Looks", "input_schema": schema}]})
        }
        Provider::OpenAi | Provider::Mistral | Provider::Ollama => {
            json!({"model": "m", "messages": messages, "tools": [{"type": "function", "function": function}]})
        }
        Provider::OpenAiResponses => {
            json!({"model": "m", "input": messages, "tools": [{"type": "function", "name": "look", "description": "Looks", "parameters": schema}]})
        }
        Provider::Gemini => {
            json!({"contents": messages, "tools": [{"functionDeclarations": [function]}]})
        }
        Provider::BedrockConverse => {
            let spec =
                json!({"name": "look", "description": "Looks", "inputSchema": {"json": schema}});
            json!({"messages": messages, "toolConfig": {"tools": [{"toolSpec": spec}]}})
        }
        Provider::LangChain => json!({ "messages": messages }),
    }
}

pub(super) fn render(provider: Provider, steps: &[Step]) -> Value {
    let messages: Vec<Value> = steps
        .iter()
        .flat_map(|step| message(provider, step, steps))
        .collect();
    let messages = match provider {
        Provider::BedrockConverse => alternating(messages),
        _ => messages,
    };
    request(provider, Value::Array(messages))
}

/// Results and words of one turn in one message.
fn alternating(messages: Vec<Value>) -> Vec<Value> {
    let mut turns: Vec<Value> = Vec::new();
    for mut message in messages {
        let before = turns
            .last_mut()
            .filter(|turn| turn["role"] == message["role"]);
        match before {
            Some(turn) => {
                let blocks = turn["content"].as_array_mut().expect("blocks");
                blocks.append(message["content"].as_array_mut().expect("blocks"));
            }
            None => turns.push(message),
        }
    }
    turns
}

/// The message, or messages, of one step.
pub(super) fn message(provider: Provider, step: &Step, all: &[Step]) -> Vec<Value> {
    match step {
        Step::User(text) => vec![match provider {
            Provider::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
            Provider::LangChain => json!({"type": "human", "content": text}),
            Provider::BedrockConverse => json!({"role": "user", "content": [{"text": text}]}),
            _ => json!({"role": "user", "content": text}),
        }],
        Step::Ai(text, calls) => ai(provider, text, calls),
        Step::Result(id, text) => vec![result_message(provider, id, text, all)],
    }
}

fn ai(provider: Provider, text: &str, calls: &[Called]) -> Vec<Value> {
    let native = |call: &Called| {
        let Called { id, name, args } = call;
        match provider {
            Provider::Anthropic => {
                json!({"type": "tool_use", "id": id, "name": name, "input": args})
            }
            Provider::Gemini => {
                json!({"functionCall": {"id": id, "name": name, "args": args}, "thoughtSignature": "sig"})
            }
            Provider::BedrockConverse => {
                json!({"toolUse": {"toolUseId": id, "name": name, "input": args}})
            }
            Provider::LangChain => {
                json!({"name": name, "args": args, "id": id, "type": "tool_call"})
            }
            Provider::Ollama => json!({"id": id, "function": {"name": name, "arguments": args}}),
            Provider::OpenAiResponses => {
                json!({"type": "function_call", "call_id": id, "name": name, "arguments": args.to_string()})
            }
            Provider::OpenAi | Provider::Mistral => {
                json!({"id": id, "type": "function", "function": {"name": name, "arguments": args.to_string()}})
            }
        }
    };
    let calls: Vec<Value> = calls.iter().map(native).collect();
    match provider {
        Provider::Anthropic | Provider::Gemini | Provider::BedrockConverse => {
            let (role, key) = match provider {
                Provider::Anthropic | Provider::BedrockConverse => ("assistant", "content"),
                _ => ("model", "parts"),
            };
            let mut parts = calls;
            if !text.is_empty() {
                let part = match provider {
                    Provider::Anthropic => json!({"type": "text", "text": text}),
                    _ => json!({ "text": text }),
                };
                parts.insert(0, part);
            }
            let mut message = json!({ "role": role });
            message[key] = Value::Array(parts);
            vec![message]
        }
        Provider::OpenAiResponses => {
            let mut items = calls;
            if !text.is_empty() || items.is_empty() {
                items.insert(0, json!({"role": "assistant", "content": text}));
            }
            items
        }
        Provider::LangChain => vec![json!({"type": "ai", "content": text, "tool_calls": calls})],
        _ if calls.is_empty() => vec![json!({"role": "assistant", "content": text})],
        _ => vec![json!({"role": "assistant", "content": text, "tool_calls": calls})],
    }
}

fn result_message(provider: Provider, id: &str, text: &str, all: &[Step]) -> Value {
    let is_it = |step: &Step| match step {
        Step::Ai(_, calls) => calls.iter().find(|call| call.id == id).cloned(),
        _ => None,
    };
    let name = all
        .iter()
        .find_map(is_it)
        .map_or("look".to_owned(), |call| call.name);
    match provider {
        Provider::Anthropic => {
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]})
        }
        Provider::Gemini => {
            json!({"role": "user", "parts": [{"functionResponse": {"id": id, "name": name, "response": {"output": text}}}]})
        }
        Provider::OpenAiResponses => {
            json!({"type": "function_call_output", "call_id": id, "output": text})
        }
        Provider::BedrockConverse => {
            json!({"role": "user", "content": [{"toolResult": {"toolUseId": id, "content": [{"text": text}]}}]})
        }
        Provider::LangChain => {
            json!({"type": "tool", "content": text, "tool_call_id": id, "status": "success"})
        }
        Provider::Ollama => {
            json!({"role": "tool", "tool_name": name, "tool_call_id": id, "content": text})
        }
        Provider::OpenAi | Provider::Mistral => {
            json!({"role": "tool", "tool_call_id": id, "content": text})
        }
    }
}

/// What must hold for every repair: accepted by the strict provider, nothing left to find, not changed
/// again, always the same, and everything that was said is still there.
pub(super) fn check(provider: Provider, broken: &Value) -> (Value, Vec<Fix>) {
    verdict(provider, broken).unwrap_or_else(|fault| panic!("{fault}"))
}

/// [`check`], for those who want to go on after a fault.
pub(super) fn verdict(provider: Provider, broken: &Value) -> Result<(Value, Vec<Fix>), String> {
    let (repaired, fixes) = repair(provider, broken.clone());
    let about = |fault: String| {
        format!("{fault}\n{provider}\nbroken {broken:#}\nrepaired {repaired:#}\n{fixes:#?}")
    };
    strict::check(provider, &repaired)
        .map_err(|(status, body)| about(format!("{status} {body}")))?;
    if provider == Provider::LangChain {
        let messages = Message::list_from_json(repaired["messages"].clone());
        let messages = messages.map_err(|error| about(error.to_string()))?;
        let (_, open) = steadyhand::answer_open_calls(messages);
        holds(open.is_empty(), || about(format!("open: {open:?}")))?;
    }
    let mut problems = validate(provider, What::Request, &repaired);
    // What the provider takes is told of, and left as it is.
    problems.retain(|one| one.code != Code::ResultOrder || one.provider_text.is_some());
    holds(problems.is_empty(), || {
        about(format!("left: {problems:#?}"))
    })?;
    let (again, more) = repair(provider, repaired.clone());
    let is_same = more.is_empty() && written(&again) == written(&repaired);
    holds(is_same, || about(format!("again: {more:#?} {again:#}")))?;
    let (twin, same) = repair(provider, broken.clone());
    let is_same = written(&twin) == written(&repaired) && same == fixes;
    holds(is_same, || about(format!("now: {same:#?} {twin:#}")))?;
    let is_same = !fixes.is_empty() || written(&repaired) == written(broken);
    holds(is_same, || about("changed, and no fix says so".to_owned()))?;
    let text = repaired.to_string();
    for word in words(&broken[key(provider)].to_string()) {
        holds(text.contains(&word), || about(format!("{word} is lost")))?;
    }
    let hidden = unexplained(provider, broken, &repaired, &fixes);
    let told = |index| about(format!("message {index} changed and no fix says so"));
    hidden.map_or(Ok(()), |index| Err(told(index)))?;
    Ok((repaired, fixes))
}

fn holds(condition: bool, fault: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(fault()) }
}

/// The words that must not get lost: a letter, digits, and an x.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let split = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    for word in split {
        let inner = word
            .strip_prefix(['u', 'r', 'a'])
            .and_then(|word| word.strip_suffix('x'));
        if inner.is_some_and(|inner| {
            !inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_digit())
        }) {
            found.push(word.to_owned());
        }
    }
    found
}

/// The first message that no fix speaks of and that is not there as it was, in the same order.
fn unexplained(
    provider: Provider,
    broken: &Value,
    repaired: &Value,
    fixes: &[Fix],
) -> Option<usize> {
    let key = key(provider);
    let (before, after) = (broken[key].as_array()?, repaired[key].as_array()?);
    let is_named = |index: usize| {
        let place = format!("/{key}/{index}");
        fixes.iter().any(|fix| {
            fix.at
                .strip_prefix(&place)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let mut rest = after.iter();
    let mut unnamed = (0..before.len()).filter(|index| !is_named(*index));
    unnamed.find(|index| !rest.any(|other| has_grown(&before[*index], other)))
}

/// Whether a message is as it was, or has gained results beside those it had.
fn has_grown(before: &Value, after: &Value) -> bool {
    if before == after {
        return true;
    }
    let parts = |message: &Value| {
        let parts = ["content", "parts"].iter().find_map(|key| message.get(key));
        parts.and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let (old, new) = (parts(before), parts(after));
    let mut rest = new.iter();
    !old.is_empty()
        && before["role"] == after["role"]
        && old.iter().all(|part| rest.any(|other| other == part))
}

/// To the letter: the order of keys counts.
pub(super) fn written(value: &Value) -> String {
    value.to_string()
}
