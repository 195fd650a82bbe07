//! The ways in: REST, MCP over HTTP, MCP on stdio, the command line. Over each, every fault is asked for once.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::functions::NOT_THERE;
use super::world::{Fault, Kind, World};
use crate::book::root;
use crate::gateway::stdio::Client;
use crate::gateway::{Modern, last_message};
use crate::serve::{Served, program};
use crate::support::PATIENCE;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Surface {
    Rest,
    Mcp,
    Stdio,
    Cli,
}

impl fmt::Display for Surface {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Surface::Rest => "REST",
            Surface::Mcp => "/mcp",
            Surface::Stdio => "mcp-stdio",
            Surface::Cli => "CLI",
        })
    }
}

/// How a call ended, as its caller was told.
pub(super) struct Got {
    /// `success`, or the code of the failure.
    pub(super) code: String,
    pub(super) effect: String,
    /// The words for people and programs, all of them.
    words: String,
    /// What is wrong with how it was told.
    pub(super) complaints: Vec<String>,
    is_fallback: bool,
    pub(super) took: Duration,
}

impl Got {
    /// Out of an outcome or the error of one.
    fn read(error: Option<&Value>, words: String, took: Duration) -> Got {
        let text = |name: &str| {
            let text = error.and_then(|error| error[name].as_str());
            text.unwrap_or_default().to_owned()
        };
        Got {
            code: error.map_or_else(|| "success".to_owned(), |_| text("code")),
            effect: text("effect"),
            words,
            complaints: Vec::new(),
            is_fallback: false,
            took,
        }
    }

    fn verdict(&self) -> String {
        let fallback = if self.is_fallback { ", fallback" } else { "" };
        match self.code.as_str() {
            "success" => "success".to_owned(),
            code => format!("{code}, {}{fallback}", self.effect),
        }
    }
}

/// Asks for every fault once over one surface; each must be as promised. Prints the rows of the table.
pub(super) async fn ask_for_everything(world: &World, surface: Surface) {
    let mut all: Vec<(&Fault, Got)> = match surface {
        Surface::Stdio => over_stdio(world).await,
        Surface::Rest | Surface::Mcp | Surface::Cli => {
            let asked = world
                .faults
                .iter()
                .map(async |fault| (fault, ask(&world.served, surface, fault).await));
            stream::iter(asked).buffer_unordered(6).collect().await
        }
    };
    assert_eq!(all.len(), world.faults.len(), "one outcome each");
    all.sort_by_key(|(fault, _)| (fault.kind, fault.tool.clone(), fault.words));
    let mut otherwise = Vec::new();
    for (fault, got) in &all {
        if !fault.promises(&got.code, &got.effect, false) {
            otherwise.push(format!(
                "{} ({}): promised {}, got {}: {}",
                fault.tool,
                fault.words,
                fault.promise,
                got.verdict(),
                got.words
            ));
        }
        otherwise.extend(got.complaints.iter().cloned());
        println!(
            "\nworld-row|{}|{}|{surface}|{}|{:.2} s",
            fault.kind.words(),
            fault.words,
            got.verdict(),
            got.took.as_secs_f64()
        );
    }
    assert!(otherwise.is_empty(), "{surface}: {otherwise:#?}");
}

/// One call. Whatever is wrong with how it is told fails the test.
pub(super) async fn ask(served: &Served, surface: Surface, fault: &Fault) -> Got {
    let asked = async {
        match surface {
            Surface::Rest => rest(served, fault).await,
            Surface::Mcp => mcp(served, fault).await,
            Surface::Cli => cli(served, fault).await,
            Surface::Stdio => unreachable!("a client of its own asks"),
        }
    };
    let got = timeout(PATIENCE, asked).await;
    got.unwrap_or_else(|_| panic!("{surface}, {}: hangs", fault.tool))
}

async fn rest(served: &Served, fault: &Fault) -> Got {
    let began = Instant::now();
    let call = json!({"name": fault.tool, "args": fault.args});
    let reply = served.post("/v1/calls", call).await;
    let took = began.elapsed();
    assert_eq!(reply.status, 200, "{}: {}", fault.tool, reply.text);
    let outcome = reply.json();
    assert_eq!(outcome["toolName"], fault.tool.as_str(), "{outcome}");
    assert!(outcome["callId"].is_string() && outcome["executionTime"].is_number());
    let mut got = of_outcome(&outcome, took);
    got.is_fallback = outcome["fallbackUsed"] == true;
    if let Some(error) = outcome.get("error") {
        got.complaints = complaints(fault, error);
    }
    got
}

