//! A conversation that grows inside the proxy: what the model said and what tools answered, in the provider's own JSON.

use serde_json::{Value, json};
use steadyhand_conversation::{Provider, messages_key};

/// What the model said, as messages for the next request.
pub(in super::super) fn said(provider: Provider, answer: &Value) -> Vec<Value> {
    let found = |pointer: &str| answer.pointer(pointer).cloned().into_iter().collect();
    match provider {
        Provider::Anthropic => {
            vec![json!({"role": "assistant", "content": answer["content"]})]
        }
        Provider::OpenAi | Provider::Mistral => found("/choices/0/message"),
        Provider::Ollama => found("/message"),
        Provider::Gemini => found("/candidates/0/content"),
        Provider::BedrockConverse => found("/output/message"),
        Provider::OpenAiResponses => {
            let output = answer.get("output").and_then(Value::as_array);
            output.cloned().unwrap_or_default()
        }
        Provider::LangChain => vec![answer.clone()],
    }
}

/// Puts messages behind those of a request.
pub(super) fn append(provider: Provider, request: &mut Value, more: Vec<Value>) {
    let key = messages_key(provider);
    if let Some(words) = request[key].as_str() {
        // A question alone stands for a message.
        request[key] = json!([{"role": "user", "content": words}]);
    }
    if let Some(Value::Array(messages)) = request.get_mut(key) {
        messages.extend(more);
    }
}

/// The answer with the calls that are meant, and no others.
pub(super) fn with_calls(
    provider: Provider,
    mut answer: Value,
    is_meant: impl Fn(&str) -> bool,
) -> Value {
    let named = |value: &Value| value["name"].as_str().is_some_and(&is_meant);
    let keep = |list: Option<&mut Value>, is_kept: &dyn Fn(&Value) -> bool| {
        if let Some(Value::Array(list)) = list {
            list.retain(|one| is_kept(one));
        }
    };
    match provider {
        Provider::Anthropic => keep(answer.get_mut("content"), &|block| {
            block["type"] != "tool_use" || named(block)
        }),
        Provider::OpenAi | Provider::Mistral => keep(
            answer.pointer_mut("/choices/0/message/tool_calls"),
            &|call| named(&call["function"]),
        ),
        Provider::Ollama => keep(answer.pointer_mut("/message/tool_calls"), &|call| {
            named(&call["function"])
        }),
        Provider::OpenAiResponses => keep(answer.get_mut("output"), &|item| {
            item["type"] != "function_call" || named(item)
        }),
        Provider::Gemini => keep(answer.pointer_mut("/candidates/0/content/parts"), &|part| {
            part.get("functionCall")
                .is_none_or(|call| call["name"].as_str().is_some_and(&is_meant))
        }),
        Provider::BedrockConverse => {
            keep(answer.pointer_mut("/output/message/content"), &|block| {
                block.get("toolUse").is_none_or(named)
            });
        }
        Provider::LangChain => {}
    }
    answer
}

/// The answer without its words: they are told elsewhere.
pub(super) fn without_words(provider: Provider, mut answer: Value) -> Value {
    match provider {
        Provider::Anthropic => {
            if let Some(Value::Array(blocks)) = answer.get_mut("content") {
                blocks.retain(|block| block["type"] != "text");
            }
        }
        Provider::OpenAi | Provider::Mistral => {
            if let Some(message) = answer.pointer_mut("/choices/0/message") {
                message["content"] = Value::Null;
            }
        }
        Provider::Ollama => {
            if let Some(message) = answer.get_mut("message") {
                message["content"] = json!("");
            }
        }
        Provider::OpenAiResponses => {
            if let Some(Value::Array(items)) = answer.get_mut("output") {
                items.retain(|item| item["type"] != "message");
            }
        }
        Provider::Gemini => {
            let parts = answer.pointer_mut("/candidates/0/content/parts");
            if let Some(Value::Array(parts)) = parts {
                parts.retain(|part| part.get("text").is_none());
            }
        }
        Provider::BedrockConverse => {
            let blocks = answer.pointer_mut("/output/message/content");
            if let Some(Value::Array(blocks)) = blocks {
                blocks.retain(|block| block.get("text").is_none());
            }
        }
        Provider::LangChain => {}
    }
    answer
}

/// What an answer says.
pub(super) fn words(provider: Provider, answer: &Value) -> String {
    let texts = |list: Option<&Value>, key: &str| -> String {
        let list = list.and_then(Value::as_array).into_iter().flatten();
        let spoken = list.filter(|one| one["thought"] != true);
        spoken.filter_map(|one| one[key].as_str()).collect()
    };
    let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str);
    match provider {
        Provider::Anthropic => texts(answer.get("content"), "text"),
        Provider::OpenAi | Provider::Mistral | Provider::LangChain => {
            text("/choices/0/message/content")
                .unwrap_or_default()
                .to_owned()
        }
        Provider::Ollama => text("/message/content").unwrap_or_default().to_owned(),
        Provider::Gemini => texts(answer.pointer("/candidates/0/content/parts"), "text"),
        Provider::BedrockConverse => texts(answer.pointer("/output/message/content"), "text"),
        Provider::OpenAiResponses => {
            let items = answer["output"].as_array().into_iter().flatten();
            items
                .filter(|item| item["type"] == "message")
                .map(|item| texts(item.get("content"), "text"))
                .collect()
        }
    }
}
