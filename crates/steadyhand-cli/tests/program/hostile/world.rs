//! The world: one configuration with a tool for every fault, the peers behind it, and the program that serves it.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::peers::Peers;
use super::{commands, functions, servers, web};
use crate::mcp::with_variable;
use crate::serve::{Served, until};
use crate::support::{PATIENCE, Workplace};

/// One tool that misbehaves, and what its callers are promised.
pub(super) struct Fault {
    /// The name it is called by.
    pub(super) tool: String,
    /// What goes wrong, in words.
    pub(super) words: &'static str,
    pub(super) kind: Kind,
    pub(super) args: Value,
    /// `success`, or a code and an effect; more than one where it is up to chance, divided by `|`.
    pub(super) promise: &'static str,
    /// Too costly to be asked again and again.
    pub(super) is_heavy: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Function,
    Command,
    Http,
    McpStdio,
    McpHttp,
}

impl Kind {
    pub(super) fn words(self) -> &'static str {
        match self {
            Kind::Function => "function",
            Kind::Command => "command",
            Kind::Http => "http",
            Kind::McpStdio => "MCP, stdio",
            Kind::McpHttp => "MCP, HTTP",
        }
    }
}

impl Fault {
    pub(super) fn new(
        kind: Kind,
        tool: impl Into<String>,
        words: &'static str,
        promise: &'static str,
    ) -> Fault {
        Fault {
            tool: tool.into(),
            words,
            kind,
            args: json!({}),
            promise,
            is_heavy: false,
        }
    }

    pub(super) fn heavy(mut self) -> Fault {
        self.is_heavy = true;
        self
    }

    pub(super) fn args(mut self, args: Value) -> Fault {
        self.args = args;
        self
    }

    /// Whether this is what was promised. Under load a call may also be refused, which has no effect; and a server that
    /// another call has just taken down is away, and what takes long anyway may take too long.
    pub(super) fn promises(&self, code: &str, effect: &str, is_load: bool) -> bool {
        let got = match code {
            "success" => code.to_owned(),
            _ => format!("{code} {effect}"),
        };
        let mut promises = self.promise.split('|').map(str::trim);
        if promises.any(|promise| promise == got) {
            return true;
        }
        let is_server = matches!(self.kind, Kind::McpStdio | Kind::McpHttp);
        is_load
            && (["CIRCUIT_OPEN none", "OVERLOADED none"].contains(&got.as_str())
                || (is_server && got.starts_with("NETWORK_ERROR "))
                || (self.is_heavy && got == "TIMEOUT unknown"))
    }
}

/// The rows of one kind, and the tables they need in the configuration.
#[derive(Default)]
pub(super) struct Cast {
    pub(super) faults: Vec<Fault>,
    pub(super) config: String,
}

impl Cast {
    pub(super) fn add(&mut self, fault: Fault, table: &str) {
        self.faults.push(fault);
        let _ = writeln!(self.config, "{}", table.trim_end());
    }
}

/// Short times, so that what hangs is over soon; a breaker that opens under load and closes again.
const DEFAULTS: &str = r#"
[server]
approval_wait = "300ms"
history = { path = "state/calls.db", max_size = "64MiB" }

[defaults]
timeout  = "20s"
deadline = "30s"
retry    = { attempts = 2, backoff = "10ms" }
breaker  = { failures = 8, cooldown = "500ms" }
"#;

pub(super) struct World {
    pub(super) served: Served,
    pub(super) faults: Vec<Fault>,
    /// They live as long as the world.
    _peers: Peers,
}

impl World {
    /// Everything is up, or down as it should be.
    pub(super) async fn begin() -> World {
        let peers = Peers::start().await;
        let workplace = Workplace::new();
        for script in commands::SCRIPTS {
            workplace.write(script.0, script.1);
        }
        // Servers that will not start have been well once: their tools are known.
        let well = servers::at_start(&workplace, "0");
        workplace.write("steadyhand.toml", &format!("{DEFAULTS}{}", well.config));
        let served = Served::in_place(workplace).await;
        until_listed(&served, &well.faults).await;
        served.signal(rustix::process::Signal::TERM);
        let workplace = served.stopped().await;

        let casts = [
            functions::cast(),
            commands::cast(),
            web::cast(&peers),
            servers::in_a_call(),
            servers::at_start(&workplace, "1000000"),
            servers::over_http(&peers),
        ];
        let mut config = DEFAULTS.to_owned();
        let mut faults = Vec::new();
        for cast in casts {
            config.push_str(&cast.config);
            faults.extend(cast.faults);
        }
        workplace.write("steadyhand.toml", &config);
        let served = Served::in_place(workplace).await;
        until_listed(&served, &faults).await;
        World {
            served,
            faults,
            _peers: peers,
        }
    }

    /// It ends when it is asked to, and takes everything with it that it started.
    pub(super) async fn end(self) {
        let home = format!("HOME={}\0", self.served.workplace.path().display());
        self.served.signal(rustix::process::Signal::TERM);
        let (code, stderr, workplace) = self.served.left().await;
        // Nothing ran any more, so nothing was cut short.
        assert_eq!(code, Some(0), "{stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        let patience = Instant::now() + PATIENCE;
        loop {
            let left = with_variable(&home);
            if left.is_empty() {
                break;
            }
            assert!(Instant::now() < patience, "left behind: {left:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Those may have cleared their environment.
        let pids = std::fs::read_to_string(workplace.file("pids-grandchild"));
        for pid in pids.unwrap_or_default().lines() {
            let pid = pid.parse().expect("a number");
            until("what it left behind is gone", async || {
                (!crate::mcp::lives(pid)).then_some(())
            })
            .await;
        }
    }
}

/// Every tool that is asked for is known. (One is not meant to be.)
async fn until_listed(served: &Served, faults: &[Fault]) {
    until("all tools are there", async || {
        let listed = served.get("/v1/tools").await.json();
        let tools = listed["tools"].as_array().expect("a list");
        let is_known = |fault: &&Fault| tools.iter().any(|tool| tool["name"] == fault.tool);
        let unknown = faults.iter().filter(|fault| !is_known(fault));
        let unknown: Vec<&str> = unknown.map(|fault| fault.tool.as_str()).collect();
        (unknown.is_empty() || unknown == [functions::NOT_THERE]).then_some(())
    })
    .await;
}
