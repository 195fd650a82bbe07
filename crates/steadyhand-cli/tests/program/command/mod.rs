//! Programs as tools, with real programs.

mod arguments;
mod errors;
mod limits;
mod output;
mod settings;
mod stopping;
mod volume;

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::{Call, Outcome, Tool, ToolExecutor, ToolManager};
use steadyhand_config::extensions::Fault;
use steadyhand_runtime::source::{KINDS, Kind};
use tokio::time::{Instant, sleep};

use crate::support::context;

/// Far longer than anything here takes: only a test that hangs gets there.
const LONG: Duration = Duration::from_secs(30);

fn kind() -> &'static Kind {
    let found = KINDS.iter().find(|kind| kind.settings.name == "command");
    found.expect("the table of kinds has a command")
}

fn faults(settings: Value) -> Vec<Fault> {
    (kind().settings.check)(&settings)
}

pub(crate) async fn tool_in(folder: &Path, settings: Value) -> Tool {
    let source = (kind().build)("program", settings, &context(folder));
    let source = source.unwrap_or_else(|fault| panic!("{fault:?}"));
    let mut tools = source.tools().await.expect("its tools");
    tools.remove(0)
}

fn executor(tool: Tool) -> ToolExecutor {
    let tools = ToolManager::new();
    tools.add(tool).expect("a sound tool");
    ToolExecutor::new(tools)
}

async fn call_in(folder: &Path, settings: Value, args: Value) -> Outcome {
    let tool = tool_in(folder, settings).await;
    executor(tool).execute(Call::new("program", args)).await
}

async fn call(settings: Value, args: Value) -> Outcome {
    call_in(Path::new("/"), settings, args).await
}

/// A shell script as the program: what it does is the test's business, not its arguments.
fn script(text: &str) -> Value {
    json!({"command": ["sh", "-c", escaped(text)]})
}

fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

fn with(mut settings: Value, key: &str, value: Value) -> Value {
    settings[key] = value;
    settings
}

fn value(outcome: &Outcome) -> &Value {
    match outcome.output() {
        Some(output) => output.value(),
        None => panic!("{:?}", outcome.failure()),
    }
}

fn message(outcome: &Outcome) -> &str {
    &outcome.failure().expect("a failure").message
}

/// Looks again and again until it is so.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "never happened: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// The living processes that have `mark` in their arguments or in their environment.
fn processes(mark: &str) -> Vec<u32> {
    let holds = |pid: &u32, file: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes
            .windows(mark.len())
            .any(|part| part == mark.as_bytes())
    };
    let entries = fs::read_dir("/proc").expect("Linux").flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        // A zombie has neither.
        .filter(|pid| holds(pid, "cmdline") || holds(pid, "environ"))
        .collect()
}

fn mark() -> String {
    uuid::Uuid::new_v4().to_string()
}
