//! Requests and answers as a whole: fields, tools, what a model said, and the words for people.

use serde_json::{Value, json};
use steadyhand::conversation::{Code, Provider, What, explain, repair, validate};
use steadyhand::testing::strict;

use super::render::{calls, render, user};

#[test]
fn r01_a_request_without_its_fields_is_told_which() {
    let table = [
        (
            Provider::Anthropic,
            json!({"messages": [{"role": "user", "content": "u"}]}),
            vec!["/model", "/max_tokens"],
        ),
        (Provider::OpenAi, json!({}), vec!["/messages", "/model"]),
        (
            Provider::OpenAiResponses,
            json!({"model": "m"}),
            vec!["/input"],
        ),
        (Provider::Gemini, json!({"contents": []}), vec!["/contents"]),
        (
            Provider::Mistral,
            json!({"messages": []}),
            vec!["/messages", "/model"],
        ),
        (
            Provider::Ollama,
            json!({"messages": [{"role": "user", "content": "u"}]}),
            vec!["/model"],
        ),
        (Provider::LangChain, json!(5), vec![""]),
    ];
    for (provider, broken, places) in table {
        let found = validate(provider, What::Request, &broken);
        let at: Vec<&str> = found.iter().map(|problem| problem.at.as_str()).collect();
        assert_eq!(at, places, "{provider}");
    }
}

#[test]
fn r01_tool_definitions_are_checked_with_the_providers_words() {
    let tool = |name: &str, schema: Value| json!({"type": "function", "function": {"name": name, "parameters": schema}});
    let object = json!({"type": "object", "properties": {}});
    let openai = |tools: Vec<Value>| json!({"model": "m", "messages": [{"role": "user", "content": "u"}], "tools": tools});
    let claude = |name: &str, schema: Value| json!({"name": name, "input_schema": schema});
    let anthropic = |tools: Vec<Value>| json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "u"}], "tools": tools});
    let table = [
        (
            Provider::OpenAi,
            openai(vec![tool("a.b", object.clone())]),
            "Invalid 'tools[0].function.name': string does not match pattern.",
        ),
        (
            Provider::OpenAi,
            openai(vec![tool(&"n".repeat(72), object.clone())]),
            "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 72 instead.",
        ),
        (
            Provider::OpenAi,
            openai(vec![tool("", object.clone())]),
            "Invalid 'tools[0].function.name': empty string.",
        ),
        (
            Provider::OpenAi,
            openai(vec![tool("x", json!({"properties": {}}))]),
            "Invalid schema for function 'x': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'.",
        ),
        (
            Provider::OpenAi,
            openai(vec![tool(
                "x",
                json!({"type": "object", "properties": {"d": {"type": "array"}}}),
            )]),
            "Invalid schema for function 'x': In context=('properties', 'd'), array schema missing items.",
        ),
        (
            Provider::OpenAi,
            openai(
                (0..129)
                    .map(|n| tool(&format!("t{n}"), object.clone()))
                    .collect(),
            ),
            "Invalid 'tools': array too long.",
        ),
        (
            Provider::Anthropic,
            anthropic(vec![claude("a b", object.clone())]),
            "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        ),
        (
            Provider::Anthropic,
            anthropic(vec![
                claude("x", object.clone()),
                claude("x", object.clone()),
            ]),
            "tools: Tool names must be unique.",
        ),
        (
            Provider::Anthropic,
            anthropic(vec![claude("x", json!({"type": "object", "oneOf": []}))]),
            "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
        ),
        (
            Provider::Anthropic,
            anthropic(vec![claude(
                "x",
                json!({"type": "object", "properties": {"a": {"type": "nonsense"}}}),
            )]),
            "tools.0.custom.input_schema: JSON schema is invalid.",
        ),
        (
            Provider::Anthropic,
            anthropic(vec![json!(5)]),
            "tools.0: Input should be an object",
        ),
        (
            Provider::Ollama,
            openai(vec![tool("x", json!({"type": "object", "properties": []}))]),
            "Value looks like object, but can't find closing '}' symbol",
        ),
        (
            Provider::Mistral,
            openai(vec![tool("a.b", object)]),
            "Function name was a.b but must be",
        ),
        (
            Provider::Gemini,
            json!({"contents": [{"parts": [{"text": "u"}]}], "tools": [{"functionDeclarations": [{"name": "1x"}]}]}),
            "* GenerateContentRequest.tools[0].function_declarations[0].name: Invalid function name.",
        ),
        (
            Provider::Gemini,
            json!({"contents": [{"parts": [{"text": "u"}]}], "tools": [{"functionDeclarations": [{"name": "x", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}}]}]}),
            "Invalid JSON payload received. Unknown name \"additionalProperties\"",
        ),
    ];
    for (provider, broken, words) in table {
        let found = validate(provider, What::Request, &broken);
        let texts: Vec<_> = found
            .iter()
            .filter_map(|one| one.provider_text.as_deref())
            .collect();
        assert!(
            texts.iter().any(|text| text.starts_with(words)),
            "{provider} {words}: {found:#?}"
        );
        let (_, body) = strict::check(provider, &broken).expect_err("refused");
        assert!(
            body.to_string().replace("\\\"", "\"").contains(words),
            "{body}"
        );
    }
    // Strict tools must say everything.
    let strict_tool = json!({"type": "function", "function": {"name": "x", "strict": true, "parameters": {"type": "object", "properties": {"a": {"type": "string"}}, "required": []}}});
    let found = validate(Provider::OpenAi, What::Request, &openai(vec![strict_tool]));
    let texts: Vec<_> = found
        .iter()
        .filter_map(|one| one.provider_text.clone())
        .collect();
    assert!(
        texts[0].contains("'additionalProperties' is required to be supplied and to be false.")
    );
    assert!(texts[1].contains("Missing 'a'."));
}

