//! Conversations that went through the proxy: shown turn by turn with what was mended in them, whatever provider's
//! JSON they are in.

use serde_json::{Value, json};

use super::Browser;
use crate::proxy::{Provider, broken, json_answer, ok, proxy_with};
use crate::serve::{Served, until};
use crate::support::Workplace;

async fn listed(served: &Served, count: usize) -> Value {
    until(&format!("{count} are kept"), async || {
        let list = served.get("/v1/conversations").await.json();
        (list["count"] == count).then_some(list)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r13_a_conversation_through_the_proxy_shows_its_turns_and_what_was_mended() {
    let provider = Provider::json(ok()).await;
    let served = proxy_with("anthropic", provider.url(), "keep_conversations = true").await;
    served.post("/proxy/anthropic/v1/messages", broken()).await;
    listed(&served, 1).await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = await open('/');
             await page.click('nav >> text=Conversations');
             const seen = { row: await page.innerText('[data-testid=conversation]'), lately: await page.innerText('[data-testid=exchange]'), list: await axe(page) };
             await page.click('[data-testid=conversation] a');
             seen.title = await page.innerText('h1'); seen.sentence = await page.innerText('[data-testid=sentence]');
             seen.fixes = await page.innerText('[data-testid=fixes]');
             seen.turns = await page.locator('[data-testid=turn]').allInnerTexts();
             await page.click('[data-testid=called] summary');
             seen.call = await page.innerText('[data-testid=called]');
             seen.links = await page.locator('[data-testid=called] a').count();
             seen.one = await axe(page);
             return seen;",
        )
        .await;
    let has = |part: &str, words: &str| {
        let text = seen[part].as_str().expect("a text");
        assert!(text.contains(words), "{words} in {text}");
    };
    has("row", "What is the weather in Rome?");
    has("row", "proxy, anthropic");
    has("row", "1 fix");
    has("lately", "Mended");
    has("title", "Mended");
    has("sentence", "Through the proxy to anthropic, m");
    has("sentence", "2 turns, 1 call. Every call has its result.");
    has("fixes", "missing_result");
    has("call", "weather");
    assert!(
        seen["turns"][1]
            .as_str()
            .expect("a turn")
            .contains("Hello?"),
        "{seen}"
    );
    // The client's own call: there is no record of it here to lead to.
    assert_eq!(seen["links"], 0);
    assert_eq!((&seen["list"], &seen["one"]), (&json!([]), &json!([])));
    browser.no_complaints().await;
    browser.close().await;
}

/// What a provider is asked in its own JSON, and what it answers: a call, its result, and a last word.
fn languages() -> Vec<(&'static str, &'static str, Value, Value)> {
    let function = json!({"name": "weather", "arguments": "{\"city\": \"Rome\"}"});
    let asked = json!({"role": "user", "content": "Is it raining?"});
    vec![
        (
            "openai",
            "/v1/chat/completions",
            json!({"model": "m", "messages": [{"role": "system", "content": "Be brief"}, asked,
                {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
                {"role": "tool", "tool_call_id": "c1", "content": "rain"}]}),
            json!({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": "Yes."}}]}),
        ),
        (
            "openai",
            "/v1/responses",
            json!({"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "Is it raining?"}]},
                {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{\"city\": \"Rome\"}"},
                {"type": "function_call_output", "call_id": "c1", "output": "rain"}]}),
            json!({"id": "r", "object": "response", "status": "completed", "model": "m", "output": [{"type": "message", "id": "m1", "role": "assistant",
                "status": "completed", "content": [{"type": "output_text", "text": "Yes.", "annotations": []}]}]}),
        ),
        (
            "ollama",
            "/api/chat",
            json!({"model": "m", "stream": false, "messages": [asked,
                {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Rome"}}}]},
                {"role": "tool", "tool_name": "weather", "content": "rain"}]}),
            json!({"model": "m", "done": true, "message": {"role": "assistant", "content": "Yes."}}),
        ),
        (
            "gemini",
            "/v1beta/models/g:generateContent",
            json!({"contents": [{"role": "user", "parts": [{"text": "Is it raining?"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Rome"}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"sky": "rain"}}}]}]}),
            json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Yes."}]}, "finishReason": "STOP"}]}),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_in_any_providers_json_is_read_as_the_same_turns() {
    let provider = Provider::answering(|asked| {
        let path = asked.uri.path();
        let found = languages().into_iter().find(|(_, of, ..)| *of == path);
        let (.., answer) = found.unwrap_or_else(|| panic!("{path} is not expected"));
        json_answer(200, &answer)
    })
    .await;
    let mut config = String::new();
    for site in ["openai", "ollama", "gemini"] {
        let url = provider.url();
        config.push_str(&format!(
            "[proxy.{site}]\nupstream = \"{url}\"\nkeep_conversations = true\n"
        ));
    }
    let served = Served::in_place(Workplace::with_config(&config)).await;
    for (at, (site, path, request, _)) in languages().into_iter().enumerate() {
        let reply = served.post(&format!("/proxy/{site}{path}"), request).await;
        assert_eq!(reply.status, 200, "{site}{path}: {}", reply.text);
        listed(&served, at + 1).await;
    }
    let list = listed(&served, 4).await;
    let all = list["conversations"].as_array().expect("a list");
    assert_eq!(all.len(), 4, "{list}");
    for summary in all {
        assert_eq!(
            (&summary["title"], &summary["through"]),
            (&json!("Is it raining?"), &json!("proxy")),
            "{summary}"
        );
        let id = summary["id"].as_str().expect("an id");
        let seen = served.get(&format!("/v1/conversations/{id}")).await.json();
        assert_eq!(
            (&seen["calls"], &seen["open_calls"], &seen["problems"]),
            (&json!(1), &json!([]), &json!([])),
            "{seen}"
        );
        let turns = seen["turns"].as_array().expect("turns");
        let last = turns.last().expect("a turn");
        let said = last["said"].as_array().expect("what was said");
        let call = said.iter().find_map(|one| one["calls"].get(0));
        let call = call.unwrap_or_else(|| panic!("a call in {seen}"));
        assert_eq!(
            (&call["tool"], &call["arguments"]),
            (&json!("weather"), &json!({"city": "Rome"}))
        );
        assert!(
            call["result"]["text"].to_string().contains("rain"),
            "{call}"
        );
        assert_eq!(said.last().expect("the answer")["text"], "Yes.");
    }
    let missing = served.get("/v1/conversations/0123456789abcdef").await;
    assert_eq!(missing.status, 404);
}
