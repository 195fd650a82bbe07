//! Conversations as large, deep and repetitive as nobody writes them: the work grows with them, and no faster.

use std::time::Duration;

use serde_json::{Value, json};
use steadyhand_conversation::{
    Provider, What, explain, fixes_made, recover_calls, repair, trim, validate,
};

use super::render::{Step, calls, check, key, render, request, result, says, user};

/// Far more than anything here takes, also beside much other work.
const BOUND: Duration = Duration::from_secs(300);

/// Runs it on a thread of its own, and fails if that is not done in time.
fn within_bound<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, finished) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    let result = finished.recv_timeout(BOUND);
    result.unwrap_or_else(|error| panic!("{what}: {error}"))
}

#[test]
fn r03_forty_thousand_messages_are_mended_in_passing() {
    for provider in Provider::ALL {
        let mut steps: Vec<Step> = Vec::new();
        for turn in 0..10_000 {
            let id = format!("{turn}");
            steps.extend([user("u1x"), calls(&[&id])]);
            // Each tenth result is missing, each eleventh comes too late.
            match turn {
                _ if turn % 10 == 0 => {}
                _ if turn % 11 == 0 => steps.extend([says("a1x"), result(&id, "r1x")]),
                _ => steps.push(result(&id, "r1x")),
            }
            steps.push(says("a2x"));
        }
        // The names of calls are looked up for each result: all of them are the same here.
        let messages: Vec<Value> = steps
            .iter()
            .flat_map(|step| super::render::message(provider, step, &[]))
            .collect();
        let broken = Value::Array(messages);
        let left = within_bound(provider.as_str(), move || {
            let (repaired, fixes) = repair(provider, broken.clone());
            assert!(fixes.len() >= 1_000);
            assert!(explain(provider, &broken, &repaired, &fixes).len() > 10_000);
            let left = validate(provider, What::Match, &repaired);
            let trimmed = trim(provider, repaired, 10_000);
            assert!(trimmed.fits, "{provider}");
            left
        });
        assert_eq!(left, []);
    }
}

#[test]
fn r03_one_turn_with_very_many_calls_is_mended_in_passing() {
    const CALLS: usize = 30_000;
    let names = |count: usize| (0..count).map(|number| format!("name{number}"));
    // Results that say a name and no id, in the opposite order.
    let call = |name: &String| json!({"functionCall": {"name": name, "args": {}}});
    let answer =
        |name: &String| json!({"functionResponse": {"name": name, "response": {"output": "r"}}});
    let named: Vec<String> = names(CALLS).collect();
    let asked: Vec<Value> = named.iter().map(call).collect();
    let answered: Vec<Value> = named.iter().rev().map(answer).collect();
    let contents = json!([
        {"role": "user", "parts": [{"text": "u"}]},
        {"role": "model", "parts": asked},
        {"role": "user", "parts": answered},
    ]);
    let fixes = within_bound("gemini", move || repair(Provider::Gemini, contents).1);
    // Google takes them in any order.
    assert_eq!(fixes.len(), 0);

    // One id for all of them, and the new ids that would be made are taken, too.
    let block = |id: String| json!({"type": "tool_use", "id": id, "name": "n", "input": {}});
    let same = (0..CALLS).map(|_| block("a".to_owned()));
    let taken = (0..CALLS).map(|number| block(format!("a_{number}")));
    let blocks: Vec<Value> = same.chain(taken).collect();
    let messages =
        json!([{"role": "user", "content": "u"}, {"role": "assistant", "content": blocks}]);
    let (repaired, fixes) =
        within_bound("anthropic", move || repair(Provider::Anthropic, messages));
    assert_eq!(fixes.len(), CALLS - 1 + 2 * CALLS);
    assert_eq!(validate(Provider::Anthropic, What::Match, &repaired), []);
}

#[test]
fn r01_what_is_said_about_a_conversation_is_not_much_longer_than_it() {
    let long = "i".repeat(1_000);
    let block = |number: usize| json!({"type": "tool_use", "id": format!("{long}{number}"), "name": "n", "input": {}});
    let blocks: Vec<Value> = (0..2_000).map(block).collect();
    let messages = json!([{"role": "assistant", "content": blocks}]);
    let bytes = messages.to_string().len();
    let problems = within_bound("validate", move || {
        validate(Provider::Anthropic, What::Match, &messages)
    });
    assert_eq!(problems.len(), 2_000);
    let told: usize = problems
        .iter()
        .map(|problem| {
            problem.to_string().len() + problem.provider_text.as_ref().map_or(0, String::len)
        })
        .sum();
    assert!(told < 5 * bytes, "{told} bytes about {bytes}");
    // One id as long as a book is quoted, not printed.
    let messages =
        json!([{"role": "user", "content": "u"}, {"role": "book".repeat(100_000), "content": "u"}]);
    for problem in validate(Provider::OpenAi, What::Match, &messages) {
        assert!(problem.message.len() < 5_000);
        assert!(problem.provider_text.is_none_or(|text| text.len() < 5_000));
    }
}

#[test]
fn r03_json_as_deep_as_it_can_be_read_is_mended() {
    let nested = |depth: usize| {
        let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        serde_json::from_str::<Value>(&text).expect("it can be read")
    };
    for provider in Provider::ALL {
        let valid = render(provider, &[user("u1x"), calls(&["a"]), result("a", "r1x")]);
        let mut places = Vec::new();
        collect(
            &valid[key(provider)],
            &format!("/{}", key(provider)),
            &mut places,
        );
        for place in places {
            let mut broken = valid.clone();
            *broken.pointer_mut(&place).expect("it is there") = nested(100);
            let (repaired, _) = repair(provider, broken);
            let (again, fixes) = repair(provider, repaired.clone());
            assert_eq!((&again, fixes), (&repaired, vec![]), "{provider} {place}");
        }
        let deep = format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
        let mut broken = valid.clone();
        let place = super::classes::place_of_arguments(provider);
        *broken.pointer_mut(place).expect("there are arguments") = json!(deep);
        check(provider, &broken);
    }
}

fn collect(value: &Value, at: &str, places: &mut Vec<String>) {
    places.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                collect(inner, &format!("{at}/{key}"), places);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                collect(inner, &format!("{at}/{index}"), places);
            }
        }
        _ => {}
    }
}

#[test]
fn d15_a_text_full_of_marks_is_read_once() {
    let tools = [json!({"name": "n", "description": "d", "schema": {"type": "object"}})];
    for piece in [
        "```",
        "``` ",
        "<tool_call>",
        "```<tool_call>```",
        "<tool_call>{</tool_call>",
        "{",
    ] {
        let said = piece.repeat(200_000 / piece.len());
        let tools = tools.clone();
        let (calls, rest) = within_bound(piece, move || {
            let (calls, rest) = recover_calls(&said, &tools);
            (calls, rest == said)
        });
        assert!(calls.is_empty() && rest, "{piece}");
    }
}

#[test]
fn r03_every_correction_is_counted() {
    let count = || -> u64 {
        let made = fixes_made();
        let of = made.iter().filter(|(provider, code, _)| {
            *provider == Provider::Mistral && code.as_str() == "bad_call_name"
        });
        of.map(|(_, _, count)| count).sum()
    };
    let before = count();
    let call =
        json!({"id": "abcdefghi", "type": "function", "function": {"name": "", "arguments": "{}"}});
    let broken = json!([
        {"role": "user", "content": "u1x"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "abcdefghi", "content": "r1x"},
    ]);
    check(Provider::Mistral, &request(Provider::Mistral, broken));
    assert!(count() > before);
}
