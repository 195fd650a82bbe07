//! What only one provider has: its blocks, roles, fields and limits, with its own words.

use serde_json::{Value, json};
use steadyhand::conversation::{
    Code, Options, Provider, What, explain, repair, repair_with, validate, validate_with,
};
use steadyhand::testing::strict;

use super::render::{calls, check, render, request, result, says, user};

/// The fault is found with the provider's words, which the strict provider says too; then it is mended.
fn says_and_mends(provider: Provider, broken: &Value, code: Code, words: &str) -> Value {
    let found = validate(provider, What::Request, broken);
    let text = found
        .iter()
        .filter(|problem| problem.code == code)
        .find_map(|problem| problem.provider_text.clone());
    let text = text.unwrap_or_else(|| panic!("{code:?} not in {found:#?}"));
    assert!(text.starts_with(words), "{text}");
    let (status, body) = strict::check(provider, broken).expect_err("the strict one refuses");
    assert_eq!(status, 400);
    let message = body
        .pointer("/error/message")
        .or_else(|| body.get("message"))
        .or_else(|| body.get("error"));
    let message = message.and_then(Value::as_str).expect("it says why");
    assert!(message.starts_with(words), "{message}");
    check(provider, broken).0
}

#[test]
fn r01_anthropics_blocks_are_mended() {
    let with = |blocks: Value| {
        request(
            Provider::Anthropic,
            json!([
                {"role": "user", "content": "u1x"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
                {"role": "user", "content": blocks},
            ]),
        )
    };
    let result = json!({"type": "tool_result", "tool_use_id": "a", "content": "r1x"});
    let table = [
        (
            json!([{"type": "text", "text": "u2x"}, result]),
            Code::MisplacedResult,
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a.",
        ),
        (
            json!([result, {"type": "text", "text": ""}]),
            Code::EmptyContent,
            "messages: text content blocks must be non-empty",
        ),
        (
            json!([{"type": "tool_result", "tool_use_id": "a", "content": "", "is_error": true}]),
            Code::EmptyResult,
            "messages.2.content.0.tool_result: content cannot be empty if `is_error` is true",
        ),
        (
            json!([{"type": "tool_result", "tool_use_id": "a", "content": {"k": "r1x"}}]),
            Code::BadContent,
            "messages.2.content.0.tool_result.content: Input should be a valid array",
        ),
        (
            json!([result, result]),
            Code::DuplicateResult,
            "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a",
        ),
        (
            json!([result, {"type": "tool_use", "id": "b", "name": "look", "input": {}}]),
            Code::WrongRole,
            "messages.2.content.1: `tool_use` blocks can only be",
        ),
    ];
    for (blocks, code, words) in table {
        says_and_mends(Provider::Anthropic, &with(blocks), code, words);
    }
}

#[test]
fn r03_a_result_in_the_models_own_message_goes_to_the_user() {
    let broken = request(
        Provider::Anthropic,
        json!([
            {"role": "user", "content": "u1x"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "a", "name": "look", "input": {}},
                {"type": "tool_result", "tool_use_id": "a", "content": "r1x"},
            ]},
            {"role": "user", "content": "u2x"},
        ]),
    );
    let (repaired, _) = check(Provider::Anthropic, &broken);
    assert_eq!(repaired["messages"][2]["content"][0]["content"], "r1x");
}

#[test]
fn r03_thinking_is_kept_to_the_letter_and_its_cache_mark_is_not() {
    let thinking = json!({"type": "thinking", "thinking": " so … ", "signature": "EqQBCgIYAhIM=="});
    let mut marked = thinking.clone();
    marked["cache_control"] = json!({"type": "ephemeral"});
    let broken = request(
        Provider::Anthropic,
        json!([
            {"role": "user", "content": "u1x"},
            {"role": "assistant", "content": [marked, {"type": "redacted_thinking", "data": "xyz"}, {"type": "tool_use", "id": "a", "name": "look", "input": {}, "caller": {"type": "direct"}}]},
            {"role": "user", "content": "u2x"},
        ]),
    );
    let words = "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted";
    let repaired = says_and_mends(Provider::Anthropic, &broken, Code::CacheControl, words);
    assert_eq!(
        repaired["messages"][1]["content"][0].to_string(),
        thinking.to_string()
    );
    assert_eq!(
        repaired["messages"][1]["content"][2]["caller"]["type"],
        "direct"
    );
}

