//! The peers of the world: raw HTTP services and hostile MCP servers, those of the other tests.

#[allow(dead_code, reason = "steadyhand-mcp's own tests use the rest of it")]
#[path = "../../../../steadyhand-mcp/tests/mcp/http/bare.rs"]
mod bare;
#[allow(dead_code, reason = "steadyhand-mcp's own tests use the rest of it")]
#[path = "../../../../steadyhand-mcp/tests/mcp/http/faults.rs"]
mod faults;
#[allow(dead_code, reason = "steadyhand-mcp's own tests use the rest of it")]
#[path = "../../../../steadyhand-mcp/tests/mcp/http/host.rs"]
mod host;

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, rustls};

pub(super) use faults::Fault as McpFault;
pub(super) use host::{Host, Speaks};

use crate::http::server::{Act, BlackHole, Server, answer, head, redirect};

/// Name, words, promise, address, and whether only a time limit ends it.
pub(super) type Service = (&'static str, &'static str, &'static str, String, bool);

pub(super) struct Peers {
    services: Vec<Service>,
    /// Their name, their fault, its words and its promise.
    pub(super) hosts: Vec<(String, McpFault, &'static str, &'static str, Host)>,
    _servers: Vec<Server>,
    _tasks: JoinSet<()>,
    _hole: BlackHole,
}

const NO: &str = "TOOL_EXECUTION_ERROR unknown";
/// The service has read the request and said no.
const SAID_NO: &str = "TOOL_EXECUTION_ERROR done";
const BROKEN: &str = "TOOL_EXECUTION_ERROR unknown";
/// It ran, and what it said cannot be used.
const AFTERWARDS: &str = "TOOL_EXECUTION_ERROR done";
const LOST: &str = "NETWORK_ERROR unknown";
const NEVER_SENT: &str = "NETWORK_ERROR none";
const TOO_OFTEN: &str = "RATE_LIMIT_ERROR none";
const HANGS: &str = "TIMEOUT unknown";

impl Peers {
    pub(super) async fn start() -> Peers {
        let mut services = Vec::new();
        let mut servers = Vec::new();
        for (name, words, promise, act) in scripts() {
            let is_hang = promise.starts_with("TIMEOUT") && !name.starts_with("says_");
            let server = Server::start(vec![act]).await;
            services.push((name, words, promise, server.url("/"), is_hang));
            servers.push(server);
        }
        let mut tasks = JoinSet::new();
        let no_tls = no_tls(&mut tasks).await;
        services.push((
            "no_tls",
            "no TLS where TLS was expected",
            NEVER_SENT,
            no_tls,
            false,
        ));
        let certificate = unknown_certificate(&mut tasks).await;
        services.push((
            "bad_certificate",
            "a certificate that nobody vouches for",
            NEVER_SENT,
            certificate,
            false,
        ));
        services.push((
            "refused",
            "connection refused",
            NEVER_SENT,
            nobody().await,
            false,
        ));
        // A label of more than 63 letters: no resolver is asked.
        let name = format!("http://{}.test/", "x".repeat(64));
        services.push((
            "no_name",
            "a name that does not exist",
            NEVER_SENT,
            name,
            false,
        ));
        let hole = BlackHole::dig().await;
        services.push((
            "black_hole",
            "connections that are neither accepted nor refused",
            NEVER_SENT,
            hole.url.clone(),
            true,
        ));
        Peers {
            services,
            hosts: hosts().await,
            _servers: servers,
            _tasks: tasks,
            _hole: hole,
        }
    }

    pub(super) fn services(&self) -> Vec<Service> {
        self.services.clone()
    }
}

/// What each service does with every request.
fn scripts() -> Vec<(&'static str, &'static str, &'static str, Act)> {
    let says =
        |status, headers: &[(&str, &str)], body: &str| Act::Send(answer(status, headers, body));
    let status =
        |status, body: &str| Act::Send(answer(status, &[("content-type", "text/plain")], body));
    let json = ("content-type", "application/json");
    let part = |length: &str, body: &[u8]| {
        let mut bytes = head(200, &[json, ("content-length", length)]);
        bytes.extend_from_slice(body);
        bytes
    };
    let large = head(200, &[json, ("content-length", "104857600")]);
    vec![
        ("says_400", "400", SAID_NO, status(400, "bad request")),
        (
            "says_401",
            "401",
            "AUTHENTICATION_ERROR none",
            status(401, "who are you?"),
        ),
        (
            "says_403",
            "403",
            "AUTHENTICATION_ERROR none",
            status(403, "not you"),
        ),
        ("says_404", "404", SAID_NO, status(404, "no such thing")),
        (
            "says_408",
            "408",
            "TIMEOUT unknown",
            status(408, "too slow"),
        ),
        ("says_500", "500", BROKEN, status(500, "broken")),
        ("says_503", "503", LOST, status(503, "away")),
        (
            "says_504",
            "504",
            "TIMEOUT unknown",
            status(504, "too slow"),
        ),
        (
            "says_429_0",
            "429, Retry-After: 0",
            TOO_OFTEN,
            says(429, &[("retry-after", "0")], ""),
        ),
        (
            "says_429_day",
            "429, Retry-After: 86400",
            TOO_OFTEN,
            says(429, &[("retry-after", "86400")], ""),
        ),
        (
            "says_429_date",
            "429, Retry-After: a date long gone",
            TOO_OFTEN,
            says(429, &[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")], ""),
        ),
        (
            "says_429_then",
            "429, Retry-After: a date far away",
            TOO_OFTEN,
            says(429, &[("retry-after", "Fri, 31 Dec 2100 23:59:59 GMT")], ""),
        ),
        (
            "says_429_odd",
            "429, Retry-After: garbage",
            TOO_OFTEN,
            says(429, &[("retry-after", "soon-ish")], ""),
        ),
        ("turns", "redirects without end", NO, redirect(302, "/")),
        (
            "resets",
            "reset before an answer (reset_peer)",
            LOST,
            Act::Reset(Vec::new()),
        ),
        (
            "closes",
            "closed before an answer",
            LOST,
            Act::Close(Vec::new()),
        ),
        (
            "half_answer",
            "half an answer, then the end (limit_data)",
            LOST,
            Act::Close(part("100", b"{\"half\": ")),
        ),
        (
            "half_reset",
            "half an answer, then a reset",
            LOST,
            Act::Reset(part("100", b"{\"half\": ")),
        ),
        (
            "stalls",
            "no answer (timeout)",
            HANGS,
            Act::Stall(Vec::new()),
        ),
        (
            "stalls_inside",
            "half an answer, then nothing (slow_close)",
            HANGS,
            Act::Stall(part("100", b"{\"half\": ")),
        ),
        (
            "drips_web",
            "slow drip of an answer (bandwidth, slicer)",
            HANGS,
            Act::Drip(part("100000", b" ")),
        ),
        (
            "no_http",
            "something that is not HTTP",
            LOST,
            Act::Close(b"SSH-2.0-OpenSSH_9.9\r\n\r\n".to_vec()),
        ),
        (
            "bad_json",
            "JSON that is none",
            AFTERWARDS,
            says(200, &[json], "{\"half\": "),
        ),
        (
            "bad_text",
            "a text that is no UTF-8",
            "success",
            Act::Send(answer(
                200,
                &[("content-type", "text/plain; charset=utf-8")],
                b"caf\xe9 \xff\xfe",
            )),
        ),
        (
            "nan",
            "a number that is none",
            AFTERWARDS,
            says(200, &[json], "{\"value\": NaN}"),
        ),
        (
            "huge_number",
            "a number that no double holds",
            AFTERWARDS,
            says(200, &[json], "{\"value\": 1e400}"),
        ),
        (
            "answer_100mb",
            "an answer of 100 MB",
            AFTERWARDS,
            Act::Flood(large, vec![b' '; 1 << 20]),
        ),
    ]
}

async fn hosts() -> Vec<(String, McpFault, &'static str, &'static str, Host)> {
    use McpFault::*;
    let rows = [
        (Reset, "reset before an answer", LOST),
        (ResetInTheAnswer, "reset within the answer", LOST),
        (Stall, "no answer", HANGS),
        (StallInTheAnswer, "half an answer, then nothing", HANGS),
        (Drip, "slow drip of an answer", HANGS),
        (Endless, "a stream of events without end", HANGS),
        (Html, "a web page instead of a message", BROKEN),
        (WrongType, "another content type", BROKEN),
        (BadJson, "JSON that is none", BROKEN),
        (NoAnswer, "accepted, never answered", BROKEN),
        (AnotherAnswer, "an answer to something else", BROKEN),
        (BadSse, "events that are none among the answer", "success"),
        (CutWithoutId, "a stream cut before the answer", LOST),
        (CutWithId, "a stream cut, and taken up again", "success"),
        (ClosedToPoll, "a stream closed to be polled", "success"),
        (
            BrokenWithId,
            "a stream reset, and taken up again",
            "success",
        ),
        (NotResumed, "a stream that cannot be taken up again", LOST),
        (Unauthorized, "401", "AUTHENTICATION_ERROR none"),
        (Forbidden, "403", "AUTHENTICATION_ERROR none"),
        (TooMany, "429, Retry-After: 7", TOO_OFTEN),
        (Broken500, "500", BROKEN),
        (BadGateway, "502 with a web page", LOST),
        (Unavailable, "503", LOST),
        (Flood, "20,000 events before the answer", "success"),
        (
            RedirectElsewhere,
            "a redirect to another host",
            "TOOL_EXECUTION_ERROR none",
        ),
        (LargeJson, "an answer of 17 MB", AFTERWARDS),
        (LargeEvent, "an event of 17 MB", AFTERWARDS),
        (GluedEvents, "two events in one piece", "success"),
    ];
    let mut hosts = Vec::new();
    for (fault, words, promise) in rows {
        // Forbidden in a body of JSON-RPC, and events in one piece: of the newer era. The rest of the older one.
        let speaks = match fault {
            Forbidden | GluedEvents | Unavailable => Speaks::Modern,
            _ => Speaks::Legacy,
        };
        let host = Host::of(speaks, fault).await;
        host.shows_it_always();
        let name = format!("web_{}", fault.to_string().replace(' ', "_"));
        hosts.push((name, fault, words, promise, host));
    }
    hosts
}

/// An address that nobody listens on.
async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("it is bound");
    format!("http://{address}/")
}

/// Answers in the clear to whoever begins with TLS.
async fn no_tls(tasks: &mut JoinSet<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("it is bound");
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(b"HTTP/1.1 400 no TLS here\r\n\r\n").await;
        }
    });
    format!("https://{address}/")
}

/// TLS with a certificate that the server has signed itself.
async fn unknown_certificate(tasks: &mut JoinSet<()>) -> String {
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::try_from(own.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the versions of the provider")
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key.expect("a key"))
        .expect("a certificate and its key");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("it is bound");
    tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = acceptor.accept(stream).await;
        }
    });
    format!("https://{address}/")
}
