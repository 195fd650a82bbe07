//! `execute = true`: the model is offered the tools registered here, their calls are run inside, and the client sees
//! what it says in the end.

use serde_json::{Value, json};
use steadyhand_conversation::{Provider as Rules, convert_tools};
use steadyhand_models::testing::{Line, Said, StrictProvider};
use steadyhand_models::wire::{Assembler, decode};
use steadyhand_models::{Dialect, Reply};
use steadyhand_strict::StrictProviders;
use tokio::time::timeout;

use super::{Provider, json_answer, ok, typed_answer};
use crate::serve::{Served, runs, until};
use crate::support::{PATIENCE, client};

const TOOLS: &str = r#"
[tools.weather]
kind = "mock"
description = "Current weather for a city"
input = { type = "object", required = ["city"], properties = { city = { type = "string" } } }
answers = [{ when = { city = "Oslo" }, result = { sky = "drizzle" } }, { result = { sky = "clear" } }]

[tools.slow]
kind = "mock"
description = "Takes its time"
input = { type = "object" }
answers = [{ result = "done", delay = "40s" }]
timeout = "50s"

[tools.ill]
kind = "mock"
description = "Cannot be reached"
input = { type = "object" }
answers = [{ fail = "network" }]
retry = { attempts = 1 }
"#;

async fn executing(site: &str, upstream: &str, more: &str) -> Served {
    let config =
        format!("{TOOLS}\n[proxy.{site}]\nupstream = \"{upstream}\"\nexecute = true\n{more}\n");
    Served::with_config(&config).await
}

fn site(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAiResponses => "openai",
        other => other.as_str(),
    }
}

fn path(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Anthropic => "/proxy/anthropic/v1/messages",
        Dialect::OpenAi => "/proxy/openai/v1/chat/completions",
        Dialect::OpenAiResponses => "/proxy/openai/v1/responses",
        Dialect::Ollama => "/proxy/ollama/api/chat",
    }
}

fn question(dialect: Dialect, streams: bool) -> Value {
    let messages = json!([{"role": "user", "content": "Will it rain in Oslo?"}]);
    let mut body = json!({"model": "m", "stream": streams});
    match dialect {
        Dialect::OpenAiResponses => body["input"] = messages,
        _ => body["messages"] = messages,
    }
    if dialect == Dialect::Anthropic {
        body["max_tokens"] = json!(100);
    }
    body
}

/// What an answer says, read as our own client reads it.
fn read(dialect: Dialect, streams: bool, text: &str) -> Reply {
    let response: Value = match streams {
        true => {
            let mut assembler = Assembler::new(dialect, 1 << 20);
            let pushed = assembler.push(text.as_bytes(), &mut |_| {});
            pushed.unwrap_or_else(|error| panic!("{dialect}: {error}: {text}"));
            let finished = assembler.finish(&mut |_| {});
            finished.unwrap_or_else(|error| panic!("{dialect}: {error}: {text}"))
        }
        false => serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")),
    };
    let tools = convert_tools(dialect.provider(), []);
    decode(dialect, response, &tools).unwrap_or_else(|error| panic!("{dialect}: {error}: {text}"))
}

/// Posts, and reads all of the answer.
async fn post(served: &Served, path: &str, body: &Value) -> (u16, String) {
    let url = format!("http://{}{path}", served.address);
    let sent = client()
        .post(url)
        .header("content-type", "application/json");
    let sent = sent
        .header("anthropic-version", "2023-06-01")
        .body(body.to_string());
    let answer = sent.send().await.expect("an answer");
    let status = answer.status().as_u16();
    (status, answer.text().await.expect("a whole answer"))
}

