//! SPEC D7: what is run again after a failure that may have done something, and what is not.

use super::{Bench, hostile};
use crate::support::parts;

fn attempts(bench: &Bench, tool: &str) -> (String, u64) {
    let outcome = bench.json(&format!("call {tool} message=x --json"));
    let status = outcome["status"].as_str().expect("a status").to_owned();
    (status, outcome["attempts"].as_u64().expect("a number"))
}

/// A server that dies in the middle of every call of its first life.
fn dying(policy: &str) -> Bench {
    Bench::with(&(hostile("dies", "exit_mid_call") + "env.HOSTILE_STATE = \"shown\"\n" + policy))
}

#[test]
fn d07_a_tool_that_is_not_known_to_be_safe_is_not_run_again() {
    let bench = dying("");
    let (status, attempts) = attempts(&bench, "dies__trouble");
    assert_eq!((status.as_str(), attempts), ("error", 1));
    let (code, _, stderr) = parts(&dying("").run("call dies__trouble"));
    assert_eq!(code, 4, "{stderr}");
    assert!(
        stderr.contains("It may have run; check before trying again."),
        "{stderr}"
    );
}

#[test]
fn d07_the_configuration_may_say_that_it_is_safe() {
    let bench = dying("each.trouble = { idempotent = true }\n");
    let (status, attempts) = attempts(&bench, "dies__trouble");
    assert_eq!((status.as_str(), attempts), ("success", 2));
}

#[test]
fn d07_hints_of_the_server_say_which_tools_are_safe() {
    let bench = Bench::with(&hostile("well", "well"));
    let safe = |tool: &str| {
        let shown = bench.json(&format!("tools show well__{tool} --json"));
        shown["policy"]["idempotent"]["value"].clone()
    };
    assert_eq!(safe("echo"), "yes", "readOnlyHint");
    assert_eq!(safe("note"), "no", "no hint");
}

#[test]
fn d07_a_tool_that_acts_is_run_once_even_if_its_answer_is_lost() {
    let config = hostile("lost", "well") + "each.note = { timeout = \"300ms\" }\n";
    let bench = Bench::with(&config);
    let words = ["call", "lost__note", "message=once", "delay_ms=60000"];
    let (code, _, stderr) = parts(&bench.run_words(&words));
    assert_eq!(code, 6, "{stderr}");
    assert_eq!(bench.text("ledger-lost"), "once\n");
}
