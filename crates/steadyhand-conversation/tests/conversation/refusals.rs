//! Refusals that were seen and are mended: each with the provider's own words.

use serde_json::{Value, json};
use steadyhand_conversation::strict;
use steadyhand_conversation::{Code, Provider, What, repair, validate};

use super::render::{calls, check, key, message, request, result, says, user};

/// The strict provider refuses it in these words, so does the validator, and the repair is accepted.
fn mends(provider: Provider, messages: Value, code: Code, words: &str) -> Value {
    let broken = request(provider, messages);
    let (_, body) = strict::check(provider, &broken).expect_err("it is refused");
    let said = body.pointer("/error/message").and_then(Value::as_str);
    let found = validate(provider, What::Request, &broken);
    let is_it = |text: &str| text.starts_with(words);
    assert!(
        found
            .iter()
            .any(|one| one.code == code && one.provider_text.as_deref().is_some_and(is_it)),
        "{found:#?}"
    );
    assert!(said.is_some_and(is_it), "{body}");
    check(provider, &broken).0[key(provider)].clone()
}

#[test]
fn r03_a_turn_of_white_space_is_no_turn_for_anthropic() {
    let words = "messages: text content blocks must contain non-whitespace text";
    let blank = |content: Value| {
        json!([
            {"role": "user", "content": "u1x"},
            {"role": "assistant", "content": "a1x"},
            {"role": "user", "content": content},
        ])
    };
    for content in [
        json!("  "),
        json!("\n"),
        json!([{"type": "text", "text": " "}]),
        json!([{"type": "text", "text": " "}, {"type": "text", "text": "\t"}]),
    ] {
        let repaired = mends(
            Provider::Anthropic,
            blank(content),
            Code::EmptyContent,
            words,
        );
        assert_eq!(repaired[2]["content"], "(empty message)");
    }
    let result = json!({"type": "tool_result", "tool_use_id": "t1", "content": "r1x"});
    let history = json!([
        {"role": "user", "content": "u1x"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]},
        {"role": "user", "content": [result, {"type": "text", "text": "\n"}]},
    ]);
    let repaired = mends(Provider::Anthropic, history, Code::EmptyContent, words);
    assert_eq!(repaired[2]["content"], json!([result]));
    let said = json!([
        {"role": "user", "content": "u1x"},
        {"role": "assistant", "content": " \n"},
        {"role": "user", "content": "u2x"},
    ]);
    mends(Provider::Anthropic, said, Code::EmptyContent, words);
}

#[test]
fn t06_white_space_beside_words_or_calls_passes_at_anthropic() {
    let blank = json!({"type": "text", "text": " "});
    let call = json!({"type": "tool_use", "id": "t1", "name": "look", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "t1", "content": " "});
    let messages = json!([
        {"role": "user", "content": [blank, {"type": "text", "text": "u1x"}]},
        {"role": "assistant", "content": [blank, call]},
        {"role": "user", "content": [result]},
        {"role": "user", "content": " "},
        {"role": "user", "content": "u2x"},
    ]);
    let valid = request(Provider::Anthropic, messages);
    assert_eq!(
        repair(Provider::Anthropic, valid.clone()),
        (valid.clone(), vec![])
    );
    assert_eq!(strict::check(Provider::Anthropic, &valid), Ok(()));
}

#[test]
fn r03_thinking_that_nobody_signed_is_left_out() {
    let history = |thinking: Value| {
        json!([
            {"role": "user", "content": "u1x"},
            {"role": "assistant", "content": [thinking, {"type": "text", "text": "a1x"}]},
            {"role": "user", "content": "u2x"},
        ])
    };
    let unsigned = history(json!({"type": "thinking", "thinking": "hm"}));
    let words = "messages.1.content.0.thinking.signature: Field required";
    let repaired = mends(Provider::Anthropic, unsigned, Code::MissingSignature, words);
    assert_eq!(
        repaired[1]["content"],
        json!([{"type": "text", "text": "a1x"}])
    );
    let unsigned = history(json!({"type": "thinking", "thinking": "hm", "signature": ""}));
    let words = "messages.1.content.0: Invalid `signature` in `thinking` block";
    mends(Provider::Anthropic, unsigned, Code::MissingSignature, words);
    let signed = history(json!({"type": "thinking", "thinking": "", "signature": "sig"}));
    assert_eq!(
        repair(Provider::Anthropic, signed.clone()),
        (signed, vec![])
    );
}

