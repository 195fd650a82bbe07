//! What stands beside the words of a message in one provider's shape, and is refused or lost in another's.

use serde_json::{Value, json};
use steadyhand_conversation::strict;
use steadyhand_conversation::{Code, Host, Options, Provider, repair, repair_with};

use super::render::{check, key, request};

/// Everything that must be in a repaired conversation, and is refused before it is repaired.
fn mends(provider: Provider, messages: Value) -> Value {
    let broken = request(provider, messages);
    if !matches!(provider, Provider::Ollama | Provider::BedrockConverse) {
        strict::check(provider, &broken).expect_err("it is refused");
    }
    check(provider, &broken).0[key(provider)].clone()
}

#[test]
fn r03_openais_older_function_calls_are_calls_and_results_everywhere() {
    let old = json!([
        {"role": "user", "content": "u1x"},
        {"role": "assistant", "content": null, "function_call": {"name": "look", "arguments": "{\"at\": \"a1x\"}"}},
        {"role": "function", "name": "look", "content": "r1x"},
        {"role": "assistant", "content": "a2x"},
        {"role": "user", "content": "u2x"},
    ]);
    for provider in Provider::ALL {
        if matches!(provider, Provider::OpenAi | Provider::LangChain) {
            continue;
        }
        let (repaired, _) = check(provider, &request(provider, old.clone()));
        let text = repaired.to_string();
        let call = match provider {
            Provider::Anthropic => "\"tool_use\"",
            Provider::OpenAiResponses => "\"function_call\"",
            Provider::Gemini => "\"functionCall\"",
            Provider::BedrockConverse => "\"toolUse\"",
            _ => "\"tool_calls\"",
        };
        assert!(
            text.contains(call) && text.contains("r1x"),
            "{provider} {text}"
        );
        assert!(!text.contains("may or may not"), "{provider} {text}");
        assert!(!text.contains("[A result"), "{provider} {text}");
    }
    // OpenAI itself still takes them, and so do others.
    let valid = request(Provider::OpenAi, old);
    for host in [Host::Original, Host::Azure, Host::Compatible] {
        let options = Options::new().host(host);
        let same = repair_with(Provider::OpenAi, &options, valid.clone());
        assert_eq!(same, (valid.clone(), vec![]), "{host}");
    }
}

#[test]
fn r03_images_of_ollamas_messages_are_kept_everywhere() {
    let (png, jpeg) = ("iVBORw0KGgo=", "/9j/4AAQ");
    let history = json!([
        {"role": "user", "content": "u1x", "images": [png]},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {"at": "a1x"}}}]},
        {"role": "tool", "tool_name": "look", "content": "r1x", "images": [jpeg]},
    ]);
    for provider in Provider::ALL {
        let (repaired, fixes) = check(provider, &request(provider, history.clone()));
        let text = repaired.to_string();
        if provider == Provider::Ollama {
            assert_eq!(fixes, [], "its own");
            continue;
        }
        assert!(
            text.contains(png) && text.contains(jpeg),
            "{provider} {text}"
        );
        assert!(!text.contains("\"images\""), "{provider} {text}");
        assert!(!text.contains("may or may not"), "{provider} {text}");
    }
    let anthropic = mends(Provider::Anthropic, history);
    assert_eq!(
        anthropic[0]["content"][1],
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}})
    );
    assert_eq!(
        anthropic[2]["content"][0]["content"][1]["source"]["media_type"],
        "image/jpeg"
    );
}

