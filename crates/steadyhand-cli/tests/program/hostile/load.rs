//! Everything at once: callers over every surface, some of whom leave in the middle, while the configuration is read anew
//! and the metrics are fetched without a pause. As many outcomes as calls, by their count and by ours; memory flat.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep};

use super::functions::NOT_THERE;
use super::surfaces::{Got, Stdio, Surface, ask};
use super::world::{Fault, World};
use crate::faults::{open_files, rss_mb};
use crate::serve::{Served, request, until};

/// Callers at the same time: most over REST, some over MCP.
const CALLERS: usize = 12;

/// What is counted while it runs.
#[derive(Default)]
struct Counts {
    /// Calls of tools that exist, made at the server.
    issued: AtomicU64,
    /// On stdio, where a process of its own counts, and by commands, which run a call themselves if the server is too busy.
    elsewhere: AtomicU64,
    outcomes: AtomicU64,
    /// Callers who left before the answer.
    left: AtomicU64,
    next: AtomicU64,
}

pub(super) struct Load {
    counts: Arc<Counts>,
    /// What the tools' counters said before.
    before: u64,
    files_before: usize,
    /// By surface and verdict.
    verdicts: BTreeMap<String, u64>,
    /// In MB, four times a second.
    memory: Vec<u64>,
    took: Duration,
}

impl Load {
    pub(super) async fn run(world: &World, time: Duration) -> Load {
        let served = &world.served;
        let counts = Arc::new(Counts::default());
        let (before, files_before) = (counted(world).await, open_files(served));
        let began = Instant::now();
        let end = began + time;
        let mut tasks: Vec<BoxFuture<'_, Vec<String>>> = Vec::new();
        for caller in 0..CALLERS {
            let surface = match caller % 3 {
                0 => Surface::Mcp,
                _ => Surface::Rest,
            };
            tasks.push(callers(world, &counts, surface, end).boxed());
        }
        tasks.push(callers(world, &counts, Surface::Cli, end).boxed());
        tasks.push(on_stdio(world, &counts, end).boxed());
        tasks.push(leaving(world, &counts, end).boxed());
        tasks.push(reloading(served, end).boxed());
        tasks.push(scraping(served, end).boxed());
        let (said, memory) = tokio::join!(join_all(tasks), watched(served, end));
        let mut verdicts = BTreeMap::new();
        for verdict in said.into_iter().flatten() {
            *verdicts.entry(verdict).or_default() += 1;
        }
        Load {
            counts,
            before,
            files_before,
            verdicts,
            memory,
            took: began.elapsed(),
        }
    }

    /// Calls issued = outcomes + callers who left; and the server counts the same, and holds on to nothing.
    pub(super) async fn assert_all_accounted_for(&self, world: &World) {
        let served = &world.served;
        let get = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        let counts = &self.counts;
        assert_eq!(
            get(&counts.issued) + get(&counts.elsewhere),
            get(&counts.outcomes) + get(&counts.left),
            "a call without an outcome"
        );
        let issued = get(&counts.issued);
        until("no call runs any more", async || {
            let running = served.get("/v1/calls?state=running").await.json();
            (running["calls"] == json!([])).then_some(())
        })
        .await;
        let counted = until("every call is counted", async || {
            let counted = counted(world).await - self.before;
            // One that left before its request was read was never a call.
            (counted >= issued - get(&counts.left)).then_some(counted)
        })
        .await;
        let all = issued + get(&counts.elsewhere);
        assert!(counted <= all, "{counted} counted, {all} issued");
        until("its files are closed", async || {
            // Sockets of callers close when they do; servers may be between two lives.
            (open_files(served) <= self.files_before + 256).then_some(())
        })
        .await;
    }

    /// The median of the last third is about that of the second: what comes is given back.
    pub(super) fn assert_memory_is_flat(&self) {
        let third = self.memory.len() / 3;
        let (middle, late) = (
            median(&self.memory[third..2 * third]),
            median(&self.memory[2 * third..]),
        );
        assert!(
            late <= middle + middle / 4 + 48,
            "{middle} MB, then {late} MB"
        );
        let peak = self.memory.iter().max().copied().unwrap_or(0);
        assert!(peak < 1_500, "{peak} MB");
    }

    pub(super) fn print(&self) {
        let get = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        let third = self.memory.len() / 3;
        println!(
            "\nworld-load|{:.0} s|{} calls = {} outcomes + {} callers who left|memory {} MB at first, {} MB in the middle, {} MB at last, {} MB at most",
            self.took.as_secs_f64(),
            get(&self.counts.issued) + get(&self.counts.elsewhere),
            get(&self.counts.outcomes),
            get(&self.counts.left),
            median(&self.memory[..third]),
            median(&self.memory[third..2 * third]),
            median(&self.memory[2 * third..]),
            self.memory.iter().max().copied().unwrap_or(0),
        );
        for (verdict, times) in &self.verdicts {
            println!("\nworld-verdict|{verdict}|{times}");
        }
    }
}

