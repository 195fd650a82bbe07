//! Starts that fail, as people read them: the lines of SPEC V17, the block of UX §2.8.

use std::time::Duration;

use serde_json::{Value, json};
use steadyhand_mcp::failure::{StartFailure, Step, What, continuing};

pub(crate) const TRACEBACK: [&str; 5] = [
    "starting calendar server",
    "Traceback (most recent call last):",
    "  File \"server.py\", line 3, in <module>",
    "    from mcp.server import Server",
    "ModuleNotFoundError: No module named 'mcp'",
];

pub(crate) fn exited(code: i32) -> What {
    What::Exited {
        how: format!("exited with code {code}"),
        code: Some(code),
        signal: None,
    }
}

pub(crate) fn killed(signal: i32, name: &str) -> What {
    What::Exited {
        how: format!("was killed by {name}"),
        code: None,
        signal: Some(signal),
    }
}

pub(crate) fn silent() -> What {
    What::Silent {
        limit: Duration::from_secs(20),
        pid: Some(29960),
    }
}

pub(crate) fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// A server that came as far as initialize.
pub(crate) fn failure(command: &str, what: What, stderr: &str) -> StartFailure {
    StartFailure {
        command: command.to_owned(),
        stderr: lines(stderr),
        elapsed: Duration::from_millis(436),
        attempts: 3,
        ..StartFailure::new("zwave", Step::Initialize, what)
    }
}

fn calendar() -> StartFailure {
    StartFailure {
        server: "calendar".to_owned(),
        place: Some(".mcp.json:9".to_owned()),
        cwd: Some("servers/calendar".to_owned()),
        program: Some("/usr/bin/python3".to_owned()),
        ..failure("python3 server.py", exited(1), &TRACEBACK.join("\n"))
    }
}

pub(crate) fn github(elsewhere: &[&str]) -> StartFailure {
    let what = What::NotFound {
        program: "npx".to_owned(),
        path: "/usr/bin:/bin:/usr/sbin:/sbin".to_owned(),
        elsewhere: elsewhere.iter().map(|path| (*path).to_owned()).collect(),
    };
    StartFailure {
        command: "npx -y @modelcontextprotocol/server-github".to_owned(),
        place: Some("claude_desktop_config.json:14".to_owned()),
        ..StartFailure::new("github", Step::FindCommand, what)
    }
}

pub(crate) fn talker() -> StartFailure {
    StartFailure {
        server: "files".to_owned(),
        noise_lines: 1,
        noise_samples: lines("Hello! I print to stdout"),
        ..failure("mcp-files /srv", silent(), "")
    }
}

// V17: the lines

#[test]
fn v17_the_lines_for_people_with_configured_hints() {
    let failure = failure("zwave-mcp-server", exited(1), "Error: broker unreachable");
    let check = ["MQTT broker running", "zwave-mcp-server installed"].map(str::to_owned);
    assert_eq!(
        failure.v17(&check),
        "❌ Failed to initialize MCP tools after 3 attempts\n   \
         Reason: Connection to stdio server 'zwave' failed\n   \
         MCP Server stderr: Error: broker unreachable\n   \
         Check: MQTT broker running, zwave-mcp-server installed"
    );
}

#[test]
fn v17_without_stderr_it_says_nothing_and_hints_come_from_the_command() {
    let text = failure("zwave-mcp-server --x", exited(3), " \n").v17(&[]);
    assert_eq!(
        lines(&text)[2..],
        [
            "   MCP Server stderr: (nothing)",
            "   Check: zwave-mcp-server installed, its arguments and environment right"
        ]
    );
}

#[test]
fn v17_hints_come_from_the_likely_cause() {
    let refused = "Error: connect ECONNREFUSED 127.0.0.1:1883";
    let text = failure("zwave-mcp-server", exited(1), refused).v17(&[]);
    assert!(text.ends_with("\n   Check: MQTT broker running"), "{text}");
    assert!(
        github(&[])
            .v17(&[])
            .ends_with("\n   Check: npx installed and in PATH")
    );
}

#[test]
fn v17_a_tail_of_several_lines_stands_below_itself() {
    let text = calendar().v17(&[]);
    assert_eq!(
        lines(&text)[2..],
        [
            "   MCP Server stderr: starting calendar server",
            "                      Traceback (most recent call last):",
            "                        File \"server.py\", line 3, in <module>",
            "                          from mcp.server import Server",
            "                      ModuleNotFoundError: No module named 'mcp'",
            "   Check: Python package mcp installed",
        ]
    );
}

