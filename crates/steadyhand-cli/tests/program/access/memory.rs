//! What callers make the server hold: bounded in bytes, told to whoever asked for too much, and no harm to others.

use serde_json::{Value, json};

use super::gateway;
use crate::serve::Served;
use crate::support::Workplace;

const MIB: u64 = 1024 * 1024;
const LIMIT: u64 = 32 * MIB;
/// How many calls somebody else makes after each attack.
const CALLS: usize = 200;
/// What the process may take beyond what it accounts for, in a debug build.
const RESIDENT_MAX: u64 = 300 * MIB;

/// A server with little memory and tools with large results: one gives it at once, one after a while.
async fn small() -> (Served, [String; 2]) {
    let big = "x".repeat(200_000);
    let tool = |name: &str, delay: &str| {
        format!(
            "[tools.{name}]\nkind = \"mock\"\ndescription = \"Large\"\ninput = {{ type = \"object\" }}\n\
             limits = {{ concurrency = 2000 }}\nanswers = [{{ result = \"{big}\"{delay} }}]\n"
        )
    };
    let config = format!(
        "[server]\nlimits = {{ memory = \"{LIMIT}B\" }}\n{}{}",
        tool("large", ""),
        tool("late", ", delay = \"300ms\"")
    );
    let workplace = Workplace::with_config(&config);
    let keys =
        ["greedy", "other"].map(|name| super::key(&workplace, name, &["--role", "operator"]));
    (Served::in_place(workplace).await, keys)
}

async fn send(served: &Served, key: &str, path: &str, body: &Value) -> crate::serve::Reply {
    super::with_key(served, key, "POST", path, &body.to_string()).await
}

/// How many succeeded, were not started, and have run for nothing. There is nothing else.
fn counted<'a>(outcomes: impl Iterator<Item = &'a Value>) -> [usize; 3] {
    let mut counts = [0; 3];
    for outcome in outcomes {
        let error = &outcome["error"];
        let lost = error["resultLost"] == true;
        let place = match (outcome["status"].as_str(), error["effect"].as_str()) {
            (Some("success"), None) => 0,
            (Some("error"), Some("none")) if !lost => 1,
            (Some("error"), Some("done")) if lost => 2,
            _ => panic!(
                "neither: {}",
                &outcome.to_string()[..500.min(outcome.to_string().len())]
            ),
        };
        assert!(place == 0 || error["code"] == "OVERLOADED", "{error}");
        counts[place] += 1;
    }
    counts
}

/// Every one of somebody else's calls succeeds.
async fn others_are_served(served: &Served, other: &str, when: &str) {
    let call = json!({"name": "large"});
    for number in 0..CALLS {
        let reply = send(served, other, "/v1/calls", &call).await;
        let said = &reply.text[..200.min(reply.text.len())];
        assert_eq!(reply.json()["status"], "success", "{number} {when}: {said}");
    }
}

/// What was accounted for stayed within its limit, the process did not grow, and somebody else is served.
async fn held_its_limit(served: &Served, other: &str) {
    let page = super::with_key(served, other, "GET", "/metrics", "")
        .await
        .text;
    let figure = |name: &str| {
        let line = page
            .lines()
            .find(|line| line.starts_with(&format!("{name}{{}} ")));
        let line = line.unwrap_or_else(|| panic!("no {name} in {page}"));
        line.rsplit(' ')
            .next()
            .and_then(|it| it.parse::<f64>().ok())
            .expect("a number") as u64
    };
    assert_eq!(figure("steadyhand_memory_limit"), LIMIT);
    let peak = figure("steadyhand_memory_accounted_peak");
    assert!(peak > 0 && peak <= LIMIT, "{peak}");
    let resident = crate::gateway::memory(served) as u64;
    assert!(resident < RESIDENT_MAX, "{resident}");
    others_are_served(served, other, "after").await;
}

