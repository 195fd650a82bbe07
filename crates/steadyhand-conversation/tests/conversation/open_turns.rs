//! Thinking in the turn that the model is in the middle of, and items that only one provider has.

use serde_json::{Value, json};
use steadyhand_conversation::strict;
use steadyhand_conversation::{
    Code, Options, Provider, What, repair, repair_response, repair_with, validate,
};

use super::render::{check, key, request};

fn thought(words: &str) -> Value {
    json!({"type": "thinking", "thinking": words, "signature": "sig"})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "look", "input": {}})
}

fn answer(id: &str) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "r1x"}]})
}

/// A question, and what the model does about it: thoughts and calls, each call answered.
fn asked(thinking: Value, turn: &[Value]) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "u1x"})];
    for content in turn {
        messages.push(json!({"role": "assistant", "content": content}));
        let calls = content.as_array().into_iter().flatten();
        let id = |block: &Value| block["id"].as_str().map(str::to_owned);
        messages.extend(calls.filter_map(id).map(|id| answer(&id)));
    }
    let mut request = request(Provider::Anthropic, Value::Array(messages));
    if !thinking.is_null() {
        request["thinking"] = thinking;
    }
    request
}

fn is_untouched(provider: Provider, valid: &Value) {
    strict::check(provider, valid).expect("it is accepted");
    assert_eq!(repair(provider, valid.clone()), (valid.clone(), vec![]));
}

/// What the strict provider says to it and what the validator says are the same, under this code.
fn is_refused(provider: Provider, broken: &Value, code: Code, words: &str) {
    let (_, body) = strict::check(provider, broken).expect_err("it is refused");
    assert_eq!(body["error"]["message"], words);
    let found = validate(provider, What::Request, broken);
    let is_it = |text: &str| text == words;
    assert!(
        found
            .iter()
            .any(|one| one.code == code && one.provider_text.as_deref().is_some_and(is_it)),
        "{found:#?}"
    );
}

#[test]
fn t06_a_model_that_thought_before_its_first_call_need_not_think_before_the_next() {
    let on = json!({"type": "enabled", "budget_tokens": 50});
    let turn = [
        json!([thought("h"), call("t1")]),
        json!([call("t2")]),
        json!([{"type": "text", "text": "a1x"}, call("t3")]),
    ];
    is_untouched(Provider::Anthropic, &asked(on.clone(), &turn));
    // Nor where it thinks between its calls only.
    let turn = [json!([call("t1")]), json!([thought("h"), call("t2")])];
    is_untouched(Provider::Anthropic, &asked(on, &turn));
    let call = |id: &str| json!({"toolUse": {"toolUseId": id, "name": "look", "input": {}}});
    let answer = |id: &str| json!({"role": "user", "content": [{"toolResult": {"toolUseId": id, "content": [{"text": "r1x"}]}}]});
    let signed = json!({"reasoningContent": {"reasoningText": {"text": "h", "signature": "sig"}}});
    let mut request = request(
        Provider::BedrockConverse,
        json!([
            {"role": "user", "content": [{"text": "u1x"}]},
            {"role": "assistant", "content": [signed, call("t1")]},
            answer("t1"),
            {"role": "assistant", "content": [call("t2")]},
            answer("t2"),
        ]),
    );
    request["modelId"] = json!("anthropic.claude-sonnet-4-5-20250929-v1:0");
    request["additionalModelRequestFields"] = json!({"thinking": {"type": "enabled"}});
    is_untouched(Provider::BedrockConverse, &request);
}

