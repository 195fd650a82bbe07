//! Alerts of a server: over REST and by command, of breakers, servers and rates.

use serde_json::{Value, json};

use crate::serve::{Served, until};
use crate::support::{Workplace, parts};

const TOOLS: &str = r#"
[tools.ill]
kind = "mock"
description = "Cannot be reached"
input = { type = "object" }
answers = [{ fail = "network" }]
retry = { attempts = 1 }
breaker = { failures = 2, cooldown = "1h" }

[tools.flaky]
kind = "mock"
description = "Fails now and then"
input = { type = "object" }
answers = [{ when = { ok = true }, result = "fine" }, { fail = "network" }]
retry = { attempts = 1 }
breaker = { enabled = false }
"#;

async fn alert(served: &Served, watched: &str, state: &str) -> Value {
    until(&format!("{watched} is {state}"), async || {
        let list = served.get("/v1/alerts").await.json();
        let alerts = list["alerts"].as_array()?.clone();
        let is_it = |alert: &Value| alert["watched"] == watched && alert["state"] == state;
        alerts.into_iter().find(is_it)
    })
    .await
}

#[tokio::test]
async fn r12_a_breaker_that_opens_is_raised_known_and_over_when_it_is_reset() {
    let served = Served::with_config(TOOLS).await;
    for _ in 0..2 {
        served.call("ill", json!({})).await;
    }
    let raised = alert(&served, "breaker_open", "raised").await;
    assert_eq!(raised["subject"], "ill");
    let id = raised["id"].as_str().expect("an id").to_owned();
    let (code, listed, stderr) = parts(&served.workplace.run("alerts"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        listed.contains(&id) && listed.contains("the breaker of ill is open"),
        "{listed}"
    );
    let (code, _, stderr) = parts(&served.workplace.run(&format!("alerts ack {id}")));
    assert_eq!(code, 0, "{stderr}");
    let known = alert(&served, "breaker_open", "acknowledged").await;
    assert_eq!(known["acknowledged_by"], "cli");
    let silenced = served
        .workplace
        .json(&format!("alerts silence {id} --for 2h --json"));
    let span = silenced["silenced_until_ms"].as_u64().expect("a time")
        - silenced["raised_ms"].as_u64().expect("a time");
    assert!(span >= 7_200_000, "{silenced}");
    served.post("/v1/tools/ill/breaker/reset", json!({})).await;
    let over = alert(&served, "breaker_open", "cleared").await;
    assert_eq!(over["cleared_because"], "its breaker is closed again");
    let reply = served
        .decide(&format!("/v1/alerts/{id}/ack"), json!({}))
        .await;
    assert_eq!(
        (reply.status, reply.refusal().1.as_str()),
        (404, "no_such_alert")
    );
    let active = served.workplace.json("alerts list --active --json");
    assert_eq!(active["active"], 0);
}

#[tokio::test]
async fn r12_a_failure_rate_is_raised_by_real_calls_and_over_after_better_ones() {
    let config = format!(
        "{TOOLS}\n[[alerts]]\nwhen = \"error_rate > 50% for 1m\"\nmin_calls = 4\nclear = \"30%\"\n"
    );
    let served = Served::with_config(&config).await;
    let rules = served.get("/v1/alerts").await.json()["rules"].clone();
    assert!(
        rules
            .as_array()
            .expect("rules")
            .contains(&json!("error_rate > 50.0 % for 1m")),
        "{rules}"
    );
    // The default of the kind is gone, the others hold.
    assert_eq!(rules.as_array().expect("rules").len(), 8, "{rules}");
    for _ in 0..4 {
        served.call("flaky", json!({})).await;
    }
    let raised = alert(&served, "error_rate", "raised").await;
    assert_eq!(
        raised["message"],
        "flaky: 4 of 4 calls failed in the last 1m (100.0 %)"
    );
    for _ in 0..12 {
        served.call("flaky", json!({"ok": true})).await;
    }
    let over = alert(&served, "error_rate", "cleared").await;
    let because = over["cleared_because"].as_str().expect("a reason");
    assert!(
        because.ends_with("at most 30.0 % wanted") || because.starts_with("nothing of the kind"),
        "{because}"
    );
}

#[tokio::test]
async fn r12_a_server_that_does_not_start_and_an_answer_that_is_not_valid_are_raised() {
    let config = "[mcp.gone]\ncommand = \"no-such-program-here\"\nstart = { waits = [\"0s\"] }\n";
    let served = Served::with_config(config).await;
    let raised = alert(&served, "server_down", "raised").await;
    assert_eq!(raised["subject"], "gone");
    let answer = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "", "name": "", "input": 3}]});
    let reply = served
        .post("/v1/validate?provider=anthropic&what=response", answer)
        .await;
    assert_eq!(reply.json()["valid"], false, "{}", reply.text);
    assert_eq!(
        alert(&served, "invalid_responses", "raised").await["subject"],
        "anthropic"
    );
    // It is not configured any more.
    served.workplace.write(
        "steadyhand.toml",
        "[tools.echo]\nkind = \"builtin\"\nuse = \"echo\"\n",
    );
    let over = alert(&served, "server_down", "cleared").await;
    assert_eq!(over["cleared_because"], "it is not configured any more");
}

#[tokio::test]
async fn alerts_without_a_server_and_rules_that_make_no_sense_say_what_to_do() {
    let workplace = Workplace::with_config(TOOLS);
    let (code, _, stderr) = parts(&workplace.run("alerts"));
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("steadyhand serve"), "{stderr}");
    for (rule, why) in [
        ("when = \"error_rate > 20\"", "is no share"),
        ("when = \"lunch\"", "nothing that can be watched"),
        (
            "when = \"average > 1s\"\nclear = \"2s\"",
            "is above the limit",
        ),
        (
            "when = \"breaker_open\"\nnotify = { webhook = \"not an address\" }",
            "is no web address",
        ),
    ] {
        let workplace = Workplace::with_config(&format!("[[alerts]]\n{rule}\n"));
        let (code, _, stderr) = parts(&workplace.run("config check"));
        assert_eq!(code, 8, "{rule}: {stderr}");
        assert!(stderr.contains(why), "{rule}: {stderr}");
    }
}
