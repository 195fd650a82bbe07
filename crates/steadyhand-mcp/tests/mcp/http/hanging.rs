//! A server over HTTP that is up, and whose machine takes no further connection: a call that cannot get one was not sent.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::{Call, Effect};
use steadyhand_mcp::{Protocol, ServerSettings};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::bare::Wire;
use crate::support::{Folder, Stage, failure};

/// Answers each request on a connection of its own, until it is told to take no more.
async fn serve(listener: TcpListener, full: CancellationToken) {
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                tokio::spawn(async move { answer(Wire::new(stream)).await });
            }
            () = full.cancelled() => std::future::pending().await,
        }
    }
}

async fn answer(mut wire: Wire) -> std::io::Result<()> {
    let Some(request) = wire.request().await? else {
        return Ok(());
    };
    let close = [("connection", "close")];
    let result = match request.method() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "full", "version": "1"},
        }),
        "tools/list" => {
            json!({"tools": [{"name": "echo", "description": "Echoes", "inputSchema": {"type": "object"}}]})
        }
        "tools/call" => json!({"content": [{"type": "text", "text": "here"}]}),
        _ if request.verb == "GET" => {
            return wire.respond("405 Method Not Allowed", &close, "").await;
        }
        _ => return wire.respond("202 Accepted", &close, "").await,
    };
    let id: &Value = &request.body["id"];
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
    wire.json(&close, &answer).await
}

/// Connects until no connection is made any more.
async fn fill(address: SocketAddr) -> Vec<TcpStream> {
    let mut all = Vec::new();
    while let Ok(Ok(stream)) =
        timeout(Duration::from_millis(300), TcpStream::connect(address)).await
    {
        all.push(stream);
        assert!(all.len() < 64, "this machine takes them all");
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn v07_a_call_that_gets_no_connection_in_its_time_was_not_run() {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket
        .bind("127.0.0.1:0".parse().expect("an address"))
        .expect("a port");
    let listener = socket.listen(1).expect("a listener");
    let address = listener.local_addr().expect("its address");
    let full = CancellationToken::new();
    tokio::spawn(serve(listener, full.clone()));
    let mut settings = ServerSettings::http("full", format!("http://{address}/mcp"));
    settings.prefix = false;
    settings.protocol = Protocol::Legacy;
    let stage = Stage::with(Folder::new(), settings).await;
    let outcome = stage.call("echo", json!({})).await;
    assert!(outcome.is_success(), "{outcome:?}");

    full.cancel();
    let _held = fill(address).await;
    let call = Call::new("echo", json!({})).no_retry();
    let outcome = stage.run(call.deadline(Duration::from_secs(2))).await;
    let (_, effect, words) = failure(&outcome);
    assert_eq!(effect, Effect::None, "{words}");
    assert!(words.contains("no connection was made"), "{words}");
}