#[tokio::test(flavor = "multi_thread")]
async fn l07_calls_of_our_tools_are_run_inside_and_the_client_sees_the_answer() {
    for dialect in Dialect::ALL {
        for streams in [false, true] {
            let place = format!("{dialect}, streaming {streams}");
            let first = Said::text("Let me look. ").call("weather", json!({"city": "Oslo"}));
            let lines = [Line::Says(first), Line::says("Take an umbrella.")];
            let provider = StrictProvider::start(dialect, lines).await;
            let served = executing(site(dialect), &provider.url(), "").await;
            let (status, text) = post(&served, path(dialect), &question(dialect, streams)).await;
            assert_eq!(status, 200, "{place}: {text}");
            let reply = read(dialect, streams, &text);
            let words = match streams {
                true => "Let me look. Take an umbrella.",
                false => "Take an umbrella.",
            };
            assert_eq!(reply.message.content.text(), words, "{place}: {text}");
            assert!(reply.message.tool_calls.is_empty(), "{place}: {text}");
            assert!(!text.contains("\"weather\""), "{place}: {text}");
            assert_eq!(provider.refused(), [""; 0], "{place}");
            let requests = provider.requests();
            assert_eq!(requests.len(), 2, "{place}");
            assert!(
                requests[0]["tools"].to_string().contains("weather"),
                "{place}"
            );
            assert!(requests[1].to_string().contains("drizzle"), "{place}");
            let calls = until("the call is kept", async || {
                let calls = served.get("/v1/calls?tool=weather").await.json();
                (calls["calls"] != json!([])).then_some(calls)
            })
            .await;
            assert_eq!(calls["calls"].as_array().map(Vec::len), Some(1), "{place}");
            assert_eq!(calls["calls"][0]["state"], "ok", "{place}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s03_calls_of_an_answer_that_can_be_read_in_two_ways_are_not_run() {
    let calling = r#"{"id":"m1","type":"message","role":"assistant","model":"m","stop_reason":"tool_use","stop_sequence":null,
        "usage":{"input_tokens":1,"output_tokens":1},
        "content":[{"type":"tool_use","id":"t1","name":"weather","input":{"city":"Oslo","c\u0069ty":"Rome"}}]}"#;
    let provider =
        Provider::answering(move |_| typed_answer(200, "application/json", calling)).await;
    let served = executing("anthropic", &provider.url(), "").await;
    let question = question(Dialect::Anthropic, false);
    let (status, text) = post(&served, path(Dialect::Anthropic), &question).await;
    assert_eq!(status, 502, "{text}");
    assert!(text.contains("/content/0/input/city"), "{text}");
    let calls = served.get("/v1/calls?tool=weather").await.json();
    assert_eq!(calls["calls"], json!([]), "nothing was run");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_geminis_are_run_inside_as_well() {
    for verb in [
        "generateContent",
        "streamGenerateContent?alt=sse",
        "streamGenerateContent",
    ] {
        let strict = StrictProviders::start().await.expect("a port");
        let parts = json!([{"text": "Let me look. "}, {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}, "thoughtSignature": "s"}]);
        let call = json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}]});
        strict.reply(Rules::Gemini, call);
        let served = executing("gemini", &strict.base_url(Rules::Gemini), "").await;
        let body = json!({"contents": [{"role": "user", "parts": [{"text": "Rain?"}]}]});
        let path = format!("/proxy/gemini/v1beta/models/gemini-2.5-pro:{verb}");
        let (status, text) = post(&served, &path, &body).await;
        assert_eq!(status, 200, "{verb}: {text}");
        assert!(text.contains("\"ok\""), "{verb}: {text}");
        assert!(!text.contains("functionCall"), "{verb}: {text}");
        assert_eq!(
            text.contains("Let me look."),
            verb.starts_with("stream"),
            "{verb}: {text}"
        );
        let heard = strict.heard();
        assert_eq!(heard.len(), 2, "{verb}");
        assert!(heard.iter().all(|one| one.status == 200));
        assert!(
            heard[1].request.to_string().contains("functionResponse"),
            "{verb}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_model_says_is_told_while_a_tool_still_runs() {
    let first = Said::text("One moment. ").call("slow", json!({}));
    let provider = StrictProvider::start(Dialect::Anthropic, [Line::Says(first)]).await;
    let served = executing("anthropic", &provider.url(), "").await;
    let url = format!("http://{}{}", served.address, path(Dialect::Anthropic));
    let sent = client()
        .post(url)
        .header("content-type", "application/json");
    let sent = sent.header("anthropic-version", "2023-06-01");
    let body = question(Dialect::Anthropic, true).to_string();
    let mut answer = sent.body(body).send().await.expect("a head");
    let id = runs(&served, "slow").await;
    let mut text = String::new();
    while !text.contains("moment") {
        let piece = timeout(PATIENCE, answer.chunk()).await.expect("in time");
        let piece = piece.expect("no error").expect("more");
        text.push_str(&String::from_utf8_lossy(&piece));
    }
    let call = served.get(&format!("/v1/calls/{id}")).await.json();
    assert_eq!(call["state"], "running", "{call}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_broke_off_is_not_run_and_reported_though_the_answer_is_fine() {
    for dialect in [
        Dialect::Anthropic,
        Dialect::OpenAi,
        Dialect::OpenAiResponses,
    ] {
        for streams in [false, true] {
            let place = format!("{dialect}, streaming {streams}");
            let cut = Said::text("Let me look. ").call("weather", json!({}));
            let lines = [
                Line::CutOff(cut, "{\"city\": \"Os".to_owned()),
                Line::says("I could not."),
            ];
            let provider = StrictProvider::start(dialect, lines).await;
            let served = executing(site(dialect), &provider.url(), "").await;
            let (status, text) = post(&served, path(dialect), &question(dialect, streams)).await;
            assert_eq!(status, 200, "{place}: {text}");
            let reply = read(dialect, streams, &text);
            let words = reply.message.content.text();
            assert!(words.ends_with("I could not."), "{place}: {words}");
            assert_eq!(provider.refused(), [""; 0], "{place}");
            // Nothing ran; the model was told why.
            let told = provider.requests()[1].to_string();
            assert!(told.contains("JSON"), "{place}: {told}");
            assert!(
                !told.contains("clear") && !told.contains("drizzle"),
                "{place}"
            );
            let call = until("the call is in the history", async || {
                let listed = served.get("/v1/calls?tool=weather").await.json();
                let call = listed["calls"].get(0)?.clone();
                (call["state"] != "running").then_some(call)
            })
            .await;
            assert_eq!(call["code"], "VALIDATION_ERROR", "{place}: {call}");
            assert_eq!(call["attempts"], 0, "{place}: {call}");
            let noted = until("it is noted", async || {
                let listed = served.get("/v1/exchanges").await.json();
                listed["exchanges"].get(0).cloned()
            })
            .await;
            let code = &noted["problems"][0]["code"];
            assert_eq!(code, "truncated_call", "{place}: {noted}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l07_rounds_have_an_end_and_a_last_answer_without_tools() {
    let calls = || Line::calls("weather", json!({"city": "Rome"}));
    let lines = [calls(), calls(), Line::says("Enough.")];
    let provider = StrictProvider::start(Dialect::Anthropic, lines).await;
    let served = executing("anthropic", &provider.url(), "max_iterations = 2").await;
    let (_, text) = post(
        &served,
        path(Dialect::Anthropic),
        &question(Dialect::Anthropic, false),
    )
    .await;
    assert_eq!(
        read(Dialect::Anthropic, false, &text)
            .message
            .content
            .text(),
        "Enough."
    );
    let requests = provider.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[2]["tool_choice"], json!({"type": "none"}));
    assert_eq!(requests[1].get("tool_choice"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn l04_a_tool_that_fails_is_an_answer_for_the_model_not_for_the_client() {
    let lines = [
        Line::calls("ill", json!({})),
        Line::says("It does not work."),
    ];
    let provider = StrictProvider::start(Dialect::OpenAi, lines).await;
    let served = executing("openai", &provider.url(), "").await;
    let (status, text) = post(
        &served,
        path(Dialect::OpenAi),
        &question(Dialect::OpenAi, true),
    )
    .await;
    assert_eq!(status, 200);
    assert_eq!(
        read(Dialect::OpenAi, true, &text).message.content.text(),
        "It does not work."
    );
    let last = provider.requests()[1]["messages"]
        .as_array()
        .expect("a list")
        .last()
        .cloned();
    let result = last.expect("a result")["content"]
        .as_str()
        .expect("text")
        .to_owned();
    assert!(result.starts_with("Error: "), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_with_calls_of_both_is_shared_and_the_model_sees_all_of_it_later() {
    for streams in [false, true] {
        let mixed = Said::text("Both. ").call("weather", json!({"city": "Oslo"}));
        let mixed = mixed.call("lookup", json!({"what": "umbrella"}));
        let lines = [Line::Says(mixed), Line::says("Done.")];
        let provider = StrictProvider::start(Dialect::Anthropic, lines).await;
        let served = executing("anthropic", &provider.url(), "").await;
        let mut body = question(Dialect::Anthropic, streams);
        body["tools"] = json!([{"name": "lookup", "description": "The client's own", "input_schema": {"type": "object"}}]);
        let (_, text) = post(&served, path(Dialect::Anthropic), &body).await;
        let reply = read(Dialect::Anthropic, streams, &text);
        let calls: Vec<&str> = reply
            .message
            .tool_calls
            .iter()
            .map(|call| call.name.as_str())
            .collect();
        assert_eq!(calls, ["lookup"], "{text}");
        let id = reply.message.tool_calls[0].id.clone();
        let messages = body["messages"].as_array_mut().expect("a list");
        messages.push(json!({"role": "assistant", "content": [{"type": "text", "text": "Both. "}, {"type": "tool_use", "id": id, "name": "lookup", "input": {"what": "umbrella"}}]}));
        messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "in the hall"}]}));
        body["stream"] = json!(false);
        let (status, text) = post(&served, path(Dialect::Anthropic), &body).await;
        assert_eq!(status, 200, "{text}");
        assert_eq!(provider.refused(), [""; 0]);
        let second = provider.requests()[1]["messages"].to_string();
        assert!(
            second.contains("drizzle") && second.contains("in the hall"),
            "{second}"
        );
        let ours = second.find("\"weather\"").expect("our call");
        let theirs = second.find("\"lookup\"").expect("theirs");
        assert!(ours < theirs, "{second}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clients_own_tools_and_wishes_come_first() {
    let provider = Provider::json(ok()).await;
    let served = executing("anthropic", &provider.url(), "tools = [\"wea*\"]").await;
    let path = path(Dialect::Anthropic);
    let mut body = question(Dialect::Anthropic, false);
    post(&served, path, &body).await;
    let offered = provider.last().json()["tools"].clone();
    assert_eq!(
        offered.as_array().map(Vec::len),
        Some(1),
        "only those that are meant"
    );
    body["tools"] = json!([{"name": "weather", "description": "The client's own", "input_schema": {"type": "object"}}]);
    post(&served, path, &body).await;
    assert_eq!(provider.last().json()["tools"], body["tools"]);
    body["tool_choice"] = json!({"type": "none"});
    post(&served, path, &body).await;
    assert_eq!(
        provider.last().body,
        body.to_string(),
        "no tools are wanted: byte for byte"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_pass_and_trouble_after_a_tool_is_told() {
    let refuse = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no such model"}});
    let sent = refuse.clone();
    let provider = Provider::answering(move |_| json_answer(404, &sent)).await;
    let served = executing("anthropic", &provider.url(), "").await;
    let (status, text) = post(
        &served,
        path(Dialect::Anthropic),
        &question(Dialect::Anthropic, true),
    )
    .await;
    assert_eq!((status, text), (404, refuse.to_string()));
    let lines = [
        Line::calls("weather", json!({"city": "Rome"})),
        Line::refuses(529, "Overloaded"),
    ];
    let strict = StrictProvider::start(Dialect::Anthropic, lines).await;
    let served = executing("anthropic", &strict.url(), "").await;
    let url = format!("http://{}{}", served.address, path(Dialect::Anthropic));
    let sent = client()
        .post(url)
        .header("content-type", "application/json");
    let sent = sent.header("anthropic-version", "2023-06-01");
    let mut answer = sent
        .body(question(Dialect::Anthropic, true).to_string())
        .send()
        .await
        .expect("a head");
    let mut text = String::new();
    let is_whole = loop {
        match answer.chunk().await {
            Ok(Some(piece)) => text.push_str(&String::from_utf8_lossy(&piece)),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    assert!(!is_whole, "half an answer must not look like one: {text}");
    assert!(
        text.contains("event: error") && text.contains("status 529"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_takes_the_running_tool_with_it() {
    for streams in [false, true] {
        let lines = [Line::calls("slow", json!({})), Line::says("Never.")];
        let provider = StrictProvider::start(Dialect::OpenAi, lines).await;
        let served = executing("openai", &provider.url(), "").await;
        let url = format!("http://{}{}", served.address, path(Dialect::OpenAi));
        let body = question(Dialect::OpenAi, streams).to_string();
        let sent = client()
            .post(url)
            .header("content-type", "application/json")
            .body(body);
        let asking = tokio::spawn(async move {
            let mut answer = sent.send().await.expect("a head");
            while let Ok(Some(_)) = answer.chunk().await {}
        });
        let id = runs(&served, "slow").await;
        asking.abort();
        until("the call is cancelled", async || {
            let call = served.get(&format!("/v1/calls/{id}")).await.json();
            (call["state"] == "cancelled").then_some(())
        })
        .await;
        assert_eq!(provider.lines_left(), 1, "the model was not asked again");
    }
}
