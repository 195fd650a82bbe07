//! SPEC V05: one ordered collection of the tools of servers and our own, under the names the configuration gives them.

use serde_json::Value;

use super::{Bench, hostile, npm};
use crate::support::parts;

fn listed(bench: &Bench) -> Vec<Value> {
    let listed = bench.json("tools list --json");
    listed["tools"].as_array().expect("tools").clone()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect()
}

#[test]
fn v05_tools_of_servers_and_of_our_own_are_one_ordered_collection() {
    let config = "[tools.first]\nkind = \"mock\"\nmock_response = 1\n".to_owned()
        + &hostile("b", "well")
        + &hostile("a", "well")
        + "[tools.last]\nkind = \"mock\"\nmock_response = 2\n";
    let bench = Bench::with(&config);
    let tools = listed(&bench);
    let wanted = [
        "first",
        "last",
        "b__echo",
        "b__note",
        "b__heard",
        "b__trouble",
        "a__echo",
        "a__note",
        "a__heard",
        "a__trouble",
    ];
    assert_eq!(
        names(&tools),
        wanted,
        "the order of the file, then each server's own"
    );
    let echo = &tools[2];
    assert_eq!(
        (&echo["kind"], &echo["source"]),
        (&"mcp".into(), &"b".into())
    );
    assert_eq!(echo["available"], true);
    assert_eq!(echo["schema"]["required"][0], "message", "unconverted");
    // The second time they are known, and no server is started.
    assert_eq!(names(&listed(&bench)), wanted);
    bench.assert_nobody_left();
}

#[test]
fn v05_a_tool_is_found_by_its_lc_name_too() {
    let config = hostile("home", "well") + "alias = { echo = \"say\" }\n";
    let bench = Bench::with(&config);
    let (code, stdout, stderr) = parts(&bench.run("call say message=hi"));
    assert_eq!((code, stdout.as_str()), (0, "hi\n"), "{stderr}");
    let shown = bench.json("tools show say --json");
    assert_eq!(shown["name"], "home__echo");
    assert_eq!(shown["lc_name"], "say");
}

#[test]
fn v05_tools_are_picked_renamed_and_kept_bare() {
    let config = hostile("one", "well")
        + "tools = { allow = [\"e*\", \"heard\"], deny = [\"heard\"] }\n"
        + "rename = { echo = \"parrot\" }\n"
        + &hostile("two", "well")
        + "prefix = false\ntools.deny = [\"trouble\", \"heard\"]\n";
    let bench = Bench::with(&config);
    assert_eq!(names(&listed(&bench)), ["parrot", "echo", "note"]);
    let (code, stdout, _) = parts(&bench.run("call parrot message=one"));
    assert_eq!((code, stdout.as_str()), (0, "one\n"));
    let (code, stdout, _) = parts(&bench.run("call echo message=two"));
    assert_eq!((code, stdout.as_str()), (0, "two\n"));
}

#[test]
fn v05_policies_of_single_tools_are_laid_over_by_the_servers_own_names() {
    let config = hostile("one", "well") + "timeout = \"7s\"\neach.echo = { timeout = \"3s\" }\n";
    let bench = Bench::with(&config);
    let policy = |tool: &str| {
        let shown = bench.json(&format!("tools show one__{tool} --json"));
        shown["policy"]["timeout"].clone()
    };
    assert_eq!(policy("echo")["value"], "3s");
    assert_eq!(policy("note")["value"], "7s");
    let origin = policy("echo")["origin"]
        .as_str()
        .expect("a place")
        .to_owned();
    assert!(origin.starts_with("steadyhand.toml:"), "{origin}");
}

#[test]
fn v05_names_a_provider_would_refuse_are_made_valid() {
    let config = format!(
        "[mcp.everything-and-more]\ncommand = {:?}\nprefix = true\n",
        npm("everything")
    );
    let bench = Bench::with(&config);
    let tools = listed(&bench);
    // The one that runs only as a task is not offered.
    assert_eq!(tools.len(), 12);
    for name in names(&tools) {
        assert!(
            name.len() <= 64 && name.starts_with("everything-and-more__"),
            "{name}"
        );
        assert!(
            name.chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)),
            "{name}"
        );
    }
    let (code, stdout, stderr) = parts(&bench.run("call everything-and-more__echo message=hi"));
    assert_eq!((code, stdout.as_str()), (0, "Echo: hi\n"), "{stderr}");
}

#[test]
fn v05_a_name_nobody_has_is_none_and_no_error_of_the_collection() {
    let bench = Bench::with(&hostile("one", "well"));
    let (code, _, stderr) = parts(&bench.run("tools show one__ecko"));
    assert_eq!(code, 5, "{stderr}");
    assert!(stderr.contains("Did you mean one__echo?"), "{stderr}");
}

#[test]
fn tools_that_cannot_be_used_are_named_with_the_reason() {
    let bench = Bench::with(&hostile("odd", "bad_schema"));
    let (code, stdout, stderr) = parts(&bench.run("tools list"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("odd__echo"), "{stdout}");
    assert_eq!(stderr.matches("is no tool: ").count(), 3, "{stderr}");
}

#[test]
fn completions_know_the_tools_and_servers_from_earlier_times() {
    let mut bench = Bench::with(&hostile("home", "well"));
    bench.run("tools list");
    bench.workplace.set("STEADYHAND_COMPLETE", "bash");
    bench.workplace.set("_CLAP_COMPLETE_INDEX", "2");
    let (_, stdout, stderr) = parts(&bench.run_words(&["--", "steadyhand", "call", "home"]));
    assert!(stdout.contains("home__echo"), "{stdout}{stderr}");
    bench.workplace.set("_CLAP_COMPLETE_INDEX", "3");
    let (_, stdout, stderr) = parts(&bench.run_words(&["--", "steadyhand", "mcp", "test", ""]));
    assert!(
        stdout.lines().any(|line| line == "home"),
        "{stdout}{stderr}"
    );
    bench.assert_nobody_left();
}
