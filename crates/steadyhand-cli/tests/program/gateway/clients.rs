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
fn script(workplace: &Workplace, name: &str) -> PathBuf {
    let own =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/gateway/clients");
    let path = workplace.file(name);
    std::fs::copy(own.join(name), &path).expect("a copy");
    path
}

/// Runs a client; what it prints is JSON.
async fn run(workplace: &Workplace, program: PathBuf, words: &[String]) -> Value {
    let node = peer("conformance/bin");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(&program)
        .args(words)
        .current_dir(workplace.path())
        .env("HOME", workplace.path())
        .env("PATH", format!("{}:{path}", node.display()))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(PATIENCE * 3, output)
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

/// A row of the table that `scripts/gateway-tables` prints.
#[allow(clippy::print_stdout)]
fn print(client: &str, way: &[String], version: &str, done: &str) {
    let way = match way[0].starts_with("http") {
        true => "/mcp",
        false => "mcp-stdio",
    };
    println!("\nclient-row|{client}|{way}|{version}|{done}");
}

/// Runs a script of ours both ways, each time with these words first.
async fn check_both(program: &str, name: &str, first: &[&str]) -> Vec<Value> {
    let (served, ways) = both_ways().await;
    let script = script(&served.workplace, name).display().to_string();
    let mut all = Vec::new();
    for way in ways {
        let mut words = vec![script.clone()];
        words.extend(first.iter().map(|word| (*word).to_owned()));
        words.extend(way.clone());
        let said = run(&served.workplace, peer(program), &words).await;
        check(&said, &way[0]);
        let also = [
            ("steps", ", progress"),
            ("prompt", ", prompt"),
            ("resource", ", resource"),
        ];
        let also = also.iter().filter(|(member, _)| said.get(member).is_some());
        let also: String = also.map(|(_, word)| *word).collect();
        let text = |member: &str| said[member].as_str().expect("a text").to_owned();
        print(
            &text("client"),
            &way,
            &text("version"),
            &format!("list, call{also}"),
        );
        all.push(said);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_the_sdk_for_typescript_1_lists_and_calls() {
    for said in check_both("conformance/bin/node", "sdk1.mjs", &[]).await {
        assert_eq!(said["server"], "steadyhand");
        assert_eq!(said["version"], "2025-11-25");
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
    for (mode, version) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        for said in check_both("mcp-py/bin/python", "python_sdk.py", &[mode]).await {
            assert_eq!(said["version"], version);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_the_client_of_fastmcp_lists_and_calls() {
    check_both("fastmcp/bin/python", "fastmcp_client.py", &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_the_adapters_of_langchain_list_and_call() {
    check_both("langchain-mcp/bin/python", "langchain_adapters.py", &[]).await;
}

/// Nothing is known of the server yet, and the client keeps its first list for ever.
#[tokio::test(flavor = "multi_thread")]
async fn v16_the_adapters_of_langchain_list_all_tools_on_a_fresh_state() {
    let workplace = Workplace::with_config(&format!("{ECHO}{}", fixture("")));
    let script = script(&workplace, "langchain_adapters.py");
    let program = env!("CARGO_BIN_EXE_steadyhand");
    let words = [&script.display().to_string(), program, "mcp-stdio"].map(str::to_owned);
    let said = run(&workplace, peer("langchain-mcp/bin/python"), &words).await;
    check(&said, "a fresh state");
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_the_inspector_lists_and_calls_in_both_eras() {
    let (served, ways) = both_ways().await;
    let inspector = peer("mcp-clients/node_modules/.bin/mcp-inspector");
    let package = peer("mcp-clients/node_modules/@modelcontextprotocol/inspector/package.json");
    let package = std::fs::read_to_string(package).expect("its package");
    let package: Value = serde_json::from_str(&package).expect("JSON");
    let client = format!(
        "Inspector CLI {}",
        package["version"].as_str().expect("a version")
    );
    for way in &ways {
        for (era, version) in [("legacy", "2025-11-25"), ("modern", "2026-07-28")] {
            let ask = async |more: &[&str]| {
                let mut words: Vec<String> =
                    ["--cli", "--format", "json", "-q", "--protocol-era", era]
                        .map(str::to_owned)
                        .to_vec();
                words.extend(way.clone());
                words.extend(more.iter().map(|word| (*word).to_owned()));
                run(&served.workplace, inspector.clone(), &words).await
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
            print(&client, way, version, "list, call");
        }
    }
}
