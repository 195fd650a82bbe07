//! Whatever tools do, and wherever the user cancels, the next request is valid for every provider.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use steadyhand::testing::{on_paused_clock, script};
use steadyhand::{
    AiMessage, Content, InvalidToolCall, Message, Policy, ToolCall, ToolError, ToolExecutor,
    ToolManager,
};
use steadyhand_conversation::strict;
use steadyhand_models::wire::encode;
use steadyhand_models::{
    Agent, AgentEvent, AgentSettings, CancellationToken, Delivery, Dialect, ModelError,
    ModelErrorKind, ModelRequest, ModelSettings, Scripted, ToolChoice,
};

#[derive(Debug, Clone)]
enum Does {
    Answers,
    Fails,
    Hangs,
    Panics,
    TakesLong,
}

#[derive(Debug, Clone)]
enum Turn {
    Says(String),
    Calls {
        text: String,
        tools: Vec<usize>,
        ids: Ids,
    },
    Breaks(String),
    Fails,
}

#[derive(Debug, Clone)]
enum Ids {
    Own,
    Same,
    Odd,
}

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        Just(Does::Answers),
        Just(Does::Fails),
        Just(Does::Hangs),
        Just(Does::Panics),
        Just(Does::TakesLong)
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    let ids = prop_oneof![Just(Ids::Own), Just(Ids::Same), Just(Ids::Odd)];
    prop_oneof![
        2 => "[a-z ]{0,12}".prop_map(Turn::Says),
        6 => ("[a-z]{0,5}", prop::collection::vec(0usize..6, 1..4), ids).prop_map(|(text, tools, ids)| Turn::Calls { text, tools, ids }),
        1 => "\\{\"a[^}]{0,6}".prop_map(Turn::Breaks),
        1 => Just(Turn::Fails),
    ]
}

fn message(turn: &Turn) -> Result<AiMessage, ModelError> {
    match turn {
        Turn::Says(text) => Ok(AiMessage::saying(text.clone())),
        Turn::Fails => Err(ModelError::new(ModelErrorKind::Provider, "down")),
        Turn::Breaks(args) => Ok(AiMessage {
            content: Content::default(),
            invalid_tool_calls: vec![InvalidToolCall {
                id: Some("broken".to_owned()),
                name: Some("tool_0".to_owned()),
                args: Some(args.clone()),
                error: Some("unfinished".to_owned()),
                ..InvalidToolCall::default()
            }],
            ..AiMessage::default()
        }),
        Turn::Calls { text, tools, ids } => {
            let call = |(index, tool): (usize, &usize)| {
                // The last is one that nobody has.
                let name = format!("tool_{tool}");
                let Value::Object(args) = json!({"n": index}) else {
                    unreachable!()
                };
                match ids {
                    Ids::Own => ToolCall::new(name, args),
                    Ids::Same => ToolCall::with_id(format!("call_{index}"), name, args),
                    Ids::Odd => ToolCall::with_id(
                        format!("functions.{name}:{index} ✓ {}", "x".repeat(50)),
                        name,
                        args,
                    ),
                }
            };
            Ok(AiMessage::calling(
                text.clone(),
                tools.iter().enumerate().map(call).collect(),
            ))
        }
    }
}

fn tools(behaviours: &[Does]) -> ToolExecutor {
    let manager = ToolManager::new();
    for (index, does) in behaviours.iter().enumerate() {
        let tool = script(format!("tool_{index}"));
        let tool = match does {
            Does::Answers => tool.answers(json!({"fine": true})),
            Does::Fails => tool.fails(ToolError::answer("it does not work")),
            Does::Hangs => tool.hangs(),
            Does::Panics => tool.panics("oh no"),
            Does::TakesLong => tool.answers("late").taking(Duration::from_secs(2)),
        };
        let policy = Policy {
            timeout: Duration::from_secs(5),
            deadline: Duration::from_secs(8),
            ..Policy::default()
        };
        manager
            .add(tool.tool().policy(policy))
            .expect("a good tool");
    }
    ToolExecutor::new(manager)
}

fn check(conversation: &[Message], tools: &[Value], when: &str) {
    let mut next = conversation.to_vec();
    next.push(Message::human("And now?"));
    for messages in [conversation, &next] {
        if messages.is_empty() {
            continue;
        }
        for dialect in Dialect::ALL {
            for choice in [ToolChoice::Auto, ToolChoice::None] {
                let settings = ModelSettings::new(dialect, "claude-sonnet-4-6");
                let request = ModelRequest {
                    messages,
                    tools,
                    choice,
                    delivery: Delivery::Streaming,
                };
                let body = encode(&settings, &request).body;
                assert_eq!(
                    strict::check(dialect.provider(), &body),
                    Ok(()),
                    "{dialect} {when}: {body:#}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_tools_do_and_wherever_the_user_cancels_the_next_request_is_valid(
        behaviours in prop::collection::vec(does(), 5),
        turns in prop::collection::vec(turn(), 1..8),
        cancel_at in prop::option::of(0usize..30),
        drop_at in prop::option::of(0u64..12_000),
        keeps_calls in any::<bool>(),
    ) {
        let lines = turns.iter().fold(Scripted::new(), |model, turn| match message(turn) {
            Ok(message) => model.answers(message),
            Err(error) => model.fails(error),
        });
        on_paused_clock(async {
            let executor = tools(&behaviours);
            let definitions: Vec<Value> = executor.tools().list().iter().map(|tool| serde_json::to_value(tool.as_ref()).expect("JSON")).collect();
            let mut settings = AgentSettings::default();
            settings.max_iterations = 4;
            let agent = Agent::new(Arc::new(lines), executor).with(settings);
            let mut conversation = vec![Message::system("Be brief"), Message::human("Go")];
            let mut stored = conversation.clone();
            let cancel = CancellationToken::new();
            for round in 0..3 {
                let mut events = 0;
                let mut tell = |event: AgentEvent| {
                    if Some(events) == cancel_at && round == 0 {
                        cancel.cancel();
                    }
                    events += 1;
                    if let AgentEvent::Message { message } = event {
                        stored.push(message);
                    }
                };
                let token = if round == 0 { cancel.clone() } else { CancellationToken::new() };
                let turn = agent.run(&mut conversation, &token, &mut tell);
                match drop_at.filter(|_| round == 1) {
                    Some(ms) => drop(tokio::time::timeout(Duration::from_millis(ms), turn).await),
                    None => drop(turn.await),
                }
                check(&conversation, &definitions, "in memory");
                // What a chat has on disk, after a crash right now.
                check(&stored, &definitions, "on disk");
                // One that resumes from it, and one that throws away what it has not.
                if keeps_calls {
                    conversation.clone_from(&stored);
                } else {
                    stored.clone_from(&conversation);
                }
                conversation.push(Message::human("Next"));
                stored.push(Message::human("Next"));
            }
        });
    }
}
