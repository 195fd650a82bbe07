//! Servers over HTTP behind us, each by itself and all of them together: real ones, and another gateway of ours.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;

use super::{Modern, Session, gateway, peer, up};
use crate::mcp::remote::Everything;
use crate::serve::{Served, until};
use crate::support::Workplace;

const PYTHON: &str = "import sys\nfrom mcp.server import MCPServer\ns = MCPServer('peer')\n\
    @s.tool()\ndef add(a: int, b: int) -> int:\n    return a + b\n\
    s.run(transport='streamable-http', host='127.0.0.1', port=int(sys.argv[1]))\n";

#[tokio::test(flavor = "multi_thread")]
async fn v16_real_servers_over_http_are_listed_and_called_through_us_in_both_eras() {
    let (streams, older) = (Everything::over("streamableHttp"), Everything::over("sse"));
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = free.local_addr().expect("it is bound").port().to_string();
    drop(free);
    let workplace = Workplace::with_config(&format!(
        "[mcp.streams]\nurl = {:?}\n[mcp.older]\nurl = {:?}\ntransport = \"sse\"\n\
         [mcp.python]\nurl = \"http://127.0.0.1:{port}/mcp\"\n",
        streams.url("mcp"),
        older.url("sse")
    ));
    workplace.write("peer.py", PYTHON);
    let _python = Command::new(peer("mcp-py/bin/python"))
        .arg(workplace.file("peer.py"))
        .arg(port)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let served = Served::in_place(workplace).await;
    let session = Session::begin(&served).await;
    let tools = until("all three are up", async || {
        let listed = session
            .ask(&served, "tools/list", json!({}))
            .await
            .to_string();
        let all = ["streams__echo", "older__echo", "python__add"];
        all.iter()
            .all(|name| listed.contains(name))
            .then_some(listed)
    })
    .await;
    assert!(tools.contains("python__add"));
    let table: [(&str, Value, &str); 3] = [
        ("streams__echo", json!({"message": "hi"}), "Echo: hi"),
        ("older__echo", json!({"message": "hi"}), "Echo: hi"),
        ("python__add", json!({"a": 19, "b": 23}), "42"),
    ];
    for (name, arguments, answer) in table {
        let params = json!({"name": name, "arguments": arguments});
        let asked = session.ask(&served, "tools/call", params.clone()).await;
        assert_eq!(asked["result"]["content"][0]["text"], answer, "{asked}");
        let result = Modern::new("tools/call", params).result(&served).await;
        assert_eq!(result["content"][0]["text"], answer, "{result}");
    }
}

/// Everything passes two of us as it passes one.
#[tokio::test(flavor = "multi_thread")]
async fn v05_a_gateway_behind_a_gateway_conforms_too() {
    for (era, version, scored) in [("legacy", "2025-11-25", 30), ("modern", "2026-07-28", 37)] {
        let inner = gateway("").await;
        let outer = up(Workplace::with_config(&format!(
            "[mcp.inner]\nurl = \"http://{}/mcp\"\nprefix = false\nprotocol = \"{era}\"\n",
            inner.address
        )))
        .await;
        super::conformance::conforms(&outer, version, scored).await;
    }
}
