//! A conversation that a crash cut off anywhere is taken up again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::json;
use steadyhand::{KeyStore, KeyStoreError, Message, Taken};
use steadyhand_models::testing::{Line, Said};
use steadyhand_models::{Agent, AgentEvent, AgentSettings, Dialect, End, NoticeCode, Scripted};

use super::support::{counted, executor, model, pairs, plain, run};

/// What a chat writes down, message by message, as the loop tells it.
async fn stored() -> Vec<String> {
    let (_, tool) = counted("lights");
    let calls = [
        ("lights".to_owned(), json!({"room": 1})),
        ("lights".to_owned(), json!({"room": 2})),
    ];
    let model = Scripted::new().calls_all(calls).says("Both are on.");
    let agent = Agent::new(Arc::new(model), executor([tool]));
    let mut conversation = vec![Message::human("Lights!")];
    let mut lines = vec![serde_json::to_string(&conversation[0]).expect("JSON")];
    let (_, events) = run(&agent, &mut conversation).await;
    for event in events {
        if let AgentEvent::Message { message } = event {
            lines.push(serde_json::to_string(&message).expect("JSON"));
        }
    }
    assert_eq!(lines.len(), 5);
    lines
}

fn load(lines: &[String]) -> Vec<Message> {
    lines
        .iter()
        .map(|line| serde_json::from_str(line).expect("a message"))
        .collect()
}

#[tokio::test]
async fn l05_a_conversation_cut_off_after_any_message_goes_on_with_every_provider() {
    let lines = stored().await;
    for kept in 1..=lines.len() {
        for dialect in Dialect::ALL {
            let (lights, tool) = counted("lights");
            let (provider, model) = model(dialect, [Line::says("As I said.")]).await;
            let agent = Agent::new(model, executor([tool]));
            let mut conversation = load(&lines[..kept]);
            let (end, events) = run(&agent, &mut conversation).await;
            assert_eq!(
                end.end,
                End::Answered,
                "{dialect} {kept} {:?}",
                provider.refused()
            );
            assert_eq!(provider.refused(), Vec::<String>::new());
            // Nobody knows whether they ran: they are not run again.
            assert_eq!(lights.starts(), 0);
            let (calls, results) = pairs(&conversation);
            assert_eq!(calls, results, "{dialect} {kept}");
            let told = events.iter().any(|event| matches!(event, AgentEvent::Notice(notice) if notice.code == NoticeCode::OpenCallsAnswered));
            assert_eq!(told, kept == 2 || kept == 3, "{kept}");
            if kept == 2 {
                let Message::Tool(result) = &conversation[2] else {
                    panic!("{conversation:?}")
                };
                assert!(result.content.text().contains("may or may not have run"));
            }
        }
    }
}

/// Keys in a map that outlives the executor, as a database outlives the process.
#[derive(Default)]
struct Keys(Mutex<HashMap<String, Kept>>);

/// The call it belongs to, and how that ended.
type Kept = ([u8; 32], Option<String>);

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

impl KeyStore for Keys {
    fn take<'a>(
        &'a self,
        key: &'a str,
        call: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<Taken, KeyStoreError>> {
        let mut keys = self.0.lock().expect("keys");
        let taken = match keys.get(key) {
            None => {
                keys.insert(key.to_owned(), (*call, None));
                Taken::New
            }
            Some((other, _)) if other != call => Taken::Conflict,
            Some((_, Some(outcome))) => Taken::Finished(outcome.clone()),
            Some((_, None)) => Taken::Unfinished,
        };
        Box::pin(async { Ok(taken) })
    }

    fn settle<'a>(
        &'a self,
        key: &'a str,
        outcome: String,
    ) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        if let Some(entry) = self.0.lock().expect("keys").get_mut(key) {
            entry.1 = Some(outcome);
        }
        Box::pin(async { Ok(()) })
    }

    fn release<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        self.0.lock().expect("keys").remove(key);
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn with_keys_a_call_that_had_ended_is_found_and_one_that_had_not_begun_is_run() {
    let keys: Arc<Keys> = Arc::default();
    let (lights, tool) = counted("lights");
    let mut settings = AgentSettings::default();
    settings.key_prefix = Some("talk-1".to_owned());
    let said = Said::default()
        .call("lights", json!({"room": 1}))
        .call("lights", json!({"room": 2}));
    let (provider, first) = model(Dialect::OpenAi, [Line::Says(said), Line::says("On.")]).await;
    let executor_ = executor([tool.clone()]).with_key_store(Arc::clone(&keys) as _);
    let agent = Agent::new(first, executor_).with(settings.clone());
    let mut conversation = vec![Message::human("Lights!")];
    let (_, _) = run(&agent, &mut conversation).await;
    assert_eq!(lights.starts(), 2);
    let whole = plain(&conversation);

    // The results were lost with the process; one of the calls had not begun.
    let mut cut = conversation[..2].to_vec();
    let second = {
        let Message::Ai(ai) = &cut[1] else {
            panic!("{cut:?}")
        };
        format!("talk-1:1:{}", ai.tool_calls[1].id)
    };
    assert!(
        keys.0.lock().expect("keys").remove(&second).is_some(),
        "{second}"
    );
    let (next, model) = model(Dialect::OpenAi, [Line::says("On.")]).await;
    let executor_ = executor([tool]).with_key_store(keys);
    let agent = Agent::new(model, executor_).with(settings);
    let (end, _) = run(&agent, &mut cut).await;
    assert_eq!(end.end, End::Answered);
    assert_eq!(lights.starts(), 3);
    assert_eq!(plain(&cut), whole);
    assert!(provider.refused().is_empty() && next.refused().is_empty());
}