#[test]
fn r03_reasoning_is_left_out_where_what_follows_has_lost_its_id() {
    let reasoning =
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"});
    let output = json!({"type": "function_call_output", "call_id": "c1", "output": "r1x"});
    let call = |id: Option<&str>| {
        let mut call =
            json!({"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"});
        if let Some(id) = id {
            call["id"] = json!(id);
        }
        call
    };
    let message = json!({"role": "assistant", "content": "a1x"});
    let words = "Item 'rs_1' of type 'reasoning' was provided without its required following item.";
    let user = json!({"role": "user", "content": "u1x"});
    let repaired = mends(
        Provider::OpenAiResponses,
        json!([user, reasoning, message, user]),
        Code::DanglingReasoning,
        words,
    );
    assert_eq!(repaired, json!([user, message, user]));
    let repaired = mends(
        Provider::OpenAiResponses,
        json!([user, reasoning, call(None), output]),
        Code::DanglingReasoning,
        words,
    );
    assert_eq!(repaired, json!([user, call(None), output]));
    // Without the reasoning, the id of a later item that belonged to it is refused, too.
    let repaired = mends(
        Provider::OpenAiResponses,
        json!([user, reasoning, message, call(Some("fc_1")), output]),
        Code::DanglingReasoning,
        words,
    );
    assert_eq!(repaired, json!([user, message, call(None), output]));
    let whole = json!([user, reasoning, call(Some("fc_1")), output]);
    assert_eq!(
        repair(Provider::OpenAiResponses, whole.clone()),
        (whole, vec![])
    );
    let bare = json!([user, {"type": "reasoning", "summary": [], "encrypted_content": "x"}, message, user]);
    assert_eq!(
        repair(Provider::OpenAiResponses, bare.clone()),
        (bare, vec![])
    );
}

#[test]
fn r03_anthropics_blocks_in_chat_completions_are_calls_and_results() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}});
    let messages = json!([
        {"role": "user", "content": "u1x"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "text", "text": "a1x"},
            {"type": "tool_use", "id": "call_1", "name": "look", "input": {"at": "a2x"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "r1x"}, image]},
            {"type": "text", "text": "u2x"},
        ]},
        {"role": "assistant", "content": "a3x"},
        {"role": "user", "content": [{"type": "input_text", "text": "u3x"}]},
    ]);
    let words = "Invalid value: 'thinking'";
    let broken = request(Provider::OpenAi, messages);
    let (_, body) = strict::check(Provider::OpenAi, &broken).expect_err("it is refused");
    assert!(body.to_string().contains(words), "{body}");
    let (repaired, fixes) = check(Provider::OpenAi, &broken);
    let url = "data:image/png;base64,AA==";
    assert_eq!(
        repaired["messages"],
        json!([
            {"role": "user", "content": "u1x"},
            {"role": "assistant", "content": "a1x", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":\"a2x\"}"}},
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": "r1x"},
            {"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": url}},
                {"type": "text", "text": "u2x"},
            ]},
            {"role": "assistant", "content": "a3x"},
            {"role": "user", "content": [{"type": "text", "text": "u3x"}]},
        ])
    );
    let places: Vec<&str> = fixes.iter().map(|fix| fix.at.as_str()).collect();
    assert_eq!(
        places,
        ["/messages/1", "/messages/2", "/messages/4/content/0"]
    );
    let words = "Invalid value: 'tool_use'. Supported values are: 'text', 'image_url'";
    let alone = json!([
        {"role": "user", "content": "u1x"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "r1x"}]},
    ]);
    mends(Provider::OpenAi, alone, Code::BadContent, words);
}