#[tokio::test]
async fn s02_a_batch_of_large_answers_gets_what_fits_and_the_rest_is_told() {
    let (served, [greedy, other]) = small().await;
    let batch = |tool: &str, count: usize| json!({"calls": vec![json!({"name": tool}); count]});
    let many = batch("large", 2000);
    let (reply, ()) = tokio::join!(
        send(&served, &greedy, "/v1/batches", &many),
        others_are_served(&served, &other, "meanwhile"),
    );
    let outcomes = reply.json();
    let outcomes = outcomes["outcomes"].as_array().expect("a list");
    let [fit, not_started, lost] = counted(outcomes.iter());
    assert_eq!(fit + not_started + lost, 2000);
    assert!(fit > 10 && not_started > 1900, "{fit} {not_started} {lost}");
    held_its_limit(&served, &other).await;

    // All of them run before the first has answered.
    let reply = send(&served, &greedy, "/v1/batches", &batch("late", 400)).await;
    let outcomes = reply.json();
    let outcomes = outcomes["outcomes"].as_array().expect("a list");
    let [fit, not_started, lost] = counted(outcomes.iter());
    assert_eq!(fit + not_started + lost, 400);
    assert!(fit > 10 && lost > 300, "{fit} {not_started} {lost}");
    held_its_limit(&served, &other).await;
}

#[tokio::test]
async fn s02_a_turn_with_large_results_gets_what_fits_and_the_rest_is_told() {
    let (served, [greedy, other]) = small().await;
    let calls = (0..500).map(|number| json!({"type": "tool_use", "id": format!("t{number}"), "name": "large", "input": {}}));
    let message = json!({"role": "assistant", "content": calls.collect::<Vec<Value>>()});
    let (reply, ()) = tokio::join!(
        send(&served, &greedy, "/v1/turns?format=anthropic", &message),
        others_are_served(&served, &other, "meanwhile"),
    );
    let turn = reply.json();
    let outcomes = turn["outcomes"].as_array().expect("a list");
    let [fit, not_started, lost] = counted(outcomes.iter());
    assert_eq!(fit + not_started + lost, 500);
    assert!(fit > 5 && not_started > 400, "{fit} {not_started} {lost}");
    held_its_limit(&served, &other).await;
}

#[tokio::test]
async fn s02_a_batch_of_messages_over_mcp_gets_what_fits_and_the_rest_is_told() {
    let (served, [greedy, other]) = small().await;
    let session = gateway::begin_as(&served, &greedy, "2025-03-26").await;
    let calls: Vec<Value> = (0..500).map(|id| gateway::call(id, "large")).collect();
    let calls = json!(calls);
    let (reply, ()) = tokio::join!(
        gateway::send(&served, &greedy, Some(&session), &calls),
        others_are_served(&served, &other, "meanwhile"),
    );
    let answers = reply.json();
    let answers = answers
        .as_array()
        .unwrap_or_else(|| panic!("{}", &reply.text[..300.min(reply.text.len())]));
    assert_eq!(answers.len(), 500);
    let (mut fit, mut refused) = (0, 0);
    for answer in answers {
        let result = &answer["result"];
        match result["isError"] == true {
            false => fit += 1,
            true => {
                let error = &result["_meta"]["io.steadyhand/error"];
                assert_eq!(error["code"], "OVERLOADED", "{error}");
                refused += 1;
            }
        }
    }
    assert!(fit > 10 && refused > 400, "{fit} {refused}");
    held_its_limit(&served, &other).await;
}

#[tokio::test]
async fn s02_what_a_client_says_of_itself_is_not_kept() {
    let (served, [greedy, other]) = small().await;
    let large = "x".repeat(2_000_000);
    let capabilities =
        json!({"experimental": {"much": large}, "sampling": {"more": large}, "roots": {}});
    let before = crate::gateway::memory(&served) as u64;
    for id in 0..60 {
        let initialize = json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": large}}});
        let begun = gateway::send(&served, &greedy, None, &initialize).await;
        assert_eq!(begun.status, 200, "{}", begun.text);
    }
    // All of it would be 360 MB.
    let grown = (crate::gateway::memory(&served) as u64).saturating_sub(before);
    assert!(grown < 100 * MIB, "{grown}");
    held_its_limit(&served, &other).await;
}
