//! The client legs of the official conformance suite, through a driver that uses our client
//! (`examples/conformance_client.rs`): every scenario that is scored, in both eras.

use std::process::Stdio;

use tokio::process::Command;
use tokio::time::timeout;

use crate::support::{PATIENCE, example, peer};

/// Runs the suite; what it printed, and whether it is content.
async fn suite(words: &[&str]) -> (bool, String) {
    let suite = peer("conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let run = Command::new(peer("conformance/bin/node"))
        .arg(suite)
        .args(words)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let run = timeout(PATIENCE * 2, run).await;
    let run = run.expect("it ends in time").expect("it runs");
    let said = [run.stdout, run.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (run.status.success(), said)
}

/// The scenarios that a version scores of a client.
async fn scored(version: &str) -> Vec<String> {
    let (is_ok, said) = suite(&["list", "--requirements", version]).await;
    assert!(is_ok, "{said}");
    let (_, rest) = said.split_once("Client scenarios").expect("of clients");
    let names = rest
        .lines()
        .skip(1)
        .map_while(|line| line.trim().strip_prefix("- "));
    names.map(str::to_owned).collect()
}

#[allow(clippy::print_stdout)]
async fn conforms(version: &str, expected: usize) {
    let ours = scored(version).await;
    assert_eq!(ours.len(), expected, "{ours:?}");
    let driver = example("conformance_client").display().to_string();
    let mut failed = Vec::new();
    for name in &ours {
        let words = ["client", "--command", &driver, "--scenario", name];
        let (is_ok, said) = suite(&[&words[..], &["--spec-version", version]].concat()).await;
        // A run that checked nothing would be no pass.
        if !is_ok || !said.contains("Passed: ") || said.contains("Passed: 0/") {
            failed.push(format!("{name}:\n{said}"));
        }
    }
    let passed = ours.len() - failed.len();
    let auth = ours.iter().filter(|name| name.starts_with("auth/")).count();
    println!(
        "\nconformance-row|client|{version}|{passed}|{expected}|{expected}|{auth} of them log in by OAuth"
    );
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[tokio::test]
async fn v16_the_scored_client_scenarios_of_2025_11_25_pass() {
    conforms("2025-11-25", 18).await;
}

#[tokio::test]
async fn v16_the_scored_client_scenarios_of_2026_07_28_pass() {
    conforms("2026-07-28", 32).await;
}
