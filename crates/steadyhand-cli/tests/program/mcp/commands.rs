//! `mcp list`, `test`, `logs` and `restart` without a running server.

use serde_json::Value;

use super::{Bench, hostile, npm};
use crate::support::parts;

#[test]
fn mcp_list_starts_every_server_and_says_how_each_fares() {
    let config = hostile("up", "well")
        + &hostile("broken", "traceback")
        + &hostile("off", "well")
        + "disabled = true\n"
        + &hostile("lazy", "well")
        + "start.when = \"first-call\"\n"
        + "[mcp.away]\nurl = \"http://127.0.0.1:1/mcp\"\nstart.waits = [\"0s\"]\n";
    let bench = Bench::with(&config);
    let (code, stdout, stderr) = parts(&bench.run("mcp list"));
    assert_eq!(code, 0, "{stderr}");
    let rows: Vec<Vec<&str>> = stdout
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    let row = |name: &str| {
        rows.iter()
            .find(|row| row[0] == name)
            .expect("a row")
            .clone()
    };
    assert_eq!(row("up")[1..3], ["running", "4"]);
    assert!(
        row("up")[3].ends_with('s') && row("up")[4] == "steadyhand.toml:2",
        "{stdout}"
    );
    assert_eq!(row("broken")[1], "not running");
    assert!(
        row("broken")[5].starts_with("exited with code 1 at initialize"),
        "{stdout}"
    );
    assert_eq!(row("off")[1], "disabled");
    assert_eq!(
        row("lazy")[1..3],
        ["running", "4"],
        "its tools were not known yet"
    );
    assert_eq!(row("away")[1], "not running");
    assert!(
        row("away")[5].starts_with("cannot be reached: Connection refused"),
        "{stdout}"
    );
    assert!(
        stderr.contains("2 of 4 servers run. See why: steadyhand mcp test broken"),
        "{stderr}"
    );
    let listed = bench.json("mcp list --json");
    let lazy = listed["servers"]
        .as_array()
        .expect("servers")
        .iter()
        .find(|it| it["name"] == "lazy");
    assert_eq!(
        lazy.expect("it is listed")["status"],
        "idle",
        "now they are"
    );
    let (code, stdout, _) = parts(&bench.run("mcp"));
    assert_eq!(code, 0);
    assert!(
        stdout.contains("up\trunning"),
        "without a word it lists: {stdout}"
    );
    bench.assert_nobody_left();
}

#[test]
fn mcp_list_without_servers_says_how_to_get_some() {
    let (code, stdout, stderr) = parts(&Bench::with("# none\n").run("mcp list"));
    assert_eq!((code, stdout.as_str()), (0, ""));
    assert!(
        stderr.contains("steadyhand mcp add NAME -- COMMAND ARGS"),
        "{stderr}"
    );
}

#[test]
fn mcp_test_shows_every_step_the_tools_and_what_is_odd_about_them() {
    let config = format!("[mcp.everything]\ncommand = {:?}\n", npm("everything"))
        + &hostile("odd", "bad_schema");
    let bench = Bench::with(&config);
    let (code, stdout, stderr) = parts(&bench.run("mcp test everything"));
    assert_eq!(code, 0, "{stderr}");
    for step in ["find command", "start process", "initialize", "tools/list"] {
        let line = stderr
            .lines()
            .find(|line| line.trim_start().starts_with(step));
        assert!(
            line.is_some_and(|line| line.ends_with('s')),
            "{step}: {stderr}"
        );
    }
    assert!(
        stderr.contains("mcp-servers/everything 2.0.0, protocol "),
        "{stderr}"
    );
    assert!(
        stdout.starts_with("everything__echo\tEchoes back the input"),
        "{stdout}"
    );
    assert_eq!(stdout.lines().count(), 12);
    let (code, _, stderr) = parts(&bench.run("mcp test odd"));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stderr.matches("cannot be used: ").count(), 3, "{stderr}");
    let view = bench.json("mcp test odd --json");
    assert_eq!(view["unusable"].as_array().map(Vec::len), Some(3));
    assert_eq!(view["offers"][0]["name"], "odd__echo");
    bench.assert_nobody_left();
}

