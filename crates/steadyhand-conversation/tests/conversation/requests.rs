//! Requests and answers as a whole: fields, tools, what a model said, and the words for people.

use serde_json::{Value, json};
use steadyhand_conversation::strict;
use steadyhand_conversation::{
    Code, Provider, Turn, What, convert_tools, error_response, explain, repair, repair_response,
    validate,
};

use super::render::{calls, message, render, request, user};

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
fn r01_a_tool_that_a_model_cannot_see_or_understand_is_a_problem() {
    let object = json!({"type": "object", "properties": {}});
    let langchain = json!({"name": "look", "description": "Looks", "schema": object});
    let with = |provider: Provider, tool: Value| {
        let mut request = request(provider, json!(message(provider, &user("u"), &[])));
        match provider {
            Provider::BedrockConverse => request["toolConfig"]["tools"] = json!([tool]),
            _ => request["tools"] = json!([tool]),
        }
        request
    };
    let function = |fields: Value| json!({"type": "function", "function": fields});
    let table = [
        (
            Provider::Ollama,
            langchain.clone(),
            Code::BadToolShape,
            "/tools/0",
        ),
        (
            Provider::Ollama,
            json!({"name": "x"}),
            Code::BadToolShape,
            "/tools/0",
        ),
        (
            Provider::OpenAiResponses,
            langchain.clone(),
            Code::BadToolShape,
            "/tools/0",
        ),
        (
            Provider::Gemini,
            langchain.clone(),
            Code::BadToolShape,
            "/tools/0",
        ),
        (
            Provider::OpenAi,
            langchain.clone(),
            Code::BadToolName,
            "/tools/0/function/name",
        ),
        (
            Provider::Mistral,
            langchain.clone(),
            Code::BadToolName,
            "/tools/0/function/name",
        ),
        (
            Provider::Anthropic,
            langchain,
            Code::BadToolSchema,
            "/tools/0/input_schema",
        ),
        (
            Provider::Ollama,
            function(json!({"name": "look", "description": "Looks"})),
            Code::BadToolSchema,
            "/tools/0/function/parameters",
        ),
        (
            Provider::Ollama,
            function(json!({"name": "look", "description": "Looks", "parameters": null})),
            Code::BadToolSchema,
            "/tools/0/function/parameters",
        ),
        (
            Provider::Ollama,
            function(
                json!({"name": "look", "description": "Looks", "parameters": {"type": "array"}}),
            ),
            Code::BadToolSchema,
            "/tools/0/function/parameters/type",
        ),
        (
            Provider::Ollama,
            function(json!({"name": "", "description": "Looks", "parameters": object})),
            Code::BadToolName,
            "/tools/0/function/name",
        ),
        (
            Provider::LangChain,
            json!({"name": "look", "description": "Looks"}),
            Code::BadToolSchema,
            "/tools/0/schema",
        ),
    ];
    for (provider, tool, code, at) in table {
        let found = validate(provider, What::Request, &with(provider, tool));
        assert!(
            found.iter().any(|one| one.code == code && one.at == at),
            "{provider} {at}: {found:#?}"
        );
    }
    for provider in Provider::ALL {
        for nothing in [json!(""), json!("  "), json!(null)] {
            let definition = json!({"name": "look", "description": "d", "schema": object});
            let mut tool = convert_tools(provider, [&definition]).tools.remove(0);
            let place = ["/functionDeclarations/0", "/function", "/toolSpec", ""]
                .into_iter()
                .find(|place| tool.pointer(place).is_some())
                .expect("a place");
            tool.pointer_mut(place).expect("a tool")["description"] = nothing;
            let found = validate(provider, What::Request, &with(provider, tool));
            let codes: Vec<(Code, &str)> = found
                .iter()
                .map(|one| (one.code, one.at.as_str()))
                .collect();
            let list = match provider {
                Provider::BedrockConverse => "/toolConfig/tools",
                _ => "/tools",
            };
            let at = format!("{list}/0{place}/description");
            assert_eq!(
                codes,
                [(Code::MissingDescription, at.as_str())],
                "{provider}"
            );
        }
    }
}