#[test]
fn r03_thinking_at_the_end_of_a_turn_is_left_out() {
    let on = json!({"type": "enabled", "budget_tokens": 50});
    let words = "messages.1: The final block in an assistant message cannot be `thinking`.";
    let said = json!({"type": "text", "text": "a1x"});
    let redacted = json!({"type": "redacted_thinking", "data": "AA=="});
    for (content, kept) in [
        (json!([thought("h")]), json!([])),
        (json!([said, thought("h")]), json!([said])),
        (
            json!([thought("h"), said, redacted, thought("i")]),
            json!([thought("h"), said]),
        ),
    ] {
        let mut broken = asked(on.clone(), &[content]);
        let messages = broken["messages"].as_array_mut().expect("messages");
        messages.push(json!({"role": "user", "content": "u2x"}));
        is_refused(Provider::Anthropic, &broken, Code::DanglingReasoning, words);
        let (repaired, _) = check(Provider::Anthropic, &broken);
        assert_eq!(repaired["messages"][1]["content"], kept);
        assert_eq!(repaired["thinking"], on);
    }
    // Messages of one role are one turn.
    let valid = request(
        Provider::Anthropic,
        json!([
            {"role": "user", "content": "u1x"},
            {"role": "assistant", "content": [thought("h")]},
            {"role": "assistant", "content": "a1x"},
            {"role": "user", "content": "u2x"},
        ]),
    );
    is_untouched(Provider::Anthropic, &valid);
    let signed = json!({"reasoningContent": {"reasoningText": {"text": "h", "signature": "sig"}}});
    let mut broken = request(
        Provider::BedrockConverse,
        json!([
            {"role": "user", "content": [{"text": "u1x"}]},
            {"role": "assistant", "content": [{"text": "a1x"}, signed]},
            {"role": "user", "content": [{"text": "u2x"}]},
        ]),
    );
    broken["modelId"] = json!("anthropic.claude-sonnet-4-5-20250929-v1:0");
    let (repaired, _) = repair(Provider::BedrockConverse, broken);
    assert_eq!(repaired["messages"][1]["content"], json!([{"text": "a1x"}]));
}

#[test]
fn r03_where_a_repair_switches_thinking_off_it_takes_what_was_thought_in_the_turn() {
    let turn = [
        json!([thought("h"), call("t1")]),
        json!([thought("i"), call("t2")]),
    ];
    let mut broken = asked(json!({"type": "enabled", "budget_tokens": 50}), &turn);
    broken["tool_choice"] = json!({"type": "any"});
    let (repaired, _) = repair(Provider::Anthropic, broken.clone());
    assert_eq!(repaired["thinking"], json!({"type": "disabled"}));
    assert_eq!(repaired["messages"][1]["content"], json!([call("t1")]));
    assert_eq!(repaired["messages"][3]["content"], json!([call("t2")]));
    // Once the user has said something new, it does no harm.
    let messages = broken["messages"].as_array_mut().expect("messages");
    messages.push(json!({"role": "assistant", "content": "a1x"}));
    messages.push(json!({"role": "user", "content": "u2x"}));
    let (repaired, _) = check(Provider::Anthropic, &broken);
    assert_eq!(repaired["messages"], broken["messages"]);
}

#[test]
fn t06_calls_that_bedrock_runs_itself_stay_where_they_are() {
    let valid = request(
        Provider::BedrockConverse,
        json!([
            {"role": "user", "content": [{"text": "u1x"}]},
            {"role": "assistant", "content": [
                {"toolUse": {"toolUseId": "t1", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}},
                {"toolResult": {"toolUseId": "t1", "content": [{"text": "r1x"}], "type": "nova_grounding_result"}},
                {"text": "a1x"},
            ]},
            {"role": "user", "content": [{"text": "u2x"}]},
        ]),
    );
    is_untouched(Provider::BedrockConverse, &valid);
}

#[test]
fn r03_items_that_only_responses_has_are_no_words_of_the_users_elsewhere() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q1x"}});
    let items = json!([
        {"role": "user", "content": "u1x"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
        search,
        {"type": "item_reference", "id": "msg_0"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "a1x", "annotations": [], "logprobs": []}]},
        {"type": "computer_call", "id": "cu_1", "call_id": "c1", "action": {"type": "screenshot"}},
        {"type": "computer_call_output", "call_id": "c1", "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA=="}},
        {"role": "user", "content": "u2x"},
    ]);
    for to in Provider::ALL {
        if matches!(to, Provider::OpenAiResponses | Provider::LangChain) {
            continue;
        }
        let (repaired, _) = check(to, &request(to, items.clone()));
        let text = repaired.to_string();
        assert!(!text.contains("(empty message)"), "{to} {text}");
        // Ollama overlooks what it does not know.
        let has_ids = text.contains("rs_1") || text.contains("msg_");
        assert!(!has_ids || to == Provider::Ollama, "{to} {text}");
        let messages = repaired[key(to)].as_array().expect("messages");
        let says = |message: &&Value| message.to_string().contains("q1x");
        let found = messages.iter().find(says).expect("the search is told of");
        assert!(
            matches!(found["role"].as_str(), Some("assistant" | "model")),
            "{to} {text}"
        );
        let shows = |message: &&Value| message.to_string().contains("AA==");
        let shown = messages.iter().find(shows).expect("what was seen is shown");
        assert_eq!(shown["role"], "user", "{to}");
    }
    // Where nothing else is left, somebody says something.
    let only = json!([{"type": "reasoning", "id": "rs_1", "summary": []}]);
    let (repaired, _) = repair(Provider::OpenAi, request(Provider::OpenAi, only));
    assert_eq!(repaired["messages"][0]["role"], "user");
}

