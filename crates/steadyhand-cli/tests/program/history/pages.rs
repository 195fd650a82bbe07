//! Pages and searches: always the newest first, nothing twice, nothing left out.

use std::collections::HashSet;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;
use steadyhand::Call;
use steadyhand::testing::script;
use steadyhand_store::history::{
    CallSummary, Cursor, Filter, HistoryError, HistoryOptions, Page, StateWord,
};

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
    some_calls_with(|_| {}).await
}

async fn some_calls_with(change: impl FnOnce(&mut HistoryOptions)) -> Place {
    let slow = script("home_slow")
        .answers(1)
        .taking(Duration::from_millis(120))
        .tool();
    let tools = [
        echo().from_source("demo"),
        ill().from_source("hospital"),
        slow.from_source("home"),
    ];
    let place = Place::with(tools, change);
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
    every_filter(&some_calls().await);
}

#[tokio::test]
async fn a_search_that_stops_early_goes_on_by_its_cursor_and_misses_nothing() {
    let place = some_calls_with(|options| options.search_max = Duration::ZERO).await;
    every_filter(&place);
    // It did stop, and said where.
    let filter = Filter::parse("no-such-text", 0).unwrap();
    let first = place.history.page(&filter, None, 10).unwrap();
    assert_eq!(first.calls, []);
    let (next, until) = (first.next.unwrap(), first.searched_to_ms.unwrap());
    let newest = all_pages(&place, &Filter::default(), 1000)[0].started_ms;
    assert!(until <= newest);
    let second = place.history.page(&filter, Some(next), 10).unwrap();
    assert!(second.next.unwrap() < next);
    let mut out = Vec::new();
    let failed = Filter::parse("state:failed caller:rest", 0).unwrap();
    let exported = place.history.export(&failed, &mut out).unwrap();
    assert_eq!(exported as usize, all_pages(&place, &failed, 3).len());
    assert!(exported > 0);
}

/// Finds what each means, whatever the size of a page.
fn every_filter(place: &Place) {
    let everything = all_pages(place, &Filter::default(), 1000);
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
        ("caller:*".into(), Box::new(|c| c.caller.is_some())),
        (
            "caller:*e*,*".into(),
            Box::new(|c| caller(c, "voice, kitchen")),
        ),
        ("caller:nobody".into(), Box::new(|_| false)),
        ("server:*".into(), Box::new(|c| c.source.is_some())),
        (
            "server:* caller:* state:failed".into(),
            Box::new(|c| is(c, "ill") && c.caller.is_some()),
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
            let found = all_pages(place, &filter, limit);
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

#[tokio::test]
async fn a_cursor_that_was_made_up_is_a_place_like_any_other() {
    let place = some_calls().await;
    let all = all_pages(&place, &Filter::default(), 1000);
    let failed = Filter::parse("state:failed", 0).unwrap();
    let page = |text: &str, filter: &Filter| {
        let cursor = text.parse::<Cursor>().unwrap();
        place.history.page(filter, Some(cursor), 1000).unwrap()
    };
    for (text, count) in [("c0", 0), ("c1", 0), ("c7fffffffffffffff", all.len())] {
        assert_eq!(page(text, &Filter::default()).calls.len(), count, "{text}");
    }
    assert_eq!(page("c0", &failed).next, None);
    // The key of a record is no cursor, its number is: everything before it.
    let key = &all[40].key;
    assert!(key.parse::<Cursor>().is_err());
    let rest = page(&format!("c{}", &key[1..]), &Filter::default());
    assert_eq!(ids(&rest.calls), ids(&all[41..]));
    for text in ["c8000000000000000", "cffffffffffffffff"] {
        assert!(text.parse::<Cursor>().is_err(), "{text}");
    }
}

#[tokio::test]
async fn odd_characters_in_names_and_filters_mean_themselves() {
    let place = Place::new([echo()]);
    let odd = [
        "100%",
        "a_b",
        "[x]?",
        "O'Brien; DROP TABLE calls; --",
        "say \"hi\"",
        "back\\slash",
        "na\u{ef}ve \u{1f600}",
        "nul\0byte",
        "line\nbreak",
        "\u{10ffff}",
    ];
    for (number, text) in odd.iter().enumerate() {
        let asked = Call::new("echo", json!({"said": text})).id(format!("c-{number}"));
        place.run(asked.caller(*text)).await;
        place.run(call(text, &format!("no {text}"))).await;
    }
    place.flush();
    let found = |name: &str, value: &str| -> Vec<String> {
        let filter = Filter::from_pairs([(name, value)], 0).unwrap();
        let calls = all_pages(&place, &filter, 1000);
        calls.into_iter().map(|call| call.id).collect()
    };
    for (number, text) in odd.iter().enumerate() {
        let id = format!("c-{number}");
        assert_eq!(found("caller", text), [id.as_str()], "{text:?}");
        let first: String = text.chars().take(1).collect();
        assert!(found("caller", &format!("{first}*")).contains(&id));
        assert!(found("caller", &format!("*{text}")).contains(&id));
        assert_eq!(found("text", text), [*text, id.as_str()], "{text:?}");
        let tool = format!("no {text}");
        assert_eq!(found("tool", &tool), [*text], "{text:?}");
        assert_eq!(place.record(text).call.tool, tool);
        // What people type means the same.
        let filter = Filter::from_pairs([("caller", *text), ("text", *text)], 0).unwrap();
        assert_eq!(Filter::parse(&filter.to_string(), 0).unwrap(), filter);
    }
    for pattern in ["a%b", "a?b", "[a-z]*", "A_B", "%", "_"] {
        assert_eq!(found("caller", pattern), [""; 0], "{pattern}");
    }
    let stars = "*".repeat(250);
    assert_eq!(found("caller", &stars).len(), odd.len());
    assert_eq!(found("tool", &format!("{stars}x")), ["[x]?"; 0]);
}

#[tokio::test]
async fn callers_may_be_very_many() {
    let place = Place::new([echo()]);
    for number in 0..30 {
        let caller = format!("chat-{number}");
        place
            .run(call(&format!("c-{number}"), "echo").caller(caller))
            .await;
    }
    place.flush();
    // More than a search looks through: each names itself as it likes.
    let other = Connection::open(place.file()).unwrap();
    other
        .execute_batch(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
             INSERT INTO callers (name) SELECT 'guest-' || i FROM n",
        )
        .unwrap();
    for (words, count) in [
        ("caller:chat-7", 1),
        ("caller:chat-1*", 11),
        ("caller:*-7", 1),
        ("caller:*", 30),
        ("caller:guest-7", 0),
        ("caller:*-7 tool:echo", 1),
    ] {
        let filter = Filter::parse(words, 0).unwrap();
        assert_eq!(all_pages(&place, &filter, 7).len(), count, "{words}");
    }
}
