//! A server that does not start: the lines of SPEC V17, then the whole story, then exit code 4.

use serde_json::Value;

use super::{Bench, hostile, hostile_command};
use crate::support::parts;

const LOCAL: &str = "[tools.calculator]\nkind = \"builtin\"\nuse = \"math_eval\"\n";

/// The two parts of what is said: the lines of SPEC V17, and the story.
fn said(stderr: &str) -> (Vec<&str>, &str) {
    let (v17, story) = stderr.split_once("\n\nError: ").unwrap_or((stderr, ""));
    // How it fares is told before, where a start takes long.
    let lines = v17.lines().skip_while(|line| !line.starts_with('❌'));
    (lines.collect(), story)
}

#[test]
fn v17_a_python_traceback() {
    let bench = Bench::with(&(LOCAL.to_owned() + &hostile("calendar", "traceback")));
    let (code, stdout, stderr) = parts(&bench.run("call calendar__echo message=hi"));
    assert_eq!((code, stdout.as_str()), (4, ""), "{stderr}");
    let (lines, story) = said(&stderr);
    assert_eq!(
        lines[0],
        "❌ Failed to initialize MCP tools after 3 attempts"
    );
    assert_eq!(
        lines[1],
        "   Reason: Connection to stdio server 'calendar' failed"
    );
    assert!(lines[2].starts_with("   MCP Server stderr: "), "{stderr}");
    assert!(
        lines[2..]
            .iter()
            .any(|line| line.ends_with("ModuleNotFoundError: No module named 'mcp'")),
        "{stderr}"
    );
    let check = lines[lines.len() - 2];
    assert!(
        check.starts_with("   Check: ") && check.contains("mcp"),
        "{stderr}"
    );
    assert_eq!(
        lines[lines.len() - 1],
        "⚠️ Continuing with local tools only (calculator)"
    );
    assert!(story.starts_with("calendar did not start\n"), "{stderr}");
    for part in [
        "   command   /",
        "(steadyhand.toml:5)",
        "   step      initialize: exited with code 1, after ",
        "(find command ok, start process ok)",
        "   help: ",
        "More: steadyhand mcp logs calendar     Again: steadyhand mcp test calendar",
    ] {
        assert!(story.contains(part), "no {part:?} in {stderr}");
    }
    // What it printed is told once.
    let words = "ModuleNotFoundError: No module named 'mcp'";
    assert_eq!(stderr.matches(words).count(), 1, "{stderr}");
    bench.assert_nobody_left();
}

#[test]
fn v17_with_plain_there_are_no_emoji_and_the_failure_is_told_once() {
    let bench = Bench::with(&(LOCAL.to_owned() + &hostile("calendar", "traceback")));
    for command in [
        "call calendar__echo message=hi --plain",
        "mcp test calendar --plain",
    ] {
        let (code, _, stderr) = parts(&bench.run(command));
        assert_eq!(code, 4, "{stderr}");
        assert!(
            stderr.contains("Failed to initialize MCP tools after ")
                && stderr.contains("\nContinuing with local tools only (calculator)\n"),
            "{stderr}"
        );
        assert!(!stderr.contains(['❌', '⚠', '✗', '●']), "{stderr}");
        let words = "ModuleNotFoundError: No module named 'mcp'";
        assert_eq!(stderr.matches(words).count(), 1, "{stderr}");
    }
    // Where nothing but the error is shown, it has all of it.
    let (_, _, stderr) = parts(&bench.run("call calendar__echo message=hi -q"));
    assert!(stderr.contains("ModuleNotFoundError"), "{stderr}");
}

#[test]
fn v17_what_goes_on_are_local_tools_only() {
    let config =
        LOCAL.to_owned() + &hostile("up", "well") + &hostile("broken", "exit1_before_init");
    let bench = Bench::with(&config);
    let (_, stdout, _) = parts(&bench.run("tools list"));
    assert!(stdout.contains("up__echo"), "{stdout}");
    let (code, _, stderr) = parts(&bench.run("call broken__echo message=hi"));
    assert_eq!(code, 4, "{stderr}");
    assert!(
        stderr.contains("⚠️ Continuing with local tools only (calculator)\n"),
        "{stderr}"
    );
}

#[test]
fn t03_a_timeout_while_a_server_starts_says_how_often_it_failed_and_its_last_words() {
    let bench = Bench::empty();
    let server = "sh -c 'echo FATAL: missing API key >&2; exit 3'";
    let words = [
        "call",
        "--mcp",
        server,
        "echo",
        "message=hi",
        "--timeout",
        "4s",
    ];
    let (code, _, stderr) = parts(&bench.run_words(&words));
    assert_eq!(code, 6, "{stderr}");
    for part in [
        "2 starts failed, the last one: exited with code 3 at initialize",
        "FATAL: missing API key",
        "It was not run.",
    ] {
        assert!(stderr.contains(part), "no {part:?} in {stderr}");
    }
    assert!(!stderr.contains("Give it longer"), "{stderr}");
    let (_, stdout, _) = parts(&bench.run_words(&[&words[..], &["--json"]].concat()));
    let outcome: Value = serde_json::from_str(&stdout).expect("an outcome");
    let error = &outcome["error"];
    assert_eq!(
        (&error["code"], &error["effect"]),
        (&"TIMEOUT".into(), &"none".into())
    );
    let message = error["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("2 starts failed") && message.contains(": FATAL: missing API key"),
        "{message}"
    );
    bench.assert_nobody_left();
}

