//! The socket: requests checked, answers sent in small pieces.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt};
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use steadyhand_conversation::strict;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

use super::render::{self, Shown};
use super::{Line, Said};
use crate::settings::Dialect;

/// A provider on a loopback socket, as strict as the real one. Gone when it is dropped.
///
/// ```
/// use steadyhand_models::testing::{Line, StrictProvider};
/// use steadyhand_models::{Client, Dialect, ModelSettings};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let provider = StrictProvider::start(Dialect::Ollama, [Line::says("Hello")]).await;
/// let model = Client::new(provider.settings()).unwrap();
/// # });
/// ```
#[derive(Debug)]
pub struct StrictProvider {
    shared: Arc<Shared>,
    url: String,
    accepting: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    dialect: Dialect,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    lines: VecDeque<Line>,
    requests: Vec<Value>,
    refused: Vec<String>,
    next_id: usize,
    key: Option<String>,
}

const REQUEST_BYTES_MAX: usize = 64 * 1024 * 1024;

type Body = StreamBody<BoxStream<'static, Result<Frame<Bytes>, io::Error>>>;

impl StrictProvider {
    /// Starts it with a script: one line per request that is valid.
    ///
    /// # Panics
    ///
    /// Where this machine has no loopback.
    pub async fn start(dialect: Dialect, lines: impl IntoIterator<Item = Line>) -> StrictProvider {
        let shared = Arc::new(Shared {
            dialect,
            log: Mutex::new(Log {
                lines: lines.into_iter().collect(),
                ..Log::default()
            }),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a loopback socket");
        let address = listener.local_addr().expect("an address");
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        StrictProvider {
            shared,
            url: format!("http://{address}"),
            accepting,
        }
    }

    /// The base URL as its makers' SDKs take it.
    pub fn url(&self) -> String {
        match self.shared.dialect.public_url().ends_with(VERSION) {
            true => format!("{}{VERSION}", self.url),
            false => self.url.clone(),
        }
    }

    /// Settings that lead here.
    pub fn settings(&self) -> crate::ModelSettings {
        crate::ModelSettings::new(self.shared.dialect, "strict-1").url(self.url())
    }

    /// From here on only requests with this key are taken.
    pub fn wants_key(&self, key: impl Into<String>) {
        self.log().key = Some(key.into());
    }

    /// Adds a line to the script.
    pub fn then(&self, line: Line) {
        self.log().lines.push_back(line);
    }

    /// The valid requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.log().requests.clone()
    }

    /// What was refused, in the provider's words.
    pub fn refused(&self) -> Vec<String> {
        self.log().refused.clone()
    }

    /// How many lines have not been said.
    pub fn lines_left(&self) -> usize {
        self.log().lines.len()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.shared.log()
    }
}

impl Drop for StrictProvider {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock()
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let is_post = request.method() == hyper::Method::POST;
        let is_path = request.uri().path() == path(self.dialect);
        if !is_post || !is_path {
            return self.refuse(404, &format!("Not found: {}", request.uri().path()));
        }
        if let Some((status, why)) = self.head(&request) {
            return self.refuse(status, &why);
        }
        let body = Limited::new(request.into_body(), REQUEST_BYTES_MAX);
        let Ok(body) = body.collect().await else {
            return self.refuse(413, "Request exceeds the maximum size");
        };
        let Ok(body) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
            return self.refuse(400, "The request body is not valid JSON");
        };
        if let Err((status, refusal)) = strict::check(self.dialect.provider(), &body) {
            self.log().refused.push(refusal.to_string());
            return whole(status, &refusal);
        }
        // What streams unless told otherwise.
        let streams = strict::stand_in(self.dialect.provider()).is_streamed(&body, "");
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        let (line, first_id) = {
            let mut log = self.log();
            log.requests.push(body);
            let line = log.lines.pop_front();
            let first_id = log.next_id;
            log.next_id += 100;
            (line, first_id)
        };
        let Some(line) = line else {
            return self.refuse(400, "the script of this provider has no more lines");
        };
        self.show(&line, streams, &model, first_id)
    }

    /// What is wrong before the body is looked at.
    fn head(&self, request: &Request<Incoming>) -> Option<(u16, String)> {
        let header = |name: &str| request.headers().get(name)?.to_str().ok();
        let client = self.dialect.client();
        let mut wanted = client.headers().iter().map(|(name, _)| name);
        if let Some(name) = wanted.find(|name| header(name).is_none()) {
            return Some((400, format!("{name}: header is required")));
        }
        let is_json =
            header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
        if !is_json && !client.streams_lines() {
            return Some((415, "Unsupported content type".to_owned()));
        }
        let wanted = self.log().key.clone()?;
        let (name, before) = client.key_header("");
        let given = header(name).and_then(|value| value.strip_prefix(&before));
        // Providers quote what they do not take.
        (given != Some(wanted.as_str())).then(|| {
            let given = given.unwrap_or("(none)");
            (401, format!("Incorrect API key provided: {given}."))
        })
    }

    fn show(&self, line: &Line, streams: bool, model: &str, first_id: usize) -> Response<Body> {
        let dialect = self.dialect;
        let text = |said: &Said, cut: Option<&str>| {
            let shown = Shown {
                dialect,
                model,
                said,
                cut,
                first_id,
            };
            match streams {
                true => shown.stream(),
                false => shown.whole().to_string(),
            }
        };
        let is_lines = dialect.client().streams_lines();
        let kind = match (streams, is_lines) {
            (false, _) => "application/json",
            (true, true) => "application/x-ndjson",
            (true, false) => "text/event-stream; charset=utf-8",
        };
        let (body, end) = match line {
            Line::Says(said) => (text(said, None).into_bytes(), End::Closed),
            Line::CutOff(said, cut) => (text(said, Some(cut.as_str())).into_bytes(), End::Closed),
            Line::BreaksOff(said, after) => (start(text(said, None), *after), End::Gone),
            Line::Hangs(said, after) => (start(text(said, None), *after), End::Silent),
            Line::FailsMidway(said, why) if streams => {
                let mut body = text(said, None);
                // What ends an answer is left out: it failed before.
                let whole = body.len() * 2 / 3;
                let at = body[..body.floor_char_boundary(whole)].rfind('\n');
                let separator = if is_lines { "\n" } else { "\n\n" };
                let at = at.and_then(|at| body[..=at].rfind(separator));
                body.truncate(at.map_or(0, |at| at + separator.len()));
                body.push_str(&render::midway(dialect, why));
                (body.into_bytes(), End::Closed)
            }
            Line::FailsMidway(_, why) => return self.refuse(500, why),
            Line::Refuses {
                status,
                retry_after,
                message,
            } => {
                let mut answer = self.refuse(*status, message);
                let after = retry_after.as_deref().and_then(|after| after.parse().ok());
                if let Some(after) = after {
                    answer.headers_mut().insert(RETRY_AFTER, after);
                }
                return answer;
            }
            Line::Exactly { content_type, body } => {
                return response(200, content_type, pieces(body.clone(), End::Closed));
            }
        };
        response(200, kind, pieces(body, end))
    }

    fn refuse(&self, status: u16, why: &str) -> Response<Body> {
        whole(status, &render::refusal(self.dialect, status, why))
    }
}

