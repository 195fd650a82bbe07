//! Outgoing HTTP: the `http` source, the client below it and the search tool, against a raw server
//! on loopback that misbehaves in every way we know.

mod address;
mod bodies;
mod encoding;
mod errors;
mod floods;
mod redirects;
mod search;
pub(crate) mod server;
mod settings;
mod time;
mod way_out;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::{
    Call, Failure, Outcome, RetryPolicy, Tool, ToolExecutor, ToolManager, ToolSource,
};
use steadyhand_config::extensions::Fault;
use steadyhand_runtime::net::Client;
use steadyhand_runtime::source::{Context, KINDS, Kind};

fn context(http: Client) -> Context {
    Context {
        http,
        ..crate::support::context(&std::env::temp_dir())
    }
}

fn http_kind() -> &'static Kind {
    let found = KINDS.iter().find(|kind| kind.settings.name == "http");
    found.expect("the kind is in the table")
}

fn faults(settings: Value) -> Vec<Fault> {
    (http_kind().settings.check)(&settings)
}

async fn only_tool(source: Arc<dyn ToolSource>) -> Tool {
    let mut tools = source.tools().await.expect("it knows its tools");
    assert_eq!(tools.len(), 1);
    tools.remove(0)
}

/// The tool `probe` with these settings, retried quickly.
async fn tool_on(http: Client, settings: Value) -> Tool {
    let found = faults(settings.clone());
    assert!(found.is_empty(), "{found:?}");
    let source = (http_kind().build)("probe", settings, &context(http)).expect("it can be built");
    only_tool(source).await.retry(RetryPolicy {
        first_wait: Duration::from_millis(1),
        ..RetryPolicy::default()
    })
}

async fn tool(settings: Value) -> Tool {
    tool_on(Client::new(), settings).await
}

/// A tool that sends a request with this method to this URL.
async fn probe(method: &str, url: &str) -> Tool {
    tool(json!({ "method": method, "url": url })).await
}

async fn run(tool: Tool, args: Value) -> Outcome {
    let name = tool.name().to_owned();
    let manager = ToolManager::new();
    manager.add(tool).expect("the tool is valid");
    ToolExecutor::new(manager)
        .execute(Call::new(name, args))
        .await
}

fn output(outcome: &Outcome) -> &Value {
    match &outcome.result {
        Ok(output) => output.value(),
        Err(failure) => panic!("a success was expected, not {failure:?}"),
    }
}

fn failure(outcome: &Outcome) -> &Failure {
    outcome.failure().expect("a failure was expected")
}

/// Code, effect, retryable and attempts of a failed call, in one line.
fn verdict(outcome: &Outcome) -> String {
    let failure = failure(outcome);
    let effect = serde_json::to_value(failure.effect).expect("an effect is JSON");
    let again = match failure.retryable {
        true => "retryable",
        false => "final",
    };
    format!(
        "{} {} {again} {}",
        failure.code,
        effect.as_str().expect("a word"),
        outcome.attempts
    )
}

/// Waits until something is true, with a generous bound.
async fn eventually(what: &str, is_true: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if is_true() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what} did not happen in 10 s");
}
