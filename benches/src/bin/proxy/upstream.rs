//! A provider that answers at once: whole, or as a stream whose events come as the driver wants them.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt as _;
use futures_util::{StreamExt, stream};

/// Events of a stream after the first.
pub const EVENTS: usize = 200;

const WHOLE: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"It was a missing comma."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":12000,"output_tokens":8}}"#;
const FIRST: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"stop_reason\":null}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
const DELTA: &str = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" word\"}}\n\n";
const LAST: &str = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":8}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

pub fn run(address: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await.expect("the address is free");
        // As providers do: an event waits for no other.
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, axum::Router::new().fallback(answer)).await.expect("it serves");
    });
}

async fn answer(request: Request) -> Response {
    let waits = request.headers().get("x-wait-ms").and_then(|wait| wait.to_str().ok()?.parse().ok());
    let is_streamed = request.headers().get("x-stream").is_some();
    let _ = axum::body::to_bytes(request.into_body(), 1 << 24).await;
    if !is_streamed {
        return ([("content-type", "application/json")], WHOLE).into_response();
    }
    let wait = waits.map(Duration::from_millis);
    let words = stream::iter(0..EVENTS).then(move |_| async move {
        match wait {
            Some(wait) => tokio::time::sleep(wait).await,
            None => tokio::task::yield_now().await,
        }
        Bytes::from_static(DELTA.as_bytes())
    });
    let all = stream::once(async { Bytes::from_static(FIRST.as_bytes()) })
        .chain(words)
        .chain(stream::once(async { Bytes::from_static(LAST.as_bytes()) }));
    let body = Body::from_stream(all.map(Ok::<_, std::convert::Infallible>));
    ([("content-type", "text/event-stream")], body).into_response()
}
