//! `/v1/events` of a whole server: what happens is told, streams resume, and a reader that does not read is let go.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::{Served, TOOLS, until};
use crate::faults::Fault;
use crate::support::PATIENCE;

/// A stream of events, read as far as a test wants.
struct Events {
    stream: TcpStream,
    text: String,
}

impl Events {
    async fn open(served: &Served, path: &str, last: Option<&str>) -> Events {
        let mut stream = served.connect().await;
        ask(&mut stream, served, path, last).await;
        Events {
            stream,
            text: String::new(),
        }
    }

    /// Reads until an event of this type is there; gives back its id and its data.
    async fn next(&mut self, kind: &str) -> (String, Value) {
        let wanted = format!("event: {kind}\n");
        let read = async {
            loop {
                if let Some(at) = self.text.find(&wanted)
                    && let Some(length) = self.text[at..].find("\n\n")
                {
                    let before = self.text[..at].rfind("\n\n").map_or(0, |end| end + 2);
                    let event = self.text[before..at + length].to_owned();
                    self.text.drain(..at + length);
                    return event;
                }
                let mut piece = [0; 4096];
                let read = self.stream.read(&mut piece).await.expect("a stream");
                assert!(read > 0, "the stream ended: {}", self.text);
                self.text.push_str(&String::from_utf8_lossy(&piece[..read]));
            }
        };
        let event = timeout(PATIENCE, read).await.expect("an event in time");
        let line = |name: &str| {
            let found = event.lines().find_map(|line| line.strip_prefix(name));
            found.unwrap_or_default().trim().to_owned()
        };
        let data = serde_json::from_str(&line("data:")).expect("JSON");
        (line("id:"), data)
    }
}

async fn ask(stream: &mut TcpStream, served: &Served, path: &str, last: Option<&str>) {
    let last = last.map_or(String::new(), |id| format!("last-event-id: {id}\r\n"));
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: {}\r\n{last}\r\n",
        served.address
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
}

#[tokio::test]
async fn calls_and_configurations_are_told_as_they_happen_and_a_stream_resumes() {
    let served = Served::start().await;
    let mut events = Events::open(&served, "/v1/events", None).await;
    events.next("snapshot").await;
    let call = json!({"name": "weather", "id": "w1", "args": {"city": "Oslo"}});
    served.post("/v1/calls", call.clone()).await;
    let (last, finished) = events.next("call_finished").await;
    assert_eq!(finished["id"], "w1");
    drop(events);
    let missed = json!({"name": "weather", "id": "w2", "args": {"city": "Rome"}});
    served.post("/v1/calls", missed).await;
    let mut events = Events::open(&served, "/v1/events", Some(&last)).await;
    let (_, finished) = events.next("call_finished").await;
    assert_eq!(finished["id"], "w2");

    served.post("/v1/config/reload", json!({})).await;
    let (_, changed) = events.next("config_changed").await;
    assert_eq!(changed["generation"], 2);
    served
        .workplace
        .write("steadyhand.toml", "[tools.x]\nkind = \"nothing\"\n");
    served.post("/v1/config/reload", json!({})).await;
    let (_, refused) = events.next("config_changed").await;
    assert_eq!(refused["generation"], 2);
    assert!(
        refused["problem"]
            .as_str()
            .is_some_and(|text| text.contains("nothing was changed"))
    );

    let wrong = served.get("/v1/events?type=weather").await;
    assert_eq!(wrong.refusal().0, 400);
    // An open stream does not keep the server from ending.
    served.signal(rustix::process::Signal::INT);
    let (code, stderr) = served.ended().await;
    assert_eq!(code, Some(0), "{stderr}");
}

#[tokio::test]
async fn a_reader_of_events_that_does_not_read_is_let_go_and_holds_up_nobody() {
    let fault = Fault::begin(
        "slow readers of events",
        "let go when they take nothing for so long (patience); calls and other readers do not notice",
    );
    let served = Served::with_config(&format!(
        "[server]\nlimits = {{ patience = \"1s\" }}\n{TOOLS}"
    ))
    .await;
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    let mut deaf = socket.connect(served.address).await.expect("it listens");
    ask(&mut deaf, &served, "/v1/events", None).await;
    let mut events = Events::open(&served, "/v1/events?tool=weather", None).await;
    events.next("snapshot").await;
    let readers = async || {
        let page = served.get("/metrics").await.text;
        let line = page
            .lines()
            .find(|line| !line.starts_with('#') && line.contains("events_readers"));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
    };
    until("both are counted", async || {
        (readers().await == Some(2.0)).then_some(())
    })
    .await;
    let long = "x".repeat(200);
    let calls: Vec<Value> = (0..500)
        .map(|n| json!({"name": "echo", "id": format!("{long}{n}")}))
        .collect();
    let batch = json!({ "calls": calls });
    // Until its buffers are full and it is given up.
    until("the deaf one is gone", async || {
        assert_eq!(served.post("/v1/batches", batch.clone()).await.status, 200);
        (readers().await == Some(1.0)).then_some(())
    })
    .await;
    served.call("weather", json!({"city": "Oslo"})).await;
    let (_, finished) = events.next("call_finished").await;
    assert_eq!(finished["tool"], "weather");
    fault.got("let go; the other reader got its event");
}
