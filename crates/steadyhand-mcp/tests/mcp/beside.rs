//! What goes on beside a call: questions of the server, progress, cancellation, variables, lists that change.

use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::FailureCode::{Cancelled, Timeout, ValidationError};
use steadyhand::{Call, Effect};
use steadyhand_mcp::Elicitation;
use tokio_util::sync::CancellationToken;

use crate::support::{Folder, Stage, Watched, failure, set, text, until};

#[tokio::test]
async fn d7_questions_of_a_server_are_refused_and_never_left_hanging() {
    let stage = Stage::of(&["asks"]).await;
    let answers = stage.json("trouble", json!({})).await;
    for answer in answers.as_array().expect("four answers") {
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
        assert!(answer["error"]["message"].is_string(), "{answer}");
    }
    assert_eq!(answers.as_array().map(Vec::len), Some(4));
    stage.over().await;
}

#[tokio::test]
async fn d7_questions_of_a_server_are_answered_as_configured() {
    let folder = Folder::new();
    let mut settings = folder.hostile(&["asks"]);
    settings.requests.roots = Some(vec!["file:///srv/data".to_owned()]);
    settings.requests.elicitation = Elicitation::Accept(json!({"name": "Ada"}));
    let stage = Stage::with(folder, settings).await;
    let answers = stage.json("trouble", json!({})).await;
    assert_eq!(answers[0]["result"]["roots"][0]["uri"], "file:///srv/data");
    let form = json!({"action": "accept", "content": {"name": "Ada"}});
    assert_eq!(answers[1]["result"], form);
    assert_eq!(answers[2]["error"]["code"], -32601, "{answers}");
    assert_eq!(answers[3]["error"]["code"], -32601, "{answers}");
    stage.over().await;
}

#[tokio::test]
async fn v07_progress_reaches_the_caller_and_extends_an_idle_limit() {
    let stage = Stage::of(&["progress"]).await;
    let watched = Watched::of(&stage.executor);
    let args = json!({"steps": 30, "interval_ms": 100});
    let call = Call::new("trouble", args).timeout(Duration::from_millis(1500));
    assert_eq!(text(&stage.run(call).await), "done");
    until("the last step is told", || {
        watched.progress().last() == Some(&(30.0, Some(30.0)))
    })
    .await;
    stage.over().await;
}

#[tokio::test]
async fn v07_progress_extends_nothing_beyond_the_hard_deadline() {
    let stage = Stage::of(&["progress"]).await;
    let args = json!({"steps": 600, "interval_ms": 100});
    let call = Call::new("trouble", args)
        .timeout(Duration::from_secs(1))
        .deadline(Duration::from_secs(2));
    let outcome = stage.run(call).await;
    let (code, effect, _) = failure(&outcome);
    assert_eq!((code, effect), (Timeout, Effect::Unknown));
    stage.assert_next_call_works().await;
    stage.over().await;
}

#[tokio::test]
async fn v07_progress_extends_nothing_where_that_is_switched_off() {
    let folder = Folder::new();
    let mut settings = folder.hostile(&["progress"]);
    settings.progress_extends = false;
    let stage = Stage::with(folder, settings).await;
    let args = json!({"steps": 600, "interval_ms": 100});
    let call = Call::new("trouble", args).timeout(Duration::from_millis(700));
    assert_eq!(failure(&stage.run(call).await).0, Timeout);
    stage.over().await;
}

/// The cancellations the server knows of.
async fn cancelled(stage: &Stage) -> Value {
    stage.json("cancelled", json!({})).await
}

#[tokio::test]
async fn v07_a_call_whose_time_is_up_is_cancelled_at_the_server() {
    let stage = Stage::of(&["cancel_aware"]).await;
    let call = Call::new("trouble", json!({})).timeout(Duration::from_millis(300));
    let outcome = stage.run(call).await;
    assert_eq!(failure(&outcome).0, Timeout);
    let cancelled = cancelled(&stage).await;
    assert_eq!(cancelled.as_array().map(Vec::len), Some(1), "{cancelled}");
    assert_eq!(cancelled[0]["known"], true, "{cancelled}");
    assert!(cancelled[0]["reason"].is_string(), "{cancelled}");
    stage.over().await;
}

#[tokio::test]
async fn v07_a_call_that_its_caller_withdraws_is_cancelled_at_the_server() {
    let stage = Stage::of(&["cancel_aware"]).await;
    let token = CancellationToken::new();
    let call = Call::new("trouble", json!({})).cancellation(token.clone());
    let calling = tokio::spawn({
        let executor = stage.executor.clone();
        async move { executor.execute(call).await }
    });
    // It is at the server, and not on its way.
    let mut heard = Value::Null;
    while heard.to_string().matches("tools/call").count() < 2 {
        heard = stage.json("heard", json!({})).await;
    }
    token.cancel();
    let outcome = calling.await.expect("an outcome");
    let (code, effect, _) = failure(&outcome);
    assert_eq!((code, effect), (Cancelled, Effect::Unknown));
    assert_eq!(cancelled(&stage).await[0]["known"], true);

    // Dropping the future is the same.
    let dropped = stage.executor.execute(Call::new("trouble", json!({})));
    let dropped = tokio::time::timeout(Duration::from_millis(200), dropped).await;
    assert!(dropped.is_err());
    let cancelled = cancelled(&stage).await;
    assert_eq!(cancelled.as_array().map(Vec::len), Some(2), "{cancelled}");
    stage.over().await;
}