#[test]
fn r03_a_cache_mark_on_an_empty_text_goes_to_the_block_before_it() {
    let mark = json!({"type": "ephemeral"});
    let broken = request(
        Provider::Anthropic,
        json!([{"role": "user", "content": [{"type": "text", "text": "u1x"}, {"type": "text", "text": "", "cache_control": mark}]}]),
    );
    let (repaired, _) = check(Provider::Anthropic, &broken);
    assert_eq!(
        repaired["messages"][0]["content"],
        json!([{"type": "text", "text": "u1x", "cache_control": mark}])
    );
    let text = |word: &str| json!({"type": "text", "text": word, "cache_control": mark});
    let many: Vec<Value> = (0..6).map(|number| text(&format!("u{number}x"))).collect();
    let broken = request(
        Provider::Anthropic,
        json!([{"role": "user", "content": many}]),
    );
    let words = "A maximum of 4 blocks with cache_control may be provided. Found 6.";
    let repaired = says_and_mends(Provider::Anthropic, &broken, Code::CacheControl, words);
    assert_eq!(
        repaired["messages"][0]["content"][1],
        json!({"type": "text", "text": "u1x"})
    );
    assert_eq!(repaired["messages"][0]["content"][2], text("u2x"));
}

#[test]
fn r03_anthropics_request_is_mended_around_its_messages() {
    let steps = [user("u1x"), calls(&["a"]), result("a", "r1x")];
    let mut lost = render(Provider::Anthropic, &steps);
    lost["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    let words = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.";
    let repaired = says_and_mends(Provider::Anthropic, &lost, Code::ThinkingLost, words);
    assert_eq!(repaired["thinking"], json!({"type": "disabled"}));

    let mut forced = render(Provider::Anthropic, &[user("u1x")]);
    forced["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    forced["tool_choice"] = json!({"type": "any"});
    let words = "Thinking may not be enabled when tool_choice forces tool use.";
    says_and_mends(Provider::Anthropic, &forced, Code::ThinkingForced, words);

    let mut without = render(Provider::Anthropic, &steps);
    without["tools"] = json!([]);
    let words = "Requests which include `tool_use` or `tool_result` blocks must define tools.";
    says_and_mends(Provider::Anthropic, &without, Code::MissingTools, words);

    let mut trailing = render(Provider::Anthropic, &[user("u1x"), says("a1x")]);
    assert_eq!(validate(Provider::Anthropic, What::Request, &trailing), []);
    trailing["model"] = json!("claude-sonnet-5");
    let words = "This model does not support assistant message prefill.";
    let repaired = says_and_mends(
        Provider::Anthropic,
        &trailing,
        Code::TrailingAssistant,
        words,
    );
    assert_eq!(repaired["messages"][1], trailing["messages"][1]);
}

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
            openai(vec![tool("a.b", object.clone())]),
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
fn r03_openais_messages_are_mended() {
    let table = [
        (
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": "a1x", "tool_calls": []}]),
            Code::BadContent,
            "Invalid 'messages[1].tool_calls': empty array.",
        ),
        (
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": null}]),
            Code::EmptyContent,
            "Invalid value for 'content': expected a string, got null.",
        ),
        (
            json!([{"role": "user", "content": 5}]),
            Code::BadContent,
            "Invalid type for 'messages[0].content': expected one of a string or array of objects",
        ),
        (
            json!([{"role": "user", "content": [{"role": "user", "content": "u1x"}]}]),
            Code::BadContent,
            "Missing required parameter: 'messages[0].content[0].type'.",
        ),
        (
            json!([{"role": "bogus", "content": "u1x"}]),
            Code::WrongRole,
            "Invalid value: 'bogus'.",
        ),
        (
            json!([{"role": "user", "content": "u1x", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}]),
            Code::WrongRole,
            "Unknown parameter: 'messages[0].tool_calls'.",
        ),
    ];
    for (messages, code, words) in table {
        says_and_mends(
            Provider::OpenAi,
            &request(Provider::OpenAi, messages),
            code,
            words,
        );
    }
}

#[test]
fn r03_a_result_in_the_users_role_is_a_result() {
    let broken = request(
        Provider::OpenAi,
        json!([
            {"role": "user", "content": "u1x"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "user", "tool_call_id": "a", "content": "r1x"},
        ]),
    );
    let (repaired, fixes) = check(Provider::OpenAi, &broken);
    assert_eq!(
        repaired["messages"][2],
        json!({"role": "tool", "tool_call_id": "a", "content": "r1x"})
    );
    assert_eq!(fixes[0].code, Code::WrongRole);
}

#[test]
fn r03_googles_conversation_starts_with_the_user_and_counts_without_ids() {
    let call = json!({"functionCall": {"name": "look", "args": {}}});
    let answer =
        |word: &str| json!({"functionResponse": {"name": "look", "response": {"output": word}}});
    let broken = request(
        Provider::Gemini,
        json!([
            {"role": "model", "parts": [call, call, call]},
            {"role": "user", "parts": [answer("r1x"), {"text": "u1x"}]},
            {"role": "user", "parts": [answer("r2x")]},
        ]),
    );
    let words = "Please ensure that function call turn comes immediately after a user turn";
    let found = validate(Provider::Gemini, What::Request, &broken);
    let texts: Vec<_> = found
        .iter()
        .filter_map(|one| one.provider_text.as_deref())
        .collect();
    assert!(
        texts.iter().any(|text| text.starts_with(words)),
        "{found:#?}"
    );
    let (repaired, _) = check(Provider::Gemini, &broken);
    // The two that there are answer the first two calls, in their order.
    let parts = &repaired["contents"][2]["parts"];
    assert_eq!(parts[0]["functionResponse"]["response"]["output"], "r1x");
    assert_eq!(parts[1]["functionResponse"]["response"]["output"], "r2x");
    assert!(parts[2]["functionResponse"]["response"]["error"].is_string());
}

#[test]
fn r03_a_lost_signature_is_replaced_where_google_wants_one() {
    let mut lost = render(
        Provider::Gemini,
        &[user("u1x"), calls(&["a"]), result("a", "r1x")],
    );
    let part = lost["contents"][1]["parts"][0]
        .as_object_mut()
        .expect("a part");
    part.shift_remove("thoughtSignature");
    assert_eq!(validate(Provider::Gemini, What::Request, &lost), []);
    let options = Options::new().model("gemini-3-flash-preview");
    let found = validate_with(Provider::Gemini, &options, What::Request, &lost);
    assert_eq!(found[0].code, Code::MissingSignature);
    let (repaired, _) = repair_with(Provider::Gemini, &options, lost);
    let found = validate_with(Provider::Gemini, &options, What::Request, &repaired);
    assert_eq!(found, []);
}

#[test]
fn r03_mistrals_rules_of_order_are_kept() {
    let call = json!({"id": "abcdefghi", "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let table = [
        (
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": "a1x"}]),
            Code::TrailingAssistant,
            "Expected last role User or Tool",
        ),
        (
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": "a1x"}, {"role": "system", "content": "u2x"}, {"role": "user", "content": "u3x"}]),
            Code::WrongRole,
            "Unexpected role 'system' after role 'assistant'",
        ),
        (
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": "a1x", "prefix": true}, {"role": "user", "content": "u3x"}]),
            Code::BadField,
            "Assistant message with prefix True must be last message",
        ),
        (
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "tool_calls": [call]}, {"role": "user", "content": "u2x"}]),
            Code::MissingResult,
            "Not the same number of function calls and responses",
        ),
        (
            json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "tool_calls": [{"id": "call_search", "function": {"name": "look", "arguments": "{}"}}]}, {"role": "tool", "tool_call_id": "call_search", "content": "r1x"}]),
            Code::BadCallId,
            "Tool call id was call_search but must be a-z, A-Z, 0-9, with a length of 9.",
        ),
    ];
    for (messages, code, words) in table {
        says_and_mends(
            Provider::Mistral,
            &request(Provider::Mistral, messages),
            code,
            words,
        );
    }
}

