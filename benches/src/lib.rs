//! What the benchmark programs share: the tool, the floor below it, and the measuring.

pub mod floor;
pub mod measure;
pub mod table;
pub mod threads;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use steadyhand::{Call, Outcome, ToolError, ToolExecutor, ToolManager, tool};
use tokio::runtime::{Builder, Runtime};

/// The arguments as a model sends them.
pub const TEXT: &str = r#"{"a":1,"b":2}"#;
/// The id a model gives a call, as long as they usually are.
pub const ID: &str = "call_9pw1vXbJ2qKcTfYzL0aUeR3s";

/// Two integers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Sum {
    pub a: i64,
    pub b: i64,
}

/// Adds two numbers
#[tool]
pub async fn sum(args: Sum) -> Result<i64, ToolError> {
    Ok(args.a + args.b)
}

/// The arguments, already parsed.
pub fn parsed() -> Value {
    serde_json::from_str(TEXT).expect("the arguments are JSON")
}

/// An executor with this one tool, every default guard on.
pub fn executor() -> ToolExecutor {
    let tools = ToolManager::new();
    tools.add(sum::tool()).expect("the tool is sound");
    ToolExecutor::new(tools)
}

/// The tool with nothing around it: the caller's value is read, the function called.
pub async fn bare(args: Value) -> i64 {
    let args = Sum::deserialize(args).expect("the arguments fit");
    sum(args).await.expect("it adds")
}

/// A call with parsed arguments and the caller's id.
pub fn call_with_value(tool: &str, args: &Value) -> Call {
    Call::with_id(ID, tool, args.clone())
}

/// A call with arguments as text and the caller's id.
pub fn call_with_text(tool: &str, args: &str) -> Call {
    Call::with_id(ID, tool, args)
}

/// The outcome as it goes over a wire.
pub fn as_text(outcome: &Outcome) -> String {
    serde_json::to_string(&outcome.structured()).expect("an outcome is JSON")
}

/// One thread, and a clock that runs.
pub fn one_thread() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime can be made")
}