#[test]
fn v17_what_still_works_is_named_up_to_a_handful() {
    assert_eq!(
        continuing(&["datetime", "search", "volume"]),
        "⚠️ Continuing with local tools only (datetime, search, volume)"
    );
    assert_eq!(
        continuing(&[]),
        "⚠️ Continuing with local tools only (none)"
    );
    let names: Vec<String> = (0..100).map(|number| format!("t{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(
        continuing(&names),
        "⚠️ Continuing with local tools only (t0, t1, t2, t3, t4, t5, t6, t7 and 92 more)"
    );
}

// The summary

#[test]
fn v15_a_summary_is_one_line_for_each_way_to_fail() {
    let at = |what| failure("x", what, "").summary();
    assert_eq!(
        at(exited(1)),
        "exited with code 1 at initialize, after 436 ms"
    );
    assert_eq!(at(silent()), "no answer to initialize within 20 s");
    assert_eq!(
        at(What::Closed),
        "closed its stdout at initialize, after 436 ms"
    );
    assert_eq!(
        at(What::Refused {
            code: -32603,
            message: "not\ntoday".to_owned()
        }),
        "refused initialize: not today (code -32603)"
    );
    assert_eq!(
        at(What::Malformed("a list".to_owned())),
        "no valid answer to initialize: a list"
    );
    assert_eq!(
        at(What::TooMany("100 pages".to_owned())),
        "too much at initialize: 100 pages"
    );
    assert_eq!(
        at(What::NotStarted("no".to_owned())),
        "could not be started: no"
    );
    assert_eq!(github(&[]).summary(), "\"npx\" is not in PATH");
    assert_eq!(
        calendar().to_string(),
        "calendar exited with code 1 before answering initialize"
    );
}

#[test]
fn v15_times_are_written_for_people() {
    let after = |ms| {
        let failure = StartFailure {
            elapsed: Duration::from_millis(ms),
            ..failure("x", What::Closed, "")
        };
        let summary = failure.summary();
        summary.rsplit(", after ").next().unwrap().to_owned()
    };
    let times = [0, 999, 1_000, 1_900, 20_000, 61_234, 900_000].map(after);
    assert_eq!(
        times,
        ["0 ms", "999 ms", "1 s", "1.9 s", "20 s", "61 s", "15 min"]
    );
}

// The block of UX §2.8

#[test]
fn v15_a_crash_shows_command_step_last_words_and_the_next_step() {
    assert_eq!(
        calendar().detail(),
        r#"Error: calendar did not start
   command   python3 server.py      (.mcp.json:9, cwd servers/calendar)
   step      initialize: exited with code 1, after 436 ms      (find command ok, start process ok)
   stderr    starting calendar server
             Traceback (most recent call last):
               File "server.py", line 3, in <module>
                 from mcp.server import Server
             ModuleNotFoundError: No module named 'mcp'

   help: python3 here is /usr/bin/python3 and has no package "mcp".
         Use:  uv run --with mcp server.py     or install it:  python3 -m pip install mcp
         More: steadyhand mcp logs calendar     Again: steadyhand mcp restart calendar"#
    );
}

#[test]
fn v15_a_command_that_is_elsewhere_is_pointed_at() {
    let found = "~/.nvm/versions/node/v22.14.0/bin/npx";
    assert_eq!(
        github(&[found]).detail(),
        r#"Error: github did not start
   command   npx -y @modelcontextprotocol/server-github      (claude_desktop_config.json:14)
   step      find command: "npx" is not in PATH
   PATH      /usr/bin:/bin:/usr/sbin:/sbin
   help: npx exists at ~/.nvm/versions/node/v22.14.0/bin/npx (nvm), but PATH does not hold it.
         Set  path_add = ["~/.nvm/versions/node/v22.14.0/bin"]  under [mcp.github], or give the full path."#
    );
}

#[test]
fn v15_one_that_talks_on_stdout_and_never_answers_is_told_so() {
    assert_eq!(
        talker().detail(),
        r#"Error: files did not answer initialize within 20 s; it was still running (pid 29960)
   command   mcp-files /srv
   step      initialize: no answer to initialize within 20 s      (find command ok, start process ok)
   stdout    1 line that is not MCP:  Hello! I print to stdout
   stderr    (nothing)
   help: MCP servers must keep stdout for messages. Steadyhand skips such lines, but this server then never answered.
         If the first start downloads packages, raise it:  start = { timeout = "60s" }
         More: steadyhand mcp logs files     Again: steadyhand mcp restart files"#
    );
}

#[test]
fn v15_every_end_has_a_text_with_a_next_step() {
    let ends = [
        exited(0),
        exited(1),
        exited(126),
        exited(127),
        exited(137),
        exited(139),
        killed(9, "SIGKILL"),
        killed(11, "SIGSEGV"),
        killed(15, "SIGTERM"),
        killed(30, "SIGPWR"),
        silent(),
        What::Silent {
            limit: Duration::from_secs(1),
            pid: None,
        },
        What::Closed,
        What::Refused {
            code: 1,
            message: "no".to_owned(),
        },
        What::Malformed("x".to_owned()),
        What::TooMany("x".to_owned()),
        What::NotStarted("x".to_owned()),
        What::NotFound {
            program: "x".to_owned(),
            path: String::new(),
            elsewhere: Vec::new(),
        },
        What::NotFound {
            program: "./x".to_owned(),
            path: String::new(),
            elsewhere: Vec::new(),
        },
    ];
    for what in ends {
        for step in [
            Step::FindCommand,
            Step::Start,
            Step::Initialize,
            Step::ListTools,
            Step::Running,
        ] {
            for command in ["", "x --flag"] {
                let failure = StartFailure {
                    step,
                    ..failure(command, what.clone(), "")
                };
                let detail = failure.detail();
                assert!(detail.starts_with("Error: zwave "), "{detail}");
                let help = detail.split_once("\n   help: ").expect(&detail).1;
                assert!(help.len() > 20, "{detail}");
                assert!(!failure.hints(&[]).is_empty(), "{detail}");
                assert!(!failure.summary().contains('\n'));
            }
        }
    }
}

// For programs

#[test]
fn v15_as_json_it_holds_what_a_program_needs() {
    let failure = calendar();
    assert_eq!(
        serde_json::to_value(&failure).unwrap(),
        json!({
            "code": "mcp_start_failed",
            "message": "calendar exited with code 1 before answering initialize",
            "server": "calendar",
            "transport": "stdio",
            "step": "initialize",
            "exit_code": 1,
            "signal": null,
            "elapsed_ms": 436,
            "attempts": 3,
            "stderr_tail": TRACEBACK,
            "stdout_noise": [],
            "stdout_noise_lines": 0,
            "help": "python3 here is /usr/bin/python3 and has no package \"mcp\". Use:  uv run --with mcp server.py     or install it:  python3 -m pip install mcp",
            "retryable": true
        })
    );
    let json = serde_json::to_value(talker()).unwrap();
    assert_eq!(json["stdout_noise"], json!(["Hello! I print to stdout"]));
    assert_eq!(json["exit_code"], Value::Null);
    let json = serde_json::to_value(github(&[])).unwrap();
    assert_eq!(
        (&json["step"], &json["retryable"]),
        (&json!("find command"), &json!(false))
    );
    let json = serde_json::to_value(failure_by_signal()).unwrap();
    assert_eq!(
        (&json["exit_code"], &json["signal"]),
        (&Value::Null, &json!(9))
    );
}

fn failure_by_signal() -> StartFailure {
    failure("x", killed(9, "SIGKILL"), "")
}

// What a server writes is not to be trusted

#[test]
fn v15_no_secret_reaches_a_text_a_log_or_a_debug_print() {
    let secret = "hunter2hunter2";
    let said = format!("connecting with password={secret}\nAuthorization: Bearer {secret}");
    let failure = StartFailure {
        noise_lines: 1,
        noise_samples: vec![format!("token: {secret}")],
        ..failure(
            &format!("server --api-key={secret}"),
            What::Refused {
                code: 1,
                message: format!("bad secret: {secret}"),
            },
            &said,
        )
    };
    let texts = [
        failure.detail(),
        failure.v17(&[]),
        failure.summary(),
        failure.to_string(),
        format!("{failure:?}"),
        serde_json::to_string(&failure).unwrap(),
    ];
    for text in texts {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn v15_what_a_server_writes_cannot_paint_the_terminal_or_fill_it() {
    let hostile = "\u{1b}[31mred\u{1b}[0m\u{1b}]0;title\u{7}\u{8}\u{7}\tend";
    let mut flood: Vec<String> = vec!["x".repeat(100_000); 100];
    flood.push(hostile.to_owned());
    let failure = StartFailure {
        command: "y".repeat(1_000_000),
        noise_lines: 5_000,
        noise_samples: flood.clone(),
        stderr: flood,
        ..failure("", What::Malformed("z".repeat(1_000_000)), "")
    };
    let detail = failure.detail();
    assert!(detail.len() < 20_000, "{} bytes", detail.len());
    assert!(failure.v17(&[]).len() < 4_000);
    assert!(failure.summary().len() < 1_000);
    // What paints is taken out, what is left of it is shown.
    assert!(
        detail.contains("\n             red\\u{8}\\u{7} end\n"),
        "{detail}"
    );
    assert!(!detail.contains(['\u{1b}', '\u{7}', '\u{8}', '\t']));
    assert!(detail.contains("5000 lines that are not MCP:"), "{detail}");
}
