//! The official conformance suite against the gateway, with a server of our own behind it.

use std::process::Stdio;

use tokio::process::Command;
use tokio::time::timeout;

use super::{gateway, peer};
use crate::serve::Served;
use crate::support::PATIENCE;

/// Runs the scored scenarios of a version; all must pass, and so many there must be.
async fn conforms(served: &Served, version: &str, scored: usize) {
    let suite = peer("conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let results = served.workplace.file("results");
    let run = Command::new(peer("conformance/bin/node"))
        .arg(suite)
        .args(["server", "--url", &format!("http://{}/mcp", served.address)])
        .args(["--requirements", version, "-o"])
        .arg(&results)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let run = timeout(PATIENCE * 5, run)
        .await
        .expect("it ends in time")
        .expect("it runs");
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    println!("{said}");
    assert!(
        run.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let (_, summary) = said.split_once("=== SUMMARY ===").expect("a summary");
    let (all, rest) = summary.split_once("Total:").expect("a total");
    let all = all
        .lines()
        .filter(|line| line.starts_with(['✓', '✗']))
        .count();
    let (_, rest) = rest
        .split_once(&format!("Not scored for {version}: "))
        .expect("what is not scored");
    let others: usize = rest
        .split(' ')
        .next()
        .and_then(|count| count.parse().ok())
        .expect("a number");
    assert_eq!(all - others, scored, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_all_scored_scenarios_of_2025_11_25_pass() {
    let served = gateway("").await;
    conforms(&served, "2025-11-25", 30).await;
}
#[tokio::test(flavor = "multi_thread")]
async fn v05_all_scored_scenarios_of_2026_07_28_pass() {
    let served = gateway("").await;
    conforms(&served, "2026-07-28", 37).await;
}
