//! V10: every tool call goes through a ToolExecutor, and nothing here calls a tool otherwise.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::json;
use steadyhand::{Event, Message, Observer};
use steadyhand_models::testing::{Line, Said};
use steadyhand_models::{Agent, AgentEvent, Dialect, End};

use super::support::{BOTH, LONG, counted, executor, model, run, settings};

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(String, String)>>>);

impl Observer for Seen {
    fn observe(&self, event: &Event) {
        if let Event::Finished { outcome, .. } = event {
            let seen = (outcome.call_id.clone(), outcome.tool_name.clone());
            self.0.lock().expect("seen").push(seen);
        }
    }
}

#[tokio::test]
async fn v10_every_call_of_every_client_is_seen_by_the_executor_it_was_given() {
    for dialect in Dialect::ALL {
        for delivery in BOTH {
            let (lights, tool) = counted("lights");
            let executor = executor([tool]);
            let seen = Seen::default();
            let _watch = executor.observe(seen.clone()).expect("an observer");
            let said = Said::default()
                .call("lights", json!({"room": 1}))
                .call("lights", json!({"room": 2}))
                .call("nonesuch", json!({}));
            let cut = Line::CutOff(
                Said::default().call("lights", json!({})),
                "{\"room\"".to_owned(),
            );
            let (_provider, model) = model(
                dialect,
                [
                    Line::Says(said),
                    cut,
                    Line::says("Done."),
                    Line::says("Done."),
                ],
            )
            .await;
            let agent = Agent::new(model, executor.clone()).with(settings(delivery));
            let mut conversation = vec![Message::human("Go")];
            let (end, events) = run(&agent, &mut conversation).await;
            assert!(
                matches!(end.end, End::Answered | End::CutOff),
                "{:?}",
                end.end
            );
            // The tool has run as often as the executor was asked to, and no other way leads to it.
            assert_eq!(lights.starts(), 2, "{dialect} {delivery:?}");
            let mut handed_on: Vec<String> = events
                .into_iter()
                .filter_map(|event| match event {
                    AgentEvent::CallFinished {
                        call_id,
                        outcome: Some(_),
                        ..
                    } => Some(call_id),
                    _ => None,
                })
                .collect();
            handed_on.sort();
            assert!(handed_on.len() >= 3);
            // Observers have a thread of their own.
            let until = tokio::time::Instant::now() + LONG;
            loop {
                let seen = seen.0.lock().expect("seen").clone();
                let mut watched: Vec<String> = seen.into_iter().map(|(id, _)| id).collect();
                watched.sort();
                if watched == handed_on {
                    break;
                }
                assert!(
                    tokio::time::Instant::now() < until,
                    "{watched:?} {handed_on:?}"
                );
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        }
    }
}

#[test]
fn v10_no_source_file_here_runs_a_tool_but_through_the_executor() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&source, &mut files);
    assert!(files.len() > 20, "{files:?}");
    let mut through_the_executor = 0;
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a source file");
        for way_around in [
            ".handler()",
            "Invocation",
            "Handler for",
            "run_by(",
            "ToolSource",
        ] {
            assert!(
                !text.contains(way_around),
                "{} has {way_around}",
                file.display()
            );
        }
        through_the_executor +=
            text.matches(".execute_batch").count() + text.matches(".execute(").count();
    }
    // One round of calls, and the calls that a crash left open: nothing else runs anything.
    assert_eq!(through_the_executor, 2);
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}
