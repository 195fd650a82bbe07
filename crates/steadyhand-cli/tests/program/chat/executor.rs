//! V10: no client and no service of this program calls a tool otherwise than through a ToolExecutor.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{Event, Observer, ToolExecutor, ToolManager};
use steadyhand_config::transcriber::TranscriberSettings;
use steadyhand_models::{Agent, Scripted};
use steadyhand_voice::{BackgroundTranscriber, Utterance};

use crate::support::PATIENCE;

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Observer for Seen {
    fn observe(&self, event: &Event) {
        if let Event::Finished { outcome, .. } = event {
            self.0.lock().expect("seen").push(outcome.tool_name.clone());
        }
    }
}

#[tokio::test]
async fn v10_every_call_of_the_transcriber_is_seen_by_the_executor_it_was_given() {
    let lights = script("lights").answers(json!("on"));
    let tools = ToolManager::new();
    tools.add(lights.tool()).expect("a tool");
    let executor = ToolExecutor::new(tools);
    let seen = Seen::default();
    let _watch = executor.observe(seen.clone()).expect("an observer");
    let model = Scripted::new()
        .calls("lights", json!({}))
        .calls("nonesuch", json!({}))
        .says("It is **on**.");
    let agent = Agent::new(Arc::new(model), executor);
    let transcriber = BackgroundTranscriber::new(agent, None, &TranscriberSettings::default());
    let answer = transcriber
        .hear(Utterance::new("kitchen", "Light, please"))
        .await;
    assert_eq!(answer.text, "It is on.");
    assert_eq!(answer.stop_reason, "end_turn");
    assert_eq!(answer.calls, 2);
    assert_eq!(lights.seen().len(), 1);
    // Observers have a thread of their own.
    let until = tokio::time::Instant::now() + PATIENCE;
    while *seen.0.lock().expect("seen") != ["lights", "nonesuch"] {
        assert!(tokio::time::Instant::now() < until, "{:?}", seen.0);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[test]
fn v10_no_file_of_chat_models_transcriber_or_proxy_runs_a_tool_itself() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for place in [
        "steadyhand-cli/src/chat",
        "steadyhand-cli/src/models.rs",
        "steadyhand-cli/src/transcriber.rs",
        "steadyhand-runtime/src/models",
        "steadyhand-voice/src",
    ] {
        collect(&source.join(place), &mut files);
    }
    assert!(files.len() > 10, "{files:?}");
    const AROUND: [&str; 4] = [".handler()", "Invocation", " Handler for", "run_by("];
    let counted = |files: &[PathBuf], ways: &[&str]| -> usize {
        let of_one = |file: &PathBuf| {
            let text = std::fs::read_to_string(file).expect("a source file");
            let found = ways.iter().map(|way| text.matches(way).count());
            found.sum::<usize>()
        };
        files.iter().map(of_one).sum()
    };
    const THROUGH: [&str; 2] = [".execute(", ".execute_batch"];
    assert_eq!(counted(&files, &AROUND), 0);
    // The loop of the models has it done.
    assert_eq!(counted(&files, &THROUGH), 0);
    let mut proxy = Vec::new();
    collect(&source.join("steadyhand-proxy/src"), &mut proxy);
    assert!(proxy.len() > 20, "{proxy:?}");
    assert_eq!(counted(&proxy, &AROUND), 0);
    // One batch of calls that the model made goes where those of REST go, and nothing else does.
    assert_eq!(counted(&proxy, &THROUGH), 0);
    assert_eq!(counted(&proxy, &[".execute_all("]), 1);
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_file() {
        files.push(path.to_owned());
        return;
    }
    for entry in std::fs::read_dir(path).expect("a folder") {
        collect(&entry.expect("an entry").path(), files);
    }
}
