//! `call`: a tool of a server, configured or named on the command line.

use serde_json::{Value, json};

use super::{Bench, hostile, hostile_command, npm, peer};
use crate::support::parts;

#[test]
fn v05_a_server_of_a_command_line_answers_without_any_configuration() {
    let bench = Bench::empty();
    let run = bench.run_words(&["call", "--mcp", &npm("everything"), "echo", "message=hi"]);
    let (code, stdout, stderr) = parts(&run);
    assert_eq!((code, stdout.as_str()), (0, "Echo: hi\n"), "{stderr}");
    bench.assert_nobody_left();
}

#[test]
fn arguments_are_read_by_the_schema_of_a_server_that_was_never_seen() {
    let bench = Bench::empty();
    let everything = npm("everything");
    let run = bench.run_words(&["call", "--mcp", &everything, "get-sum", "a=2", "b=40"]);
    let (code, stdout, stderr) = parts(&run);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("42"), "{stdout}");
    let run = bench.run_words(&["call", "--mcp", &everything, "get-sum", "a=two"]);
    let (code, _, stderr) = parts(&run);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("2 arguments do not fit"), "{stderr}");
    bench.assert_nobody_left();
}

#[test]
fn a_python_server_of_a_command_line_answers_too() {
    let bench = Bench::empty();
    let time = peer("mcp-py/bin/mcp-server-time");
    let time = format!("{} --local-timezone Europe/Oslo", time.display());
    let words = [
        "call",
        "--mcp",
        &time,
        "get_current_time",
        "timezone=Europe/Oslo",
        "--json",
    ];
    let (code, stdout, stderr) = parts(&bench.run_words(&words));
    assert_eq!(code, 0, "{stderr}");
    let outcome: Value = serde_json::from_str(&stdout).expect("an outcome");
    assert_eq!(outcome["status"], "success");
    assert!(
        outcome["output"].to_string().contains("Europe/Oslo"),
        "{outcome}"
    );
}

#[test]
fn words_of_the_command_line_are_split_as_a_shell_does_and_may_set_variables() {
    let bench = Bench::empty();
    let command = format!("SPACE='two words' {}", hostile_command("env"));
    let run = bench.run_words(&["call", "--mcp", &command, "environment"]);
    let (code, stdout, stderr) = parts(&run);
    assert_eq!(code, 0, "{stderr}");
    let environment: Value = serde_json::from_str(&stdout).expect("variables");
    assert_eq!(environment["SPACE"], "two words");
}

#[test]
fn a_wrong_address_and_an_open_quote_are_told_before_anything_is_started() {
    let bench = Bench::empty();
    for (command, said) in [
        ("python3 'server.py", "has an open quote"),
        ("A=1", "--mcp names no command"),
    ] {
        let (code, stdout, stderr) = parts(&bench.run_words(&["call", "--mcp", command, "echo"]));
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
        assert!(
            stderr.contains("help: ") || command.contains('\''),
            "{stderr}"
        );
    }
}

#[test]
fn a_tool_the_server_does_not_have_is_not_found_among_those_it_has() {
    let bench = Bench::empty();
    let command = hostile_command("well");
    let (code, _, stderr) = parts(&bench.run_words(&["call", "--mcp", &command, "ecko"]));
    assert_eq!(code, 5, "{stderr}");
    assert!(stderr.contains("there is no tool ecko"), "{stderr}");
    assert!(stderr.contains("Did you mean echo?"), "{stderr}");
    bench.assert_nobody_left();
}

#[test]
fn a_configured_server_is_called_by_its_name_and_only_it_is_started() {
    let bench = Bench::with(&(hostile("one", "well") + &hostile("two", "silent_init")));
    let (code, stdout, stderr) = parts(&bench.run("call one__echo message=hi"));
    assert_eq!((code, stdout.as_str()), (0, "hi\n"), "{stderr}");
    assert!(!stderr.contains("two"), "{stderr}");
    bench.assert_nobody_left();
}

#[test]
fn inherit_env_hands_on_everything_and_nothing_else_does() {
    let config = hostile("closed", "env")
        + &hostile("open", "env")
        + "inherit_env = true\n"
        + "env_without = [\"NOT_THIS\"]\n";
    let mut bench = Bench::with(&config);
    bench.workplace.set("OURS", "from the shell");
    bench.workplace.set("NOT_THIS", "either");
    let environment = |server: &str| -> Value {
        let (code, stdout, stderr) = parts(&bench.run(&format!("call {server}__environment")));
        assert_eq!(code, 0, "{stderr}");
        serde_json::from_str(&stdout).expect("variables")
    };
    let closed = environment("closed");
    let mut names: Vec<&String> = closed.as_object().expect("variables").keys().collect();
    names.retain(|name| !name.starts_with("HOSTILE_") && !name.starts_with("STEADYHAND"));
    names.retain(|name| name.as_str() != "LC_CTYPE");
    assert_eq!(names, ["HOME", "PATH"], "of those that are set");
    let open = environment("open");
    assert_eq!(open["OURS"], "from the shell");
    assert_eq!(open.get("NOT_THIS"), None);
}

#[test]
fn an_error_of_the_tool_comes_back_in_its_own_words_and_is_an_answer() {
    let bench = Bench::empty();
    let folder = bench.path().display().to_string();
    let command = format!("{} {folder}", npm("filesystem"));
    let words = [
        "call",
        "--mcp",
        &command,
        "read_text_file",
        "path=/etc/passwd",
        "--json",
    ];
    let (code, stdout, stderr) = parts(&bench.run_words(&words));
    assert_eq!(code, 5, "{stderr}");
    let outcome: Value = serde_json::from_str(&stdout).expect("an outcome");
    assert_eq!(outcome["error"]["code"], "TOOL_EXECUTION_ERROR");
    assert_eq!(outcome["error"]["effect"], json!("done"));
    let message = outcome["error"]["message"].as_str().expect("words");
    assert!(message.contains("Access denied"), "{message}");
}
