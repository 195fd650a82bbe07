//! Calls that wait for a person: over REST and by command, bound to their arguments, with an end.

mod chat;
mod credential;
mod elicited;
mod exact;
mod history;

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;

use crate::serve::{Reply, Served, program, until};
use crate::support::{PATIENCE, Workplace, parts};

const TOOLS: &str = r#"
[tools.unlock]
kind = "mock"
description = "Unlocks a door"
input = { type = "object", required = ["door"], properties = { door = { type = "string" }, password = { type = "string" } } }
answers = [{ result = "unlocked" }]
approval = "always"
deadline = "2s"

[tools.shutters]
kind = "mock"
description = "Moves the shutters"
input = { type = "object" }
answers = [{ result = "moved" }]
approval = "ask"

[tools.weather]
kind = "mock"
description = "Current weather"
input = { type = "object" }
answers = [{ result = "rain" }]
"#;

async fn waiting(served: &Served, count: usize) -> Vec<Value> {
    until(&format!("{count} wait"), async || {
        let view = served.get("/v1/approvals").await.json();
        let all = view["approvals"].as_array()?.clone();
        let waiting: Vec<Value> = all
            .into_iter()
            .filter(|one| one["state"] == "waiting")
            .collect();
        (waiting.len() == count && view["waiting"] == count).then_some(waiting)
    })
    .await
}

async fn decide(served: &Served, approval: &Value, decision: &str) -> Reply {
    let body = json!({"decision": decision, "arguments_hash": approval["arguments_hash"], "reason": "not now"});
    let path = format!("/v1/approvals/{}", approval["id"].as_str().expect("an id"));
    served.decide(&path, body).await
}

/// A yes to what is shown and to what is not.
async fn decide_unseen(served: &Served, approval: &Value) -> Reply {
    let hash = &approval["arguments_hash"];
    let body = json!({"decision": "approve", "arguments_hash": hash, "unseen": true});
    let path = format!("/v1/approvals/{}", approval["id"].as_str().expect("an id"));
    served.decide(&path, body).await
}

#[tokio::test]
async fn a_call_waits_for_a_yes_and_its_deadline_starts_after_it() {
    let served = Served::with_config(TOOLS).await;
    let calling = served.call(
        "unlock",
        json!({"door": "front", "password": "hunter22222"}),
    );
    let saying = async {
        let [approval] = <[Value; 1]>::try_from(waiting(&served, 1).await).expect("one");
        assert_eq!(approval["tool"], "unlock");
        assert_eq!(approval["arguments"]["door"], "front");
        assert!(!approval.to_string().contains("hunter"), "{approval}");
        assert_eq!(approval["approval"], "always");
        // Longer than the call may take by itself.
        let asked = approval["asked_ms"].as_u64().expect("a time");
        until("the deadline would be over", async || {
            let now = jiff::Timestamp::now().as_millisecond() as u64;
            (now > asked + 2_500).then_some(())
        })
        .await;
        let reply = decide_unseen(&served, &approval).await;
        assert_eq!(reply.json()["state"], "approved", "{}", reply.text);
        // Once.
        let again = decide(&served, &approval, "deny").await;
        assert_eq!(
            (again.status, again.refusal().1.as_str()),
            (409, "cannot_decide")
        );
    };
    let (outcome, ()) = tokio::join!(calling, saying);
    assert_eq!(outcome["status"], "success", "{outcome}");
    assert_eq!(outcome["output"], "unlocked");
}

#[tokio::test]
async fn a_no_reaches_the_model_with_its_reason_and_touches_one_call_of_a_batch() {
    let served = Served::with_config(TOOLS).await;
    let calls = json!({"calls": [
        {"name": "unlock", "args": {"door": "front"}},
        {"name": "weather"},
        {"name": "unlock", "args": {"door": "back"}},
        {"name": "unlock", "args": {}},
    ]});
    let calling = served.post("/v1/batches", calls);
    let saying = async {
        let approvals = waiting(&served, 2).await;
        for approval in approvals {
            let decision = if approval["arguments"]["door"] == "front" {
                "deny"
            } else {
                "approve"
            };
            assert_eq!(decide(&served, &approval, decision).await.status, 200);
        }
    };
    let (reply, ()) = tokio::join!(calling, saying);
    let outcomes = reply.json()["outcomes"].clone();
    let error = &outcomes[0]["error"];
    assert_eq!(error["code"], "APPROVAL_DENIED");
    assert_eq!(error["effect"], "none");
    assert_eq!(
        error["message"],
        "'unlock' was denied by 127.0.0.1: not now"
    );
    assert_eq!(outcomes[1]["status"], "success");
    assert_eq!(outcomes[2]["status"], "success");
    // Nobody is asked about arguments that do not fit.
    assert_eq!(outcomes[3]["error"]["code"], "VALIDATION_ERROR");
}

