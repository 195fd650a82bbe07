//! What goes wrong around a server that runs, and what its callers get then. `scripts/fault-table` prints it.

mod attackers;
mod bodies;
mod clients;
mod crowd;
mod database;
mod ends;
mod files;
mod keys;
mod operators;
mod races;
mod tricks;
mod vanished;

use std::fmt::Display;
use std::path::PathBuf;

use rustix::process::{Pid, Resource, Rlimit};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::serve::{Reply, Served, until};
use crate::support::PATIENCE;

/// Tools that answer at once, after a moment, and not twice.
const TOOLS: &str = r#"
[server]
history = { path = "state/calls.db" }

[tools.echo]
kind = "builtin"
use = "echo"

[tools.brief]
kind = "mock"
description = "Takes a moment"
input = { type = "object" }
answers = [{ result = "done", delay = "100ms" }]

[tools.slow]
kind = "mock"
description = "Takes its time"
input = { type = "object" }
answers = [{ result = "done", delay = "40s" }]
timeout = "50s"

[tools.once]
kind = "mock"
description = "Must not happen twice"
input = { type = "object" }
mock_response = "done"
idempotent = false
"#;

/// A row of the table: it is printed when the test has seen what it wanted to see.
pub(crate) struct Fault {
    name: &'static str,
    promise: &'static str,
    begun: Instant,
}

impl Fault {
    pub(crate) fn begin(name: &'static str, promise: &'static str) -> Fault {
        Fault {
            name,
            promise,
            begun: Instant::now(),
        }
    }

    pub(crate) fn got(self, got: impl Display) {
        let seconds = self.begun.elapsed().as_secs_f64();
        println!(
            "\nfault-row|{}|{}|{got}|{seconds:.1} s",
            self.name, self.promise
        );
    }
}

/// The history's own state, as the server tells it.
async fn history(served: &Served) -> Value {
    let ready = served.get("/health/ready").await;
    assert_eq!(ready.status, 200, "{}", ready.text);
    ready.json()["history"].clone()
}

async fn until_written(served: &Served, count: u64) {
    until(&format!("{count} calls are written"), async || {
        let history = history(served).await;
        (history["state"] == "ok" && history["written"] == count).then_some(())
    })
    .await;
}

/// So many calls, one after the other; each must be answered.
/// How much of something this process may have; none gives it back what it had.
fn limit(served: &Served, resource: Resource, to: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(served.pid()).expect("a number"));
    // Ours is the one it was started with.
    let maximum = rustix::process::getrlimit(resource).maximum;
    let limit = Rlimit {
        current: to.or(maximum),
        maximum,
    };
    rustix::process::prlimit(pid, resource, limit).expect("it is ours");
}

async fn calls_go_on(served: &Served, prefix: &str, count: usize) {
    for number in 0..count {
        let id = format!("{prefix}-{number}");
        let reply = served
            .post("/v1/calls", json!({"name": "echo", "id": id}))
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        assert_eq!(reply.json()["status"], "success", "{}", reply.text);
    }
}

/// The ids of the calls that are kept, the newest first.
async fn kept(served: &Served) -> Vec<String> {
    try_kept(served).await.expect("a history that can be read")
}

/// None if the history says that it cannot be read now.
async fn try_kept(served: &Served) -> Option<Vec<String>> {
    let mut ids = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = served.get(&format!("/v1/calls?limit=1000{cursor}")).await;
        if page.status == 503 {
            assert_eq!(page.refusal().1, "history_unavailable");
            return None;
        }
        assert_eq!(page.status, 200, "{}", page.text);
        let page = page.json();
        let calls = page["calls"].as_array().expect("a list");
        let some = calls.iter().filter_map(|call| call["id"].as_str());
        ids.extend(some.map(str::to_owned));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Some(ids),
        }
    }
}

/// How many read events now.
async fn readers(served: &Served) -> Option<f64> {
    let page = served.get("/metrics").await.text;
    let mut lines = page.lines().filter(|line| !line.starts_with('#'));
    let line = lines.find(|line| line.contains("events_readers"))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn database(served: &Served) -> PathBuf {
    served.workplace.file("state/calls.db")
}

/// What the process holds in memory.
pub(crate) fn rss_mb(served: &Served) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.pid()));
    let status = status.expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kb = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kb.expect("a size") / 1024
}

/// How many files and connections the process has open.
pub(crate) fn open_files(served: &Served) -> usize {
    let files = std::fs::read_dir(format!("/proc/{}/fd", served.pid()));
    files.expect("it runs").count()
}

/// Sends bytes that may be more than are taken, and reads what comes back.
async fn push(served: &Served, head: &str, body: &[u8]) -> Reply {
    let mut stream = served.connect().await;
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.write_all(body).await.expect("all of it is taken");
    crate::serve::reply(&mut stream).await
}

/// What comes back until the connection ends.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    // A reset is an end, too.
    let _ = read.expect("the connection ends");
    String::from_utf8_lossy(&bytes).into_owned()
}
