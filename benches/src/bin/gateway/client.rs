//! A client of one connection: initialises once, then sends one request after the other and checks every answer.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::System;

const VERSION: &str = "2025-06-18";
const MODERN: &str = "2026-07-28";

pub struct Client {
    system: System,
    sender: SendRequest<Full<Bytes>>,
    session: Option<String>,
    next_id: u64,
}

/// Why a request got no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// The connection broke, or there was none.
    Connection,
    /// An answer, with this status, that has no result.
    Status(u16),
    /// A JSON-RPC error, or a result that says `isError`.
    Told,
    /// Nothing in time.
    Silence,
}

impl Client {
    pub async fn connect(system: &System) -> Result<Client, Failed> {
        let mut client = Client {
            sender: open(&system.address).await?,
            system: system.clone(),
            session: None,
            next_id: 1,
        };
        client.initialize().await?;
        Ok(client)
    }

    /// A new connection, the session as it was.
    pub async fn reconnect(&mut self) -> Result<(), Failed> {
        self.sender = open(&self.system.address).await?;
        Ok(())
    }

    pub async fn initialize(&mut self) -> Result<(), Failed> {
        if self.system.modern {
            return Ok(());
        }
        self.session = None;
        let params = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        self.request("initialize", params).await?;
        let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.send(told.to_string(), "notifications/initialized", None).await?;
        Ok(())
    }

    pub async fn echo(&mut self, text: &str) -> Result<(), Failed> {
        let name = self.system.echo.clone();
        let result = self.request("tools/call", json!({"name": name, "arguments": {"message": text}})).await?;
        match result.contains(text) {
            true => Ok(()),
            false => Err(Failed::Told),
        }
    }

    pub async fn sleep(&mut self, ms: u64) -> Result<(), Failed> {
        let name = self.system.echo.replace("echo", "sleep");
        let result = self.request("tools/call", json!({"name": name, "arguments": {"ms": ms}})).await?;
        match result.contains("\"isError\":true") || result.contains("\"isError\": true") {
            true => Err(Failed::Told),
            false => Ok(()),
        }
    }

    pub async fn list(&mut self) -> Result<usize, Failed> {
        let (mut count, mut params) = (0, json!({}));
        loop {
            let text = self.request("tools/list", params).await?;
            let message: Value = serde_json::from_str(&text).map_err(|_| Failed::Told)?;
            count += message["result"]["tools"].as_array().map_or(0, Vec::len);
            match message["result"]["nextCursor"].as_str() {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok(count),
            }
        }
    }

    /// The message that answers a request, as text.
    async fn request(&mut self, method: &str, mut params: Value) -> Result<String, Failed> {
        if self.system.modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            });
        }
        let id = self.next_id;
        self.next_id += 1;
        let name = params["name"].as_str().map(str::to_owned);
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let text = self.send(body.to_string(), method, name.as_deref()).await?;
        match text.contains("\"result\"") {
            true => Ok(text),
            false => Err(Failed::Told),
        }
    }

    async fn send(&mut self, body: String, method: &str, name: Option<&str>) -> Result<String, Failed> {
        let mut request = hyper::Request::post(&self.system.path)
            .header("host", &self.system.address)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session).header("mcp-protocol-version", VERSION);
        }
        if self.system.modern {
            request = request.header("mcp-protocol-version", MODERN).header("mcp-method", method);
            if let Some(name) = name {
                request = request.header("mcp-name", name);
            }
        }
        let request = request.body(Full::new(Bytes::from(body))).expect("a request");
        let exchange = async {
            let response = self.sender.send_request(request).await.map_err(|_| Failed::Connection)?;
            let (parts, body) = response.into_parts();
            let body = body.collect().await.map_err(|_| Failed::Connection)?.to_bytes();
            if !parts.status.is_success() {
                return Err(Failed::Status(parts.status.as_u16()));
            }
            Ok((parts, body))
        };
        let (parts, body) = timeout(Duration::from_secs(8), exchange).await.map_err(|_| Failed::Silence)??;
        if let Some(id) = parts.headers.get("mcp-session-id") {
            self.session = id.to_str().ok().map(str::to_owned);
        }
        let text = String::from_utf8_lossy(&body);
        let is_stream = parts.headers.get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        Ok(match is_stream {
            // The last message of the stream is the answer.
            true => text.lines().filter_map(|line| line.strip_prefix("data:")).rfind(|data| data.contains("\"id\"")).unwrap_or_default().trim().to_owned(),
            false => text.into_owned(),
        })
    }
}

async fn open(address: &str) -> Result<SendRequest<Full<Bytes>>, Failed> {
    let stream = TcpStream::connect(address).await.map_err(|_| Failed::Connection)?;
    let _ = stream.set_nodelay(true);
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|_| Failed::Connection)?;
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}
