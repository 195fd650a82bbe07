//! Commands use the server of the same configuration, where one runs.

use serde_json::json;

use super::{Served, TOOLS, runs};
use crate::support::{Workplace, parts};

#[tokio::test]
async fn r14_commands_talk_to_the_server_of_the_same_configuration() {
    let served = Served::start().await;
    let workplace = &served.workplace;
    let using = format!("Using the server at {}\n", served.address);

    let (code, stdout, stderr) = parts(&workplace.run("call weather city=Oslo"));
    assert_eq!((code, stdout.as_str()), (0, "sky\train\n"), "{stderr}");
    assert!(stderr.starts_with(&using), "{stderr}");
    let (_, _, stderr) = parts(&workplace.run("-q call weather city=Oslo"));
    assert_eq!(stderr, "");
    let (code, _, stderr) = parts(&workplace.run("--local call weather city=Oslo"));
    assert_eq!(code, 0);
    assert!(!stderr.contains("Using the server"), "{stderr}");
    let metrics = workplace.json("metrics weather --json");
    assert_eq!(metrics["totalExecutions"], 2);
    let (_, stdout, _) = parts(&workplace.run("metrics"));
    let row = stdout.lines().find(|line| line.starts_with("weather\t"));
    assert!(
        row.is_some_and(|row| row.starts_with("weather\t2\t2\t0\t0\t0.0 %")),
        "{stdout}"
    );

    // Failures mean the same as without a server.
    let (code, _, stderr) = parts(&workplace.run("call weather"));
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("weather was not run: 1 argument does not fit"),
        "{stderr}"
    );
    let (code, _, stderr) = parts(&workplace.run("call wether city=Oslo"));
    assert_eq!(code, 5, "{stderr}");
    assert!(stderr.contains("Did you mean weather?"), "{stderr}");
    for (arguments, expected) in [
        ("call ill --json", 4),
        ("call ill --json --view flat", 4),
        ("call ill --json --view message", 7),
        ("call slow --deadline 50ms", 6),
    ] {
        let (code, _, stderr) = parts(&workplace.run(arguments));
        assert_eq!(code, expected, "{arguments}: {stderr}");
    }
    let (_, stdout, _) = parts(&workplace.run("tools show ill"));
    assert!(
        stdout.contains("The breaker of ill is open after ")
            && stdout.contains(" is a trial. To close it now: steadyhand tools reset ill"),
        "{stdout}"
    );
    let (code, stdout, stderr) = parts(&workplace.run("tools reset ill"));
    assert_eq!(
        (code, stdout.as_str()),
        (0, "ill: its breaker is closed\n"),
        "{stderr}"
    );
    let shown = workplace.json("tools show ill --json");
    assert_eq!(shown["breaker"]["state"], "closed");
    assert_eq!(shown["metrics"]["errorCount"], 2);
    assert_eq!(workplace.json("tools list --json")["count"], 6);
    let (code, _, stderr) = parts(&workplace.run("tools show il"));
    assert_eq!(code, 5, "{stderr}");
}

#[tokio::test]
async fn r10_r14_a_batch_runs_in_the_server_or_here_with_the_same_answer() {
    let served = Served::start().await;
    let workplace = &served.workplace;
    workplace.write(
        "list.json",
        r#"[{"name": "weather", "args": {"city": "Oslo"}}, {"name": "echo", "id": "e1"}]"#,
    );
    workplace.write(
        "lines.jsonl",
        "{\"name\": \"echo\", \"args\": {\"n\": 1}}\n\n{\"name\": \"ill\"}\n",
    );
    workplace.write(
        "wrong.json",
        r#"{"calls": [{"name": "echo"}, {"args": {}}]}"#,
    );
    for local in ["", "--local "] {
        let answer = workplace.json(&format!("{local}batch list.json --json"));
        assert_eq!(answer["outcomes"][0]["output"], json!({"sky": "rain"}));
        assert_eq!(answer["outcomes"][1]["callId"], "e1");
        let (code, stdout, stderr) = parts(&workplace.run(&format!("{local}batch lines.jsonl")));
        assert_eq!(code, 4, "{stderr}");
        assert!(
            stdout.starts_with("echo\t{\"echo\":{\"n\":1}}\t"),
            "{stdout}"
        );
        assert!(stdout.contains("\nill\tNETWORK_ERROR: "), "{stdout}");
        assert!(stderr.contains("2 calls, 1 failed"), "{stderr}");
        let answer = workplace.json(&format!("{local}batch wrong.json --json"));
        assert_eq!(answer["outcomes"][0]["status"], "success");
        let nameless = &answer["outcomes"][1]["error"];
        assert_eq!(nameless["code"], "VALIDATION_ERROR", "{answer}");
        assert_eq!(nameless["effect"], "none", "{answer}");
        let message = nameless["message"].as_str().unwrap_or_default();
        assert!(message.contains("name is missing"), "{message}");
        let (code, stdout, stderr) = parts(&workplace.run(&format!("{local}batch wrong.json")));
        assert_eq!(code, 2, "{stdout} {stderr}");
        assert!(stderr.contains("2 calls, 1 failed"), "{stderr}");
    }
}

