//! The server of the same configuration, where one runs: commands ask it instead of loading the tools themselves.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::body::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Session;
use super::error::{Exit, Failed};
use super::pinned;
use steadyhand_runtime::access::login_code;
use steadyhand_server::serve::presence;

/// A server on this machine says at once that it is there.
const GREETING_MAX: Duration = Duration::from_secs(2);
/// No call takes longer than an hour; a request a little more.
const ANSWER_MAX: Duration = Duration::from_secs(3_700);
/// A link is opened where it was printed.
const LOGIN_LINK_LASTS: Duration = Duration::from_secs(600);
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A server that answers.
pub(super) struct Remote {
    address: SocketAddr,
    token: Option<SecretString>,
    /// The certificate it must have, where connections are TLS.
    certificate: Option<String>,
    /// What is left of `--timeout` bounds each request.
    patience: Option<Duration>,
    /// Who asks, in our own words.
    caller: &'static str,
}

/// Why there is none.
pub(super) enum Missing {
    /// None runs, or none is wanted.
    None,
    /// One does, and says nothing.
    Silent(SocketAddr),
}

/// A long answer that is being read.
pub(super) struct OpenAnswer {
    pub(super) body: Incoming,
    /// The connection ends with it.
    _sender: http1::SendRequest<Full<Bytes>>,
}

