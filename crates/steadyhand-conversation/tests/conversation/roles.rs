//! Results in the wrong role or message, empty contents, ends that a model refuses: for every provider that has them.

use serde_json::{Value, json};
use steadyhand_conversation::strict;
use steadyhand_conversation::{Code, Provider, What, repair, validate};

use super::render::{Step, calls, check, key, long, message, render, request, result, says, user};

/// Found, refused by the strict provider, and mended.
fn mends(provider: Provider, broken: &Value, code: Code) -> Value {
    let found = validate(provider, What::Request, broken);
    let is_found = found.iter().any(|problem| problem.code == code);
    assert!(
        is_found,
        "{provider}: {code:?} not in {found:#?} for {broken:#}"
    );
    if provider != Provider::LangChain {
        let refused = strict::check(provider, broken);
        assert!(refused.is_err(), "{provider} takes {broken:#}");
    }
    check(provider, broken).0
}

#[test]
fn r03_a_result_in_the_wrong_role_or_message_comes_to_its_call() {
    let id = long("a");
    let as_chat = json!({"role": "tool", "tool_call_id": id, "content": "r1x"});
    let block = json!({"type": "tool_result", "tool_use_id": id, "content": "r1x"});
    let part =
        json!({"functionResponse": {"id": id, "name": "look", "response": {"output": "r1x"}}});
    let table = [
        // As another provider writes it.
        (Provider::Anthropic, as_chat.clone(), Code::WrongRole),
        (Provider::OpenAiResponses, as_chat.clone(), Code::WrongRole),
        (Provider::LangChain, as_chat, Code::BadContent),
        // Said by the wrong one.
        (
            Provider::Anthropic,
            json!({"role": "assistant", "content": [block]}),
            Code::MisplacedResult,
        ),
        (
            Provider::Anthropic,
            json!({"role": "system", "content": [block]}),
            Code::WrongRole,
        ),
        (
            Provider::Gemini,
            json!({"role": "model", "parts": [part]}),
            Code::MisplacedResult,
        ),
        (
            Provider::Gemini,
            json!({"role": "tool", "parts": [part]}),
            Code::WrongRole,
        ),
        (
            Provider::OpenAi,
            json!({"role": "user", "tool_call_id": id, "content": "r1x"}),
            Code::WrongRole,
        ),
        (
            Provider::OpenAi,
            json!({"role": "bogus", "tool_call_id": id, "content": "r1x"}),
            Code::WrongRole,
        ),
        (
            Provider::Mistral,
            json!({"role": "user", "tool_call_id": id, "content": "r1x"}),
            Code::WrongRole,
        ),
        (
            Provider::Ollama,
            json!({"role": "user", "tool_call_id": id, "content": "r1x"}),
            Code::WrongRole,
        ),
    ];
    for (provider, misplaced, code) in table {
        let mut broken = render(provider, &[user("u1x"), calls(&["a"])]);
        let messages = broken[key(provider)].as_array_mut().expect("a list");
        messages.push(misplaced);
        messages.extend(message(provider, &user("u2x"), &[]));
        let repaired = mends(provider, &broken, code).to_string();
        assert!(
            !repaired.contains("may or may not"),
            "{provider}: {repaired}"
        );
        assert!(
            repaired.find("r1x") < repaired.find("u2x"),
            "{provider}: {repaired}"
        );
    }
}

#[test]
fn r03_empty_contents_are_filled_where_the_provider_wants_something() {
    let say = |content: Value| json!({"role": "user", "content": content});
    let part = |parts: Value| json!({"role": "user", "parts": parts});
    let table = [
        (Provider::Anthropic, say(json!("")), Code::EmptyContent),
        (Provider::Anthropic, say(json!([])), Code::EmptyContent),
        (Provider::Anthropic, say(json!(null)), Code::EmptyContent),
        (
            Provider::Anthropic,
            say(json!([{"type": "text", "text": ""}])),
            Code::EmptyContent,
        ),
        (Provider::OpenAi, say(json!(null)), Code::EmptyContent),
        (Provider::OpenAi, say(json!([])), Code::EmptyContent),
        (
            Provider::OpenAi,
            json!({"role": "assistant"}),
            Code::EmptyContent,
        ),
        (
            Provider::OpenAiResponses,
            say(json!(null)),
            Code::EmptyContent,
        ),
        (Provider::Gemini, part(json!([])), Code::EmptyContent),
        (Provider::Gemini, part(json!([{}])), Code::BadContent),
        (
            Provider::Gemini,
            json!({"role": "user"}),
            Code::EmptyContent,
        ),
        (Provider::Mistral, say(json!(null)), Code::EmptyContent),
        (Provider::Ollama, say(json!(["u9x"])), Code::BadContent),
        (
            Provider::LangChain,
            json!({"type": "human", "content": null}),
            Code::EmptyContent,
        ),
        (
            Provider::LangChain,
            json!({"type": "ai"}),
            Code::EmptyContent,
        ),
    ];
    for (provider, empty, code) in table {
        let mut broken = render(provider, &[user("u1x"), says("a1x")]);
        let messages = broken[key(provider)].as_array_mut().expect("a list");
        messages.push(empty);
        mends(provider, &broken, code);
    }
}

