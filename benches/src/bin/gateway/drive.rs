//! Measures systems in turns: calls one after the other, calls on 64 connections, lists, idle sessions.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::System;
use crate::client::Client;
use crate::process::{cpu_us, rss_kb};

const ROUNDS: usize = 5;
const CONNECTIONS: usize = 64;
const SEQUENTIAL: usize = 1_500;
const TOGETHER: usize = 12_800;
const TEXT: &str = "The quick brown fox jumps over the lazy dog, and so on until there are about two hundred bytes of text in this message, which is what a small question or a short answer of a tool usually looks like.";

pub fn run(systems: &[System]) {
    let runtime = runtime();
    let mut all: Vec<Vec<Value>> = vec![Vec::new(); systems.len()];
    for round in 0..=ROUNDS {
        for (system, figures) in systems.iter().zip(&mut all) {
            let figure = runtime.block_on(measure(system));
            // The first round is for warming up.
            if round > 0 {
                figures.push(figure);
            }
            eprintln!("round {round}: {}", system.name);
        }
    }
    let report: Vec<Value> = systems.iter().zip(&all).map(|(system, figures)| summary(&system.name, figures)).collect();
    println!("{}", serde_json::to_string_pretty(&report).expect("JSON"));
}

async fn measure(system: &System) -> Value {
    let mut client = Client::connect(system).await.expect("it can be reached");
    let mut times = Vec::new();
    let mut errors = 0;
    let count = (SEQUENTIAL / system.slower as usize).max(20);
    for number in 0..count {
        let began = Instant::now();
        if client.echo(TEXT).await.is_err() {
            errors += 1;
        }
        // The first few open connections and warm caches.
        if number >= count / 10 {
            times.push(began.elapsed());
        }
    }
    drop(client);
    let each = (TOGETHER / CONNECTIONS / system.slower as usize).max(3);
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        clients.push(Client::connect(system).await.expect("it can be reached"));
    }
    let (began, cpu) = (Instant::now(), system.pid.map(cpu_us));
    let tasks: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            tokio::spawn(async move {
                let (mut times, mut errors) = (Vec::with_capacity(each), 0);
                for _ in 0..each {
                    let began = Instant::now();
                    if client.echo(TEXT).await.is_err() {
                        errors += 1;
                    }
                    times.push(began.elapsed());
                }
                (times, errors)
            })
        })
        .collect();
    let mut together = Vec::new();
    for task in tasks {
        let (times, failed) = task.await.expect("no panic");
        together.extend(times);
        errors += failed;
    }
    let took = began.elapsed();
    // What is written down a moment later belongs to the calls, too.
    tokio::time::sleep(Duration::from_millis(600)).await;
    let calls = together.len() as f64;
    let cpu = system.pid.map(cpu_us).zip(cpu).map(|(after, before)| (after - before) / calls);
    json!({
        "p50_us": percentile(&mut times, 50), "p99_us": percentile(&mut times, 99),
        "calls_per_s": calls / took.as_secs_f64(), "p99_together_ms": percentile(&mut together, 99) / 1e3,
        "cpu_us": cpu, "rss_mb": system.pid.map(|pid| rss_kb(pid) as f64 / 1024.0), "errors": errors,
    })
}

/// tools/list, all pages: how long it takes and what it costs.
pub fn lists(systems: &[System]) {
    let report: Vec<Value> = systems.iter().map(|system| runtime().block_on(list(system))).collect();
    println!("{}", serde_json::to_string_pretty(&report).expect("JSON"));
}

async fn list(system: &System) -> Value {
    let mut client = Client::connect(system).await.expect("it can be reached");
    let tools = client.list().await.expect("a list");
    let count = (300 / system.slower as usize).max(10);
    let (mut times, cpu) = (Vec::new(), system.pid.map(cpu_us));
    for _ in 0..count {
        let began = Instant::now();
        client.list().await.expect("a list");
        times.push(began.elapsed());
    }
    let cpu = system.pid.map(cpu_us).zip(cpu).map(|(after, before)| (after - before) / 1e3 / count as f64);
    json!({"name": system.name, "tools": tools, "p50_ms": percentile(&mut times, 50) / 1e3, "cpu_ms": cpu})
}

/// What an idle session costs: a thousand of them, one call on each.
pub fn sessions(systems: &[System]) {
    let report: Vec<Value> = systems.iter().map(|system| runtime().block_on(hold(system))).collect();
    println!("{}", serde_json::to_string_pretty(&report).expect("JSON"));
}

async fn hold(system: &System) -> Value {
    const SESSIONS: usize = 800;
    let Some(pid) = system.pid else { return Value::Null };
    let (before, began) = (rss_kb(pid), Instant::now());
    let mut held = Vec::new();
    for _ in 0..SESSIONS / system.slower as usize {
        let mut client = Client::connect(system).await.expect("it can be reached");
        client.echo(TEXT).await.expect("an answer");
        held.push(client);
    }
    let per_s = held.len() as f64 / began.elapsed().as_secs_f64();
    let each = (rss_kb(pid) as f64 - before as f64) / held.len() as f64;
    json!({"name": system.name, "held": held.len(), "kb_each": each, "opened_per_s": per_s, "rss_mb": rss_kb(pid) as f64 / 1024.0})
}

fn summary(name: &str, figures: &[Value]) -> Value {
    let column = |key: &str| -> Vec<f64> {
        let mut values: Vec<f64> = figures.iter().filter_map(|figure| figure[key].as_f64()).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let best = |key: &str| column(key).first().copied();
    let middle = |key: &str| column(key).get(figures.len() / 2).copied();
    json!({
        "name": name,
        "p50_us": {"best": best("p50_us"), "median": middle("p50_us")},
        "p99_us": {"best": best("p99_us"), "median": middle("p99_us")},
        "calls_per_s": {"best": column("calls_per_s").last(), "median": middle("calls_per_s")},
        "p99_together_ms": {"best": best("p99_together_ms"), "median": middle("p99_together_ms")},
        "cpu_us": {"best": best("cpu_us"), "median": middle("cpu_us")},
        "rss_mb": column("rss_mb").last(),
        "errors": column("errors").iter().sum::<f64>(),
    })
}

pub fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort_unstable();
    let place = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(place).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}