#[test]
fn r03_texts_in_responses_say_whose_they_are() {
    let words = "Invalid value: 'text'. Supported values are: 'input_text'";
    let messages = json!([
        {"role": "user", "content": [{"type": "text", "text": "u1x"}, {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "a1x"}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "text", "text": "r1x"}]},
    ]);
    let repaired = mends(Provider::OpenAiResponses, messages, Code::BadContent, words);
    assert_eq!(
        repaired[0]["content"],
        json!([
            {"type": "input_text", "text": "u1x"},
            {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
        ])
    );
    assert_eq!(
        repaired[1]["content"],
        json!([{"type": "output_text", "text": "a1x"}])
    );
    assert_eq!(
        repaired[3]["output"],
        json!([{"type": "input_text", "text": "r1x"}])
    );
}

#[test]
fn r03_a_history_of_any_provider_is_one_of_every_other() {
    let steps = [
        user("u1x"),
        calls(&["a", "b"]),
        result("a", "r1x"),
        result("b", "r2x"),
        says("a1x"),
        user("u2x"),
        calls(&["c"]),
        result("c", "r3x"),
    ];
    for from in Provider::ALL {
        let mut history: Vec<Value> = steps
            .iter()
            .flat_map(|step| message(from, step, &steps))
            .collect();
        if from == Provider::Gemini {
            // The signature of a thought stays behind.
            for part in history
                .iter_mut()
                .filter_map(|one| one["parts"].as_array_mut())
                .flatten()
            {
                part.as_object_mut()
                    .expect("a part")
                    .shift_remove("thoughtSignature");
            }
        }
        for to in Provider::ALL.into_iter().filter(|to| *to != from) {
            let (repaired, _) = check(to, &request(to, json!(history)));
            let text = repaired.to_string();
            // Every result answers its call: nothing was lost, and nothing is kept as text.
            assert!(!text.contains("may or may not"), "{from} {to} {text}");
            assert!(!text.contains("[A result"), "{from} {to} {text}");
            let wanted = match to {
                Provider::Anthropic => "\"tool_use\"",
                Provider::OpenAiResponses => "\"function_call\"",
                Provider::Gemini => "\"functionCall\"",
                Provider::BedrockConverse => "\"toolUse\"",
                _ => "\"tool_calls\"",
            };
            // LangChain's messages take every content as it is.
            if to != Provider::LangChain {
                assert!(text.contains(wanted), "{from} {to} {text}");
            }
        }
    }
}

#[test]
fn r03_messages_under_another_providers_key_are_found() {
    let chat = json!([
        {"role": "user", "content": "u1x"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "r1x"},
        {"role": "user", "content": "u2x"},
    ]);
    let of_gemini = json!([{"role": "user", "parts": [{"text": "u1x"}]}]);
    for (provider, given, under) in [
        (Provider::Gemini, &chat, "messages"),
        (Provider::OpenAiResponses, &chat, "messages"),
        (Provider::Anthropic, &of_gemini, "contents"),
        (Provider::OpenAi, &of_gemini, "contents"),
    ] {
        let broken = json!({"model": "m", "max_tokens": 9, under: given});
        let found = validate(provider, What::Request, &broken);
        let at = format!("/{under}");
        assert!(
            found.iter().any(|one| one.at == at
                && one.code == Code::BadField
                && one.provider_text.is_some()),
            "{found:#?}"
        );
        let (repaired, fixes) = repair(provider, broken);
        assert!(fixes.iter().any(|fix| fix.at == at), "{fixes:#?}");
        assert_eq!(repaired.get(under), None);
        let messages = repaired[key(provider)].as_array().expect("messages");
        assert_eq!(messages.len(), given.as_array().expect("a list").len());
        // A second time there is nothing to do.
        assert_eq!(repair(provider, repaired.clone()), (repaired, Vec::new()));
    }
    // A list of texts is none of messages.
    let embeddings = json!({"model": "m", "input": ["one", "two"]});
    assert_eq!(repair(Provider::OpenAi, embeddings.clone()).0, embeddings);
}