#[test]
fn r02_an_answer_without_content_is_a_problem() {
    let table = [
        (
            Provider::OpenAi,
            json!({"choices": [{"message": {"role": "assistant", "content": null}}]}),
            "/choices/0/message/content",
        ),
        (
            Provider::OpenAi,
            json!({"choices": [{"message": {"role": "assistant"}}]}),
            "/choices/0/message/content",
        ),
        (
            Provider::OpenAi,
            json!({"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": []}}]}),
            "/choices/0/message/content",
        ),
        (
            Provider::OpenAi,
            json!({"role": "assistant", "content": null}),
            "/content",
        ),
        (Provider::OpenAi, json!({"choices": []}), "/choices"),
        (Provider::OpenAi, json!({}), "/choices"),
        (
            Provider::Mistral,
            json!({"choices": [{"finish_reason": "stop"}]}),
            "/choices/0/message",
        ),
        (
            Provider::Ollama,
            json!({"message": {"role": "assistant", "content": null}, "done": true}),
            "/message/content",
        ),
        (
            Provider::Ollama,
            json!({"message": {"role": "assistant"}, "done": true}),
            "/message/content",
        ),
        (
            Provider::Ollama,
            json!({"model": "m", "done": true}),
            "/message",
        ),
        (
            Provider::Anthropic,
            json!({"type": "message", "role": "assistant", "content": null, "stop_reason": "end_turn"}),
            "/content",
        ),
        (
            Provider::Anthropic,
            json!({"type": "message", "role": "assistant", "stop_reason": "end_turn"}),
            "/content",
        ),
        (Provider::Gemini, json!({"candidates": []}), "/candidates"),
        (Provider::Gemini, json!({}), "/candidates"),
        (
            Provider::Gemini,
            json!({"promptFeedback": {"blockReason": "SAFETY"}}),
            "/candidates",
        ),
        (
            Provider::Gemini,
            json!({"candidates": [{"finishReason": "SAFETY"}]}),
            "/candidates/0/content",
        ),
        (
            Provider::Gemini,
            json!({"candidates": [{"content": {"role": "model"}}]}),
            "/candidates/0/content/parts",
        ),
        (
            Provider::OpenAiResponses,
            json!({"object": "response", "status": "completed"}),
            "/output",
        ),
        (
            Provider::OpenAiResponses,
            json!({"object": "response", "status": "completed", "output": []}),
            "/output",
        ),
        (
            Provider::OpenAiResponses,
            json!({"output": [{"type": "message", "role": "assistant", "content": null}]}),
            "/output/0/content",
        ),
        (
            Provider::LangChain,
            json!({"type": "ai", "content": null}),
            "/content",
        ),
        (
            Provider::LangChain,
            json!({"type": "ai", "data": {"tool_calls": []}}),
            "/data/content",
        ),
    ];
    for (provider, answer, at) in table {
        let found = validate(provider, What::Response, &answer);
        assert!(
            found.iter().any(|one| one.at == at),
            "{provider} {answer} {at}: {found:#?}"
        );
        // Mended, it is whole, and not mended again.
        let (mended, fixes) = repair_response(provider, answer.clone());
        assert!(
            fixes.iter().any(|fix| fix.at == at),
            "{provider} {answer}: {fixes:#?}"
        );
        assert_eq!(
            validate(provider, What::Response, &mended),
            [],
            "{provider} {mended:#}"
        );
        assert_eq!(
            repair_response(provider, mended.clone()),
            (mended, vec![]),
            "{provider}"
        );
    }
    // A call, a refusal or an empty text is an answer.
    let fine = [
        (
            Provider::OpenAi,
            json!({"choices": [{"message": {"role": "assistant", "content": "", "tool_calls": null}}]}),
        ),
        (
            Provider::OpenAi,
            json!({"choices": [{"message": {"role": "assistant", "content": null, "refusal": "no"}}]}),
        ),
        (
            Provider::OpenAi,
            json!({"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}}]}}]}),
        ),
        (
            Provider::Anthropic,
            json!({"role": "assistant", "content": [], "stop_reason": "end_turn"}),
        ),
        (
            Provider::OpenAiResponses,
            json!({"object": "response", "status": "queued", "output": []}),
        ),
    ];
    for (provider, answer) in fine {
        assert_eq!(
            validate(provider, What::Response, &answer),
            [],
            "{provider} {answer}"
        );
        assert_eq!(
            repair_response(provider, answer.clone()),
            (answer, vec![]),
            "{provider}"
        );
    }
}

#[test]
fn r03_an_answer_is_mended_where_that_is_safe() {
    let chat = |calls: Value| json!({"id": "c", "choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "content": null, "tool_calls": calls}}]});
    let openai = chat(json!([
        {"type": "function", "function": {"name": "look", "arguments": {"at": 1}}},
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": ""}},
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": "[1]"}},
        {"id": null, "name": "look", "args": {"at": 2}},
    ]));
    let (mended, fixes) = repair_response(Provider::OpenAi, openai.clone());
    let calls = mended["choices"][0]["message"]["tool_calls"]
        .as_array()
        .expect("calls");
    let ids: std::collections::HashSet<&str> = calls
        .iter()
        .filter_map(|call| call["id"].as_str())
        .collect();
    assert_eq!(ids.len(), 4, "{mended:#}");
    let args: Vec<&str> = calls
        .iter()
        .filter_map(|call| call["function"]["arguments"].as_str())
        .collect();
    // What is no object stays: as one it could be run.
    assert_eq!(args, [r#"{"at":1}"#, "{}", "[1]", r#"{"at":2}"#]);
    assert_eq!(fixes.len(), 8, "{fixes:#?}");
    let left = validate(Provider::OpenAi, What::Response, &mended);
    assert_eq!(left.len(), 1, "{left:#?}");
    // The same answer gets the same ids, another one others.
    assert_eq!(repair_response(Provider::OpenAi, openai.clone()).0, mended);
    let mut other = openai;
    other["id"] = json!("d");
    let (other, _) = repair_response(Provider::OpenAi, other);
    assert_ne!(
        other["choices"][0]["message"]["tool_calls"][0]["id"],
        calls[0]["id"]
    );

    let table = [
        (
            Provider::Anthropic,
            json!({"role": "assistant", "content": [{"type": "tool_use", "name": "look", "input": "{\"at\": 1}"}], "stop_reason": "tool_use"}),
            "/content/0/input",
            json!({"at": 1}),
        ),
        (
            Provider::Ollama,
            json!({"message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": "{\"at\": 1}"}}]}}),
            "/message/tool_calls/0/function/arguments",
            json!({"at": 1}),
        ),
        (
            Provider::Gemini,
            json!({"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "look", "args": "{\"at\": 1}"}}]}}]}),
            "/candidates/0/content/parts/0/functionCall/args",
            json!({"at": 1}),
        ),
        (
            Provider::OpenAiResponses,
            json!({"output": [{"type": "function_call", "call_id": "", "name": "look", "arguments": {"at": 1}}]}),
            "/output/0/arguments",
            json!("{\"at\":1}"),
        ),
        (
            Provider::LangChain,
            json!({"type": "ai", "content": "", "tool_calls": [{"name": "look", "args": "{\"at\": 1}", "id": null}]}),
            "/tool_calls/0/args",
            json!({"at": 1}),
        ),
        (
            Provider::Mistral,
            json!({"choices": [{"message": {"role": "assistant", "content": "", "tool_calls": [{"id": "", "function": {"name": "look", "arguments": null}}]}}]}),
            "/choices/0/message/tool_calls/0/function/arguments",
            json!("{}"),
        ),
    ];
    for (provider, broken, place, expected) in table {
        let (mended, fixes) = repair_response(provider, broken.clone());
        assert_eq!(
            mended.pointer(place),
            Some(&expected),
            "{provider} {mended:#}"
        );
        assert!(!fixes.is_empty(), "{provider}");
        assert_eq!(
            validate(provider, What::Response, &mended),
            [],
            "{provider} {mended:#}"
        );
        assert_eq!(
            repair_response(provider, mended.clone()),
            (mended, vec![]),
            "{provider}"
        );
    }
    // An error is the provider's own answer.
    let error = json!({"error": {"message": "no"}});
    assert_eq!(
        repair_response(Provider::OpenAi, error.clone()),
        (error, vec![])
    );
}

#[test]
fn r14_an_error_response_is_one_that_its_readers_take_for_an_answer() {
    for provider in Provider::ALL {
        let response = error_response(provider, "m", "it did not answer in time");
        assert_eq!(
            validate(provider, What::Response, &response),
            [],
            "{provider}"
        );
        assert_eq!(
            repair_response(provider, response.clone()),
            (response.clone(), vec![]),
            "{provider}"
        );
        assert!(
            response
                .to_string()
                .contains("Error: it did not answer in time"),
            "{response}"
        );
        assert!(
            Turn::read(provider, &response).calls().is_empty(),
            "{provider}"
        );
        // What is no response at all is replaced by one.
        let (mended, fixes) = repair_response(provider, json!("gone"));
        assert_eq!(fixes.len(), 1, "{provider}");
        assert_eq!(
            validate(provider, What::Response, &mended),
            [],
            "{provider} {mended:#}"
        );
    }
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
