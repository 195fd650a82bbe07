//! One turn of tools in every provider's shape, errors included, and calls that a model wrote as text.

use serde_json::{Value, json};
use steadyhand::testing::{on_paused_clock, script};
use steadyhand::{Arguments, Outcome, ToolError, ToolExecutor, ToolManager};
use steadyhand_conversation::strict;
use steadyhand_conversation::{Provider, Turn, error_result, recover, recover_calls, repair};

use super::corpus::shared;
use super::render::{calls, key, message, render, user};

/// Runs what was called, with a tool that answers once and then fails.
fn run(turn: &Turn) -> Vec<Outcome> {
    on_paused_clock(async {
        let tools = ToolManager::new();
        let look = script("look")
            .answers("r1x")
            .fails(ToolError::answer("no luck"));
        tools.add(look.tool()).expect("it is a tool");
        let executor = ToolExecutor::new(tools);
        let mut outcomes = Vec::new();
        for call in turn.calls() {
            outcomes.push(executor.execute(call.clone().no_retry()).await);
        }
        outcomes
    })
}

#[test]
fn l02_a_turn_in_each_providers_shape_is_answered_completely() {
    let steps = [user("u1x"), calls(&["a", "b"])];
    for provider in Provider::ALL {
        let mut conversation = render(provider, &steps);
        let said = message(provider, &steps[1], &steps);
        let said = match provider {
            Provider::OpenAiResponses => Value::Array(said),
            _ => said[0].clone(),
        };
        let turn = Turn::read(provider, &said);
        assert_eq!(turn.calls().len(), 2, "{provider}");
        assert_eq!(turn.calls()[0].name, "look");
        let results = turn.results(&run(&turn));
        let messages = conversation[key(provider)].as_array_mut().expect("a list");
        messages.extend(results);
        assert_eq!(
            strict::check(provider, &conversation),
            Ok(()),
            "{conversation:#}"
        );
        let (same, fixes) = repair(provider, conversation.clone());
        assert_eq!((&same, fixes), (&conversation, vec![]));
        let text = same.to_string();
        assert!(
            text.contains("r1x") && text.contains("Error: no luck"),
            "{text}"
        );
        // Without outcomes there are still results.
        assert_eq!(turn.results(&[]).is_empty(), turn.calls().is_empty());
    }
}

#[test]
fn l01_calls_are_read_from_whole_responses_and_get_ids() {
    let ollama = json!({"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": [
        {"function": {"name": "look", "arguments": {"at": 1}}}, {"function": {"name": "look", "arguments": {"at": 2}}},
    ]}, "done": true});
    let turn = Turn::read(Provider::Ollama, &ollama);
    assert_ne!(turn.calls()[0].id, turn.calls()[1].id);
    assert_eq!(
        turn.results(&run(&turn))[0],
        json!({"role": "tool", "tool_name": "look", "content": "r1x"})
    );
    let chat = json!({"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "x", "type": "function", "function": {"name": "look", "arguments": ""}}]}}]});
    let turn = Turn::read(Provider::OpenAi, &chat);
    assert_eq!(turn.calls()[0].args, Arguments::Json(json!({})));
    let named = Turn::read_named(Provider::OpenAi, &chat, |_| "server__look".to_owned());
    assert_eq!(named.calls()[0].name, "server__look");
    let cut = json!({"type": "ai", "content": "", "invalid_tool_calls": [{"name": "look", "args": "{\"a", "id": "x"}]});
    let turn = Turn::read(Provider::LangChain, &cut);
    assert_eq!(turn.calls()[0].args, Arguments::Text("{\"a".to_owned()));
    let outcomes = run(&turn);
    assert!(!outcomes[0].is_success(), "what broke off is never run");
}

#[test]
fn l01_a_call_that_an_answer_ran_out_of_tokens_in_is_never_run() {
    let block = |id: &str, input: Value| json!({"type": "tool_use", "id": id, "name": "look", "input": input});
    let anthropic = json!({"role": "assistant", "stop_reason": "max_tokens", "content": [block("a", json!({"at": 1})), block("b", json!({}))]});
    let call = |args: Value| json!({"function": {"name": "look", "arguments": args}});
    let ollama = json!({"message": {"role": "assistant", "tool_calls": [call(json!({"at": 1})), call(json!({"at": 2}))]}, "done_reason": "length"});
    let part = |args: Value| json!({"functionCall": {"name": "look", "args": args}});
    let gemini = json!({"candidates": [{"content": {"role": "model", "parts": [part(json!({"at": 1})), part(json!({"at": 2}))]}, "finishReason": "MAX_TOKENS"}]});
    let chat = json!({"choices": [{"finish_reason": "length", "message": {"role": "assistant", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}},
        {"id": "b", "type": "function", "function": {"name": "look", "arguments": ""}}]}}]});
    let rows = [
        (Provider::Anthropic, anthropic),
        (Provider::Ollama, ollama),
        (Provider::Gemini, gemini),
        (Provider::OpenAi, chat),
    ];
    for (provider, said) in rows {
        let turn = Turn::read(provider, &said);
        let outcomes = run(&turn);
        assert!(outcomes[0].is_success(), "{provider}: the first is whole");
        let failure = outcomes[1].failure().expect("the last is not run");
        assert_eq!(outcomes[1].attempts, 0, "{provider}");
        assert_eq!(failure.problems[0].code, "json", "{provider}: {failure:?}");
        assert!(!turn.results(&outcomes).is_empty());
    }
    // What follows a call shows that it is whole; text shows it by itself.
    let followed = json!({"role": "assistant", "stop_reason": "max_tokens", "content": [block("a", json!({"at": 1})), {"type": "text", "text": "And th"}]});
    let turn = Turn::read(Provider::Anthropic, &followed);
    assert_eq!(turn.calls()[0].args, Arguments::Json(json!({"at": 1})));
    let whole = json!({"choices": [{"finish_reason": "length", "message": {"role": "assistant", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{\"at\": 1}"}}]}}]});
    let turn = Turn::read(Provider::OpenAi, &whole);
    assert!(run(&turn)[0].is_success());
}

