//! One conversation in every provider's JSON, and what all checks of a repair have in common.

use serde_json::{Value, json};
use steadyhand::Message;
use steadyhand::conversation::{Fix, Provider, What, repair, validate};
use steadyhand::testing::strict;

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
            json!({"model": "m", "input": messages, "tools": [{"type": "function", "name": "look", "parameters": schema}]})
        }
        Provider::Gemini => {
            json!({"contents": messages, "tools": [{"functionDeclarations": [function]}]})
        }
        Provider::LangChain => json!({ "messages": messages }),
    }
}

pub(super) fn render(provider: Provider, steps: &[Step]) -> Value {
    let messages: Vec<Value> = steps
        .iter()
        .flat_map(|step| message(provider, step, steps))
        .collect();
    request(provider, Value::Array(messages))
}

/// The message, or messages, of one step.
pub(super) fn message(provider: Provider, step: &Step, all: &[Step]) -> Vec<Value> {
    match step {
        Step::User(text) => vec![match provider {
            Provider::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
            Provider::LangChain => json!({"type": "human", "content": text}),
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
        Provider::Anthropic | Provider::Gemini => {
            let (role, key) = match provider {
                Provider::Anthropic => ("assistant", "content"),
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
    let (repaired, fixes) = repair(provider, broken.clone());
    let about = || format!("{provider}\nbroken {broken:#}\nrepaired {repaired:#}\n{fixes:#?}");
    if let Err((status, body)) = strict::check(provider, &repaired) {
        panic!("{status} {body} {}", about());
    }
    if provider == Provider::LangChain {
        let messages = Message::list_from_json(repaired["messages"].clone());
        let messages = messages.unwrap_or_else(|error| panic!("{error} {}", about()));
        let (_, open) = steadyhand::answer_open_calls(messages);
        assert!(open.is_empty(), "{open:?} {}", about());
    }
    let problems = validate(provider, What::Request, &repaired);
    assert!(problems.is_empty(), "{problems:#?} {}", about());
    let (again, more) = repair(provider, repaired.clone());
    assert!(more.is_empty(), "{more:#?} {}", about());
    assert_eq!(again.to_string(), repaired.to_string());
    let (twin, same) = repair(provider, broken.clone());
    assert_eq!((twin.to_string(), &same), (repaired.to_string(), &fixes));
    if fixes.is_empty() {
        assert_eq!(repaired.to_string(), broken.to_string());
    }
    let text = repaired.to_string();
    for word in words(&broken[key(provider)].to_string()) {
        assert!(text.contains(&word), "{word} is lost: {}", about());
    }
    explained(provider, broken, &repaired, &fixes);
    (repaired, fixes)
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

/// What no fix speaks of is there as it was, in the same order.
fn explained(provider: Provider, broken: &Value, repaired: &Value, fixes: &[Fix]) {
    let key = key(provider);
    let (Some(before), Some(after)) = (broken[key].as_array(), repaired[key].as_array()) else {
        return;
    };
    let is_named = |index: usize| {
        let place = format!("/{key}/{index}");
        fixes.iter().any(|fix| {
            fix.at
                .strip_prefix(&place)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let mut rest = after.iter();
    for (index, message) in before.iter().enumerate() {
        if !is_named(index) {
            assert!(
                rest.any(|other| other == message),
                "{provider}: message {index} changed and no fix says so\nbroken {broken:#}\nrepaired {repaired:#}\n{fixes:#?}"
            );
        }
    }
}
