//! L06: conversations go from LangChain into the loop, and out of the loop into LangChain.

use std::process::Command;

use serde_json::{Value, json};
use steadyhand::Message;
use steadyhand_models::testing::{Line, Said};
use steadyhand_models::{Agent, Dialect, End};

use super::peers::{ask_peer_with, peer, script};
use super::support::{executor, model, pairs, run, weather};

fn python() -> Command {
    let mut python = Command::new(peer("langchain-py/bin/python"));
    python.arg("-I").arg(script("langchain_talk.py"));
    python
}

fn node() -> Command {
    let mut node = Command::new("node");
    node.arg(script("langchain_talk.mjs"))
        .arg(peer("langchain-js"));
    node
}

/// What the loop makes of a question, with each provider.
async fn ours(dialect: Dialect) -> Vec<Message> {
    let said = Said::text("Let me look.")
        .thinking("Hm.")
        .call("get_weather", json!({"city": "Rome"}))
        .call("nonesuch", json!({}));
    let cut = Line::CutOff(
        Said::default().call("get_weather", json!({})),
        "{\"city\": \"Os".to_owned(),
    );
    let (provider, model) = model(
        dialect,
        [Line::Says(said), cut, Line::says("18."), Line::says("18.")],
    )
    .await;
    let agent = Agent::new(model, executor([weather()]));
    let mut conversation = vec![Message::system("Be brief."), Message::human("Weather?")];
    run(&agent, &mut conversation).await;
    assert!(provider.refused().is_empty());
    conversation
}

async fn check(command: fn() -> Command) {
    for dialect in Dialect::ALL {
        let ours = ours(dialect).await;
        let dicts: Vec<Value> = ours.iter().map(Message::to_dict).collect();
        let told = ask_peer_with(command(), Value::from(dicts).to_string()).await;

        // Ours, as LangChain reads it.
        let kinds: Vec<&str> = ours
            .iter()
            .map(|message| match message {
                Message::System(_) => "system",
                Message::Human(_) => "human",
                Message::Ai(_) => "ai",
                Message::Tool(_) => "tool",
                Message::Other(other) => other.kind.as_str(),
            })
            .collect();
        assert_eq!(told["kinds"], json!(kinds), "{dialect}");
        assert_eq!(told["calls"][0][1], "get_weather");
        assert_eq!(told["calls"][0][2], json!({"city": "Rome"}));
        assert_eq!(told["results"][0][1], "success");
        assert_eq!(told["results"][1][1], "error");
        assert_eq!(told["usage"][0]["output_tokens"], 7, "{dialect}");
        let (calls, results) = pairs(&ours);
        assert_eq!(calls, results);

        // Theirs, as we go on with it: also the call that they could not read.
        let mut theirs =
            Message::list_from_json(told["made"].clone()).expect("LangChain's messages");
        let (provider, model) = model(dialect, [Line::says("18 in Rome.")]).await;
        let agent = Agent::new(model, executor([weather()]));
        let (end, _) = run(&agent, &mut theirs).await;
        assert_eq!(
            (end.end, end.text.as_str()),
            (End::Answered, "18 in Rome."),
            "{dialect} {:?}",
            provider.refused()
        );
        assert_eq!(provider.refused(), Vec::<String>::new());
        let sent = provider.requests()[0].to_string();
        for piece in ["call_1", "18 C", "no such city", "Let me look."] {
            assert!(sent.contains(piece), "{dialect}: {piece} is lost: {sent}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l06_conversations_go_to_langchain_for_python_and_come_from_it() {
    check(python).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l06_conversations_go_to_langchain_for_javascript_and_come_from_it() {
    check(node).await;
}
