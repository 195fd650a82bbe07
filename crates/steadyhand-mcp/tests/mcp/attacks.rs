//! What a program prints, or never stops printing, takes neither the time nor the memory of others.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use steadyhand::FailureCode::{Timeout, ToolExecutionError};
use steadyhand::{ByteBudget, Call, Effect};
use steadyhand_mcp::{Phase, Protocol};
use tokio::time::{Instant, sleep};

use crate::http::well_behaved;
use crate::relay::{Client, call, passage};
use crate::support::{Folder, Stage, failure, python, text, until};

const MB: usize = 1024 * 1024;

pub(crate) async fn stage(attack: &str, memory: &ByteBudget) -> Stage {
    let folder = Folder::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/attacker.py");
    let words = ["-S", "-E", &script.display().to_string(), attack].map(str::to_owned);
    let mut settings = folder.program("attacker", python(), words);
    settings.protocol = Protocol::Legacy;
    settings.memory = memory.clone();
    let stage = Stage::with(folder, settings).await;
    assert_eq!(stage.server.state().phase, Phase::Running);
    stage
}

pub(crate) fn budget(mb: usize) -> ByteBudget {
    ByteBudget::new("the test", mb * MB)
}

fn trouble() -> Call {
    Call::new("trouble", json!({}))
}

/// The test, the reader of what is printed and a well-behaved server share one thread.
#[tokio::test]
async fn s01_a_flood_of_lines_breaks_no_deadline_and_holds_up_no_other_call() {
    let good = well_behaved().await;
    for attack in ["messages", "progress", "noise"] {
        let memory = budget(64);
        let stage = stage(attack, &memory).await;
        let began = Instant::now();
        let flooded = async {
            let soon = Duration::from_millis(700);
            let call = trouble().timeout(soon).deadline(soon);
            let outcome = stage.run(call).await;
            let (is, did, said) = failure(&outcome);
            assert_eq!((is, did), (Timeout, Effect::Unknown), "{attack}: {said}");
            began.elapsed()
        };
        let others = async {
            for _ in 0..20 {
                good.assert_next_call_works().await;
            }
            began.elapsed()
        };
        let (flooded, others) = tokio::join!(flooded, others);
        assert!(flooded < Duration::from_secs(5), "{attack}: {flooded:?}");
        assert!(others < flooded, "{attack}: others waited for {others:?}");
        stage.assert_next_call_works().await;
        assert!(memory.peak() < 2 * MB, "{attack}: {}", memory.peak());
        stage.over().await;
    }
    good.over().await;
}

/// A client that never answers, and a call of it that has no more time than that.
fn asked(client: &Arc<Client>) -> Call {
    let soon = Duration::from_millis(700);
    call("trouble", &passage(client, "{}"))
        .timeout(soon)
        .deadline(soon)
}

#[tokio::test]
async fn s01_a_storm_of_questions_is_bounded_and_holds_up_no_other_call() {
    let good = well_behaved().await;
    for method in [
        "roots/list",
        "elicitation/create",
        "sampling/createMessage",
        "ping",
    ] {
        let memory = budget(64);
        let stage = stage(method, &memory).await;
        let client = Client::who(None, Duration::ZERO);
        let began = Instant::now();
        let flooded = async {
            let outcome = stage.run(asked(&client)).await;
            let (is, did, said) = failure(&outcome);
            assert_eq!((is, did), (Timeout, Effect::Unknown), "{method}: {said}");
            began.elapsed()
        };
        let others = async {
            for _ in 0..20 {
                good.assert_next_call_works().await;
            }
            began.elapsed()
        };
        let (flooded, others) = tokio::join!(flooded, others);
        assert!(flooded < Duration::from_secs(5), "{method}: {flooded:?}");
        assert!(others < flooded, "{method}: others waited for {others:?}");
        let expected = if method == "ping" { 0 } else { 64 };
        assert_eq!(client.asked(), expected, "{method}");
        stage.assert_next_call_works().await;
        assert!(memory.peak() < 8 * MB, "{method}: {}", memory.peak());
        until("all is given back", || memory.used() == 0).await;
        stage.over().await;
    }
    good.over().await;
}

#[tokio::test]
async fn s01_questions_that_share_an_id_are_counted_one_by_one() {
    let stage = stage("withdrawn", &budget(64)).await;
    let client = Client::who(None, Duration::ZERO);
    let call = call("trouble", &passage(&client, "{}"));
    assert_eq!(text(&stage.run(call).await), "after all that");
    // Each of the hundred that were withdrawn made room for one.
    assert!(
        (64..=164).contains(&client.asked()),
        "{} were asked",
        client.asked()
    );
    stage.assert_next_call_works().await;
    stage.over().await;
}

#[tokio::test]
async fn s01_batches_questions_and_unreadable_answers_by_the_thousand_are_bounded() {
    let memory = budget(64);
    for attack in ["batch", "questions"] {
        let stage = stage(attack, &memory).await;
        assert_eq!(text(&stage.run(trouble()).await), "after all that");
        stage.assert_next_call_works().await;
        stage.over().await;
    }
    let stage = stage("unreadable", &memory).await;
    // What may have been meant as the answer is told once; the answer itself is waited for.
    assert_eq!(text(&stage.run(trouble()).await), "after all that");
    stage.assert_next_call_works().await;
    assert!(memory.peak() < 24 * MB, "{}", memory.peak());
    stage.over().await;
}

#[tokio::test]
async fn s01_a_line_without_an_end_is_lost_and_so_is_one_there_is_no_memory_for() {
    for (attack, mb, words) in [("endless", 64, "too large"), ("large", 8, "no room for")] {
        let memory = budget(mb);
        let stage = stage(attack, &memory).await;
        let outcome = stage.run(trouble()).await;
        let (is, did, said) = failure(&outcome);
        assert_eq!(
            (is, did),
            (ToolExecutionError, Effect::Done),
            "{attack}: {said}"
        );
        assert!(said.contains(words), "{attack}: {said}");
        assert!(memory.peak() <= mb * MB);
        stage.assert_next_call_works().await;
        until("all is given back", || memory.used() == 0).await;
        stage.over().await;
    }
}

#[tokio::test]
async fn s01_lists_that_change_all_the_time_are_read_at_a_pace() {
    let stage = stage("changed", &budget(64)).await;
    assert_eq!(text(&stage.run(trouble()).await), "after all that");
    sleep(Duration::from_millis(1200)).await;
    let lists: usize = stage.text("lists", json!({})).await.parse().unwrap();
    assert!((2..8).contains(&lists), "read {lists} times");
    stage.over().await;
}
