//! We as an MCP server, over HTTP and on stdio: the official conformance suite, real clients, and what both leave out.

mod behind;
mod clients;
mod conformance;
mod eras;
mod first_list;
mod kills;
mod odd;
mod passing;
mod questions;
mod sessions;
pub(crate) mod stdio;
mod streams;

pub(crate) use sessions::memory;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::serve::{Reply, Served, request, until};
use crate::support::{PATIENCE, Workplace};

/// The server of the conformance suite's names behind us, under its own names. `more` goes into its table;
/// the words `legacy` and `odd` in it are for the server, too.
pub(crate) fn fixture(more: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/gateway/fixture.py");
    let mut words = vec![
        "-S".to_owned(),
        "-E".to_owned(),
        script.display().to_string(),
    ];
    for word in ["legacy", "odd"] {
        if more.contains(word) {
            words.push(word.to_owned());
        }
    }
    format!("[mcp.fixture]\ncommand = \"python3\"\nargs = {words:?}\nprefix = false\n{more}\n")
}

/// A gateway with that server behind it, up.
async fn gateway(more: &str) -> Served {
    up(Workplace::with_config(&fixture(more))).await
}

pub(crate) async fn up(workplace: Workplace) -> Served {
    let served = Served::in_place(workplace).await;
    until("everything of the server is there", async || {
        let list = async |method: &str, member: &str| {
            let listed = Modern::new(method, json!({})).result(&served).await;
            listed[member].to_string().contains("test")
        };
        let is_there = list("tools/list", "tools").await
            && list("prompts/list", "prompts").await
            && list("resources/list", "resources").await
            && list("resources/templates/list", "resourceTemplates").await;
        is_there.then_some(())
    })
    .await;
    served
}

/// A program that `./test` installs below `target/peers`.
fn peer(path: &str) -> PathBuf {
    let ancestors = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut found = ancestors.map(|folder| folder.join("target/peers").join(path));
    found.find(|path| path.exists()).unwrap_or_else(|| {
        panic!("target/peers/{path} is not installed: run ./test, or: . scripts/peers.sh && install_peers target/peers")
    })
}

const BOTH: &str = "application/json, text/event-stream";

/// What a request of the newer protocol says about its client.
fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// A request of the newer protocol, with the headers it needs.
pub(crate) struct Modern {
    headers: Vec<(String, String)>,
    body: Value,
}

impl Modern {
    pub(crate) fn new(method: &str, params: Value) -> Modern {
        Modern::of(method, params, json!({}))
    }

    /// Of a client that can do something.
    pub(crate) fn of(method: &str, mut params: Value, capabilities: Value) -> Modern {
        let mut all = meta(capabilities);
        if let (Some(all), Some(more)) = (all.as_object_mut(), params["_meta"].as_object()) {
            all.extend(more.clone());
        }
        params["_meta"] = all;
        let mut headers = vec![
            ("accept".to_owned(), BOTH.to_owned()),
            ("mcp-protocol-version".to_owned(), "2026-07-28".to_owned()),
            ("mcp-method".to_owned(), method.to_owned()),
        ];
        let name = match method {
            "resources/read" => params["uri"].as_str(),
            _ => params["name"].as_str(),
        };
        headers.extend(name.map(|name| ("mcp-name".to_owned(), name.to_owned())));
        Modern {
            headers,
            body: json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
        }
    }

    fn without(mut self, header: &str) -> Modern {
        self.headers.retain(|(name, _)| name != header);
        self
    }

    pub(crate) fn with(mut self, header: &str, value: &str) -> Modern {
        self = self.without(header);
        self.headers.push((header.to_owned(), value.to_owned()));
        self
    }

    pub(crate) async fn send(&self, served: &Served) -> Reply {
        let headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        served
            .send("POST", "/mcp", &headers, &self.body.to_string())
            .await
    }

    /// The status and the code of the error that it is answered with.
    async fn refused(&self, served: &Served) -> (u16, i64) {
        let reply = self.send(served).await;
        let answer = reply.json();
        assert_eq!(answer["id"], self.body["id"], "{answer}");
        (reply.status, answer["error"]["code"].as_i64().unwrap_or(0))
    }

    pub(crate) async fn result(&self, served: &Served) -> Value {
        let reply = self.send(served).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let answer = last_message(&reply);
        assert_eq!(answer["id"], self.body["id"], "{answer}");
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    pub(crate) async fn stream(&self, served: &Served) -> Events {
        let headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        Events::open(served, "POST", &headers, &self.body.to_string()).await
    }
}

/// The answer itself, be it alone or the last of a stream.
pub(crate) fn last_message(reply: &Reply) -> Value {
    match reply.header("content-type") {
        Some("text/event-stream") => {
            let mut lines = reply
                .text
                .lines()
                .filter_map(|line| line.strip_prefix("data: "));
            let last = lines.next_back().expect("an event");
            serde_json::from_str(last).expect("JSON")
        }
        _ => reply.json(),
    }
}

/// A session of the older protocols.
pub(crate) struct Session {
    id: String,
    version: String,
}

impl Session {
    pub(crate) async fn begin(served: &Served) -> Session {
        Session::of(served, "2025-11-25", json!({})).await
    }

