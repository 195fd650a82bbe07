//! A provider refuses by a rule that we do not know: it is answered as it is, logged with its place, and kept as a case.

use serde_json::{Value, json};

use super::{Provider, json_answer, newest_exchange, proxy, valid, workplace};
use crate::serve::{Served, until};

const FOLDER: &str = ".local/state/steadyhand/proxy-cases";

fn refusal(message: &str) -> Value {
    json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}, "request_id": "req_1"})
}

async fn refusing(message: &str) -> (Provider, Served) {
    let body = refusal(message);
    let provider = Provider::answering(move |_| json_answer(400, &body)).await;
    let place = workplace("anthropic", provider.url(), "");
    let served = Served::told(place, "127.0.0.1:0", &["-v"]).await;
    (provider, served)
}

fn cases(served: &Served) -> Vec<Value> {
    let entries = std::fs::read_dir(served.workplace.file(FOLDER))
        .into_iter()
        .flatten();
    let read = |path| std::fs::read(path).expect("a file");
    let files = entries.flatten().map(|entry| read(entry.path()));
    files
        .map(|text| serde_json::from_slice(&text).expect("JSON"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn r02_a_rule_that_is_not_known_is_logged_with_its_place_and_kept_as_a_case() {
    let said = "messages.2.content.0: `tool_result` blocks may not hold pictures of cats";
    let (_, served) = refusing(said).await;
    let body = json!({"model": "m", "max_tokens": 10, "secret_plan": "world peace",
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "My name is Ada"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"where": "under the bed"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a cat"}]}]});
    let reply = served.post("/proxy/anthropic/v1/messages", body).await;
    assert_eq!((reply.status, reply.json()), (400, refusal(said)));
    let case = cases(&served).pop().expect("a case");
    assert_eq!(case["provider"], "anthropic");
    assert_eq!(case["said"], said);
    assert_eq!(case["place"], "/messages/2/content/0");
    assert_eq!(
        case["request"]["messages"][2]["content"][0]["type"],
        "tool_result"
    );
    assert_eq!(
        case["request"]["messages"][2]["content"][0]["tool_use_id"],
        "toolu_1"
    );
    let text = case.to_string();
    for words in ["Ada", "bed", "cat\"", "peace"] {
        assert!(!text.contains(words), "{words} in {text}");
    }
    let exchange = newest_exchange(&served).await;
    assert_eq!(exchange["refusal"]["is_known"], false);
    assert_eq!(exchange["refusal"]["at"], "/messages/2/content/0");
    let file = exchange["refusal"]["case"].as_str().expect("a file");
    assert!(std::path::Path::new(file).exists(), "{file}");
    until("it is logged", async || {
        let stderr = served.stderr();
        let is_there = stderr.contains("by a rule that is not known here")
            && stderr.contains("/messages/2/content/0");
        is_there.then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_is_kept_once_and_their_number_is_bounded() {
    let provider = Provider::answering(|asked| {
        let rule = asked.headers["x-rule"].to_str().expect("text");
        json_answer(
            400,
            &refusal(&format!("messages.0: the role {rule} tool_use")),
        )
    })
    .await;
    let served = proxy("anthropic", provider.url()).await;
    let refused = async |rule: &str| {
        let body = valid().to_string();
        let reply = served
            .send(
                "POST",
                "/proxy/anthropic/v1/messages",
                &[("x-rule", rule)],
                &body,
            )
            .await;
        assert_eq!(reply.status, 400);
    };
    for number in 0..5 {
        refused(&format!("number {number} of toolu_{number}")).await;
    }
    assert_eq!(cases(&served).len(), 1, "numbers and ids are no rules");
    let letter = |index: usize| char::from(b'a' + u8::try_from(index).expect("a letter"));
    for index in 0..70 {
        let rule: String = [letter(index / 26), letter(index % 26)].iter().collect();
        refused(&rule).await;
    }
    assert_eq!(cases(&served).len(), 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_for_other_reasons_and_by_known_rules_make_no_case() {
    for said in [
        "prompt is too long: 250000 tokens > 200000 maximum",
        "Your credit balance is too low to access the API",
        "max_tokens: must be greater than or equal to 1",
    ] {
        let (_, served) = refusing(said).await;
        let reply = served.post("/proxy/anthropic/v1/messages", valid()).await;
        assert_eq!(reply.json(), refusal(said));
        assert_eq!(cases(&served), [Value::Null; 0], "{said}");
        assert_eq!(
            served.get("/v1/exchanges").await.json(),
            json!({"exchanges": []})
        );
    }
    // What no repair can know, `validate` does: it is no news.
    let said = "messages: Field required, says the role";
    let (_, served) = refusing(said).await;
    let body = json!({"model": "m", "max_tokens": 1});
    let reply = served.post("/proxy/anthropic/v1/messages", body).await;
    assert_eq!(reply.status, 400);
    assert_eq!(cases(&served), [Value::Null; 0]);
    let exchange = newest_exchange(&served).await;
    assert_eq!(exchange["refusal"]["is_known"], true, "{exchange}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_of_a_large_conversation_keeps_what_is_around_the_place() {
    let (_, served) = refusing("messages.4000.role: this role may not speak now").await;
    let message = |index: usize| {
        let role = if index.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        };
        json!({"role": role, "content": [{"type": "text", "text": format!("message {index}"), "note": {"a": [1, 2, 3, 4, 5]}}]})
    };
    let messages: Vec<Value> = (0..4001).map(message).collect();
    let body = json!({"model": "m", "max_tokens": 10, "messages": messages});
    let reply = served.post("/proxy/anthropic/v1/messages", body).await;
    assert_eq!(reply.status, 400);
    let case = cases(&served).pop().expect("a case");
    assert_eq!(case["request"]["from"], 3997);
    assert_eq!(case["request"]["of"], 4001);
    assert_eq!(
        case["request"]["messages"].as_array().map(Vec::len),
        Some(4)
    );
    assert!(case.to_string().len() < 256 * 1024);
}
