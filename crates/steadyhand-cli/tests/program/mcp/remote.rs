//! MCP servers over HTTP: from an address on the command line, from the configuration, from other programs' files.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use tokio::time::Instant;

use super::{Bench, npm, pause};
use crate::support::{PATIENCE, parts};

/// The real server "everything" on a port of its own; it ends with the test.
pub(crate) struct Everything {
    child: Child,
    port: u16,
}

impl Everything {
    pub(crate) fn over(way: &str) -> Everything {
        let port = {
            let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
            listener.local_addr().expect("it is bound").port()
        };
        let child = Command::new(npm("everything"))
            .arg(way)
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let it = Everything { child, port };
        let patience = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < patience, "it does not listen");
            pause();
        }
        it
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn v16_a_tool_behind_an_address_is_called_without_any_configuration() {
    let everything = Everything::over("streamableHttp");
    let bench = Bench::empty();
    let url = everything.url("mcp");
    let run = bench.run_words(&["call", "--mcp", &url, "echo", "message=hi"]);
    let (code, stdout, stderr) = parts(&run);
    assert_eq!((code, stdout.as_str()), (0, "Echo: hi\n"), "{stderr}");
}

#[test]
fn v17_an_address_nobody_listens_at_is_explained() {
    let bench = Bench::empty();
    let url = "http://127.0.0.1:1/mcp?key=hidden-in-the-query";
    let run = bench.run_words(&["--timeout", "30s", "call", "--mcp", url, "echo"]);
    let (code, stdout, stderr) = parts(&run);
    assert_eq!((code, stdout.as_str()), (4, ""), "{stderr}");
    assert!(stderr.contains("Connection refused"), "{stderr}");
    assert!(!stderr.contains("hidden-in-the-query"), "{stderr}");
}

#[test]
fn v16_a_server_is_added_by_its_address_tested_and_called() {
    let everything = Everything::over("streamableHttp");
    let bench = Bench::empty();
    let url = everything.url("mcp");
    let (code, _, stderr) = parts(&bench.run_words(&["mcp", "add", "far", &url]));
    assert_eq!(code, 0, "{stderr}");
    let (code, stdout, stderr) = parts(&bench.run("mcp test far"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("far__echo\t"), "{stdout}");
    for step in ["connect", "initialize", "tools/list"] {
        assert!(stderr.contains(step), "{step}: {stderr}");
    }
    let (code, stdout, stderr) = parts(&bench.run("call far__echo message=hi"));
    assert_eq!((code, stdout.as_str()), (0, "Echo: hi\n"), "{stderr}");
    let listed = bench.json("mcp list --json");
    assert_eq!(listed["servers"][0]["status"], "running", "{listed}");
}

#[test]
fn v16_servers_over_http_of_other_programs_are_connected() {
    let (streams, older) = (Everything::over("streamableHttp"), Everything::over("sse"));
    let bench = Bench::with("[import]\nmcp = [\".mcp.json\"]\n");
    let servers = json!({"mcpServers": {
        "streams": {"type": "http", "url": streams.url("mcp"), "headers": {"X-Key": "abcdefgh"}},
        "older": {"type": "sse", "url": older.url("sse")},
    }});
    bench.write(".mcp.json", &servers.to_string());
    for name in ["streams", "older"] {
        let tool = format!("{name}__echo");
        let (code, stdout, stderr) = parts(&bench.run_words(&["call", &tool, "message=hi"]));
        assert_eq!(
            (code, stdout.as_str()),
            (0, "Echo: hi\n"),
            "{name}: {stderr}"
        );
    }
}

#[test]
fn v17_an_address_that_is_none_is_told_with_its_place() {
    let bench = Bench::with(
        "[mcp.odd]\nurl = \"ftp://example.com\"\n\n[mcp.both]\ncommand = \"true\"\nurl = \"http://127.0.0.1:1/\"\n",
    );
    let (code, _, stderr) = parts(&bench.run("config check"));
    assert_ne!(code, 0, "{stderr}");
    assert!(stderr.contains("has both command and url"), "{stderr}");
    let bench = Bench::with("[mcp.odd]\nurl = \"ftp://example.com\"\n");
    let (_, stdout, stderr) = parts(&bench.run("mcp list"));
    let all = format!("{stdout}{stderr}");
    assert!(all.contains("must begin with http"), "{all}");
}
