//! An argument stays one argument, whatever it holds, and becomes no option.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use steadyhand::{Call, Effect, FailureCode, Outcome, ToolExecutor};

use super::{call, executor, message, tool_in, value};

/// Prints each of its arguments with a mark that no argument can hold.
fn printing(elements: &[Value]) -> Value {
    let mut command = vec![json!("printf"), json!("--"), json!("%s\\0")];
    command.extend_from_slice(elements);
    json!({"command": command})
}

fn printed(outcome: &Outcome) -> Vec<&str> {
    let text = value(outcome).as_str().expect("a text");
    let mut parts: Vec<&str> = text.split('\0').collect();
    assert_eq!(parts.pop(), Some(""), "{text:?}");
    parts
}

fn nasty() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "", " ", "-", "--", "-rf", "--help", "$(id)", "`id`", "$HOME", "a b", "'", "\"", "\\",
        "\\0", "%s", "{x}", "{{", "}", "*", "~", ";", "| cat", "\n", "\r\n", "\t", "é", "🦀",
        "@file", "+x", "=",
    ]);
    let free = any::<String>().prop_map(|text| text.replace('\0', ""));
    prop_oneof![known.prop_map(str::to_owned), free]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_arrives_as_exactly_one_argument(
        one in nasty(), two in nasty(), many in prop::collection::vec(nasty(), 1..24)
    ) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let settings = printing(&[json!("{one}"), json!("<{two}>"), json!("{many...}"), json!("{one}{two}")]);
            let args = json!({"one": one, "two": two, "many": many});
            let outcome = call(settings, args).await;
            let mut expected = vec![one.clone(), format!("<{two}>")];
            expected.extend(many);
            expected.push(format!("{one}{two}"));
            prop_assert_eq!(printed(&outcome), expected);
            Ok(())
        })?;
    }
}

async fn plain(elements: &[&str]) -> ToolExecutor {
    let mut command = vec!["printf", "%s\\0"];
    command.extend_from_slice(elements);
    executor(tool_in(Path::new("/"), json!({"command": command})).await)
}

#[tokio::test]
async fn a_value_cannot_become_an_option() {
    let tool = plain(&["log", "{branch}"]).await;
    for branch in ["-x", "--output=/etc/passwd", "-"] {
        let outcome = tool
            .execute(Call::new("program", json!({"branch": branch})))
            .await;
        assert_eq!(
            message(&outcome),
            "`branch` may not begin with a dash: the program could take it for an option. (In the configuration: put \"--\" before {branch}, or join it to its option as in \"--option={branch}\", or name it in `allow_dash`.)"
        );
        let failure = outcome.failure().expect("a failure");
        assert_eq!(
            (failure.code, failure.effect),
            (FailureCode::ValidationError, Effect::None)
        );
        assert_eq!(failure.problems[0].at, "/branch");
    }
    // An empty value in front does not hide the dash.
    let tool = plain(&["{a}{b}"]).await;
    let outcome = tool
        .execute(Call::new("program", json!({"a": "", "b": "-x"})))
        .await;
    assert!(message(&outcome).contains("may not begin with a dash"));
    // Nor does a list.
    let tool = plain(&["{files...}"]).await;
    let outcome = tool
        .execute(Call::new("program", json!({"files": ["a", "-x"]})))
        .await;
    assert!(message(&outcome).contains("may not begin with a dash"));
}

#[tokio::test]
async fn a_dash_is_harmless_where_no_option_can_stand() {
    let tool = plain(&["--number={n}", "--", "{n}"]).await;
    let outcome = tool.execute(Call::new("program", json!({"n": "-5"}))).await;
    assert_eq!(printed(&outcome), ["--number=-5", "--", "-5"]);

    let settings = json!({"command": ["printf", "%s\\0", "-n", "{n}"], "allow_dash": ["n"]});
    assert_eq!(
        printed(&call(settings, json!({"n": "-5"})).await),
        ["-n", "-5"]
    );
}

#[tokio::test]
async fn a_separator_that_may_be_left_out_protects_nothing() {
    let settings = json!({"command": ["printf", "%s\\0", ["--", "{a}"], "{b}"]});
    let outcome = call(settings, json!({"b": "-x"})).await;
    assert!(message(&outcome).contains("`b` may not begin with a dash"));
}

#[tokio::test]
async fn a_nul_byte_is_refused() {
    let tool = plain(&["<{a}>"]).await;
    let outcome = tool
        .execute(Call::new("program", json!({"a": "x\0y"})))
        .await;
    assert_eq!(
        message(&outcome),
        "`a` holds a NUL byte, which no program can be given"
    );
    assert_eq!(outcome.failure().expect("a failure").effect, Effect::None);
}

#[tokio::test]
async fn absent_arguments_take_their_elements_with_them() {
    let settings = json!({
        "command": ["printf", "%s\\0", "log", ["-n", "{count}"], "{path}", ["--since={since}"]],
        "input": {"type": "object", "properties": {
            "count": {"type": "integer"}, "path": {"type": "string"}, "since": {"type": "string"}
        }}
    });
    let tool = executor(tool_in(Path::new("/"), settings).await);
    for (args, expected) in [
        (json!({}), vec!["log"]),
        (json!({"count": 3}), vec!["log", "-n", "3"]),
        (json!({"path": "src"}), vec!["log", "src"]),
        (
            json!({"count": 3, "path": "src", "since": "now"}),
            vec!["log", "-n", "3", "src", "--since=now"],
        ),
    ] {
        let outcome = tool.execute(Call::new("program", args)).await;
        assert_eq!(printed(&outcome), expected);
    }
}

#[tokio::test]
async fn defaults_fill_what_is_absent_and_null_does_not_make_an_option_swallow_its_neighbour() {
    let settings = json!({
        "command": ["printf", "%s\\0", "-n", "{count}", "end"],
        "input": {"type": "object", "properties": {"count": {"type": ["integer", "null"], "default": 10}}}
    });
    let tool = executor(tool_in(Path::new("/"), settings).await);
    let outcome = tool.execute(Call::new("program", json!({}))).await;
    assert_eq!(printed(&outcome), ["-n", "10", "end"]);
    let outcome = tool
        .execute(Call::new("program", json!({"count": null})))
        .await;
    assert_eq!(
        message(&outcome),
        "`count` is needed: an option of the program waits for it"
    );
}