#[tokio::test]
async fn a_decision_about_other_arguments_is_refused_and_changed_arguments_ask_again() {
    let served = Served::with_config(TOOLS).await;
    let calling = served.call("unlock", json!({"door": "front"}));
    let saying = async {
        let approval = waiting(&served, 1).await.remove(0);
        let mut other = approval.clone();
        other["arguments_hash"] = json!("sha256:0000");
        let refused = decide(&served, &other, "approve").await;
        let (status, code, message) = refused.refusal();
        assert_eq!((status, code.as_str()), (409, "cannot_decide"));
        assert!(
            message.contains("not the ones this decision is about"),
            "{message}"
        );
        assert_eq!(decide(&served, &approval, "approve").await.status, 200);
    };
    let (outcome, ()) = tokio::join!(calling, saying);
    assert_eq!(outcome["status"], "success");
    // The yes was to the front door: its hash opens no other.
    let [front, _] = [json!({"door": "front"}), json!({"door": "back"})];
    let calling = served.call("unlock", json!({"door": "back"}));
    let saying = async {
        let back = waiting(&served, 1).await.remove(0);
        let all = served.get("/v1/approvals").await.json();
        let approved = all["approvals"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|one| one["state"] == "approved");
        let approved = approved.expect("the first one").clone();
        assert_eq!(approved["arguments"], front);
        let mut mixed = back.clone();
        mixed["arguments_hash"] = approved["arguments_hash"].clone();
        assert_eq!(decide(&served, &mixed, "approve").await.status, 409);
        assert_eq!(decide(&served, &back, "deny").await.status, 200);
    };
    let (outcome, ()) = tokio::join!(calling, saying);
    assert_eq!(outcome["error"]["code"], "APPROVAL_DENIED");
}

#[tokio::test]
async fn nobody_in_time_is_expired_and_not_denied() {
    let config = format!("[server]\napproval_wait = \"200ms\"\n{TOOLS}");
    let served = Served::with_config(&config).await;
    let outcome = served.call("unlock", json!({"door": "front"})).await;
    assert_eq!(outcome["error"]["code"], "APPROVAL_EXPIRED", "{outcome}");
    assert_eq!(outcome["error"]["effect"], "none");
    let all = served.get("/v1/approvals").await.json();
    assert_eq!(all["waiting"], 0);
    assert_eq!(all["approvals"][0]["state"], "expired");
    let late = decide(&served, &all["approvals"][0], "approve").await;
    assert_eq!(late.status, 409, "{}", late.text);
}

#[tokio::test]
async fn ask_remembers_a_yes_for_the_same_arguments_within_a_conversation() {
    let served = Served::with_config(TOOLS).await;
    let call = async |conversation: &str, args: Value| {
        let headers = [("steadyhand-conversation", conversation)];
        let body = json!({"name": "shutters", "args": args}).to_string();
        served
            .send("POST", "/v1/calls", &headers, &body)
            .await
            .json()
    };
    let allowed = async |conversation: &str, args: Value| {
        let saying = async {
            let approval = waiting(&served, 1).await.remove(0);
            assert_eq!(approval["approval"], "ask");
            assert_eq!(approval["conversation"], conversation);
            decide(&served, &approval, "approve").await;
        };
        tokio::join!(call(conversation, args), saying).0
    };
    assert_eq!(
        allowed("one", json!({"a": 1, "b": 2})).await["status"],
        "success"
    );
    // The same again, in another order, asks nobody.
    assert_eq!(
        call("one", json!({"b": 2, "a": 1})).await["status"],
        "success"
    );
    // Other arguments, and another conversation, do.
    assert_eq!(
        allowed("one", json!({"a": 1, "b": 3})).await["status"],
        "success"
    );
    assert_eq!(
        allowed("two", json!({"a": 1, "b": 2})).await["status"],
        "success"
    );
}

#[tokio::test]
async fn whoever_goes_away_withdraws_the_question() {
    let served = Served::with_config(TOOLS).await;
    let body = json!({"name": "unlock", "id": "c1", "args": {"door": "front"}}).to_string();
    let request = crate::serve::request(served.address, "POST", "/v1/calls", &[], &body);
    let mut stream = served.connect().await;
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes())
        .await
        .expect("sent");
    waiting(&served, 1).await;
    drop(stream);
    waiting(&served, 0).await;
    let all = served.get("/v1/approvals").await.json();
    assert_eq!(all["approvals"][0]["state"], "withdrawn");
}

