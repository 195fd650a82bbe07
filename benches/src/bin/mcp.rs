//! What a call to an MCP server on stdio costs its client, here and with rmcp: CPU of this process per call, the
//! server's not counted. Both talk to the same trivial server (this program with `serve`), taking turns.
//!
//! With `start N`: N servers at once, how soon the first call is answered. With `idle N`: what N idle servers cost.

use std::io::{BufRead, Write};
use std::time::Duration;

use futures_util::future::join_all;
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{Peer, RoleClient};
use rmcp::transport::TokioChildProcess;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use steadyhand::{Call, ToolExecutor, ToolManager};
use steadyhand_mcp::{Server, ServerSettings};

const ROUNDS: usize = 15;
const CALLS: usize = 4_000;
const TOGETHER: usize = 64;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| args.get(index).and_then(|n| n.parse().ok()).unwrap_or(50);
    match args.first().map(String::as_str) {
        Some("serve") => serve(),
        Some("start") => runtime().block_on(start(number(1))),
        Some("idle") => runtime().block_on(idle(number(1))),
        Some("only") => runtime().block_on(only(&args[1])),
        _ => runtime().block_on(compare()),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// The trivial server: reads a line, answers it.
fn serve() {
    let (input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in input.lines() {
        let Ok(line) = line else { return };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        let result = match message["method"].as_str() {
            Some("initialize") => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "trivial", "version": "1"}}),
            Some("tools/list") => json!({"tools": [{"name": "echo", "description": "Says it again",
                "annotations": {"readOnlyHint": true},
                "inputSchema": {"type": "object", "required": ["message"], "properties": {"message": {"type": "string"}}}}]}),
            Some("tools/call") => {
                let text = &message["params"]["arguments"]["message"];
                json!({"content": [{"type": "text", "text": text}]})
            }
            _ => json!({}),
        };
        if let Some(id) = message.get("id") {
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
            let _ = writeln!(output, "{answer}");
            let _ = output.flush();
        }
    }
}

fn ours(name: &str) -> Server {
    let program = std::env::current_exe().expect("a path").display().to_string();
    let mut settings = ServerSettings::stdio(name, program, ["serve"]);
    settings.prefix = false;
    Server::new(settings, None)
}

async fn executor(server: &Server) -> ToolExecutor {
    server.start();
    assert!(server.settled(Duration::from_secs(60)).await);
    let tools = ToolManager::new();
    tools.replace_source("trivial", server.tools());
    ToolExecutor::new(tools)
}

async fn theirs() -> rmcp::service::RunningService<RoleClient, ()> {
    let mut command = tokio::process::Command::new(std::env::current_exe().expect("a path"));
    command.arg("serve");
    let transport = TokioChildProcess::new(command).expect("a child");
    ().serve(transport).await.expect("a handshake")
}

async fn call_ours(executor: &ToolExecutor, message: &str) {
    let outcome = executor.execute(Call::new("echo", json!({ "message": message }))).await;
    assert!(outcome.is_success());
}

async fn call_theirs(peer: &Peer<RoleClient>, message: &str) {
    let args = json!({ "message": message });
    let args = args.as_object().cloned().unwrap_or_default();
    let result = peer.call_tool(CallToolRequestParams::new("echo").with_arguments(args)).await;
    assert!(result.is_ok());
}

/// Microseconds of CPU this process has used.
fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

async fn compare() {
    let server = ours("trivial");
    let executor = executor(&server).await;
    let rmcp = theirs().await;
    let peer = rmcp.peer();
    for (payload, message) in [("10 B", "x".repeat(10)), ("10 kB", "x".repeat(10_000))] {
        let mut seconds: [Vec<f64>; 4] = Default::default();
        for _ in 0..ROUNDS {
            let before = cpu_us();
            for _ in 0..CALLS {
                call_ours(&executor, &message).await;
            }
            let between = cpu_us();
            for _ in 0..CALLS {
                call_theirs(peer, &message).await;
            }
            seconds[0].push((between - before) / CALLS as f64);
            seconds[1].push((cpu_us() - between) / CALLS as f64);
            let before = cpu_us();
            for _ in 0..CALLS / TOGETHER {
                join_all((0..TOGETHER).map(|_| call_ours(&executor, &message))).await;
            }
            let between = cpu_us();
            for _ in 0..CALLS / TOGETHER {
                join_all((0..TOGETHER).map(|_| call_theirs(peer, &message))).await;
            }
            let calls = (CALLS / TOGETHER * TOGETHER) as f64;
            seconds[2].push((between - before) / calls);
            seconds[3].push((cpu_us() - between) / calls);
        }
        let [a, b, c, d] = seconds.map(median);
        println!("{payload:>6}  one after another  steadyhand {a:6.2} µs  rmcp {b:6.2} µs  ratio {:.2}", a / b);
        println!("{payload:>6}  64 at a time       steadyhand {c:6.2} µs  rmcp {d:6.2} µs  ratio {:.2}", c / d);
    }
    server.stop().await;
    let _ = rmcp.cancel().await;
}

/// One side alone, for a profiler.
async fn only(side: &str) {
    const MANY: usize = 100_000;
    match side {
        "steadyhand" => {
            let server = ours("trivial");
            let executor = executor(&server).await;
            let before = cpu_us();
            for _ in 0..MANY {
                call_ours(&executor, "x").await;
            }
            println!("{:.2} µs", (cpu_us() - before) / MANY as f64);
            server.stop().await;
        }
        _ => {
            let rmcp = theirs().await;
            let before = cpu_us();
            for _ in 0..MANY {
                call_theirs(rmcp.peer(), "x").await;
            }
            println!("{:.2} µs", (cpu_us() - before) / MANY as f64);
            let _ = rmcp.cancel().await;
        }
    }
}

async fn start(count: usize) {
    let began = tokio::time::Instant::now();
    let servers: Vec<Server> = (0..count).map(|n| ours(&format!("s{n}"))).collect();
    servers.iter().for_each(Server::start);
    let tools = ToolManager::new();
    tools.add(steadyhand::Tool::function("local", "Answers", |_: Value| async move {
        Ok::<_, steadyhand::ToolError>(json!(1))
    })).expect("a tool");
    let local = ToolExecutor::new(tools);
    assert!(local.execute(Call::new("local", json!({}))).await.is_success());
    println!("{count} servers: a local tool answered after {:?}", began.elapsed());
    let first = executor(&servers[count - 1]).await;
    call_ours(&first, "x").await;
    println!("{count} servers: the last one's tool answered after {:?}", began.elapsed());
    join_all(servers.iter().map(|server| server.settled(Duration::from_secs(120)))).await;
    let up = servers.iter().filter(|server| server.state().pid.is_some()).count();
    println!("{count} servers: {up} up after {:?}", began.elapsed());
    join_all(servers.iter().map(Server::stop)).await;
    steadyhand_process::settle(Duration::from_secs(20)).await;
}

async fn idle(count: usize) {
    let servers: Vec<Server> = (0..count).map(|n| ours(&format!("s{n}"))).collect();
    servers.iter().for_each(Server::start);
    join_all(servers.iter().map(|server| server.settled(Duration::from_secs(120)))).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = cpu_us();
    tokio::time::sleep(Duration::from_secs(10)).await;
    println!("{count} idle servers: {:.1} µs of CPU in 10 s", cpu_us() - before);
    join_all(servers.iter().map(Server::stop)).await;
    steadyhand_process::settle(Duration::from_secs(20)).await;
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
