//! Streams pass as they come, byte for byte, and the calls in them are checked on the side.

use axum::body::{Body, Bytes};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use super::{Provider, proxy, proxy_with, typed_answer, valid};
use crate::serve::{Served, until};
use crate::support::{PATIENCE, client};

/// A provider whose stream the test writes piece by piece.
async fn told() -> (Provider, mpsc::Sender<Result<Bytes, std::io::Error>>) {
    let (pieces, stream) = mpsc::channel(16);
    let stream = std::sync::Mutex::new(Some(stream));
    let provider = Provider::answering(move |_| {
        let stream = stream.lock().expect("whole").take().expect("asked once");
        typed_answer(
            200,
            "text/event-stream",
            Body::from_stream(ReceiverStream::new(stream)),
        )
    })
    .await;
    (provider, pieces)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_piece_of_a_stream_passes_before_the_next_one_is_sent() {
    let (provider, pieces) = told().await;
    let served = proxy("anthropic", provider.url()).await;
    let url = format!("http://{}/proxy/anthropic/v1/messages", served.address);
    let sent = client().post(url).body(valid().to_string()).send().await;
    let mut answer = sent.expect("an answer").bytes_stream();
    for number in 0..50 {
        // Odd pieces are no whole events.
        let piece = match number % 2 {
            0 => format!("event: ping\ndata: {{\"type\": \"ping\", \"number\": {number}}}\n\n"),
            _ => format!(": half an event, {number}"),
        };
        pieces
            .send(Ok(piece.clone().into()))
            .await
            .expect("it is read");
        let mut got = Vec::new();
        while got.len() < piece.len() {
            let next = timeout(PATIENCE, answer.next())
                .await
                .expect("it passes at once");
            got.extend_from_slice(&next.expect("more").expect("no error"));
        }
        assert_eq!(got, piece.as_bytes());
    }
    let end = "\n\ndata: {\"type\": \"message_stop\"}\n\n";
    pieces.send(Ok(end.into())).await.expect("it is read");
    drop(pieces);
    let mut got = Vec::new();
    while let Some(next) = timeout(PATIENCE, answer.next()).await.expect("its end") {
        got.extend_from_slice(&next.expect("no error"));
    }
    assert_eq!(got, end.as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_slowly_holds_the_provider_back() {
    const PIECE: usize = 64 * 1024;
    // What lies in the buffers of four sockets and of HTTP on both sides; the stream itself has no end.
    const MOST: usize = 64 * 1024 * 1024;
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&sent);
    let event = Bytes::from(format!("data: {}\n\n", "x".repeat(PIECE)));
    let provider = Provider::answering(move |_| {
        let (event, counted) = (event.clone(), std::sync::Arc::clone(&counted));
        let endless = futures_util::stream::repeat_with(move || {
            counted.fetch_add(PIECE, std::sync::atomic::Ordering::Relaxed);
            Ok::<_, std::io::Error>(event.clone())
        });
        typed_answer(200, "text/event-stream", Body::from_stream(endless))
    })
    .await;
    let served = proxy("anthropic", provider.url()).await;
    let url = format!("http://{}/proxy/anthropic/v1/messages", served.address);
    let sending = client().post(url).body(valid().to_string()).send().await;
    let mut answer = sending.expect("an answer");
    answer.chunk().await.expect("no error").expect("a piece");
    // Until nothing more is taken from the provider.
    let mut last = 0;
    let mut same = 0;
    until("the provider is held back", async || {
        let now = sent.load(std::sync::atomic::Ordering::Relaxed);
        assert!(
            now < MOST,
            "{now} bytes were taken for a client that reads nothing"
        );
        same = if now == last { same + 1 } else { 0 };
        last = now;
        (same >= 20).then_some(())
    })
    .await;
    // It goes on from there.
    for _ in 0..200 {
        timeout(PATIENCE, answer.chunk())
            .await
            .expect("in time")
            .expect("no error")
            .expect("more");
    }
}

/// What is found in the answer to one request, streamed.
async fn found(site: &str, path: &str, kind: &str, stream: &str) -> Value {
    let (kind, stream) = (kind.to_owned(), stream.to_owned());
    let body = stream.clone();
    // In pieces that end anywhere.
    let provider = Provider::answering(move |_| {
        let pieces: Vec<Result<Bytes, std::io::Error>> = body
            .as_bytes()
            .chunks(37)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        typed_answer(
            200,
            &kind,
            Body::from_stream(futures_util::stream::iter(pieces)),
        )
    })
    .await;
    let served = proxy(site, provider.url()).await;
    let url = format!("http://{}/proxy/{site}{path}", served.address);
    let sent = client()
        .post(url)
        .body("{}")
        .send()
        .await
        .expect("an answer");
    assert_eq!(sent.text().await.expect("whole"), stream);
    noted(&served).await
}

async fn noted(served: &Served) -> Value {
    until("it is noted", async || {
        let listed = served.get("/v1/exchanges").await.json();
        listed["exchanges"].get(0).cloned()
    })
    .await
}

fn events(all: &[Value]) -> String {
    let event = |value: &Value| {
        format!(
            "event: {}\ndata: {value}\n\n",
            value["type"].as_str().unwrap_or("x")
        )
    };
    all.iter().map(event).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn r02_calls_with_broken_arguments_are_reported_in_every_providers_stream() {
    let anthropic = events(&[
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "stop_reason": null}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I say \"tool_use\" and more."}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t1", "name": "write", "input": {}}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"path\": \"a"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ]);
    let chunk = |delta: Value, reason: Value| {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": reason}]);
        format!(
            "data: {}\n\n",
            json!({"id": "c", "object": "chat.completion.chunk", "choices": choices})
        )
    };
    let openai = [
        chunk(json!({"role": "assistant", "content": "Hm."}), Value::Null),
        chunk(json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "write", "arguments": ""}}]}), Value::Null),
        chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"path\": \"a"}}]}), Value::Null),
        chunk(json!({}), json!("length")),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    let item = json!({"type": "function_call", "id": "f", "call_id": "c1", "name": "write", "arguments": "{\"path\": \"a"});
    let responses = events(&[
        json!({"type": "response.created", "response": {"id": "r", "output": []}}),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Hm."}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": item}),
        json!({"type": "response.incomplete", "response": {"id": "r", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [item]}}),
    ]);
    let ollama = [
        json!({"message": {"role": "assistant", "content": "Hm."}, "done": false}),
        json!({"message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "write", "arguments": "{\"path\": \"a"}}]}, "done": false}),
        json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "length"}),
    ]
    .map(|line| format!("{line}\n"))
    .concat();
    let part = json!({"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "write", "args": "oh"}}]}, "finishReason": "STOP"}]});
    let gemini = format!("data: {part}\r\n\r\n");
    let array = format!("[{part}\n,\r\n{part}]");
    let sse = "text/event-stream; charset=utf-8";
    let rows = [
        (
            "anthropic",
            "/v1/messages",
            sse,
            &anthropic,
            "truncated_call",
        ),
        (
            "openai",
            "/v1/chat/completions",
            sse,
            &openai,
            "truncated_call",
        ),
        ("openai", "/v1/responses", sse, &responses, "truncated_call"),
        (
            "ollama",
            "/api/chat",
            "application/x-ndjson",
            &ollama,
            "truncated_call",
        ),
        (
            "gemini",
            "/v1beta/models/g:streamGenerateContent?alt=sse",
            sse,
            &gemini,
            "unfinished_arguments",
        ),
        (
            "gemini",
            "/v1beta/models/g:streamGenerateContent",
            "application/json",
            &array,
            "unfinished_arguments",
        ),
    ];
    for (site, path, kind, stream, code) in rows {
        let exchange = found(site, path, kind, stream).await;
        assert_eq!(
            exchange["problems"][0]["code"], code,
            "{site}{path}: {exchange}"
        );
        assert_eq!(exchange["streamed"], true);
        assert_eq!(exchange["status"], 200);
        assert!(!exchange.to_string().contains("Hm."), "{exchange}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r02_calls_with_broken_arguments_are_reported_in_whole_answers_and_counted() {
    let answer = json!({"id": "c", "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "tool_calls", "message":
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "write", "arguments": "{oh"}}]}}]});
    let provider = Provider::json(answer.clone()).await;
    let served = proxy("openai", provider.url()).await;
    let reply = served
        .post("/proxy/openai/v1/chat/completions", valid())
        .await;
    assert_eq!((reply.status, reply.json()), (200, answer));
    let exchange = noted(&served).await;
    assert_eq!(
        exchange["problems"][0]["at"], "/choices/0/message/tool_calls/0/function/arguments",
        "{exchange}"
    );
    let figures = served.get("/metrics").await.text;
    let row = "steadyhand_proxy_broken_answers_total{provider=\"openai\"} 1";
    assert!(figures.contains(row), "{figures}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_larger_than_is_looked_at_passes_all_the_same() {
    let word = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word ".repeat(200)}});
    let piece = json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "x".repeat(1000)}});
    // Six megabytes of words, three of arguments, and a line without an end.
    let mut stream = events(&vec![word; 6000]);
    stream.push_str(&events(&vec![piece; 3000]));
    stream.push_str(&format!("data: {}\n\n", "y".repeat(3_000_000)));
    let sent = stream.clone();
    let provider =
        Provider::answering(move |_| typed_answer(200, "text/event-stream", sent.clone())).await;
    let served = proxy("anthropic", provider.url()).await;
    let url = format!("http://{}/proxy/anthropic/v1/messages", served.address);
    let answer = client()
        .post(url)
        .body(valid().to_string())
        .send()
        .await
        .expect("an answer");
    assert!(answer.text().await.expect("whole") == stream);
}

