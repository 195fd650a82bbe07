//! The same scripted conversation through every provider's strict server, streaming and not.

use serde_json::{Value, json};
use steadyhand::Message;
use steadyhand::testing::script;
use steadyhand_models::testing::{Line, Said};
use steadyhand_models::{Agent, AgentEvent, Dialect, End};

use super::support::{BOTH, executor, model, plain, run, settings, weather, words};

/// Two calls at once, one of a tool that nobody has, a failing tool, then an answer; and a second question.
fn lines() -> Vec<Line> {
    vec![
        Line::Says(
            Said::text("Let me look at both.")
                .call("get_weather", json!({"city": "Rome", "unit": "celsius"}))
                .call("get_weather", json!({"city": "Oslo — «Ærlig»"}))
                .call(
                    "no_such_tool",
                    json!({"a": [1, 2.5, null, {"b": "\u{1F600}\n\"quoted\""}]}),
                ),
        ),
        Line::calls("broken", json!({})),
        Line::says("18 degrees in both; the rest did not work."),
        Line::calls("get_weather", json!({"city": "Rome"})),
        Line::says("Still 18."),
    ]
}

async fn talk(
    dialect: Dialect,
    delivery: steadyhand_models::Delivery,
) -> (Value, Vec<String>, String) {
    let (provider, model) = model(dialect, lines()).await;
    let broken = script("broken").fails(steadyhand::ToolError::answer("no such room"));
    let executor = executor([weather(), broken.tool()]);
    let agent = Agent::new(model, executor).with(settings(delivery));
    let mut conversation = vec![
        Message::system("Be brief."),
        Message::human("What is the weather in Rome and Oslo?"),
    ];
    let (end, mut events) = run(&agent, &mut conversation).await;
    assert_eq!(end.end, End::Answered);
    assert_eq!((end.rounds, end.calls), (2, 4));
    conversation.push(Message::human("And now?"));
    let (end, more) = run(&agent, &mut conversation).await;
    assert_eq!(end.end, End::Answered);
    events.extend(more);
    assert_eq!(provider.refused(), Vec::<String>::new(), "{dialect}");
    assert_eq!(provider.requests().len(), 5);
    // Nothing had to be repaired, left out or cut.
    let notice = events
        .iter()
        .find(|event| matches!(event, AgentEvent::Notice(_)));
    assert!(notice.is_none(), "{dialect}: {notice:?}");
    let outcomes = events.iter().filter_map(|event| match event {
        AgentEvent::CallFinished {
            name,
            result,
            outcome,
            ..
        } => {
            let status = outcome.as_ref().map(|outcome| outcome.status().as_str());
            Some(format!("{name} {status:?} {}", result.content.text()))
        }
        _ => None,
    });
    let mut outcomes: Vec<String> = outcomes.collect();
    outcomes.sort();
    (plain(&conversation), outcomes, words(&events))
}

#[tokio::test]
async fn l02_l07_the_same_conversation_is_the_same_with_every_provider_streaming_and_not() {
    let mut first = None;
    for dialect in Dialect::ALL {
        for delivery in BOTH {
            let told = talk(dialect, delivery).await;
            let expected = first.get_or_insert_with(|| told.clone());
            assert_eq!(&told, expected, "{dialect} {delivery:?}");
        }
    }
    let (conversation, outcomes, words) = first.expect("they ran");
    assert_eq!(outcomes.len(), 5);
    // One AI message and one result per call, in order.
    assert_eq!(
        conversation[2]["calls"][1],
        json!([1, "get_weather", {"city": "Oslo — «Ærlig»"}])
    );
    assert_eq!(
        conversation[4],
        json!({"tool": 1, "name": "get_weather", "says": "18 C in Oslo — «Ærlig»", "is_error": false})
    );
    // L04: the model is told, and the loop goes on.
    assert_eq!(
        conversation[5]["says"],
        "Error: Unknown tool \"no_such_tool\"\nIt was not run."
    );
    assert_eq!(
        conversation[7]["says"],
        "Error: no such room\nIt ran, and failed."
    );
    assert_eq!(
        words,
        "Let me look at both.18 degrees in both; the rest did not work.Still 18."
    );
}

#[tokio::test]
async fn l01_every_call_has_an_id_and_ids_are_made_where_there_are_none() {
    // Ollama before there were ids, twice the same call.
    let body = json!({"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": [
        {"function": {"name": "get_weather", "arguments": {"city": "Rome"}}},
        {"function": {"name": "get_weather", "arguments": {"city": "Rome"}}},
    ]}, "done": true, "done_reason": "stop"});
    let odd = Line::Exactly {
        content_type: "application/json".into(),
        body: body.to_string().into_bytes(),
    };
    let (provider, model) = model(Dialect::Ollama, [odd, Line::says("Done.")]).await;
    let agent = Agent::new(model, executor([weather()]));
    let mut conversation = vec![Message::human("Weather in Rome, twice")];
    let (end, _) = run(&agent, &mut conversation).await;
    assert_eq!(end.end, End::Answered);
    let (calls, results) = super::support::pairs(&conversation);
    assert_eq!(calls.len(), 2);
    assert_ne!(calls[0], calls[1]);
    assert_eq!(calls, results);
    assert!(provider.refused().is_empty());
}