/// How a body ends.
#[derive(Clone, Copy)]
enum End {
    Closed,
    Gone,
    Silent,
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            return;
        };
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let service = service_fn(|request| {
                let shared = Arc::clone(&shared);
                async move { Ok::<_, Infallible>(shared.answer(request).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new();
            // A client that goes away is no failure of this server.
            let _ = connection
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}

/// The end of base URLs that have the version in them.
const VERSION: &str = "/v1";

fn path(dialect: Dialect) -> String {
    let path = dialect.client().path();
    match dialect.public_url().ends_with(VERSION) {
        true => format!("{VERSION}/{path}"),
        false => format!("/{path}"),
    }
}

fn start(text: String, bytes: usize) -> Vec<u8> {
    let mut text = text.into_bytes();
    text.truncate(bytes);
    text
}

/// Small pieces of odd lengths, so that nothing can lean on where they end.
fn pieces(body: Vec<u8>, end: End) -> Body {
    let mut rest = Bytes::from(body);
    let mut pieces = Vec::new();
    let lengths = [1, 7, 64, 3, 250, 1021];
    for length in lengths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        pieces.push(Ok(Frame::data(rest.split_to((*length).min(rest.len())))));
    }
    let pieces = stream::iter(pieces).then(|piece| async {
        tokio::task::yield_now().await;
        piece
    });
    let last: BoxStream<'static, Result<Frame<Bytes>, io::Error>> = match end {
        End::Closed => stream::empty().boxed(),
        End::Gone => stream::iter([Err(io::Error::other("gone"))]).boxed(),
        End::Silent => stream::pending().boxed(),
    };
    StreamBody::new(pieces.chain(last).boxed())
}

fn whole(status: u16, body: &Value) -> Response<Body> {
    let body = pieces(body.to_string().into_bytes(), End::Closed);
    response(status, "application/json", body)
}

fn response(status: u16, kind: &str, body: Body) -> Response<Body> {
    let response = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, kind)
        .body(body);
    response.expect("these headers are legal")
}