/// A stream of every provider: where it goes, its type, what comes before the end mark, and the end marks it may have.
fn unfinished() -> Vec<(
    &'static str,
    &'static str,
    &'static str,
    String,
    Vec<String>,
)> {
    let sse = "text/event-stream";
    let data = |value: Value| format!("data: {value}\n\n");
    let of_chat = |reason: Value| {
        let choice = json!({"index": 0, "delta": {"content": "Hm"}, "finish_reason": reason});
        data(json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}))
    };
    let of_prompt = |reason: Value| {
        let choice = json!({"index": 0, "text": "Hm", "finish_reason": reason});
        data(json!({"id": "c", "object": "text_completion", "choices": [choice]}))
    };
    let anthropic = events(&[
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "stop_reason": null}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        // What a model says is no end mark.
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "{\"type\": \"message_stop\"} [DONE]"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
    ]);
    let mut anthropic_ends = vec![json!({"type": "message_stop"})];
    anthropic_ends
        .push(json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}));
    let anthropic_ends: Vec<String> = anthropic_ends
        .iter()
        .map(|end| events(std::slice::from_ref(end)))
        .collect();
    let responses = events(&[
        json!({"type": "response.created", "response": {"id": "r", "output": []}}),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Hm."}),
    ]);
    let responses_ends = ["completed", "incomplete", "failed"].map(|how| {
        let kind = format!("response.{how}");
        events(&[json!({"type": kind, "response": {"id": "r", "status": how, "output": []}})])
    });
    let candidate = |reason: Value| json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Hm"}]}, "finishReason": reason}]});
    let begun = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Hm"}]}}]});
    vec![
        (
            "anthropic",
            "/v1/messages",
            sse,
            anthropic.clone(),
            anthropic_ends.clone(),
        ),
        (
            "vertex",
            "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:streamRawPredict",
            sse,
            anthropic,
            anthropic_ends,
        ),
        // Some write an empty reason into every piece.
        (
            "openai",
            "/v1/chat/completions",
            sse,
            of_chat(json!("")),
            vec![of_chat(json!("stop"))],
        ),
        (
            "openai",
            "/v1/chat/completions",
            sse,
            of_chat(Value::Null),
            vec![
                of_chat(json!("stop")),
                "data: [DONE]\n\n".to_owned(),
                data(json!({"error": {"message": "busy"}})),
            ],
        ),
        (
            "mistral",
            "/v1/chat/completions",
            sse,
            of_chat(Value::Null),
            vec![of_chat(json!("stop"))],
        ),
        (
            "openai",
            "/v1/responses",
            sse,
            responses,
            responses_ends.to_vec(),
        ),
        (
            "gemini",
            "/v1beta/models/g:streamGenerateContent?alt=sse",
            sse,
            data(begun.clone()),
            vec![
                data(candidate(json!("STOP"))),
                data(json!({"promptFeedback": {"blockReason": "SAFETY"}})),
            ],
        ),
        (
            "gemini",
            "/v1beta/models/g:streamGenerateContent",
            "application/json",
            format!("[{begun}"),
            vec![format!(",\n{}]", candidate(json!("STOP")))],
        ),
        (
            "ollama",
            "/api/chat",
            "application/x-ndjson",
            format!(
                "{}\n",
                json!({"message": {"role": "assistant", "content": "Hm"}, "done": false})
            ),
            vec![
                format!(
                    "{}\n",
                    json!({"message": {"role": "assistant", "content": ""}, "done": true})
                ),
                "{\"error\": \"busy\"}\n".to_owned(),
            ],
        ),
        // Prompts that are no conversations.
        (
            "ollama",
            "/api/generate",
            "application/x-ndjson",
            "{\"response\":\"Hm\",\"done\":false}\n".to_owned(),
            vec!["{\"response\":\"\",\"done\":true}\n".to_owned()],
        ),
        (
            "openai",
            "/v1/completions",
            sse,
            of_prompt(Value::Null),
            vec![of_prompt(json!("stop"))],
        ),
        (
            "mistral",
            "/v1/fim/completions",
            sse,
            of_prompt(Value::Null),
            vec![of_prompt(json!("stop"))],
        ),
    ]
}

