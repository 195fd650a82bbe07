//! A conversation shortened to a budget keeps calls and results together.

use proptest::prelude::*;
use serde_json::{Value, json};
use steadyhand::conversation::{Provider, What, trim, trim_by, validate};
use steadyhand::testing::strict;

use super::render::{calls, key, render, result, says, user};

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
