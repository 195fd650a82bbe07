//! The official conformance suite: its server legs against the gateway, with a server of our own behind it; its client
//! legs against the program's commands, which `conformance_client.py` types as a person would.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;
use tokio::time::timeout;

use super::{gateway, peer};
use crate::serve::Served;
use crate::support::PATIENCE;

/// Runs the scored scenarios of a version against the gateway; all must pass, and so many there must be.
pub(super) async fn conforms(served: &Served, version: &str, scored: usize) {
    let url = format!("http://{}/mcp", served.address);
    let results = served.workplace.file("results");
    let words = ["server", "--url", &url, "--requirements", version];
    let said = suite(&words, &results).await;
    let ran = Ran::read(&said, version);
    assert_eq!((ran.passed, ran.scored), (scored, scored), "{said}");
    let others = ran.others;
    println!(
        "\nconformance-row|server|{version}|{}|{scored}|{scored}|{others} more run that are not scored",
        ran.passed
    );
}

/// The same against the program as a client.
async fn client_conforms(version: &str, scored: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let person = Path::new(env!("CARGO_MANIFEST_DIR"));
    let person = person.join("tests/program/gateway/conformance_client.py");
    let command = format!("python3 {}", person.display());
    let words = ["client", "--command", &command, "--requirements", version];
    let said = suite(&words, folder.path()).await;
    let ran = Ran::read(&said, version);
    assert_eq!((ran.passed, ran.scored), (scored, scored), "{said}");
    // Not scored, and ours all the same.
    assert!(said.contains("✓ auth/client-credentials-basic: "), "{said}");
    println!(
        "\nconformance-row|client|{version}|{}|{scored}|{scored}|{} of them log in by OAuth; {} of {} more that are not scored pass",
        ran.passed, ran.logins, ran.others_passed, ran.others
    );
}

/// Runs the suite to its end; what it printed.
async fn suite(words: &[&str], results: &Path) -> String {
    let suite = peer("conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let run = Command::new(peer("conformance/bin/node"))
        .arg(suite)
        .args(words)
        .arg("-o")
        .arg(results)
        .env("STEADYHAND", env!("CARGO_BIN_EXE_steadyhand"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let run = timeout(PATIENCE * 5, run)
        .await
        .expect("it ends in time")
        .expect("it runs");
    let said = [run.stdout, run.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(run.status.success(), "{said}");
    said
}

/// What a run came to.
#[derive(Default)]
struct Ran {
    scored: usize,
    passed: usize,
    /// Scored ones that are about logging in.
    logins: usize,
    others: usize,
    others_passed: usize,
}

impl Ran {
    fn read(said: &str, version: &str) -> Ran {
        let (_, summary) = said.rsplit_once("SUMMARY ===").expect("a summary");
        let end = format!("Not scored for {version}: ");
        let (all, others) = summary.split_once(&end).expect("what is not scored");
        let marked = |text: &str| -> Vec<(bool, String)> {
            let lines = text.lines().map(str::trim);
            let scenario = |line: &str| {
                let passed = line.strip_prefix("✓ ");
                let name = passed.or_else(|| line.strip_prefix("✗ "))?;
                let name = name.split([':', ' ']).next()?.to_owned();
                Some((passed.is_some(), name))
            };
            lines.filter_map(scenario).collect()
        };
        let others = marked(others);
        let is_scored = |it: &&(bool, String)| !others.iter().any(|(_, other)| *other == it.1);
        let all = marked(all);
        let scored: Vec<_> = all.iter().filter(is_scored).collect();
        Ran {
            scored: scored.len(),
            passed: scored.iter().filter(|(passed, _)| *passed).count(),
            logins: scored.iter().filter(|it| it.1.starts_with("auth/")).count(),
            others: others.len(),
            others_passed: others.iter().filter(|(passed, _)| *passed).count(),
        }
    }
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

#[tokio::test(flavor = "multi_thread")]
async fn v16_the_scored_client_scenarios_of_2025_11_25_pass() {
    client_conforms("2025-11-25", 18).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v16_the_scored_client_scenarios_of_2026_07_28_pass() {
    client_conforms("2026-07-28", 32).await;
}
