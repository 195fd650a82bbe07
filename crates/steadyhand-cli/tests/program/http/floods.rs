//! A service that never stops answering, and a program that never stops printing: the time of the call holds, memory stays
//! bounded, and calls of other tools on the same thread are answered meanwhile.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use steadyhand::{Call, FailureCode, Outcome, Tool, ToolExecutor, ToolManager};
use tokio::time::Instant;

use super::server::{Server, json_answer};
use super::{output, probe};
use crate::command::tool_in;
use crate::flooding::{ALL, Flood, MB, flooding, packed, resident};

const SOON: Duration = Duration::from_millis(400);

/// Runs the tool of that name, and another one meanwhile.
async fn beside(flooded: Tool, what: &str) -> Outcome {
    let server = Server::start(vec![json_answer("{\"still\":\"there\"}")]).await;
    let executor = |tool: Tool| {
        let manager = ToolManager::new();
        manager.add(tool).expect("a tool");
        ToolExecutor::new(manager)
    };
    let name = flooded.name().to_owned();
    let (flooded, other) = (
        executor(flooded),
        executor(probe("GET", &server.url("/")).await),
    );
    let began = Instant::now();
    let before = resident();
    let attacked = async {
        let call = Call::new(name, json!({})).timeout(SOON).deadline(SOON);
        (flooded.execute(call).await, began.elapsed())
    };
    let others = async {
        for _ in 0..10 {
            let outcome = other.execute(Call::new("probe", json!({}))).await;
            assert_eq!(output(&outcome)["still"], "there", "{what}");
        }
        began.elapsed()
    };
    let ((outcome, took), others) = tokio::join!(attacked, others);
    // Not to hang is what counts: on a busy machine 0.4 s may be more, above all under reqwest, which takes millions of
    // `100 Continue` in one turn and lets nobody read for it in parts.
    assert!(took < Duration::from_secs(40), "{what} after {took:?}");
    assert!(others < Duration::from_secs(40), "{what}: {others:?}");
    let more = resident().saturating_sub(before);
    assert!(more < 128 * MB, "{what}: {} MB more", more / MB);
    outcome
}

#[tokio::test]
async fn s01_a_service_that_never_stops_breaks_no_deadline_and_holds_up_no_other_call() {
    packed();
    for flood in ALL {
        let flooded = probe("GET", &flooding(flood, "text/plain")).await;
        let outcome = beside(flooded, &format!("{flood:?}")).await;
        match outcome.failure() {
            // What is there by then is cut, and says so.
            None => {
                let text = output(&outcome).as_str().map(str::len);
                assert!(
                    text.is_some_and(|bytes| bytes < 8 * MB),
                    "{flood:?}: {text:?}"
                );
            }
            Some(failure) => {
                let is = failure.code;
                let expected = match flood {
                    Flood::Trickle => is == FailureCode::Timeout,
                    Flood::Refusal => is != FailureCode::Timeout,
                    _ => true,
                };
                assert!(expected, "{flood:?}: {failure:?}");
                assert!(failure.message.len() < 64 * 1024, "{flood:?}");
            }
        }
    }
}

/// One that is sent on at each address, for ever.
#[tokio::test]
async fn s01_redirects_without_an_end_are_left() {
    let server = Server::start_with(|address| {
        vec![super::server::redirect(
            307,
            &format!("http://{address}/again"),
        )]
    })
    .await;
    let flooded = probe("GET", &server.url("/")).await;
    let outcome = beside(flooded, "redirects").await;
    let failure = outcome.failure().expect("there is no answer");
    assert!(
        failure.message.contains("redirects again"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn s01_a_program_that_never_stops_printing_breaks_no_deadline_and_holds_up_no_other_call() {
    for script in ["yes", "yes >&2", "cat /dev/zero", "yes & yes >&2"] {
        let settings = json!({"command": ["sh", "-c", script]});
        let outcome = beside(tool_in(Path::new("/"), settings).await, script).await;
        let failure = outcome.failure().expect("it does not end");
        assert_eq!(
            failure.code,
            FailureCode::Timeout,
            "{script}: {}",
            failure.message
        );
    }
}