#[test]
fn r03_an_answer_of_anthropics_is_a_message_of_openais() {
    let stored = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "a1x"}],
        "stop_reason": "end_turn", "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    let broken = request(
        Provider::OpenAi,
        json!([{"role": "user", "content": "u1x"}, stored, {"role": "user", "content": "u2x"}]),
    );
    let words = "Unknown parameter: 'messages[1].id'.";
    is_refused(Provider::OpenAi, &broken, Code::BadField, words);
    let (repaired, _) = check(Provider::OpenAi, &broken);
    let kept = json!({"role": "assistant", "content": [{"type": "text", "text": "a1x"}]});
    assert_eq!(repaired["messages"][1], kept);
}

#[test]
fn r03_ids_and_marks_that_are_there_twice_are_mended_once() {
    // A call of OpenAI's own under the id of a function's.
    let items = json!([
        {"role": "user", "content": "u1x"},
        {"type": "computer_call", "id": "cu_1", "call_id": "c1", "action": {"type": "screenshot"}},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
    ]);
    let (once, _) = repair(
        Provider::OpenAiResponses,
        request(Provider::OpenAiResponses, items),
    );
    assert_eq!(once["input"].as_array().map(Vec::len), Some(4));
    assert_eq!(
        repair(Provider::OpenAiResponses, once.clone()),
        (once, vec![])
    );
    let alone = json!([{"role": "assistant", "content": "a1x", "prefix": true}]);
    let (once, _) = repair(Provider::Mistral, request(Provider::Mistral, alone));
    assert_eq!(once["messages"][0]["prefix"], false);
    assert_eq!(repair(Provider::Mistral, once.clone()), (once, vec![]));
    let nobodys = json!([{"role": "?", "content": "u1x", "tool_call_id": ""}]);
    let (once, _) = repair(Provider::OpenAi, request(Provider::OpenAi, nobodys));
    assert_eq!(
        once["messages"],
        json!([{"role": "user", "content": "u1x"}])
    );
}

#[test]
fn l06_a_langchain_message_may_be_a_pair_of_who_speaks_and_what_is_said() {
    let pairs = json!([
        ["system", "s1x"],
        ["human", "u1x"],
        ["ai", "a1x"],
        ["nobody", "x"]
    ]);
    let (repaired, _) = repair_with(Provider::LangChain, &Options::default(), pairs);
    assert_eq!(
        repaired,
        json!([
            {"type": "system", "content": "s1x"},
            {"type": "human", "content": "u1x"},
            {"type": "ai", "content": "a1x"},
            {"type": "human", "content": "[\"nobody\",\"x\"]"},
        ])
    );
}

#[test]
fn t06_a_response_that_broke_off_before_its_first_word_is_one() {
    for status in ["queued", "in_progress", "incomplete", "failed", "cancelled"] {
        let response = json!({
            "id": "resp_1", "object": "response", "status": status, "output": [],
            "incomplete_details": {"reason": "max_output_tokens"},
        });
        assert_eq!(
            validate(Provider::OpenAiResponses, What::Response, &response),
            [],
            "{status}"
        );
        assert_eq!(
            repair_response(Provider::OpenAiResponses, response.clone()),
            (response, vec![]),
            "{status}"
        );
    }
}
