//! The server behind us is killed under load, again and again: everyone is told the truth, nothing that may not happen
//! twice happens twice, and no client has to begin anew (SPEC D7, D17).

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::time::sleep;

use super::{Modern, Session, last_message};
use crate::serve::{Served, until};
use crate::support::Workplace;

const CALLERS: usize = 12;

/// How often it is killed here: both ways together 100 times. `scripts/gateway-kills` says how often instead.
fn kills() -> usize {
    let number = std::env::var("STEADYHAND_KILLS").ok();
    number.and_then(|it| it.parse().ok()).unwrap_or(50)
}

/// Whether somebody wants to know how far it is: `scripts/gateway-kills` puts a file there when it is interrupted.
fn is_enough() -> bool {
    let sign = std::env::var_os("STEADYHAND_KILLS_STOP");
    sign.is_some_and(|sign| Path::new(&sign).exists())
}

/// A server that is killed: a program of ours, over HTTP, or else the child of the gateway.
#[derive(Default)]
struct Killed {
    words: Vec<String>,
    program: Option<Child>,
}

impl Killed {
    fn start(&mut self) {
        let Some((program, words)) = self.words.split_first() else {
            return;
        };
        let program = Command::new(program)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        self.program = Some(program.expect("it starts"));
    }

    async fn kill(&mut self, served: &Served) {
        if let Some(mut program) = self.program.take() {
            program.kill().await.expect("it ran");
            return;
        }
        let server = &served.get("/v1/servers").await.json()["servers"][0];
        let pid = server["pid"]
            .as_i64()
            .and_then(|pid| i32::try_from(pid).ok());
        let pid = pid.and_then(Pid::from_raw).expect("it runs");
        // It may just have ended: then it is being started again.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// What the callers have in common.
#[derive(Default)]
struct Load {
    is_over: AtomicBool,
    successes: AtomicUsize,
}

/// How a call ended: none is a success, otherwise the effect that its failure tells of.
type Ended = (String, Option<String>);

/// Calls until it is over, each time with a line of its own; never begins its session anew.
async fn call_on(served: Arc<Served>, load: Arc<Load>, caller: usize) -> Vec<Ended> {
    let session = match caller % 2 {
        0 => Some(Session::begin(&served).await),
        _ => None,
    };
    let mut ended = Vec::new();
    for number in 0.. {
        if load.is_over.load(Ordering::Relaxed) {
            break;
        }
        let line = format!("caller {caller} call {number}");
        let tool = match number % 4 {
            0 => "look",
            _ => "note",
        };
        let params = json!({"name": tool, "arguments": {"line": line}});
        let result = match &session {
            Some(session) => session.ask(&served, "tools/call", params).await["result"].clone(),
            None => {
                let reply = Modern::new("tools/call", params).send(&served).await;
                assert_eq!(reply.status, 200, "{}", reply.text);
                last_message(&reply)["result"].clone()
            }
        };
        assert!(
            result["content"].is_array(),
            "no result of a tool: {result}"
        );
        let effect = effect_of(&result);
        if effect.is_none() {
            assert_eq!(result["content"][0]["text"], line.as_str());
            load.successes.fetch_add(1, Ordering::Relaxed);
        }
        if tool == "note" {
            ended.push((line, effect.clone()));
        }
        // As patient as a program that tries again would be.
        if effect.is_some() {
            sleep(Duration::from_millis(5)).await;
        }
    }
    ended
}

fn effect_of(result: &Value) -> Option<String> {
    if result["isError"] != true {
        return None;
    }
    let failure = &result["_meta"]["io.steadyhand/error"];
    let effect = failure["effect"].as_str();
    Some(
        effect
            .unwrap_or_else(|| panic!("no effect in {result}"))
            .to_owned(),
    )
}

#[allow(clippy::print_stdout)]
async fn survives(way: &str, served: Served, mut killed: Killed, ledger: &Path) {
    let served = Arc::new(served);
    let load = Arc::new(Load::default());
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| tokio::spawn(call_on(Arc::clone(&served), Arc::clone(&load), caller)))
        .collect();
    let mut killed_so_far = 0;
    while killed_so_far < kills() && !is_enough() {
        let before = load.successes.load(Ordering::Relaxed);
        until("calls succeed again", async || {
            let now = load.successes.load(Ordering::Relaxed);
            (now >= before + 2 * CALLERS).then_some(())
        })
        .await;
        // Not always at the same moment of a call.
        sleep(Duration::from_micros(
            1_000 * (killed_so_far as u64 * 7 % 11),
        ))
        .await;
        killed.kill(&served).await;
        killed.start();
        killed_so_far += 1;
    }
    let before = load.successes.load(Ordering::Relaxed);
    until("calls succeed in the end", async || {
        let now = load.successes.load(Ordering::Relaxed);
        (now >= before + 2 * CALLERS).then_some(())
    })
    .await;
    load.is_over.store(true, Ordering::Relaxed);
    let ended = join_all(callers).await;
    let ended = ended
        .into_iter()
        .flat_map(|caller| caller.expect("no panic"));
    let ended: Vec<Ended> = ended.collect();

    let text = std::fs::read_to_string(ledger).expect("the ledger");
    let mut written: HashMap<&str, usize> = HashMap::new();
    for line in text.lines() {
        *written.entry(line).or_default() += 1;
    }
    let mut counts = [0; 3];
    for (line, effect) in &ended {
        let times = written.get(line.as_str()).copied().unwrap_or(0);
        match effect.as_deref() {
            None => assert_eq!(times, 1, "{line}: a success"),
            Some("none") => assert_eq!(times, 0, "{line}: said to have had no effect"),
            Some("unknown") => assert!(times <= 1, "{line}: done {times} times"),
            Some(other) => panic!("{line}: {other} is nothing anybody can know"),
        }
        counts[match effect.as_deref() {
            None => 0,
            Some("none") => 1,
            Some(_) => 2,
        }] += 1;
    }
    let [done, none, unknown] = counts;
    println!(
        "\nkills-row|{way}|{killed_so_far}|{}|{done}|{none}|{unknown}|0",
        ended.len()
    );
    assert!(none + unknown > 0, "no kill hit anything");
}

fn script() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/gateway/killed.py");
    script.display().to_string()
}

