//! Measures the systems in turns, so that a busy moment of the machine falls on all of them.

use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::conversation;
use crate::process::{cpu_us, rss_kb};
use crate::systems::{self, System};

const ROUNDS: usize = 7;
const REQUESTS: usize = 2_000;
const STREAMS: usize = 300;
const HELD: usize = 1_000;

pub fn run(steadyhand: &str) {
    let systems = systems::all(steadyhand);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let whole = Bytes::from(conversation::request(false));
        let streamed = Bytes::from(conversation::request(true));
        println!("A valid conversation of {} bytes; medians of {ROUNDS} rounds, the best in brackets.\n", whole.len());
        requests(&systems, &whole).await;
        first_tokens(&systems, &streamed).await;
        held(&systems, &streamed).await;
    });
}

/// CPU and time of a request with a whole answer, one after the other on one connection.
async fn requests(systems: &[System], body: &Bytes) {
    let mut cpu: Vec<Vec<f64>> = vec![Vec::new(); systems.len()];
    let mut time: Vec<Vec<f64>> = vec![Vec::new(); systems.len()];
    for round in 0..=ROUNDS {
        for (index, system) in systems.iter().enumerate() {
            let mut sender = open(system).await;
            let (before, mut times) = (cpu_us(system.pid()), Vec::new());
            for _ in 0..REQUESTS {
                let began = Instant::now();
                let answer = ask(&mut sender, system, body, &[]).await;
                assert_eq!(answer.status(), 200);
                let body = answer.into_body().collect().await.expect("whole").to_bytes();
                assert!(body.starts_with(b"{\"id\":\"msg_1\""));
                times.push(began.elapsed().as_secs_f64() * 1e6);
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            // The first round is for warming up.
            if round > 0 {
                cpu[index].push((cpu_us(system.pid()) - before) / REQUESTS as f64);
                time[index].push(middle(&mut times));
            }
        }
    }
    println!("| one request, whole answer | CPU of the process, µs | against the floor | p50, µs |\n| --- | ---: | ---: | ---: |");
    let floor = best(&cpu[1]);
    for (index, system) in systems.iter().enumerate() {
        let against = match index {
            0 => "–".to_owned(),
            _ => format!("{:.2}", best(&cpu[index]) / floor),
        };
        println!("| {} | {} | {against} | {} |", system.name, both(&mut cpu[index]), both(&mut time[index]));
    }
    println!();
}

/// From the request to the first byte of a stream, of one that comes at once and of one whose words take their time as a
/// model's do, and the CPU of all of it. With all of it at once three programs share the processors, and the kernel has the say.
async fn first_tokens(systems: &[System], body: &Bytes) {
    let mut first: Vec<Vec<f64>> = vec![Vec::new(); systems.len()];
    let mut paced: Vec<Vec<f64>> = vec![Vec::new(); systems.len()];
    let mut cpu: Vec<Vec<f64>> = vec![Vec::new(); systems.len()];
    for round in 0..=ROUNDS {
        for (index, system) in systems.iter().enumerate() {
            let mut slow = Vec::new();
            for _ in 0..STREAMS {
                let mut sender = open(system).await;
                let began = Instant::now();
                let mut answer = ask(&mut sender, system, body, &[("x-stream", "1"), ("x-wait-ms", "20")]).await.into_body();
                answer.frame().await.expect("a piece").expect("no error");
                slow.push(began.elapsed().as_secs_f64() * 1e6);
            }
            let mut sender = open(system).await;
            let (before, mut times) = (cpu_us(system.pid()), Vec::new());
            for _ in 0..STREAMS {
                let began = Instant::now();
                let mut answer = ask(&mut sender, system, body, &[("x-stream", "1")]).await.into_body();
                answer.frame().await.expect("a piece").expect("no error");
                times.push(began.elapsed().as_secs_f64() * 1e6);
                while let Some(piece) = answer.frame().await {
                    piece.expect("no error");
                }
            }
            if round > 0 {
                first[index].push(middle(&mut times));
                paced[index].push(middle(&mut slow));
                cpu[index].push((cpu_us(system.pid()) - before) / STREAMS as f64);
            }
        }
    }
    println!("| a stream of {} events | to the first, µs | all at once, µs | CPU of all of it, µs |\n| --- | ---: | ---: | ---: |", crate::upstream::EVENTS + 2);
    for (index, system) in systems.iter().enumerate() {
        println!("| {} | {} | {} | {} |", system.name, both(&mut paced[index]), both(&mut first[index]), both(&mut cpu[index]));
    }
    println!();
}

/// Streams that are open at once: what each of them takes.
async fn held(systems: &[System], body: &Bytes) {
    println!("| {HELD} streams at once | memory each, KB |\n| --- | ---: |");
    for system in &systems[1..] {
        let before = rss_kb(system.pid());
        let mut open_streams = Vec::new();
        for _ in 0..HELD {
            let mut sender = open(system).await;
            let mut answer = ask(&mut sender, system, body, &[("x-stream", "1"), ("x-wait-ms", "1000")]).await.into_body();
            answer.frame().await.expect("a piece").expect("no error");
            open_streams.push((sender, answer));
        }
        let each = rss_kb(system.pid()).saturating_sub(before) as f64 / HELD as f64;
        println!("| {} | {each:.1} |", system.name);
        drop(open_streams);
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

async fn open(system: &System) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(system.address).await.expect("it listens");
    let _ = stream.set_nodelay(true);
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
    tokio::spawn(async move {
        let _ = connection.await;
    });
    sender
}

async fn ask(sender: &mut SendRequest<Full<Bytes>>, system: &System, body: &Bytes, headers: &[(&str, &str)]) -> hyper::Response<Incoming> {
    let mut request = hyper::Request::post(format!("{}/v1/messages", system.prefix))
        .header("host", system.address.to_string())
        .header("content-type", "application/json")
        .header("x-api-key", "sk-ant-a-key")
        .header("anthropic-version", "2023-06-01");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body.clone())).expect("a request");
    sender.ready().await.expect("a connection");
    sender.send_request(request).await.expect("an answer")
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn best(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn both(values: &mut [f64]) -> String {
    let best = best(values);
    format!("{:.0} ({best:.0})", middle(values))
}
