//! The time of a call covers the start of its server.

use crate::support::{Workplace, parts};

#[test]
fn t02_the_time_of_a_call_covers_the_wait_for_a_server_that_does_not_start() {
    let workplace = Workplace::new();
    let run = workplace.run_words(&[
        "call",
        "--mcp",
        "sh -c 'echo FATAL: missing API key >&2; exit 3'",
        "anything",
        "--timeout",
        "1s",
        "--json",
    ]);
    let (_, stdout, stderr) = parts(&run);
    let outcome: serde_json::Value =
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"));
    assert_eq!(outcome["error"]["effect"], "none", "{outcome}");
    // It was given up after a second, less what the program took to begin; without the wait it takes a few milliseconds.
    assert!(outcome["executionTime"].as_f64() > Some(300.0), "{outcome}");
}
