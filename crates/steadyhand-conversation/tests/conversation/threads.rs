//! Conversations rebuilt from public threads: what the provider answered there, and what is left of it here.

use serde_json::{Value, json};
use steadyhand_conversation::strict;
use steadyhand_conversation::{Provider, explain};

use super::render::{check, request};

struct Thread {
    name: &'static str,
    provider: Provider,
    messages: Value,
    /// What the provider said, as the thread has it.
    said: &'static str,
}

fn use_of(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "look", "input": {}})
}

fn result_of(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "r1x"})
}

fn function(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}})
}

fn threads() -> Vec<Thread> {
    let mut threads = anthropic();
    threads.extend(openai());
    threads.extend(others());
    threads
}

fn anthropic() -> Vec<Thread> {
    let thread = |name, said, messages| Thread {
        name,
        provider: Provider::Anthropic,
        messages,
        said,
    };
    vec![
        thread(
            "anthropics/claude-code#5989: interrupted with two calls in flight",
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_A, toolu_B. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": [use_of("toolu_A"), use_of("toolu_B")]}, {"role": "user", "content": "u2x"}]),
        ),
        thread(
            "router-for-me/CLIProxyAPI#497: history cut between call and result",
            "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_X. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
            json!([{"role": "user", "content": [result_of("toolu_X"), {"type": "text", "text": "u1x"}]}, {"role": "assistant", "content": "a1x"}, {"role": "user", "content": "u2x"}]),
        ),
        thread(
            "trycua/cua#524: one id for two calls",
            "messages.1.content.1: `tool_use` ids must be unique",
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": [use_of("toolu_A"), use_of("toolu_A")]}, {"role": "user", "content": [result_of("toolu_A")]}]),
        ),
        thread(
            "maximhq/bifrost#5097: ids born elsewhere",
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": [use_of("functions.Bash:0")]}, {"role": "user", "content": [result_of("functions.Bash:0")]}]),
        ),
        thread(
            "anthropics/claude-code#6696: arguments as text",
            "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": "{\"at\": \"a1x\"}"}]}, {"role": "user", "content": [result_of("t")]}]),
        ),
        thread(
            "anthropics/claude-code#59812: an empty text",
            "messages: text content blocks must be non-empty",
            json!([{"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "u1x"}]}]),
        ),
    ]
}

fn openai() -> Vec<Thread> {
    let thread = |name, provider, said, messages| Thread {
        name,
        provider,
        messages,
        said,
    };
    vec![
        thread(
            "pydantic/pydantic-ai#492: the run broke off after the calls",
            Provider::OpenAi,
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_A, call_B",
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": null, "tool_calls": [function("call_A"), function("call_B")]}, {"role": "user", "content": "u2x"}]),
        ),
        thread(
            "miurla/morphic#136: a result alone",
            Provider::OpenAi,
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": "a1x"}, {"role": "tool", "tool_call_id": "call_A", "content": "r1x"}]),
        ),
        thread(
            "agno-agi/agno#5116: a result twice",
            Provider::OpenAi,
            "Invalid parameter: Duplicate value for 'tool_call_id' of 'call_X', in messages[2] and messages[3].",
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": null, "tool_calls": [function("call_X")]}, {"role": "tool", "tool_call_id": "call_X", "content": "r1x"}, {"role": "tool", "tool_call_id": "call_X", "content": "r2x"}]),
        ),
        thread(
            "camel-ai/camel#2215: an id too long",
            Provider::OpenAi,
            "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 46 instead.",
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": null, "tool_calls": [function("call_0123456789012345678901234567890123456789_")]}, {"role": "tool", "tool_call_id": "call_0123456789012345678901234567890123456789_", "content": "r1x"}]),
        ),
        thread(
            "github/copilot-sdk#1922: an image between the results",
            Provider::OpenAi,
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_B",
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": null, "tool_calls": [function("call_A"), function("call_B")]}, {"role": "tool", "tool_call_id": "call_A", "content": "r1x"}, {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u2x"}}]}, {"role": "tool", "tool_call_id": "call_B", "content": "r2x"}]),
        ),
        thread(
            "continuedev/continue#10092: no output",
            Provider::OpenAiResponses,
            "No tool output found for function call call_X.",
            json!([{"role": "user", "content": "u1x"}, {"type": "function_call", "call_id": "call_X", "name": "look", "arguments": "{}"}, {"role": "user", "content": "u2x"}]),
        ),
        thread(
            "vercel/ai#13307: an item twice",
            Provider::OpenAiResponses,
            "Duplicate item found with id fc_1. Remove duplicate items from your input and try again.",
            json!([{"role": "user", "content": "u1x"}, {"type": "function_call", "id": "fc_1", "call_id": "call_X", "name": "look", "arguments": "{}"}, {"type": "function_call", "id": "fc_1", "call_id": "call_X", "name": "look", "arguments": "{}"}, {"type": "function_call_output", "call_id": "call_X", "output": "r1x"}]),
        ),
    ]
}

fn others() -> Vec<Thread> {
    let call = json!({"functionCall": {"name": "look", "args": {}}});
    let answer = json!({"functionResponse": {"name": "look", "response": {"output": "r1x"}}});
    let thread = |name, provider, said, messages| Thread {
        name,
        provider,
        messages,
        said,
    };
    vec![
        thread(
            "google-gemini/gemini-cli#16415: fewer responses than calls",
            Provider::Gemini,
            "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
            json!([{"role": "user", "parts": [{"text": "u1x"}]}, {"role": "model", "parts": [call, call]}, {"role": "user", "parts": [answer]}]),
        ),
        thread(
            "google-gemini/gemini-cli#11814: the history starts with a call",
            Provider::Gemini,
            "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
            json!([{"role": "model", "parts": [call]}, {"role": "user", "parts": [answer]}]),
        ),
        thread(
            "langchain-ai/langchain#27799: a response without a call",
            Provider::Gemini,
            "Please ensure that function response turn comes immediately after a function call turn.",
            json!([{"role": "user", "parts": [{"text": "u1x"}]}, {"role": "model", "parts": [{"text": "a1x"}]}, {"role": "user", "parts": [answer]}]),
        ),
        thread(
            "onyx-dot-app/onyx#6458: calls and responses do not add up",
            Provider::Mistral,
            "Not the same number of function calls and responses",
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": "", "tool_calls": [function("abcdefgh1"), function("abcdefgh2")]}, {"role": "tool", "tool_call_id": "abcdefgh1", "content": "r1x"}, {"role": "user", "content": "u2x"}]),
        ),
    ]
}

#[test]
fn r03_conversations_that_died_in_public_live_on() {
    for thread in threads() {
        let broken = request(thread.provider, thread.messages);
        let (status, body) = strict::check(thread.provider, &broken).expect_err(thread.name);
        assert_eq!(status, 400, "{}", thread.name);
        let said = body
            .pointer("/error/message")
            .or_else(|| body.get("message"));
        assert_eq!(
            said.and_then(Value::as_str),
            Some(thread.said),
            "{}",
            thread.name
        );
        let found = steadyhand_conversation::validate(
            thread.provider,
            steadyhand_conversation::What::Request,
            &broken,
        );
        let texts: Vec<_> = found
            .iter()
            .filter_map(|one| one.provider_text.as_deref())
            .collect();
        assert!(texts.contains(&thread.said), "{}: {found:#?}", thread.name);
        let (repaired, fixes) = check(thread.provider, &broken);
        let words = explain(thread.provider, &broken, &repaired, &fixes);
        assert!(words.contains(fixes[0].code.as_str()), "{words}");
    }
}
