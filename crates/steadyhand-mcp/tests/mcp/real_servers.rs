//! The MCP project's own servers, installed from npm and PyPI: listed, called, refused by, killed and started again.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::FailureCode::{ToolExecutionError, ValidationError};
use steadyhand::{Call, Effect};
use steadyhand_mcp::{CamelCase, Phase};

use crate::support::{Folder, Stage, Watched, failure, peer, set, text, until, value};

fn npm(server: &str) -> std::path::PathBuf {
    peer(&format!("mcp-npm/node_modules/.bin/mcp-server-{server}"))
}

async fn everything() -> Stage {
    let folder = Folder::new();
    let settings = folder.program("everything", &npm("everything"), []);
    up(Stage::with(folder, settings).await)
}

async fn filesystem(camel_case: CamelCase) -> Stage {
    let folder = Folder::new();
    std::fs::write(folder.path("note.txt"), "hello world\n").expect("a file");
    let mut settings = folder.program("filesystem", &npm("filesystem"), [folder.mark.clone()]);
    settings.camel_case = camel_case;
    up(Stage::with(folder, settings).await)
}

fn up(stage: Stage) -> Stage {
    let state = stage.server.state();
    let why = state.failure.map(|failure| failure.detail());
    assert_eq!(state.phase, Phase::Running, "{}", why.unwrap_or_default());
    stage
}

/// Killed, it is started again, and the very next call works.
async fn assert_survives_a_kill(stage: &Stage, tool: &str, args: Value) {
    let before = stage.text_shown(tool, &args).await;
    let pid = stage.server.state().pid.expect("it runs");
    kill(pid);
    until("its end is noticed", || stage.server.state().deaths == 1).await;
    assert_eq!(stage.text_shown(tool, &args).await, before);
    let after = stage.server.state();
    assert_eq!((after.phase, after.starts), (Phase::Running, 2));
    assert_ne!(after.pid, Some(pid));
}

/// Only ever a process of a server of this test.
fn kill(pid: u32) {
    let status = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(status.expect("kill runs").success());
}

fn names(stage: &Stage) -> Vec<String> {
    let tools = stage.executor.tools().list();
    tools.iter().map(|tool| tool.name().to_owned()).collect()
}

#[tokio::test]
async fn v05_everything_lists_all_its_tools_in_its_order() {
    let stage = everything().await;
    let names = names(&stage);
    // The one that runs only as a task is not offered.
    assert_eq!(names.len(), 12, "{names:?}");
    assert_eq!(&names[..3], ["echo", "get-annotated-message", "get-env"]);
    let unusable = stage.server.unusable();
    assert_eq!(unusable.len(), 1, "{unusable:?}");
    assert_eq!(unusable[0].name, "simulate-research-query");
    stage.over().await;
}

#[tokio::test]
async fn d7_everything_texts_images_resources_and_structured_content_come_whole() {
    let stage = everything().await;
    let echo = stage.call("echo", json!({"message": "hi"})).await;
    assert_eq!(value(&echo), "Echo: hi");

    let image = stage.call("get-tiny-image", json!({})).await;
    let part = &value(&image)[1];
    assert_eq!(
        (&part["type"], &part["mimeType"]),
        (&json!("image"), &json!("image/png"))
    );
    assert!(
        part["data"]
            .as_str()
            .expect("base64")
            .starts_with("iVBORw0KGgo")
    );
    let shown = image.output().expect("an output").text();
    assert!(shown.contains("[image image/png, "), "{shown}");

    let links = stage.call("get-resource-links", json!({"count": 2})).await;
    let kinds: Vec<&Value> = value(&links)
        .as_array()
        .expect("parts")
        .iter()
        .map(|part| &part["type"])
        .collect();
    assert_eq!(kinds, ["text", "resource_link", "resource_link"]);
    assert_eq!(value(&links)[1]["uri"], "demo://resource/dynamic/blob/1");

    let args = json!({"resourceType": "Text", "resourceId": 1});
    let resource = stage.call("get-resource-reference", args).await;
    assert_eq!(value(&resource)[1]["resource"]["mimeType"], "text/plain");

    let weather = stage
        .call("get-structured-content", json!({"location": "New York"}))
        .await;
    let fields: Vec<&String> = value(&weather)
        .as_object()
        .expect("an object")
        .keys()
        .collect();
    assert_eq!(
        fields,
        ["temperature", "conditions", "humidity"],
        "in the server's order"
    );

    let annotated = stage
        .call("get-annotated-message", json!({"messageType": "error"}))
        .await;
    assert_eq!(value(&annotated), "Error: Operation failed");
    let artifact = annotated.output().and_then(|output| output.artifact());
    assert_eq!(
        artifact.expect("the whole")["content"][0]["annotations"]["priority"],
        1
    );
    stage.over().await;
}

