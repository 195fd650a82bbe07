//! A model that repeats itself is told first, then refused.

use std::sync::Arc;

use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{Message, ToolError};
use steadyhand_models::{Agent, AgentEvent, AgentSettings, End, LoopGuard, NoticeCode, Scripted};

use super::support::{counted, executor, pairs, run};

fn patient() -> AgentSettings {
    let mut settings = AgentSettings::default();
    settings.max_iterations = 20;
    settings
}

fn notices(events: &[AgentEvent]) -> Vec<NoticeCode> {
    let notices = events.iter().filter_map(|event| match event {
        AgentEvent::Notice(notice) => Some(notice.code),
        _ => None,
    });
    notices.collect()
}

fn results(conversation: &[Message]) -> Vec<String> {
    let results = conversation.iter().filter_map(|message| match message {
        Message::Tool(result) => Some(result.content.text().into_owned()),
        _ => None,
    });
    results.collect()
}

#[tokio::test]
async fn the_same_call_with_the_same_result_is_told_then_refused() {
    let (lights, tool) = counted("lights");
    // Its arguments in another order are the same arguments.
    let model = Scripted::new()
        .calls("lights", json!({"room": "kitchen", "on": true}))
        .calls("lights", json!({"on": true, "room": "kitchen"}))
        .calls("lights", json!({"room": "kitchen", "on": true}))
        .says("It is on.");
    let agent = Agent::new(Arc::new(model), executor([tool])).with(patient());
    let mut conversation = vec![Message::human("Light!")];
    let (end, events) = run(&agent, &mut conversation).await;
    assert_eq!(end.end, End::Answered);
    assert_eq!(lights.starts(), 2);
    let results = results(&conversation);
    assert_eq!(results[0], "done");
    assert!(
        results[1].starts_with("done\n[Note: this call was made 2 times"),
        "{}",
        results[1]
    );
    assert!(
        results[2].starts_with("Error: this call was not run: it was made 2 times"),
        "{}",
        results[2]
    );
    assert_eq!(
        notices(&events),
        [NoticeCode::LoopTold, NoticeCode::LoopRefused]
    );
    let (calls, answered) = pairs(&conversation);
    assert_eq!(calls, answered);
}

#[tokio::test]
async fn failures_that_alternate_are_told_then_refused() {
    let a = script("a").fails(ToolError::answer("no"));
    let b = script("b").fails(ToolError::answer("not either"));
    let mut model = Scripted::new();
    for _ in 0..3 {
        model = model.calls("a", json!({})).calls("b", json!({}));
    }
    let agent = Agent::new(
        Arc::new(model.says("I give up.")),
        executor([a.tool(), b.tool()]),
    )
    .with(patient());
    let mut conversation = vec![Message::human("Try")];
    let (end, events) = run(&agent, &mut conversation).await;
    assert_eq!(end.text, "I give up.");
    assert_eq!((a.starts(), b.starts()), (2, 2));
    assert!(notices(&events).contains(&NoticeCode::LoopTold));
    assert!(notices(&events).contains(&NoticeCode::LoopRefused));
}

#[tokio::test]
async fn nothing_but_failures_for_many_rounds_is_told_then_refused_whatever_the_arguments() {
    let a = script("a").fails(ToolError::answer("no"));
    let mut model = Scripted::new();
    for number in 0..8 {
        model = model.calls("a", json!({"try": number}));
    }
    let agent =
        Agent::new(Arc::new(model.says("I give up.")), executor([a.tool()])).with(patient());
    let mut conversation = vec![Message::human("Try")];
    run(&agent, &mut conversation).await;
    assert_eq!(a.starts(), 6);
    let results = results(&conversation);
    assert_eq!(results[1], "Error: no\nIt ran, and failed.");
    assert!(
        results[2].contains("for 3 rounds nothing has worked"),
        "{}",
        results[2]
    );
    assert!(results[6].contains("not run"), "{}", results[6]);
}

#[tokio::test]
async fn who_waits_for_something_to_change_is_left_alone() {
    let status = script("status")
        .answers("10 %")
        .answers("50 %")
        .answers("90 %")
        .answers("done");
    let mut model = Scripted::new();
    for _ in 0..4 {
        model = model.calls("status", json!({}));
    }
    let agent =
        Agent::new(Arc::new(model.says("Done.")), executor([status.tool()])).with(patient());
    let mut conversation = vec![Message::human("Wait for it")];
    let (_, events) = run(&agent, &mut conversation).await;
    assert_eq!(results(&conversation), ["10 %", "50 %", "90 %", "done"]);
    assert_eq!(notices(&events), []);
}

#[tokio::test]
async fn a_new_question_begins_anew_and_a_resumed_one_does_not() {
    let (lights, tool) = counted("lights");
    let call = || json!({"on": true});
    let model = Scripted::new()
        .calls("lights", call())
        .calls("lights", call())
        .says("On.")
        .calls("lights", call())
        .says("On.");
    let agent = Agent::new(Arc::new(model), executor([tool.clone()])).with(patient());
    let mut conversation = vec![Message::human("Light!")];
    run(&agent, &mut conversation).await;
    let so_far = conversation.clone();
    conversation.push(Message::human("Again!"));
    run(&agent, &mut conversation).await;
    assert_eq!(lights.starts(), 3);
    // Cut off before the answer, and taken up again by another process.
    let mut stored = so_far[..5].to_vec();
    let model = Scripted::new().calls("lights", call()).says("On.");
    let agent = Agent::new(Arc::new(model), executor([tool])).with(patient());
    run(&agent, &mut stored).await;
    assert_eq!(lights.starts(), 3);
    assert!(results(&stored)[2].contains("not run"));
}

#[tokio::test]
async fn the_guard_can_be_turned_off() {
    let (lights, tool) = counted("lights");
    let mut model = Scripted::new();
    for _ in 0..5 {
        model = model.calls("lights", json!({}));
    }
    let mut settings = patient();
    settings.guard = LoopGuard::off();
    let agent = Agent::new(Arc::new(model.says("Done.")), executor([tool])).with(settings);
    run(&agent, &mut vec![Message::human("Go")]).await;
    assert_eq!(lights.starts(), 5);
}
