//! An MCP server over HTTP, well-behaved except for one fault, which its tool `trouble` shows.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand_mcp::ServerSettings;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::bare::{Request, Wire};
use super::faults::Fault;

/// Which protocol it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// `initialize`, a session.
    Legacy,
    /// `server/discover`, no session.
    Modern,
    /// The two endpoints of 2024.
    Sse,
}

/// A server that runs, or could.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    inner: Arc<Inner>,
}

struct Inner {
    speaks: Mutex<Speaks>,
    fault: Fault,
    /// How often the fault is still shown.
    faults: AtomicUsize,
    /// Answers as streams of events instead of plain JSON.
    streams: AtomicBool,
    heard: Mutex<Vec<Request>>,
    sessions: Mutex<Vec<String>>,
    session_number: AtomicUsize,
    notes: Mutex<Vec<String>>,
    running: Mutex<Option<JoinSet<()>>>,
    /// What it says without being asked.
    news: broadcast::Sender<Value>,
}

impl Host {
    /// One that runs, and shows its fault once.
    pub(crate) async fn of(speaks: Speaks, fault: Fault) -> Host {
        let host = Host {
            address: free_address().await,
            inner: Arc::new(Inner {
                speaks: Mutex::new(speaks),
                fault,
                faults: AtomicUsize::new(1),
                streams: AtomicBool::new(false),
                heard: Mutex::default(),
                sessions: Mutex::default(),
                session_number: AtomicUsize::new(0),
                notes: Mutex::default(),
                running: Mutex::default(),
                news: broadcast::Sender::new(64),
            }),
        };
        host.start();
        host
    }

