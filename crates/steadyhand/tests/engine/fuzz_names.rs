//! JSON with a member twice, made at random: it is refused at any depth, however the name is written, and nothing else is.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value};
use steadyhand::testing::{on_paused_clock, script};
use steadyhand::{Arguments, Call, FailureCode, ToolExecutor, ToolManager};

use crate::fuzzing::fuzz;

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "a",
        "b",
        "path",
        "",
        "\"",
        "\\",
        "é",
        "\u{1f600}",
        "a/b",
        "\u{7f}",
    ])
    .prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        name().prop_map(Value::from),
        // It only looks like a member.
        Just(Value::from(r#"{"a":1,"a":2}"#)),
    ];
    leaf.prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// How often a member of an object could be written twice.
fn members(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(members).sum(),
        Value::Object(fields) => fields.len() + fields.values().map(members).sum::<usize>(),
        _ => 0,
    }
}

/// A name as JSON, as it is or each of its units escaped.
fn written(name: &str, escaped: bool) -> String {
    match escaped {
        false => Value::from(name).to_string(),
        true => {
            let units = name.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
            format!("\"{}\"", units.collect::<String>())
        }
    }
}

/// The value as JSON; the member number `at`, counted in the order of writing, stands there twice.
fn write(value: &Value, at: &mut Option<usize>, escaped: bool, space: &str, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { "," } else { "" });
                write(item, at, escaped, space, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            let mut twice = None;
            for (index, (name, field)) in fields.iter().enumerate() {
                text.push_str(if index > 0 { "," } else { "" });
                text.push_str(&format!("{space}{}{space}:{space}", written(name, false)));
                write(field, at, escaped, space, text);
                *at = match at.take() {
                    Some(0) => {
                        twice = Some(name);
                        None
                    }
                    left => left.map(|left| left - 1),
                };
            }
            if let Some(name) = twice {
                text.push_str(&format!(",{}{space}:5", written(name, escaped)));
            }
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}

fn ends(text: String) -> Option<(FailureCode, String)> {
    on_paused_clock(async {
        let tools = ToolManager::new();
        let added = tools.add(script("t").answers(1).tool());
        added.expect("a good tool");
        let call = Call::new("t", Arguments::Text(text));
        let outcome = ToolExecutor::new(tools).execute(call).await;
        let failure = outcome.failure()?;
        let code = failure.problems.first().map(|problem| problem.code.clone());
        Some((failure.code, code.unwrap_or_default()))
    })
}

#[test]
fn s03_a_member_that_stands_twice_is_refused_wherever_it_is_and_however_it_is_written() {
    let inputs = (
        value(),
        any::<Index>(),
        any::<bool>(),
        prop::sample::select(vec!["", " ", "\n\t"]),
    );
    fuzz(300, &inputs, |(inner, index, escaped, space)| {
        let value = Value::Object(Map::from_iter([("value".to_owned(), inner)]));
        let (mut once, mut twice) = (String::new(), String::new());
        write(&value, &mut None, escaped, space, &mut once);
        prop_assert_ne!(
            ends(once.clone()).map(|(_, code)| code),
            Some("repeated".to_owned()),
            "{}",
            once
        );
        write(
            &value,
            &mut Some(index.index(members(&value))),
            escaped,
            space,
            &mut twice,
        );
        let refused = Some((FailureCode::ValidationError, "repeated".to_owned()));
        prop_assert_eq!(ends(twice.clone()), refused, "{}", twice);
        Ok(())
    });
}
