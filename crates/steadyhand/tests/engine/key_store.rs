//! Idempotency keys that outlive an executor: what a second one does with what the first has left.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::json;
use steadyhand::testing::{Script, script};
use steadyhand::{
    Call, Effect, FailureCode, KeyStore, KeyStoreError, Output, Taken, Tool, ToolError,
    ToolExecutor,
};

use crate::support::{code, executor, failure, secs};

/// A call's fingerprint, and its outcome once it has one.
type Written = ([u8; 32], Option<String>);

/// What a store would have on its disk.
#[derive(Debug, Default)]
struct Disk {
    keys: Mutex<HashMap<String, Written>>,
    is_full: Mutex<bool>,
    hangs: bool,
}

impl KeyStore for Disk {
    fn take<'a>(
        &'a self,
        key: &'a str,
        call: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<Taken, KeyStoreError>> {
        Box::pin(async move {
            if self.hangs {
                std::future::pending::<()>().await;
            }
            if *self.is_full.lock().unwrap() {
                return Err(KeyStoreError("no room on the disk".to_owned()));
            }
            let mut keys = self.keys.lock().unwrap();
            Ok(match keys.get(key) {
                None => {
                    keys.insert(key.to_owned(), (*call, None));
                    Taken::New
                }
                Some((other, _)) if other != call => Taken::Conflict,
                Some((_, Some(outcome))) => Taken::Finished(outcome.clone()),
                Some((_, None)) => Taken::Unfinished,
            })
        })
    }

    fn settle<'a>(
        &'a self,
        key: &'a str,
        outcome: String,
    ) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        Box::pin(async move {
            if let Some((_, kept)) = self.keys.lock().unwrap().get_mut(key) {
                *kept = Some(outcome);
            }
            Ok(())
        })
    }

    fn release<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        Box::pin(async move {
            self.keys.lock().unwrap().remove(key);
            Ok(())
        })
    }
}

/// A process with this tool on this disk.
fn process(tool: Tool, disk: &Arc<Disk>) -> ToolExecutor {
    executor([tool]).with_key_store(Arc::clone(disk) as Arc<dyn KeyStore>)
}

fn order(number: u32) -> Call {
    Call::new("order", json!({"number": number})).idempotency_key("k-1")
}

fn shop() -> Script {
    script("order").answers(json!({"ordered": true}))
}

#[tokio::test(start_paused = true)]
async fn r07_the_same_key_in_the_next_process_gets_the_outcome_of_the_first() {
    let disk = Arc::new(Disk::default());
    let first = process(shop().tool(), &disk).execute(order(7)).await;
    let tool = shop();
    let second = process(tool.tool(), &disk)
        .execute(order(7).id("again"))
        .await;
    assert_eq!(tool.starts(), 0);
    assert_eq!(
        second.output().unwrap().value(),
        first.output().unwrap().value()
    );
    assert_eq!((second.call_id.as_str(), second.replayed), ("again", true));
    assert!(!first.replayed);
}

#[tokio::test(start_paused = true)]
async fn r07_everything_about_an_outcome_is_kept() {
    let disk = Arc::new(Disk::default());
    let answer = || Output::text_with_artifact("three apples", json!([1, 2, 3]));
    let tool = || {
        Tool::function("order", "d", move |_: steadyhand::NoArgs| async move {
            Ok::<Output, ToolError>(answer())
        })
    };
    let ask = || Call::new("order", json!({})).idempotency_key("k");
    let first = process(tool(), &disk).execute(ask()).await;
    let second = process(tool(), &disk).execute(ask()).await;
    assert_eq!(second.result, first.result);
    let ill = || {
        script("order")
            .fails(ToolError::answer("sold out"))
            .tool()
            .fallback_value(json!("pears"))
    };
    let ask = || Call::new("order", json!({})).idempotency_key("other");
    let first = process(ill(), &disk).execute(ask()).await;
    let second = process(ill(), &disk).execute(ask()).await;
    assert_eq!(failure(&second).message, failure(&first).message);
    assert_eq!(
        (second.fallback, second.attempts),
        (first.fallback, first.attempts)
    );
}