#[test]
fn v17_a_missing_command() {
    let config = LOCAL.to_owned()
        + "[mcp.github]\ncommand = \"no-such-mcp-server\"\nargs = [\"-y\"]\nstart.waits = [\"0s\", \"1ms\", \"1ms\"]\n";
    let bench = Bench::with(&config);
    let (code, _, stderr) = parts(&bench.run("call github__search q=x"));
    assert_eq!(code, 4, "{stderr}");
    let (lines, story) = said(&stderr);
    assert_eq!(
        lines[0],
        "❌ Failed to initialize MCP tools after 3 attempts"
    );
    assert_eq!(
        lines[1],
        "   Reason: Connection to stdio server 'github' failed"
    );
    assert_eq!(lines[2], "   MCP Server stderr: (nothing)");
    assert!(
        lines[3].starts_with("   Check: ") && lines[3].contains("no-such-mcp-server"),
        "{stderr}"
    );
    assert_eq!(lines[4], "⚠️ Continuing with local tools only (calculator)");
    assert!(
        story.contains("   step      find command: \"no-such-mcp-server\" is not in PATH"),
        "{stderr}"
    );
    assert!(story.contains("   PATH      "), "{stderr}");
    assert!(story.contains("   help: "), "{stderr}");
}

#[test]
fn v17_a_silent_server() {
    let config = LOCAL.to_owned() + &hostile("files", "silent_init").replace("10s", "700ms");
    let bench = Bench::with(&config);
    let (code, _, stderr) = parts(&bench.run("call files__echo message=hi"));
    assert_eq!(code, 4, "{stderr}");
    let (lines, story) = said(&stderr);
    assert_eq!(
        lines[0],
        "❌ Failed to initialize MCP tools after 3 attempts"
    );
    assert_eq!(
        lines[1],
        "   Reason: Connection to stdio server 'files' failed"
    );
    assert_eq!(lines[2], "   MCP Server stderr: (nothing)");
    assert!(lines[3].starts_with("   Check: "), "{stderr}");
    assert_eq!(lines[4], "⚠️ Continuing with local tools only (calculator)");
    assert!(
        story.starts_with(
            "files did not answer initialize within 700 ms; it was still running (pid "
        ),
        "{stderr}"
    );
    assert!(
        story.contains("timeout = "),
        "how to give it longer: {stderr}"
    );
    bench.assert_nobody_left();
}

#[test]
fn v17_a_server_that_talks_on_stdout() {
    let config = LOCAL.to_owned() + &hostile("talker", "stdout_talker").replace("10s", "700ms");
    let bench = Bench::with(&config);
    let (code, _, stderr) = parts(&bench.run("call talker__echo message=hi"));
    assert_eq!(code, 4, "{stderr}");
    let (lines, story) = said(&stderr);
    assert_eq!(
        lines[1],
        "   Reason: Connection to stdio server 'talker' failed"
    );
    assert!(
        lines[3].starts_with("   Check: ") && lines[3].contains("stdout"),
        "{stderr}"
    );
    assert!(story.contains("not MCP:  "), "{stderr}");
    assert!(
        story.contains("MCP servers must keep stdout for messages"),
        "{stderr}"
    );
    bench.assert_nobody_left();
}

#[test]
fn v17_hints_come_from_the_configuration_where_it_has_some() {
    let config = hostile("zwave", "exit1_before_init")
        + "check = [\"MQTT broker running\", \"zwave-mcp-server installed\"]\n";
    let bench = Bench::with(&config);
    let (_, _, stderr) = parts(&bench.run("call zwave__echo message=hi"));
    assert!(
        stderr.contains("\n   Check: MQTT broker running, zwave-mcp-server installed\n"),
        "{stderr}"
    );
    assert!(
        stderr.contains("\n⚠️ Continuing with local tools only (none)\n"),
        "{stderr}"
    );
}

#[test]
fn v17_a_server_of_the_command_line_that_crashes_is_explained_too() {
    let bench = Bench::empty();
    let command = hostile_command("traceback");
    let words = ["call", "--mcp", &command, "echo", "message=hi"];
    let (code, _, stderr) = parts(&bench.run_words(&words));
    assert_eq!(code, 4, "{stderr}");
    let (lines, story) = said(&stderr);
    assert_eq!(
        lines[1],
        "   Reason: Connection to stdio server 'server' failed"
    );
    assert!(story.starts_with("server did not start\n"), "{stderr}");
    assert!(
        !story.contains("mcp restart"),
        "it is configured nowhere: {stderr}"
    );
    bench.assert_nobody_left();
}

#[test]
fn machines_get_the_outcome_on_stdout_and_the_failed_start_on_stderr() {
    let bench = Bench::with(&hostile("calendar", "traceback"));
    let (code, stdout, stderr) = parts(&bench.run("call calendar__echo message=hi --json"));
    assert_eq!(code, 4, "{stderr}");
    let outcome: Value = serde_json::from_str(&stdout).expect("an outcome");
    assert_eq!(outcome["status"], "error");
    assert_eq!(outcome["error"]["code"], "NETWORK_ERROR");
    assert_eq!(outcome["error"]["effect"], "none");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let error: Value = serde_json::from_str(&stderr).expect("one line of JSON");
    let error = &error["error"];
    assert_eq!(error["code"], "mcp_start_failed");
    assert_eq!(
        error["message"],
        "calendar exited with code 1 before answering initialize"
    );
    assert_eq!(error["server"], "calendar");
    assert_eq!(error["step"], "initialize");
    assert_eq!(error["exit_code"], 1);
    let tail = error["stderr_tail"].as_array().expect("lines");
    assert_eq!(
        tail.last().expect("a line"),
        "ModuleNotFoundError: No module named 'mcp'"
    );
    assert_eq!(error["call_id"], outcome["callId"]);
    assert!(error["help"].as_str().is_some_and(|help| !help.is_empty()));
}
