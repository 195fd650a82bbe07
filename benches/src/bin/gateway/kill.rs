//! The server behind a gateway is killed under load: who is told, how soon, and how soon all are well again.
//!
//! The file names the system, and how its upstream is started again; without that the gateway has to do it.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::System;
use crate::client::{Client, Failed};
use crate::drive::{percentile, runtime};
use crate::process::is_upstream;

const CALLERS: usize = 32;
const WORK_MS: u64 = 300;
const BEFORE: Duration = Duration::from_secs(2);
const OUTAGE: Duration = Duration::from_secs(2);
const AFTER: Duration = Duration::from_secs(8);

#[derive(Deserialize)]
struct Plan {
    #[serde(flatten)]
    system: System,
    /// The upstream over HTTP: its address and the command that starts it. None: a child of the gateway.
    upstream: Option<Upstream>,
}

#[derive(Deserialize)]
struct Upstream {
    address: String,
    command: Vec<String>,
}

/// One call of one caller.
struct Seen {
    began: Instant,
    ended: Instant,
    result: Result<(), Failed>,
}

pub fn run(path: &str) {
    let text = std::fs::read_to_string(path).expect("the file of plans");
    let plans: Vec<Plan> = serde_json::from_str(&text).expect("a list of plans");
    let report: Vec<Value> = plans.iter().map(|plan| runtime().block_on(try_out(plan))).collect();
    println!("{}", serde_json::to_string_pretty(&report).expect("JSON"));
}

async fn try_out(plan: &Plan) -> Value {
    let mut server = plan.upstream.as_ref().map(|upstream| start(&upstream.command));
    if let Some(upstream) = &plan.upstream {
        reachable(&upstream.address).await;
    }
    usable(&plan.system).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        let client = Client::connect(&plan.system).await.expect("it can be reached");
        callers.push(tokio::spawn(call_on(client, Arc::clone(&is_over))));
    }
    tokio::time::sleep(BEFORE).await;
    let killed = Instant::now();
    match &mut server {
        Some(server) => server.kill().expect("it ran"),
        None => kill_child(plan.system.pid.expect("the gateway")),
    }
    let mut back = killed;
    if let (Some(server), Some(upstream)) = (&mut server, &plan.upstream) {
        let _ = server.wait();
        tokio::time::sleep(OUTAGE).await;
        *server = start(&upstream.command);
        reachable(&upstream.address).await;
        back = Instant::now();
    }
    tokio::time::sleep(AFTER).await;
    is_over.store(true, Ordering::Relaxed);
    let (mut told, mut outage, mut well) = (Vec::new(), Vec::new(), Vec::new());
    let (mut lost, mut silent, mut again) = (0, 0, 0);
    for caller in callers {
        let (seen, initialised) = caller.await.expect("no panic");
        again += usize::from(initialised > 0);
        for one in &seen {
            let in_flight = one.began < killed && one.ended > killed;
            match &one.result {
                Err(why) if in_flight => {
                    lost += 1;
                    silent += usize::from(*why == Failed::Silence);
                    told.push(one.ended - killed);
                }
                Err(_) if one.began >= killed && one.ended < back => outage.push(one.ended - one.began),
                _ => {}
            }
        }
        let first = seen.iter().find(|one| one.result.is_ok() && one.began >= killed && one.ended > back);
        let work = Duration::from_millis(WORK_MS);
        well.extend(first.map(|one| (one.ended - back).saturating_sub(work)));
    }
    if let Some(mut server) = server {
        let _ = server.kill();
        let _ = server.wait();
    }
    json!({
        "name": plan.system.name, "in_flight_lost": lost, "silent": silent,
        "told_ms": {"p50": percentile(&mut told, 50) / 1e3, "max": percentile(&mut told, 100) / 1e3},
        "outage_ms": {"calls": outage.len(), "p50": percentile(&mut outage, 50) / 1e3, "max": percentile(&mut outage, 100) / 1e3},
        "well_ms": {"callers": well.len(), "first": percentile(&mut well, 0) / 1e3, "all": percentile(&mut well, 100) / 1e3},
        "re_initialised": again,
    })
}

/// Calls until it is over. A caller that is told that its session is unknown initialises, as the protocol says.
async fn call_on(mut client: Client, is_over: Arc<AtomicBool>) -> (Vec<Seen>, usize) {
    let (mut seen, mut initialised) = (Vec::new(), 0);
    while !is_over.load(Ordering::Relaxed) {
        let began = Instant::now();
        let result = client.sleep(WORK_MS).await;
        let failed = result.clone().err();
        seen.push(Seen {
            began,
            ended: Instant::now(),
            result,
        });
        let Some(failed) = failed else { continue };
        // As patient as a program that tries again would be.
        tokio::time::sleep(Duration::from_millis(20)).await;
        match failed {
            Failed::Connection | Failed::Silence => {
                let _ = client.reconnect().await;
            }
            Failed::Status(404) => {
                initialised += 1;
                let _ = client.initialize().await;
            }
            _ => {}
        }
    }
    (seen, initialised)
}

fn start(command: &[String]) -> Child {
    let mut process = Command::new(&command[0]);
    process.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    process.spawn().expect("the upstream starts")
}

async fn reachable(address: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(address).await.is_err() {
        assert!(Instant::now() < until, "{address} does not listen");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Waits until a call goes through: the gateway was there before its server, and may have given it up meanwhile.
async fn usable(system: &System) {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        if let Ok(mut client) = Client::connect(system).await
            && client.sleep(1).await.is_ok()
        {
            return;
        }
        assert!(Instant::now() < until, "no call goes through {}", system.name);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn kill_child(gateway: u32) {
    let children = format!("/proc/{gateway}/task");
    let tasks = std::fs::read_dir(children).expect("the gateway runs").flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok()).collect::<Vec<_>>().join(" ");
    let mut pids: Vec<u32> = children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    // A wrapper may stand between.
    let below: Vec<u32> = pids.iter().flat_map(|pid| crate::process::tree(*pid)).collect();
    pids.extend(below);
    let child = pids.into_iter().find(|pid| is_upstream(*pid)).expect("a child on stdio");
    let pid = Pid::from_raw(child as i32).expect("a process id");
    kill_process(pid, Signal::KILL).expect("it was there");
}
