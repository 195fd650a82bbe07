//! BackgroundTranscriber: utterances in, answers out; one conversation per speaker, a bounded queue, barge-in.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::testing::script;
use steadyhand::{ToolExecutor, ToolManager};
use steadyhand_config::transcriber::TranscriberSettings;
use steadyhand_models::testing::{Line, StrictProvider};
use steadyhand_models::{Agent, Client, Demo, Dialect, Scripted};
use steadyhand_voice::{BackgroundTranscriber, Utterance};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::workplace;
use crate::support::{PATIENCE, client, parts};

fn executor(tools: Vec<steadyhand::Tool>) -> ToolExecutor {
    let manager = ToolManager::new();
    for tool in tools {
        manager.add(tool).expect("a tool");
    }
    ToolExecutor::new(manager)
}

#[tokio::test(start_paused = true)]
async fn v10_what_is_said_next_ends_the_answer_before_and_its_calls() {
    let slow = script("slow").hangs();
    let model = Scripted::new()
        .calls("slow", json!({}))
        .says("Never mind, then.");
    let agent = Agent::new(Arc::new(model), executor(vec![slow.tool()]));
    let transcriber = BackgroundTranscriber::new(agent, None, &TranscriberSettings::default());
    let first = transcriber.admit(Utterance::new("kitchen", "Search for it"));
    let first = tokio::spawn(first.answer());
    while slow.seen().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let second = transcriber
        .hear(Utterance::new("kitchen", "No, stop"))
        .await;
    let first = first.await.expect("an answer");
    assert_eq!((first.stop_reason, first.text.as_str()), ("cancelled", ""));
    assert_eq!(second.text, "Never mind, then.");
    assert_eq!(transcriber.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn without_barge_in_every_answer_is_finished_in_order() {
    let model = Scripted::new().says("One.").says("Two.").says("Three.");
    let agent = Agent::new(Arc::new(model), executor(Vec::new()));
    let settings = TranscriberSettings {
        barge_in: Some(false),
        ..TranscriberSettings::default()
    };
    let transcriber = BackgroundTranscriber::new(agent, None, &settings);
    let admitted: Vec<_> = ["a", "b", "c"]
        .map(|text| transcriber.admit(Utterance::new("x", text)))
        .into();
    // The last is waited for first: the order is that of speaking.
    let mut answers = Vec::new();
    for one in admitted.into_iter().rev() {
        answers.push(tokio::spawn(one.answer()));
    }
    let mut texts = Vec::new();
    for answer in answers.into_iter().rev() {
        texts.push(answer.await.expect("an answer").text);
    }
    assert_eq!(texts, ["One.", "Two.", "Three."]);
}

#[tokio::test]
async fn l02_each_speaker_has_a_conversation_of_their_own() {
    let provider = StrictProvider::start(
        Dialect::Anthropic,
        [
            Line::says("Hello Anna."),
            Line::says("Hello Ben."),
            Line::says("You are Anna."),
        ],
    )
    .await;
    let model = Client::new(provider.settings()).expect("a client");
    let agent = Agent::new(Arc::new(model), executor(Vec::new()));
    let system = Some("You are a voice.".to_owned());
    let transcriber = BackgroundTranscriber::new(agent, system, &TranscriberSettings::default());
    for (speaker, text) in [("a", "I am Anna"), ("b", "I am Ben"), ("a", "Who am I?")] {
        transcriber.hear(Utterance::new(speaker, text)).await;
    }
    let last = provider.requests()[2].to_string();
    assert!(
        last.contains("I am Anna") && last.contains("Who am I?"),
        "{last}"
    );
    assert!(!last.contains("Ben"), "{last}");
    assert!(last.contains("You are a voice."), "{last}");
    assert_eq!(provider.refused(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn one_utterance_too_many_is_refused_and_told_so() {
    let slow = script("slow").hangs();
    let agent = Agent::new(Arc::new(Demo::new()), executor(vec![slow.tool()]));
    let settings = TranscriberSettings {
        queue: Some(2),
        ..TranscriberSettings::default()
    };
    let transcriber = BackgroundTranscriber::new(agent, None, &settings);
    let one = transcriber.admit(Utterance::new("a", "slow {}"));
    let two = transcriber.admit(Utterance::new("b", "slow {}"));
    let three = transcriber.hear(Utterance::new("c", "hello")).await;
    assert_eq!(three.stop_reason, "busy");
    assert!(three.error.expect("a reason").contains("transcriber.queue"));
    drop((one, two));
    let four = transcriber.hear(Utterance::new("c", "hello")).await;
    assert_eq!(four.stop_reason, "end_turn");
}

#[tokio::test]
async fn a_conversation_for_ever_stays_bounded_and_valid() {
    let turns = 80;
    let mut lines = Vec::new();
    for turn in 0..turns {
        lines.push(Line::calls("lights", json!({"turn": turn})));
        lines.push(Line::says(format!("Turn {turn}.")));
    }
    let provider = StrictProvider::start(Dialect::OpenAi, lines).await;
    let lights = script("lights").answers(json!("on"));
    let model = Client::new(provider.settings()).expect("a client");
    let agent = Agent::new(Arc::new(model), executor(vec![lights.tool()]));
    let transcriber = BackgroundTranscriber::new(agent, None, &TranscriberSettings::default());
    for turn in 0..turns {
        let answer = transcriber.hear(Utterance::new("a", "Light")).await;
        assert_eq!(answer.text, format!("Turn {turn}."), "{:?}", answer.error);
    }
    assert_eq!(provider.refused(), Vec::<String>::new());
    let last = provider.requests().pop().expect("a request");
    let messages = last["messages"].as_array().expect("messages").len();
    assert!(messages <= 64, "{messages}");
}

#[tokio::test]
async fn v10_what_a_model_thinks_is_not_spoken_whoever_serves_it() {
    for dialect in Dialect::ALL {
        for (said, spoken) in [
            (
                "<think>The user wants **light**.</think>\n\nIt is on.",
                "It is on.",
            ),
            ("The user wants light.\n</think>\n\nIt is on.", "It is on."),
            ("<think>The user wants li", ""),
        ] {
            let provider = StrictProvider::start(dialect, [Line::says(said)]).await;
            let model = Client::new(provider.settings()).expect("good settings");
            let agent = Agent::new(Arc::new(model), executor(Vec::new()));
            let transcriber =
                BackgroundTranscriber::new(agent, None, &TranscriberSettings::default());
            let answer = transcriber.hear(Utterance::new("a", "light, please")).await;
            assert_eq!(answer.text, spoken, "{dialect}: {said}");
        }
    }
}

#[tokio::test]
async fn a_model_that_fails_is_an_answer_that_can_be_spoken() {
    let agent = Agent::new(Arc::new(Scripted::new()), executor(Vec::new()));
    let transcriber = BackgroundTranscriber::new(agent, None, &TranscriberSettings::default());
    let answer = transcriber.hear(Utterance::new("a", "hello")).await;
    assert_eq!(answer.stop_reason, "error");
    assert_eq!(answer.text, "Sorry, I cannot answer right now.");
    assert!(answer.error.expect("a reason").contains("no more lines"));
}

#[test]
fn v10_lines_of_stdin_are_answered_on_stdout() {
    let workplace = workplace("");
    let run = workplace
        .command(&["transcriber", "--model", "demo", "--no-barge-in"])
        .stdin("What is 12 * 34?\n\n{\"speaker\": \"ben\", \"text\": \"home_lights {\\\"area\\\": \\\"hall\\\", \\\"state\\\": \\\"on\\\"}\"}\n")
        .assert();
    let (code, stdout, stderr) = parts(&run);
    assert_eq!(code, 0, "{stderr}");
    let mut lines: Vec<&str> = stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 2, "{stdout}");
    assert!(lines[0].starts_with("home_lights says: "), "{stdout}");
    assert_eq!(lines[1], "math_eval says: 408.");
    assert!(stderr.contains("Hears lines on stdin."), "{stderr}");
}

#[tokio::test]
async fn v10_an_utterance_over_http_is_answered_in_the_reply() {
    let workplace = workplace("");
    let mut program = tokio::process::Command::new(env!("CARGO_BIN_EXE_steadyhand"))
        .args(["transcriber", "--model", "demo", "--listen", "127.0.0.1:0"])
        .current_dir(workplace.path())
        .env_clear()
        .envs(crate::support::measured())
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .env("HOME", workplace.path())
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the program");
    let mut lines = BufReader::new(program.stderr.take().expect("stderr")).lines();
    let address = loop {
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        let line = line
            .expect("in time")
            .expect("a line")
            .expect("not the end");
        if let Some((_, rest)) = line.split_once("http://") {
            break rest.split('/').next().expect("an address").to_owned();
        }
    };
    let post = |body: Value, host: Option<&'static str>| {
        let mut request = client().post(format!("http://{address}/utterances"));
        if let Some(host) = host {
            request = request.header("host", host);
        }
        request.body(body.to_string()).send()
    };
    let said = json!({"speaker": "kitchen", "text": "What is 12 * 34?"});
    let reply = post(said.clone(), None).await.expect("a reply");
    assert_eq!(reply.status(), 200);
    let answer: Value =
        serde_json::from_slice(&reply.bytes().await.expect("a body")).expect("JSON");
    assert_eq!(answer["text"], "math_eval says: 408.");
    assert_eq!(answer["speaker"], "kitchen");
    assert_eq!(answer["calls"], 1);
    // A page of another site cannot use the tools under a name of its own.
    let foreign = post(said, Some("evil.example")).await.expect("a reply");
    assert_eq!(foreign.status(), 403);
    let nothing = client()
        .post(format!("http://{address}/utterances"))
        .body(" ")
        .send()
        .await
        .expect("a reply");
    assert_eq!(nothing.status(), 400);
    let elsewhere = client().get(format!("http://{address}/x")).send().await;
    assert_eq!(elsewhere.expect("a reply").status(), 404);
}

#[test]
fn other_machines_are_let_in_only_with_a_token() {
    let workplace = workplace("");
    let run = workplace.run("transcriber --model demo --listen 0.0.0.0:0");
    let (code, _, stderr) = parts(&run);
    assert_eq!(code, 8, "{stderr}");
    assert!(stderr.contains("no token is set"), "{stderr}");
}