#[test]
fn r03_langchains_stored_messages_are_translated() {
    let data = json!({"content": "", "type": "ai", "tool_calls": [{"name": "look", "args": {"at": "a1x"}, "id": "c1", "type": "tool_call"}], "invalid_tool_calls": []});
    let kwargs = json!({"content": "r1x", "tool_call_id": "c1", "status": "error"});
    let path = json!(["langchain", "schema", "messages", "ToolMessage"]);
    let history = json!([
        {"type": "human", "data": {"content": "u1x", "type": "human"}},
        {"type": "ai", "data": data},
        {"lc": 1, "type": "constructor", "id": path, "kwargs": kwargs},
    ]);
    let (repaired, _) = repair(Provider::Gemini, history.clone());
    assert_eq!(
        repaired,
        json!([
            {"role": "user", "parts": [{"text": "u1x"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"at": "a1x"}, "id": "c1"}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"error": "Error: r1x"}, "id": "c1"}}]},
        ])
    );
    let (repaired, _) = repair(Provider::OpenAiResponses, history.clone());
    assert_eq!(repaired[1]["arguments"], "{\"at\":\"a1x\"}");
    assert_eq!(repaired[2]["output"], "Error: r1x");
    let (repaired, _) = repair(Provider::Anthropic, history);
    assert_eq!(repaired[2]["content"][0]["is_error"], true);
}

#[test]
fn r03_system_messages_in_a_row_and_empty_words_before_them_are_mended_once() {
    let empty = json!({"role": "user", "content": [{"type": "text", "text": ""}]});
    let nothing = json!({"role": "user", "content": ""});
    let system = |said: &str| json!({"role": "system", "content": said});
    let silent = json!({"role": "system", "content": [{"type": "text", "text": ""}]});
    let user = json!({"role": "user", "content": "u1x"});
    let model = json!({"role": "assistant", "content": "a1x"});
    let histories = [
        json!([system("u2x"), system("u3x"), user]),
        json!([system("u2x"), system("u3x"), model, user]),
        json!([
            user,
            model,
            system("u2x"),
            system("u3x"),
            system("u4x"),
            model,
            user
        ]),
        json!([empty, system("u2x"), model, user]),
        json!([nothing, system("u2x"), model, user]),
        json!([silent, system("u2x"), model, user]),
        json!([user, silent, model, user]),
        json!([user, model, empty, system("u2x"), silent, nothing]),
        json!([user, model, system("u2x"), empty]),
    ];
    for provider in Provider::ALL {
        for history in &histories {
            check(provider, &request(provider, history.clone()));
        }
    }
}

#[test]
fn r03_images_of_results_that_ollama_cannot_place_are_kept() {
    let image = "iVBORw0KGgo=";
    let lost = json!({"role": "tool", "tool_name": "look", "content": "r1x", "images": [image]});
    let messages =
        json!([{"role": "user", "content": "u1x"}, lost, {"role": "assistant", "content": "a1x"}]);
    let (repaired, fixes) = check(Provider::Ollama, &request(Provider::Ollama, messages));
    assert_eq!(fixes[0].code, Code::OrphanResult);
    assert_eq!(repaired["messages"][1]["role"], "user");
    assert_eq!(repaired["messages"][1]["images"], json!([image]));
    // A second result with the same words and another image says something new.
    let call = json!({"function": {"name": "look", "arguments": {}}});
    let result = |image: &str| json!({"role": "tool", "tool_name": "look", "content": "r1x", "images": [image]});
    let messages = json!([
        {"role": "user", "content": "u1x"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        result(image),
        result("R0lGODlh"),
        {"role": "user", "content": [
            {"type": "text", "text": "u2x"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        ]},
    ]);
    let (repaired, _) = check(Provider::Ollama, &request(Provider::Ollama, messages));
    let text = repaired.to_string();
    for image in [image, "R0lGODlh", "QUJD"] {
        assert!(text.contains(&format!("[\"{image}\"]")), "{text}");
    }
}
