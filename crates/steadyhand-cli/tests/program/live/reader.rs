//! A reader of server-sent events, as a browser would be one.

use std::net::SocketAddr;

use reqwest::Response;
use serde_json::Value;
use tokio::time::timeout;

use crate::support::{self, PATIENCE};

/// An open stream.
pub(crate) struct Reader {
    response: Response,
    buffer: String,
    /// How much of the buffer is done with.
    read: usize,
    /// Everything that came, comments included.
    pub(crate) bytes: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    pub(crate) id: Option<String>,
    pub(crate) kind: String,
    pub(crate) data: Value,
    /// As it came over the wire.
    pub(crate) text: String,
}

impl Reader {
    /// Opens a stream, from this id on.
    pub(crate) async fn open(address: SocketAddr, query: &str, last: Option<&str>) -> Reader {
        let response = Reader::ask(address, query, last).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Reader {
            response,
            buffer: String::new(),
            read: 0,
            bytes: 0,
        }
    }

    pub(crate) async fn ask(address: SocketAddr, query: &str, last: Option<&str>) -> Response {
        let mut request = support::client().get(format!("http://{address}/v1/events{query}"));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let sent = timeout(PATIENCE, request.send()).await;
        sent.expect("an answer in time").expect("an answer")
    }

    /// The next event; `None` when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Told> {
        loop {
            while let Some((text, _)) = self.buffer[self.read..].split_once("\n\n") {
                let text = text.to_owned();
                self.read += text.len() + 2;
                if !text.starts_with(':') {
                    return Some(parse(text));
                }
            }
            self.buffer.drain(..self.read);
            self.read = 0;
            let chunk = timeout(PATIENCE, self.response.chunk()).await;
            let chunk = chunk
                .expect("something in time")
                .expect("no broken stream")?;
            self.bytes += chunk.len();
            self.buffer
                .push_str(std::str::from_utf8(&chunk).expect("text"));
        }
    }

    /// The next event, which must be of this type.
    pub(crate) async fn expect(&mut self, kind: &str) -> Told {
        let told = self.next().await.expect("the stream goes on");
        assert_eq!(told.kind, kind, "{}", told.text);
        told
    }

    /// Events up to one that fits, which is the last of them.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Told) -> bool) -> Vec<Told> {
        let mut all = Vec::new();
        loop {
            let told = self.next().await.expect("the stream goes on");
            let last = fits(&told);
            all.push(told);
            if last {
                return all;
            }
        }
    }
}

impl Told {
    /// The number in its id.
    pub(crate) fn number(&self) -> u64 {
        let id = self.id.as_ref().expect("an id");
        let (_, number) = id.split_once('-').expect("run and number");
        number.parse().expect("a number")
    }
}

fn parse(text: String) -> Told {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim_start().to_owned())
    };
    let data = field("data:").expect("data");
    Told {
        id: field("id:"),
        kind: field("event:").expect("a type"),
        data: serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error}: {data}")),
        text,
    }
}