#[tokio::test]
async fn v07_everything_tells_its_progress_which_extends_its_time() {
    let stage = everything().await;
    let watched = Watched::of(&stage.executor);
    // Longer than its time limit, with a sign of life every 300 ms.
    let args = json!({"duration": 6, "steps": 20});
    let call = Call::new("trigger-long-running-operation", args).timeout(Duration::from_secs(4));
    let outcome = stage.run(call).await;
    assert!(text(&outcome).contains("completed"), "{}", text(&outcome));
    until("the last step is told", || {
        watched.progress().last() == Some(&(20.0, Some(20.0)))
    })
    .await;
    assert_eq!(outcome.attempts, 1);
    stage.over().await;
}

#[tokio::test]
async fn v07_everything_is_cancelled_when_its_time_is_up_and_goes_on_serving() {
    let stage = everything().await;
    let args = json!({"duration": 50, "steps": 1});
    let call =
        Call::new("trigger-long-running-operation", args).timeout(Duration::from_millis(500));
    let outcome = stage.run(call.no_retry()).await;
    let (code, effect, _) = failure(&outcome);
    assert_eq!(
        (code, effect),
        (steadyhand::FailureCode::Timeout, Effect::Unknown)
    );
    stage.assert_echo("Echo: still there").await;
    assert_eq!(
        stage.server.state().starts,
        1,
        "it answers ping, so it is left alone"
    );
    stage.over().await;
}

#[tokio::test]
async fn d8_everything_says_no_in_its_own_words() {
    let stage = everything().await;
    let args = json!({"resourceType": "Text", "resourceId": -1});
    let outcome = stage.call("get-resource-reference", args).await;
    let words = "Invalid resourceId: -1. Must be a finite positive integer.";
    assert_eq!(failure(&outcome), (ToolExecutionError, Effect::Done, words));
    assert_eq!(outcome.attempts, 1, "an answer is not asked for twice");

    let outcome = stage.call("get-sum", json!({"a": "x", "b": 1})).await;
    assert_eq!(failure(&outcome).0, ValidationError);
    stage.over().await;
}

#[tokio::test]
async fn d17_everything_survives_a_kill_and_a_restart() {
    let stage = everything().await;
    assert_survives_a_kill(&stage, "echo", json!({"message": "hi"})).await;
    stage.server.restart();
    until("it is up again", || {
        let state = stage.server.state();
        state.starts == 3 && state.phase == Phase::Running
    })
    .await;
    stage.assert_echo("Echo: still there").await;
    stage.over().await;
}

#[tokio::test]
async fn v16_only_the_configured_and_the_usual_variables_reach_a_server() {
    let folder = Folder::new();
    let mut settings = folder.program("everything", &npm("everything"), []);
    set(&mut settings, "GREETING", "hello");
    let stage = up(Stage::with(folder, settings).await);
    let variables = stage.json("get-env", json!({})).await;
    let mut names: Vec<&str> = variables
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(variables["GREETING"], "hello");
    let usual = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
    let ours = ["GREETING", "STEADYHAND_TEST_MARK", "STEADYHAND_RUN"];
    names.retain(|name| !usual.contains(name) && !ours.contains(name));
    // A shell that starts the program adds its own.
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    assert!(names.is_empty(), "{names:?}");
    stage.over().await;
}