#[test]
fn r03_what_a_tool_shows_in_another_providers_result_is_kept() {
    let data = "iVBORw0KGgo=";
    let url = format!("data:image/png;base64,{data}");
    // As LangChain writes the results of its tools for OpenAI.
    let chat = json!([
        {"role": "user", "content": "u1x"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "r1x"}, {"type": "image_url", "image_url": {"url": url}}]},
    ]);
    let repaired = mends(Provider::Anthropic, chat);
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    assert_eq!(
        repaired[2]["content"][0]["content"],
        json!([{"type": "text", "text": "r1x"}, image])
    );
    // Gemini's parts, in its own results and beside words.
    let gemini = json!([
        {"role": "user", "parts": [{"text": "u1x"}, {"inlineData": {"mimeType": "image/png", "data": data}}]},
        {"role": "model", "parts": [{"functionCall": {"id": "call00001", "name": "look", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "call00001", "name": "look", "response": {"output": "r1x"}, "parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]}}]},
    ]);
    for provider in [
        Provider::Anthropic,
        Provider::OpenAi,
        Provider::OpenAiResponses,
        Provider::BedrockConverse,
    ] {
        let text = mends(provider, gemini.clone()).to_string();
        assert_eq!(text.matches(data).count(), 2, "{provider} {text}");
        assert!(!text.contains("mimeType"), "as images: {provider} {text}");
    }
}

#[test]
fn r03_a_second_result_of_geminis_that_shows_something_else_is_kept() {
    let result = |data: &str| json!({"functionResponse": {"id": "c1", "name": "look", "response": {"output": "r1x"}, "parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]}});
    let messages = json!([
        {"role": "user", "parts": [{"text": "u1x"}]},
        {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "look", "args": {}}}]},
        {"role": "user", "parts": [result("QUFB"), result("QkJC"), result("QUFB")]},
    ]);
    let text = mends(Provider::Gemini, messages).to_string();
    assert_eq!(text.matches("QUFB").count(), 1, "it says the same: {text}");
    assert_eq!(text.matches("QkJC").count(), 1, "{text}");
}

#[test]
fn r03_fields_of_chat_completions_are_left_out_where_they_are_refused() {
    let history = json!([
        {"role": "user", "content": "u1x", "name": "Ann"},
        {"role": "assistant", "content": "a1x", "refusal": null, "annotations": [], "audio": null, "function_call": null, "reasoning_content": "hm"},
        {"role": "user", "content": "u2x"},
        {"role": "assistant", "content": null, "refusal": "a2x"},
        {"role": "user", "content": "u3x"},
    ]);
    for provider in [
        Provider::Gemini,
        Provider::OpenAiResponses,
        Provider::Mistral,
        Provider::BedrockConverse,
    ] {
        let messages = mends(provider, history.clone());
        for message in messages.as_array().expect("a list") {
            let fields: Vec<&String> = message.as_object().expect("a message").keys().collect();
            assert_eq!(fields.len(), 2, "{provider} {fields:?}");
        }
    }
    // Nobody knows what other services take.
    let options = Options::new().host(Host::Compatible);
    for provider in [Provider::OpenAiResponses, Provider::OpenAi] {
        let mut valid = request(provider, history.clone());
        valid[key(provider)][3]["content"] = json!("a2x");
        let same = repair_with(provider, &options, valid.clone());
        assert_eq!(same, (valid, vec![]), "{provider}");
    }
}

#[test]
fn r03_items_of_an_answer_of_openais_go_back_without_what_only_answers_have() {
    let items = json!([
        {"role": "user", "content": "u1x"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "status": null},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{}", "status": "completed", "parsed_arguments": null},
        {"type": "function_call_output", "call_id": "call_1", "output": "r1x"},
    ]);
    let repaired = mends(Provider::OpenAiResponses, items);
    assert_eq!(repaired[1].get("status"), None);
    assert_eq!(repaired[2].get("parsed_arguments"), None);
    assert_eq!(repaired[2]["status"], "completed");
}

#[test]
fn t06_a_reference_to_a_kept_item_need_not_say_its_type() {
    let items = json!([
        {"role": "user", "content": "u1x"},
        {"id": "msg_1"},
        {"id": "fc_1"},
        {"type": "function_call_output", "call_id": "call_1", "output": "r1x"},
        {"role": "user", "content": "u2x"},
    ]);
    let valid = request(Provider::OpenAiResponses, items);
    let same = repair(Provider::OpenAiResponses, valid.clone());
    assert_eq!(same, (valid, vec![]));
}

#[test]
fn r03_files_and_the_detail_of_images_are_the_same_in_chat_completions_and_responses() {
    let known = json!({"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="});
    let mut native = json!({"type": "input_file"});
    for (key, value) in known.as_object().expect("fields") {
        native[key] = value.clone();
    }
    let file = json!({"type": "file", "file": known});
    let url = "https://example.org/a.png";
    let image = json!({"type": "image_url", "image_url": {"url": url, "detail": "high"}});
    let repaired = mends(
        Provider::OpenAiResponses,
        json!([{"role": "user", "content": [image, file]}]),
    );
    assert_eq!(
        repaired[0]["content"],
        json!([{"type": "input_image", "image_url": url, "detail": "high"}, native])
    );
    let repaired = mends(
        Provider::OpenAi,
        json!([{"role": "user", "content": [native]}]),
    );
    assert_eq!(repaired[0]["content"], json!([file]));
}

#[test]
fn r03_empty_texts_in_what_the_system_is_told_are_left_out() {
    let ephemeral = json!({"type": "ephemeral"});
    let with = |system: Value| {
        let mut request = request(
            Provider::Anthropic,
            json!([{"role": "user", "content": "u1x"}]),
        );
        request["system"] = system;
        request
    };
    let words = json!({"type": "text", "text": "s"});
    let empty = json!({"type": "text", "text": "", "cache_control": ephemeral});
    let broken = with(json!([words, empty]));
    strict::check(Provider::Anthropic, &broken).expect_err("it is refused");
    let (repaired, fixes) = check(Provider::Anthropic, &broken);
    assert_eq!(
        repaired["system"],
        json!([{"type": "text", "text": "s", "cache_control": ephemeral}])
    );
    assert_eq!(fixes[0].at, "/system/1");
    let (repaired, _) = check(Provider::Anthropic, &with(json!([empty])));
    assert_eq!(repaired.get("system"), None);
    for valid in [with(json!("")), with(json!([words]))] {
        assert_eq!(
            repair(Provider::Anthropic, valid.clone()),
            (valid.clone(), vec![])
        );
    }
}

#[test]
fn r03_the_beginning_of_an_answer_does_not_end_with_white_space() {
    let said = |content: Value| json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": content}]);
    let text = |text: &str| json!({"type": "text", "text": text});
    for (given, kept) in [
        (json!("a1x \n"), json!("a1x")),
        (json!([text("a1x\t")]), json!([text("a1x")])),
        (json!([text("a1x "), text(" ")]), json!([text("a1x")])),
    ] {
        let repaired = mends(Provider::Anthropic, said(given));
        assert_eq!(repaired[1]["content"], kept);
    }
    // In the middle it is taken.
    let mut valid = said(json!("a1x "));
    let more = json!({"role": "user", "content": "u2x"});
    valid.as_array_mut().expect("a list").push(more);
    let valid = request(Provider::Anthropic, valid);
    assert_eq!(repair(Provider::Anthropic, valid.clone()), (valid, vec![]));
}

#[test]
fn r03_thinking_that_has_lost_what_it_is_made_of_is_left_out() {
    for lost in [
        json!({"type": "redacted_thinking"}),
        json!({"type": "redacted_thinking", "data": null}),
        json!({"type": "thinking", "signature": "sig"}),
    ] {
        let messages = json!([
            {"role": "user", "content": "u1x"},
            {"role": "assistant", "content": [lost, {"type": "text", "text": "a1x"}]},
            {"role": "user", "content": "u2x"},
        ]);
        let repaired = mends(Provider::Anthropic, messages);
        assert_eq!(
            repaired[1]["content"],
            json!([{"type": "text", "text": "a1x"}])
        );
    }
}

fn reasoned(reasoning: Value) -> Value {
    let mut request = request(
        Provider::BedrockConverse,
        json!([
            {"role": "user", "content": [{"text": "u1x"}]},
            {"role": "assistant", "content": [reasoning, {"toolUse": {"toolUseId": "t1", "name": "look", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "r1x"}]}}]},
        ]),
    );
    let thinking = json!({"type": "enabled", "budget_tokens": 2000});
    request["additionalModelRequestFields"] = json!({ "thinking": thinking });
    request
}

#[test]
fn r03_claude_behind_converse_gets_reasoning_that_it_has_signed_or_none() {
    let said = json!({"text": "hm"});
    let unsigned = reasoned(json!({"reasoningContent": {"reasoningText": said}}));
    let claude = Options::new()
        .host(Host::Bedrock)
        .model("us.anthropic.claude-sonnet-4-20250514-v1:0");
    let (repaired, fixes) = repair_with(Provider::BedrockConverse, &claude, unsigned.clone());
    let codes: Vec<Code> = fixes.iter().map(|fix| fix.code).collect();
    assert_eq!(codes, [Code::MissingSignature, Code::ThinkingLost]);
    assert_eq!(
        repaired["messages"][1]["content"].as_array().map(Vec::len),
        Some(1)
    );
    assert_eq!(
        repaired["additionalModelRequestFields"]["thinking"],
        json!({"type": "disabled"})
    );
    let again = repair_with(Provider::BedrockConverse, &claude, repaired.clone());
    assert_eq!(again, (repaired, vec![]));
    // Other models sign nothing.
    let other = Options::new().host(Host::Bedrock).model("deepseek.r1-v1:0");
    let same = repair_with(Provider::BedrockConverse, &other, unsigned.clone());
    assert_eq!(same, (unsigned, vec![]));
    for reasoning in [
        json!({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}}),
        json!({"reasoningContent": {"redactedContent": "AA=="}}),
    ] {
        let valid = reasoned(reasoning);
        let same = repair_with(Provider::BedrockConverse, &claude, valid.clone());
        assert_eq!(same, (valid, vec![]));
    }
    let mut forced = reasoned(json!({"text": "a1x"}));
    forced["toolConfig"]["toolChoice"] = json!({"any": {}});
    forced["modelId"] = json!("anthropic.claude-x");
    let (repaired, fixes) = repair(Provider::BedrockConverse, forced);
    assert_eq!(fixes[0].code, Code::ThinkingForced);
    assert_eq!(
        repaired["additionalModelRequestFields"]["thinking"]["type"],
        "disabled"
    );
}