fn median(of: &[u64]) -> u64 {
    let mut sorted = of.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// The faults in turn, for all callers together. What is costly comes seldom.
fn next<'a>(world: &'a World, counts: &Counts) -> &'a Fault {
    loop {
        let number = counts.next.fetch_add(1, Ordering::Relaxed) as usize;
        let fault = &world.faults[number % world.faults.len()];
        let round = number / world.faults.len();
        if !fault.is_heavy || round % 8 == 4 {
            return fault;
        }
    }
}

fn assert_promised(fault: &Fault, surface: Surface, got: &Got) -> String {
    let (code, effect) = (got.code.as_str(), got.effect.as_str());
    assert!(
        got.complaints.is_empty(),
        "{surface}: {:#?}",
        got.complaints
    );
    assert!(
        fault.promises(code, effect, true),
        "{surface}, {}: promised {}, got {code} {effect}",
        fault.tool,
        fault.promise
    );
    match code {
        "success" => format!("{surface}|success|"),
        _ => format!("{surface}|{code}|{effect}"),
    }
}

async fn callers(world: &World, counts: &Counts, surface: Surface, end: Instant) -> Vec<String> {
    let mut verdicts = Vec::new();
    while Instant::now() < end {
        let fault = next(world, counts);
        if fault.tool != NOT_THERE {
            let issued = match surface {
                Surface::Cli => &counts.elsewhere,
                _ => &counts.issued,
            };
            issued.fetch_add(1, Ordering::SeqCst);
        }
        let got = ask(&world.served, surface, fault).await;
        if fault.tool != NOT_THERE {
            counts.outcomes.fetch_add(1, Ordering::SeqCst);
        }
        verdicts.push(assert_promised(fault, surface, &got));
    }
    verdicts
}

async fn on_stdio(world: &World, counts: &Counts, end: Instant) -> Vec<String> {
    let mut client = Stdio::begin(world).await;
    let mut verdicts = Vec::new();
    for id in 1.. {
        if Instant::now() >= end {
            break;
        }
        let fault = next(world, counts);
        counts.elsewhere.fetch_add(1, Ordering::SeqCst);
        let got = client.call(id, fault).await;
        counts.outcomes.fetch_add(1, Ordering::SeqCst);
        let verdict = assert_promised(fault, Surface::Stdio, &got);
        verdicts.push(verdict);
    }
    client.end().await;
    verdicts
}

/// Sends calls, and is gone before they are answered.
async fn leaving(world: &World, counts: &Counts, end: Instant) -> Vec<String> {
    let address = world.served.address;
    while Instant::now() < end {
        let fault = next(world, counts);
        if fault.tool == NOT_THERE {
            continue;
        }
        let call = json!({"name": fault.tool, "args": fault.args}).to_string();
        let call = request(address, "POST", "/v1/calls", &[], &call);
        let mut stream = world.served.connect().await;
        stream.write_all(call.as_bytes()).await.expect("sent");
        counts.issued.fetch_add(1, Ordering::SeqCst);
        counts.left.fetch_add(1, Ordering::SeqCst);
        sleep(Duration::from_millis(moment(counts))).await;
        drop(stream);
        // Those who stay are the many.
        sleep(Duration::from_millis(200)).await;
    }
    Vec::new()
}

/// Not always at the same moment of a call.
fn moment(counts: &Counts) -> u64 {
    counts.next.load(Ordering::Relaxed) * 7 % 60
}

/// The configuration is read anew in the middle of calls.
async fn reloading(served: &Served, end: Instant) -> Vec<String> {
    while Instant::now() < end {
        let reply = served.post("/v1/config/reload", json!({})).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        sleep(Duration::from_secs(1)).await;
    }
    Vec::new()
}

/// Whoever watches asks again and again.
async fn scraping(served: &Served, end: Instant) -> Vec<String> {
    while Instant::now() < end {
        for page in ["/metrics", "/v1/metrics", "/health/ready"] {
            assert_eq!(served.get(page).await.status, 200, "{page}");
        }
        sleep(Duration::from_millis(20)).await;
    }
    Vec::new()
}

async fn watched(served: &Served, end: Instant) -> Vec<u64> {
    let mut memory = Vec::new();
    while Instant::now() < end {
        memory.push(rss_mb(served));
        sleep(Duration::from_millis(250)).await;
    }
    memory
}

/// All calls that the server counts: those that ran, were refused, did not fit, or were ended.
async fn counted(world: &World) -> u64 {
    let metrics = world.served.get("/v1/metrics").await.json();
    let tools = metrics["tools"].as_array().expect("a list");
    let number = |tool: &Value, name: &str| tool[name].as_u64().unwrap_or(0);
    let names = ["totalExecutions", "rejected", "invalid", "cancelled"];
    let of = |tool: &Value| names.map(|name| number(tool, name)).iter().sum::<u64>();
    let is_asked = |tool: &&Value| {
        let mut faults = world.faults.iter();
        faults.any(|fault| tool["toolName"] == fault.tool)
    };
    tools.iter().filter(is_asked).map(of).sum()
}