#[tokio::test(start_paused = true)]
async fn r07_a_call_that_a_crash_cut_off_is_not_run_again() {
    let disk = Arc::new(Disk::default());
    let cut_off = process(script("order").hangs().tool(), &disk);
    tokio::spawn(async move { cut_off.execute(order(7)).await });
    // It has been started, and its process is heard of no more.
    while disk.keys.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let tool = shop();
    let second = process(tool.tool(), &disk).execute(order(7)).await;
    assert_eq!(tool.starts(), 0, "it may have run");
    let failure = failure(&second);
    assert_eq!(
        (failure.code, failure.effect),
        (FailureCode::Cancelled, Effect::Unknown)
    );
    assert!(
        failure.message_with_effect().contains("may have run"),
        "{failure}"
    );
}

#[tokio::test(start_paused = true)]
async fn r07_the_key_of_another_call_is_a_conflict_over_a_restart_too() {
    let disk = Arc::new(Disk::default());
    process(shop().tool(), &disk).execute(order(7)).await;
    let tool = shop();
    let other = process(tool.tool(), &disk).execute(order(8)).await;
    assert_eq!((code(&other), tool.starts()), ("IDEMPOTENCY_CONFLICT", 0));
}

#[tokio::test(start_paused = true)]
async fn r07_a_call_that_never_reached_its_tool_leaves_its_key_free() {
    let disk = Arc::new(Disk::default());
    let schema = json!({"type": "object", "required": ["number"]});
    let strict = shop().schema(schema).tool();
    let wrong = Call::new("order", json!({})).idempotency_key("k-1");
    let refused = process(strict, &disk).execute(wrong).await;
    assert_eq!(code(&refused), "VALIDATION_ERROR");
    let tool = shop();
    assert!(
        process(tool.tool(), &disk)
            .execute(order(7))
            .await
            .is_success()
    );
    assert_eq!(tool.starts(), 1);
}

#[tokio::test(start_paused = true)]
async fn r07_a_key_that_cannot_be_written_down_refuses_its_call_until_it_can() {
    let disk = Arc::new(Disk::default());
    *disk.is_full.lock().unwrap() = true;
    let tool = shop();
    let executor = process(tool.tool(), &disk);
    let refused = executor.execute(order(7)).await;
    assert_eq!(
        (code(&refused), failure(&refused).effect),
        ("OVERLOADED", Effect::None)
    );
    assert!(failure(&refused).message.contains("no room on the disk"));
    assert_eq!(tool.starts(), 0);
    // Calls without a key need no promise.
    assert!(
        executor
            .execute(Call::new("order", json!({})))
            .await
            .is_success()
    );
    *disk.is_full.lock().unwrap() = false;
    assert!(executor.execute(order(7)).await.is_success());
}

#[tokio::test(start_paused = true)]
async fn i03_a_store_that_does_not_answer_refuses_the_call_in_time() {
    let disk = Arc::new(Disk {
        hangs: true,
        ..Disk::default()
    });
    let tool = shop();
    let started = tokio::time::Instant::now();
    let refused = process(tool.tool(), &disk).execute(order(7)).await;
    assert_eq!((code(&refused), tool.starts()), ("OVERLOADED", 0));
    assert!(started.elapsed() <= secs(5));
}

#[tokio::test(start_paused = true)]
async fn r07_an_outcome_that_cannot_be_read_counts_as_one_that_may_have_run() {
    let disk = Arc::new(Disk::default());
    process(shop().tool(), &disk).execute(order(7)).await;
    for (_, kept) in disk.keys.lock().unwrap().values_mut() {
        *kept = Some("{".to_owned());
    }
    let tool = shop();
    let second = process(tool.tool(), &disk).execute(order(7)).await;
    assert_eq!(
        (failure(&second).effect, tool.starts()),
        (Effect::Unknown, 0)
    );
}