/// A body in pieces, as HTTP sends it where nobody knows its length; whole, as far as HTTP can tell.
async fn streaming(kind: &str, body: &str) -> Provider {
    let (kind, body) = (kind.to_owned(), body.to_owned());
    Provider::answering(move |_| {
        let pieces = body.as_bytes().chunks(41).map(Bytes::copy_from_slice);
        let pieces: Vec<Result<Bytes, std::io::Error>> = pieces.map(Ok).collect();
        typed_answer(
            200,
            &kind,
            Body::from_stream(futures_util::stream::iter(pieces)),
        )
    })
    .await
}

/// What the client gets: the text, and whether it ended as it should.
async fn passed(served: &Served, site: &str, path: &str) -> (String, bool) {
    let url = format!("http://{}/proxy/{site}{path}", served.address);
    let sent = client().post(url).body(valid().to_string()).send().await;
    let mut answer = sent.expect("an answer");
    let mut text = String::new();
    loop {
        match timeout(PATIENCE, answer.chunk()).await.expect("no hanging") {
            Ok(Some(piece)) => text.push_str(&String::from_utf8_lossy(&piece)),
            Ok(None) => return (text, true),
            Err(_) => return (text, false),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r02_a_stream_without_its_end_mark_is_a_broken_answer_and_said_so() {
    for (site, path, kind, begun, ends) in unfinished() {
        let provider = streaming(kind, &begun).await;
        let served = proxy(site, provider.url()).await;
        let (text, is_whole) = passed(&served, site, path).await;
        assert!(text.starts_with(&begun), "{site}{path}: {text}");
        assert!(
            !is_whole,
            "{site}{path}: half an answer looks like a whole one"
        );
        // One growing list has no place for an error.
        let says_so = text.contains("ended without its end mark");
        assert_eq!(says_so, kind != "application/json", "{site}{path}: {text}");
        let exchange = noted(&served).await;
        assert_eq!(
            exchange["failure"]["code"], "upstream_unfinished",
            "{exchange}"
        );
        let figures = served.get("/metrics").await.text;
        let row = format!("steadyhand_proxy_broken_answers_total{{provider=\"{site}\"}} 1");
        assert!(figures.contains(&row), "{site}{path}: {figures}");
        // Lines of an event stream end as their sender likes.
        let is_events = kind == "text/event-stream";
        let with_returns = ends.first().filter(|_| is_events).map(|end| {
            let whole = format!("{begun}{end}");
            whole.replace('\n', "\r")
        });
        let wholes = ends.iter().map(|end| format!("{begun}{end}"));
        for whole in wholes.chain(with_returns) {
            let provider = streaming(kind, &whole).await;
            let served = proxy(site, provider.url()).await;
            assert_eq!(
                passed(&served, site, path).await,
                (whole, true),
                "{site}{path}"
            );
            let figures = served.get("/metrics").await.text;
            assert!(!figures.contains("broken_answers_total{"), "{figures}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_known_length_without_its_end_mark_is_cut_off_before_its_end() {
    let begun = "data: {\"type\": \"ping\"}\n\n";
    let provider =
        Provider::answering(move |_| typed_answer(200, "text/event-stream", begun)).await;
    let served = proxy("anthropic", provider.url()).await;
    let (_, is_whole) = passed(&served, "anthropic", "/v1/messages").await;
    assert!(!is_whole);
    assert_eq!(
        noted(&served).await["failure"]["code"],
        "upstream_unfinished"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_repair_a_stream_without_its_end_mark_passes_and_is_reported() {
    let begun = "data: {\"type\": \"ping\"}\n\n";
    let provider = streaming("text/event-stream", begun).await;
    let served = proxy_with("anthropic", provider.url(), "repair = false").await;
    let got = passed(&served, "anthropic", "/v1/messages").await;
    assert_eq!(got, (begun.to_owned(), true));
    assert_eq!(
        noted(&served).await["failure"]["code"],
        "upstream_unfinished"
    );
}

/// Some say that they stream, and answer at once.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_comes_at_once_where_a_stream_was_asked_for_passes() {
    let answer = super::ok().to_string();
    let body = answer.clone();
    let provider =
        Provider::answering(move |_| typed_answer(200, "text/plain", body.clone())).await;
    let served = proxy("anthropic", provider.url()).await;
    let url = format!("http://{}/proxy/anthropic/v1/messages", served.address);
    let mut asked = valid();
    asked["stream"] = json!(true);
    let sent = client().post(url).body(asked.to_string()).send().await;
    assert_eq!(
        sent.expect("an answer").text().await.expect("whole"),
        answer
    );
}
