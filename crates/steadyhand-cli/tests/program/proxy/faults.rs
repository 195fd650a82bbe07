//! The provider is away, stalls, resets, sends garbage; the client leaves; we end: each is told honestly, in the
//! provider's own shape, and nothing is left behind. `scripts/proxy-tables` prints the rows.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{broken, proxy, proxy_with};
use crate::serve::{Served, until};
use crate::support::{PATIENCE, client};

/// What a provider does with a connection, once it has read a request.
#[derive(Clone, Copy)]
enum Deed {
    /// Nothing more.
    Stalls,
    /// Says this, then nothing more.
    SaysAndStalls(&'static str),
    /// Says this, then closes.
    SaysAndCloses(&'static str),
    /// Says this, then resets.
    SaysAndResets(&'static str),
}

/// A provider that misbehaves; it tells how each connection ended on the other side.
async fn misbehaving(deed: Deed) -> (SocketAddr, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("bound");
    let (gone, ended) = mpsc::channel(16);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let gone = gone.clone();
            tokio::spawn(async move {
                behave(stream, deed).await;
                let _ = gone.send(()).await;
            });
        }
    });
    (address, ended)
}

async fn behave(mut stream: TcpStream, deed: Deed) {
    let mut request = Vec::new();
    // All of these requests end with the body's last brace.
    while !request.ends_with(b"}") {
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let says = match deed {
        Deed::Stalls => "",
        Deed::SaysAndStalls(says) | Deed::SaysAndCloses(says) | Deed::SaysAndResets(says) => says,
    };
    let _ = stream.write_all(says.as_bytes()).await;
    match deed {
        Deed::Stalls | Deed::SaysAndStalls(_) => {
            // Until the other side is gone.
            while stream.read_buf(&mut request).await.unwrap_or(0) > 0 {}
        }
        Deed::SaysAndCloses(_) => {}
        Deed::SaysAndResets(_) => {
            let zero = Some(Duration::ZERO);
            let _ = rustix::net::sockopt::set_socket_linger(&stream, zero);
        }
    }
}

const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const PATH: &str = "/proxy/anthropic/v1/messages";

/// An answer, or how far it came.
struct Got {
    status: u16,
    text: String,
    /// The body ended as it should.
    is_whole: bool,
    error: Option<String>,
}

async fn ask(served: &Served, path: &str) -> Got {
    let url = format!("http://{}{path}", served.address);
    let sent = client().post(url).body(broken().to_string()).send();
    let mut answer = timeout(PATIENCE, sent)
        .await
        .expect("no hanging")
        .expect("an answer");
    let status = answer.status().as_u16();
    let header = answer.headers().get("steadyhand-error");
    let error = header.map(|code| code.to_str().expect("text").to_owned());
    let mut text = String::new();
    let is_whole = loop {
        match timeout(PATIENCE, answer.chunk()).await.expect("no hanging") {
            Ok(Some(piece)) => text.push_str(&String::from_utf8_lossy(&piece)),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    Got {
        status,
        text,
        is_whole,
        error,
    }
}

/// A row of the table in docs/proxy.md.
fn row(fault: &str, got: &Got) {
    let said = got.text.trim().lines().last().unwrap_or_default();
    let said = said.strip_prefix("data: ").unwrap_or(said);
    let told: Option<Value> = serde_json::from_str(said).ok();
    let message = told
        .as_ref()
        .and_then(|told| told["error"]["message"].as_str());
    let said = message.unwrap_or(said);
    // Ports differ from run to run.
    let mut shown = String::new();
    let mut words = said.split("127.0.0.1:");
    shown.push_str(words.next().unwrap_or_default());
    for word in words {
        shown.push_str("127.0.0.1:PORT");
        shown.push_str(word.trim_start_matches(|char: char| char.is_ascii_digit()));
    }
    let end = match (got.status, got.is_whole) {
        (200, false) => "200, then cut off",
        (200, true) => "200",
        (502, _) => "502",
        (504, _) => "504",
        (503, _) => "503",
        _ => "other",
    };
    println!("\nfault-row|{fault}|{end}|{shown}");
}

async fn noted(served: &Served) -> Value {
    until("it is noted", async || {
        let listed = served.get("/v1/exchanges").await.json();
        listed["exchanges"].get(0).cloned()
    })
    .await
}

/// Everything that went wrong before an answer began.
async fn fails(fault: &str, served: &Served, status: u16, code: &str, words: &str) {
    let got = ask(served, PATH).await;
    row(fault, &got);
    assert_eq!(got.status, status, "{fault}: {}", got.text);
    assert_eq!(got.error.as_deref(), Some(code), "{fault}");
    let told: Value = serde_json::from_str(&got.text).expect("Anthropic's shape");
    assert_eq!(told["type"], "error");
    let message = told["error"]["message"].as_str().expect("words");
    assert!(message.contains(words), "{fault}: {message}");
    let exchange = noted(served).await;
    assert_eq!(exchange["failure"]["code"], code, "{exchange}");
    assert_eq!(exchange["status"], status);
    let figures = served.get("/metrics").await.text;
    let failed = "steadyhand_proxy_exchanges_total{provider=\"anthropic\",result=\"failed\"} 1";
    assert!(figures.contains(failed), "{figures}");
    assert!(figures.contains("steadyhand_proxy_open{} 0.0"), "{figures}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_away_is_said_to_be() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let served = proxy("anthropic", format!("http://{address}")).await;
    fails(
        "the provider is away",
        &served,
        502,
        "upstream_unreachable",
        "does not answer at 127.0.0.1",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_stalls_before_it_answers_is_given_up() {
    let (address, mut ended) = misbehaving(Deed::Stalls).await;
    let served = proxy_with(
        "anthropic",
        format!("http://{address}"),
        "first = \"300ms\"",
    )
    .await;
    fails(
        "it says nothing",
        &served,
        504,
        "upstream_silent",
        "sent nothing for 300ms",
    )
    .await;
    timeout(PATIENCE, ended.recv())
        .await
        .expect("its connection is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_speaks_no_http_is_said_to() {
    let (address, _) = misbehaving(Deed::SaysAndCloses("SSH-2.0-OpenSSH_10.0\r\n")).await;
    let served = proxy("anthropic", format!("http://{address}")).await;
    fails(
        "it speaks no HTTP",
        &served,
        502,
        "upstream_garbage",
        "is no answer of anthropic",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_no_json_is_said_to_be_none() {
    let says =
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 15\r\n\r\n<html>Sign in</";
    let (address, _) = misbehaving(Deed::SaysAndCloses(says)).await;
    let served = proxy("anthropic", format!("http://{address}")).await;
    fails(
        "it answers with a page of HTML",
        &served,
        502,
        "upstream_garbage",
        "it is no JSON",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_reset_before_the_answer_is_told() {
    let (address, _) = misbehaving(Deed::SaysAndResets("")).await;
    let served = proxy("anthropic", format!("http://{address}")).await;
    fails(
        "it resets before it answers",
        &served,
        502,
        "upstream_broke_off",
        "broke off",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_answer_that_breaks_off_is_no_answer() {
    let says = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"type\": \"message\"";
    let (address, _) = misbehaving(Deed::SaysAndResets(says)).await;
    let served = proxy("anthropic", format!("http://{address}")).await;
    fails(
        "a whole answer breaks off",
        &served,
        502,
        "upstream_broke_off",
        "broke off",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_answer_that_stalls_is_given_up() {
    let says = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"type\": \"message\"";
    let (address, mut ended) = misbehaving(Deed::SaysAndStalls(says)).await;
    let served = proxy_with("anthropic", format!("http://{address}"), "idle = \"300ms\"").await;
    fails(
        "a whole answer stalls",
        &served,
        504,
        "upstream_silent",
        "sent nothing for 300ms",
    )
    .await;
    timeout(PATIENCE, ended.recv())
        .await
        .expect("its connection is closed");
}

const PING: &str = "event: ping\ndata: {\"type\": \"ping\"}\n\n";

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// A stream that breaks: what the client got ends with an event of the provider's shape, and is cut off.
async fn breaks(fault: &str, served: &Served, code: &str, words: &str) {
    let got = ask(served, PATH).await;
    row(fault, &got);
    assert_eq!(got.status, 200, "{}", got.text);
    assert!(
        !got.is_whole,
        "{fault}: half an answer must not look like one: {}",
        got.text
    );
    let rest = got
        .text
        .strip_prefix(PING)
        .expect("what had come has passed");
    let data = rest
        .strip_prefix("event: error\ndata: ")
        .expect("Anthropic's event");
    let told: Value = serde_json::from_str(data.trim_end()).expect("JSON");
    assert_eq!(told["type"], "error");
    let message = told["error"]["message"].as_str().expect("words");
    assert!(message.contains(words), "{fault}: {message}");
    let exchange = noted(served).await;
    assert_eq!(exchange["failure"]["code"], code);
    assert_eq!(exchange["streamed"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_reset_ends_with_an_error_event_and_is_cut_off() {
    let says = leaked(format!("{STREAM_HEAD}{}", chunk(PING)));
    let (address, _) = misbehaving(Deed::SaysAndResets(says)).await;
    let served = proxy("anthropic", format!("http://{address}")).await;
    breaks(
        "a stream is reset between two events",
        &served,
        "upstream_broke_off",
        "broke off",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_without_its_end_mark_ends_with_an_error_event_and_is_cut_off() {
    let says = leaked(format!("{STREAM_HEAD}{}0\r\n\r\n", chunk(PING)));
    let (address, _) = misbehaving(Deed::SaysAndCloses(says)).await;
    let served = proxy("anthropic", format!("http://{address}")).await;
    breaks(
        "a stream ends without its end mark",
        &served,
        "upstream_unfinished",
        "ended without its end mark (message_stop)",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_stalls_ends_with_an_error_event_and_is_cut_off() {
    let says = leaked(format!("{STREAM_HEAD}{}", chunk(PING)));
    let (address, mut ended) = misbehaving(Deed::SaysAndStalls(says)).await;
    let served = proxy_with("anthropic", format!("http://{address}"), "idle = \"300ms\"").await;
    breaks(
        "a stream stalls",
        &served,
        "upstream_silent",
        "sent nothing for 300ms",
    )
    .await;
    timeout(PATIENCE, ended.recv())
        .await
        .expect("its connection is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_never_ends_is_ended() {
    let says = leaked(format!("{STREAM_HEAD}{}", chunk(PING)));
    let (address, _) = misbehaving(Deed::SaysAndStalls(says)).await;
    let served = proxy_with(
        "anthropic",
        format!("http://{address}"),
        "timeout = \"500ms\"",
    )
    .await;
    breaks(
        "the whole takes too long",
        &served,
        "upstream_too_long",
        "was not done within 500ms",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_with_garbage_between_its_chunks_is_cut_off_with_an_error() {
    let says = leaked(format!("{STREAM_HEAD}{}what is this\r\n", chunk(PING)));
    let (address, _) = misbehaving(Deed::SaysAndCloses(says)).await;
    let served = proxy("anthropic", format!("http://{address}")).await;
    let got = ask(&served, PATH).await;
    row("garbage in the middle of a stream", &got);
    assert!(!got.is_whole, "{}", got.text);
    assert!(got.text.contains("event: error"), "{}", got.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_reset_inside_an_event_is_cut_off_there() {
    let half = "event: ping\ndata: {\"type\": \"pi";
    let says = leaked(format!("{STREAM_HEAD}{}{}", chunk(PING), chunk(half)));
    let (address, _) = misbehaving(Deed::SaysAndResets(says)).await;
    let served = proxy("anthropic", format!("http://{address}")).await;
    let got = ask(&served, PATH).await;
    row("a stream is reset inside an event", &got);
    assert_eq!(
        got.text,
        format!("{PING}{half}"),
        "words of ours would become part of the event"
    );
    assert!(!got.is_whole);
    assert_eq!(
        noted(&served).await["failure"]["code"],
        "upstream_broke_off"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_the_shape_of_each_provider() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let upstream = format!("http://{}", listener.local_addr().expect("bound"));
    drop(listener);
    let sites = ["anthropic", "openai", "ollama", "gemini", "mistral"];
    let config = sites.map(|site| format!("[proxy.{site}]\nupstream = \"{upstream}\"\n"));
    let served = Served::with_config(&config.join("\n")).await;
    for (path, message, more) in [
        (
            "anthropic/v1/messages",
            "/error/message",
            json!({"/type": "error", "/error/type": "api_error"}),
        ),
        (
            "openai/v1/chat/completions",
            "/error/message",
            json!({"/error/type": "server_error", "/error/code": "upstream_unreachable", "/error/param": null}),
        ),
        (
            "openai/v1/models",
            "/error/message",
            json!({"/error/type": "server_error"}),
        ),
        ("ollama/api/chat", "/error", json!({})),
        (
            "gemini/v1beta/models/g:generateContent",
            "/error/message",
            json!({"/error/code": 502, "/error/status": "UNAVAILABLE"}),
        ),
        (
            "mistral/v1/chat/completions",
            "/message",
            json!({"/object": "error"}),
        ),
    ] {
        let got = served.post(&format!("/proxy/{path}"), json!({})).await;
        assert_eq!(got.status, 502);
        assert_eq!(got.header("content-type"), Some("application/json"));
        let told = got.json();
        let words = told
            .pointer(message)
            .and_then(Value::as_str)
            .expect("words");
        assert!(words.contains("does not answer"), "{words}");
        for (pointer, value) in more.as_object().expect("fields") {
            assert_eq!(told.pointer(pointer), Some(value), "{path}: {told}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_in_the_middle_of_a_stream_takes_the_provider_with_it() {
    let says = leaked(format!("{STREAM_HEAD}{}", chunk(PING)));
    let (address, mut ended) = misbehaving(Deed::SaysAndStalls(says)).await;
    let served = proxy("anthropic", format!("http://{address}")).await;
    let url = format!("http://{}{PATH}", served.address);
    let mut answer = client()
        .post(url)
        .body(broken().to_string())
        .send()
        .await
        .expect("a head");
    timeout(PATIENCE, answer.chunk())
        .await
        .expect("in time")
        .expect("no error")
        .expect("an event");
    assert!(ended.try_recv().is_err(), "the provider is still at it");
    drop(answer);
    timeout(PATIENCE, ended.recv())
        .await
        .expect("the provider's connection is closed");
    left("the client leaves in the middle of a stream", &served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_before_the_answer_takes_the_provider_with_it() {
    let (address, mut ended) = misbehaving(Deed::Stalls).await;
    let served = proxy("anthropic", format!("http://{address}")).await;
    let mut stream = served.connect().await;
    let body = broken().to_string();
    let request = crate::serve::request(served.address, "POST", PATH, &[], &body);
    stream.write_all(request.as_bytes()).await.expect("sent");
    until("the provider is asked", async || {
        let figures = served.get("/metrics").await.text;
        figures
            .contains("steadyhand_proxy_open{} 1.0")
            .then_some(())
    })
    .await;
    drop(stream);
    timeout(PATIENCE, ended.recv())
        .await
        .expect("the provider's connection is closed");
    left("the client leaves before the answer", &served).await;
}

/// The exchange is over, and counted as one whose client left.
async fn left(fault: &str, served: &Served) {
    until("it is counted", async || {
        let figures = served.get("/metrics").await.text;
        let is_so = figures.contains("steadyhand_proxy_open{} 0.0")
            && figures.contains("{provider=\"anthropic\",result=\"left\"} 1");
        is_so.then_some(())
    })
    .await;
    println!(
        "\nfault-row|{fault}|–|(the provider's connection is closed, the exchange counted as left)"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_lets_answers_come_to_their_end_and_tells_those_that_do_not() {
    let says = leaked(format!("{STREAM_HEAD}{}", chunk(PING)));
    let (address, mut ended) = misbehaving(Deed::SaysAndStalls(says)).await;
    let served = proxy("anthropic", format!("http://{address}")).await;
    let url = format!("http://{}{PATH}", served.address);
    let mut answer = client()
        .post(url)
        .body(broken().to_string())
        .send()
        .await
        .expect("a head");
    let mut text = String::new();
    while !text.contains("ping") {
        let piece = timeout(PATIENCE, answer.chunk()).await.expect("in time");
        text.push_str(&String::from_utf8_lossy(
            &piece.expect("no error").expect("more"),
        ));
    }
    served.signal(rustix::process::Signal::TERM);
    let is_whole = loop {
        match timeout(PATIENCE, answer.chunk()).await.expect("in time") {
            Ok(Some(piece)) => text.push_str(&String::from_utf8_lossy(&piece)),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let got = Got {
        status: 200,
        text,
        is_whole,
        error: None,
    };
    row("steadyhand itself ends", &got);
    let (text, is_whole) = (got.text, got.is_whole);
    assert!(!is_whole, "half an answer must not look like one: {text}");
    assert!(text.contains("event: error"), "{text}");
    assert!(text.contains("the server is about to end"), "{text}");
    timeout(PATIENCE, ended.recv())
        .await
        .expect("the provider's connection is closed");
    let (code, _) = served.ended().await;
    assert!(code.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_cannot_be_resolved_in_the_settings_is_said_to_be_missing() {
    let served =
        Served::with_config("[proxy.anthropic]\nupstream = \"${env:NO_SUCH_VARIABLE_HERE}\"\n")
            .await;
    let got = served.post(PATH, broken()).await;
    assert_eq!(got.status, 503);
    let message = got.json()["error"]["message"]
        .as_str()
        .expect("words")
        .to_owned();
    assert!(message.contains("NO_SUCH_VARIABLE_HERE"), "{message}");
    let checked = crate::support::Workplace::with_config(
        "[proxy.antropic]\nupstream = \"http://127.0.0.1:1\"\n[proxy.openai]\nupstream = \"ftp://x\"\n",
    );
    let (code, _, stderr) = crate::support::parts(&checked.run("config check"));
    assert_ne!(code, 0);
    assert!(stderr.contains("Did you mean anthropic?"), "{stderr}");
    assert!(
        stderr.contains("proxy.openai.upstream is no http or https URL"),
        "{stderr}"
    );
}
