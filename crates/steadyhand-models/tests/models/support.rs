//! What the tests share: tools, agents, and a look at conversations without what differs by nature.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::testing::{Script, script};
use steadyhand::{Message, Tool, ToolError, ToolExecutor, ToolManager};
use steadyhand_models::testing::{Line, StrictProvider};
use steadyhand_models::{
    Agent, AgentEvent, AgentSettings, CancellationToken, Client, Delivery, Dialect, Model, TurnEnd,
};

/// Long enough for a machine that does much else: it only shows that nothing hangs.
pub(crate) const LONG: Duration = Duration::from_secs(120);

pub(crate) const BOTH: [Delivery; 2] = [Delivery::Streaming, Delivery::Whole];

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, work).await.expect("it hangs")
}

/// An executor with these tools.
pub(crate) fn executor(tools: impl IntoIterator<Item = Tool>) -> ToolExecutor {
    let manager = ToolManager::new();
    for tool in tools {
        manager.add(tool).expect("a good tool");
    }
    ToolExecutor::new(manager)
}

/// Tells the weather of every city.
pub(crate) fn weather() -> Tool {
    let schema = json!({"type": "object", "properties": {
        "city": {"type": "string"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
    }, "required": ["city"]});
    Tool::with_schema(
        "get_weather",
        "Tells the weather",
        schema,
        |args: Value| async move {
            let city = args["city"].as_str().unwrap_or_default();
            Ok::<_, ToolError>(json!(format!("18 C in {city}")))
        },
    )
}

/// A scripted tool, and the tool of it.
pub(crate) fn counted(name: &str) -> (Script, Tool) {
    let script = script(name).answers("done");
    let tool = script.tool();
    (script, tool)
}

/// A model at a strict provider that says these lines.
pub(crate) async fn model(
    dialect: Dialect,
    lines: impl IntoIterator<Item = Line>,
) -> (StrictProvider, Arc<dyn Model>) {
    let provider = StrictProvider::start(dialect, lines).await;
    let client = Client::new(provider.settings()).expect("good settings");
    (provider, Arc::new(client))
}

pub(crate) fn settings(delivery: Delivery) -> AgentSettings {
    let mut settings = AgentSettings::default();
    settings.delivery = delivery;
    settings
}

/// One turn, and what was told.
pub(crate) async fn run(
    agent: &Agent,
    conversation: &mut Vec<Message>,
) -> (TurnEnd, Vec<AgentEvent>) {
    let mut events = Vec::new();
    let cancel = CancellationToken::new();
    let end = within(agent.run(conversation, &cancel, &mut |event| events.push(event))).await;
    (end, events)
}

/// All the words told, in order.
pub(crate) fn words(events: &[AgentEvent]) -> String {
    let words = events.iter().filter_map(|event| match event {
        AgentEvent::Text { text } => Some(text.as_str()),
        _ => None,
    });
    words.collect()
}

/// A conversation as it would look with any provider: ids by their order, without what only one of them says.
pub(crate) fn plain(conversation: &[Message]) -> Value {
    let mut ids: Vec<String> = Vec::new();
    let mut number = |id: &str| {
        let known = ids.iter().position(|one| one == id);
        known.unwrap_or_else(|| {
            ids.push(id.to_owned());
            ids.len() - 1
        })
    };
    let plain = conversation.iter().map(|message| match message {
        Message::System(said) => json!({"system": said.content.text()}),
        Message::Human(said) => json!({"human": said.content.text()}),
        Message::Ai(said) => {
            let calls: Vec<Value> = said
                .tool_calls
                .iter()
                .map(|call| json!([number(&call.id), call.name, call.args]))
                .collect();
            let broken: Vec<Value> = said
                .invalid_tool_calls
                .iter()
                .map(|call| json!([number(call.id.as_deref().unwrap_or_default()), call.name]))
                .collect();
            json!({"ai": said.content.text(), "calls": calls, "broken": broken})
        }
        Message::Tool(result) => json!({
            "tool": number(&result.tool_call_id),
            "name": result.name,
            "says": result.content.text(),
            "is_error": result.is_error,
        }),
        Message::Other(_) => json!("other"),
    });
    plain.collect()
}

/// The ids of calls, and of results, in their order.
pub(crate) fn pairs(conversation: &[Message]) -> (Vec<String>, Vec<String>) {
    let mut calls = Vec::new();
    let mut results = Vec::new();
    for message in conversation {
        match message {
            Message::Ai(ai) => {
                calls.extend(ai.tool_calls.iter().map(|call| call.id.clone()));
                let broken = ai.invalid_tool_calls.iter();
                calls.extend(broken.filter_map(|call| call.id.clone()));
            }
            Message::Tool(result) => results.push(result.tool_call_id.clone()),
            _ => {}
        }
    }
    (calls, results)
}
