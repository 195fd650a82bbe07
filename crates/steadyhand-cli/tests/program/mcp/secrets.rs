//! What a server is given in its environment comes out nowhere.

use super::{Bench, hostile, python};
use crate::support::parts;

const SECRETS: [&str; 3] = [
    "correct-horse-battery",
    "literal-staple-4711",
    "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789",
];

fn given(config: &str) -> Bench {
    let mut bench = Bench::with(config);
    bench.workplace.set("HOUSE_TOKEN", SECRETS[0]);
    bench
}

fn keys(mode: &str) -> String {
    hostile("leaky", mode)
        + &format!(
            "env.FROM_ENV = \"${{env:HOUSE_TOKEN}}\"\nenv.API_KEY = {:?}\nenv.PLAIN = {:?}\n",
            SECRETS[1], SECRETS[2]
        )
}

fn assert_silent(bench: &Bench, words: &[&str]) -> String {
    let (_, stdout, stderr) = parts(&bench.run_words(words));
    for secret in SECRETS {
        assert!(!stdout.contains(secret), "{words:?} on stdout: {stdout}");
        assert!(!stderr.contains(secret), "{words:?} on stderr: {stderr}");
    }
    stdout + &stderr
}

#[test]
fn secrets_of_env_are_in_no_output_of_a_tool_that_tells_them() {
    let bench = given(&keys("env"));
    let said = assert_silent(&bench, &["call", "leaky__environment"]);
    assert!(said.contains("[redacted]"), "{said}");
    assert_silent(&bench, &["call", "leaky__environment", "--json"]);
    assert_silent(&bench, &["call", "leaky__environment", "-vv"]);
    assert_silent(&bench, &["mcp", "list", "--json"]);
    assert_silent(&bench, &["mcp", "test", "leaky", "--json"]);
    assert_silent(&bench, &["mcp", "test", "leaky", "-vv"]);
    assert_silent(&bench, &["config", "show"]);
}

#[test]
fn secrets_of_env_are_in_no_log_no_failure_and_nothing_that_is_kept() {
    let config = keys("well")
        .replace(&format!("{:?}", python()), "\"sh\"")
        .replace(
            "args = [",
            "args = [\"-c\", \"env | grep -v ^_ >&2; env; echo bye >&2; exit 1\", ",
        );
    let bench = given(&config);
    let said = assert_silent(&bench, &["call", "leaky__echo", "message=hi", "-vv"]);
    assert!(said.contains("bye"), "{said}");
    assert!(said.contains("FROM_ENV=[redacted]"), "{said}");
    assert_silent(&bench, &["call", "leaky__echo", "--json"]);
    assert_silent(&bench, &["mcp", "test", "leaky"]);
    let said = assert_silent(&bench, &["mcp", "logs", "leaky"]);
    assert!(said.contains("API_KEY=[redacted]"), "{said}");
    let kept = bench.text(".local/state/steadyhand/mcp/leaky.log");
    assert!(kept.contains("bye"), "{kept}");
    for secret in SECRETS {
        assert!(!kept.contains(secret), "{kept}");
    }
}

#[test]
fn a_server_whose_secret_is_not_there_is_not_started_and_says_what_is_missing() {
    let bench = Bench::with(&keys("env"));
    let listed = bench.json("mcp list --json");
    let server = &listed["servers"][0];
    assert_eq!(server["status"], "disabled");
    let reason = server["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("${env:HOUSE_TOKEN}") && reason.contains("is not set"),
        "{reason}"
    );
    let (code, _, stderr) = parts(&bench.run("mcp test leaky"));
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("HOUSE_TOKEN"), "{stderr}");
    assert_eq!(bench.text(".local/state/steadyhand/mcp/leaky.log"), "");
}
