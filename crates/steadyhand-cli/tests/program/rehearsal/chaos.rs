//! Chaos by a plan: the same for the same seed, within the guards, and never taken for the real thing.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Client, Shop};
use crate::serve::Served;
use crate::support::{Workplace, parts};

const TOOLS: &str = r#"
[tools.weather]
kind = "mock"
description = "The weather of a city"
input = { type = "object", properties = { city = { type = "string" } } }
mock_response = { sky = "rain" }
retry = { attempts = 1 }
breaker = { enabled = false }
timeout = "400ms"

[tools.other]
kind = "mock"
description = "Something else"
mock_response = "fine"
"#;

fn workplace(plan: &str) -> Workplace {
    let workplace = Workplace::with_config(TOOLS);
    workplace.write("plan.toml", plan);
    workplace
}

async fn served(plan: &str, more: &[&str]) -> Served {
    let arguments = [&["--chaos", "plan.toml"], more].concat();
    Served::told(workplace(plan), "127.0.0.1:0", &arguments).await
}

async fn went(served: &Served, calls: usize) -> Vec<String> {
    let mut went = Vec::new();
    for _ in 0..calls {
        let outcome = served.call("weather", json!({"city": "Oslo"})).await;
        let code = outcome["error"]["code"].as_str().unwrap_or("ok");
        went.push(code.to_owned());
    }
    went
}

#[tokio::test]
async fn the_same_plan_and_seed_do_the_same_to_the_same_calls() {
    let plan = "version = 1\nseed = 7\n[[rule]]\ntools = [\"wea*\"]\nchance = \"40%\"\nfail = \"network\"\n[[rule]]\ntools = [\"wea*\"]\nevery = 5\nfail = \"rate_limit\"\n";
    let once = went(&served(plan, &[]).await, 25).await;
    assert_eq!(once, went(&served(plan, &[]).await, 25).await);
    assert_ne!(once, went(&served(plan, &["--seed", "8"]).await, 25).await);
    for code in ["ok", "NETWORK_ERROR", "RATE_LIMIT_ERROR"] {
        assert!(once.iter().any(|it| it == code), "no {code}: {once:?}");
    }
}

#[tokio::test]
async fn a_hang_is_ended_by_the_tools_own_limit_and_history_says_who_did_it() {
    let plan = "version = 1\n[[rule]]\nname = \"stuck\"\ntools = [\"weather\"]\nhang = true\n";
    let served = served(plan, &[]).await;
    let outcome = served.call("weather", json!({"city": "Oslo"})).await;
    assert_eq!(outcome["status"], "timeout", "{outcome}");
    assert_eq!(outcome["error"]["effect"], "unknown", "{outcome}");
    let took = Duration::from_secs_f64(outcome["executionTime"].as_f64().expect("ms") / 1e3);
    let limit = Duration::from_millis(400);
    assert!(
        (limit..limit + Duration::from_secs(20)).contains(&took),
        "{took:?}"
    );
    let other = served.call("other", json!({})).await;
    assert_eq!(
        other["status"], "success",
        "the plan does not mean it: {other}"
    );

    let id = outcome["callId"].as_str().expect("an id");
    let kept = served.get(&format!("/v1/calls/{id}")).await.json();
    assert_eq!(
        kept["notes"],
        json!(["[chaos] hangs until its time limit, by rule 1 (stuck) of the plan"]),
        "{kept}"
    );
    let overview = served.get("/v1/overview").await.text;
    assert!(
        overview.contains("on purpose (1 rule, seed 0)"),
        "{overview}"
    );
}

