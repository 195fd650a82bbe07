//! `steadyhand mcp login`: a person logs in at a server over HTTP that asks who we are, or a token is fetched where
//! nobody has to; `logout` forgets it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use steadyhand_mcp::oauth::{Browser, IsAnswer, LoggedIn, challenge_of};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::super::error::{Exit, Failed};
use super::super::{Interrupts, Session, screen};
use super::no_such_server;
use steadyhand_config::Resolver;
use steadyhand_config::document::plain;
use steadyhand_runtime::logins;
use steadyhand_runtime::net::Client;
use steadyhand_runtime::source::mcp::LoginSettings;

/// How long a person may take.
const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// How long a browser may take to say what it wants.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
/// Connections at the same time; the oldest makes room.
const CONNECTIONS_MAX: usize = 64;
const REQUEST_BYTES_MAX: usize = 32 * 1024;
/// When the machine has no more files to open, trying at once again does not help.
const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(50);
const BACK: &str = "/callback";
const NOT_IT: &str = "<!doctype html><title>Steadyhand</title><p>This is not the answer to the login that Steadyhand waits for. It goes on waiting.";
const DONE: &str = "<!doctype html><title>Steadyhand</title><p>That was it: this page can be closed. Steadyhand goes on in the terminal.";

pub(super) async fn login(
    session: &Session<'_>,
    name: &str,
    scopes: &[String],
) -> Result<(), Failed> {
    let settings = settings_of(session, name)?;
    let (account, _) = logins::account(name, &settings, &session.state(), Client::new());
    let mut interrupts = Interrupts::listen();
    // Where to log in, and for what, is what the server says to somebody who shows nothing.
    let challenge = tokio::select! {
        challenge = challenge_of(settings.server(name)) => challenge,
        code = interrupts.next() => return Err(Failed::interrupted(code)),
    };
    if account.is_unattended() {
        let logged_in = tokio::select! {
            logged_in = account.fetch(challenge.as_deref()) => logged_in,
            code = interrupts.next() => return Err(Failed::interrupted(code)),
        };
        let logged_in = logged_in.map_err(|why| {
            Failed::new(Exit::SignIn, "login_failed", format!("{name}: {why}"))
                .detail("server", name.into())
                .help(format!(
                    "Check grant, client_id, client_secret and scopes in [mcp.{name}.oauth]"
                ))
        })?;
        tell(session, name, &logged_in);
        return Ok(());
    }
    let port = settings.oauth.redirect_port.unwrap_or(0);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
    let listener = listener.map_err(|error| {
        let message = format!("port {port} cannot be listened at: {}", plain(&error));
        Failed::new(Exit::NotReachable, "address_unavailable", message)
            .help("Set another one: redirect_port of [mcp.NAME.oauth]")
    })?;
    let address = listener.local_addr();
    let address = address.map_err(|error| Failed::unexpected(plain(&error)))?;
    let browser = Terminal {
        name,
        listener,
        address,
    };
    let logged_in = tokio::select! {
        logged_in = account.log_in(&browser, challenge.as_deref(), scopes) => logged_in,
        code = interrupts.next() => return Err(Failed::interrupted(code)),
    };
    let logged_in = logged_in.map_err(|why| {
        Failed::new(Exit::SignIn, "login_failed", format!("{name}: {why}"))
            .detail("server", name.into())
            .help(format!(
                "steadyhand mcp login {name} tries again; nothing was kept"
            ))
    })?;
    tell(session, name, &logged_in);
    Ok(())
}

pub(super) async fn logout(session: &Session<'_>, name: &str) -> Result<(), Failed> {
    let settings = settings_of(session, name)?;
    let (account, _) = logins::account(name, &settings, &session.state(), Client::new());
    let was_there = account.logged_in().unwrap_or_default().is_some();
    account.log_out().await.map_err(Failed::unexpected)?;
    session.screen.note(&match was_there {
        true => format!("The tokens of {name} are forgotten here. The server may still know them."),
        false => format!("There was no login of {name}."),
    });
    Ok(())
}

fn tell(session: &Session<'_>, name: &str, logged_in: &LoggedIn) {
    if session.screen.json {
        session.screen.json(&json!({
            "server": name,
            "issuer": logged_in.issuer,
            "scopes": logged_in.scopes,
            "expires": logged_in.until_seconds,
            "renews": logged_in.renews,
        }));
        return;
    }
    let issuer = logged_in.issuer.as_deref().unwrap_or("its server");
    let scopes = match logged_in.scopes.as_slice() {
        [] => String::new(),
        scopes => format!(" for {}", scopes.join(" ")),
    };
    let renewal = match logged_in.renews {
        true => "It is renewed by itself.",
        false => "It cannot be renewed: log in again when it is over.",
    };
    let note = format!("Logged in to {name} at {issuer}{scopes}. {renewal}");
    session.screen.note(&note);
}

