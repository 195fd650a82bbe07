//! Calls recorded, and told again without the tools.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Client, KEY, Shop, essence};
use crate::serve::{Served, until};
use crate::support::{Workplace, parts};

const FILE: &str = "calls.ndjson";

fn lines(workplace: &Workplace) -> Vec<Value> {
    let text = std::fs::read_to_string(workplace.file(FILE)).unwrap_or_default();
    let whole = text.lines().map(serde_json::from_str);
    whole.filter_map(Result::ok).collect()
}

async fn until_recorded(workplace: &Workplace, calls: usize) {
    until(&format!("{calls} calls are recorded"), async || {
        let recorded = lines(workplace);
        let count = recorded
            .iter()
            .filter(|it| it.get("call").is_some())
            .count();
        (count >= calls).then_some(())
    })
    .await;
}

/// A shop whose calls were recorded, the recorder killed, and the shop gone.
async fn recorded() -> (Workplace, Vec<Value>) {
    let shop = Shop::open().await;
    let config = shop.config() + FALLS_BACK;
    let mut workplace = Workplace::with_config(&config);
    workplace.set("SHOP_KEY", KEY);
    let served = Served::told(workplace, "127.0.0.1:0", &["--record", FILE]).await;
    let mut outcomes = vec![
        served.call("order", json!({"id": 1})).await,
        served.call("order", json!({"id": 1})).await,
    ];
    let secret = json!({"id": 2, "password": "tiger-lily"});
    outcomes.push(served.call("order", secret).await);
    outcomes.push(served.call("shaky", json!({})).await);
    // What is wrong with arguments is found out anew, and not recorded.
    served.call("order", json!({"id": 0})).await;
    assert_eq!(outcomes[0]["status"], "error", "{}", outcomes[0]);
    assert_eq!(outcomes[1]["output"]["asked"], 2, "{}", outcomes[1]);
    assert_eq!(outcomes[3]["fallbackUsed"], true, "{}", outcomes[3]);
    until_recorded(&served.workplace, 4).await;
    let workplace = served.killed().await;
    shop.close().await;
    (workplace, outcomes)
}

const FALLS_BACK: &str = r#"
[tools.shaky]
kind = "mock"
description = "Cannot be reached, and has a fallback"
answers = [{ fail = "network" }]
retry = { attempts = 1 }
fallback = { result = { from = "the fallback" } }
"#;

