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
        .stderr_eq(str![[r#"
Error: 6 problems in steadyhand.toml; nothing was changed

  × server.listne is not a setting
   ╭─[steadyhand.toml:4:1]
 3 │ [server]
 4 │ listne = "127.0.0.1:7400"
   · ───┬──
   ·    ╰── unknown key
 5 │ 
   ╰────
  help: Did you mean listen?

  × defaults.timeout: "30 sekunden" is no duration; write one such as "500ms", "30s" or "2m"
   ╭─[steadyhand.toml:7:11]
 6 │ [defaults]
 7 │ timeout = "30 sekunden"
   ·           ──────┬──────
   ·                 ╰── here
 8 │ retry = { attempts = "4" }
   ╰────

  × defaults.retry.attempts is a text, but must be a whole number
   ╭─[steadyhand.toml:8:22]
 7 │ timeout = "30 sekunden"
 8 │ retry = { attempts = "4" }
   ·                      ─┬─
   ·                       ╰── a text
 9 │ 
   ╰────
  help: Write it without quotes: 4

  × tools.get_weather.answers[0].fail is "timeuot", which is none of its values
    ╭─[steadyhand.toml:13:12]
 12 │ answers = [
 13 │   { fail = "timeuot", every = 10 },
    ·            ────┬────
    ·                ╰── not known
 14 │   { result = { sky = "clear" } },
    ╰────
  help: Did you mean timeout?

  × tools.calculator.kind is "bulitin", which is none of its values
    ╭─[steadyhand.toml:18:8]
 17 │ [tools.calculator]
 18 │ kind = "bulitin"
    ·        ────┬────
    ·            ╰── not known
 19 │ use = "echo"
    ╰────
  help: Did you mean builtin?

  × tools.lights.fallback names a tool that does not exist
    ╭─[steadyhand.toml:24:21]
 23 │ mock_response = "on"
 24 │ fallback = { tool = "get_wether" }
    ·                     ──────┬─────
    ·                           ╰── no such tool
    ╰────
  help: Did you mean get_weather?

"#]]);
    let kept = std::fs::read_to_string(workplace.file("steadyhand.toml")).expect("the file");
    assert_eq!(kept, SIX_MISTAKES);
}

#[test]
fn the_report_for_machines_has_file_line_column_and_help() {
    let workplace = Workplace::with_config(SIX_MISTAKES);
    let (code, stdout, stderr) = parts(&workplace.run("config check --json"));
    assert_eq!(code, 8);
    let checked: serde_json::Value = serde_json::from_str(&stdout).expect("one JSON value");
    assert_eq!(checked["valid"], false);
    let report: serde_json::Value = serde_json::from_str(&stderr).expect("one line of JSON");
    assert_eq!(checked["problems"], report["error"]["problems"]);
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
    workplace.run("config check").code(8).stderr_eq(str![[r#"
Error: 2 problems in steadyhand.toml; nothing was changed

  × the file is no TOML: unclosed table, expected `]`
   ╭─[steadyhand.toml:1:9]
 1 │ [tools.a
   ·         ▲
   ·         ╰── here
 2 │ kind = "mock"
   ╰────

  × the file is no TOML: string values must be quoted, expected literal string
   ╭─[steadyhand.toml:5:10]
 4 │ [server]
 5 │ listen = 
   ·          ▲
   ·          ╰── here
   ╰────

"#]]);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let workplace = Workplace::new();
    workplace
        .run("config check -c nowhere.toml")
        .code(8)
        .stderr_eq(str![[r#"
Error: 1 problem in nowhere.toml; nothing was changed

  × nowhere.toml cannot be read: there is no such file

"#]]);
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
    workplace.run("config check").code(8).stderr_eq(str![[r#"
Error: 1 problem in steadyhand.toml; nothing was changed

  × fallbacks go in a circle: a → b → a
   ╭─[steadyhand.toml:5:21]
 4 │ mock_response = 1
 5 │ fallback = { tool = "b" }
   ·                     ─┬─
   ·                      ╰── leads back here
 6 │ [tools.b]
   ╰────
  help: End it with fallback = { result = … }

"#]]);
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
    workplace.run("config check").code(8).stderr_eq(str![[r#"
Error: 2 problems in steadyhand.toml; nothing was changed

  × tools.a.input: its schema is not valid JSON Schema at /properties/n/type: "whole number"
  │ cannot stand there
   ╭─[steadyhand.toml:5:9]
 4 │ mock_response = 1
 5 │ input = { type = "object", properties = { n = { type = "whole number" } } }
   ·         ─────────────────────────────────┬─────────────────────────────────
   ·                                          ╰── no schema for arguments
 6 │ [tools.b]
   ╰────

  × missing.json cannot be read: there is no such file
   ╭─[steadyhand.toml:9:9]
 8 │ mock_response = 1
 9 │ input = "missing.json"
   ·         ───────┬──────
   ·                ╰── this file
   ╰────
  help: input is a JSON Schema, or the path of a JSON file that holds one

"#]]);
}

#[test]
fn names_that_model_providers_refuse_are_refused() {
    let workplace =
        Workplace::with_config("[tools.\"turn on\"]\nkind = \"mock\"\nmock_response = 1\n");
    workplace.run("config check").code(8).stderr_eq(str![[r#"
Error: 1 problem in steadyhand.toml; nothing was changed

  × "turn on" cannot be the name of a tool
   ╭─[steadyhand.toml:1:8]
 1 │ [tools."turn on"]
   ·        ────┬────
   ·            ╰── not accepted by model providers
 2 │ kind = "mock"
   ╰────
  help: Model providers accept 1 to 64 of A–Z, a–z, 0–9, _ and -

"#]]);
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
        .stderr_eq(str![[r#"
  ⚠ tools.a is not idempotent, so its retry only applies to failures that prove it never started
   ╭─[steadyhand.toml:8:9]
 7 │ idempotent = false
 8 │ retry = { attempts = 3 }
   ·         ────────┬───────
   ·                 ╰── rarely applies
 9 │ description = "uses ************************"
   ╰────
  help: That is usually what you want; say idempotent = true if repeating it is harmless
  ⚠ tools.a.timeout is longer than its deadline, so the deadline always comes first
   ╭─[steadyhand.toml:5:11]
 4 │ mock_response = 1
 5 │ timeout = "2m"
   ·           ──┬─
   ·             ╰── never reached
 6 │ deadline = "1m"
   ╰────
  help: timeout is for one attempt, deadline for the whole call with its retries
  ⚠ tools.a.description looks like a secret written out
   ╭─[steadyhand.toml:9:15]
 8 │ retry = { attempts = 3 }
 9 │ description = "uses ************************"
   ·               ───────────────┬───────────────
   ·                              ╰── a key?
   ╰────
  help: Keep it elsewhere and write ${env:NAME}, ${file:/path} or ${keyring:service/user}

"#]])
        .stdout_eq(str![[r#"
steadyhand.toml is right: 1 tool, 3 warnings

"#]]);
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

#[test]
fn a_wrong_key_does_not_hide_what_else_is_wrong_with_a_tool() {
    let workplace = Workplace::with_config(
        "[tools.a]\nkind = \"http\"\ndescripton = \"typo\"\nmethod = \"GTE\"\nurl = \"http//foo\"\ntimeout = 30\n",
    );
    let (code, _, stderr) = parts(&workplace.run("config check"));
    assert_eq!(code, 8);
    for part in ["descripton", "method", "url", "timeout"] {
        assert!(
            stderr.contains(&format!("tools.a.{part}")),
            "{part}: {stderr}"
        );
    }
}

#[test]
fn a_policy_for_single_tools_that_means_none_is_told() {
    let workplace = Workplace::with_config(
        "[tools.p]\nkind = \"openapi\"\nspec = \"p.json\"\nbase = \"http://127.0.0.1:9/\"\neach.\"POST /petz\" = { approval = \"always\" }\n",
    );
    workplace.write(
        "p.json",
        r#"{"openapi":"3.1.0","info":{"title":"P","version":"1"},"paths":{"/pets":{"post":{"operationId":"addPet","summary":"Adds"}}}}"#,
    );
    for command in ["config check", "tools list"] {
        let (code, _, stderr) = parts(&workplace.run(command));
        assert_eq!(code, 0, "{stderr}");
        assert!(stderr.contains("POST /petz"), "{command}: {stderr}");
    }
}

#[test]
fn what_only_shows_when_sources_are_loaded_is_told_by_the_check() {
    let workplace = Workplace::with_config(
        r#"
[tools.a]
kind = "openapi"
spec = "missing.yaml"
[tools.b]
kind = "http"
url = "http://127.0.0.1/${env:NOBODY_SET_THIS}"
[tools.c]
kind = "command"
command = ["true"]
retry = { attempts = 3 }
fallback = { tool = "nobody" }
"#,
    );
    let checked = workplace.json("config check --json");
    let remarks = checked["remarks"].to_string();
    for part in [
        "missing.yaml",
        "NOBODY_SET_THIS",
        "safe to repeat",
        "nobody does not exist",
    ] {
        assert!(remarks.contains(part), "{part}: {remarks}");
    }
}
