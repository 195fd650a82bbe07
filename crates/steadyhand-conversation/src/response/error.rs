//! A response of a model that was none: what went wrong, said in the provider's own shape (SPEC R14).

use serde_json::{Value, json};

use crate::provider::Provider;
use crate::texts;

/// A well-formed response whose answer says that the model could not be asked, or did not answer: `Error: <message>`.
///
/// It is the `createErrorResponse` for those who wait for an answer of a model: it calls no tool, ends the turn, and
/// passes [`validate`](crate::validate).
///
/// ```
/// use steadyhand_conversation::{Provider, What, error_response, validate};
///
/// let response = error_response(Provider::OpenAi, "gpt-4o", "the provider did not answer in time");
/// assert_eq!(response["choices"][0]["message"]["content"], "Error: the provider did not answer in time");
/// assert!(validate(Provider::OpenAi, What::Response, &response).is_empty());
/// ```
pub fn error_response(provider: Provider, model: &str, message: &str) -> Value {
    let said = texts::error(message);
    match provider {
        Provider::Anthropic => json!({
            "id": "msg_error",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [{"type": "text", "text": said}],
            "stop_reason": "end_turn",
            "stop_sequence": null,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }),
        Provider::OpenAi | Provider::Mistral => json!({
            "id": "chatcmpl-error",
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": said},
                "finish_reason": "stop",
            }],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        }),
        Provider::OpenAiResponses => json!({
            "id": "resp_error",
            "object": "response",
            "created_at": 0,
            "status": "completed",
            "model": model,
            "output": [{
                "id": "msg_error",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": said, "annotations": []}],
            }],
            "usage": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
        }),
        Provider::Gemini => json!({
            "candidates": [{
                "index": 0,
                "content": {"role": "model", "parts": [{"text": said}]},
                "finishReason": "OTHER",
            }],
            "modelVersion": model,
            "usageMetadata": {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0},
        }),
        Provider::BedrockConverse => json!({
            "output": {"message": {"role": "assistant", "content": [{"text": said}]}},
            "stopReason": "end_turn",
            "usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0},
            "metrics": {"latencyMs": 0},
        }),
        Provider::Ollama => json!({
            "model": model,
            "created_at": "1970-01-01T00:00:00Z",
            "message": {"role": "assistant", "content": said},
            "done": true,
            "done_reason": "stop",
        }),
        Provider::LangChain => json!({
            "type": "ai",
            "content": said,
            "tool_calls": [],
            "invalid_tool_calls": [],
            "response_metadata": {"model_name": model, "finish_reason": "error"},
        }),
    }
}
