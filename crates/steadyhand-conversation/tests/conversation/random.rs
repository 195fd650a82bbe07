//! Random breakages of valid conversations: always valid after, and everything else a repair promises.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use steadyhand_conversation::strict;
use steadyhand_conversation::{Code, Fix, Host, Options, Provider, repair, repair_with};

use super::render::{
    Called, Step, calls, check, key, long, message, render, result, user, written,
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r03_any_breakage_is_mended_explained_and_mended_once(
        provider in 0..Provider::ALL.len(),
        turns in vec(0..7_u8, 1..6),
        breakages in vec((0..12_u8, any::<u16>(), any::<u16>()), 0..5),
    ) {
        let provider = Provider::ALL[provider];
        let mut conversation = render(provider, &valid(&turns));
        prop_assert_eq!(strict::check(provider, &conversation), Ok(()));
        let messages = conversation[key(provider)].as_array_mut().expect("a list");
        for breakage in breakages {
            break_it(messages, breakage);
        }
        if messages.is_empty() {
            return Ok(());
        }
        check(provider, &conversation);
    }

    #[test]
    fn r03_what_was_sent_is_not_changed_when_the_conversation_grows(
        provider in 0..Provider::ALL.len(),
        turns in vec(0..7_u8, 1..6),
        breakages in vec((0..12_u8, any::<u16>(), any::<u16>()), 0..5),
    ) {
        let provider = Provider::ALL[provider];
        let mut conversation = render(provider, &valid(&turns));
        let mut messages = conversation[key(provider)].as_array_mut().map(std::mem::take).expect("a list");
        for breakage in breakages {
            break_it(&mut messages, breakage);
        }
        let (whole, _) = repair(provider, Value::Array(messages.clone()));
        let whole = whole.as_array().expect("a list");
        for end in request_boundaries(provider, &messages) {
            let (sent, _) = repair(provider, Value::Array(messages[..end].to_vec()));
            let sent = sent.as_array().expect("a list");
            prop_assert!(
                whole.starts_with(sent),
                "{provider} at {end}\nmessages {:#}\nsent {:#}\nlater {:#}",
                Value::Array(messages.clone()), Value::Array(sent.clone()), Value::Array(whole.clone())
            );
        }
    }
}