#[test]
fn r03_deepseek_gets_its_thinking_back_with_its_calls() {
    let call = |id: &str| json!({"role": "assistant", "content": "", "tool_calls": [{"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}}]});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "r1x"});
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let history = |model: &str| {
        json!({"model": model, "messages": [
            said("user", "u1x"), call("c1"), result("c1"), said("assistant", "a1x"),
            said("user", "u2x"), call("c2"), result("c2"),
        ]})
    };
    let options = Options::new().host(Host::DeepSeek);
    for (model, places) in [
        ("deepseek-reasoner", &[5][..]),
        ("deepseek-v4-flash", &[1, 5]),
        ("deepseek-chat", &[]),
    ] {
        let (repaired, fixes) = repair_with(Provider::OpenAi, &options, history(model));
        let at: Vec<String> = fixes.into_iter().map(|fix| fix.at).collect();
        let place = |index: &usize| format!("/messages/{index}/reasoning_content");
        let wanted: Vec<String> = places.iter().map(place).collect();
        assert_eq!(at, wanted, "{model}");
        for index in places {
            assert_eq!(repaired["messages"][index]["reasoning_content"], "");
        }
        let again = repair_with(Provider::OpenAi, &options, repaired.clone());
        assert_eq!(again, (repaired, vec![]));
    }
    let mut silent = history("deepseek-v4-flash");
    silent["thinking"] = json!({"type": "disabled"});
    let same = repair_with(Provider::OpenAi, &options, silent.clone());
    assert_eq!(same, (silent, vec![]));
}

#[test]
fn r03_documents_are_documents_everywhere() {
    let data = "JVBERi0x";
    let document = json!({"type": "document", "title": "a.pdf", "source": {"type": "base64", "media_type": "application/pdf", "data": data}});
    let history = json!([
        {"role": "user", "content": [{"type": "text", "text": "u1x"}, document]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call00001", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call00001", "content": [{"type": "text", "text": "r1x"}, document]}]},
    ]);
    for (provider, shape) in [
        (
            Provider::OpenAi,
            "\"file_data\":\"data:application/pdf;base64,JVBERi0x\"",
        ),
        (Provider::OpenAiResponses, "\"type\":\"input_file\""),
        (Provider::Gemini, "\"mimeType\":\"application/pdf\""),
        (Provider::Mistral, "\"type\":\"document_url\""),
        (Provider::BedrockConverse, "\"format\":\"pdf\""),
    ] {
        let text = mends(provider, history.clone()).to_string();
        assert!(text.contains(shape), "{provider} {text}");
        assert!(
            !text.contains("\\\"type"),
            "nothing is JSON in a text: {provider} {text}"
        );
        assert_eq!(text.matches(data).count(), 2, "{provider} {text}");
    }
    // Alone, and of kinds that nobody else has.
    let search = json!({"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "u2x"}]});
    let alone = json!([{"role": "user", "content": [document, search]}]);
    let repaired = mends(Provider::OpenAi, alone);
    assert_eq!(repaired[0]["content"][0]["file"]["filename"], "a.pdf");
    assert_eq!(repaired[0]["content"][1]["type"], "text");
}

#[test]
fn r03_anthropics_images_in_a_result_of_chat_completions_are_shown_by_the_user() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}});
    let history = json!([
        {"role": "user", "content": "u1x"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "call00001", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call00001", "content": [{"type": "text", "text": "r1x"}, image]},
    ]);
    let repaired = mends(Provider::OpenAi, history);
    assert_eq!(
        repaired[3]["content"][1],
        json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}})
    );
}

