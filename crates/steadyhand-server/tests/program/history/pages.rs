//! Pages and searches: always the newest first, nothing twice, nothing left out.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::json;
use steadyhand::Call;
use steadyhand::testing::script;
use steadyhand_server::history::{CallSummary, Cursor, Filter, HistoryError, Page, StateWord};

use super::{Place, call, echo, ids, ill};

/// All pages of a filter, by their cursors.
fn all_pages(place: &Place, filter: &Filter, limit: usize) -> Vec<CallSummary> {
    let mut found = Vec::new();
    let mut from = None;
    loop {
        let page = place.history.page(filter, from, limit).unwrap();
        assert!(page.calls.len() <= limit);
        found.extend(page.calls);
        match page.next {
            Some(next) => from = Some(next.to_string().parse::<Cursor>().unwrap()),
            None => return found,
        }
    }
}

/// Some calls of every kind.
async fn some_calls() -> Place {
    let slow = script("home_slow")
        .answers(1)
        .taking(Duration::from_millis(120))
        .tool();
    let place = Place::new([
        echo().from_source("demo"),
        ill().from_source("hospital"),
        slow.from_source("home"),
    ]);
    let names = ["echo", "ill", "echo", "nobody", "home_slow", "echo", "ill"];
    let run = |number: usize| {
        let city = ["Oslo", "Rome", "Łódź"][number % 3];
        let args = json!({"n": number, "city": city});
        let call = Call::new(names[number % names.len()], args).id(format!("c-{number}"));
        place.run(match number % 4 {
            0 => call,
            other => call.caller(["rest", "cli", "voice, kitchen"][other - 1]),
        })
    };
    for start in (0..140).step_by(20) {
        futures_util::future::join_all((start..start + 20).map(run)).await;
    }
    place.flush();
    place
}

#[tokio::test]
async fn every_filter_finds_exactly_the_calls_it_means() {
    let place = some_calls().await;
    let everything = all_pages(&place, &Filter::default(), 1000);
    assert_eq!(everything.len(), 140);
    let middle = everything[70].started_ms;
    let is = |call: &CallSummary, tool: &str| call.tool == tool;
    let caller = |call: &CallSummary, who: &str| call.caller.as_deref() == Some(who);
    type Meant<'a> = Box<dyn Fn(&CallSummary) -> bool + 'a>;
    let took = |call: &CallSummary| call.took_ms.unwrap_or(0.0);
    let table: Vec<(String, Meant<'_>)> = vec![
        ("tool:echo".into(), Box::new(|c| is(c, "echo"))),
        ("tool:home_*".into(), Box::new(|c| is(c, "home_slow"))),
        ("tool:*o*".into(), Box::new(|c| c.tool.contains('o'))),
        ("tool:nobody".into(), Box::new(|c| is(c, "nobody"))),
        ("tool:none_such".into(), Box::new(|_| false)),
        (
            "tool:ill,echo state:failed".into(),
            Box::new(|c| is(c, "ill")),
        ),
        (
            "state:ok".into(),
            Box::new(|c| is(c, "echo") || is(c, "home_slow")),
        ),
        (
            "state:failed".into(),
            Box::new(|c| is(c, "ill") || is(c, "nobody")),
        ),
        ("state:rejected".into(), Box::new(|c| is(c, "nobody"))),
        ("state:running".into(), Box::new(|_| false)),
        ("state:fallback".into(), Box::new(|c| c.fallback_used)),
        ("error:tool_not_found".into(), Box::new(|c| is(c, "nobody"))),
        ("error:timeout".into(), Box::new(|_| false)),
        (
            "server:h*".into(),
            Box::new(|c| is(c, "ill") || is(c, "home_slow")),
        ),
        ("caller:rest".into(), Box::new(|c| caller(c, "rest"))),
        (
            "caller:voice*".into(),
            Box::new(|c| caller(c, "voice, kitchen")),
        ),
        (
            "caller:cli tool:ill".into(),
            Box::new(|c| caller(c, "cli") && is(c, "ill")),
        ),
        (">110ms".into(), Box::new(|c| took(c) > 110.0)),
        (">20ms".into(), Box::new(|c| took(c) > 20.0)),
        (
            ">110ms tool:home_* caller:rest".into(),
            Box::new(|c| took(c) > 110.0 && caller(c, "rest")),
        ),
        (
            format!("since:{middle}"),
            Box::new(|c| c.started_ms >= middle),
        ),
        (
            format!("until:{middle} state:ok"),
            Box::new(|c| c.started_ms < middle && c.code.is_none()),
        ),
        ("cold".into(), Box::new(|c| is(c, "ill"))),
        ("c-77".into(), Box::new(|c| c.id == "c-77")),
        ("result".into(), Box::new(|_| false)),
    ];
    for (words, meant) in table {
        let filter = Filter::parse(&words, 0).unwrap();
        let expected: Vec<&str> = everything
            .iter()
            .filter(|call| meant(call))
            .map(|call| call.id.as_str())
            .collect();
        for limit in [1, 7, 1000] {
            let found = all_pages(&place, &filter, limit);
            assert_eq!(ids(&found), expected, "{words}, {limit} a page");
        }
    }
}

