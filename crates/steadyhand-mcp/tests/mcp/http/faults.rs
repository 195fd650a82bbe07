//! What the hostile server does when its tool `trouble` is called.

use std::fmt;
use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::bare::{Request, Wire};
use super::host::{Host, refuse, text_to};

/// What goes wrong when `trouble` is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    Reset,
    ResetInTheAnswer,
    Stall,
    StallInTheAnswer,
    Drip,
    Html,
    WrongType,
    BadJson,
    NoAnswer,
    AnotherAnswer,
    BadSse,
    CutWithoutId,
    CutWithId,
    ClosedToPoll,
    BrokenWithId,
    NotResumed,
    Unauthorized,
    Forbidden,
    TooMany,
    Broken500,
    BadGateway,
    Unavailable,
    Endless,
    Flood,
    HeaderMismatch,
    Redirect,
    RedirectElsewhere,
    SessionLost,
    SessionLost400,
    LargeJson,
    LargeEvent,
    GluedEvents,
}

impl Fault {
    pub(crate) async fn show(
        self,
        host: &Host,
        wire: &mut Wire,
        request: &Request,
    ) -> io::Result<()> {
        let id = &request.body["id"];
        let answer = |text: &str| text_to(id, text);
        match self {
            Fault::None => wire.json(&[], &answer("no trouble")).await,
            Fault::Reset => Err(wire.reset()),
            Fault::ResetInTheAnswer => {
                wire.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"jsonrpc\"")
                    .await?;
                Err(wire.reset())
            }
            Fault::Stall => {
                sleep(Duration::from_secs(60)).await;
                Ok(())
            }
            Fault::StallInTheAnswer => {
                wire.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"jsonrpc\"")
                    .await?;
                sleep(Duration::from_secs(60)).await;
                Ok(())
            }
            Fault::Drip => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n";
                for byte in head.bytes().chain([b' '; 5000]) {
                    wire.write(&[byte]).await?;
                    sleep(Duration::from_millis(20)).await;
                }
                Ok(())
            }
            Fault::Html => {
                let page =
                    "<!DOCTYPE html><html><head><title>Sign in</title></head><body>…</body></html>";
                wire.respond(
                    "200 OK",
                    &[("content-type", "text/html; charset=utf-8")],
                    page,
                )
                .await
            }
            Fault::WrongType => {
                wire.respond(
                    "200 OK",
                    &[("content-type", "text/plain")],
                    "pong, token=secret-of-mine",
                )
                .await
            }
            Fault::BadJson => {
                let json = [("content-type", "application/json")];
                wire.respond("200 OK", &json, "{\"jsonrpc\": \"2.0\", \"id\": ")
                    .await
            }
            Fault::NoAnswer => wire.respond("202 Accepted", &[], "").await,
            Fault::AnotherAnswer => {
                wire.json(&[], &text_to(&json!(987_654_321), "for nobody"))
                    .await
            }
            Fault::BadSse => {
                wire.begin_events().await?;
                wire.chunk(": comment\n\nnonsense\nretry: soon\nevent: other\ndata: x\n\n")
                    .await?;
                wire.chunk("data: {\"jsonrpc\": half of\n\n\u{feff}data\n\n")
                    .await?;
                wire.event(&answer("after the noise")).await?;
                wire.end_events().await
            }
            Fault::CutWithoutId => {
                wire.begin_events().await?;
                wire.chunk(": here\n\n").await?;
                wire.end_events().await
            }
            Fault::CutWithId | Fault::NotResumed => {
                wire.begin_events().await?;
                wire.chunk("id: 41\nretry: 50\ndata: \n\n").await?;
                wire.chunk(&format!("id: {id}\ndata: \n\n")).await?;
                wire.end_events().await
            }
            Fault::ClosedToPoll => {
                wire.begin_events().await?;
                wire.chunk(&format!("id: {id}\nretry: 50\ndata: \n\n"))
                    .await?;
                wire.end_events().await
            }
            Fault::BrokenWithId => {
                wire.begin_events().await?;
                wire.chunk(&format!("id: {id}\nretry: 50\ndata: \n\n"))
                    .await?;
                Err(wire.reset())
            }
            Fault::Unauthorized => {
                let headers = [("www-authenticate", "Bearer")];
                wire.respond("401 Unauthorized", &headers, "who are you?")
                    .await
            }
            Fault::Forbidden => refuse(wire, id, "403 Forbidden", -32000, "not for you").await,
            Fault::TooMany => {
                let headers = [("retry-after", "7")];
                wire.respond("429 Too Many Requests", &headers, "slow down")
                    .await
            }
            Fault::Broken500 => {
                refuse(
                    wire,
                    id,
                    "500 Internal Server Error",
                    -32603,
                    "the database is gone",
                )
                .await
            }
            Fault::BadGateway => {
                let page = "<html><head><title>502 Bad Gateway</title></head></html>";
                wire.respond("502 Bad Gateway", &[("content-type", "text/html")], page)
                    .await
            }
            Fault::Unavailable => wire.respond("503 Service Unavailable", &[], "").await,
            Fault::Endless => {
                wire.begin_events().await?;
                loop {
                    let message =
                        json!({"jsonrpc": "2.0", "method": "notifications/vendor", "params": {}});
                    wire.event(&message).await?;
                    sleep(Duration::from_millis(5)).await;
                }
            }
            Fault::Flood => {
                wire.begin_events().await?;
                for number in 0..20_000 {
                    let message = json!({"jsonrpc": "2.0", "method": "notifications/message",
                        "params": {"level": "info", "data": number}});
                    wire.event(&message).await?;
                }
                wire.event(&answer("after the flood")).await?;
                wire.end_events().await
            }
            Fault::HeaderMismatch => {
                refuse(
                    wire,
                    id,
                    "400 Bad Request",
                    -32020,
                    "Mcp-Name does not match",
                )
                .await
            }
            Fault::Redirect => {
                wire.respond("307 Temporary Redirect", &[("location", "/mcp/")], "")
                    .await
            }
            Fault::RedirectElsewhere => {
                let headers = [("location", "https://elsewhere.example/mcp")];
                wire.respond("308 Permanent Redirect", &headers, "").await
            }
            Fault::SessionLost => {
                host.forget_sessions();
                refuse(wire, id, "404 Not Found", -32001, "Session not found").await
            }
            Fault::SessionLost400 => {
                host.forget_sessions();
                let text = "Bad Request: No valid session ID provided";
                refuse(wire, id, "400 Bad Request", -32000, text).await
            }
            Fault::LargeJson => {
                let length = 17 << 20;
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
                );
                wire.write(head.as_bytes()).await?;
                wire.write(&vec![b' '; length]).await
            }
            Fault::LargeEvent => {
                wire.begin_events().await?;
                let part = "x".repeat(1 << 20);
                let start =
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":\"");
                wire.chunk(&format!("data: {start}")).await?;
                for _ in 0..17 {
                    wire.chunk(&part).await?;
                }
                wire.end_events().await
            }
            Fault::GluedEvents => {
                wire.begin_events().await?;
                let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": id, "progress": 1}});
                let text = format!("data: {progress}\r\n\r\ndata: {}\r\n\r\n", answer("glued"));
                wire.chunk(&text).await?;
                wire.end_events().await
            }
        }
    }

    /// A stream is taken up again.
    pub(crate) async fn resume(self, wire: &mut Wire, last: &str) -> io::Result<()> {
        if self == Fault::NotResumed {
            return wire.respond("400 Bad Request", &[], "no such stream").await;
        }
        wire.begin_events().await?;
        let id: Value = last.parse::<u64>().map_or(Value::Null, Value::from);
        wire.event(&text_to(&id, "taken up again")).await?;
        wire.end_events().await
    }
}

/// In words: `ResetInTheAnswer` is "reset in the answer".
impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = ' ';
        for letter in format!("{self:?}").chars() {
            let is_number = letter.is_ascii_digit() && !before.is_ascii_digit();
            if before != ' ' && (letter.is_ascii_uppercase() || is_number) {
                out.write_str(" ")?;
            }
            write!(out, "{}", letter.to_ascii_lowercase())?;
            before = letter;
        }
        Ok(())
    }
}
