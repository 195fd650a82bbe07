//! A real model, end to end: by a command of its own, skipped aloud where there is none.
//!
//! `../shared/real-model/get DIR`, then `STEADYHAND_REAL_MODEL=DIR cargo test --test models v21`.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use steadyhand::Message;
use steadyhand_models::{
    Agent, AgentEvent, CancellationToken, Client, Dialect, End, ModelSettings,
};

use super::support::{executor, weather};

/// A model on a loaded machine takes its time.
const START: Duration = Duration::from_secs(180);
const ANSWER: Duration = Duration::from_secs(900);

fn real_model() -> Option<PathBuf> {
    let found = std::env::var_os("STEADYHAND_REAL_MODEL").map(PathBuf::from);
    if found.is_none() {
        use std::io::Write;
        let _ = writeln!(
            std::io::stderr(),
            "skipped: no real model (set STEADYHAND_REAL_MODEL to the folder of ../shared/real-model/get)"
        );
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn v21_a_real_qwen_model_calls_the_right_tool_and_answers_on_every_wire() {
    let Some(folder) = real_model() else { return };
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = socket.local_addr().expect("an address").port();
    drop(socket);
    let mut serve = tokio::process::Command::new(folder.join("serve"));
    serve
        .arg(port.to_string())
        .env("THREADS", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let _serving = serve.spawn().expect("its server");
    let base = format!("http://127.0.0.1:{port}");
    let until = tokio::time::Instant::now() + START;
    while tokio::net::TcpStream::connect(("127.0.0.1", port))
        .await
        .is_err()
    {
        assert!(
            tokio::time::Instant::now() < until,
            "the model does not start"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for (dialect, url) in [
        (Dialect::OpenAi, format!("{base}/v1")),
        (Dialect::Anthropic, base.clone()),
        (Dialect::OpenAiResponses, format!("{base}/v1")),
    ] {
        let settings = ModelSettings::new(dialect, "q")
            .url(url)
            .temperature(0.0)
            .max_tokens(120)
            .attempts(20);
        let agent = Agent::new(
            Arc::new(Client::new(settings).expect("good settings")),
            executor([weather()]),
        );
        let mut conversation = vec![Message::human("What is the weather in Paris?")];
        let mut events = Vec::new();
        let cancel = CancellationToken::new();
        let mut tell = |event| events.push(event);
        let turn = agent.run(&mut conversation, &cancel, &mut tell);
        let end = tokio::time::timeout(ANSWER, turn).await.expect("an answer");
        assert_eq!(end.end, End::Answered, "{dialect}");
        let called = events.iter().find_map(|event| match event {
            AgentEvent::CallStarted { name, args, .. } => Some((name.clone(), args.clone())),
            _ => None,
        });
        let (name, args) = called.expect("it uses the tool");
        assert_eq!(
            (name.as_str(), &args["city"]),
            ("get_weather", &serde_json::json!("Paris")),
            "{dialect}"
        );
        assert!(end.text.contains("18"), "{dialect}: {}", end.text);
    }
}
