//! R14: every operation that has a name, from the library, over HTTP and on the command line, with one and the same answer.

use serde_json::{Value, json};
use steadyhand::{Call, Outcome, ToolExecutor};
use steadyhand_cli::extensions::EXTENSIONS;
use steadyhand_config::{Configuration, Surroundings};
use steadyhand_conversation::{self as conversation, Provider, What};
use steadyhand_runtime::runtime::{Options, Runtime};

use crate::serve::Served;
use crate::support::{Workplace, parts};

const TOOLS: &str = r#"
[tools.weather]
kind = "mock"
description = "Current weather for a city"
input = { type = "object", required = ["city"], properties = { city = { type = "string" } } }
mock_response = { sky = "rain" }

[tools.ill]
kind = "mock"
description = "Cannot be reached"
input = { type = "object" }
answers = [{ fail = "network" }]
retry = { attempts = 1 }
breaker = { failures = 2, cooldown = "1h" }
"#;

/// SPEC R14, by its own names.
#[derive(Debug, Clone, Copy)]
enum Operation {
    Execute,
    ExecuteBatch,
    ValidateRequest,
    ValidateResponse,
    ValidateMatch,
    Sanitize,
    MakeAnErrorResponse,
    GetMetrics,
    ResetBreaker,
}

impl Operation {
    const ALL: [Operation; 9] = [
        Operation::Execute,
        Operation::ExecuteBatch,
        Operation::ValidateRequest,
        Operation::ValidateResponse,
        Operation::ValidateMatch,
        Operation::Sanitize,
        Operation::MakeAnErrorResponse,
        Operation::GetMetrics,
        Operation::ResetBreaker,
    ];

    /// What everyone must answer, as far as it is not a matter of time.
    fn answer(self) -> Value {
        let call = json!({"type": "tool_use", "id": "t1", "name": "weather", "input": {}});
        let content = "Error: it rained";
        match self {
            Operation::Execute => json!({"status": "success", "output": {"sky": "rain"}}),
            Operation::ExecuteBatch => json!([
                {"status": "success", "output": {"sky": "rain"}},
                {"status": "error", "code": "VALIDATION_ERROR"},
                {"status": "error", "code": "TOOL_NOT_FOUND"},
            ]),
            Operation::ValidateRequest => json!([["/messages", "no_messages"]]),
            Operation::ValidateResponse => json!([]),
            Operation::ValidateMatch => json!([["/1/content/0", "missing_result"]]),
            // Who asked comes first, then what it asked for, then an error that answers it.
            Operation::Sanitize => json!([["user", "assistant", "user"], [call], "t1"]),
            Operation::MakeAnErrorResponse => {
                json!({"role": "tool", "tool_call_id": "t1", "content": content})
            }
            Operation::GetMetrics => {
                json!({"totalExecutions": 2, "errorCount": 2, "breaker": "open"})
            }
            Operation::ResetBreaker => json!("closed"),
        }
    }
}

