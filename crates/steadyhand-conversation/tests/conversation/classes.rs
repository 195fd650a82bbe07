//! Every class of broken conversation, for every provider: found, mended, and accepted by the strict one.

use serde_json::{Value, json};
use steadyhand_conversation::strict;
use steadyhand_conversation::{Code, Fate, Options, Provider, What, repair, repair_with, validate};

use super::render::{Step, calls, check, key, long, render, request, result, says, user};

/// Breaks, finds, repairs; the strict provider must refuse before and accept after.
fn mends(provider: Provider, broken: &Value, code: Code) -> Value {
    let found = validate(provider, What::Request, broken);
    assert!(
        found.iter().any(|problem| problem.code == code),
        "{provider}: {code:?} not in {found:#?} for {broken:#}"
    );
    // No provider but the strict Ollama minds the order.
    let is_silent = code == Code::ResultOrder && provider != Provider::Ollama;
    let is_checked = provider != Provider::LangChain && !is_silent;
    if is_checked {
        let refused = strict::check(provider, broken);
        assert!(refused.is_err(), "{provider} takes {broken:#}");
    }
    let (repaired, fixes) = check(provider, broken);
    assert!(
        fixes.iter().any(|fix| fix.code == code),
        "{provider}: {fixes:#?}"
    );
    repaired
}

fn mends_everywhere(steps: &[Step], code: Code) {
    for provider in Provider::ALL {
        mends(provider, &render(provider, steps), code);
    }
}

#[test]
fn r02_a_valid_conversation_is_faultless_and_comes_back_as_it_was() {
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
    for provider in Provider::ALL {
        let valid = render(provider, &steps);
        assert_eq!(strict::check(provider, &valid), Ok(()));
        assert_eq!(validate(provider, What::Request, &valid), []);
        assert_eq!(validate(provider, What::Match, &valid), []);
        let (same, fixes) = repair(provider, valid.clone());
        assert_eq!((same.to_string(), fixes), (valid.to_string(), vec![]));
        let list = valid[key(provider)].clone();
        assert_eq!(repair(provider, list.clone()), (list, vec![]));
    }
}

#[test]
fn l05_a_missing_result_gets_a_placeholder_that_says_what_is_known() {
    let steps = [
        user("u1x"),
        calls(&["a", "b"]),
        result("a", "r1x"),
        user("u2x"),
    ];
    mends_everywhere(&steps, Code::MissingResult);
    let table = [
        (Fate::Lost, "may or may not have run"),
        (Fate::NeverRan, "was never run"),
        (
            Fate::MayHaveRun,
            "the tool may have run. Check before repeating it",
        ),
        (Fate::Cancelled, "was cancelled"),
    ];
    for provider in Provider::ALL {
        for (fate, words) in table {
            let options = Options::new().fate(long("b"), fate);
            let (repaired, _) = repair_with(provider, &options, render(provider, &steps));
            assert!(repaired.to_string().contains(words), "{provider} {fate:?}");
        }
    }
}

#[test]
fn r03_a_result_behind_what_the_user_said_is_moved_to_its_place() {
    let steps = [user("u1x"), calls(&["a"]), user("u2x"), result("a", "r1x")];
    for provider in Provider::ALL {
        let broken = render(provider, &steps);
        // OpenAI's Responses find an output wherever it is, Bedrock anywhere in its turn.
        if matches!(
            provider,
            Provider::OpenAiResponses | Provider::BedrockConverse
        ) {
            assert_eq!(repair(provider, broken.clone()), (broken, vec![]));
            continue;
        }
        let repaired = mends(provider, &broken, Code::MisplacedResult).to_string();
        let (result, said) = (repaired.find("r1x"), repaired.find("u2x"));
        assert!(result < said, "{provider}: {repaired}");
    }
}