    pub(crate) async fn of(served: &Served, version: &str, capabilities: Value) -> Session {
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        }});
        let reply = served
            .send("POST", "/mcp", &[("accept", BOTH)], &body.to_string())
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let id = reply
            .header("mcp-session-id")
            .expect("a session")
            .to_owned();
        let answer = reply.json();
        let version = answer["result"]["protocolVersion"].as_str();
        Session {
            id,
            version: version.expect("a version").to_owned(),
        }
    }

    pub(crate) fn headers(&self) -> [(&str, &str); 3] {
        [
            ("accept", BOTH),
            ("mcp-session-id", &self.id),
            ("mcp-protocol-version", &self.version),
        ]
    }

    pub(crate) async fn post(&self, served: &Served, message: &Value) -> Reply {
        served
            .send("POST", "/mcp", &self.headers(), &message.to_string())
            .await
    }

    async fn ask(&self, served: &Served, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let reply = self.post(served, &message).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        last_message(&reply)
    }

    /// The stream that a request is answered with.
    pub(crate) async fn stream(
        &self,
        served: &Served,
        id: u64,
        method: &str,
        params: Value,
    ) -> Events {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        Events::open(served, "POST", &self.headers(), &message.to_string()).await
    }

    /// What it is told unasked; from an event on, if one is given.
    async fn listen(&self, served: &Served, after: Option<&str>) -> Events {
        let mut headers = self.headers().to_vec();
        headers.extend(after.map(|id| ("last-event-id", id)));
        Events::open(served, "GET", &headers, "").await
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    id: Option<String>,
    pub(crate) message: Value,
    /// The message to the letter.
    text: String,
}

/// A stream of events, as it comes.
pub(crate) struct Events {
    stream: TcpStream,
    head: String,
    /// What came of the body, its chunks joined.
    text: String,
    /// What came and is no whole chunk yet.
    raw: Vec<u8>,
    is_over: bool,
}

impl Events {
    async fn open(served: &Served, method: &str, headers: &[(&str, &str)], body: &str) -> Events {
        let request = request(served.address, method, "/mcp", headers, body);
        let mut stream = served.connect().await;
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut raw = Vec::new();
        let end = loop {
            if let Some(at) = raw.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            let read = timeout(PATIENCE, stream.read_buf(&mut raw)).await;
            assert!(
                read.expect("headers in time").expect("headers") > 0,
                "cut off"
            );
        };
        let rest = raw.split_off(end);
        let head = String::from_utf8(raw).expect("text");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("text/event-stream"), "{head}");
        Events {
            stream,
            head,
            text: String::new(),
            raw: rest,
            is_over: false,
        }
    }

    /// The next event; none at the end. Comments, and events that say nothing, are passed over.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        timeout(PATIENCE, self.look())
            .await
            .expect("an event in time")
    }

    async fn look(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    let mut lines = event.lines().filter_map(|line| line.strip_prefix(name));
                    lines.next().map(str::to_owned)
                };
                if let Some(data) = field("data: ").filter(|data| !data.is_empty()) {
                    return Some(Event {
                        id: field("id: "),
                        message: serde_json::from_str(&data).expect("JSON"),
                        text: data,
                    });
                }
                continue;
            }
            if self.is_over {
                return None;
            }
            self.read().await;
        }
    }

    async fn read(&mut self) {
        let read = self.stream.read_buf(&mut self.raw).await.unwrap_or(0);
        self.is_over = read == 0;
        while let Some(at) = self.raw.windows(2).position(|two| two == b"\r\n") {
            let size = String::from_utf8_lossy(&self.raw[..at]).into_owned();
            let size = usize::from_str_radix(size.trim(), 16).expect("a chunk");
            if self.raw.len() < at + 2 + size + 2 {
                break;
            }
            self.text
                .push_str(str::from_utf8(&self.raw[at + 2..at + 2 + size]).expect("text"));
            self.raw.drain(..at + 2 + size + 2);
            self.is_over |= size == 0;
        }
    }

    /// Everything up to the end.
    async fn all(mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }

    /// The next one that is about this.
    async fn until_method(&mut self, method: &str) -> Value {
        loop {
            let event = self.next().await.expect("it comes before the end");
            if event.message["method"] == method {
                return event.message;
            }
        }
    }
}