#[tokio::test]
async fn what_is_said_of_the_effect_is_true_whether_the_tool_ran_or_not() {
    let shop = Shop::open().await;
    let config = shop
        .config()
        .replace("attempts = 1", "attempts = 3, backoff = \"1ms\"");
    let config = config.replace("url =", "idempotent = false\nmethod = \"POST\"\nurl =");
    let mut workplace = Workplace::with_config(&config);
    workplace.set("SHOP_KEY", super::KEY);
    let fails =
        |after: &str| format!("version = 1\n[[rule]]\nevery = 2\n{after}fail = \"network\"\n");

    // Not started: said so, and so the next attempt may run a tool that is not safe to repeat.
    workplace.write("plan.toml", &fails(""));
    let arguments = ["--chaos", "plan.toml"];
    let served = Served::told(workplace, "127.0.0.1:0", &arguments).await;
    let broken = served.call("order", json!({"id": 1})).await;
    assert_eq!(
        broken["attempts"], 1,
        "a 500 of a POST is not repeated: {broken}"
    );
    let mended = served.call("order", json!({"id": 1})).await;
    assert_eq!(
        (&mended["status"], &mended["attempts"]),
        (&json!("success"), &json!(2))
    );
    assert_eq!(
        shop.asked(),
        2,
        "the attempt that was struck reached nobody"
    );
    let workplace = served.killed().await;

    // Run, and its answer lost: it is not run again, and nobody says that nothing happened.
    workplace.write("plan.toml", &fails("after = true\n"));
    let served = Served::told(workplace, "127.0.0.1:0", &arguments).await;
    served.call("order", json!({"id": 1})).await;
    let lost = served.call("order", json!({"id": 1})).await;
    assert_eq!(lost["error"]["effect"], "unknown", "{lost}");
    assert_eq!(lost["attempts"], 1, "{lost}");
    let message = lost["error"]["message"].as_str().expect("words");
    assert!(
        message.starts_with("[chaos] runs, and its answer is lost"),
        "{message}"
    );
    assert_eq!(shop.asked(), 4);
    shop.close().await;
}

#[tokio::test]
async fn garbage_goes_through_the_limits_of_the_tool_to_every_kind_of_client() {
    let plan = "version = 1\n[[rule]]\ntools = [\"weather\"]\nevery = 2\ngarbage = \"huge\"\n[[rule]]\ntools = [\"weather\"]\nevery = 3\ngarbage = \"html\"\n";
    let served = served(plan, &[]).await;
    let client = Client::begin(&served).await;
    let sound = client.call("weather", json!({})).await;
    assert!(sound.contains("rain"), "{sound}");
    let huge = served.call("weather", json!({})).await;
    assert_eq!(huge["status"], "success");
    assert_eq!(
        huge["truncated"]["limitBytes"], 262_144,
        "{}",
        huge["truncated"]
    );
    let html = client.call("weather", json!({})).await;
    assert!(
        html.contains("502 Bad Gateway") && html.contains("[chaos]"),
        "{html}"
    );
}

#[test]
fn a_plan_that_cannot_work_says_all_that_is_wrong_with_it() {
    let plan = "version = 1\n[[rule]]\ntools = [\"weather\"]\n[[rule]]\nhang = true\nfail = \"network\"\nchance = \"5%\"\nevery = 2\n";
    let (code, _, stderr) = parts(&workplace(plan).run("call weather --chaos plan.toml"));
    assert_eq!(code, 2, "{stderr}");
    for part in [
        "rule 1: it does nothing",
        "rule 2: it has more than one of fail, hang and garbage",
        "rule 2: it has chance and every",
    ] {
        assert!(stderr.contains(part), "no {part}: {stderr}");
    }
    let typo = "version = 1\n[[rule]]\nhnag = true\n";
    let (code, _, stderr) = parts(&workplace(typo).run("call weather --chaos plan.toml"));
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("hnag") && stderr.contains("line 3"),
        "{stderr}"
    );
}

#[test]
fn a_single_call_can_be_struck_and_says_so() {
    let plan =
        "version = 1\n[[rule]]\nfail = \"authentication\"\nmessage = \"your badge has expired\"\n";
    let run = workplace(plan).run("call weather city=Oslo --json --chaos plan.toml");
    let (code, stdout, _) = parts(&run);
    let outcome: Value = serde_json::from_str(&stdout).expect("an outcome");
    assert_eq!(code, 3, "{outcome}");
    assert_eq!(
        outcome["error"]["message"],
        "[chaos] your badge has expired"
    );
}

#[test]
fn the_plan_of_the_page_is_one() {
    let page = include_str!("../../../../../docs/testing-agents.md");
    let plan = page.split("```toml norun: a plan of chaos").nth(1);
    let plan = plan
        .and_then(|rest| rest.split_once('\n'))
        .expect("a block")
        .1;
    let plan = plan.split_once("```").expect("its end").0;
    let run = workplace(plan).run("call other --chaos plan.toml");
    let (code, _, stderr) = parts(&run);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("Chaos: 5 rules, seed 7."), "{stderr}");
}
