//! The loop: L02, L04, L05, L07, limits, cancellation.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{AiMessage, FailureCode, Message, Policy};
use steadyhand_models::testing::{Line, Said};
use steadyhand_models::{
    Agent, AgentEvent, AgentSettings, AtLimit, CancellationToken, Dialect, End, LoopGuard,
    NoticeCode, Scripted,
};

use super::support::{
    BOTH, counted, executor, model, pairs, run, settings, weather, within, words,
};

#[tokio::test]
async fn l07_after_max_iterations_a_last_answer_without_tools_is_requested() {
    for dialect in Dialect::ALL {
        for delivery in BOTH {
            let city = |number: usize| {
                Line::calls("get_weather", json!({"city": format!("City {number}")}))
            };
            let lines: Vec<Line> = (0..5)
                .map(city)
                .chain([Line::says("That is all I know.")])
                .collect();
            let (provider, model) = model(dialect, lines).await;
            let agent = Agent::new(model, executor([weather()])).with(settings(delivery));
            let mut conversation = vec![Message::human("Weather everywhere")];
            let (end, events) = run(&agent, &mut conversation).await;
            assert_eq!(end.end, End::Answered, "{dialect} {:?}", provider.refused());
            assert_eq!(end.text, "That is all I know.");
            assert_eq!((end.rounds, end.calls), (5, 5));
            let requests = provider.requests();
            assert_eq!(requests.len(), 6);
            let last = &requests[5];
            match dialect {
                Dialect::Anthropic => assert_eq!(last["tool_choice"], json!({"type": "none"})),
                Dialect::OpenAi | Dialect::OpenAiResponses => {
                    assert_eq!(last["tool_choice"], "none");
                }
                Dialect::Ollama => assert!(last.get("tools").is_none()),
            }
            assert!(requests[4].get("tool_choice").is_none());
            let told = events.iter().any(|event| matches!(event, AgentEvent::Notice(notice) if notice.code == NoticeCode::LimitReached));
            assert!(told);
        }
    }
}

#[tokio::test]
async fn l07_a_model_that_calls_tools_all_the_same_is_answered_and_the_turn_ends() {
    let (lights, tool) = counted("lights");
    let (provider, model) = model(
        Dialect::OpenAi,
        [
            Line::calls("lights", json!({"on": true})),
            Line::calls("lights", json!({"on": false})),
        ],
    )
    .await;
    let mut settings = AgentSettings::default();
    settings.max_iterations = 1;
    let agent = Agent::new(model, executor([tool])).with(settings);
    let mut conversation = vec![Message::human("Lights!")];
    let (end, _) = run(&agent, &mut conversation).await;
    assert_eq!(end.end, End::LimitReached);
    assert_eq!(lights.starts(), 1);
    let Some(Message::Tool(last)) = conversation.last() else {
        panic!("{conversation:?}")
    };
    assert!(
        last.is_error && last.content.text().contains("not run"),
        "{last:?}"
    );
    let (calls, results) = pairs(&conversation);
    assert_eq!(calls, results);
    assert!(provider.refused().is_empty());
}

#[tokio::test]
async fn l07_who_wants_to_be_asked_at_the_limit_can_go_on_or_have_an_answer_now() {
    let model = Scripted::new()
        .calls("get_weather", json!({"city": "A"}))
        .calls("get_weather", json!({"city": "B"}))
        .says("Enough.");
    let mut settings = AgentSettings::default();
    settings.max_iterations = 1;
    settings.at_limit = AtLimit::Return;
    let agent = Agent::new(Arc::new(model), executor([weather()])).with(settings);
    let mut conversation = vec![Message::human("Weather")];
    let (end, _) = run(&agent, &mut conversation).await;
    assert_eq!(end.end, End::LimitReached);
    assert_eq!(conversation.len(), 3);
    let (end, _) = run(&agent, &mut conversation).await;
    assert_eq!(end.end, End::LimitReached);
    let end =
        within(agent.answer_now(&mut conversation, &CancellationToken::new(), &mut |_| {})).await;
    assert_eq!((end.end, end.text.as_str()), (End::Answered, "Enough."));
    assert_eq!(conversation.len(), 6);
}