#[test]
fn r03_results_without_content_say_so_where_the_provider_wants_something() {
    let steps = [user("u1x"), calls(&["a"]), result("a", "r1x")];
    let table = [
        (Provider::OpenAi, "/messages/2/content"),
        (Provider::OpenAiResponses, "/input/2/output"),
        (
            Provider::Gemini,
            "/contents/2/parts/0/functionResponse/response",
        ),
        (Provider::Mistral, "/messages/2/content"),
        (Provider::LangChain, "/messages/2/content"),
    ];
    for (provider, place) in table {
        let mut broken = render(provider, &steps);
        *broken.pointer_mut(place).expect("there is a content") = Value::Null;
        let code = match provider {
            Provider::Gemini => Code::BadContent,
            _ => Code::EmptyResult,
        };
        let repaired = mends(provider, &broken, code).to_string();
        assert!(repaired.contains("(no output)"), "{provider}: {repaired}");
    }
    // These take a result that says nothing.
    for (provider, place) in [
        (Provider::Anthropic, "/messages/2/content/0/content"),
        (Provider::Ollama, "/messages/2/content"),
    ] {
        let mut valid = render(provider, &steps);
        *valid.pointer_mut(place).expect("there is a content") = Value::Null;
        assert_eq!(strict::check(provider, &valid), Ok(()));
        assert_eq!(repair(provider, valid.clone()), (valid, vec![]));
    }
}

#[test]
fn r03_a_trailing_assistant_stays_where_the_model_goes_on_from_it() {
    let steps: &[Step] = &[user("u1x"), says("a1x")];
    for provider in Provider::ALL {
        let trailing = render(provider, steps);
        if provider == Provider::Mistral {
            mends(provider, &trailing, Code::TrailingAssistant);
            continue;
        }
        assert_eq!(
            repair(provider, trailing.clone()),
            (trailing, vec![]),
            "{provider}"
        );
    }
    for model in [
        "claude-opus-4-6",
        "claude-sonnet-5",
        "anthropic/claude-haiku-5-20270101",
    ] {
        let mut trailing = render(Provider::Anthropic, steps);
        trailing["model"] = json!(model);
        mends(Provider::Anthropic, &trailing, Code::TrailingAssistant);
    }
    let begun = json!([{"role": "user", "content": "u1x"}, {"role": "assistant", "content": "a1x", "prefix": true}]);
    let begun = request(Provider::Mistral, begun);
    assert_eq!(repair(Provider::Mistral, begun.clone()), (begun, vec![]));
}

#[test]
fn r02_places_are_those_of_what_was_given() {
    // A placeholder comes in before the mark and the end that are told about.
    let mark = json!({"type": "ephemeral"});
    let text = |word: &str| json!({"type": "text", "text": word, "cache_control": mark});
    let words = ["u2x", "u3x", "u4x", "u5x", "u6x"];
    let messages = json!([
        {"role": "user", "content": "u1x"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
        {"role": "user", "content": words.map(text)},
        {"role": "assistant", "content": "a1x"},
    ]);
    let mut broken = request(Provider::Anthropic, messages);
    broken["model"] = json!("claude-sonnet-5");
    let found = validate(Provider::Anthropic, What::Request, &broken);
    let at = |code: Code| {
        found
            .iter()
            .find(|one| one.code == code)
            .map(|one| one.at.as_str())
    };
    assert_eq!(
        at(Code::CacheControl),
        Some("/messages/2/content/0/cache_control")
    );
    assert_eq!(at(Code::TrailingAssistant), Some("/messages/3"));
}

#[test]
fn r03_a_cache_mark_stays_on_what_becomes_of_its_block() {
    let mark = json!({"type": "ephemeral"});
    let broken = request(
        Provider::Anthropic,
        json!([
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "gone", "content": "r1x", "cache_control": mark},
                {"type": "tool_use", "id": "b", "name": "look", "input": {}, "cache_control": mark},
                {"text": "u1x", "cache_control": mark},
            ]},
        ]),
    );
    let (repaired, _) = check(Provider::Anthropic, &broken);
    let marks = repaired.to_string().matches("ephemeral").count();
    assert_eq!(marks, 3, "{repaired:#}");
}