#[test]
fn r03_results_of_parallel_calls_are_freed_from_the_words_between_them() {
    let steps = [
        user("u1x"),
        calls(&["a", "b"]),
        result("a", "r1x"),
        user("u2x"),
        result("b", "r2x"),
        says("a1x"),
        user("u3x"),
    ];
    for provider in Provider::ALL {
        let finds_them = matches!(
            provider,
            Provider::OpenAiResponses | Provider::BedrockConverse
        );
        if !finds_them {
            mends(provider, &render(provider, &steps), Code::MisplacedResult);
        }
    }
}

#[test]
fn r03_a_result_that_comes_after_the_model_went_on_is_kept_as_text() {
    let steps = [
        user("u1x"),
        calls(&["a"]),
        user("u2x"),
        says("a1x"),
        result("a", "r1x"),
        user("u3x"),
    ];
    for provider in Provider::ALL {
        let broken = render(provider, &steps);
        if provider == Provider::OpenAiResponses {
            assert_eq!(repair(provider, broken.clone()), (broken, vec![]));
            continue;
        }
        let repaired = mends(provider, &broken, Code::OrphanResult).to_string();
        assert!(repaired.contains("came too late"), "{repaired}");
    }
}

#[test]
fn r03_an_orphan_result_is_kept_as_marked_text() {
    let steps = [user("u1x"), says("a1x"), result("z", "r1x"), user("u2x")];
    mends_everywhere(&steps, Code::OrphanResult);
    // Also right behind real results, and at the very start, where trimming left it.
    let steps = [
        result("y", "r1x"),
        user("u1x"),
        calls(&["a", "b"]),
        result("a", "r2x"),
        result("z", "r3x"),
        result("b", "r4x"),
    ];
    mends_everywhere(&steps, Code::OrphanResult);
}

#[test]
fn r03_of_two_results_the_first_stays_and_the_other_is_not_lost() {
    let steps = [
        user("u1x"),
        calls(&["a"]),
        result("a", "r1x"),
        result("a", "r2x"),
        user("u2x"),
    ];
    mends_everywhere(&steps, Code::DuplicateResult);
    let steps = [
        user("u1x"),
        calls(&["a"]),
        result("a", "r1x"),
        result("a", "r1x"),
    ];
    for provider in Provider::ALL {
        let repaired = mends(provider, &render(provider, &steps), Code::DuplicateResult);
        assert_eq!(repaired.to_string().matches("r1x").count(), 1, "{provider}");
    }
}

#[test]
fn r03_a_real_result_takes_the_place_of_a_placeholder() {
    let broken = [user("u1x"), calls(&["a"])];
    for provider in Provider::ALL {
        let (mut repaired, _) = repair(provider, render(provider, &broken));
        let late = super::render::message(provider, &result("a", "r1x"), &broken);
        let messages = repaired[key(provider)].as_array_mut().expect("a list");
        messages.extend(late);
        let (repaired, _) = check(provider, &repaired);
        assert!(
            !repaired.to_string().contains("may or may not"),
            "{provider}: {repaired:#}"
        );
    }
}

#[test]
fn r03_two_calls_with_one_id_get_two() {
    let steps = [
        user("u1x"),
        calls(&["a", "a"]),
        result("a", "r1x"),
        result("a", "r2x"),
    ];
    for provider in Provider::ALL {
        let broken = render(provider, &steps);
        match provider {
            // The order tells them apart.
            Provider::Gemini | Provider::Ollama | Provider::OpenAiResponses => {
                assert_eq!(repair(provider, broken.clone()), (broken, vec![]));
            }
            _ => {
                mends(provider, &broken, Code::DuplicateCallId);
            }
        }
    }
}

#[test]
fn r03_calls_without_any_result_in_consecutive_messages_of_the_model() {
    let steps = [
        user("u1x"),
        calls(&["a"]),
        says("a1x"),
        calls(&["b"]),
        user("u2x"),
    ];
    mends_everywhere(&steps, Code::MissingResult);
    let steps = [
        user("u1x"),
        calls(&["a"]),
        calls(&["b"]),
        result("a", "r1x"),
        result("b", "r2x"),
    ];
    for provider in Provider::ALL {
        let broken = render(provider, &steps);
        match provider {
            // They merge the model's messages, or do not care.
            Provider::Anthropic
            | Provider::Gemini
            | Provider::OpenAiResponses
            | Provider::BedrockConverse => {
                assert_eq!(repair(provider, broken.clone()), (broken, vec![]));
            }
            _ => {
                mends(provider, &broken, Code::MisplacedResult);
            }
        }
    }
}