#[tokio::test]
async fn approvals_are_decided_by_command_while_the_call_waits() {
    let served = Served::with_config(TOOLS).await;
    let calling = served.call("unlock", json!({"door": "front"}));
    let saying = async {
        waiting(&served, 1).await;
        let workplace = served.workplace.shared();
        let done = tokio::task::spawn_blocking(move || {
            let (code, listed, stderr) = parts(&workplace.run("approvals"));
            assert_eq!(code, 0, "{stderr}");
            assert!(
                listed.contains("unlock") && listed.contains("\"front\""),
                "{listed}"
            );
            let id = listed.split('\t').next().expect("an id").to_owned();
            let (code, _, stderr) =
                parts(&workplace.run(&format!("approve {id} --hash sha256:12")));
            assert_eq!(code, 7, "{stderr}");
            let (code, _, stderr) = parts(&workplace.run(&format!("deny {id} --reason quiet")));
            assert_eq!(code, 0, "{stderr}");
            assert!(stderr.contains("unlock denied"), "{stderr}");
            let (code, _, stderr) = parts(&workplace.run("approve ap99"));
            assert_eq!(code, 2, "{stderr}");
        });
        done.await.expect("it went well");
    };
    let (outcome, ()) = tokio::join!(calling, saying);
    assert_eq!(
        outcome["error"]["message"],
        "'unlock' was denied by cli: quiet"
    );
}

#[tokio::test]
async fn an_operator_decides_for_others_and_not_for_itself_and_a_caller_sees_its_own() {
    let workplace = Workplace::with_config(TOOLS);
    let key = |name: &str, role: &str| {
        let made = workplace.json(&format!("keys create {name} --role {role} --json"));
        format!("Bearer {}", made["key"].as_str().expect("a key"))
    };
    let (hand, other) = (key("hand", "caller"), key("other", "caller"));
    let (operator, second) = (key("op", "operator"), key("second", "operator"));
    let served = Served::in_place(workplace).await;
    let send = async |key: &str, method: &str, path: &str, body: Value| {
        let headers = [("authorization", key)];
        served.send(method, path, &headers, &body.to_string()).await
    };
    for (by, decider) in [(&hand, &operator), (&operator, &second)] {
        let call = json!({"name": "unlock", "args": {"door": "front"}});
        let calling = send(by, "POST", "/v1/calls", call);
        let saying = async {
            let approval = until("it waits", async || {
                let view = send(&second, "GET", "/v1/approvals", json!({}))
                    .await
                    .json();
                let all = view["approvals"].as_array()?.clone();
                all.into_iter().find(|one| one["state"] == "waiting")
            })
            .await;
            let path = format!("/v1/approvals/{}", approval["id"].as_str().expect("an id"));
            let yes = json!({"decision": "approve", "arguments_hash": approval["arguments_hash"]});
            let seen = send(&other, "GET", "/v1/approvals", json!({})).await.json();
            assert_eq!(seen["count"], 0, "{seen}");
            assert_eq!(send(by, "POST", &path, yes.clone()).await.status, 403);
            assert_eq!(send(decider, "POST", &path, yes).await.status, 200);
        };
        let (reply, ()) = tokio::join!(calling, saying);
        assert_eq!(reply.json()["status"], "success", "{}", reply.text);
    }
}

#[tokio::test]
async fn a_command_whose_call_waits_for_a_yes_says_so_and_how_to_give_it() {
    let served = Served::with_config(TOOLS).await;
    let mut command = program(&served.workplace, &["call", "unlock", "door=front"]);
    let mut calling = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = BufReader::new(calling.stderr.take().expect("piped")).lines();
    let asked = waiting(&served, 1).await;
    let id = asked[0]["id"].as_str().expect("an id");
    let words = format!("It waits for a yes: steadyhand approve {id}");
    let saying = async {
        while let Some(line) = said.next_line().await.expect("text") {
            if line.contains(&words) {
                return true;
            }
        }
        false
    };
    assert!(timeout(PATIENCE, saying).await.expect("it says something"));
    decide(&served, &asked[0], "approve").await;
    let ended = timeout(PATIENCE, calling.wait()).await.expect("it ends");
    assert!(ended.expect("its end").success());
}
