//! Who may do what: keys, roles, the tools and the pace of a key, and what is written down of refusals.

mod audit;
mod budgets;
mod decisions;
mod echoing;
mod fairness;
mod front_door;
mod gateway;
mod guessing;
mod issuer;
mod jwt;
mod keys;
mod limits;
mod login;
mod memory;
mod others;
mod routes;
mod shares;
mod tls;

use serde_json::{Value, json};

use crate::serve::{Reply, Served};
use crate::support::Workplace;

/// Tools that keys are given or not.
const TOOLS: &str = r#"
[tools.weather]
kind = "mock"
description = "Current weather for a city"
input = { type = "object" }
answers = [{ result = { sky = "rain" } }]

[tools.weather_alarm]
kind = "mock"
description = "Warns of a storm"
input = { type = "object" }
answers = [{ result = "warned" }]

[tools.shell]
kind = "mock"
description = "Runs anything"
input = { type = "object" }
answers = [{ result = "ran" }]

[tools.slow]
kind = "mock"
description = "Takes its time"
input = { type = "object" }
answers = [{ result = "done", delay = "40s" }]
timeout = "50s"
"#;

/// A key of this name and with these words of `keys create`.
pub(crate) fn key(workplace: &Workplace, name: &str, words: &[&str]) -> String {
    made(workplace, name, words)["key"]
        .as_str()
        .expect("a key")
        .to_owned()
}

fn made(workplace: &Workplace, name: &str, words: &[&str]) -> Value {
    let words = [&["keys", "create", name, "--json"], words].concat();
    let run = workplace.run_words(&words);
    let output = run.get_output();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

pub(crate) async fn with_key(
    served: &Served,
    key: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Reply {
    let shown = format!("Bearer {key}");
    let headers = [("authorization", shown.as_str())];
    served.send(method, path, &headers, body).await
}

async fn call(served: &Served, key: &str, tool: &str) -> Value {
    let body = json!({"name": tool, "args": {}}).to_string();
    let reply = with_key(served, key, "POST", "/v1/calls", &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}