#[test]
fn r02_results_in_another_order_are_told_of_and_mended_only_where_their_order_is_all_there_is() {
    let steps = [
        user("u1x"),
        calls(&["a", "b", "c"]),
        result("c", "r3x"),
        result("b", "r2x"),
        result("a", "r1x"),
        user("u2x"),
    ];
    for provider in Provider::ALL {
        let reversed = render(provider, &steps);
        let found = validate(provider, What::Match, &reversed);
        let codes: Vec<Code> = found.iter().map(|one| one.code).collect();
        assert_eq!(codes, [Code::ResultOrder, Code::ResultOrder], "{provider}");
        // No provider refuses it, so none is said to.
        assert!(found.iter().all(|one| one.provider_text.is_none()));
        if !matches!(provider, Provider::Ollama | Provider::LangChain) {
            assert_eq!(
                repair(provider, reversed.clone()),
                (reversed, vec![]),
                "{provider}"
            );
            continue;
        }
        let repaired = mends(provider, &reversed, Code::ResultOrder).to_string();
        let at = |word: &str| repaired.find(word).expect("it is there");
        assert!(
            at("r1x") < at("r2x") && at("r2x") < at("r3x") && at("r3x") < at("u2x"),
            "{provider} {repaired}"
        );
    }
}

#[test]
fn r03_a_placeholder_stands_where_its_call_stands_among_the_others() {
    let steps = [
        user("u1x"),
        calls(&["a", "b", "c"]),
        result("b", "r2x"),
        user("u2x"),
    ];
    for provider in Provider::ALL {
        let repaired = mends(provider, &render(provider, &steps), Code::MissingResult);
        let text = repaired.to_string();
        let place = |word: &str| text.find(word).expect("it is there");
        let lost: Vec<usize> = text
            .match_indices("may or may not")
            .map(|(at, _)| at)
            .collect();
        assert_eq!(lost.len(), 2, "{provider} {text}");
        // Bedrock finds results by their ids: those that are there stay as they are.
        if provider == Provider::BedrockConverse {
            continue;
        }
        assert!(
            lost[0] < place("r2x") && place("r2x") < lost[1],
            "{provider} {text}"
        );
        assert!(lost[1] < place("u2x"), "{provider} {text}");
        let messages = repaired[key(provider)].as_array().expect("a list");
        match provider {
            // All results of a turn are in one message.
            Provider::Anthropic => {
                assert_eq!(messages.len(), 4, "{repaired:#}");
                let ids = messages[2]["content"].as_array().expect("blocks");
                let ids: Vec<&Value> = ids.iter().map(|block| &block["tool_use_id"]).collect();
                assert_eq!(
                    ids,
                    [
                        &json!("call0000a"),
                        &json!("call0000b"),
                        &json!("call0000c")
                    ]
                );
            }
            Provider::Gemini => {
                assert_eq!(
                    messages[2]["parts"].as_array().map(Vec::len),
                    Some(3),
                    "{repaired:#}"
                );
            }
            _ => {}
        }
    }
}

#[test]
fn r03_ids_that_a_provider_refuses_are_changed_in_call_and_result_alike() {
    let id = "functions.Bash:0 — an id that is longer than anybody takes, and has odd letters";
    let steps = [
        user("u1x"),
        Step::Ai(
            String::new(),
            vec![super::render::Called {
                id: id.to_owned(),
                name: "look".to_owned(),
                args: json!({}),
            }],
        ),
        Step::Result(id.to_owned(), "r1x".to_owned()),
    ];
    for provider in [
        Provider::Anthropic,
        Provider::OpenAi,
        Provider::OpenAiResponses,
        Provider::Mistral,
    ] {
        let repaired = mends(provider, &render(provider, &steps), Code::BadCallId);
        assert!(
            !repaired.to_string().contains("may or may not"),
            "{provider}"
        );
    }
}