#[tokio::test]
async fn r14_past_calls_are_listed_shown_repeated_written_out_and_running_ones_ended() {
    let served = Served::start().await;
    let workplace = &served.workplace;
    workplace.run("call weather city=Oslo --id w1").code(0);
    workplace.run("call once --id o1").code(0);
    let listed = workplace.json("calls list tool:weather --json");
    assert_eq!(listed["calls"][0]["id"], "w1");
    assert_eq!(listed["calls"][0]["caller"], "cli");
    let (code, stdout, _) = parts(&workplace.run("calls"));
    assert_eq!(code, 0);
    assert!(
        stdout.lines().any(|line| line.ends_with("\tw1")),
        "{stdout}"
    );
    let (code, stdout, stderr) = parts(&workplace.run("calls show w1"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("Arguments\n  city\tOslo"), "{stdout}");
    assert!(stdout.contains("Where the time went"), "{stdout}");
    let (code, stdout, stderr) = parts(&workplace.run("calls replay w1"));
    assert_eq!((code, stdout.as_str()), (0, "sky\train\n"), "{stderr}");
    let (code, _, stderr) = parts(&workplace.run("calls replay o1"));
    assert_eq!(code, 7, "{stderr}");
    assert!(stderr.contains("--force"), "{stderr}");
    workplace.run("calls replay o1 --force").code(0);
    let (code, stdout, _) = parts(&workplace.run("calls export tool:weather"));
    assert_eq!(code, 0);
    assert_eq!(stdout.lines().count(), 2, "{stdout}");
    for line in stdout.lines() {
        let record: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        assert_eq!(record["tool"], "weather");
    }
    let (code, _, stderr) = parts(&workplace.run("calls list colour:red"));
    assert_eq!(code, 2, "{stderr}");
    let (code, _, stderr) = parts(&workplace.run("calls show nothing"));
    assert_eq!(code, 5, "{stderr}");

    let mut calling = super::program(workplace, &["call", "slow", "--id", "s1"]);
    let calling = calling.spawn().expect("it starts");
    runs(&served, "slow").await;
    let (code, stdout, stderr) = parts(&workplace.run("calls cancel s1"));
    assert_eq!(
        (code, stdout.as_str()),
        (0, "s1 is being ended\n"),
        "{stderr}"
    );
    let ended = tokio::time::timeout(crate::support::PATIENCE, calling.wait_with_output()).await;
    let ended = ended.expect("it ends").expect("its output");
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(stderr.contains("slow was cancelled"), "{stderr}");
    assert_eq!(ended.status.code(), Some(130));
    let (code, _, stderr) = parts(&workplace.run("calls cancel s1"));
    assert_eq!(code, 7, "{stderr}");
}

#[tokio::test]
async fn past_calls_can_be_read_when_no_server_runs_any_more() {
    let served = Served::start().await;
    served
        .workplace
        .run("call weather city=Oslo --id w1")
        .code(0);
    served.signal(rustix::process::Signal::INT);
    let workplace = served.stopped().await;
    let listed = workplace.json("calls list --json");
    assert_eq!(listed["calls"][0]["id"], "w1");
    workplace.run("calls show w1").code(0);
    workplace.run("calls replay w1").code(0);
    let (code, stdout, _) = parts(&workplace.run("calls export"));
    assert_eq!(code, 0);
    assert!(stdout.lines().count() >= 1, "{stdout}");
    let (code, _, stderr) = parts(&workplace.run("calls cancel w1"));
    assert_eq!(code, 4, "{stderr}");
}

#[tokio::test]
async fn a_server_that_was_killed_is_not_looked_for_twice() {
    let served = Served::start().await;
    let workplace = served.killed().await;
    let servers = workplace.file(".local/state/steadyhand/servers");
    let files = || std::fs::read_dir(&servers).expect("a folder").count();
    assert_eq!(files(), 1);
    let (code, stdout, stderr) = parts(&workplace.run("call weather city=Oslo"));
    assert_eq!((code, stdout.as_str()), (0, "sky\train\n"));
    assert!(!stderr.contains("Using the server"), "{stderr}");
    assert_eq!(files(), 0);
}

#[tokio::test]
async fn a_server_of_another_configuration_is_not_used() {
    let served = Served::start().await;
    served.workplace.write(
        "other.toml",
        "[tools.mine]\nkind = \"mock\"\nmock_response = \"mine\"\n",
    );
    let (code, stdout, stderr) = parts(&served.workplace.run("-c other.toml call mine"));
    assert_eq!((code, stdout.as_str()), (0, "mine\n"), "{stderr}");
    assert!(!stderr.contains("Using the server"), "{stderr}");
}

#[tokio::test]
async fn commands_show_the_token_of_the_configuration() {
    let mut workplace = Workplace::with_config(&format!(
        "[server]\ntoken = \"${{env:TOKEN_OF_TEST}}\"\n{TOOLS}"
    ));
    workplace.set("TOKEN_OF_TEST", "one-two-three-four");
    let served = Served::in_place(workplace).await;
    let (code, stdout, stderr) = parts(&served.workplace.run("call weather city=Oslo"));
    assert_eq!((code, stdout.as_str()), (0, "sky\train\n"), "{stderr}");
    assert!(stderr.contains("Using the server"), "{stderr}");
}

#[tokio::test]
async fn an_interrupt_of_a_command_ends_its_call_in_the_server() {
    let served = Served::start().await;
    let mut calling = super::program(&served.workplace, &["call", "slow", "--id", "s1"]);
    let calling = calling.spawn().expect("it starts");
    runs(&served, "slow").await;
    let pid = rustix::process::Pid::from_raw(calling.id().expect("it runs") as i32);
    rustix::process::kill_process(pid.expect("a process"), rustix::process::Signal::INT)
        .expect("it runs");
    let ended = tokio::time::timeout(crate::support::PATIENCE, calling.wait_with_output()).await;
    let ended = ended.expect("it ends").expect("its output");
    assert_eq!(ended.status.code(), Some(130));
    let metrics = served.get("/v1/metrics/slow").await.json();
    assert_eq!(metrics["cancelled"], 1);
}