    pub(crate) fn start(&self) {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_reuseaddr(true).expect("a socket's option");
        socket.bind(self.address).expect("the address is ours");
        let listener = socket.listen(1024).expect("it can listen");
        let mut tasks = JoinSet::new();
        let host = self.clone();
        tasks.spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                clients.spawn(host.clone().serve(stream));
                while clients.try_join_next().is_some() {}
            }
        });
        *lock(&self.inner.running) = Some(tasks);
    }

    /// Ends like a process that is killed: its sessions forgotten, its connections reset, its port closed.
    pub(crate) fn kill(&self) {
        lock(&self.inner.running).take();
        lock(&self.inner.sessions).clear();
    }

    /// From now on every session is unknown.
    pub(crate) fn forget_sessions(&self) {
        lock(&self.inner.sessions).clear();
    }

    /// Not once: every time.
    #[allow(dead_code, reason = "the hostile world of steadyhand-server wants it")]
    pub(crate) fn shows_it_always(&self) {
        self.inner.faults.store(usize::MAX, Ordering::Release);
    }

    pub(crate) fn answers_in_streams(&self) {
        self.inner.streams.store(true, Ordering::Release);
    }

    pub(crate) fn speaks_now(&self, speaks: Speaks) {
        *lock(&self.inner.speaks) = speaks;
    }

    /// Says something to everyone who listens.
    pub(crate) fn tell(&self, message: Value) {
        let _ = self.inner.news.send(message);
    }

    pub(crate) fn url(&self) -> String {
        let path = match *lock(&self.inner.speaks) {
            Speaks::Sse => "sse",
            Speaks::Legacy | Speaks::Modern => "mcp",
        };
        format!("http://{}/{path}", self.address)
    }

    /// Settings for it, its tools under their own names, no long waits.
    pub(crate) fn settings(&self) -> ServerSettings {
        let mut settings = ServerSettings::http("remote", self.url());
        settings.prefix = false;
        settings.start.waits = [0, 20, 20].map(Duration::from_millis).to_vec();
        settings.start.retry_first = Duration::from_millis(200);
        settings
    }

    /// What has been asked, but for the streams that stay open.
    pub(crate) fn heard(&self) -> Vec<Request> {
        lock(&self.inner.heard).clone()
    }

    /// The requests of one method.
    pub(crate) fn heard_of(&self, method: &str) -> Vec<Request> {
        let mut heard = self.heard();
        heard.retain(|request| request.method() == method);
        heard
    }

    /// What `note` was told, in order.
    pub(crate) fn notes(&self) -> Vec<String> {
        lock(&self.inner.notes).clone()
    }

    pub(crate) fn fault_is_due(&self) -> bool {
        let due = |left: usize| left.checked_sub(1);
        let faults = &self.inner.faults;
        faults
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, due)
            .is_ok()
    }

    async fn serve(self, stream: TcpStream) {
        let mut wire = Wire::new(stream);
        // Killed: as a process's are, its connections are reset.
        let _ = wire.stream.set_zero_linger();
        while let Ok(Some(request)) = wire.request().await {
            lock(&self.inner.heard).push(request.clone());
            if self.answer(&mut wire, &request).await.is_err() {
                return;
            }
        }
    }

    async fn answer(&self, wire: &mut Wire, request: &Request) -> io::Result<()> {
        let speaks = *lock(&self.inner.speaks);
        match (request.verb.as_str(), speaks) {
            ("GET", Speaks::Sse) if request.path == "/sse" => self.sse_stream(wire).await,
            ("POST", Speaks::Sse) if request.path.starts_with("/messages") => {
                wire.respond("202 Accepted", &[], "Accepted").await?;
                self.answer_on_stream(request).await;
                Ok(())
            }
            (_, Speaks::Sse) => wire.respond("404 Not Found", &[], "no such page").await,
            ("GET", Speaks::Legacy) => self.get(wire, request).await,
            ("DELETE", Speaks::Legacy) => {
                let id = request.header("mcp-session-id").unwrap_or_default();
                lock(&self.inner.sessions).retain(|session| session != id);
                wire.respond("200 OK", &[], "").await
            }
            ("POST", Speaks::Legacy) => self.legacy(wire, request).await,
            ("POST", Speaks::Modern) => self.modern(wire, request).await,
            _ => wire.respond("405 Method Not Allowed", &[], "").await,
        }
    }

    async fn legacy(&self, wire: &mut Wire, request: &Request) -> io::Result<()> {
        let id = &request.body["id"];
        if request.method() == "initialize" {
            let number = self.inner.session_number.fetch_add(1, Ordering::Relaxed);
            let session = format!("session-{number}");
            lock(&self.inner.sessions).push(session.clone());
            let result = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": true}, "resources": {"subscribe": true}, "logging": {}},
                "serverInfo": {"name": "hostile", "version": "1"},
            });
            let headers = [("mcp-session-id", session.as_str())];
            return wire.json(&headers, &answer_to(id, result)).await;
        }
        let session = request.header("mcp-session-id").map(str::to_owned);
        let Some(session) = session else {
            return refuse(
                wire,
                id,
                "400 Bad Request",
                -32000,
                "Bad Request: Server not initialized",
            )
            .await;
        };
        if !lock(&self.inner.sessions).contains(&session) {
            return refuse(wire, id, "404 Not Found", -32001, "Session not found").await;
        }
        self.common(wire, request, json!({})).await
    }

    async fn modern(&self, wire: &mut Wire, request: &Request) -> io::Result<()> {
        let (id, params) = (&request.body["id"], &request.body["params"]);
        let version = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
        if request.method() == "initialize" {
            return refuse(
                wire,
                id,
                "404 Not Found",
                -32601,
                "Method not found: initialize",
            )
            .await;
        }
        let matches = request.header("mcp-method") == Some(request.method())
            && request.header("mcp-protocol-version") == version.as_str();
        if !matches {
            return refuse(
                wire,
                id,
                "400 Bad Request",
                -32020,
                "headers do not match the body",
            )
            .await;
        }
        let more = json!({
            "resultType": "complete",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "hostile", "version": "1"}},
        });
        match request.method() {
            "server/discover" => {
                let mut result = json!({
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {"listChanged": true}, "resources": {"subscribe": true}},
                    "ttlMs": 0, "cacheScope": "private",
                });
                merge(&mut result, &more);
                wire.json(&[], &answer_to(id, result)).await
            }
            "subscriptions/listen" => self.listen(wire, request).await,
            _ => self.common(wire, request, more).await,
        }
    }

    /// What both eras do alike.
    async fn common(&self, wire: &mut Wire, request: &Request, more: Value) -> io::Result<()> {
        let (id, params) = (&request.body["id"], &request.body["params"]);
        if id.is_null() {
            return wire.respond("202 Accepted", &[], "").await;
        }
        let is_trouble = request.method() == "tools/call" && params["name"] == "trouble";
        if is_trouble && self.fault_is_due() {
            return self.inner.fault.show(self, wire, request).await;
        }
        let Some(mut result) = self.result(request).await else {
            return refuse(wire, id, "200 OK", -32601, "Method not found").await;
        };
        merge(&mut result, &more);
        let answer = answer_to(id, result);
        match self.inner.streams.load(Ordering::Acquire) {
            false => wire.json(&[], &answer).await,
            true => {
                wire.begin_events().await?;
                wire.event(&answer).await?;
                wire.end_events().await
            }
        }
    }

    async fn result(&self, request: &Request) -> Option<Value> {
        let params = &request.body["params"];
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        Some(match request.method() {
            "tools/list" => tools(),
            "ping" | "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" => {
                json!({})
            }
            "resources/list" => json!({"resources": []}),
            "resources/templates/list" => json!({"resourceTemplates": []}),
            "tools/call" => {
                let arguments = &params["arguments"];
                let message = arguments["message"].as_str().unwrap_or_default();
                sleep(Duration::from_millis(
                    arguments["delay_ms"].as_u64().unwrap_or(0),
                ))
                .await;
                match params["name"].as_str()? {
                    "echo" => text(message),
                    "note" => {
                        lock(&self.inner.notes).push(message.to_owned());
                        text(message)
                    }
                    "trouble" => text("no trouble"),
                    "mirror" => text(&params.to_string()),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    /// The stream on which a server of the older era says what it wants.
    async fn get(&self, wire: &mut Wire, request: &Request) -> io::Result<()> {
        let session = request.header("mcp-session-id").unwrap_or_default();
        if !lock(&self.inner.sessions)
            .iter()
            .any(|known| known == session)
        {
            return wire.respond("404 Not Found", &[], "").await;
        }
        if let Some(last) = request.header("last-event-id") {
            return self.inner.fault.resume(wire, last).await;
        }
        self.say_news(wire, &json!(null)).await
    }

    async fn listen(&self, wire: &mut Wire, request: &Request) -> io::Result<()> {
        self.say_news(wire, &request.body["id"]).await
    }

    async fn say_news(&self, wire: &mut Wire, subscription: &Value) -> io::Result<()> {
        let mut news = self.inner.news.subscribe();
        wire.begin_events().await?;
        wire.chunk(": here\n\n").await?;
        if !subscription.is_null() {
            let tag = json!({"io.modelcontextprotocol/subscriptionId": subscription});
            let method = "notifications/subscriptions/acknowledged";
            let params = json!({"notifications": {}, "_meta": tag});
            let known = json!({"jsonrpc": "2.0", "method": method, "params": params});
            wire.event(&known).await?;
        }
        while let Ok(mut message) = news.recv().await {
            if !subscription.is_null() {
                message["params"]["_meta"] =
                    json!({"io.modelcontextprotocol/subscriptionId": subscription});
            }
            wire.event(&message).await?;
        }
        Ok(())
    }

    async fn sse_stream(&self, wire: &mut Wire) -> io::Result<()> {
        let mut news = self.inner.news.subscribe();
        wire.begin_events().await?;
        wire.chunk("event: endpoint\ndata: /messages?session=1\n\n")
            .await?;
        while let Ok(message) = news.recv().await {
            if message == json!("cut") {
                return wire.end_events().await;
            }
            wire.event(&message).await?;
        }
        Ok(())
    }

    async fn answer_on_stream(&self, request: &Request) {
        let id = &request.body["id"];
        if id.is_null() {
            return;
        }
        let result = match request.method() {
            "initialize" => Some(json!({
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "hostile", "version": "1"},
            })),
            _ => self.result(request).await,
        };
        match result {
            Some(result) => self.tell(answer_to(id, result)),
            None => self.tell(
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}),
            ),
        }
    }
}

fn tools() -> Value {
    let tool = |name: &str, is_safe: bool| {
        json!({
            "name": name,
            "description": format!("{name}, for tests"),
            "inputSchema": {"type": "object", "properties": {
                "message": {"type": "string", "x-mcp-header": "Message"},
                "delay_ms": {"type": "integer"},
            }},
            "annotations": {"readOnlyHint": is_safe},
        })
    };
    let tools = [
        ("echo", true),
        ("note", false),
        ("trouble", false),
        ("mirror", false),
    ];
    json!({"tools": tools.map(|(name, is_safe)| tool(name, is_safe))})
}

pub(crate) fn answer_to(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub(crate) fn text_to(id: &Value, text: &str) -> Value {
    answer_to(
        id,
        json!({"resultType": "complete", "content": [{"type": "text", "text": text}]}),
    )
}

pub(crate) async fn refuse(
    wire: &mut Wire,
    id: &Value,
    status: &str,
    code: i64,
    message: &str,
) -> io::Result<()> {
    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
    let headers = [("content-type", "application/json")];
    wire.respond(status, &headers, &error.to_string()).await
}

fn merge(result: &mut Value, more: &Value) {
    if let (Value::Object(result), Value::Object(more)) = (result, more) {
        for (name, value) in more {
            result.insert(name.clone(), value.clone());
        }
    }
}

async fn free_address() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("loopback");
    listener.local_addr().expect("it is bound")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