fn of_outcome(outcome: &Value, took: Duration) -> Got {
    Got::read(outcome.get("error"), outcome["error"].to_string(), took)
}

/// The thing, the place and the next step: its own words for who repairs it, friendly ones for who waits for it, and what
/// a program needs to know before it tries again.
fn complaints(fault: &Fault, error: &Value) -> Vec<String> {
    let text = |name: &str| error[name].as_str().unwrap_or_default();
    let (own, friendly) = (text("message"), text("userMessage"));
    // Arguments that do not fit are named instead of the tool that does not want them.
    let named = match text("code") {
        "VALIDATION_ERROR" => "city",
        _ => &fault.tool,
    };
    let checks = [
        (!own.trim().is_empty(), "it says nothing"),
        (friendly.contains(named), "it is not named"),
        (own != friendly, "the same twice"),
        (error["retryable"].is_boolean(), "again or not?"),
        // `steadyhand explain CODE`, and a page of the book.
        (says_what_to_do(text("code")), "what is to be done?"),
        (
            ["none", "unknown", "done"].contains(&text("effect")),
            "no effect",
        ),
        (states(friendly, text("effect")), "its effect is not stated"),
    ];
    let broken = checks.iter().filter(|(is_right, _)| !is_right);
    broken
        .map(|(_, what)| format!("{}: {what}: {error}", fault.tool))
        .collect()
}

/// Whether a text states this effect, and no other (SPEC T01).
fn states(text: &str, effect: &str) -> bool {
    let said = [
        ("none", text.contains("It was not run.")),
        (
            "done",
            text.contains("It ran, and failed.") || text.contains("It ran to its end;"),
        ),
        (
            "unknown",
            text.contains("It may have run; check before trying again"),
        ),
    ];
    said.iter()
        .all(|(name, is_said)| *is_said == (*name == effect))
}

fn says_what_to_do(code: &str) -> bool {
    let page = root().join(format!("docs/reference/errors/{code}.md"));
    std::fs::read_to_string(page).is_ok_and(|text| text.contains("## What to do"))
}

async fn mcp(served: &Served, fault: &Fault) -> Got {
    let began = Instant::now();
    let params = json!({"name": fault.tool, "arguments": fault.args});
    let request = Modern::of("tools/call", params, json!({}));
    let reply = request.send(served).await;
    let took = began.elapsed();
    of_message(fault, &last_message(&reply), took)
}

fn of_message(fault: &Fault, answer: &Value, took: Duration) -> Got {
    if fault.tool == NOT_THERE {
        // The protocol has an error of its own for this one.
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(NOT_THERE), "{answer}");
        let error = json!({"code": "TOOL_NOT_FOUND", "effect": "none"});
        return Got::read(Some(&error), message.to_owned(), took);
    }
    let result = &answer["result"];
    // What a server says passes word for word: one of them says a text where a list belongs.
    assert!(!result["content"].is_null(), "{}: {answer}", fault.tool);
    if result["isError"] != true {
        return Got::read(None, String::new(), took);
    }
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    assert!(!text.trim().is_empty(), "{answer}");
    let error = &result["_meta"]["io.steadyhand/error"];
    let mut got = Got::read(Some(error), text.to_owned(), took);
    got.complaints = complaints(fault, error);
    // A server's own "no" passes as it is (SPEC D19).
    let is_from_server = matches!(fault.kind, Kind::McpStdio | Kind::McpHttp);
    let is_own_no = is_from_server && got.code == "TOOL_EXECUTION_ERROR" && got.effect == "done";
    if !is_own_no && !states(text, &got.effect) {
        let complaint = format!("{}: what the model reads has no effect: {text}", fault.tool);
        got.complaints.push(complaint);
    }
    got
}

