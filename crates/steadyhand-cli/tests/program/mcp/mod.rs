//! MCP servers as people and programs meet them: through the commands, the configuration and REST.

mod calls;
mod clashes;
mod commands;
mod editing;
mod failing;
mod importing;
mod leaving;
mod naming;
mod noise;
mod parameters;
mod reload;
pub(crate) mod remote;
mod repeating;
mod secrets;
mod served;
mod starting;
mod tasks;
mod waited;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use tokio::time::Instant;

use steadyhand_cli::extensions::EXTENSIONS;
use steadyhand_config::{Configuration, Surroundings};
use steadyhand_runtime::runtime::{Options, Runtime};

use crate::support::{PATIENCE, Workplace};

/// A place to work in, and an eye on what is left running of it.
pub(crate) struct Bench {
    workplace: Workplace,
}

impl std::ops::Deref for Bench {
    type Target = Workplace;

    fn deref(&self) -> &Workplace {
        &self.workplace
    }
}

impl Bench {
    /// A folder with this `steadyhand.toml`.
    pub(crate) fn with(config: &str) -> Bench {
        Bench {
            workplace: Workplace::with_config(config),
        }
    }

    /// An empty folder.
    pub(crate) fn empty() -> Bench {
        Bench {
            workplace: Workplace::new(),
        }
    }

    /// Everything that was started from here is gone: it would have this folder as its home.
    pub(crate) fn assert_nobody_left(&self) {
        let mark = format!("HOME={}\0", self.path().display());
        let until = Instant::now() + PATIENCE;
        loop {
            let left = with_variable(&mark);
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < until, "left behind: {left:?}");
            pause();
        }
    }

    pub(crate) fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.file(file)).unwrap_or_default()
    }
}

/// The command lines of processes whose environment holds this.
pub(crate) fn with_variable(mark: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("a Linux system");
    processes
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let environment = std::fs::read(path.join("environ")).ok()?;
            let command = std::fs::read(path.join("cmdline")).ok()?;
            let has_it = String::from_utf8_lossy(&environment).contains(mark);
            // A process that is dead and not buried has no command line.
            (has_it && !command.is_empty())
                .then(|| String::from_utf8_lossy(&command).replace('\0', " "))
        })
        .collect()
}

fn pause() {
    std::thread::park_timeout(Duration::from_millis(20));
}

/// The tools of a bench, in this process.
async fn started(bench: &Bench) -> Runtime {
    let surroundings = Surroundings::of_this_process();
    let file = bench.file("steadyhand.toml");
    let configuration =
        Configuration::load(Some(&file), &surroundings, &EXTENSIONS).expect("a right file");
    let mut options = Options::new(surroundings, &EXTENSIONS);
    options.state = bench.file("state");
    Runtime::start(configuration, options).await
}

/// Looks until it is so.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let patience = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < patience, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether a process is there and not dead.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Python itself: what is on PATH may be a script that sets variables of its own.
pub(crate) fn python() -> &'static str {
    static PYTHON: LazyLock<String> = LazyLock::new(|| {
        let output = std::process::Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .output()
            .expect("python3 is installed: ./test sees to that");
        String::from_utf8(output.stdout)
            .expect("a path")
            .trim()
            .to_owned()
    });
    &PYTHON
}

/// The hostile server's script.
fn script() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = script.join("../steadyhand-mcp/tests/hostile/server.py");
    let script = script.canonicalize().expect("the hostile server");
    script.display().to_string()
}

/// A `[mcp.NAME]` table with the hostile server in one mode; short waits, and files for what it remembers.
pub(crate) fn hostile(name: &str, mode: &str) -> String {
    let words: Vec<String> = mode.split(' ').map(|word| format!("{word:?}")).collect();
    format!(
        r#"
[mcp.{name}]
command = {:?}
args = ["-S", "-E", {:?}, {}]
start.waits = ["0s", "20ms", "20ms"]
start.timeout = "10s"
env.HOSTILE_LEDGER = "ledger-{name}"
env.HOSTILE_PIDS = "pids-{name}"
"#,
        python(),
        script(),
        words.join(", ")
    )
}

/// A server whose tools, under their own names, answer with its name; it begins to read after so many seconds.
pub(crate) fn named(name: &str, seconds: &str, tools: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/mcp/named_server.py");
    let script = script.display().to_string();
    let words = ["-S", "-E", &script, name, seconds].into_iter();
    let words: Vec<&str> = words.chain(tools.split_whitespace()).collect();
    let python = python();
    format!("\n[mcp.{name}]\ncommand = {python:?}\nargs = {words:?}\nprefix = false\n")
}

/// A server that has not started so many times when it does: the same one for all that is kept of it.
fn broken_from_now_on(name: &str, times: u32) -> String {
    hostile(name, "exit1_before_init")
        + &format!("env.HOSTILE_STATE = \"shown\"\nenv.HOSTILE_TIMES = \"{times}\"\n")
}

/// The hostile server as a command line.
fn hostile_command(mode: &str) -> String {
    format!("{} -S -E {} {mode}", python(), script())
}

/// A program that `./test` installs below `target/peers`.
fn peer(path: &str) -> PathBuf {
    let ancestors = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut found = ancestors
        .map(|folder| folder.join("target/peers").join(path))
        .filter(|path| path.exists());
    found.next().unwrap_or_else(|| {
        panic!("target/peers/{path} is not installed: run ./test, or: . scripts/peers.sh && install_peers target/peers")
    })
}

/// A server of the MCP project, from npm.
fn npm(server: &str) -> String {
    let path = peer(&format!("mcp-npm/node_modules/.bin/mcp-server-{server}"));
    path.display().to_string()
}
