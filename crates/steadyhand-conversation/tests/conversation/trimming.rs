//! A conversation shortened to a budget keeps calls and results together.

use proptest::prelude::*;
use serde_json::{Value, json};
use steadyhand_conversation::strict;
use steadyhand_conversation::{Code, Provider, What, repair, trim, trim_by, validate};

use super::render::{calls, key, render, request, result, says, user};
use super::writer::Writer;

#[test]
fn r03_trimming_never_splits_a_call_from_its_result() {
    let steps = [
        user("u1x"),
        calls(&["a", "b"]),
        result("a", "r1x"),
        result("b", "r2x"),
        says("a1x"),
        user("u2x"),
        calls(&["c"]),
        result("c", "r3x"),
        calls(&["d"]),
        result("d", "r4x"),
        says("a2x"),
        user("u3x"),
    ];
    for provider in Provider::ALL {
        let whole = render(provider, &steps);
        let bytes = whole[key(provider)].to_string().len();
        for budget in 0..=bytes {
            let trimmed = trim(provider, whole.clone(), budget);
            assert_eq!(
                strict::check(provider, &trimmed.value),
                Ok(()),
                "{provider} {budget}"
            );
            assert_eq!(
                validate(provider, What::Match, &trimmed.value),
                [],
                "{provider} {budget}"
            );
            // What the user said last is always there.
            assert!(trimmed.value.to_string().contains("u3x"));
            if trimmed.fits {
                assert!(trimmed.value[key(provider)].to_string().len() <= budget + 64);
            }
        }
        let trimmed = trim(provider, whole.clone(), bytes);
        assert_eq!(
            (trimmed.value, trimmed.dropped, trimmed.fits),
            (whole, vec![], true)
        );
    }
}

#[test]
fn r03_a_long_loop_keeps_its_task_and_its_latest_steps() {
    let steps = [
        user("u1x"),
        calls(&["a"]),
        result("a", "r1x"),
        calls(&["b"]),
        result("b", "r2x"),
        calls(&["c"]),
        result("c", "r3x"),
    ];
    for provider in Provider::ALL {
        let each = |_: &Value| 1;
        let trimmed = trim_by(provider, render(provider, &steps), 3, each);
        assert!(trimmed.fits, "{provider}");
        let text = trimmed.value[key(provider)].to_string();
        assert!(
            text.contains("u1x") && text.contains("r3x") && !text.contains("r2x"),
            "{text}"
        );
        assert_eq!(trimmed.dropped, [1, 2, 3, 4]);
        assert_eq!(strict::check(provider, &trimmed.value), Ok(()));
    }
}

#[test]
fn r03_what_the_system_is_told_stays() {
    let messages = json!([
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "u1x"},
        {"role": "assistant", "content": "a1x"},
        {"role": "user", "content": "u2x"},
    ]);
    let trimmed = trim_by(Provider::OpenAi, messages, 2, |_| 1);
    assert_eq!(
        trimmed.value,
        json!([{"role": "system", "content": "be kind"}, {"role": "user", "content": "u2x"}])
    );
    assert_eq!(trimmed.dropped, [1, 2]);
}

#[test]
fn r03_calls_with_ids_and_results_without_are_pairs_too() {
    // Ollama gives ids, and takes results that have only a name; Google likewise.
    let call = |id: &str| json!({"role": "assistant", "content": "", "tool_calls": [{"id": id, "function": {"name": "look", "arguments": {}}}]});
    let answer = json!({"role": "tool", "tool_name": "look", "content": "r1x"});
    let user = |word: &str| json!({"role": "user", "content": word});
    let messages = json!([
        user("u1x"),
        call("a"),
        answer,
        user("u2x"),
        call("b"),
        answer,
        user("u3x")
    ]);
    let trimmed = trim_by(Provider::Ollama, messages, 4, |_| 1);
    assert_eq!(trimmed.dropped, [0, 1, 2]);
    let call = |id: &str| json!({"role": "model", "parts": [{"functionCall": {"id": id, "name": "look"}}]});
    let answer =
        json!({"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {}}}]});
    let user = |word: &str| json!({"role": "user", "parts": [{"text": word}]});
    let contents = json!([
        user("u1x"),
        call("a"),
        answer,
        user("u2x"),
        call("b"),
        answer,
        user("u3x")
    ]);
    let trimmed = trim_by(Provider::Gemini, contents, 4, |_| 1);
    assert_eq!(trimmed.dropped, [0, 1, 2]);
}

#[test]
fn r03_what_the_system_is_told_later_does_not_come_first() {
    let say = |role: &str, word: &str| json!({"role": role, "content": word});
    let messages = json!([
        say("user", "u1x"),
        say("system", "s"),
        say("assistant", "a1x"),
        say("user", "u2x")
    ]);
    for budget in 0..5 {
        let request = request(Provider::Anthropic, messages.clone());
        let trimmed = trim_by(Provider::Anthropic, request, budget, |_| 1);
        assert_eq!(
            strict::check(Provider::Anthropic, &trimmed.value),
            Ok(()),
            "{budget}"
        );
    }
}

#[test]
fn r03_what_a_repair_gives_can_be_trimmed_to_anything() {
    for provider in Provider::ALL {
        for seed in 0..200 {
            let messages = Writer::new(provider, seed).messages();
            let (repaired, _) = repair(provider, request(provider, json!(messages)));
            for budget in 0..8 {
                let trimmed = trim_by(provider, repaired.clone(), budget, |_| 1);
                let mut left = validate(provider, What::Match, &trimmed.value);
                // It is taken so, and left so.
                left.retain(|one| one.code != Code::ResultOrder);
                assert_eq!(
                    left,
                    [],
                    "{provider} {seed} {budget} {repaired:#} {:#}",
                    trimmed.value
                );
                assert_eq!(
                    strict::check(provider, &trimmed.value),
                    Ok(()),
                    "{provider} {seed} {budget} {repaired:#}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r03_any_budget_leaves_a_valid_conversation(count in 1..12_usize, budget in 0..40_usize, provider in 0..Provider::ALL.len()) {
        let provider = Provider::ALL[provider];
        let mut steps = vec![user("u0x")];
        for number in 0..count {
            let id = number.to_string();
            steps.extend([calls(&[&id]), result(&id, "r1x")]);
            if number % 3 == 2 {
                steps.extend([says("a1x"), user("u9x")]);
            }
        }
        let trimmed = trim_by(provider, render(provider, &steps), budget, |_| 1);
        prop_assert_eq!(strict::check(provider, &trimmed.value), Ok(()));
    }
}