#[tokio::test]
async fn a_killed_recording_replays_the_same_outcomes_with_the_server_gone() {
    let (mut workplace, outcomes) = recorded().await;
    let text = std::fs::read_to_string(workplace.file(FILE)).expect("a cassette");
    assert!(text.starts_with(r#"{"cassette":{"version":1,"#), "{text}");
    for secret in [KEY, "tiger-lily"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert_eq!(
        lines(&workplace)
            .iter()
            .filter(|it| it.get("call").is_some())
            .count(),
        4
    );
    // As a kill in the middle of a line would leave it; and no key is needed any more.
    workplace.write(FILE, &format!("{text}{{\"call\":{{\"tool\":\"ord"));
    workplace.set("SHOP_KEY", "");

    let served = Served::told(workplace, "127.0.0.1:0", &["--replay", FILE]).await;
    let listed = served.get("/v1/tools/order").await.json();
    assert_eq!(listed["description"], "Looks up an order of the shop");
    assert_eq!(listed["kind"], "replay", "{listed}");
    let told = [
        served.call("order", json!({"id": 1})).await,
        // Members in another order, a number in another spelling: the same call.
        served.call("order", json!({"id": 1.0})).await,
        served
            .call("order", json!({"password": "another", "id": 2}))
            .await,
        served.call("shaky", json!({})).await,
    ];
    for (told, outcome) in told.iter().zip(&outcomes) {
        assert_eq!(essence(told), essence(outcome));
    }
    // The last of the same calls is told again and again.
    for _ in 0..2 {
        let again = served.call("order", json!({"id": 1})).await;
        assert_eq!(essence(&again), essence(&outcomes[1]));
    }
    // As before, and by the recorded schema.
    let invalid = served.call("order", json!({"id": 0})).await;
    assert_eq!(invalid["error"]["code"], "VALIDATION_ERROR", "{invalid}");

    let rows = served.get("/v1/calls?tool=shaky").await.json();
    assert_eq!(rows["calls"][0]["source"], "replay", "{rows}");
    let overview = served.get("/v1/overview").await.text;
    assert!(overview.contains("no tool is run"), "{overview}");
}

#[tokio::test]
async fn mcp_and_commands_are_answered_from_the_cassette_too() {
    let (workplace, outcomes) = recorded().await;
    let said = outcomes[0]["error"]["message"].as_str().expect("words");
    let run = workplace.run("call order id=1 --json --local --replay calls.ndjson");
    let (code, stdout, _) = parts(&run);
    let told: Value = serde_json::from_str(&stdout).expect("an outcome");
    assert_eq!((code, &essence(&told)), (5, &essence(&outcomes[0])));
    let run = workplace.run("call order id=7 --replay calls.ndjson");
    let (code, _, stderr) = parts(&run);
    assert_eq!(code, 5, "{stderr}");
    assert!(
        stderr.contains(r#"order with {"id":7} is not recorded"#),
        "{stderr}"
    );
    assert!(stderr.contains("1 not in the cassette"), "{stderr}");

    let served = Served::told(workplace, "127.0.0.1:0", &["--replay", FILE]).await;
    let client = Client::begin(&served).await;
    let listed = client.send("tools/list", json!({})).await.text;
    assert!(listed.contains("Looks up an order of the shop"), "{listed}");
    let first = client.call("order", json!({"id": 1})).await;
    assert!(
        first.contains(said) && first.contains("\"isError\":true"),
        "{first}"
    );
    let second = client.call("order", json!({"id": 1})).await;
    assert!(second.contains("\"asked\":2"), "{second}");
}

#[tokio::test]
async fn a_call_that_is_not_recorded_fails_aloud_and_names_the_nearest() {
    let (workplace, _) = recorded().await;
    let served = Served::told(workplace, "127.0.0.1:0", &["--replay", FILE]).await;
    let outcome = served.call("order", json!({"id": 12})).await;
    let error = &outcome["error"];
    let message = error["message"].as_str().expect("words");
    for part in [
        r#"order with {"id":12} is not recorded in "#,
        r#"nearest {"id":1} and {"id":2,"password":"[redacted]"}"#,
        "Nothing was run",
        "--record",
    ] {
        assert!(message.contains(part), "no {part} in: {message}");
    }
    assert_eq!(error["effect"], "none", "{error}");
    assert_eq!(error["retryable"], false, "{error}");
    assert_eq!(outcome["attempts"], 1);
    until("stderr says so", async || {
        served.stderr().contains("is not recorded in").then_some(())
    })
    .await;
    let unknown = served.call("odrer", json!({})).await;
    assert_eq!(unknown["error"]["code"], "TOOL_NOT_FOUND");
    assert_eq!(unknown["error"]["suggestions"][0], "order", "{unknown}");
}

#[tokio::test]
async fn a_recording_goes_on_where_it_was_and_no_other_file_is_written_to() {
    let config = "[tools.echo]\nkind = \"builtin\"\nuse = \"echo\"\n";
    let workplace = Workplace::with_config(config);
    for word in ["one", "two"] {
        let run = workplace.run(&format!("call echo word={word} --record {FILE}"));
        let (code, _, stderr) = parts(&run);
        assert_eq!(code, 0, "{stderr}");
        assert!(
            stderr.contains("Recorded 1 call in calls.ndjson."),
            "{stderr}"
        );
    }
    let recorded = lines(&workplace);
    let count = |kind: &str| recorded.iter().filter(|it| it.get(kind).is_some()).count();
    assert_eq!((count("cassette"), count("tool"), count("call")), (1, 1, 2));
    let run = workplace.run(&format!("call echo word=two --replay {FILE}"));
    let (code, stdout, stderr) = parts(&run);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("two"), "{stdout}");

    let (code, _, stderr) = parts(&workplace.run("call echo word=x --record steadyhand.toml"));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("it is no cassette"), "{stderr}");
    let unharmed = std::fs::read_to_string(workplace.file("steadyhand.toml")).expect("there");
    assert_eq!(unharmed, config);
    let (code, _, stderr) = parts(&workplace.run("serve --replay missing.ndjson"));
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("missing.ndjson cannot be replayed"),
        "{stderr}"
    );
}

#[tokio::test]
async fn a_server_of_mcp_is_not_started_to_replay_its_tools() {
    let inner = "[tools.weather]\nkind = \"mock\"\ndescription = \"The weather\"\ninput = { type = \"object\", properties = { cityName = { type = \"string\" } } }\nmock_response = { sky = \"rain\" }\n";
    let program = env!("CARGO_BIN_EXE_steadyhand");
    let config = format!(
        "[mcp.sky]\ncommand = {program:?}\nargs = [\"mcp-stdio\", \"-c\", \"inner.toml\"]\n"
    );
    let workplace = Workplace::with_config(&config);
    workplace.write("inner.toml", inner);
    let served = Served::told(workplace, "127.0.0.1:0", &["--record", FILE]).await;
    let name = until("the server brings its tool", async || {
        let listed = served.get("/v1/tools").await.json();
        Some(listed["tools"][0]["name"].as_str()?.to_owned())
    })
    .await;
    // Names of parameters are mended now as they were then.
    let arguments = json!({"city_name": "Oslo"});
    let outcome = served.call(&name, arguments.clone()).await;
    assert_eq!(outcome["output"]["sky"], "rain", "{outcome}");
    until_recorded(&served.workplace, 1).await;
    let workplace = served.killed().await;
    workplace.write(
        "steadyhand.toml",
        "[mcp.sky]\ncommand = \"/no/such/program\"\n",
    );

    let served = Served::told(workplace, "127.0.0.1:0", &["--replay", FILE]).await;
    let told = served.call(&name, arguments).await;
    assert_eq!(essence(&told), essence(&outcome));
    let servers = served.get("/v1/servers").await.json();
    assert_eq!(
        servers["servers"].as_array().map(Vec::len),
        Some(0),
        "{servers}"
    );
    let took = Duration::from_secs_f64(told["executionTime"].as_f64().expect("a time") / 1e3);
    assert!(took < Duration::from_secs(10), "{took:?}");
}
