//! The demo model: a fixed script that uses the tools there are, and says what it is.

use std::sync::Arc;

use serde_json::{Value, json};
use steadyhand::testing::script;
use steadyhand::{Message, Tool, ToolError};
use steadyhand_models::{Agent, AgentEvent, Demo, End, Model};

use super::support::{BOTH, executor, run, settings, words};

fn reckons() -> Tool {
    let schema = json!({"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]});
    Tool::with_schema("math_eval", "Evaluates", schema, |args: Value| async move {
        match args["expression"].as_str() {
            Some("12 * 34") => Ok(json!("408")),
            other => Err(ToolError::answer(format!("not {other:?}"))),
        }
    })
}

fn weather() -> Tool {
    let schema =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    Tool::with_schema(
        "weather",
        "Tells the weather",
        schema,
        |args: Value| async move { Ok::<_, ToolError>(json!({"city": args["city"], "sky": "rain"})) },
    )
}

#[tokio::test]
async fn the_demo_reckons_and_looks_at_the_weather_and_calls_what_is_named() {
    let hello = script("say_hello").answers("hello");
    let cases = [
        ("What is 12 * 34?", "math_eval says: 408"),
        ("Will it rain in Oslo?", "weather says: city Oslo, sky rain"),
        (
            "say_hello, and weather {\"city\": \"Rome\"}",
            "say_hello says: hello\nweather says: city Rome, sky rain",
        ),
        (
            "math_eval {\"expression\": \"1 +\"}",
            "math_eval did not work: not Some(\"1 +\")\nIt ran, and failed.",
        ),
    ];
    for (asked, answer) in cases {
        for delivery in BOTH {
            let agent = Agent::new(
                Arc::new(Demo::new()),
                executor([reckons(), weather(), hello.tool()]),
            )
            .with(settings(delivery));
            let mut conversation = vec![Message::human(asked)];
            let (end, events) = run(&agent, &mut conversation).await;
            assert_eq!(
                (end.end, end.text.as_str()),
                (End::Answered, answer),
                "{asked}"
            );
            assert_eq!(words(&events), answer);
            assert!(
                events
                    .iter()
                    .any(|event| matches!(event, AgentEvent::CallFinished { .. }))
            );
        }
    }
}

#[tokio::test]
async fn the_demo_says_that_it_is_no_ai() {
    assert_eq!(
        Demo::new().note(),
        Some("demo model, a fixed script, not an AI")
    );
    let agent = Agent::new(Arc::new(Demo::new()), executor([weather()]));
    let (end, _) = run(&agent, &mut vec![Message::human("Who are you?")]).await;
    assert!(
        end.text.contains("a fixed script, not an AI"),
        "{}",
        end.text
    );
    assert_eq!(end.calls, 0);
}

#[tokio::test]
async fn the_demo_streams_word_by_word() {
    let agent = Agent::new(Arc::new(Demo::new()), executor([weather()]));
    let (_, events) = run(&agent, &mut vec![Message::human("Hi")]).await;
    let pieces = events
        .iter()
        .filter(|event| matches!(event, AgentEvent::Text { .. }))
        .count();
    assert!(pieces > 10, "{pieces}");
}