#[tokio::test]
async fn l01_a_short_name_that_a_provider_got_is_mapped_back_to_the_tool() {
    let name = format!("home.lights/{}", "x".repeat(80));
    let schema = json!({"type": "object"});
    for dialect in Dialect::ALL {
        let tool = steadyhand::Tool::with_schema(
            name.clone(),
            "Lights",
            schema.clone(),
            |_: Value| async { Ok::<_, steadyhand::ToolError>(json!("on")) },
        );
        let short = steadyhand_conversation::short_name(dialect.provider(), &name).into_owned();
        let (provider, model) = model(
            dialect,
            [Line::calls(short, json!({})), Line::says("It is on.")],
        )
        .await;
        let agent = Agent::new(model, executor([tool]));
        let mut conversation = vec![Message::human("Lights on")];
        let (end, _) = run(&agent, &mut conversation).await;
        assert_eq!(
            end.end,
            End::Answered,
            "{dialect}: {:?}",
            provider.refused()
        );
        let Message::Ai(ai) = &conversation[1] else {
            panic!("{conversation:?}")
        };
        assert_eq!(ai.tool_calls[0].name, name);
        let Message::Tool(result) = &conversation[2] else {
            panic!("{conversation:?}")
        };
        assert_eq!(result.content.text(), "on");
        assert!(provider.refused().is_empty());
    }
}

#[tokio::test]
async fn v18_v19_only_ollama_gets_qwens_format_and_the_others_their_own() {
    for dialect in Dialect::ALL {
        let (provider, model) = model(dialect, [Line::says("Hi")]).await;
        let agent = Agent::new(model, executor([weather()]));
        run(&agent, &mut vec![Message::human("Hi")]).await;
        let tool = provider.requests()[0]["tools"][0].clone();
        let keys: Vec<&String> = tool.as_object().expect("a tool").keys().collect();
        match dialect {
            Dialect::Anthropic => assert_eq!(keys, ["name", "description", "input_schema"]),
            Dialect::OpenAi | Dialect::Ollama => assert_eq!(keys, ["type", "function"]),
            Dialect::OpenAiResponses => {
                assert_eq!(
                    keys,
                    ["type", "name", "description", "parameters", "strict"]
                );
            }
        }
    }
}

#[tokio::test]
async fn thinking_is_kept_apart_and_goes_back_to_the_provider_it_came_from() {
    for dialect in Dialect::ALL {
        for delivery in BOTH {
            let said = Said::default()
                .thinking("The user wants the weather.")
                .call("get_weather", json!({"city": "Rome"}));
            let (provider, model) = model(dialect, [Line::Says(said), Line::says("18.")]).await;
            let agent = Agent::new(model, executor([weather()])).with(settings(delivery));
            let mut conversation = vec![Message::human("Weather in Rome?")];
            let (end, events) = run(&agent, &mut conversation).await;
            assert_eq!(end.end, End::Answered, "{dialect} {:?}", provider.refused());
            assert_eq!(words(&events), "18.");
            let second = provider.requests()[1].to_string();
            assert!(
                second.contains("The user wants the weather."),
                "{dialect} {delivery:?}: {second}"
            );
            if dialect == Dialect::Anthropic {
                assert_eq!(
                    provider.requests()[1]["messages"][1]["content"][0]["signature"],
                    "c2lnbmVk"
                );
            }
            // Another provider does not get what only this one understands.
            for other in Dialect::ALL.into_iter().filter(|other| *other != dialect) {
                let (next, model) = super::support::model(other, [Line::says("Bye.")]).await;
                let mut moved = conversation.clone();
                moved.push(Message::human("Thanks"));
                let agent = Agent::new(model, executor([weather()]));
                run(&agent, &mut moved).await;
                assert_eq!(next.refused(), Vec::<String>::new(), "{dialect} to {other}");
                assert!(
                    !next.requests()[0].to_string().contains("The user wants"),
                    "{dialect} to {other}"
                );
            }
        }
    }
}

#[tokio::test]
async fn v20_the_tool_gets_the_arguments_themselves_and_its_result_goes_into_the_answer() {
    let given = json!({"city": "Rome", "days": [1, 2], "nested": {"input": {"a": null}}});
    for dialect in Dialect::ALL {
        for delivery in BOTH {
            let tool = script("forecast").answers(json!({"sky": "rain"}));
            let lines = [Line::calls("forecast", given.clone()), Line::says("Rain.")];
            let (provider, model) = model(dialect, lines).await;
            let agent = Agent::new(model, executor([tool.tool()])).with(settings(delivery));
            let (end, _) = run(&agent, &mut vec![Message::human("Forecast?")]).await;
            assert_eq!(end.text, "Rain.");
            assert_eq!(tool.seen()[0].args, given, "{dialect} {delivery:?}");
            let sent = provider.requests()[1].to_string();
            assert!(sent.contains(r#"{\"sky\":\"rain\"}"#), "{dialect}: {sent}");
        }
    }
}
