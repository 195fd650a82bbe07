//! Conversations: who said what, which call has which result, and which has none.

use serde_json::{Value, json};

use super::Browser;
use crate::chat;
use crate::serve::Served;
use crate::support::{Workplace, parts};

const FOLDER: &str = ".local/state/steadyhand/conversations";

fn keep(place: &Workplace, id: &str, messages: &[Value]) {
    let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
    place.write(
        &format!("{FOLDER}/{id}.jsonl"),
        &format!("{}\n", lines.join("\n")),
    );
}

fn asked(text: &str) -> Value {
    json!({"type": "human", "content": text})
}

fn calls(ids: &[&str], arguments: &Value) -> Value {
    let calls = ids.iter().map(
        |id| json!({"type": "tool_call", "id": id, "name": "math_eval", "args": {"expression": arguments}}),
    );
    json!({"type": "ai", "content": "", "tool_calls": calls.collect::<Vec<_>>()})
}

fn result(id: &str, text: &str) -> Value {
    json!({"type": "tool", "content": text, "tool_call_id": id, "name": "math_eval", "status": "success"})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r13_a_conversation_of_the_chat_shows_which_call_has_which_result() {
    let place = chat::workplace("");
    let (_, said, _) = parts(&place.run_words(&["chat", "--json", "What is 2 * 3?"]));
    let said: Value = serde_json::from_str(&said).expect("JSON");
    let id = said["conversation"].as_str().expect("an id").to_owned();
    let served = Served::in_place(place).await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = await open('/');
             await page.click('nav >> text=Conversations');
             const seen = { row: await page.innerText('[data-testid=conversation]') };
             await page.click('[data-testid=conversation] a');
             seen.title = await page.innerText('h1'); seen.sentence = await page.innerText('[data-testid=sentence]');
             seen.turn = await page.innerText('[data-testid=turn]');
             await page.click('[data-testid=called] summary');
             seen.call = await page.innerText('[data-testid=called]');
             await page.click('[data-testid=called] dd a');
             seen.record = await page.innerText('[data-testid=sentence]');
             return seen;",
        )
        .await;
    let has = |part: &str, words: &str| {
        let text = seen[part].as_str().expect("a text");
        assert!(text.contains(words), "{words} in {text}");
    };
    has("row", "What is 2 * 3?");
    has("row", &id);
    has("title", "Complete");
    has("sentence", "1 turn, 1 call. Every call has its result.");
    has("turn", "1 call, 1 result");
    has("call", "math_eval");
    has("call", "2 * 3");
    has("record", "Answered");
    browser.no_complaints().await;
    browser.close().await;
    // The page is what REST answers.
    let rest = served.get(&format!("/v1/conversations/{id}")).await.json();
    assert_eq!(
        (&rest["calls"], &rest["open_calls"]),
        (&json!(1), &json!([]))
    );
    assert_eq!(rest["turns"][0]["said"][1]["calls"][0]["tool"], "math_eval");
}

#[tokio::test]
async fn an_open_call_is_named_and_a_file_that_a_crash_cut_off_is_read_as_far_as_it_goes() {
    let place = chat::workplace("");
    let id = "20260101-000000-abcdef";
    let said = [
        asked("What is 1 + 1?"),
        calls(&["c1", "c2"], &json!("1 + 1")),
        result("c1", "2"),
    ];
    keep(&place, id, &said);
    let path = place.file(&format!("{FOLDER}/{id}.jsonl"));
    let mut text = std::fs::read_to_string(&path).expect("the file");
    text.push_str("{\"type\": \"tool\", \"content\": \"hal");
    std::fs::write(&path, &text).expect("written");
    let served = Served::in_place(place).await;
    let seen = served.get(&format!("/v1/conversations/{id}")).await.json();
    assert_eq!(
        (&seen["open_calls"], &seen["unreadable"]),
        (&json!(["c2"]), &json!(1))
    );
    let page = served.get(&format!("/conversations/{id}")).await.text;
    for words in ["1 call without a result", "c2", "Open call", "No result"] {
        assert!(page.contains(words), "{words} in {page}");
    }
    // Looking at it changes nothing.
    let after = std::fs::read_to_string(&path).expect("the file");
    assert_eq!(after, text);
    for wrong in ["nobody", "..%2F..%2Fetc%2Fpasswd"] {
        let reply = served.get(&format!("/v1/conversations/{wrong}")).await;
        assert_eq!(reply.status, 404, "{wrong}");
        let page = served.get(&format!("/conversations/{wrong}")).await;
        assert_eq!(page.status, 404, "{wrong}");
    }
}

#[tokio::test]
async fn a_long_conversation_with_long_texts_is_a_small_page() {
    let place = chat::workplace("");
    let id = "20260101-000000-abcdef";
    let long = "\"<b>x</b> ".repeat(40_000);
    let ids: Vec<String> = (0..64).map(|number| format!("c{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut said = Vec::new();
    for number in 0..300 {
        said.push(asked(&format!("Question {number} {}", "word ".repeat(100))));
        said.push(json!({"type": "ai", "content": "An answer. ".repeat(200)}));
    }
    said.push(asked("And all of them?"));
    said.push(calls(&ids, &json!("1 + 1 ".repeat(1000))));
    said.push(result("c0", &long));
    said.extend(ids.iter().skip(1).map(|id| result(id, &"2".repeat(1000))));
    keep(&place, id, &said);
    for number in 1..60 {
        let one = [asked("Hello <script>window.owned=1</script>")];
        keep(&place, &format!("20260101-0000{number:02}-abcdef"), &one);
    }
    let served = Served::in_place(place).await;
    for path in ["/conversations", &format!("/conversations/{id}")] {
        let page = served.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        assert!(
            page.text.len() < 60 * 1024,
            "{path}: {} bytes",
            page.text.len()
        );
        assert!(!page.text.contains("<script>window"), "{path}");
    }
    let first = served.get("/v1/conversations").await.json();
    assert_eq!(
        (
            &first["count"],
            first["conversations"].as_array().map(Vec::len)
        ),
        (&json!(60), Some(50))
    );
    let next = first["next"].as_str().expect("there are more");
    let rest = served
        .get(&format!("/v1/conversations?before={next}"))
        .await;
    assert_eq!(
        rest.json()["conversations"].as_array().map(Vec::len),
        Some(10)
    );
}
