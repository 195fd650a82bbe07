//! A tool whose breaker is open: every surface says so, and what the tool itself last said.

use serde_json::{Value, json};

use super::{Served, until};
use crate::support::parts;

const REPORT: &str = r#"
[tools.report]
kind = "mock"
description = "Makes a report"
input = { type = "object" }
answers = [{ fail = "network", message = "KeyError: quarter" }]
retry = { attempts = 1, on = ["network", "rate_limit"] }
breaker = { failures = 2, cooldown = "1h" }

[tools.pay]
kind = "mock"
description = "Pays a bill"
input = { type = "object", properties = { sum = { type = "number" } }, additionalProperties = false }
answers = [{ result = "paid" }]
idempotent = false
"#;

const CAUSE: &str = "KeyError: quarter";

/// Two failures open the breaker, and refusals follow.
async fn with_open_breaker() -> (Served, Value) {
    let served = Served::with_config(REPORT).await;
    let mut last = Value::Null;
    for _ in 0..6 {
        last = served.call("report", json!({})).await;
    }
    // What does not fit is refused as well, and hides nothing either.
    served
        .post("/v1/calls", json!({"name": "report", "args": "none"}))
        .await;
    (served, last)
}

#[tokio::test]
async fn t03_the_last_real_failure_stays_visible_with_an_open_breaker_everywhere() {
    let (served, refused) = with_open_breaker().await;
    assert_eq!(refused["error"]["code"], "CIRCUIT_OPEN");
    let message = refused["error"]["message"].as_str().expect("a text");
    assert!(message.contains(CAUSE), "{message}");

    let overview = served.get("/v1/overview").await.json();
    let problems = overview["problems"].as_array().expect("a list");
    let problem = problems.iter().find(|it| it["subject"] == "report");
    let said = problem.expect("it is one")["message"].clone();
    assert_eq!(said, format!("breaker open, 2 failures in a row: {CAUSE}"));
    let tools = overview["tools"].as_array().expect("a list");
    let row = tools
        .iter()
        .find(|it| it["name"] == "report")
        .expect("a row");
    assert_eq!(row["last_error"]["message"], CAUSE);
    assert_eq!(row["last_error"]["code"], "NETWORK_ERROR");

    for path in ["/", "/tools", "/tools/report"] {
        let page = served.get(path).await.text;
        assert!(page.contains(CAUSE), "{path}: {page}");
    }
    let tool = served.get("/v1/tools/report").await.json();
    assert_eq!(tool["breaker"]["lastError"]["message"], CAUSE);
    let call = tool["breaker"]["lastError"]["callId"]
        .as_str()
        .expect("an id");
    let record = served.get(&format!("/v1/calls/{call}")).await.json();
    assert_eq!(record["code"], "NETWORK_ERROR", "{record}");
    let metrics = served.get("/v1/metrics/report").await.json();
    assert_eq!(metrics["breaker"]["lastError"]["message"], CAUSE);
    until("the alert says it", async || {
        let alerts = served.get("/v1/alerts").await.text;
        alerts.contains(CAUSE).then_some(())
    })
    .await;

    let workplace = served.workplace.shared();
    let commands = tokio::task::spawn_blocking(move || {
        for arguments in ["tools list", "tools show report", "doctor", "call report"] {
            let (_, stdout, stderr) = parts(&workplace.run(arguments));
            let said = format!("{stdout}{stderr}");
            assert!(said.contains(CAUSE), "{arguments}: {said}");
        }
    });
    commands.await.expect("all say it");
}

#[tokio::test]
async fn a_tool_whose_breaker_is_open_is_not_called_ready() {
    let (served, _) = with_open_breaker().await;
    let list = served.get("/v1/tools").await.json();
    let of = |name: &str| {
        let tools = list["tools"].as_array().expect("a list");
        tools
            .iter()
            .find(|it| it["name"] == name)
            .expect("a tool")
            .clone()
    };
    assert_eq!(of("report")["state"], "breaker open");
    assert_eq!(of("report")["breaker"]["lastError"]["message"], CAUSE);
    assert_eq!(of("pay")["state"], "ready");
    assert_eq!(
        served.get("/v1/tools/report").await.json()["state"],
        "breaker open"
    );
    let workplace = served.workplace.shared();
    let listed = tokio::task::spawn_blocking(move || parts(&workplace.run("tools list")));
    let (_, listed, _) = listed.await.expect("it ran");
    assert!(listed.contains("report\tmock\tbreaker open"), "{listed}");
    let reset = served
        .post("/v1/tools/report/breaker/reset", json!({}))
        .await;
    assert_eq!(reset.status, 200);
    assert_eq!(
        served.get("/v1/tools/report").await.json()["state"],
        "ready"
    );
}

