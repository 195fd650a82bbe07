//! Approval as a form at the caller's own MCP client, in both eras; only where a person there may decide.

use serde_json::{Value, json};

use super::{TOOLS, decide, waiting};
use crate::gateway::stdio::Client;
use crate::gateway::{Modern, Session};
use crate::serve::{Served, until};
use crate::support::Workplace;

const CALL: &str = "tools/call";

fn unlock() -> Value {
    json!({"name": "unlock", "arguments": {"door": "front"}})
}

/// The person at a client may say yes to its calls.
fn by_caller() -> String {
    format!("[server]\napproval_by_caller = true\n{TOOLS}")
}

fn answer(decision: &str) -> Value {
    json!({"action": "accept", "content": {"decision": decision, "reason": "not now"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_newer_protocol_is_asked_with_a_form_and_comes_back_with_a_yes() {
    let served = Served::with_config(&by_caller()).await;
    for (decision, text, is_error) in [
        ("approve", "unlocked", Value::Null),
        ("deny", "was denied by whoever sits at", json!(true)),
    ] {
        let request = Modern::of(CALL, unlock(), json!({"elicitation": {}}));
        let asked = request.result(&served).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let form = &asked["inputRequests"]["steadyhand-approval"];
        assert_eq!(form["method"], "elicitation/create", "{asked}");
        let message = form["params"]["message"].as_str().expect("a message");
        assert!(message.starts_with("unlock wants to run"), "{message}");
        assert!(message.contains("front"), "{message}");
        let schema = &form["params"]["requestedSchema"];
        assert_eq!(schema["required"], json!(["decision"]), "{schema}");
        // It is on the desk, too.
        assert_eq!(waiting(&served, 1).await[0]["tool"], "unlock");
        let mut back = unlock();
        back["requestState"] = asked["requestState"].clone();
        back["inputResponses"] = json!({"steadyhand-approval": answer(decision)});
        let result = Modern::of(CALL, back, json!({"elicitation": {}}))
            .result(&served)
            .await;
        assert!(
            result["content"][0]["text"].to_string().contains(text),
            "{result}"
        );
        assert_eq!(
            result["isError"] == true,
            is_error == json!(true),
            "{result}"
        );
        // Who said it, and from where, is in the audit log.
        let action = if decision == "approve" {
            "approval.approved"
        } else {
            "approval.denied"
        };
        let record = until("it is written down", async || {
            let log = served.get("/v1/audit?limit=20").await.json();
            let mut all = log["records"].as_array()?.iter();
            all.find(|record| record["action"] == action).cloned()
        })
        .await;
        assert_eq!(record["from"]["way"], "mcp", "{record}");
        assert_eq!(record["before"]["state"], "waiting", "{record}");
        let who = record["who"]["name"].as_str().unwrap_or_default();
        assert!(who.starts_with("whoever sits at"), "{record}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_in_a_session_is_asked_on_the_stream_and_a_form_that_is_closed_is_no_answer() {
    let served = Served::with_config(&by_caller()).await;
    let session = Session::of(&served, "2025-11-25", json!({"elicitation": {}})).await;
    let mut stream = session.stream(&served, 3, CALL, unlock()).await;
    let question = stream.next().await.expect("a question").message;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let said = json!({"jsonrpc": "2.0", "id": question["id"], "result": answer("approve")});
    assert_eq!(session.post(&served, &said).await.status, 202);
    let last = stream.next().await.expect("the answer").message;
    assert_eq!(last["result"]["content"][0]["text"], "unlocked", "{last}");

    let mut stream = session.stream(&served, 4, CALL, unlock()).await;
    let question = stream.next().await.expect("a question").message;
    let closed = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "cancel"}});
    assert_eq!(session.post(&served, &closed).await.status, 202);
    let [approval] = <[Value; 1]>::try_from(waiting(&served, 1).await).expect("one");
    assert_eq!(decide(&served, &approval, "approve").await.status, 200);
    let last = stream.next().await.expect("the answer").message;
    assert_eq!(last["result"]["content"][0]["text"], "unlocked", "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_forms_and_one_whose_key_may_not_decide_are_not_asked() {
    let served = Served::with_config(&by_caller()).await;
    for capabilities in [json!({}), json!({"elicitation": {"url": {}}})] {
        let request = Modern::of(CALL, unlock(), capabilities);
        let deciding = async {
            let [approval] = <[Value; 1]>::try_from(waiting(&served, 1).await).expect("one");
            assert_eq!(decide(&served, &approval, "approve").await.status, 200);
        };
        let (result, ()) = tokio::join!(request.result(&served), deciding);
        assert_eq!(result["content"][0]["text"], "unlocked", "{result}");
    }
    let workplace = Workplace::with_config(&by_caller());
    let caller = crate::access::key(&workplace, "robot", &[]);
    let operator = crate::access::key(&workplace, "ops", &["--role", "operator"]);
    let served = Served::in_place(workplace).await;
    let shown = format!("Bearer {caller}");
    let request = Modern::of(CALL, unlock(), json!({"elicitation": {}}));
    let request = request.with("authorization", &shown);
    let deciding = async {
        let approval = crate::serve::until("it waits", async || {
            let path = "/v1/approvals";
            let view = crate::access::with_key(&served, &operator, "GET", path, "").await;
            let view = view.json();
            let mut all = view["approvals"].as_array()?.iter();
            all.find(|one| one["state"] == "waiting").cloned()
        })
        .await;
        let path = format!("/v1/approvals/{}", approval["id"].as_str().expect("an id"));
        let said = json!({"decision": "deny", "arguments_hash": approval["arguments_hash"], "reason": "not now"});
        let said = said.to_string();
        let reply = crate::access::with_key(&served, &operator, "POST", &path, &said).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    };
    let (result, ()) = tokio::join!(request.result(&served), deciding);
    let text = result["content"][0]["text"].to_string();
    assert!(text.contains("was denied by ops: not now"), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_stdio_the_client_is_the_only_one_who_can_be_asked() {
    for (capabilities, answers) in [
        (json!({"elicitation": {}}), Some(answer("approve"))),
        (
            json!({"elicitation": {}}),
            Some(json!({"action": "cancel"})),
        ),
        (json!({}), None),
    ] {
        let mut client = Client::of(Workplace::with_config(&by_caller()));
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"}});
        client.ask(1, "initialize", hello).await;
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": CALL, "params": unlock()});
        client.send(&call).await;
        let is_yes = answers == Some(answer("approve"));
        if let Some(answers) = answers {
            let question = client.until_method("elicitation/create").await;
            let said = json!({"jsonrpc": "2.0", "id": question["id"], "result": answers});
            client.send(&said).await;
        }
        let called = client.answer(&json!(2)).await;
        assert_eq!(called["result"]["isError"] != true, is_yes, "{called}");
        client.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s03_a_client_is_not_asked_about_its_own_call_unless_the_configuration_says_so() {
    let served = Served::with_config(TOOLS).await;
    let request = Modern::of(CALL, unlock(), json!({"elicitation": {}}));
    let deciding = async {
        let [approval] = <[Value; 1]>::try_from(waiting(&served, 1).await).expect("one");
        assert_eq!(decide(&served, &approval, "deny").await.status, 200);
    };
    // An answer that it sends along, unasked, is none either.
    let mut eager = unlock();
    eager["inputResponses"] = json!({"steadyhand-approval": answer("approve")});
    let (result, ()) = tokio::join!(request.result(&served), deciding);
    assert_ne!(result["resultType"], "input_required", "{result}");
    assert_eq!(result["isError"], true, "{result}");
    let request = Modern::of(CALL, eager, json!({"elicitation": {}}));
    let deciding = async {
        let [approval] = <[Value; 1]>::try_from(waiting(&served, 1).await).expect("one");
        assert_eq!(decide(&served, &approval, "deny").await.status, 200);
    };
    let (result, ()) = tokio::join!(request.result(&served), deciding);
    assert_eq!(result["isError"], true, "{result}");

    let mut client = Client::of(Workplace::with_config(TOOLS));
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"}});
    client.ask(1, "initialize", hello).await;
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": CALL, "params": unlock()});
    client.send(&call).await;
    let text = client.answer(&json!(2)).await["result"]["content"][0]["text"].to_string();
    assert!(
        text.contains("a client does not approve its own calls"),
        "{text}"
    );
    assert!(text.contains("approval_by_caller = true"), "{text}");
    client.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s03_a_form_says_what_it_does_not_show_and_a_yes_to_that_takes_a_second_form() {
    let served = Served::with_config(&by_caller()).await;
    let mut hidden = unlock();
    hidden["arguments"]["password"] = json!("hunter22222");
    let session = Session::of(&served, "2025-11-25", json!({"elicitation": {}})).await;
    let mut stream = session.stream(&served, 3, CALL, hidden).await;
    for step in [
        "Not shown: /password: a secret, 13 bytes",
        "Approve them unseen?",
    ] {
        let question = stream.next().await.expect("a question").message;
        let message = question["params"]["message"].as_str().expect("a message");
        assert!(message.contains(step), "{message}");
        assert!(!message.contains("hunter"), "{message}");
        let said = json!({"jsonrpc": "2.0", "id": question["id"], "result": answer("approve")});
        assert_eq!(session.post(&served, &said).await.status, 202);
    }
    let last = stream.next().await.expect("the answer").message;
    assert_eq!(last["result"]["content"][0]["text"], "unlocked", "{last}");
}
