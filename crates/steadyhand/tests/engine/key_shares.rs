//! Whom an idempotency key counts for: a caller that makes many calls with keys leaves those of others alone.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{Call, KeyCaller, KeyStore, KeyStoreError, Permit, Taken};

use crate::support::{code, executor, failure};

/// A permit that lets everything pass, and says whose call it is.
struct Of(&'static str);

impl Permit for Of {
    fn allows(&self, _: &str) -> bool {
        true
    }

    fn refusal(&self, _: &str) -> String {
        String::new()
    }

    fn owner(&self) -> Option<&str> {
        Some(self.0)
    }
}

/// One that may have what is kept for operators, under another name than its own.
struct Operator;

impl Permit for Operator {
    fn allows(&self, _: &str) -> bool {
        true
    }

    fn refusal(&self, _: &str) -> String {
        String::new()
    }

    fn owner(&self) -> Option<&str> {
        Some("127.0.0.1")
    }

    fn key_caller(&self) -> Option<KeyCaller<'_>> {
        Some(KeyCaller {
            name: "this machine",
            uses_reserve: true,
        })
    }
}

/// A store that has room for nobody but one caller, and knows who asked.
#[derive(Debug, Default)]
struct RoomForOne {
    asked: Mutex<BTreeSet<(Option<String>, bool)>>,
}

impl KeyStore for RoomForOne {
    fn take<'a>(
        &'a self,
        key: &'a str,
        call: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<Taken, KeyStoreError>> {
        self.take_for(None, key, call)
    }

    fn take_for<'a>(
        &'a self,
        caller: Option<KeyCaller<'a>>,
        _: &'a str,
        _: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<Taken, KeyStoreError>> {
        let name = caller.map(|caller| caller.name.to_owned());
        let uses_reserve = caller.is_some_and(|caller| caller.uses_reserve);
        let is_greedy = name.as_deref() == Some("greedy");
        self.asked.lock().unwrap().insert((name, uses_reserve));
        Box::pin(async move {
            match is_greedy {
                true => Err(KeyStoreError("greedy has its share".to_owned())),
                false => Ok(Taken::New),
            }
        })
    }

    fn settle<'a>(&'a self, _: &'a str, _: String) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        Box::pin(async { Ok(()) })
    }

    fn release<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        Box::pin(async { Ok(()) })
    }
}

fn order(key: &str) -> Call {
    Call::new("order", json!({})).idempotency_key(key)
}

#[tokio::test]
async fn s02_a_key_store_is_told_whose_key_it_keeps_and_refuses_that_caller_alone() {
    let tool = script("order").answers(json!({"ordered": true}));
    let store = Arc::new(RoomForOne::default());
    let executor = executor([tool.tool()]).with_key_store(Arc::clone(&store) as _);
    let refused = executor
        .execute(order("1").permit(Arc::new(Of("greedy"))))
        .await;
    assert_eq!(code(&refused), "OVERLOADED");
    let told = failure(&refused).message_with_effect();
    assert!(
        told.contains("greedy has its share") && told.contains("was not run"),
        "{told}"
    );
    assert_eq!(tool.starts(), 0);
    for call in [
        order("2").permit(Arc::new(Of("other"))),
        order("3").permit(Arc::new(Operator)),
        order("4"),
        // Without a key there is nothing to keep.
        Call::new("order", json!({})).permit(Arc::new(Of("greedy"))),
    ] {
        assert!(executor.execute(call).await.is_success());
    }
    let asked = store.asked.lock().unwrap().clone();
    let expected = [
        (None, false),
        (Some("greedy".to_owned()), false),
        (Some("other".to_owned()), false),
        (Some("this machine".to_owned()), true),
    ];
    assert_eq!(asked, BTreeSet::from(expected));
}

#[tokio::test]
async fn s02_outcomes_of_one_caller_leave_those_of_others_in_memory() {
    let tool = script("order").answers(json!({"ordered": true}));
    let executor = executor([tool.tool()]);
    let [greedy, other] = [Arc::new(Of("greedy")), Arc::new(Of("other"))];
    for number in 0..50 {
        let call = order(&format!("other-{number}")).permit(Arc::clone(&other) as _);
        executor.execute(call).await;
    }
    executor.execute(order("nobody's")).await;
    // More than are kept of all callers together.
    for number in 0..10_100 {
        let call = order(&format!("greedy-{number}")).permit(Arc::clone(&greedy) as _);
        executor.execute(call).await;
    }
    for number in 0..50 {
        let call = order(&format!("other-{number}")).permit(Arc::clone(&other) as _);
        let again = executor.execute(call).await;
        assert!(again.replayed, "other-{number} ran again");
    }
    assert!(executor.execute(order("nobody's")).await.replayed);
    let newest = order("greedy-10099").permit(Arc::clone(&greedy) as _);
    assert!(executor.execute(newest).await.replayed);
}

#[tokio::test]
async fn s02_large_outcomes_of_one_caller_leave_those_of_others_in_memory() {
    let large = "x".repeat(4 * 1024 * 1024);
    let tools = [
        script("small").answers(json!("little")),
        script("large").answers(json!(large)),
    ];
    let executor = executor(tools.iter().map(|tool| tool.tool()));
    let [greedy, other] = [Arc::new(Of("greedy")), Arc::new(Of("other"))];
    let small = || {
        let call = Call::new("small", json!({})).idempotency_key("mine");
        call.permit(Arc::clone(&other) as _)
    };
    executor.execute(small()).await;
    for number in 0..20 {
        let call = Call::new("large", json!({})).idempotency_key(format!("large-{number}"));
        let outcome = executor
            .execute(call.permit(Arc::clone(&greedy) as _))
            .await;
        assert!(outcome.is_success(), "{outcome:?}");
    }
    assert!(executor.execute(small()).await.replayed);
}
