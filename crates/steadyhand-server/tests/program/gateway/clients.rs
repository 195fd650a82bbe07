//! Real clients through us, over HTTP and on stdio: each lists and calls.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use super::{fixture, peer, up};
use crate::serve::Served;
use crate::support::{PATIENCE, Workplace};

const ECHO: &str = "[tools.echo]\nkind = \"builtin\"\nuse = \"echo\"\n";

/// A gateway over HTTP, and the words that start one on stdio from the same folder: what is known of the server by
/// then is kept there.
async fn both_ways() -> (Served, [Vec<String>; 2]) {
    let served = up(Workplace::with_config(&format!("{ECHO}{}", fixture("")))).await;
    let folder = served.workplace.path();
    let packages = peer("mcp-clients/node_modules");
    std::os::unix::fs::symlink(packages, folder.join("node_modules")).expect("a link");
    let program = env!("CARGO_BIN_EXE_steadyhand").to_owned();
    let http = vec![format!("http://{}/mcp", served.address)];
    // Clients are run in the folder of the configuration, and so is what they start.
    let stdio = vec![program, "mcp-stdio".to_owned()];
    (served, [http, stdio])
}

/// A script of ours, where it finds its packages.
fn script(served: &Served, name: &str) -> PathBuf {
    let own =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/gateway/clients");
    let path = served.workplace.file(name);
    std::fs::copy(own.join(name), &path).expect("a copy");
    path
}

/// Runs a client; what it prints is JSON.
async fn run(served: &Served, program: PathBuf, words: &[String]) -> Value {
    let node = peer("conformance/bin");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(&program)
        .args(words)
        .current_dir(served.workplace.path())
        .env("HOME", served.workplace.path())
        .env("PATH", format!("{}:{path}", node.display()))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(PATIENCE, output)
        .await
        .expect("it ends in time")
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success(),
        "{program:?} {words:?}\n{said}\n{stderr}"
    );
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}\n{stderr}"))
}

/// What every client must have seen.
fn check(said: &Value, how: &str) {
    let tools = said["tools"].as_array().expect("tools");
    for name in ["echo", "test_simple_text", "test_sampling"] {
        assert!(
            tools.iter().any(|tool| tool == name),
            "{how}: no {name} in {said}"
        );
    }
    assert_eq!(
        said["text"], "This is a simple text response for testing.",
        "{how}"
    );
    assert_eq!(said["echoed"], json!({"echo": {"word": "hi"}}), "{how}");
    if let Some(steps) = said.get("steps") {
        assert_eq!(*steps, json!([0, 50, 100]), "{how}");
    }
    if let Some(prompt) = said.get("prompt") {
        assert_eq!(prompt, "This is a simple prompt for testing.", "{how}");
    }
    if let Some(resource) = said.get("resource") {
        assert_eq!(
            resource, "This is the content of the static text resource.",
            "{how}"
        );
    }
}

/// Runs a script of ours both ways, each time with these words first.
async fn check_both(program: &str, name: &str, first: &[&str]) -> Vec<Value> {
    let (served, ways) = both_ways().await;
    let script = script(&served, name).display().to_string();
    let mut all = Vec::new();
    for way in ways {
        let mut words = vec![script.clone()];
        words.extend(first.iter().map(|word| (*word).to_owned()));
        words.extend(way.clone());
        let said = run(&served, peer(program), &words).await;
        check(&said, &way[0]);
        all.push(said);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_the_sdk_for_typescript_1_lists_and_calls() {
    for said in check_both("conformance/bin/node", "sdk1.mjs", &[]).await {
        assert_eq!(said["server"], "steadyhand");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_the_sdk_for_typescript_2_lists_and_calls_in_both_eras() {
    for said in check_both("conformance/bin/node", "sdk2.mjs", &["auto"]).await {
        assert_eq!(said["version"], "2026-07-28");
    }
    for said in check_both("conformance/bin/node", "sdk2.mjs", &["legacy"]).await {
        assert_eq!(said["version"], "2025-11-25");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_the_sdk_for_python_lists_and_calls_in_both_eras() {
    check_both("mcp-py/bin/python", "python_sdk.py", &["auto"]).await;
    check_both("mcp-py/bin/python", "python_sdk.py", &["legacy"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_the_client_of_fastmcp_lists_and_calls() {
    check_both("fastmcp/bin/python", "fastmcp_client.py", &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_the_adapters_of_langchain_list_and_call() {
    check_both("langchain-mcp/bin/python", "langchain_adapters.py", &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_the_inspector_lists_and_calls_in_both_eras() {
    let (served, ways) = both_ways().await;
    let inspector = peer("mcp-clients/node_modules/.bin/mcp-inspector");
    for way in &ways {
        for era in ["legacy", "modern"] {
            let ask = async |more: &[&str]| {
                let mut words: Vec<String> =
                    ["--cli", "--format", "json", "-q", "--protocol-era", era]
                        .map(str::to_owned)
                        .to_vec();
                words.extend(way.clone());
                words.extend(more.iter().map(|word| (*word).to_owned()));
                run(&served, inspector.clone(), &words).await
            };
            let listed = ask(&["--method", "tools/list"]).await;
            let listed = listed.to_string();
            assert!(
                listed.contains("test_simple_text") && listed.contains("\"echo\""),
                "{listed}"
            );
            let called = ask(&["--method", "tools/call", "--tool-name", "test_simple_text"]).await;
            let called = called.to_string();
            assert!(
                called.contains("This is a simple text response for testing."),
                "{called}"
            );
        }
    }
}