#[test]
fn r02_an_answer_is_checked() {
    let cut = json!({"choices": [{"finish_reason": "length", "message": {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{"}}]}}]});
    let table = [
        (
            Provider::OpenAi,
            cut,
            Code::TruncatedCall,
            "/choices/0/message/tool_calls/0/function/arguments",
        ),
        (
            Provider::Anthropic,
            json!({"role": "assistant", "stop_reason": "max_tokens", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]}),
            Code::TruncatedCall,
            "/content/0/input",
        ),
        (
            Provider::Ollama,
            json!({"message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {"at": 1}}}]}, "done_reason": "length"}),
            Code::TruncatedCall,
            "/message/tool_calls/0/function/arguments",
        ),
        (
            Provider::OpenAi,
            json!({"error": {"message": "no"}}),
            Code::ErrorResponse,
            "",
        ),
        (
            Provider::OpenAi,
            json!({"choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "content": "x"}}]}),
            Code::BadContent,
            "",
        ),
        (
            Provider::Anthropic,
            json!({"type": "error", "error": {}}),
            Code::ErrorResponse,
            "",
        ),
        (
            Provider::Anthropic,
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "", "input": {}}]}),
            Code::BadCallName,
            "/content/0/name",
        ),
        (
            Provider::Gemini,
            json!({"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "x", "args": 5}}]}}]}),
            Code::BadArguments,
            "/candidates/0/content/parts/0",
        ),
        (
            Provider::Ollama,
            json!({"message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "", "arguments": {}}}]}}),
            Code::BadCallName,
            "/message/tool_calls/0/function/name",
        ),
        (
            Provider::OpenAiResponses,
            json!({"output": [{"type": "function_call", "call_id": "", "name": "x", "arguments": "{}"}]}),
            Code::BadCallId,
            "/output/0/call_id",
        ),
        (Provider::Mistral, json!("gone"), Code::NoMessages, ""),
    ];
    for (provider, answer, code, at) in table {
        let found = validate(provider, What::Response, &answer);
        assert!(
            found.iter().any(|one| one.code == code && one.at == at),
            "{provider}: {found:#?}"
        );
    }
}

#[test]
fn r03_what_was_changed_is_explained_to_people() {
    let broken = render(
        Provider::Anthropic,
        &[user("u1x"), calls(&["a"]), user("u2x")],
    );
    let (repaired, fixes) = repair(Provider::Anthropic, broken.clone());
    let text = explain(Provider::Anthropic, &broken, &repaired, &fixes);
    assert!(
        text.starts_with("1 fix, so that anthropic takes this conversation:"),
        "{text}"
    );
    assert!(
        text.contains("/messages/1/content/0  missing_result"),
        "{text}"
    );
    assert!(text.contains("    … 2 messages as they were\n  + {\"role\":\"user\",\"content\":[{\"type\":\"tool_result\""), "{text}");
    let text = explain(Provider::Anthropic, &repaired, &repaired, &[]);
    assert!(text.starts_with("Nothing to mend"), "{text}");
}
