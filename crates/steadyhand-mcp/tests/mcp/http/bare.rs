//! HTTP/1.1 by hand: a request read, bytes written. What is to be broken must be in our hands.

use std::collections::HashMap;
use std::io;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// `POST`
    pub(crate) verb: String,
    pub(crate) path: String,
    /// Names in small letters.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The method of the message in it.
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// A connection to a client.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Wire {
        let buffer = Vec::new();
        Wire { stream, buffer }
    }

    /// The next request; none when the client has gone.
    pub(crate) async fn request(&mut self) -> io::Result<Option<Request>> {
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end;
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        };
        let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        self.buffer.drain(..end + 4);
        let mut lines = head.lines();
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (verb, path) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let headers: HashMap<String, String> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers
            .get("content-length")
            .and_then(|length| length.parse().ok());
        let length: usize = length.unwrap_or(0);
        while self.buffer.len() < length {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
        let body: Vec<u8> = self.buffer.drain(..length).collect();
        Ok(Some(Request {
            verb: verb.to_owned(),
            path: path.to_owned(),
            headers,
            body: serde_json::from_slice(&body).unwrap_or_default(),
        }))
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// A whole answer.
    pub(crate) async fn respond(
        &mut self,
        status: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<()> {
        let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.push_str(body);
        self.write(text.as_bytes()).await
    }

    pub(crate) async fn json(&mut self, headers: &[(&str, &str)], body: &Value) -> io::Result<()> {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(headers);
        self.respond("200 OK", &all, &body.to_string()).await
    }

    /// The beginning of a stream of events.
    pub(crate) async fn begin_events(&mut self) -> io::Result<()> {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        self.write(head.as_bytes()).await
    }

    /// Something of a stream.
    pub(crate) async fn chunk(&mut self, text: &str) -> io::Result<()> {
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        self.write(chunk.as_bytes()).await
    }

    /// An event that is a message.
    pub(crate) async fn event(&mut self, message: &Value) -> io::Result<()> {
        self.chunk(&format!("event: message\ndata: {message}\n\n"))
            .await
    }

    /// The end of a stream, as it should be.
    pub(crate) async fn end_events(&mut self) -> io::Result<()> {
        self.write(b"0\r\n\r\n").await
    }

    /// Breaks the connection as a process does that is killed.
    pub(crate) fn reset(&self) -> io::Error {
        let _ = self.stream.set_zero_linger();
        io::ErrorKind::ConnectionReset.into()
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|part| part == what)
}