#[tokio::test]
async fn v07_an_answered_call_is_not_cancelled() {
    let stage = Stage::of(&["cancel_aware"]).await;
    for _ in 0..20 {
        stage.assert_next_call_works().await;
    }
    assert_eq!(cancelled(&stage).await, json!([]));
    stage.over().await;
}

#[tokio::test]
async fn v16_a_server_gets_the_usual_variables_and_those_configured() {
    let folder = Folder::new();
    let mut settings = folder.hostile(&["env"]);
    set(&mut settings, "GREETING", "hello");
    settings.as_stdio().env.push(("USER".to_owned(), None));
    let stage = Stage::with(folder, settings).await;
    let variables = stage.json("environment", json!({})).await;
    assert_eq!(variables["GREETING"], "hello");
    assert_eq!(variables.get("USER"), None, "taken away");
    assert_eq!(variables["HOME"], json!(std::env::var("HOME").ok()));
    let ours = variable_of_our_own();
    assert_eq!(variables.get(&ours.0), None);
    stage.over().await;
}

#[tokio::test]
async fn v16_a_server_gets_all_of_our_variables_if_it_is_configured_so() {
    let folder = Folder::new();
    let mut settings = folder.hostile(&["env"]);
    settings.as_stdio().inherit_env = true;
    let stage = Stage::with(folder, settings).await;
    let variables = stage.json("environment", json!({})).await;
    let (name, value) = variable_of_our_own();
    assert_eq!(variables[&name], json!(value));
    stage.over().await;
}

/// Something in our environment that is nothing usual.
fn variable_of_our_own() -> (String, String) {
    let usual = [
        "HOME",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "USER",
        "STEADYHAND_RUN",
        "LC_CTYPE",
    ];
    let mut all = std::env::vars().filter(|(name, _)| !usual.contains(&name.as_str()));
    all.next()
        .expect("whoever runs tests has more than the usual variables")
}

#[tokio::test]
async fn v05_one_odd_tool_costs_itself_and_says_why() {
    let stage = Stage::of(&["bad_schema"]).await;
    let state = stage.server.state();
    let unusable: Vec<&str> = state
        .unusable
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(unusable, ["bad_type", "bad_shape", "bad_ref"]);
    for tool in state.unusable.iter() {
        assert!(!tool.reason.is_empty(), "{tool}");
    }
    let names: Vec<String> = stage
        .executor
        .tools()
        .list()
        .iter()
        .map(|tool| tool.name().to_owned())
        .collect();
    assert_eq!(names, ["echo", "note", "heard", "trouble"]);
    stage.over().await;
}

#[tokio::test]
async fn s01_a_tool_whose_schema_takes_too_long_is_listed_as_unusable_and_the_others_run() {
    let stage = Stage::of(&["heavy_schemas"]).await;
    let state = stage.server.state();
    let unusable: Vec<&str> = state
        .unusable
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(unusable, ["all_of", "one_of", "digits"]);
    for tool in state.unusable.iter() {
        assert!(tool.reason.contains("its schema"), "{tool}");
    }
    // Its arguments decide how long the check of this one takes.
    let noise: String = (0..400_000_u32)
        .map(|at| {
            if at.wrapping_mul(2_654_435_761) >> 31 == 0 {
                '0'
            } else {
                '1'
            }
        })
        .collect();
    let call = Call::new("places", json!({"value": noise}));
    let (outcome, text) = tokio::join!(
        stage.executor.execute(call),
        stage.text("echo", json!({"message": "meanwhile"}))
    );
    let failure = outcome.failure().expect("it takes too long to check");
    assert_eq!(failure.code, ValidationError);
    assert!(text.contains("meanwhile"), "{text}");
    // Nothing is sent to a tool whose arguments do not fit.
    let outcome = stage.executor.execute(Call::new("levels", json!({}))).await;
    let failure = outcome.failure().expect("forty arguments are missing");
    assert_eq!(failure.code, ValidationError);
    stage.over().await;
}

#[tokio::test]
async fn v05_pages_without_end_are_read_up_to_a_bound_and_noted() {
    let stage = Stage::of(&["endless_pages"]).await;
    let state = stage.server.state();
    assert!(state.tools > 100, "{}", state.tools);
    assert!(
        state.notes.iter().any(|note| note.contains("did not end")),
        "{:?}",
        state.notes
    );
    stage.over().await;
}

#[tokio::test]
async fn v05_a_storm_of_changes_is_one_reason_to_look_again() {
    let stage = Stage::of(&["list_changed_storm"]).await;
    assert_eq!(stage.text("trouble", json!({})).await, "after the storm");
    let lists = |heard: &Value| heard.to_string().matches("tools/list").count();
    let mut heard = stage.json("heard", json!({})).await;
    while lists(&heard) < 2 {
        heard = stage.json("heard", json!({})).await;
    }
    assert!(lists(&heard) < 50, "{}", lists(&heard));
    stage.over().await;
}