#[test]
fn r03_parts_that_only_one_provider_has_are_taken_in_by_the_others() {
    let pdf = "data:application/pdf;base64,JVBERi0x";
    let openai = json!([
        {"role": "user", "content": [
            {"type": "file", "file": {"filename": "a.pdf", "file_data": pdf}},
            {"type": "input_file", "filename": "b.pdf", "file_data": pdf},
            {"type": "file", "file": {"file_id": "u1x"}},
            {"type": "input_audio", "input_audio": {"data": "u2x", "format": "wav"}},
        ]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "a1x"}]},
        {"role": "user", "content": "u3x"},
    ]);
    let repaired = mends(Provider::Anthropic, openai);
    let kinds = |message: &Value| -> Vec<String> {
        let blocks = message["content"].as_array().expect("blocks").iter();
        blocks
            .map(|block| block["type"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(
        kinds(&repaired[0]),
        ["document", "document", "text", "text"]
    );
    assert_eq!(
        repaired[1]["content"],
        json!([{"type": "text", "text": "a1x"}])
    );
    let anthropic = json!([
        {"role": "user", "content": [
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "u1x"}},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x"}},
            {"type": "search_result", "source": "s", "title": "u2x", "content": []},
        ]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "a1x"}]},
        {"role": "user", "content": "u3x"},
    ]);
    let repaired = mends(Provider::OpenAiResponses, anthropic.clone());
    assert_eq!(
        kinds(&repaired[0]),
        ["input_text", "input_file", "input_text"]
    );
    assert_eq!(kinds(&repaired[1]), ["output_text", "output_text"]);
    mends(Provider::OpenAi, anthropic);
}
