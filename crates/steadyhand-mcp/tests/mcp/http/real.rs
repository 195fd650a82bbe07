//! Real servers over HTTP.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use steadyhand_mcp::{Phase, ServerSettings};
use tokio::process::{Child, Command};

use crate::support::{Folder, Stage, Watched, peer, until};

/// A program that serves on a port of its own; it ends with the test.
struct Served {
    _child: Child,
    port: u16,
}

async fn serve(program: PathBuf, words: &[String], port: u16, folder: &Folder) -> Served {
    let child = Command::new(program)
        .args(words)
        .env("PORT", port.to_string())
        .env("STEADYHAND_TEST_MARK", &folder.mark)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    Served {
        _child: child,
        port,
    }
}

async fn free_port() -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback");
    listener.local_addr().expect("it is bound").port()
}

/// The server at this path, up.
async fn stage(folder: Folder, served: &Served, path: &str) -> Stage {
    let url = format!("http://127.0.0.1:{}/{path}", served.port);
    let mut settings = ServerSettings::http("real", url);
    settings.prefix = false;
    settings.start.retry_first = Duration::from_millis(100);
    let stage = Stage::begin(folder, settings);
    until("it is up", || stage.server.state().phase == Phase::Running).await;
    stage.take_tools();
    stage
}

async fn everything(way: &str, path: &str, version: &str) {
    let folder = Folder::new();
    let port = free_port().await;
    let program = peer("mcp-npm/node_modules/.bin/mcp-server-everything");
    let served = serve(program, &[way.to_owned()], port, &folder).await;
    let stage = stage(folder, &served, path).await;
    let greeting = stage.server.greeting().expect("a greeting");
    assert_eq!(greeting.protocol_version, version);
    assert_eq!(
        stage.text("echo", json!({"message": "hi"})).await,
        "Echo: hi"
    );
    let sums = (0..20).map(|n| stage.text("get-sum", json!({"a": n, "b": 1})));
    let sums = futures_util::future::join_all(sums).await;
    assert!(sums[19].contains("20"), "{sums:?}");
    let watched = Watched::of(&stage.executor);
    let args = json!({"duration": 1, "steps": 4});
    stage.text("trigger-long-running-operation", args).await;
    until("the last step is told", || {
        watched.progress().last() == Some(&(4.0, Some(4.0)))
    })
    .await;
    stage.server.stop().await;
}

#[tokio::test]
async fn v16_everything_over_streamable_http() {
    everything("streamableHttp", "mcp", "2025-11-25").await;
}

#[tokio::test]
async fn v16_everything_over_http_and_sse() {
    everything("sse", "sse", "2025-11-25").await;
}

#[tokio::test]
async fn v16_a_python_server_of_the_newer_era() {
    let folder = Folder::new();
    let port = free_port().await;
    let script = folder.path("server.py");
    let program = format!(
        "from mcp.server import MCPServer\n\
         server = MCPServer('peer')\n\
         @server.tool()\n\
         def add(a: int, b: int) -> int:\n    return a + b\n\
         server.run(transport='streamable-http', host='127.0.0.1', port={port})\n"
    );
    std::fs::write(&script, program).expect("a folder of our own");
    let python = peer("mcp-py/bin/python");
    let served = serve(python, &[script.display().to_string()], port, &folder).await;
    let stage = stage(folder, &served, "mcp").await;
    let greeting = stage.server.greeting().expect("a greeting");
    assert_eq!(greeting.protocol_version, "2026-07-28");
    for n in 0..20 {
        let outcome = stage.call("add", json!({"a": n, "b": 23})).await;
        assert_eq!(crate::support::value(&outcome)["result"], n + 23);
    }
    stage.server.stop().await;
}