#[test]
fn r14_an_error_result_is_well_formed_everywhere() {
    let steps = [user("u1x"), calls(&["a"])];
    for provider in Provider::ALL {
        let mut conversation = render(provider, &steps);
        let id = super::render::long("a");
        let error = error_result(provider, &id, "look", "no such file");
        assert!(error.to_string().contains("Error: no such file"), "{error}");
        conversation[key(provider)]
            .as_array_mut()
            .expect("a list")
            .push(error);
        assert_eq!(
            strict::check(provider, &conversation),
            Ok(()),
            "{conversation:#}"
        );
        assert_eq!(
            repair(provider, conversation.clone()),
            (conversation, vec![])
        );
    }
}

fn weather() -> Vec<Value> {
    vec![
        json!({"name": "get_weather", "description": "Get current weather of a city", "schema": {
            "type": "object", "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}, "required": ["city"],
        }}),
    ]
}

#[test]
fn d15_calls_that_a_model_wrote_as_text_are_found_on_request() {
    let call = r#"{"name": "get_weather", "arguments": {"city": "Paris"}}"#;
    let table = [
        (call.to_owned(), 1, ""),
        (format!("```json\n{call}\n```"), 1, ""),
        (format!("I will look.\n```json\n{call}\n```\nOne moment."), 1, "I will look.\n\nOne moment."),
        (format!("<tool_call>\n{call}\n</tool_call>"), 1, ""),
        (format!("<tool_call>\n{call}\n</tool_call>\n<tool_call>{call}</tool_call>"), 2, ""),
        (format!("<tool_call>{call}"), 1, ""),
        (format!("[{call},{call}]"), 2, ""),
        (format!("{call}\n{call}"), 2, ""),
        (r#"{"name": "get_weather", "parameters": {"city": "Paris"}}"#.to_owned(), 1, ""),
        (r#"{"type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}}"#.to_owned(), 1, ""),
    ];
    for (said, count, rest) in table {
        let (calls, left) = recover_calls(&said, &weather());
        assert_eq!((calls.len(), left.as_str()), (count, rest), "{said}");
        assert_eq!(calls[0].args, Arguments::Json(json!({"city": "Paris"})));
    }
}

#[test]
fn d15_what_is_no_call_stays_text() {
    let table = [
        r#"{"name": "rm_rf", "arguments": {}}"#,
        r#"{"name": "get_weather", "arguments": {}}"#,
        r#"{"name": "get_weather", "arguments": {"city": 5}}"#,
        r#"{"name": "get_weather", "arguments": {"city": "Par"#,
        r#"For example {"name": "get_weather", "arguments": {"city": "Paris"}} would do."#,
        "```json\n{\"city\": \"Paris\"}\n```",
        "plain words",
        "",
    ];
    for said in table {
        let (calls, rest) = recover_calls(said, &weather());
        assert_eq!((calls.len(), rest.as_str()), (0, said));
    }
    let message = json!({"role": "assistant", "content": table[0]});
    assert_eq!(
        recover(Provider::Ollama, message.clone(), &weather()),
        (message, vec![])
    );
}

#[test]
fn d15_real_models_wrote_these_calls_as_text() {
    for file in ["std_auto_nostream.json", "std2_auto.json"] {
        let Some(path) = shared(&format!("data/recorded/ollama/{file}")) else {
            continue;
        };
        let recorded: Value =
            serde_json::from_str(&std::fs::read_to_string(path).expect("a recording"))
                .expect("JSON");
        let body = recorded["response"]["body"].as_str().expect("a body");
        // A stream is one line per piece.
        let lines: Vec<Value> = body
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let said: String = lines
            .iter()
            .filter_map(|line| line["message"]["content"].as_str())
            .collect();
        let message = json!({"role": "assistant", "content": said});
        let (recovered, fixes) = recover(Provider::Ollama, message, &weather());
        assert_eq!(fixes.len(), 1, "{file}: {said}");
        let turn = Turn::read(Provider::Ollama, &recovered);
        assert_eq!(turn.calls()[0].name, "get_weather", "{file}");
    }
}