#[tokio::test]
async fn texts_are_found_in_arguments_results_and_messages_whatever_their_case() {
    let place = some_calls().await;
    let count = |words: &str| place.page(words).calls.len();
    let in_oslo = (0..140).filter(|number| number % 3 == 0).count();
    assert_eq!(count("oslo"), in_oslo);
    assert_eq!(count("OSLO tool:echo"), count("tool:echo Oslo"));
    assert_eq!(
        count("łódź"),
        (0..140).filter(|number| number % 3 == 2).count()
    );
    assert_eq!(count("\"has a cold\""), count("tool:ill"));
    // Names of our own fields are no texts of a call.
    assert_eq!(count("start_ms"), 0);
}

#[tokio::test]
async fn pages_are_newest_first_and_stay_whole_while_calls_are_added() {
    let place = Place::new([echo()]);
    for number in 0..50 {
        place.run(call(&format!("c-{number}"), "echo")).await;
    }
    place.flush();
    let filter = Filter::default();
    let first = place.history.page(&filter, None, 20).unwrap();
    for number in 50..80 {
        place.run(call(&format!("c-{number}"), "echo")).await;
    }
    place.flush();
    let second = place.history.page(&filter, first.next, 20).unwrap();
    let third = place.history.page(&filter, second.next, 20).unwrap();
    let seen: Vec<String> = [first.calls, second.calls, third.calls]
        .concat()
        .into_iter()
        .map(|call| call.id)
        .collect();
    let expected: Vec<String> = (0..50).rev().map(|number| format!("c-{number}")).collect();
    assert_eq!(seen, expected);
    assert_eq!(third.next, None);
    assert_eq!(place.ids("").len(), 80);
}

#[tokio::test]
async fn calls_are_in_the_order_they_came_in_however_they_end() {
    let slow = script("slow")
        .answers(1)
        .taking(Duration::from_millis(250))
        .tool();
    let place = Place::new([slow, echo()]);
    let long = place.run(call("first", "slow"));
    let later = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        place.run(call("second", "echo")).await;
    };
    futures_util::future::join(long, later).await;
    assert_eq!(place.ids(""), ["second", "first"]);
}

#[tokio::test]
async fn what_is_no_cursor_is_told() {
    for text in [
        "",
        "c",
        "x12",
        "c-12",
        "c+1",
        "czz",
        "c123456789012345678901234567890",
    ] {
        let error = text.parse::<Cursor>().expect_err(text);
        assert!(matches!(error, HistoryError::Cursor(_)));
    }
    let page = serde_json::json!({"calls": [], "next": "c1f"});
    let page: Page = serde_json::from_value(page).unwrap();
    assert_eq!(page.next.unwrap().to_string(), "c1f");
}

#[tokio::test]
async fn a_page_has_no_more_calls_than_were_asked_for_and_an_empty_history_has_none() {
    let place = Place::new([echo()]);
    let page = place.page("");
    assert_eq!((page.calls.len(), page.next), (0, None));
    for number in 0..5 {
        place.run(call(&number.to_string(), "echo")).await;
    }
    place.flush();
    let filter = Filter {
        state: vec![StateWord::Ok],
        ..Filter::default()
    };
    let page = place.history.page(&filter, None, 5).unwrap();
    assert_eq!(
        (page.calls.len(), page.next, page.searched_to_ms),
        (5, None, None)
    );
    let none = place.history.page(&filter, None, 0).unwrap();
    assert_eq!(none.calls.len(), 1);
    let keys: HashSet<String> = page.calls.into_iter().map(|call| call.key).collect();
    assert_eq!(keys.len(), 5);
}
