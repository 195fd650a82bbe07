//! A second caller: sees nothing of the first, cannot end what it runs, and shares no key with it.

use serde_json::json;

use super::{TOOLS, key, with_key};
use crate::serve::{Served, until};
use crate::support::Workplace;

#[tokio::test]
async fn a_second_caller_cannot_see_end_or_repeat_the_calls_of_the_first() {
    let workplace = Workplace::with_config(TOOLS);
    let first = key(&workplace, "first", &[]);
    let second = key(&workplace, "second", &[]);
    let operator = key(&workplace, "op", &["--role", "operator"]);
    let served = Served::in_place(workplace).await;
    let send = async |key: &str, id: &str, caller: &str| {
        let shown = format!("Bearer {key}");
        let body = json!({"name": "weather", "id": id, "args": {"who": id}}).to_string();
        let headers = [
            ("authorization", shown.as_str()),
            ("steadyhand-caller", caller),
        ];
        let reply = served.send("POST", "/v1/calls", &headers, &body).await;
        assert_eq!(reply.json()["status"], "success", "{}", reply.text);
    };
    send(&first, "mine", "nightly").await;
    send(&first, "shared", "@second").await;
    send(&second, "shared", "@first/nightly").await;
    let listed = async |key: &str, path: &str| {
        let reply = with_key(&served, key, "GET", path, "").await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply
    };
    let ids = async |key: &str, query: &str| {
        let list = listed(key, &format!("/v1/calls{query}")).await.json();
        let calls = list["calls"].as_array().expect("a list").clone();
        let text =
            |call: &serde_json::Value, name: &str| call[name].as_str().unwrap_or("-").to_owned();
        calls
            .iter()
            .map(|call| (text(call, "id"), text(call, "caller")))
            .collect::<Vec<_>>()
    };
    until("all are written down", async || {
        (ids(&operator, "").await.len() == 3).then_some(())
    })
    .await;
    let pair = |id: &str, caller: &str| (id.to_owned(), caller.to_owned());
    assert_eq!(
        ids(&first, "").await,
        [
            pair("shared", "@first/second"),
            pair("mine", "@first/nightly")
        ]
    );
    assert_eq!(
        ids(&second, "").await,
        [pair("shared", "@second/first/nightly")]
    );
    // No filter reaches further.
    for query in [
        "?caller=@first*",
        "?caller=*",
        "?text=mine",
        "?tool=weather",
        "?q=caller:@first/nightly",
    ] {
        assert!(
            ids(&second, query)
                .await
                .iter()
                .all(|(_, caller)| caller.starts_with("@second")),
            "{query}"
        );
    }
    let export = listed(&second, "/v1/calls.ndjson").await;
    assert!(
        !export.text.contains("@first/nightly\"") && !export.text.contains("\"mine\""),
        "{}",
        export.text
    );

    // By its id, by the key of its record, to look at, to end, to repeat.
    let all = listed(&operator, "/v1/calls").await.json();
    let record = all["calls"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|call| call["id"] == "mine");
    let record = record.expect("there")["key"]
        .as_str()
        .expect("a key")
        .to_owned();
    for id in ["mine", record.as_str()] {
        for (method, path) in [("GET", ""), ("DELETE", ""), ("POST", "/replay?force=true")] {
            let reply = with_key(
                &served,
                &second,
                method,
                &format!("/v1/calls/{id}{path}"),
                "",
            )
            .await;
            assert_eq!(reply.status, 404, "{method} {id}: {}", reply.text);
        }
    }
    // An id that both have used leads each to its own.
    for (key, caller) in [
        (&first, "@first/second"),
        (&second, "@second/first/nightly"),
    ] {
        let call = with_key(&served, key, "GET", "/v1/calls/shared", "")
            .await
            .json();
        assert_eq!(call["caller"], caller);
    }
    let reply = with_key(
        &served,
        &first,
        "POST",
        "/v1/calls/mine/replay?force=true",
        "",
    )
    .await;
    assert_eq!(reply.json()["status"], "success", "{}", reply.text);
}

#[tokio::test]
async fn a_call_that_runs_is_ended_by_its_owner_or_an_operator_and_by_nobody_else() {
    let workplace = Workplace::with_config(TOOLS);
    let first = key(&workplace, "first", &[]);
    let second = key(&workplace, "second", &[]);
    let operator = key(&workplace, "op", &["--role", "operator"]);
    let served = Served::in_place(workplace).await;
    for (id, by) in [("one", &first), ("two", &operator)] {
        let body = json!({"name": "slow", "id": id}).to_string();
        let running = with_key(&served, &first, "POST", "/v1/calls", &body);
        let ending = async {
            until("it runs", async || {
                let reply =
                    with_key(&served, &operator, "GET", &format!("/v1/calls/{id}"), "").await;
                (reply.status == 200).then_some(())
            })
            .await;
            let path = format!("/v1/calls/{id}");
            let list = with_key(&served, &second, "GET", "/v1/calls?state=running", "").await;
            assert_eq!(list.json()["calls"], json!([]));
            assert_eq!(
                with_key(&served, &second, "GET", &path, "").await.status,
                404
            );
            assert_eq!(
                with_key(&served, &second, "DELETE", &path, "").await.status,
                404
            );
            assert_eq!(with_key(&served, by, "DELETE", &path, "").await.status, 200);
        };
        let (reply, ()) = tokio::join!(running, ending);
        assert_eq!(reply.json()["error"]["code"], "CANCELLED", "{}", reply.text);
    }
}

#[tokio::test]
async fn the_same_idempotency_key_of_two_callers_is_two_keys() {
    let workplace = Workplace::with_config(TOOLS);
    let first = key(&workplace, "first", &[]);
    let second = key(&workplace, "second", &[]);
    let served = Served::in_place(workplace).await;
    let body = json!({"name": "weather", "idempotency_key": "k"}).to_string();
    for (key, replayed) in [
        (&first, false),
        (&second, false),
        (&first, true),
        (&second, true),
    ] {
        let outcome = with_key(&served, key, "POST", "/v1/calls", &body)
            .await
            .json();
        assert_eq!(outcome["status"], "success", "{outcome}");
        assert_eq!(
            outcome["replayed"].as_bool().unwrap_or(false),
            replayed,
            "{outcome}"
        );
    }
}

#[tokio::test]
async fn calls_at_once_are_counted_by_who_calls_and_not_by_what_it_says_it_is() {
    let config = format!("{TOOLS}\n[server]\nlimits = {{ per_caller = 1 }}\n");
    let workplace = Workplace::with_config(&config);
    let first = key(&workplace, "first", &[]);
    let served = Served::in_place(workplace).await;
    let shown = format!("Bearer {first}");
    let body = json!({"name": "slow", "id": "one"}).to_string();
    let headers = [
        ("authorization", shown.as_str()),
        ("steadyhand-caller", "a"),
    ];
    let running = served.send("POST", "/v1/calls", &headers, &body);
    let trying = async {
        until("it runs", async || {
            let reply = with_key(&served, &first, "GET", "/v1/calls/one", "").await;
            (reply.status == 200).then_some(())
        })
        .await;
        let other = [
            ("authorization", shown.as_str()),
            ("steadyhand-caller", "b"),
        ];
        let body = json!({"name": "weather"}).to_string();
        let refused = served.send("POST", "/v1/calls", &other, &body).await;
        assert_eq!(
            (refused.status, refused.refusal().1.as_str()),
            (429, "too_many_calls")
        );
        with_key(&served, &first, "DELETE", "/v1/calls/one", "").await;
    };
    tokio::join!(running, trying);
}
