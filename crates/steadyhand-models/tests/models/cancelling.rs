//! Wherever a turn is withdrawn, every call has its result, and the conversation can go on.

use serde_json::json;
use steadyhand::Message;
use steadyhand::testing::script;
use steadyhand_models::testing::{Line, Said};
use steadyhand_models::{Agent, AgentEvent, CancellationToken, Dialect, End};

use super::support::{counted, executor, model, pairs, run, weather, within};

#[tokio::test]
async fn cancelling_while_the_model_speaks_keeps_what_was_said() {
    for dialect in Dialect::ALL {
        let (provider, model) = model(
            dialect,
            [
                Line::Hangs(Said::text("One two three four five six"), 100_000),
                Line::says("Yes."),
            ],
        )
        .await;
        // Enough of the stream that words were said, not enough that it ends.
        let agent = Agent::new(model, executor([weather()]));
        let mut conversation = vec![Message::human("Count")];
        let cancel = CancellationToken::new();
        let mut said = String::new();
        let end = within(agent.run(&mut conversation, &cancel, &mut |event| {
            if let AgentEvent::Text { text } = event {
                said.push_str(&text);
                if said.contains("three") {
                    cancel.cancel();
                }
            }
        }))
        .await;
        assert_eq!(end.end, End::Cancelled, "{dialect}");
        assert!(end.text.starts_with("One two three"), "{}", end.text);
        let Some(Message::Ai(kept)) = conversation.last() else {
            panic!("{conversation:?}")
        };
        assert_eq!(kept.content.text(), end.text);
        conversation.push(Message::human("Go on?"));
        let (end, _) = run(&agent, &mut conversation).await;
        assert_eq!(end.text, "Yes.", "{dialect}");
        assert_eq!(provider.refused(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn cancelling_while_tools_hang_answers_every_call_and_the_next_turn_is_valid() {
    for dialect in Dialect::ALL {
        let hanging = script("hangs").hangs();
        let (quick, quick_tool) = counted("quick");
        let said = Said::default()
            .call("hangs", json!({}))
            .call("hangs", json!({"a": 1}))
            .call("quick", json!({}));
        let (provider, model) = model(
            dialect,
            [Line::Says(said), Line::says("I could not finish.")],
        )
        .await;
        let agent = Agent::new(model, executor([hanging.tool(), quick_tool]));
        let mut conversation = vec![Message::human("Go")];
        let cancel = CancellationToken::new();
        let end = within(agent.run(&mut conversation, &cancel, &mut |event| {
            if let AgentEvent::CallFinished { name, .. } = event
                && name == "quick"
            {
                cancel.cancel();
            }
        }))
        .await;
        assert_eq!(end.end, End::Cancelled);
        assert_eq!(quick.starts(), 1);
        let (calls, results) = pairs(&conversation);
        assert_eq!((calls.len(), &calls), (3, &results), "{dialect}");
        let Message::Tool(first) = &conversation[2] else {
            panic!("{conversation:?}")
        };
        assert_eq!(
            first.content.text(),
            "Error: cancelled by the user after 'hangs' was started\nIt may have run; check before trying again."
        );
        conversation.push(Message::human("What do you know so far?"));
        let (end, _) = run(&agent, &mut conversation).await;
        assert_eq!(end.text, "I could not finish.");
        assert_eq!(provider.refused(), Vec::<String>::new(), "{dialect}");
    }
}

#[tokio::test]
async fn dropping_the_turn_while_tools_run_leaves_a_conversation_that_can_go_on() {
    let hanging = script("hangs").hangs();
    let (provider, model) = model(
        Dialect::Anthropic,
        [Line::calls("hangs", json!({})), Line::says("I see.")],
    )
    .await;
    let agent = Agent::new(model, executor([hanging.tool()]));
    let mut conversation = vec![Message::human("Go")];
    let cancel = CancellationToken::new();
    let started = tokio::sync::Notify::new();
    {
        let mut tell = |event: AgentEvent| {
            if matches!(event, AgentEvent::CallStarted { .. }) {
                started.notify_one();
            }
        };
        let turn = agent.run(&mut conversation, &cancel, &mut tell);
        within(async {
            tokio::select! {
                _ = turn => panic!("it hangs, so it cannot end"),
                () = started.notified() => {}
            }
        })
        .await;
    }
    let (calls, results) = pairs(&conversation);
    assert_eq!((calls.len(), &calls), (1, &results));
    conversation.push(Message::human("Well?"));
    let (end, _) = run(&agent, &mut conversation).await;
    assert_eq!(end.text, "I see.");
    assert!(provider.refused().is_empty());
}

#[tokio::test]
async fn an_answer_that_failed_in_the_middle_is_taken_up_again() {
    for dialect in Dialect::ALL {
        let lines = [
            Line::FailsMidway(Said::text("word ".repeat(50)), "Overloaded".to_owned()),
            Line::says("and the end."),
        ];
        let (provider, model) = model(dialect, lines).await;
        let agent = Agent::new(model, executor([weather()]));
        let mut conversation = vec![Message::human("Tell me")];
        let (end, _) = run(&agent, &mut conversation).await;
        assert!(
            matches!(end.end, End::Failed(_)),
            "{dialect}: {:?}",
            end.end
        );
        assert!(end.text.starts_with("word word"), "{dialect}: {}", end.text);
        assert_eq!(conversation.len(), 2);
        let (end, _) = run(&agent, &mut conversation).await;
        assert_eq!(
            (end.end, end.text.as_str()),
            (End::Answered, "and the end.")
        );
        assert_eq!(provider.refused(), Vec::<String>::new(), "{dialect}");
    }
}
