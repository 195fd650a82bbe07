//! What is wrong with a file is told all at once, with its place and the next step.

use snapbox::str;

use crate::support::{Workplace, parts};

const SIX_MISTAKES: &str = r#"version = 1

[server]
listne = "127.0.0.1:7400"

[defaults]
timeout = "30 sekunden"
retry = { attempts = "4" }

[tools.get_weather]
kind = "mock"
answers = [
  { fail = "timeuot", every = 10 },
  { result = { sky = "clear" } },
]

[tools.calculator]
kind = "bulitin"
use = "echo"

[tools.lights]
kind = "mock"
mock_response = "on"
fallback = { tool = "get_wether" }
"#;

#[test]
fn six_different_mistakes_are_all_reported_with_line_and_column_and_nothing_changes() {
    let workplace = Workplace::with_config(SIX_MISTAKES);
    workplace
        .run("config check")
        .code(8)
        .stdout_eq(str![])
        .stderr_eq(str![]);
    let kept = std::fs::read_to_string(workplace.file("steadyhand.toml")).expect("the file");
    assert_eq!(kept, SIX_MISTAKES);
}

#[test]
fn the_report_for_machines_has_file_line_column_and_help() {
    let workplace = Workplace::with_config(SIX_MISTAKES);
    let (code, stdout, stderr) = parts(&workplace.run("config check --json"));
    assert_eq!((code, stdout.as_str()), (8, ""));
    let report: serde_json::Value = serde_json::from_str(&stderr).expect("one line of JSON");
    assert_eq!(report["error"]["code"], "config_invalid");
    let problems = report["error"]["problems"].as_array().expect("problems");
    let places: Vec<(u64, u64)> = problems
        .iter()
        .map(|problem| {
            assert_eq!(problem["file"], "steadyhand.toml");
            let number = |key: &str| problem[key].as_u64().expect("a number");
            (number("line"), number("column"))
        })
        .collect();
    assert_eq!(
        places,
        [(4, 1), (7, 11), (8, 22), (13, 12), (18, 8), (24, 21)]
    );
}

#[test]
fn every_command_refuses_a_wrong_file_the_same_way() {
    let workplace = Workplace::with_config("[tools.x]\nkind = \"nonsense\"\n");
    for command in ["tools list", "call x", "config show", "config check"] {
        workplace.run(command).code(8);
    }
}

#[test]
fn a_file_that_is_no_toml_says_where_and_keeps_looking() {
    let workplace = Workplace::with_config("[tools.a\nkind = \"mock\"\n\n[server]\nlisten = \n");
    workplace.run("config check").code(8).stderr_eq(str![]);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let workplace = Workplace::new();
    workplace
        .run("config check -c nowhere.toml")
        .code(8)
        .stderr_eq(str![]);
}

#[test]
fn fallbacks_in_a_circle_are_refused() {
    let workplace = Workplace::with_config(
        r#"
[tools.a]
kind = "mock"
mock_response = 1
fallback = { tool = "b" }
[tools.b]
kind = "mock"
mock_response = 1
fallback = { tool = "a" }
"#,
    );
    workplace.run("config check").code(8).stderr_eq(str![]);
}

#[test]
fn v06_a_schema_that_is_none_is_refused_with_its_place() {
    let workplace = Workplace::with_config(
        r#"
[tools.a]
kind = "mock"
mock_response = 1
input = { type = "object", properties = { n = { type = "whole number" } } }
[tools.b]
kind = "mock"
mock_response = 1
input = "missing.json"
"#,
    );
    workplace.run("config check").code(8).stderr_eq(str![]);
}

#[test]
fn names_that_model_providers_refuse_are_refused() {
    let workplace =
        Workplace::with_config("[tools.\"turn on\"]\nkind = \"mock\"\nmock_response = 1\n");
    workplace.run("config check").code(8).stderr_eq(str![]);
}

#[test]
fn what_deserves_a_look_is_a_warning_and_the_file_is_right() {
    let workplace = Workplace::with_config(
        r#"
[tools.a]
kind = "mock"
mock_response = 1
timeout = "2m"
deadline = "1m"
idempotent = false
retry = { attempts = 3 }
description = "uses sk-test-1234567890abcdef"
"#,
    );
    workplace
        .run("config check")
        .code(0)
        .stderr_eq(str![])
        .stdout_eq(str![]);
}

#[test]
fn a_schema_may_live_in_a_file_of_its_own() {
    let workplace = Workplace::with_config(
        "[tools.a]\nkind = \"command\"\ncommand = [\"echo\", \"{word}\"]\ninput = \"schemas/a.json\"\n",
    );
    workplace.write(
        "schemas/a.json",
        r#"{"type":"object","required":["word"],"properties":{"word":{"type":"string"}}}"#,
    );
    let (code, stdout, stderr) = parts(&workplace.run("call a word=hello"));
    assert_eq!((code, stdout.as_str()), (0, "hello\n"), "{stderr}");
    let (code, _, stderr) = parts(&workplace.run("call a"));
    assert_eq!(code, 2, "{stderr}");
    workplace.write("schemas/a.json", "{");
    let (code, _, stderr) = parts(&workplace.run("call a"));
    assert_eq!(code, 8);
    assert!(stderr.contains("a.json is no JSON"), "{stderr}");
}