/// Where the arguments of the first call are, when the user's words are all there is before it.
pub(super) fn place_of_arguments(provider: Provider) -> &'static str {
    match provider {
        Provider::Anthropic => "/messages/1/content/0/input",
        Provider::BedrockConverse => "/messages/1/content/0/toolUse/input",
        Provider::Gemini => "/contents/1/parts/0/functionCall/args",
        Provider::OpenAiResponses => "/input/1/arguments",
        Provider::LangChain => "/messages/1/tool_calls/0/args",
        _ => "/messages/1/tool_calls/0/function/arguments",
    }
}

#[test]
fn r03_arguments_are_written_as_each_provider_takes_them() {
    let odd = [
        json!("{\"at\": \"a1x\"}"),
        json!([1, 2]),
        json!("{\"at\": \"a1"),
        json!(null),
    ];
    for provider in Provider::ALL {
        for args in &odd {
            let mut broken = render(provider, &[user("u1x"), calls(&["a"]), result("a", "r1x")]);
            let place = place_of_arguments(provider);
            *broken.pointer_mut(place).expect("there are arguments") = args.clone();
            check(provider, &broken);
        }
    }
}

#[test]
fn r03_a_call_whose_arguments_broke_off_is_said_to_have_never_run() {
    for provider in [
        Provider::OpenAi,
        Provider::Mistral,
        Provider::LangChain,
        Provider::OpenAiResponses,
    ] {
        let mut broken = render(provider, &[user("u1x"), calls(&["a"]), user("u2x")]);
        let place = place_of_arguments(provider);
        *broken.pointer_mut(place).expect("there are arguments") = json!("{\"at\": \"a1x");
        let repaired = mends(provider, &broken, Code::UnfinishedArguments).to_string();
        assert!(repaired.contains("its arguments broke off"), "{repaired}");
        assert!(repaired.contains("a1x"), "{repaired}");
    }
}

#[test]
fn r03_a_call_without_a_name_gets_one() {
    for provider in Provider::ALL {
        let mut broken = render(provider, &[user("u1x"), calls(&["a"]), result("a", "r1x")]);
        let place = match provider {
            Provider::Anthropic => "/messages/1/content/0/name",
            Provider::BedrockConverse => "/messages/1/content/0/toolUse/name",
            Provider::Gemini => "/contents/1/parts/0/functionCall/name",
            Provider::OpenAiResponses => "/input/1/name",
            Provider::LangChain => "/messages/1/tool_calls/0/name",
            _ => "/messages/1/tool_calls/0/function/name",
        };
        *broken.pointer_mut(place).expect("there is a name") = json!("");
        mends(provider, &broken, Code::BadCallName);
    }
}

#[test]
fn r03_what_is_no_message_is_kept_as_text() {
    for provider in Provider::ALL {
        for junk in [json!("u7x"), json!(7), json!(null), json!(["u7x"])] {
            let mut broken = render(provider, &[user("u1x"), says("a1x")]);
            let messages = broken[key(provider)].as_array_mut().expect("a list");
            messages.push(junk);
            check(provider, &broken);
        }
    }
}

#[test]
fn r03_an_empty_conversation_stays_empty() {
    for provider in Provider::ALL {
        let empty = request(provider, json!([]));
        assert_eq!(repair(provider, empty.clone()), (empty.clone(), vec![]));
        let found = validate(provider, What::Request, &empty);
        assert_eq!(found[0].code, Code::NoMessages);
    }
}

#[test]
fn r03_repair_is_total() {
    for provider in Provider::ALL {
        for odd in [
            json!(null),
            json!(1),
            json!("x"),
            json!({}),
            json!([]),
            json!([[[]]]),
            json!({"messages": 1, "contents": {}, "input": 2}),
        ] {
            let (once, _) = repair(provider, odd);
            let (twice, fixes) = repair(provider, once.clone());
            assert_eq!((twice, fixes), (once, vec![]));
        }
    }
}
