//! What a call over REST costs: `steadyhand serve` with everything on, beside an axum route that parses and answers
//! the same JSON. CPU time of the server's threads is the figure; then memory at rest, and the time to be ready.
//!
//! `rest PATH-OF-STEADYHAND [--json]`; it starts itself with `--floor` as the other server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use axum::Json;
use axum::routing::post;
use serde_json::{Value, json};

const ROUNDS: usize = 9;
const CALLS_PER_ROUND: usize = 6_000;
const CONNECTIONS: usize = 4;
const STARTS: usize = 20;
const BODY: &str = r#"{"name":"echo","args":{"text":"hello","count":3}}"#;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--floor") {
        return floor();
    }
    let program = arguments.first().expect("the path of steadyhand").clone();
    let folder = std::env::temp_dir().join(format!("steadyhand-rest-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let starts: Vec<Duration> = (0..STARTS).map(|_| Served::ours(&program, &folder).ready).collect();
    let servers = [
        Served::floor(),
        Served::ours(&program, &folder),
    ];
    std::thread::sleep(Duration::from_secs(2));
    let rss_kb = servers[1].rss_kb();
    let mut cpu_ns: [Vec<f64>; 2] = Default::default();
    for round in 0..=ROUNDS {
        for (server, figures) in servers.iter().zip(&mut cpu_ns) {
            let cost = server.block();
            // The first round is for warming up.
            if round > 0 {
                figures.push(cost);
            }
        }
    }
    let rss_after_kb = servers[1].rss_kb();
    let mut starts: Vec<f64> = starts.iter().map(|took| took.as_secs_f64() * 1e3).collect();
    starts.sort_by(f64::total_cmp);
    for figures in &mut cpu_ns {
        figures.sort_by(f64::total_cmp);
    }
    let [floor, ours] = &cpu_ns;
    let middle = |figures: &[f64]| figures[figures.len() / 2] / 1e3;
    let least = |figures: &[f64]| figures[0] / 1e3;
    let report = json!({
        "axum_us": {"min": least(floor), "median": middle(floor)},
        "steadyhand_us": {"min": least(ours), "median": middle(ours)},
        "ratio": {"min": least(ours) / least(floor), "median": middle(ours) / middle(floor)},
        "idle_rss_mb": rss_kb as f64 / 1024.0,
        "rss_after_mb": rss_after_kb as f64 / 1024.0,
        "ready_ms": {"min": starts[0], "median": starts[starts.len() / 2], "max": starts[starts.len() - 1]},
        "calls": CALLS_PER_ROUND * CONNECTIONS * (ROUNDS + 1),
    });
    println!("{}", serde_json::to_string_pretty(&report).expect("JSON"));
    drop(servers);
    let _ = std::fs::remove_dir_all(&folder);
}

/// An axum route that reads the call and answers with an outcome of the same shape.
fn floor() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        println!("{}", json!({"address": listener.local_addr().expect("bound").to_string()}));
        let answer = async |Json(call): Json<Value>| {
            Json(json!({
                "toolName": call["name"],
                "callId": "01a1e346-44fc-7a36-8b7d-cfe84751b4e8",
                "status": "success",
                "output": {"echo": call["args"]},
                "executionTime": 0.26235,
                "attempts": 1,
            }))
        };
        let router = axum::Router::new().route("/v1/calls", post(answer));
        axum::serve(listener, router).await.expect("it serves");
    });
}

struct Served {
    process: Child,
    address: String,
    /// From its start to its first answer.
    ready: Duration,
}

impl Served {
    fn floor() -> Served {
        let this = std::env::current_exe().expect("this program");
        Served::start(Command::new(this).arg("--floor"))
    }

    fn ours(program: &str, folder: &std::path::Path) -> Served {
        Served::start(
            Command::new(program)
                .args(["serve", "--json", "--listen", "127.0.0.1:0"])
                .current_dir(folder)
                .env("HOME", folder)
                .env_remove("XDG_STATE_HOME"),
        )
    }

    fn start(command: &mut Command) -> Served {
        let began = Instant::now();
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let mut stdout = BufReader::new(process.stdout.take().expect("a pipe"));
        stdout.read_line(&mut line).expect("a line");
        let said: Value = serde_json::from_str(&line).expect("JSON");
        let mut served = Served {
            process,
            address: said["address"].as_str().expect("an address").to_owned(),
            ready: Duration::ZERO,
        };
        served.connection().call();
        served.ready = began.elapsed();
        served
    }

    fn connection(&self) -> Connection {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        Connection {
            request: format!(
                "POST /v1/calls HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{BODY}",
                self.address,
                BODY.len()
            ),
            stream,
        }
    }

    /// CPU nanoseconds of the server for one call, over a block of calls on some connections.
    fn block(&self) -> f64 {
        let before = self.cpu_ns();
        std::thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                scope.spawn(|| {
                    let mut connection = self.connection();
                    (0..CALLS_PER_ROUND).for_each(|_| connection.call());
                });
            }
        });
        // What is written down a moment later belongs to the calls, too.
        std::thread::sleep(Duration::from_millis(500));
        let calls = (CALLS_PER_ROUND * CONNECTIONS) as f64;
        (self.cpu_ns() - before) as f64 / calls
    }

    /// Of all its threads, as the scheduler counts it.
    fn cpu_ns(&self) -> u64 {
        let tasks = format!("/proc/{}/task", self.process.id());
        let of_task = |task: std::fs::DirEntry| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        };
        let tasks = std::fs::read_dir(tasks).expect("it runs");
        tasks.filter_map(|task| of_task(task.ok()?)).sum()
    }

    fn rss_kb(&self) -> u64 {
        let path = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let size = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        size.expect("a size")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Connection {
    stream: TcpStream,
    request: String,
}

impl Connection {
    /// One call and its whole answer.
    fn call(&mut self) {
        self.stream.write_all(self.request.as_bytes()).expect("sent");
        let mut buffer = [0; 4096];
        let mut read = 0;
        loop {
            read += self.stream.read(&mut buffer[read..]).expect("an answer");
            let text = String::from_utf8_lossy(&buffer[..read]);
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            assert!(head.starts_with("HTTP/1.1 200"), "{text}");
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())
                .expect("a length");
            if body.len() >= length {
                return;
            }
        }
    }
}