/// A request without messages, an answer in order, a history whose call has no result.
fn conversations() -> [(What, &'static str, Value); 3] {
    [
        (
            What::Request,
            "request",
            json!({"model": "m", "max_tokens": 10}),
        ),
        (
            What::Response,
            "response",
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": "Rain."}], "usage": {"input_tokens": 1, "output_tokens": 1}}),
        ),
        (What::Match, "match", history()),
    ]
}

fn history() -> Value {
    json!([
        {"role": "user", "content": "What is the weather in Rome?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {}}]},
    ])
}

fn batch() -> Value {
    json!([{"name": "weather", "args": {"city": "Oslo"}}, {"name": "weather", "args": {}}, {"name": "nobody"}])
}

/// What matters of the structured view.
fn shown(outcome: &Value) -> Value {
    match outcome.get("error") {
        None => json!({"status": outcome["status"], "output": outcome["output"]}),
        Some(error) => json!({"status": outcome["status"], "code": error["code"]}),
    }
}

fn shown_all(outcomes: &Value) -> Value {
    outcomes
        .as_array()
        .expect("a list")
        .iter()
        .map(shown)
        .collect()
}

fn places(problems: &Value) -> Value {
    let problems = problems.as_array().expect("a list");
    let places = problems
        .iter()
        .map(|problem| json!([problem["at"], problem["code"]]));
    places.collect()
}

fn mended(messages: &Value) -> Value {
    let list = messages.as_array().expect("a list");
    let roles: Vec<&Value> = list.iter().map(|message| &message["role"]).collect();
    let last = &messages[2]["content"][0];
    assert_eq!(last["is_error"], true, "{messages}");
    json!([roles, messages[1]["content"], last["tool_use_id"]])
}

fn counters(metrics: &Value) -> Value {
    json!({
        "totalExecutions": metrics["totalExecutions"],
        "errorCount": metrics["errorCount"],
        "breaker": metrics["breaker"]["state"],
    })
}

fn what(operation: Operation) -> (What, &'static str, Value) {
    let [request, response, matching] = conversations();
    match operation {
        Operation::ValidateRequest => request,
        Operation::ValidateResponse => response,
        _ => matching,
    }
}

async fn in_the_library(executor: &ToolExecutor, operation: Operation) -> Value {
    let structured = |outcome: &Outcome| json!(outcome.structured());
    match operation {
        Operation::Execute => {
            let call = Call::new("weather", json!({"city": "Oslo"}));
            shown(&structured(&executor.execute(call).await))
        }
        Operation::ExecuteBatch => {
            let calls = batch();
            let calls = calls.as_array().expect("a list").iter();
            let calls = calls.map(|call| {
                let name = call["name"].as_str().expect("a name");
                Call::new(name, call.get("args").cloned().unwrap_or(json!({})))
            });
            let outcomes = executor.execute_batch(calls.collect()).await;
            shown_all(&outcomes.iter().map(structured).collect())
        }
        Operation::ValidateRequest | Operation::ValidateResponse | Operation::ValidateMatch => {
            let (what, _, value) = what(operation);
            places(&json!(conversation::validate(
                Provider::Anthropic,
                what,
                &value
            )))
        }
        Operation::Sanitize => mended(&conversation::repair(Provider::Anthropic, history()).0),
        Operation::MakeAnErrorResponse => {
            conversation::error_result(Provider::OpenAi, "t1", "weather", "it rained")
        }
        Operation::GetMetrics => {
            for _ in 0..2 {
                executor.execute(Call::new("ill", json!({}))).await;
            }
            let metrics = executor.tools().metrics("ill").expect("it was called");
            let mut view = json!(metrics);
            view["breaker"] = json!(executor.tools().breaker("ill"));
            counters(&view)
        }
        Operation::ResetBreaker => {
            assert!(executor.tools().reset_breaker("ill"));
            json!(executor.tools().breaker("ill"))["state"].clone()
        }
    }
}

async fn over_http(served: &Served, operation: Operation) -> Value {
    match operation {
        Operation::Execute => shown(&served.call("weather", json!({"city": "Oslo"})).await),
        Operation::ExecuteBatch => {
            let answer = served.post("/v1/batches", json!({"calls": batch()})).await;
            shown_all(&answer.json()["outcomes"])
        }
        Operation::ValidateRequest | Operation::ValidateResponse | Operation::ValidateMatch => {
            let (_, what, value) = what(operation);
            let path = format!("/v1/validate?provider=anthropic&what={what}");
            places(&served.post(&path, value).await.json()["problems"])
        }
        Operation::Sanitize => {
            let path = "/v1/repair?provider=anthropic";
            mended(&served.post(path, history()).await.json()["messages"])
        }
        Operation::MakeAnErrorResponse => {
            let call = json!({"id": "t1", "name": "weather", "message": "it rained"});
            let path = "/v1/error-response?provider=openai";
            served.post(path, call).await.json()
        }
        Operation::GetMetrics => {
            for _ in 0..2 {
                served.call("ill", json!({})).await;
            }
            counters(&served.get("/v1/metrics/ill").await.json())
        }
        Operation::ResetBreaker => {
            let path = "/v1/tools/ill/breaker/reset";
            let reset = served.post(path, json!({})).await;
            assert_eq!(reset.status, 200, "{}", reset.text);
            served.get("/v1/tools/ill").await.json()["breaker"]["state"].clone()
        }
    }
}

fn on_the_command_line(workplace: &Workplace, operation: Operation) -> Value {
    match operation {
        Operation::Execute => shown(&workplace.json("call weather city=Oslo --json")),
        Operation::ExecuteBatch => {
            workplace.write("batch.json", &batch().to_string());
            shown_all(&workplace.json("batch batch.json --json")["outcomes"])
        }
        Operation::ValidateRequest | Operation::ValidateResponse | Operation::ValidateMatch => {
            let (_, what, value) = what(operation);
            workplace.write("file.json", &value.to_string());
            let command = format!("validate file.json --provider anthropic --what {what} --json");
            places(&workplace.json(&command)["problems"])
        }
        Operation::Sanitize => {
            workplace.write("history.json", &history().to_string());
            let command = "repair history.json --provider anthropic --json";
            mended(&workplace.json(command)["messages"])
        }
        Operation::MakeAnErrorResponse => {
            let provider = ["error-response", "--provider", "openai", "--id", "t1"];
            let words = [&provider[..], &["--name", "weather", "it rained"]].concat();
            let (code, stdout, stderr) = parts(&workplace.run_words(&words));
            assert_eq!(code, 0, "{stderr}");
            serde_json::from_str(&stdout).expect("JSON")
        }
        Operation::GetMetrics => {
            for _ in 0..2 {
                workplace.run("call ill --json").code(4);
            }
            counters(&workplace.json("metrics ill --json"))
        }
        Operation::ResetBreaker => {
            workplace.run("tools reset ill").code(0);
            workplace.json("tools show ill --json")["breaker"]["state"].clone()
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r14_every_operation_answers_the_same_from_the_library_over_http_and_on_the_command_line() {
    let workplace = Workplace::with_config(TOOLS);
    let surroundings = Surroundings::of_this_process();
    let file = workplace.file("steadyhand.toml");
    let configuration =
        Configuration::load(Some(&file), &surroundings, &EXTENSIONS).expect("a right file");
    let mut options = Options::new(surroundings, &EXTENSIONS);
    options.state = workplace.file("state");
    let library = Runtime::start(configuration, options).await;
    // One server each: what one has counted is not the other's.
    let (over, line) = tokio::join!(Served::with_config(TOOLS), Served::with_config(TOOLS));
    for operation in Operation::ALL {
        let expected = operation.answer();
        let got = in_the_library(library.executor(), operation).await;
        assert_eq!(got, expected, "{operation:?} in the library");
        let got = over_http(&over, operation).await;
        assert_eq!(got, expected, "{operation:?} over HTTP");
        let workplace = line.workplace.shared();
        let got = tokio::task::spawn_blocking(move || on_the_command_line(&workplace, operation));
        let got = got.await.expect("no panic");
        assert_eq!(got, expected, "{operation:?} on the command line");
    }
}