/// A free port that nobody gets by chance while the server is away: below those that the system gives out.
fn quiet_port() -> u16 {
    let first = 20_000 + u16::try_from(std::process::id() % 4_000).unwrap_or(0);
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (first..30_000).find(is_free).expect("a free port")
}

async fn knows_note(workplace: Workplace) -> Served {
    let served = Served::in_place(workplace).await;
    until("its tools are there", async || {
        let listed = served.get("/v1/tools").await.json();
        listed.to_string().contains("\"note\"").then_some(())
    })
    .await;
    served
}

#[tokio::test(flavor = "multi_thread")]
async fn d17_a_server_on_stdio_is_killed_50_times_under_load() {
    let workplace = Workplace::new();
    let ledger = workplace.file("ledger");
    workplace.write(
        "steadyhand.toml",
        &format!(
            "[mcp.killed]\ncommand = \"python3\"\nargs = [\"-S\", \"-E\", {:?}, {:?}]\nprefix = false\n\
             protocol = \"legacy\"\nstart = {{ restarts = 4000000, waits = [\"0s\", \"0s\", \"0s\", \"0s\"] }}\n",
            script(),
            ledger.display().to_string()
        ),
    );
    let served = knows_note(workplace).await;
    survives("stdio", served, Killed::default(), &ledger).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d17_a_server_over_http_is_killed_50_times_under_load() {
    let workplace = Workplace::new();
    let ledger = workplace.file("ledger");
    let port = quiet_port().to_string();
    let ledger_word = ledger.display().to_string();
    let words = ["python3", "-S", "-E", &script(), &ledger_word, &port].map(str::to_owned);
    let mut killed = Killed {
        words: words.to_vec(),
        program: None,
    };
    killed.start();
    // A breaker that those opened who were lost together would stay open for as long as this test: but a server that
    // is back has them closed.
    let config = format!(
        "[mcp.killed]\nurl = \"http://127.0.0.1:{port}/mcp\"\nprefix = false\n\
         breaker = {{ failures = 2, cooldown = \"1h\" }}\n"
    );
    workplace.write("steadyhand.toml", &config);
    let served = knows_note(workplace).await;
    survives("HTTP", served, killed, &ledger).await;
}
