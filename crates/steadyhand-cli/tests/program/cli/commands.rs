//! R14's first commands, for people and for machines.

use snapbox::str;

use crate::support::{Workplace, parts};

const CONFIG: &str = r#"
[tools.get_weather]
kind = "mock"
description = "Current weather for a city"
input = { type = "object", required = ["city"], properties = { city = { type = "string", description = "Its name" }, days = { type = "integer", maximum = 7, default = 1 } } }
answers = [
  { when = { city = "Oslo" }, result = { temp_c = 4, sky = "rain" } },
  { result = { temp_c = 18, sky = "clear" } },
]

[tools.calculator]
kind = "builtin"
use = "math_eval"
"#;

#[test]
fn r14_tools_list_shows_every_tool_in_the_order_of_the_file() {
    let workplace = Workplace::with_config(CONFIG);
    workplace
        .run("tools list")
        .code(0)
        .stdout_eq(str![[r#"
get_weather	mock	ready	Current weather for a city
calculator	builtin	ready	Evaluates a mathematical expression in the language of mathjs: arithmetic, functions, units, matrices, complex and big numbers

"#]])
        .stderr_eq(str![]);
    let listed = workplace.json("tools list --json");
    assert_eq!(listed["count"], 2);
    assert_eq!(listed["tools"][0]["name"], "get_weather");
    assert_eq!(listed["tools"][0]["kind"], "mock");
    assert_eq!(listed["tools"][0]["schema"]["required"][0], "city");
}

#[test]
fn r14_tools_show_says_everything_about_one_tool() {
    let workplace = Workplace::with_config(CONFIG);
    workplace
        .run("tools show get_weather")
        .code(0)
        .stdout_eq(str![[r#"
get_weather  mock
Current weather for a city

Arguments
  city	string	required	Its name
  days	integer		at most 7; default 1

Policy
  approval	never	default
  timeout	30s	default
  deadline	1m	default
  retry.attempts	4	default
  retry.backoff	100ms	default
  retry.on	network timeout rate_limit unknown	default
  retry.jitter	no	default
  breaker.failures	5	default
  breaker.cooldown	1m	default
  limits.concurrency	256	default
  limits.queue	1024	default
  limits.rate	none	default
  limits.result	256.0 KiB	default
  idempotent	yes	default
  fallback	none	default
  coerce	no	default
  strict	no	default

Try
  steadyhand call get_weather city=text

"#]]);
    workplace
        .run("tools show get_wether")
        .code(5)
        .stderr_eq(str![[r#"
Error: there is no tool get_wether
  help: Did you mean get_weather?
        steadyhand tools list

"#]]);
}

#[test]
fn r14_call_prints_the_answer_for_people_and_for_pipes() {
    let workplace = Workplace::with_config(CONFIG);
    workplace
        .run("call get_weather city=Oslo -q")
        .code(0)
        .stdout_eq(str![[r#"
temp_c	4
sky	rain

"#]])
        .stderr_eq(str![]);
    let outcome = workplace.json("call get_weather city=Oslo --json");
    assert_eq!(outcome["output"]["sky"], "rain");
    assert_eq!(outcome["status"], "success");
    let flat = workplace.json("call get_weather city=Rome --json --view flat");
    assert_eq!(flat["result"]["sky"], "clear");
    let message = workplace.json("call get_weather city=Rome --json --view message");
    assert_eq!(message["type"], "tool");
}

#[test]
fn arguments_that_do_not_fit_are_all_named_with_a_call_that_would_work() {
    let workplace = Workplace::with_config(CONFIG);
    workplace
        .run("call get_weather days=40")
        .code(2)
        .stdout_eq(str![])
        .stderr_eq(str![[r#"
Error: get_weather was not run: 2 arguments do not fit

  city  missing 'city'
  days  'days' must be at most 7, got 40

  help: steadyhand call get_weather city=text
        steadyhand tools show get_weather

"#]]);
}

#[test]
fn f10_all_builtins_are_callable() {
    let names = ["datetime", "echo", "math_eval", "search", "uuid", "volume"];
    let table = |name: &str| format!("[tools.{name}]\nkind = \"builtin\"\nuse = \"{name}\"\n");
    let workplace = Workplace::with_config(&names.map(table).concat());
    let listed = workplace.json("tools list --json");
    let listed: Vec<&str> = listed["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(listed, names);
    let outcome = workplace.json("call echo hello=world --json");
    assert_eq!(outcome["output"]["echo"]["hello"], "world");
}

#[test]
fn f11_math_eval_answers_with_the_result() {
    let workplace = Workplace::with_config(CONFIG);
    let outcome = workplace.json("call calculator expression=2+2 --json");
    assert_eq!(outcome["output"], serde_json::json!({"result": 4}));
    let (code, _, stderr) = parts(&workplace.run("call calculator expression=2+"));
    assert_eq!(code, 5, "{stderr}");
}

#[test]
fn the_program_alone_says_what_is_here_and_what_to_do_and_is_no_error() {
    let workplace = Workplace::new();
    workplace
        .run("")
        .code(0)
        .stdout_eq(str![[r#"
Steadyhand [..] runs the tools of AI agents, and shows what happens when they fail.

No steadyhand.toml here: commands use the demo set, without a key and without a network.

  steadyhand serve                         the dashboard, MCP and REST on 127.0.0.1:7400
  steadyhand call weather city=Oslo        run one tool
  steadyhand chat "Will it rain in Oslo?"  a model that uses the tools
  steadyhand init                          a steadyhand.toml of your own, with what is found here

All commands: steadyhand --help

"#]])
        .stderr_eq(str![]);
    let (code, stdout, _) = parts(&Workplace::with_config(CONFIG).run(""));
    assert_eq!(code, 0);
    let here = "steadyhand.toml is used here: 2 tool tables and 0 MCP servers in it.";
    assert!(stdout.contains(here), "{stdout}");
    let (code, stdout, _) = parts(&Workplace::with_config("[tools.a]\nkind = \"mok\"\n").run(""));
    assert_eq!(code, 0);
    assert!(stdout.contains("steadyhand config check"), "{stdout}");
}

#[test]
fn completions_know_the_tools_of_the_configuration() {
    let workplace = Workplace::with_config(CONFIG);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (code, stdout, _) = parts(&workplace.run(&format!("completions {shell}")));
        assert_eq!(code, 0);
        assert!(stdout.contains("STEADYHAND_COMPLETE"), "{shell}: {stdout}");
    }
    let asked = workplace
        .command(&["--", "steadyhand", "call", "get"])
        .env("STEADYHAND_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", "2")
        .assert();
    let (_, stdout, stderr) = parts(&asked);
    assert!(stdout.contains("get_weather"), "{stdout}{stderr}");
}

#[test]
fn plain_output_has_nothing_beyond_ascii() {
    let workplace = Workplace::with_config("[tools.a]\nkind = \"mok\"\n");
    let (_, _, stderr) = parts(&workplace.run("config check --plain"));
    assert!(stderr.is_ascii(), "{stderr}");
}

#[test]
fn a_call_that_cannot_be_written_down_is_answered_and_says_so() {
    let workplace = Workplace::with_config(
        "[server]\nhistory = { path = \"file/calls.db\" }\n\n[tools.ping]\nkind = \"mock\"\nmock_response = \"pong\"\n",
    );
    workplace.write("file", "");
    let (code, stdout, stderr) = parts(&workplace.run("call ping"));
    assert_eq!((code, stdout.as_str()), (0, "pong\n"), "{stderr}");
    assert!(stderr.contains("It is not written down: "), "{stderr}");
}

#[test]
fn a_list_from_a_history_that_was_broken_says_so() {
    let workplace = Workplace::with_config(
        "[server]\nhistory = { path = \"calls.db\" }\n\n[tools.ping]\nkind = \"mock\"\nmock_response = \"pong\"\n",
    );
    workplace.write("calls.db", &"this is no database ".repeat(1000));
    let (code, _, stderr) = parts(&workplace.run("calls list"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("No calls.") && stderr.contains("it was broken; what was left of it is"),
        "{stderr}"
    );
}
