//! The history of calls through its surface, on real files: what it keeps, how it is searched, what it survives.

mod broken;
mod calls;
mod crash;
mod faults;
mod filters;
mod kept_keys;
mod key_shares;
mod keys;
mod pages;
mod retention;
mod swapped;
mod trends;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::testing::script;
use steadyhand::{Call, Outcome, Tool, ToolError, ToolExecutor, ToolManager};
use steadyhand_store::history::{
    CallRecord, CallSummary, Filter, HealthState, History, HistoryOptions, Page,
};

use crate::support::PATIENCE;

/// A history in a folder of its own, and an executor it writes down.
struct Place {
    folder: tempfile::TempDir,
    history: History,
    executor: ToolExecutor,
}

impl Place {
    fn new(tools: impl IntoIterator<Item = Tool>) -> Place {
        Place::with(tools, |_| {})
    }

    fn with(
        tools: impl IntoIterator<Item = Tool>,
        change: impl FnOnce(&mut HistoryOptions),
    ) -> Place {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let mut options = HistoryOptions::new(folder.path().join("calls.db"));
        change(&mut options);
        let history = History::open(options);
        let executor = executor(tools);
        history.attach(&executor).expect("a thread");
        Place {
            folder,
            history,
            executor,
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("calls.db")
    }

    async fn run(&self, call: Call) -> Outcome {
        self.executor.execute(call).await
    }

    fn flush(&self) {
        assert!(self.history.flush(PATIENCE), "{:?}", self.history.health());
    }

    /// What is kept of a call that must be there.
    fn record(&self, id: &str) -> CallRecord {
        self.flush();
        let found = self.history.call(id).expect("a history that can be read");
        found.unwrap_or_else(|| panic!("no call {id}"))
    }

    fn page(&self, words: &str) -> Page {
        let filter =
            Filter::parse(words, steadyhand::clock::wall_ms()).expect("words that mean something");
        self.flush();
        self.history
            .page(&filter, None, 1000)
            .expect("a history that can be read")
    }

    /// The ids of the calls these words mean, the newest first.
    fn ids(&self, words: &str) -> Vec<String> {
        self.page(words)
            .calls
            .into_iter()
            .map(|call| call.id)
            .collect()
    }
}

fn executor(tools: impl IntoIterator<Item = Tool>) -> ToolExecutor {
    let manager = ToolManager::new();
    let refused = manager.add_all(tools);
    assert!(refused.is_empty(), "{refused:?}");
    ToolExecutor::new(manager)
}

/// A tool that gives its arguments back.
fn echo() -> Tool {
    let echo = |args: Value| async move { Ok::<Value, ToolError>(args) };
    Tool::function("echo", "Gives its arguments back", echo)
}

fn ill() -> Tool {
    script("ill")
        .fails(ToolError::answer("it has a cold"))
        .tool()
}

fn call(id: &str, name: &str) -> Call {
    Call::new(name, json!({})).id(id)
}

fn ids(calls: &[CallSummary]) -> Vec<&str> {
    calls.iter().map(|call| call.id.as_str()).collect()
}

/// Looks again and again until it is so.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = tokio::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it never came to this: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn until_degraded(history: &History) {
    until("history says that it cannot write", || {
        history.health().state == HealthState::Degraded
    })
    .await;
}

async fn until_ok(history: &History) {
    until("history says that it can write", || {
        history.health().state == HealthState::Ok
    })
    .await;
}

const ROLE: &str = "STEADYHAND_TEST_ROLE";

/// The folder a test was given, when it is run again as a process of its own.
fn role() -> Option<PathBuf> {
    std::env::var_os(ROLE).map(PathBuf::from)
}

/// This very test, as a process of its own that works in the folder.
fn as_a_process(test: &str, folder: &Path, wrapper: &[&str]) -> Command {
    let this = std::env::current_exe().expect("a test has a program");
    let mut command = match wrapper.split_first() {
        None => Command::new(this),
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(this);
            command
        }
    };
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(ROLE, folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}