#[tokio::test]
async fn l04_an_unknown_tool_is_answered_with_its_id_and_the_loop_goes_on() {
    let model = Scripted::new()
        .calls("nonesuch", json!({}))
        .says("Never mind.");
    let agent = Agent::new(Arc::new(model), executor([weather()]));
    let mut conversation = vec![Message::human("?")];
    let (end, _) = run(&agent, &mut conversation).await;
    assert_eq!(end.end, End::Answered);
    let (Message::Ai(ai), Message::Tool(result)) = (&conversation[1], &conversation[2]) else {
        panic!("{conversation:?}")
    };
    assert_eq!(
        result.content.text(),
        "Error: Unknown tool \"nonesuch\"\nIt was not run."
    );
    assert_eq!(result.tool_call_id, ai.tool_calls[0].id);
    assert!(result.is_error);
}

#[tokio::test]
async fn a_tool_that_was_not_offered_is_unknown_to_the_model() {
    let (lights, tool) = counted("lights");
    let model = Scripted::new().calls("lights", json!({})).says("Well.");
    let mut settings = AgentSettings::default();
    settings.tools = Some(vec!["get_weather".to_owned()]);
    let agent = Agent::new(Arc::new(model), executor([weather(), tool])).with(settings);
    let mut conversation = vec![Message::human("?")];
    run(&agent, &mut conversation).await;
    assert_eq!(lights.starts(), 0);
    let Message::Tool(result) = &conversation[2] else {
        panic!("{conversation:?}")
    };
    assert_eq!(result.content.text(), "Error: Unknown tool \"lights\"");
}

#[tokio::test]
async fn r10_parallel_calls_run_together_and_are_answered_in_the_order_asked() {
    // The first waits for the second: one after the other they would never end.
    let (sender, receiver) = tokio::sync::watch::channel(false);
    let first = steadyhand::Tool::with_schema(
        "first",
        "Waits",
        json!({"type": "object"}),
        move |_: serde_json::Value| {
            let mut receiver = receiver.clone();
            async move {
                let _ = receiver.wait_for(|ready| *ready).await;
                Ok::<_, steadyhand::ToolError>(json!("1"))
            }
        },
    );
    let second = steadyhand::Tool::with_schema(
        "second",
        "Goes",
        json!({"type": "object"}),
        move |_: serde_json::Value| {
            sender.send_replace(true);
            async { Ok::<_, steadyhand::ToolError>(json!("2")) }
        },
    );
    let said = Said::default()
        .call("first", json!({}))
        .call("second", json!({}));
    let (_provider, model) =
        model(Dialect::Anthropic, [Line::Says(said), Line::says("Both.")]).await;
    let agent = Agent::new(model, executor([first, second]));
    let mut conversation = vec![Message::human("Go")];
    let (end, events) = run(&agent, &mut conversation).await;
    assert_eq!(end.end, End::Answered);
    let texts: Vec<String> = conversation[2..4]
        .iter()
        .map(|message| match message {
            Message::Tool(result) => result.content.text().into_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(texts, ["1", "2"]);
    let ended: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::CallFinished { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ended, ["second", "first"]);
}

#[tokio::test]
async fn arguments_that_broke_off_are_not_run_and_the_model_is_told_where_and_why() {
    for dialect in [
        Dialect::Anthropic,
        Dialect::OpenAi,
        Dialect::OpenAiResponses,
    ] {
        for delivery in BOTH {
            let (lights, tool) = counted("lights");
            let said = Said::text("I will.").call("lights", json!({}));
            let (provider, model) = model(
                dialect,
                [
                    Line::CutOff(said, "{\"room\": \"kit".to_owned()),
                    Line::says("Sorry."),
                ],
            )
            .await;
            let agent = Agent::new(model, executor([tool])).with(settings(delivery));
            let mut conversation = vec![Message::human("Lights!")];
            let (end, _) = run(&agent, &mut conversation).await;
            assert_eq!(end.end, End::Answered, "{dialect} {:?}", provider.refused());
            assert_eq!(lights.starts(), 0, "{dialect} {delivery:?}");
            let Message::Tool(result) = &conversation[2] else {
                panic!("{conversation:?}")
            };
            let text = result.content.text();
            assert!(
                result.is_error
                    && text.contains("stop reason max_tokens")
                    && text.contains("not run"),
                "{text}"
            );
            if dialect != Dialect::Anthropic || delivery == steadyhand_models::Delivery::Streaming {
                assert!(text.contains("line 1, column 13"), "{dialect}: {text}");
            }
            assert_eq!(provider.refused(), Vec::<String>::new());
        }
    }
}

#[tokio::test]
async fn the_conversation_is_told_message_by_message_and_calls_before_they_run() {
    let model = Scripted::new()
        .calls("get_weather", json!({"city": "Rome"}))
        .says("18.");
    let agent = Agent::new(Arc::new(model), executor([weather()]));
    let mut conversation = vec![Message::human("?")];
    let (_, events) = run(&agent, &mut conversation).await;
    let told: Vec<&Message> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Message { message } => Some(message),
            _ => None,
        })
        .collect();
    assert_eq!(told, conversation[1..].iter().collect::<Vec<_>>());
    let place = |wanted: &str| {
        events.iter().position(|event| {
            let json = serde_json::to_value(event).expect("JSON");
            json["type"] == wanted
        })
    };
    let order = [
        place("asked"),
        place("message"),
        place("call_started"),
        place("call_finished"),
        place("text"),
    ];
    assert!(
        order.iter().all(Option::is_some) && order.is_sorted(),
        "{order:?}"
    );
}

