//! Counts and times of calls, by tool (SPEC R08).

use serde_json::{Value, json};
use steadyhand::ToolMetrics;

use steadyhand_runtime::runtime::Runtime;

/// Of all tools, in their order.
pub fn all(runtime: &Runtime) -> Value {
    let tools: Vec<Value> = runtime
        .manager()
        .all_metrics()
        .into_iter()
        .map(|(name, metrics)| named(&name, &metrics))
        .collect();
    json!({"count": tools.len(), "tools": tools})
}

/// Of one tool, by its name or alias.
pub fn one(runtime: &Runtime, name: &str) -> Option<Value> {
    let tool = runtime.manager().find(name)?;
    let metrics = runtime.manager().metrics(name)?;
    Some(named(tool.name(), &metrics))
}

fn named(name: &str, metrics: &ToolMetrics) -> Value {
    let mut named = json!({"toolName": name});
    if let (Some(named), Value::Object(counts)) = (named.as_object_mut(), json!(metrics)) {
        named.extend(counts);
    }
    named
}