#[tokio::test]
async fn v13_filesystem_gets_nested_names_as_its_schema_declares_them() {
    let stage = filesystem(CamelCase::Auto).await;
    let path = stage.folder.path("note.txt");
    let edits = json!([{"old_text": "hello", "new_text": "bye"}]);
    let args = json!({"path": path, "edits": edits, "dry_run": true});
    let outcome = stage.call("edit_file", args).await;
    let diff = outcome.output().expect("an output").text();
    assert!(diff.contains("-hello world\n+bye world"), "{diff}");
    assert_eq!(
        stage.folder.text("note.txt"),
        "hello world\n",
        "dry_run was understood"
    );

    let args = json!({"path": path, "edits": edits});
    value(&stage.call("edit_file", args).await);
    assert_eq!(stage.folder.text("note.txt"), "bye world\n");
    stage.over().await;
}

#[tokio::test]
async fn v13_filesystem_refuses_the_same_names_when_they_are_left_as_they_are() {
    let stage = filesystem(CamelCase::Off).await;
    let path = stage.folder.path("note.txt");
    let edits = json!([{"old_text": "hello", "new_text": "bye"}]);
    let outcome = stage
        .call("edit_file", json!({"path": path, "edits": edits}))
        .await;
    let (code, _, words) = failure(&outcome);
    assert_eq!(code, ValidationError, "{words}");
    let problems = &outcome.failure().expect("a failure").problems;
    assert!(format!("{problems:?}").contains("oldText"), "{problems:?}");
    assert_eq!(stage.folder.text("note.txt"), "hello world\n");
    stage.over().await;
}

#[tokio::test]
async fn d8_filesystem_reads_refuses_and_survives_a_kill() {
    let stage = filesystem(CamelCase::Auto).await;
    assert_eq!(names(&stage).len(), 14);
    let args = json!({"path": stage.folder.path("note.txt")});
    let outcome = stage.call("read_text_file", args.clone()).await;
    assert_eq!(value(&outcome), &json!({"content": "hello world\n"}));

    let outcome = stage
        .call("read_text_file", json!({"path": "/etc/passwd"}))
        .await;
    let (code, effect, words) = failure(&outcome);
    assert_eq!((code, effect), (ToolExecutionError, Effect::Done));
    assert!(words.starts_with("Access denied"), "{words}");
    assert_survives_a_kill(&stage, "read_text_file", args).await;
    stage.over().await;
}

#[tokio::test]
async fn v13_memory_keeps_what_it_was_told_across_a_kill() {
    let folder = Folder::new();
    let mut settings = folder.program("memory", &npm("memory"), []);
    let file = folder.path("memory.jsonl").display().to_string();
    set(&mut settings, "MEMORY_FILE_PATH", &file);
    let stage = up(Stage::with(folder, settings).await);
    assert_eq!(names(&stage).len(), 9);

    let ada = json!({"name": "Ada", "entity_type": "person", "observations": ["likes Rust"]});
    value(
        &stage
            .call("create_entities", json!({"entities": [ada]}))
            .await,
    );
    let nobody = json!([{"entity_name": "Nobody", "contents": ["x"]}]);
    let outcome = stage
        .call("add_observations", json!({"observations": nobody}))
        .await;
    let words = "Entity with name Nobody not found";
    assert_eq!(failure(&outcome), (ToolExecutionError, Effect::Done, words));

    assert_survives_a_kill(&stage, "read_graph", json!({})).await;
    let graph = stage.call("read_graph", json!({})).await;
    assert_eq!(value(&graph)["entities"][0]["entityType"], "person");
    stage.over().await;
}