#[tokio::test]
async fn a_model_that_fails_leaves_the_conversation_as_it_was() {
    let (provider, model) = model(
        Dialect::OpenAi,
        [Line::refuses(400, "no"), Line::says("Fine.")],
    )
    .await;
    let agent = Agent::new(model, executor([weather()]));
    let mut conversation = vec![Message::human("Hello")];
    let (end, _) = run(&agent, &mut conversation).await;
    assert!(matches!(end.end, End::Failed(_)), "{:?}", end.end);
    assert_eq!(conversation, [Message::human("Hello")]);
    let (end, events) = run(&agent, &mut conversation).await;
    assert_eq!(end.end, End::Answered);
    assert_eq!(words(&events), "Fine.");
    assert!(provider.refused().is_empty());
}

#[tokio::test]
async fn an_answered_conversation_is_not_asked_again() {
    let agent = Agent::new(Arc::new(Scripted::new()), executor([weather()]));
    let mut conversation = vec![Message::human("Hi"), AiMessage::saying("Hello").into()];
    let (end, events) = run(&agent, &mut conversation).await;
    assert_eq!((end.end, end.text.as_str()), (End::Answered, "Hello"));
    assert!(events.is_empty());
}

#[tokio::test]
async fn calls_written_as_text_become_calls_only_where_that_is_allowed_for() {
    let text =
        "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", \"unit\": \"celsius\"}}";
    let lines = || [Line::says(text), Line::says("18 degrees.")];
    let (_first, plain) = model(Dialect::Ollama, lines()).await;
    let agent = Agent::new(plain, executor([weather()]));
    let (end, _) = run(&agent, &mut vec![Message::human("Weather in Paris?")]).await;
    assert_eq!(end.calls, 0);
    let (provider, model) = model(Dialect::Ollama, lines()).await;
    let mut settings = AgentSettings::default();
    settings.recover_calls = true;
    let agent = Agent::new(model, executor([weather()])).with(settings);
    let mut conversation = vec![Message::human("Weather in Paris?")];
    let (end, events) = run(&agent, &mut conversation).await;
    assert_eq!((end.calls, end.text.as_str()), (1, "18 degrees."));
    let Message::Tool(result) = &conversation[2] else {
        panic!("{conversation:?}")
    };
    assert_eq!(result.content.text(), "18 C in Paris");
    assert!(events.iter().any(|event| matches!(event, AgentEvent::Notice(notice) if notice.code == NoticeCode::CallRecovered)));
    assert!(provider.refused().is_empty());
}

#[tokio::test]
async fn a_tool_that_hangs_is_ended_by_its_deadline_and_the_loop_goes_on() {
    let hanging = script("hangs").hangs();
    let tool = hanging.tool().policy(Policy {
        timeout: Duration::from_millis(50),
        deadline: Duration::from_millis(100),
        ..Policy::default()
    });
    let model = Scripted::new()
        .calls("hangs", json!({}))
        .says("It did not answer.");
    let mut settings = AgentSettings::default();
    settings.guard = LoopGuard::off();
    let agent = Agent::new(Arc::new(model), executor([tool])).with(settings);
    let mut conversation = vec![Message::human("Go")];
    let (end, events) = run(&agent, &mut conversation).await;
    assert_eq!(end.end, End::Answered);
    let code = events.iter().find_map(|event| match event {
        AgentEvent::CallFinished {
            outcome: Some(outcome),
            ..
        } => outcome.failure().map(|failure| failure.code),
        _ => None,
    });
    assert_eq!(code, Some(FailureCode::Timeout));
}