#[tokio::test]
async fn a_policy_is_shown_in_the_words_of_the_file_and_promises_no_attempts_that_are_never_made() {
    let served = Served::with_config(REPORT).await;
    let policy = async |tool: &str, name: &str| {
        let view = served.get(&format!("/v1/tools/{tool}")).await.json();
        view["policy"][name]["value"]
            .as_str()
            .expect("a value")
            .to_owned()
    };
    assert_eq!(policy("report", "retry.on").await, "network rate_limit");
    assert_eq!(
        policy("pay", "retry.on").await,
        "network timeout rate_limit unknown"
    );
    assert_eq!(policy("report", "retry.attempts").await, "1");
    let attempts = policy("pay", "retry.attempts").await;
    assert_eq!(attempts, "4, only after failures that prove it was not run");
    let page = served.get("/tools/pay").await.text;
    assert!(!page.contains("up to 4 attempts"), "{page}");
    assert!(page.contains("not repeated once it may have run"), "{page}");
}

#[tokio::test]
async fn d20_arguments_that_were_dropped_are_named_to_callers_and_to_those_who_look_later() {
    let served = Served::with_config(REPORT).await;
    let outcome = served
        .call("pay", json!({"sum": 3, "currency": "EUR"}))
        .await;
    assert_eq!(
        outcome["droppedArguments"],
        json!(["currency"]),
        "{outcome}"
    );
    let id = outcome["callId"].as_str().expect("an id");
    let record = served.get(&format!("/v1/calls/{id}")).await.json();
    assert_eq!(record["dropped_arguments"], json!(["currency"]));
    let page = served.get(&format!("/calls/{id}")).await.text;
    assert!(
        page.contains("the tool does not take it: currency"),
        "{page}"
    );
    let call = json!({"name": "pay", "args": {"sum": 3, "currency": "EUR"}});
    let flat = served.post("/v1/calls?view=flat", call).await.json();
    assert_eq!(flat["dropped_arguments"], json!(["currency"]), "{flat}");
    let workplace = served.workplace.shared();
    let commands = tokio::task::spawn_blocking(move || {
        for arguments in ["call pay sum=3 currency=EUR", "calls show last"] {
            let (code, stdout, stderr) = parts(&workplace.run(arguments));
            assert_eq!(code, 0, "{stderr}");
            let said = format!("{stdout}{stderr}");
            assert!(
                said.contains("currency") && said.contains("not take"),
                "{said}"
            );
        }
    });
    commands.await.expect("both say it");
}

/// Their schemas allow anything, but there is no place for it in a command line or a URL.
#[tokio::test]
async fn d20_arguments_without_a_place_in_a_command_or_a_request_are_named() {
    let config = r#"
[tools.say]
kind = "command"
command = ["echo", "{text}"]

[tools.read]
kind = "command"
command = ["cat"]
stdin_json = true

[tools.ask]
kind = "http"
url = "http://127.0.0.1:9/{city}"
retry = { attempts = 1 }
"#;
    let served = Served::with_config(config).await;
    let outcome = served
        .call("say", json!({"text": "hi", "loud": true}))
        .await;
    assert_eq!(outcome["status"], "success", "{outcome}");
    assert_eq!(outcome["droppedArguments"], json!(["loud"]), "{outcome}");
    let outcome = served
        .call("ask", json!({"city": "Oslo", "unit": "C"}))
        .await;
    assert_eq!(outcome["droppedArguments"], json!(["unit"]), "{outcome}");
    // It gets all of them.
    let outcome = served
        .call("read", json!({"text": "hi", "loud": true}))
        .await;
    assert!(outcome.get("droppedArguments").is_none(), "{outcome}");
}

#[tokio::test]
async fn there_is_one_error_rate_and_it_is_said_of_which_calls() {
    let served = Served::with_config(REPORT).await;
    for _ in 0..6 {
        served.call("report", json!({})).await;
        served.call("pay", json!({"sum": 1})).await;
    }
    // Two failed, six answered, four were refused: a quarter of those that ran.
    let trends = until("all are written", async || {
        let trends = served.get("/v1/trends").await.json();
        (trends["total"]["calls"] == 12).then_some(trends)
    })
    .await;
    let overview = served.get("/v1/overview").await.json();
    assert_eq!(overview["figures"]["error_rate_5m"], 0.25, "{overview}");
    assert_eq!(
        (&trends["total"]["calls"], &trends["total"]["ran"]),
        (&json!(12), &json!(8))
    );
    let words = "12 calls, 2 of the 8 that ran failed (25 %), 4 refused";
    for path in ["/", "/trends"] {
        let page = served.get(path).await.text;
        assert!(page.contains(words), "{path}: {page}");
        assert!(page.contains("25 %"), "{path}: {page}");
    }
    let metrics = served.get("/v1/metrics/report").await.json();
    let tools = overview["tools"].as_array().expect("a list");
    let row = tools
        .iter()
        .find(|it| it["name"] == "report")
        .expect("a row");
    assert_eq!(row["error_rate"], metrics["failureRate"]);
}