#[test]
fn v17_mcp_test_of_a_broken_server_tells_the_whole_story_of_one_attempt() {
    let bench = Bench::with(&hostile("calendar", "traceback"));
    let (code, stdout, stderr) = parts(&bench.run("mcp test calendar"));
    assert_eq!((code, stdout.as_str()), (4, ""), "{stderr}");
    assert!(
        stderr.contains("  initialize     failed, after "),
        "{stderr}"
    );
    assert!(
        stderr.contains("❌ Failed to initialize MCP tools after 1 attempts\n"),
        "{stderr}"
    );
    assert!(
        stderr.contains("\nError: calendar did not start\n"),
        "{stderr}"
    );
    let (code, stdout, stderr) = parts(&bench.run("mcp test calendar --json"));
    assert_eq!((code, stdout.as_str()), (4, ""), "{stderr}");
    let error: Value = serde_json::from_str(&stderr).expect("one line of JSON");
    assert_eq!(error["error"]["code"], "mcp_start_failed");
    assert_eq!(error["error"]["step"], "initialize");
    assert_eq!(error["error"]["retryable"], true);
}

#[test]
fn names_that_are_none_are_told_with_the_one_that_was_meant() {
    let bench = Bench::with(&hostile("calendar", "well"));
    for command in ["test", "logs", "remove"] {
        let (code, _, stderr) = parts(&bench.run(&format!("mcp {command} calender")));
        assert_eq!(code, 5, "{stderr}");
        assert!(
            stderr.contains("there is no MCP server calender"),
            "{stderr}"
        );
        assert!(stderr.contains("Did you mean calendar?"), "{stderr}");
    }
}

#[test]
fn mcp_logs_has_what_a_server_printed_after_everything_is_over() {
    let bench = Bench::with(&hostile("calendar", "traceback"));
    let (code, stdout, stderr) = parts(&bench.run("mcp logs calendar"));
    assert_eq!((code, stdout.as_str()), (0, ""));
    assert!(stderr.contains("calendar has printed nothing"), "{stderr}");
    bench.run("call calendar__echo message=hi");
    let (code, stdout, stderr) = parts(&bench.run("mcp logs calendar"));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(
        stdout
            .matches("ModuleNotFoundError: No module named 'mcp'")
            .count(),
        3,
        "{stdout}"
    );
    assert_eq!(
        stdout.matches("did not start: exited with code 1").count(),
        3,
        "{stdout}"
    );
    let log = bench.json("mcp logs calendar --json");
    let lines = log["lines"].as_array().expect("lines");
    assert!(lines.iter().all(|line| line["at_ms"].is_u64()), "{log}");
    assert!(lines.iter().any(|line| line["stream"] == "stderr"), "{log}");
}

#[test]
fn mcp_logs_is_bounded_on_disk_whatever_a_server_prints() {
    let bench = Bench::with(&hostile("flood", "stderr_flood 20"));
    for _ in 0..8 {
        let (code, _, stderr) = parts(&bench.run("call flood__trouble"));
        assert_eq!(code, 0, "{stderr}");
    }
    let path = bench.file(".local/state/steadyhand/mcp/flood.log");
    let size = std::fs::metadata(path).expect("a log").len();
    assert!(size < 1024 * 1024, "{size} bytes");
    let (code, stdout, _) = parts(&bench.run("mcp logs flood"));
    assert_eq!(code, 0);
    assert!(!stdout.is_empty());
}

#[test]
fn mcp_logs_follows_until_its_time_is_up() {
    let bench = Bench::with(&hostile("calendar", "traceback"));
    bench.run("mcp test calendar");
    let (code, stdout, stderr) = parts(&bench.run("mcp logs calendar -f --timeout 700ms --json"));
    assert_eq!(code, 0, "{stderr}");
    let lines: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON on every line"))
        .collect();
    assert!(lines.len() > 3, "{stdout}");
}

#[test]
fn mcp_restart_without_a_server_says_what_to_do() {
    let bench = Bench::with(&hostile("calendar", "well"));
    let (code, _, stderr) = parts(&bench.run("mcp restart calendar"));
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("steadyhand serve"), "{stderr}");
    assert!(stderr.contains("steadyhand mcp test calendar"), "{stderr}");
}

#[test]
fn a_tool_of_a_server_that_does_not_start_is_shown_with_the_reason() {
    let bench = Bench::with(&hostile("calendar", "traceback"));
    let (code, _, stderr) = parts(&bench.run("tools show calendar__echo"));
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("Error: calendar did not start"), "{stderr}");
    let (code, _, stderr) = parts(&bench.run("tools list"));
    assert_eq!(code, 0);
    assert!(
        stderr.contains("calendar is not running: exited with code 1"),
        "{stderr}"
    );
}