#[tokio::test]
async fn v13_sequential_thinking_takes_snake_case_and_survives_a_kill() {
    let folder = Folder::new();
    let settings = folder.program("thinking", &npm("sequential-thinking"), []);
    let stage = up(Stage::with(folder, settings).await);
    let args = json!({"thought": "a", "next_thought_needed": false, "thought_number": 1, "total_thoughts": 1});
    let outcome = stage.call("sequentialthinking", args.clone()).await;
    assert_eq!(value(&outcome)["thoughtHistoryLength"], 1);

    let outcome = stage
        .call("sequentialthinking", json!({"thought": "a"}))
        .await;
    assert_eq!(failure(&outcome).0, ValidationError);
    let pid = stage.server.state().pid.expect("it runs");
    kill(pid);
    until("its end is noticed", || stage.server.state().deaths == 1).await;
    let outcome = stage.call("sequentialthinking", args).await;
    assert_eq!(
        value(&outcome)["thoughtHistoryLength"],
        1,
        "it is a new one"
    );
    stage.over().await;
}

#[tokio::test]
async fn d5_time_gets_its_snake_case_names_unchanged() {
    let folder = Folder::new();
    let words = ["--local-timezone", "UTC"].map(str::to_owned);
    let settings = folder.program("time", &peer("mcp-py/bin/mcp-server-time"), words);
    let stage = up(Stage::with(folder, settings).await);
    assert_eq!(names(&stage), ["get_current_time", "convert_time"]);

    let args = |zone: &str| json!({"source_timezone": zone, "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let outcome = stage.call("convert_time", args("UTC")).await;
    assert_eq!(value(&outcome)["time_difference"], "+9.0h");
    let outcome = stage.call("convert_time", args("Mars/Base")).await;
    let (code, effect, words) = failure(&outcome);
    assert_eq!((code, effect), (ToolExecutionError, Effect::Done));
    assert!(
        words.contains("No time zone found with key Mars/Base"),
        "{words}"
    );
    assert_survives_a_kill(&stage, "convert_time", args("UTC")).await;
    stage.over().await;
}

#[tokio::test]
async fn d5_git_gets_its_snake_case_names_unchanged() {
    let folder = Folder::new();
    let repository = folder.path("repository");
    commit(&repository);
    let words = ["--repository".to_owned(), repository.display().to_string()];
    let settings = folder.program("git", &peer("mcp-py/bin/mcp-server-git"), words);
    let stage = up(Stage::with(folder, settings).await);
    assert_eq!(names(&stage).len(), 12);

    let args = json!({"repo_path": repository, "max_count": 1});
    let log = stage.text("git_log", args.clone()).await;
    assert!(log.contains("Message: the first one"), "{log}");
    let outcome = stage
        .call("git_status", json!({"repo_path": "/nowhere"}))
        .await;
    let (code, effect, words) = failure(&outcome);
    assert_eq!((code, effect), (ToolExecutionError, Effect::Done));
    assert!(words.contains("outside the allowed repository"), "{words}");
    assert_survives_a_kill(&stage, "git_log", args).await;
    stage.over().await;
}

fn commit(repository: &Path) {
    std::fs::create_dir(repository).expect("a folder");
    let git = |words: &[&str]| {
        let git = Command::new("git")
            .args(words)
            .current_dir(repository)
            .output();
        let git = git.expect("git is installed");
        assert!(
            git.status.success(),
            "{}",
            String::from_utf8_lossy(&git.stderr)
        );
    };
    git(&["init", "--quiet"]);
    std::fs::write(repository.join("file"), "x").expect("a file");
    git(&["add", "file"]);
    let who = ["-c", "user.name=Test", "-c", "user.email=test@localhost"];
    git(&[&who[..], &["commit", "--quiet", "-m", "the first one"]].concat());
}
