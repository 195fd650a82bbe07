//! The end mark of a stream: what its provider sends when the answer is whole. A stream that ends without it broke off,
//! even where HTTP says that all has come.

use serde_json::Value;
use steadyhand_conversation::Provider;

/// The end mark, for people.
pub(super) fn name(provider: Provider) -> &'static str {
    match provider {
        Provider::Anthropic => "message_stop",
        Provider::OpenAi | Provider::Mistral | Provider::LangChain => "a finish_reason or [DONE]",
        Provider::OpenAiResponses => "response.completed",
        Provider::Gemini => "a finishReason",
        Provider::Ollama => "done: true",
        Provider::BedrockConverse => "messageStop",
    }
}

/// Whether an event is the end mark. An error is one, too: its provider has said how it ended.
pub(super) fn is_in(provider: Provider, event: &[u8]) -> bool {
    let event = event.trim_ascii();
    if event == b"[DONE]" {
        return provider != Provider::Anthropic;
    }
    serde_json::from_slice(event).is_ok_and(|event| is(provider, &event))
}

/// The same for an event that has been read.
pub(super) fn is(provider: Provider, event: &Value) -> bool {
    // Some write an empty text where there is no reason yet.
    let is_there =
        |value: Option<&Value>| value.is_some_and(|value| !value.is_null() && *value != "");
    let any = |list: &str, key: &str| {
        let list = event.get(list).and_then(Value::as_array);
        let mut list = list.into_iter().flatten();
        list.any(|one| is_there(one.get(key)))
    };
    let kind = event.get("type").and_then(Value::as_str);
    let is_end = match provider {
        Provider::Anthropic => matches!(kind, Some("message_stop" | "error")),
        Provider::OpenAi | Provider::Mistral | Provider::LangChain => {
            any("choices", "finish_reason")
        }
        Provider::OpenAiResponses => matches!(
            kind,
            Some(
                "response.completed"
                    | "response.incomplete"
                    | "response.failed"
                    | "response.cancelled"
                    | "error"
            )
        ),
        Provider::Gemini => {
            any("candidates", "finishReason")
                || is_there(event.pointer("/promptFeedback/blockReason"))
        }
        Provider::Ollama => event.get("done") == Some(&Value::Bool(true)),
        Provider::BedrockConverse => is_there(event.get("messageStop")),
    };
    is_end || is_there(event.get("error"))
}
