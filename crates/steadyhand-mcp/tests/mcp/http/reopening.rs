//! A server that closes its stream at once and asks for it to be opened again at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand_mcp::{Protocol, ServerSettings};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::bare::Wire;
use crate::support::{Folder, Stage, until};

async fn serve(listener: TcpListener, opened: Arc<AtomicUsize>) {
    while let Ok((stream, _)) = listener.accept().await {
        let opened = Arc::clone(&opened);
        tokio::spawn(async move { answer(Wire::new(stream), &opened).await });
    }
}

async fn answer(mut wire: Wire, opened: &AtomicUsize) -> std::io::Result<()> {
    while let Some(request) = wire.request().await? {
        let result = match request.method() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "eager", "version": "1"},
            }),
            "tools/list" => {
                json!({"tools": [{"name": "echo", "description": "Echoes", "inputSchema": {"type": "object"}}]})
            }
            "tools/call" => json!({"content": [{"type": "text", "text": "here"}]}),
            _ if request.verb == "GET" => {
                let count = opened.fetch_add(1, Ordering::SeqCst);
                wire.begin_events().await?;
                wire.chunk(&format!("id: {count}\nretry: 0\ndata: \n\n"))
                    .await?;
                wire.end_events().await?;
                continue;
            }
            _ => {
                wire.respond("202 Accepted", &[], "").await?;
                continue;
            }
        };
        let id: &Value = &request.body["id"];
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        wire.json(&[], &answer).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s01_a_stream_that_ends_at_once_is_opened_a_few_times_a_second_at_most() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let address = listener.local_addr().expect("its address");
    let opened = Arc::new(AtomicUsize::default());
    tokio::spawn(serve(listener, Arc::clone(&opened)));
    let mut settings = ServerSettings::http("eager", format!("http://{address}/mcp"));
    settings.prefix = false;
    settings.protocol = Protocol::Legacy;
    let stage = Stage::with(Folder::new(), settings).await;
    let count = || opened.load(Ordering::SeqCst);
    until("the stream is opened", || count() >= 1).await;
    let (before, began) = (count(), Instant::now());
    until("it is opened three times more", || count() >= before + 3).await;
    // A slow machine only makes it longer.
    assert!(
        began.elapsed() > Duration::from_millis(700),
        "{:?}",
        began.elapsed()
    );
    let outcome = stage.call("echo", json!({})).await;
    assert!(outcome.is_success(), "{outcome:?}");
}