async fn cli(served: &Served, fault: &Fault) -> Got {
    // On stdin: an argument of 500 kB is more than a command line takes.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = format!("arguments-{}.json", NUMBER.fetch_add(1, Ordering::Relaxed));
    served.workplace.write(&name, &fault.args.to_string());
    let arguments = std::fs::File::open(served.workplace.file(&name)).expect("just written");
    let words = ["call", &fault.tool, "-", "--json"];
    let began = Instant::now();
    let mut call = program(&served.workplace, &words);
    let ended = call.stdin(arguments).output().await;
    let took = began.elapsed();
    let ended = ended.expect("it runs");
    let stdout = String::from_utf8_lossy(&ended.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    let outcome: Value = serde_json::from_str(&stdout)
        .unwrap_or_else(|error| panic!("{}: {error}: {stdout}{stderr}", fault.tool));
    let mut got = of_outcome(&outcome, took);
    got.is_fallback = outcome["fallbackUsed"] == true;
    let is_fine = got.code == "success" || got.is_fallback;
    assert_eq!(ended.status.success(), is_fine, "{}: {stderr}", fault.tool);
    if !is_fine {
        let line = stderr.lines().rev().find(|line| line.starts_with('{'));
        let line = line.unwrap_or_else(|| panic!("{}: no error in {stderr}", fault.tool));
        let error = &serde_json::from_str::<Value>(line).expect("JSON")["error"];
        assert_eq!(error["code"], got.code.as_str(), "{stderr}");
        let text = |name: &str| error[name].as_str().unwrap_or_default();
        got.complaints = complaints(fault, &outcome["error"]);
        if !text("message").contains(&fault.tool) || text("help").is_empty() {
            let complaint = format!("{}: no name or no next step: {error}", fault.tool);
            got.complaints.push(complaint);
        }
    }
    got
}

/// A client that starts us, and asks for everything at once. Its servers are its own.
async fn over_stdio(world: &World) -> Vec<(&Fault, Got)> {
    let mut client = Stdio::begin(world).await;
    client.warm_up(world).await;
    let began = Instant::now();
    for (number, fault) in world.faults.iter().enumerate() {
        client.send(number as u64 + 1, fault).await;
    }
    let mut answers = HashMap::new();
    while answers.len() < world.faults.len() {
        let answer = client.0.next().await;
        let Some(id) = answer["id"].as_u64() else {
            continue;
        };
        let twice = answers.insert(id, (answer, began.elapsed()));
        assert!(twice.is_none(), "two answers to one call");
    }
    let mut all = Vec::new();
    for (number, fault) in world.faults.iter().enumerate() {
        let (answer, took) = &answers[&(number as u64 + 1)];
        all.push((fault, of_message(fault, answer, *took)));
    }
    client.0.end().await;
    all
}

/// A client on stdio that has said hello.
pub(super) struct Stdio(Client);

impl Stdio {
    pub(super) async fn begin(world: &World) -> Stdio {
        let mut client = Client::of(world.served.workplace.shared());
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        client.ask(0, "initialize", hello).await;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.send(&ready).await;
        Stdio(client)
    }

    /// Servers whose calls have little time are up before these come.
    async fn warm_up(&mut self, world: &World) {
        let is_hasty = |fault: &&Fault| {
            let is_server = matches!(fault.kind, Kind::McpStdio | Kind::McpHttp);
            is_server && fault.promise == "TIMEOUT unknown"
        };
        let mut id = 1_000_000;
        for fault in world.faults.iter().filter(is_hasty) {
            let server = fault.tool.split("__").next().unwrap_or_default();
            let echo = json!({"name": format!("{server}__echo"), "arguments": {"message": "up"}});
            let patience = Instant::now() + PATIENCE;
            loop {
                id += 1;
                let answer = self.0.ask(id, "tools/call", echo.clone()).await;
                if answer["result"]["isError"] != true {
                    break;
                }
                assert!(Instant::now() < patience, "{server} is not up: {answer}");
            }
        }
    }

    async fn send(&mut self, id: u64, fault: &Fault) {
        let params = json!({"name": fault.tool, "arguments": fault.args});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        self.0.send(&call).await;
    }

    pub(super) async fn call(&mut self, id: u64, fault: &Fault) -> Got {
        let began = Instant::now();
        self.send(id, fault).await;
        let answer = self.0.answer(&json!(id)).await;
        of_message(fault, &answer, began.elapsed())
    }

    pub(super) async fn end(self) {
        self.0.end().await;
    }
}