/// What it said.
pub(super) struct Reply {
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Remote {
    /// The server of the configuration that applies here, unless `--local` forbids it. Says which is used.
    pub(super) async fn find(session: &Session<'_>) -> Option<Remote> {
        let screen = session.screen;
        match Remote::look(session, "cli").await {
            Ok(remote) => {
                screen.note(&format!("Using the server at {}", remote.address));
                Some(remote)
            }
            Err(Missing::Silent(address)) => {
                screen.note(&format!(
                    "The server at {address} does not answer; running in this process."
                ));
                None
            }
            Err(Missing::None) => None,
        }
    }

    /// The same without a word, for what a command does on the side.
    pub(super) async fn look(
        session: &Session<'_>,
        caller: &'static str,
    ) -> Result<Remote, Missing> {
        if session.global.local {
            return Err(Missing::None);
        }
        let state = session.state();
        let file: Option<PathBuf> = session.found().map(|found| found.path);
        let announced = presence::announced(&state, file.as_deref()).ok_or(Missing::None)?;
        let mut remote = Remote {
            address: announced.address,
            token: None,
            certificate: announced.certificate.clone(),
            patience: Some(GREETING_MAX),
            caller,
        };
        match remote.send(Method::GET, "/health/live", None).await {
            Ok(live) if live.body["instance"] == announced.instance.as_str() => {}
            // Nobody is there, or somebody else: what it left behind is of no more use.
            Ok(_) | Err(Unsent::NoConnection(_)) => {
                presence::forget(&state, file.as_deref(), &announced);
                return Err(Missing::None);
            }
            Err(Unsent::NoAnswer(_)) => return Err(Missing::Silent(announced.address)),
        }
        remote.token = announced.token.map(|token| token.0);
        remote.patience = session.time_left();
        Ok(remote)
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A link that logs a browser in once.
    pub(super) fn login_link(&self) -> Option<String> {
        let code = login_code::make(self.token.as_ref()?, LOGIN_LINK_LASTS);
        let scheme = if self.certificate.is_some() {
            "https"
        } else {
            "http"
        };
        Some(format!("{scheme}://{}/login?code={code}", self.address))
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, Failed> {
        Ok(self.ask(Method::GET, path, None).await?.body)
    }

    pub(super) async fn post(&self, path: &str, body: Option<&Value>) -> Result<Reply, Failed> {
        self.ask(Method::POST, path, body).await
    }

    pub(super) async fn delete(&self, path: &str) -> Result<Value, Failed> {
        Ok(self.ask(Method::DELETE, path, None).await?.body)
    }

    /// Begins to read a long answer.
    pub(super) async fn open(&self, path: &str) -> Result<OpenAnswer, Failed> {
        let broken = |why: String| self.unreachable(&why);
        let stream = TcpStream::connect(self.address)
            .await
            .map_err(|error| broken(steadyhand_config::document::plain(&error)))?;
        let stream = pinned::wrapped(stream, self.certificate.as_deref())
            .await
            .map_err(|error| broken(error.to_string()))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| broken(error.to_string()))?;
        tokio::spawn(connection);
        let request = self
            .request(Method::GET, path, None)
            .map_err(|unsent| broken(unsent.to_string()))?;
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| broken(error.to_string()))?;
        if response.status().as_u16() >= 400 {
            self.ask(Method::GET, path, None).await?;
            return Err(broken(format!("it answered {}", response.status())));
        }
        Ok(OpenAnswer {
            body: response.into_body(),
            _sender: sender,
        })
    }

    /// Hands a long answer on as it comes.
    pub(super) async fn copy(
        &self,
        path: &str,
        to: &mut impl std::io::Write,
    ) -> Result<(), Failed> {
        let mut answer = self.open(path).await?;
        while let Some(frame) = answer.body.frame().await {
            let frame = frame.map_err(|error| self.unreachable(&error.to_string()))?;
            // A reader that has seen enough has closed the pipe: nothing is wrong.
            if let Some(piece) = frame.data_ref()
                && to.write_all(piece).is_err()
            {
                return Ok(());
            }
        }
        let _ = to.flush();
        Ok(())
    }

    pub(super) fn unreachable(&self, why: &str) -> Failed {
        Failed::new(
            Exit::NotReachable,
            "server_unreachable",
            format!("the server at {} did not answer: {why}", self.address),
        )
        .help("Is it still running? --local runs the command in this process")
    }

    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Reply, Failed> {
        match self.send(method, path, body).await {
            Ok(reply) if reply.is_refusal() => Err(reply.as_failure()),
            Ok(reply) => Ok(reply.reply),
            Err(Unsent::NoAnswer(_)) if self.patience.is_some() => {
                Err(Failed::timed_out(self.patience.unwrap_or_default()))
            }
            Err(unsent) => Err(self.unreachable(&unsent.to_string())),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Whole, Unsent> {
        let patience = self.patience.unwrap_or(ANSWER_MAX);
        let connecting = TcpStream::connect(self.address);
        let stream = match timeout(GREETING_MAX.min(patience), connecting).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                let why = steadyhand_config::document::plain(&error);
                return Err(Unsent::NoConnection(why));
            }
            Err(_) => return Err(Unsent::NoAnswer("it does not take connections".to_owned())),
        };
        let exchange = self.exchange(stream, method, path, body);
        match timeout(patience, exchange).await {
            Ok(done) => done,
            Err(_) => {
                let after = humantime::format_duration(patience);
                Err(Unsent::NoAnswer(format!("nothing came within {after}")))
            }
        }
    }

    async fn exchange(
        &self,
        stream: TcpStream,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Whole, Unsent> {
        let told = |error: &dyn std::fmt::Display| {
            Unsent::NoAnswer(steadyhand::plain_words::connection(&error.to_string()))
        };
        let broken = |error: hyper::Error| told(&error);
        let stream = pinned::wrapped(stream, self.certificate.as_deref())
            .await
            .map_err(|error| told(&error))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        // It ends with the sender, at the end of this exchange.
        let connection = tokio::spawn(connection);
        let request = self.request(method, path, body)?;
        let response = sender.send_request(request).await.map_err(broken)?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX)
            .collect()
            .await
            .map_err(|error| told(&error))?
            .to_bytes();
        drop(sender);
        connection.abort();
        let body = serde_json::from_slice(&body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
        Ok(Whole {
            status: parts.status.as_u16(),
            reply: Reply {
                headers: parts.headers,
                body,
            },
        })
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Request<Full<Bytes>>, Unsent> {
        let unusable = |why: String| Unsent::NoAnswer(format!("the request cannot be made: {why}"));
        let bytes = body.map(|body| body.to_string()).unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.address.to_string())
            .header(CONTENT_TYPE, "application/json")
            .header("steadyhand-caller", self.caller);
        if let Some(token) = &self.token {
            let mut shown = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()))
                .map_err(|error| unusable(error.to_string()))?;
            shown.set_sensitive(true);
            request = request.header(AUTHORIZATION, shown);
        }
        request
            .body(Full::from(bytes))
            .map_err(|error| unusable(error.to_string()))
    }
}

/// A name or id as a part of a path.
pub(super) fn in_path(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
}

enum Unsent {
    NoConnection(String),
    NoAnswer(String),
}

impl std::fmt::Display for Unsent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Unsent::NoConnection(why) | Unsent::NoAnswer(why)) = self;
        f.write_str(why)
    }
}

struct Whole {
    status: u16,
    reply: Reply,
}

impl std::ops::Deref for Whole {
    type Target = Reply;

    fn deref(&self) -> &Reply {
        &self.reply
    }
}

impl Whole {
    fn is_refusal(&self) -> bool {
        self.status >= 400
    }

    fn as_failure(&self) -> Failed {
        let error = &self.body["error"];
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        let exit = match self.status {
            400 | 413 => Exit::Usage,
            401 | 403 => Exit::SignIn,
            404 => Exit::ToolError,
            408 => Exit::TimedOut,
            409 | 429 | 503 => Exit::Refused,
            422 => Exit::Config,
            _ => Exit::Unexpected,
        };
        let message = match text("message") {
            message if message.is_empty() => format!("the server answered {}", self.status),
            message => message,
        };
        let failed = Failed::new(exit, "refused_by_server", message).help(text("help"));
        failed.detail("server_code", error["code"].clone())
    }
}
