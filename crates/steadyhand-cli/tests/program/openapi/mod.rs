//! `kind = "openapi"`: documents become tools, calls become requests.

mod arguments;
mod calls;
mod documents;
mod downloads;
mod encoding;
mod real;
mod schemas;
mod settings;
mod uploads;

use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;

use serde_json::Value;
use steadyhand::source::internal::InternalHandlers;
use steadyhand::{Call, Outcome, ToolExecutor, ToolManager, ToolSource};
use steadyhand_config::progress::Progress;
use steadyhand_runtime::net::Client;
use steadyhand_runtime::source::Context;
use steadyhand_runtime::source::openapi::{
    Choice, Document, OpenapiSettings, OpenapiSource, Prepared, Reading, read,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A context whose files are all in one folder.
fn context(folder: &Path) -> Context {
    Context {
        folder: folder.to_owned(),
        state: folder.join("state"),
        internal: InternalHandlers::new(),
        http: Client::new(),
        trust: Default::default(),
        progress: Progress::silent(),
        home: Default::default(),
        place: None,
        written: Default::default(),
        secrets: Vec::new(),
        relays: false,
    }
}

/// The source that these settings describe.
fn source(settings: Value, folder: &Path) -> OpenapiSource {
    let settings: OpenapiSettings = serde_json::from_value(settings).expect("good settings");
    settings.open("shop", &context(folder)).expect("no faults")
}

/// An executor over all tools of a source, none of which may be refused.
async fn executor(source: &OpenapiSource) -> ToolExecutor {
    let manager = ToolManager::new();
    let refused = manager.load(source).await.expect("the document loads");
    assert!(refused.is_empty(), "{refused:?}");
    ToolExecutor::new(manager)
}

/// What becomes of a document, with `base` set and everything else as it is by default.
fn reading(document: Value) -> Reading {
    reading_with(document, Choice::default())
}

fn reading_with(document: Value, choice: Choice) -> Reading {
    let document = Document::read(&document.to_string(), None).expect("a document");
    let base = choice
        .base
        .clone()
        .or(Some("https://shop.example/v1".parse().unwrap()));
    read(&document, &Choice { base, ..choice }, &mut |_, _| {})
}

/// The one tool of a document with one operation; it must be one that the manager takes.
fn only_tool(document: Value) -> Prepared {
    let mut reading = reading(document);
    assert_eq!(reading.skipped, []);
    assert_eq!(reading.tools.len(), 1);
    reading.tools.remove(0)
}

fn tool_names(reading: &Reading) -> Vec<&str> {
    let names = reading
        .tools
        .iter()
        .map(|tool| tool.operation.tool_name.as_str());
    names.collect()
}

/// Runs one call, once.
async fn call(executor: &ToolExecutor, tool: &str, args: Value) -> Outcome {
    executor.execute(Call::new(tool, args).no_retry()).await
}

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq)]
struct Arrived {
    /// `POST /pets?x=1`.
    line: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    body: String,
    bytes: Vec<u8>,
}

impl Arrived {
    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A server on loopback that answers everything with what `answer` says and remembers what arrived.
struct Server {
    url: String,
    arrived: Arc<Mutex<Vec<Arrived>>>,
}

impl Server {
    async fn start(answer: impl Fn(&Arrived) -> String + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let arrived: Arc<Mutex<Vec<Arrived>>> = Arc::default();
        let seen = Arc::clone(&arrived);
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                tokio::spawn(async move {
                    let _ = serve(stream, &seen, &*answer).await;
                });
            }
        });
        Server { url, arrived }
    }

    /// Answers every request with this JSON.
    async fn answering(body: Value) -> Server {
        Server::start(move |_| json_answer(&body)).await
    }

    fn all(&self) -> Vec<Arrived> {
        self.arrived.lock().unwrap().clone()
    }

    fn last(&self) -> Arrived {
        self.all().pop().expect("a request arrived")
    }
}

fn json_answer(body: &Value) -> String {
    let body = body.to_string();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<Arrived>>,
    answer: &(dyn Fn(&Arrived) -> String + Send + Sync),
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        let head_end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
        };
        let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
        let mut lines = head.lines();
        let line = lines
            .next()
            .unwrap_or_default()
            .trim_end_matches(" HTTP/1.1")
            .to_owned();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.map_or(0, |(_, value)| value.parse().expect("a length"));
        while bytes.len() < head_end + length {
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
        }
        let whole = bytes[head_end..head_end + length].to_vec();
        let body = String::from_utf8_lossy(&whole).into_owned();
        bytes.drain(..head_end + length);
        let arrived = Arrived {
            line,
            headers,
            body,
            bytes: whole,
        };
        let text = answer(&arrived);
        seen.lock().unwrap().push(arrived);
        stream.write_all(text.as_bytes()).await?;
    }
}

/// The tools of a source by name, for tests that want no executor.
async fn names(source: &OpenapiSource) -> Vec<String> {
    let tools = source.tools().await.expect("the document loads");
    tools.iter().map(|tool| tool.name().to_owned()).collect()
}