/// What of a server's settings is needed.
fn settings_of(session: &Session<'_>, name: &str) -> Result<LoginSettings, Failed> {
    let configuration = session.configuration()?;
    let mut tables = configuration.tools.iter();
    let Some(table) = tables.find(|table| table.is_server() && table.name == name) else {
        return Err(no_such_server(&configuration, name));
    };
    let mut value = json!({});
    for key in LoginSettings::KEYS {
        if let Some(said) = table.own.get(key) {
            value[key] = said.clone();
        }
    }
    if !table.is_imported {
        let folder = configuration.folder.clone();
        let resolver = Resolver::new(session.surroundings.clone(), folder);
        let resolution = resolver.resolve_tree(&mut value);
        if let Some((pointer, missing)) = resolution.unresolved.into_iter().next() {
            let message = format!("{}{pointer}: {}", table.pointer(), missing.reason);
            return Err(Failed::new(Exit::SignIn, "secret_missing", message).help(missing.help));
        }
    }
    let not_http = || {
        let message = format!("{name} is a program on this machine: there is nothing to log in to");
        Failed::new(Exit::Usage, "not_over_http", message).detail("server", name.into())
    };
    if value.get("url").is_none_or(Value::is_null) {
        return Err(not_http());
    }
    let place = table.place.clone().unwrap_or_default();
    serde_json::from_value(value).map_err(|error| {
        Failed::new(
            Exit::Config,
            "settings",
            format!("{place}: {}", steadyhand::plain_words::json(&error)),
        )
        .help("steadyhand config check says where")
    })
}

/// A person with a browser, and us where it comes back to.
struct Terminal<'a> {
    name: &'a str,
    listener: TcpListener,
    address: SocketAddr,
}

impl Browser for Terminal<'_> {
    fn redirect_uri(&self) -> String {
        format!("http://{}{BACK}", self.address)
    }

    fn visit<'a>(
        &'a self,
        address: &'a str,
        is_answer: IsAnswer<'a>,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let wait = humantime::format_duration(PATIENCE);
            // Whatever is to be quiet: without the address nobody can log in.
            screen::line(&format!(
                "Log in to {} with a browser on this machine:\n\n  {address}\n\nWaiting for {wait}. Ctrl-C stops.",
                self.name
            ));
            let back = timeout(PATIENCE, self.comes_back(is_answer)).await;
            back.map_err(|_| format!("nobody logged in within {wait}"))
        })
    }
}

impl Terminal<'_> {
    /// The address that the browser was sent back to. Whoever is on this machine can send something else, or nothing for
    /// as long as they like: neither keeps the answer from coming.
    async fn comes_back(&self, is_answer: IsAnswer<'_>) -> String {
        let mut connections = FuturesUnordered::new();
        // The oldest first. Dropping one of these ends its connection.
        let mut open: VecDeque<oneshot::Sender<Infallible>> = VecDeque::new();
        loop {
            open.retain(|one| !one.is_closed());
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        // A browser opens connections that it does not use.
                        if open.len() == CONNECTIONS_MAX {
                            open.pop_front();
                        }
                        let (ends, ended) = oneshot::channel();
                        open.push_back(ends);
                        connections.push(self.hear(stream, ended, is_answer));
                    }
                    Err(_) => tokio::time::sleep(AFTER_FAILED_ACCEPT).await,
                },
                Some(heard) = connections.next() => if let Some(back) = heard {
                    return back;
                },
            }
        }
    }

    /// What comes over one connection, if it is the answer.
    async fn hear(
        &self,
        stream: TcpStream,
        ended: oneshot::Receiver<Infallible>,
        is_answer: IsAnswer<'_>,
    ) -> Option<String> {
        let heard = Mutex::new(None);
        let service = service_fn(|request: Request<Incoming>| {
            let response = self.answered(&request, is_answer, &heard);
            async move { Ok::<_, Infallible>(response) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .keep_alive(false)
            .max_buf_size(REQUEST_BYTES_MAX);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            _ = timeout(REQUEST_PATIENCE, connection) => {}
            _ = ended => {}
        }
        heard.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(
        &self,
        request: &Request<Incoming>,
        is_answer: IsAnswer<'_>,
        heard: &Mutex<Option<String>>,
    ) -> Response<Full<Bytes>> {
        let is_back = request.method() == Method::GET && request.uri().path() == BACK;
        if !is_back {
            return page(StatusCode::NOT_FOUND, "there is nothing here");
        }
        let back = format!("http://{}{}", self.address, request.uri());
        if !is_answer(&back) {
            return page(StatusCode::BAD_REQUEST, NOT_IT);
        }
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        *heard = Some(back);
        page(StatusCode::OK, DONE)
    }
}

/// A page that nothing can be made of but text.
fn page(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    let headers = [
        ("content-type", "text/html; charset=utf-8"),
        (
            "content-security-policy",
            "default-src 'none'; frame-ancestors 'none'",
        ),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
    ];
    for (name, value) in headers {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}
