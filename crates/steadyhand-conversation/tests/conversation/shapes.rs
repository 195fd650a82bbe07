//! What only one provider has: its blocks, roles, fields and limits, with its own words.

use serde_json::{Value, json};
use steadyhand_conversation::strict;
use steadyhand_conversation::{
    Code, Options, Provider, What, repair, repair_with, validate, validate_with,
};

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
    // Anthropic takes a history of tools without any.
    assert_eq!(
        repair(Provider::Anthropic, without.clone()),
        (without.clone(), vec![])
    );
    assert_eq!(validate(Provider::Anthropic, What::Request, &without), []);

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