/// Results in any order, some of them missing, some there twice; words of the user's between them or not.
fn answered(count: usize, picks: &[(usize, bool)]) -> Vec<Step> {
    let names: Vec<String> = (0..count).map(|index| index.to_string()).collect();
    let ids: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut steps = vec![user("u1x"), calls(&ids)];
    for (number, (pick, is_interrupted)) in picks.iter().enumerate() {
        if *is_interrupted {
            steps.push(Step::User(format!("u{}x", 100 + number)));
        }
        steps.push(result(ids[pick % count], &format!("r{number}x")));
    }
    steps.push(user("u2x"));
    steps
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r03_a_mixture_of_all_shapes_is_mended_once_at_every_host(
        provider in 0..Provider::ALL.len(),
        host in 0..Host::ALL.len(),
        shapes in vec((0..Provider::ALL.len(), 0..7_u8), 1..5),
        breakages in vec((0..12_u8, any::<u16>(), any::<u16>()), 0..6),
    ) {
        let provider = Provider::ALL[provider];
        let options = Options::new().host(Host::ALL[host]);
        let mut messages = Vec::new();
        for (shape, turn) in shapes {
            let steps = valid(&[turn]);
            let shape = Provider::ALL[shape];
            messages.extend(steps.iter().flat_map(|step| message(shape, step, &steps)));
        }
        for breakage in breakages {
            break_it(&mut messages, breakage);
        }
        let broken = json!(messages);
        let (once, _) = repair_with(provider, &options, broken.clone());
        let (twice, more) = repair_with(provider, &options, once.clone());
        let is_same = written(&once) == written(&twice);
        prop_assert!(
            more.is_empty() && is_same,
            "{provider}\n{more:#?}\nbroken {broken:#}\nonce {once:#}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 700, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r03_after_a_repair_every_call_has_one_result_and_all_stand_in_the_order_of_the_calls(
        provider in 0..Provider::ALL.len(),
        count in 1..6_usize,
        picks in vec((0..5_usize, prop::bool::weighted(0.1)), 0..9),
    ) {
        let provider = Provider::ALL[provider];
        let conversation = render(provider, &answered(count, &picks));
        let (repaired, fixes) = check(provider, &conversation);
        let mut found = Vec::new();
        result_ids(&repaired[key(provider)], &mut found);
        // Where ids tell, results stay in the order they have, unless they have to be moved anyway.
        let has_moved = fixes.iter().any(|fix| {
            matches!(fix.code, Code::MissingResult | Code::MisplacedResult)
        });
        let goes_by_order = matches!(provider, Provider::Ollama | Provider::LangChain);
        let goes_by_id = matches!(provider, Provider::OpenAiResponses | Provider::BedrockConverse);
        let is_ordered = goes_by_order || (has_moved && !goes_by_id);
        if !is_ordered {
            found.sort();
        }
        let wanted: Vec<String> = (0..count).map(|index| long(&index.to_string())).collect();
        prop_assert_eq!(&found, &wanted, "{} {:#}", provider, repaired);
        let mut picked: Vec<usize> = picks.iter().map(|(pick, _)| pick % count).collect();
        if !goes_by_order {
            picked.sort_unstable();
        }
        let was_right = picked.into_iter().eq(0..count)
            // Responses lets a message stand between a call and its output, Bedrock anywhere in its turn.
            && (matches!(provider, Provider::OpenAiResponses | Provider::BedrockConverse)
                || picks.iter().all(|(_, is_interrupted)| !is_interrupted));
        prop_assert_eq!(was_right, fixes.is_empty() , "{} {:#?}", provider, fixes);
        if was_right {
            prop_assert_eq!(repaired.to_string(), conversation.to_string());
        }
        // Results that had to be put in order are one message, where they are parts of one.
        let moved = |fix: &Fix| {
            matches!(fix.code, Code::MissingResult | Code::ResultOrder | Code::MisplacedResult)
        };
        if fixes.iter().any(moved) && matches!(provider, Provider::Anthropic | Provider::Gemini) {
            let messages = repaired[key(provider)].as_array().expect("a list");
            let with_results = messages.iter().filter(|message| {
                let mut found = Vec::new();
                result_ids(message, &mut found);
                !found.is_empty()
            });
            prop_assert_eq!(with_results.count(), 1, "{} {:#}", provider, repaired);
        }
    }
}

/// The ids that results answer, in the order in which they stand.
fn result_ids(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let is_output = value["type"] == "function_call_output";
            let own = [
                value.get("tool_use_id"),
                value.get("tool_call_id"),
                value.get("call_id").filter(|_| is_output),
                value.pointer("/functionResponse/id"),
                value.pointer("/toolResult/toolUseId"),
            ];
            let own = own.into_iter().flatten().find_map(Value::as_str);
            found.extend(own.map(str::to_owned));
            fields.values().for_each(|inner| result_ids(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| result_ids(inner, found)),
        _ => {}
    }
}

/// Where a request ended: the model speaks next, and did not speak last.
fn request_boundaries(provider: Provider, messages: &[Value]) -> Vec<usize> {
    let is_model = |message: &Value| match provider {
        Provider::Gemini => message["role"] == "model",
        Provider::LangChain => message["type"] == "ai",
        Provider::OpenAiResponses => {
            message["role"] == "assistant" || message["type"] == "function_call"
        }
        _ => message["role"] == "assistant",
    };
    // OpenAI's Responses take an output in a later request; then the earlier one cannot have been sent.
    let reaches_over = |end: usize| {
        provider == Provider::OpenAiResponses
            && messages[end..].iter().any(|late| {
                let is_call = |item: &&Value| item["type"] == "function_call";
                late["type"] == "function_call_output"
                    && messages[..end]
                        .iter()
                        .filter(is_call)
                        .any(|call| call["call_id"] == late["call_id"])
            })
    };
    (1..messages.len())
        .filter(|end| is_model(&messages[*end]) && !is_model(&messages[end - 1]))
        .filter(|end| !reaches_over(*end))
        .collect()
}

/// A valid conversation with these turns.
fn valid(turns: &[u8]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut count = 0;
    let mut next = |letter: char| {
        count += 1;
        format!("{letter}{count}x")
    };
    for turn in turns {
        steps.push(Step::User(next('u')));
        let calls: &[usize] = match turn {
            0 => &[],
            1 => &[1],
            2 => &[2],
            3 => &[1, 1],
            4 => &[3, 1],
            5 => &[2, 2],
            _ => &[1, 0, 1],
        };
        for at_once in calls {
            let called = |_| {
                let word = next('a');
                Called {
                    id: long(&word),
                    name: "look".to_owned(),
                    args: json!({ "at": word }),
                }
            };
            let called: Vec<Called> = (0..*at_once).map(called).collect();
            if called.is_empty() {
                steps.push(Step::User(next('u')));
                continue;
            }
            let ids: Vec<String> = called.iter().map(|call| call.id.clone()).collect();
            steps.push(Step::Ai(next('a'), called));
            steps.extend(ids.into_iter().map(|id| Step::Result(id, next('r'))));
        }
        steps.push(Step::Ai(next('a'), Vec::new()));
    }
    steps.push(Step::User(next('u')));
    steps
}

fn break_it(messages: &mut Vec<Value>, (kind, one, other): (u8, u16, u16)) {
    if messages.is_empty() {
        return;
    }
    let first = usize::from(one) % messages.len();
    let second = usize::from(other) % messages.len();
    match kind {
        0 => {
            messages.remove(first);
        }
        1 => {
            let copy = messages[first].clone();
            messages.insert(second, copy);
        }
        2 => messages.swap(first, second),
        3 => messages.truncate(first.max(1)),
        4 => {
            messages.drain(..first / 2);
        }
        5 => messages.insert(first, junk(other)),
        6 => {
            if let Some(parts) = parts(&mut messages[first]).filter(|parts| !parts.is_empty()) {
                parts.remove(usize::from(other) % parts.len());
            }
        }
        7 => {
            if let Some(parts) = parts(&mut messages[first]).filter(|parts| !parts.is_empty()) {
                let copy = parts[usize::from(other) % parts.len()].clone();
                parts.push(copy);
            }
        }
        8 => {
            let part = parts(&mut messages[first]).and_then(Vec::pop);
            match (part, parts(&mut messages[second])) {
                (Some(part), Some(parts)) => parts.insert(0, part),
                (Some(part), None) => {
                    if let Some(parts) = parts(&mut messages[first]) {
                        parts.push(part);
                    }
                }
                (None, _) => {}
            }
        }
        9 => {
            let is_list = messages[first].get("parts").is_some_and(Value::is_array)
                || messages[first].get("content").is_some_and(Value::is_array);
            if is_list && let Some(parts) = parts(&mut messages[first]) {
                parts.reverse();
            }
        }
        _ => spoil(&mut messages[first], other),
    }
}

/// The calls, blocks or parts of a message.
fn parts(message: &mut Value) -> Option<&mut Vec<Value>> {
    let key = ["tool_calls", "parts", "content"]
        .into_iter()
        .find(|key| message.get(key).is_some_and(Value::is_array))?;
    message.get_mut(key)?.as_array_mut()
}

fn junk(choice: u16) -> Value {
    let table = [
        json!(null),
        json!(5),
        json!("u900x"),
        json!({"role": "user", "content": null, "type": "human", "parts": []}),
        json!({"role": "tool", "tool_call_id": "calllost1", "content": "r900x", "type": "tool"}),
        json!({"role": "user", "content": "", "type": "human", "parts": [{"text": "u901x"}]}),
    ];
    table[usize::from(choice) % table.len()].clone()
}

/// Sets one field of a message, or of something in it, to what it should not be.
fn spoil(message: &mut Value, choice: u16) {
    let fields = [
        "id",
        "tool_call_id",
        "call_id",
        "tool_use_id",
        "name",
        "arguments",
        "input",
        "args",
        "response",
        "output",
        "content",
        "text",
    ];
    let wrong = [
        json!(""),
        json!(null),
        json!(5),
        json!("{\"bad"),
        json!([]),
        json!({}),
    ];
    let mut places = Vec::new();
    collect(message, String::new(), &fields, &mut places);
    if places.is_empty() {
        return;
    }
    let place = &places[usize::from(choice) % places.len()];
    if let Some(value) = message.pointer_mut(place) {
        *value = wrong[usize::from(choice / 31) % wrong.len()].clone();
    }
}

fn collect(value: &Value, at: String, fields: &[&str], places: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let at = format!("{at}/{key}");
                if fields.contains(&key.as_str()) {
                    places.push(at.clone());
                }
                collect(inner, at, fields, places);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                collect(inner, format!("{at}/{index}"), fields, places);
            }
        }
        _ => {}
    }
}