#[test]
fn r03_ollamas_contents_are_strings_and_its_arguments_objects() {
    let call = |arguments: Value| {
        json!([
            {"role": "user", "content": "u1x"},
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": arguments}}]},
            {"role": "tool", "tool_name": "look", "content": "r1x"},
        ])
    };
    let words = "Value looks like object, but can't find closing '}' symbol";
    says_and_mends(
        Provider::Ollama,
        &request(Provider::Ollama, call(json!("{\"at\":\"a1x\"}"))),
        Code::BadArguments,
        words,
    );
    let mut list = call(json!({}));
    list[2]["content"] = json!([{"type": "text", "text": "r1x"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}]);
    let words = "json: cannot unmarshal array into Go struct field Alias.content of type string";
    let repaired = says_and_mends(
        Provider::Ollama,
        &request(Provider::Ollama, list),
        Code::BadContent,
        words,
    );
    assert_eq!(repaired["messages"][3]["images"], json!(["QUJD"]));
}

#[test]
fn r03_reasoning_and_items_of_the_responses() {
    let table = [
        (
            json!([{"role": "user", "content": "u1x"}, {"type": "reasoning", "id": "rs_1", "summary": []}, {"role": "user", "content": "u2x"}]),
            Code::DanglingReasoning,
            "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        ),
        (
            json!([{"role": "user", "content": "u1x"}, {"type": "message", "id": "msg_1", "role": "assistant", "content": "a1x"}, {"type": "message", "id": "msg_1", "role": "assistant", "content": "a2x"}]),
            Code::DuplicateItem,
            "Duplicate item found with id msg_1.",
        ),
        (
            json!([{"role": "user", "content": "u1x"}, {"type": "function_call_output", "call_id": "c", "output": "r1x"}]),
            Code::OrphanResult,
            "No tool call found for function call output with call_id c.",
        ),
        (
            json!([{"type": "custom_tool_call", "call_id": "c", "name": "look", "input": "a1x"}]),
            Code::MissingResult,
            "No tool output found for function call c.",
        ),
    ];
    for (items, code, words) in table {
        says_and_mends(
            Provider::OpenAiResponses,
            &request(Provider::OpenAiResponses, items),
            code,
            words,
        );
    }
    // What was said before is with the provider.
    let stored = json!({"model": "m", "previous_response_id": "resp_1", "input": [{"type": "function_call_output", "call_id": "c", "output": "r"}]});
    assert_eq!(
        repair(Provider::OpenAiResponses, stored.clone()),
        (stored, vec![])
    );
}

#[test]
fn l05_langchains_shapes_keep_their_shape() {
    let flat = json!([{"type": "human", "content": "u1x"}, {"type": "ai", "content": "", "tool_calls": [{"name": "look", "args": {}, "id": "a", "type": "tool_call"}], "invalid_tool_calls": [{"name": "look", "args": "{", "id": "b", "error": "e", "type": "invalid_tool_call"}]}]);
    let dict = json!([{"type": "ai", "data": {"content": "", "tool_calls": [{"name": "look", "args": {}, "id": "a"}]}}]);
    let built = json!([{"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": {"content": "", "tool_calls": [{"name": "look", "args": {}, "id": "a"}]}}]);
    let (flat, _) = check(Provider::LangChain, &json!({ "messages": flat }));
    assert_eq!(flat["messages"][2]["tool_call_id"], "a");
    assert_eq!(flat["messages"][3]["tool_call_id"], "b");
    assert!(
        flat["messages"][3]["content"]
            .as_str()
            .is_some_and(|text| text.starts_with("Error: this call was never run"))
    );
    let (dict, _) = check(Provider::LangChain, &json!({ "messages": dict }));
    assert_eq!(dict["messages"][1]["data"]["tool_call_id"], "a");
    let (built, _) = check(Provider::LangChain, &json!({ "messages": built }));
    assert_eq!(built["messages"][1]["id"][3], "ToolMessage");
    assert_eq!(built["messages"][1]["kwargs"]["status"], "error");
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
