//! The exit code says what happened (UX §2.3), and the error says the same in words.

use serde_json::Value;

use crate::support::{Workplace, parts};

const CONFIG: &str = r#"
[defaults]
retry = { attempts = 1 }

[tools.fine]
kind = "mock"
mock_response = { sky = "clear" }
input = { type = "object", required = ["city"], properties = { city = { type = "string" } } }
[tools.signs_in]
kind = "mock"
answers = [{ fail = "authentication" }]
[tools.unreachable]
kind = "mock"
answers = [{ fail = "network" }]
[tools.says_no]
kind = "mock"
answers = [{ fail = "refusal" }]
[tools.hangs]
kind = "mock"
answers = [{ fail = "hang" }]
timeout = "100ms"
[tools.needs_a_yes]
kind = "mock"
mock_response = "opened"
approval = "always"
[tools.falls_back]
kind = "mock"
answers = [{ fail = "network" }]
fallback = { tool = "says_hello", args = { name = "{who}" } }
[tools.falls_twice]
kind = "mock"
answers = [{ fail = "network" }]
fallback = { tool = "needs_a_yes" }
[tools.says_hello]
kind = "builtin"
use = "echo"
[tools.paced]
kind = "mock"
mock_response = 1
limits = { rate = "1/min" }
timeout = "50ms"
"#;

#[test]
fn each_way_to_end_has_its_exit_code_and_its_words() {
    let workplace = Workplace::with_config(CONFIG);
    let cases = [
        ("call fine city=Oslo", 0, ""),
        ("call", 2, "<TOOL>"),
        ("call fine", 2, "fine was not run: 1 argument does not fit"),
        ("call signs_in", 3, "did not accept the credentials"),
        ("call unreachable", 4, "could not be reached"),
        ("call says_no", 5, "says_no says no, on purpose"),
        ("call nobody", 5, "there is no tool nobody"),
        ("call hangs", 6, "hangs timed out"),
        ("call needs_a_yes", 7, "--approve needs_a_yes"),
        ("call fine city=Oslo -c missing.toml", 8, "missing.toml"),
    ];
    for (command, expected, words) in cases {
        let (code, stdout, stderr) = parts(&workplace.run(command));
        assert_eq!(code, expected, "{command}: {stderr}");
        assert!(stderr.contains(words), "{command}: {stderr}");
        assert_eq!(stdout.is_empty(), expected != 0, "{command}: {stdout}");
    }
}

#[test]
fn with_json_a_failing_call_still_prints_its_outcome_and_one_line_about_the_error() {
    let workplace = Workplace::with_config(CONFIG);
    let (code, stdout, stderr) = parts(&workplace.run("call says_no --json"));
    assert_eq!(code, 5);
    let outcome: Value = serde_json::from_str(&stdout).expect("the structured view");
    assert_eq!(outcome["status"], "error");
    assert_eq!(outcome["error"]["code"], "TOOL_EXECUTION_ERROR");
    let line: Value = serde_json::from_str(&stderr).expect("one line of JSON");
    assert_eq!(line["error"]["code"], "TOOL_EXECUTION_ERROR");
    assert_eq!(line["error"]["tool"], "says_no");
    assert_eq!(line["error"]["call_id"], outcome["callId"]);
}

#[test]
fn a_call_answered_by_its_fallback_ends_with_0_and_says_so() {
    let workplace = Workplace::with_config(CONFIG);
    let (code, stdout, stderr) = parts(&workplace.run("call falls_back who=Ada --json"));
    assert_eq!(code, 0, "{stderr}");
    let outcome: Value = serde_json::from_str(&stdout).expect("the structured view");
    assert_eq!(outcome["fallbackUsed"], true);
    assert_eq!(outcome["output"]["echo"]["name"], "Ada");
    let (code, _, stderr) = parts(&workplace.run("call falls_back who=Ada"));
    assert_eq!(code, 0);
    assert!(stderr.contains("degraded: falls_back failed"), "{stderr}");
    let (code, _, _) = parts(&workplace.run("call falls_back who=Ada --no-fallback"));
    assert_eq!(code, 4);
}

#[test]
fn a_tool_that_needs_approval_runs_with_it() {
    let workplace = Workplace::with_config(CONFIG);
    let (code, stdout, _) = parts(&workplace.run("call needs_a_yes --approve needs_*"));
    assert_eq!((code, stdout.as_str()), (0, "opened\n"));
}

#[test]
fn the_commands_time_limit_ends_a_call() {
    let workplace =
        Workplace::with_config(&CONFIG.replace("timeout = \"100ms\"", "timeout = \"50s\""));
    workplace.run("call hangs --timeout 200ms").code(6);
}

#[cfg(unix)]
#[test]
fn arguments_that_are_no_text_are_refused_without_a_panic() {
    use std::os::unix::ffi::OsStrExt;
    let workplace = Workplace::with_config(CONFIG);
    let broken = std::ffi::OsStr::from_bytes(b"city=\xff");
    let (code, _, stderr) = parts(&workplace.command(&["call", "fine"]).arg(broken).assert());
    assert_eq!(code, 2, "{stderr}");
    let (code, _, stderr) = parts(
        &workplace
            .command(&["call", "fine", "--json"])
            .arg(broken)
            .assert(),
    );
    assert_eq!(code, 2, "{stderr}");
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let workplace = Workplace::with_config(CONFIG);
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("a full device");
    let ended = std::process::Command::new(env!("CARGO_BIN_EXE_steadyhand"))
        .args(["call", "fine", "city=Oslo"])
        .current_dir(workplace.path())
        .stdout(full)
        .stderr(std::process::Stdio::piped())
        .output()
        .expect("the program ran");
    assert_eq!(ended.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("could not be written"));
}

#[test]
fn a_source_that_is_slow_to_load_holds_up_no_other_tool() {
    let workplace = Workplace::with_config(&format!(
        "{CONFIG}\n[tools.slow_document]\nkind = \"openapi\"\nspec = \"http://127.0.0.1:9/none.json\"\n"
    ));
    let (code, stdout, stderr) = parts(&workplace.run("call fine city=Oslo"));
    assert_eq!((code, stdout.as_str()), (0, "sky\tclear\n"), "{stderr}");
    assert!(!stderr.contains("slow_document"), "{stderr}");
}

#[test]
fn r11_a_fallback_that_fails_too_says_why() {
    let workplace = Workplace::with_config(CONFIG);
    let (code, _, stderr) = parts(&workplace.run("call falls_twice"));
    assert_eq!(code, 4, "{stderr}");
    assert!(
        stderr.contains("the fallback failed too: 'needs_a_yes' needs approval"),
        "{stderr}"
    );
}
