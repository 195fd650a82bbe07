//! Servers of a running `steadyhand serve`: over REST, and through the commands that ask it.

use serde_json::{Value, json};

use super::{Bench, broken_from_now_on, hostile, lives, named, until};
use crate::serve::Served;
use crate::support::{PATIENCE, Workplace, parts};

async fn server(served: &Served, name: &str) -> Value {
    let listed = served.get("/v1/servers").await.json();
    let servers = listed["servers"].as_array().expect("servers");
    let found = servers.iter().find(|server| server["name"] == name);
    found
        .unwrap_or_else(|| panic!("no {name} in {listed}"))
        .clone()
}

async fn phase_is(served: &Served, name: &str, phase: &str) -> Value {
    until(&format!("{name} is {phase}"), async || {
        server(served, name).await["phase"] == phase
    })
    .await;
    server(served, name).await
}

/// The program beside the server.
async fn run(served: &Served, words: &str) -> (i32, String, String) {
    let command = served
        .workplace
        .command(&words.split(' ').collect::<Vec<_>>());
    let run = tokio::task::spawn_blocking(move || parts(&command.assert()));
    run.await.expect("it ran")
}

#[tokio::test(flavor = "multi_thread")]
async fn rest_lists_servers_with_state_step_words_and_next_try() {
    let config = hostile("up", "well")
        + &hostile("broken", "traceback")
        + &hostile("off", "well")
        + "disabled = true\n";
    let served = Served::with_config(&config).await;
    let up = phase_is(&served, "up", "running").await;
    assert_eq!(up["tools"], 4);
    assert_eq!(up["status"], "running");
    assert_eq!(up["transport"], "stdio");
    assert!(
        up["pid"].is_u64() && up["start_ms"].is_f64() && up["for_ms"].is_u64(),
        "{up}"
    );
    let steps: Vec<&Value> = up["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|it| &it["step"])
        .collect();
    assert_eq!(
        steps,
        ["find command", "start process", "initialize", "tools/list"]
    );
    assert_eq!(up["place"], "steadyhand.toml:2");
    let broken = phase_is(&served, "broken", "down").await;
    assert_eq!(broken["status"], "not running");
    assert!(broken["next_try_in_ms"].is_u64(), "{broken}");
    assert_eq!(broken["failure"]["step"], "initialize");
    let tail = broken["failure"]["stderr_tail"].to_string();
    assert!(tail.contains("No module named 'mcp'"), "{tail}");
    let reason = broken["reason"].as_str().expect("a reason");
    assert!(
        reason.starts_with("exited with code 1 at initialize"),
        "{reason}"
    );
    let off = server(&served, "off").await;
    assert_eq!(
        (&off["status"], &off["reason"]),
        (&json!("disabled"), &json!("switched off: disabled = true"))
    );
    let ready = served.get("/health/ready").await.json();
    assert_eq!(
        ready["ready"], true,
        "one that is down takes nothing with it"
    );
    assert_eq!(ready["servers"].as_array().map(Vec::len), Some(3));
    let local = served.call("up__echo", json!({"message": "hi"})).await;
    assert_eq!(local["output"], "hi");
}

#[tokio::test(flavor = "multi_thread")]
async fn rest_restarts_a_server_and_its_calls_end_with_the_truth() {
    let served = Served::with_config(&hostile("one", "no_response")).await;
    let before = phase_is(&served, "one", "running").await;
    let pid = before["pid"].as_u64().expect("a pid") as u32;
    // A call that waits for its tool would go to the process that comes after.
    until("its tools are there", async || {
        let listed = served.get("/v1/tools").await.text;
        listed.contains("one__trouble")
    })
    .await;
    let answer = async { served.call("one__trouble", json!({})).await };
    let restart = async {
        crate::serve::runs(&served, "one__trouble").await;
        served.post("/v1/servers/one/restart", json!(null)).await
    };
    let (outcome, reply) = tokio::join!(answer, restart);
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert_eq!(outcome["error"]["code"], "NETWORK_ERROR", "{outcome}");
    assert_eq!(outcome["error"]["effect"], "unknown", "{outcome}");
    until("another process runs", async || {
        let now = server(&served, "one").await;
        now["phase"] == "running" && now["pid"] != before["pid"]
    })
    .await;
    until("the old one is gone", async || !lives(pid)).await;
    let again = served.call("one__echo", json!({"message": "hi"})).await;
    assert_eq!(again["output"], "hi");
    let (status, code, _) = served
        .post("/v1/servers/nobody/restart", json!(null))
        .await
        .refusal();
    assert_eq!((status, code.as_str()), (404, "no_such_server"));
}

#[tokio::test(flavor = "multi_thread")]
async fn rest_gives_what_a_server_printed_and_what_came_since() {
    let served = Served::with_config(&hostile("noisy", "plain_text")).await;
    phase_is(&served, "noisy", "running").await;
    let log = served.get("/v1/servers/noisy/logs").await.json();
    let has = |log: &Value, stream: &str, text: &str| {
        let lines = log["lines"].as_array().expect("lines");
        lines.iter().any(|line| {
            line["stream"] == stream && line["text"].as_str().is_some_and(|it| it.contains(text))
        })
    };
    assert!(has(&log, "note", "started "), "{log}");
    assert!(has(&log, "stdout", "Hello! I print to stdout"), "{log}");
    let next = log["next"].as_u64().expect("a number");
    let since = served
        .get(&format!("/v1/servers/noisy/logs?after={next}"))
        .await
        .json();
    assert_eq!(since["lines"], json!([]));
    let outcome = served.call("noisy__trouble", json!({})).await;
    let since = served
        .get(&format!("/v1/servers/noisy/logs?after={next}"))
        .await
        .json();
    assert!(has(&since, "stdout", "Hello!"), "{outcome} {since}");
    assert_eq!(served.get("/v1/servers/nobody/logs").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_ask_the_server_that_runs() {
    let config = hostile("up", "plain_text") + &hostile("broken", "traceback");
    let served = Served::with_config(&config).await;
    let pid = phase_is(&served, "up", "running").await["pid"].clone();
    phase_is(&served, "broken", "down").await;
    let (code, stdout, stderr) = run(&served, "mcp list --json").await;
    assert_eq!(code, 0, "{stderr}");
    let listed: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(listed["servers"][0]["pid"], pid, "the one of the server");
    let (code, stdout, stderr) = run(&served, "mcp logs up").await;
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("Hello! I print to stdout"), "{stdout}");
    let (code, stdout, stderr) = run(&served, "mcp restart up").await;
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.starts_with("up running: 4 tools, "), "{stdout}");
    let again = server(&served, "up").await;
    assert_eq!(again["starts"], 2);
    assert_ne!(again["pid"], pid);
    let (code, _, stderr) = run(&served, "mcp restart broken").await;
    assert_eq!(code, 4, "{stderr}");
    assert!(
        stderr.contains("broken did not start: exited with code 1"),
        "{stderr}"
    );
    assert!(
        stderr.contains("More: steadyhand mcp logs broken"),
        "{stderr}"
    );
    let (code, _, stderr) = run(&served, "mcp restart brokn").await;
    assert_eq!(code, 5, "{stderr}");
    let (_, stdout, _) = run(&served, "tools list").await;
    assert!(stdout.contains("up__echo\tmcp\tready"), "{stdout}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_a_server_that_is_down_are_listed_as_that() {
    let bench = Bench::with(&broken_from_now_on("one", 0));
    bench.run("tools list");
    bench.write("steadyhand.toml", &broken_from_now_on("one", 1000));
    let served = Served::in_place(bench.workplace).await;
    phase_is(&served, "one", "down").await;
    let tool = served.get("/v1/tools/one__echo").await.json();
    assert_eq!(
        (&tool["available"], &tool["state"]),
        (&json!(false), &json!("not running"))
    );
    let reason = tool["reason"].as_str().expect("a reason");
    assert!(reason.contains("exited with code 1"), "{reason}");
    let (_, stdout, _) = run(&served, "tools list").await;
    assert!(stdout.contains("one__echo\tmcp\tnot running"), "{stdout}");
    let (code, _, stderr) = run(&served, "call one__echo message=hi").await;
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("steadyhand mcp logs one"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_server_is_the_end_of_its_servers() {
    let served = Served::with_config(&hostile("one", "well")).await;
    let pid = phase_is(&served, "one", "running").await["pid"]
        .as_u64()
        .expect("a pid");
    served.signal(rustix::process::Signal::TERM);
    let (code, stderr) = served.ended().await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!lives(pid as u32));
}

#[tokio::test(flavor = "multi_thread")]
async fn v16_serving_begins_while_servers_start_and_v17_is_said_aloud() {
    let config = hostile("broken", "traceback") + &hostile("slow", "silent_init");
    let workplace = Workplace::with_config(&config);
    let mut process = crate::serve::program(&workplace, &["serve", "--listen", "127.0.0.1:0"]);
    let mut process = process.spawn().expect("the program starts");
    use tokio::io::{AsyncBufReadExt, BufReader};
    let mut stdout = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    let mut stderr = BufReader::new(process.stderr.take().expect("a pipe")).lines();
    let ready = async {
        while let Ok(Some(line)) = stdout.next_line().await {
            if line.starts_with("Ready in ") {
                return;
            }
        }
        panic!("it never was ready");
    };
    tokio::time::timeout(PATIENCE, ready)
        .await
        .expect("it does not wait for its servers");
    let mut said = Vec::new();
    let told = async {
        while let Ok(Some(line)) = stderr.next_line().await {
            let is_last = line.contains("Again: steadyhand mcp restart broken");
            said.push(line);
            if is_last {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, told)
        .await
        .expect("it is said");
    let first = said
        .iter()
        .position(|line| line.starts_with('❌'))
        .expect("the lines of V17");
    assert_eq!(
        said[first],
        "❌ Failed to initialize MCP tools after 3 attempts"
    );
    assert_eq!(
        said[first + 1],
        "   Reason: Connection to stdio server 'broken' failed"
    );
    assert!(
        said.iter()
            .any(|line| line.starts_with("⚠️ Continuing with local tools only (")),
        "{said:#?}"
    );
    let told_once = said
        .iter()
        .filter(|line| line.contains("No module named 'mcp'"));
    assert_eq!(told_once.count(), 1, "{said:#?}");
    assert!(
        said.iter().any(|line| line.starts_with("   step      ")),
        "{said:#?}"
    );
    process.kill().await.expect("it ran");
}

#[tokio::test(flavor = "multi_thread")]
async fn t03_a_server_that_ends_again_and_again_is_a_problem_everywhere_although_it_is_up() {
    let workplace = Workplace::with_config(&named("flappy", "0", "search"));
    let arguments = ["serve", "--plain", "--listen", "127.0.0.1:0"];
    let mut process = crate::serve::program(&workplace, &arguments);
    let mut process = process.spawn().expect("the program starts");
    use tokio::io::{AsyncBufReadExt, BufReader};
    let mut stderr = BufReader::new(process.stderr.take().expect("a pipe")).lines();
    let command = async |words: &str| {
        let command = workplace.command(&words.split(' ').collect::<Vec<_>>());
        let run = tokio::task::spawn_blocking(move || parts(&command.assert()));
        run.await.expect("it ran")
    };
    let mut told = Vec::new();
    for death in 1..=3 {
        until(&format!("death {death}"), async || {
            let (_, _, _) = command("call flappy_die").await;
            let (_, stdout, _) = command("mcp list --json").await;
            let listed: Value = serde_json::from_str(&stdout).unwrap_or_default();
            listed["servers"][0]["deaths"].as_u64() >= Some(death)
        })
        .await;
    }
    let heard = async {
        while let Ok(Some(line)) = stderr.next_line().await {
            let is_it = line.contains("unstable");
            told.push(line);
            if is_it {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, heard)
        .await
        .expect("it is told");
    let line = told.last().expect("a line");
    assert!(
        line.contains("! flappy  unstable: it ended ") && line.contains("FATAL: out of cheese"),
        "{told:#?}"
    );
    until("it is up again", async || {
        let (_, stdout, _) = command("mcp list --json").await;
        stdout.contains("\"phase\":\"running\"")
    })
    .await;
    let (code, stdout, stderr) = command("mcp list").await;
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("unstable"), "{stdout}");
    assert!(
        stderr.contains("flappy is unstable: it ended ") && stderr.contains("FATAL"),
        "{stderr}"
    );
    let (_, stdout, _) = command("doctor").await;
    assert!(
        stdout.contains("unstable") && stdout.contains("FATAL: out of cheese"),
        "{stdout}"
    );
    let (_, stdout, _) = command("mcp list --json").await;
    assert!(
        stdout.contains("\"last_death\":\"exited with code 3"),
        "{stdout}"
    );
    process.kill().await.expect("it ran");
}

#[tokio::test(flavor = "multi_thread")]
async fn t03_the_overview_names_a_server_that_ends_again_and_again() {
    let served = Served::with_config(&named("flappy", "0", "search")).await;
    for death in 1..=3 {
        until(&format!("death {death}"), async || {
            let die = json!({"name": "flappy_die", "args": {}});
            served.post("/v1/calls", die).await;
            server(&served, "flappy").await["deaths"].as_u64() >= Some(death)
        })
        .await;
    }
    phase_is(&served, "flappy", "running").await;
    let overview = served.get("/v1/overview").await.json();
    let problems = overview["problems"].as_array().expect("problems");
    let flappy = problems
        .iter()
        .find(|problem| problem["subject"] == "flappy");
    let message = flappy.expect("a problem")["message"]
        .as_str()
        .unwrap_or_default();
    assert!(
        message.starts_with("is unstable: it ended ")
            && message.contains("exited with code 3; its last words: FATAL: out of cheese"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_required_and_does_not_start_ends_it() {
    let config = hostile("needed", "exit1_before_init") + "required = true\n";
    let served = Served::with_config(&config).await;
    let (code, stderr) = served.ended().await;
    assert_eq!(code, Some(4), "{stderr}");
    assert!(
        stderr.contains("needed is required, and did not start"),
        "{stderr}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_itself_is_refused_and_says_so() {
    let tool = "[tools.ping]\nkind = \"mock\"\nmock_response = \"pong\"\n";
    let served = Served::with_config(tool).await;
    for protocol in ["auto", "legacy"] {
        let me = format!(
            "{tool}\n[mcp.me]\nurl = \"http://{}/mcp\"\nprotocol = \"{protocol}\"\n",
            served.address
        );
        served.workplace.write("steadyhand.toml", &me);
        until(&format!("it knows itself ({protocol})"), async || {
            let listed = served.get("/v1/servers").await.text;
            listed.contains("this is Steadyhand itself")
        })
        .await;
        let tools = served.get("/v1/tools").await.json();
        let names = tools["tools"].as_array().expect("tools").iter();
        let names: Vec<&Value> = names.map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["ping"]);
        served.workplace.write("steadyhand.toml", tool);
        until("it is gone", async || {
            !served.get("/v1/servers").await.text.contains("\"me\"")
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_of_a_configuration_hides_the_first_only_while_it_runs() {
    let tool = "[tools.ping]\nkind = \"mock\"\nmock_response = \"pong\"\n";
    let first = Served::with_config(tool).await;
    let second = Served::in_place(first.workplace.shared()).await;
    let at = |served: &Served| format!("Using the server at {}", served.address);
    let (_, _, stderr) = run(&first, "call ping").await;
    assert!(stderr.contains(&at(&second)), "{stderr}");
    second.signal(rustix::process::Signal::TERM);
    second.left().await;
    let (_, _, stderr) = run(&first, "call ping").await;
    assert!(stderr.contains(&at(&first)), "{stderr}");
}
