//! Tools: all of them, one with its policy and where each value comes from, and as others want them.

use serde_json::{Map, Value, json};
use steadyhand::{Policy, Tool};
use steadyhand_conversation::{self as conversation, Provider};

use steadyhand_config::PolicySettings;
use steadyhand_config::words::nearest;
use steadyhand_runtime::runtime::Runtime;
use steadyhand_runtime::runtime::policy::retry_word;

/// Whose shape tools are given in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A model's provider.
    Of(Provider),
    /// MCP's `tools/list`.
    Mcp,
}

/// All tools that are meant, in their order, and what is missing from them.
pub fn list(runtime: &Runtime, is_meant: impl Fn(&Tool) -> bool) -> Value {
    let tools: Vec<Value> = runtime
        .manager()
        .list()
        .iter()
        .filter(|tool| is_meant(tool))
        .map(|tool| described(tool, runtime))
        .collect();
    let problems: Vec<Value> = runtime
        .generation()
        .problems
        .iter()
        .map(|problem| json!({"name": problem.name, "reason": problem.reason, "place": problem.place}))
        .collect();
    let left_out: Vec<Value> = runtime
        .left_out()
        .iter()
        .map(|(source, it)| json!({"source": source, "name": it.name, "reason": it.reason}))
        .collect();
    json!({"count": tools.len(), "tools": tools, "problems": problems, "left_out": left_out})
}

/// The same tools as that consumer wants them.
pub fn converted(runtime: &Runtime, format: Format, is_meant: impl Fn(&Tool) -> bool) -> Value {
    let definitions = definitions(runtime, is_meant);
    match format {
        Format::Mcp => {
            let tools = conversation::mcp_tools(&definitions);
            json!({"count": tools.len(), "tools": tools, "left_out": []})
        }
        Format::Of(provider) => {
            let converted = conversation::convert_tools(provider, &definitions);
            let count = definitions.len() - converted.left_out.len();
            json!({"count": count, "tools": converted.tools, "left_out": converted.left_out})
        }
    }
}

/// LangChain-shaped, as the conversation module reads them.
pub fn definitions(runtime: &Runtime, is_meant: impl Fn(&Tool) -> bool) -> Vec<Value> {
    let definition = |tool: &Tool| {
        let mut definition = json!({"name": tool.name()});
        if let Some(alias) = tool.lc_name() {
            definition["lc_name"] = json!(alias);
        }
        definition["description"] = json!(tool.description());
        definition["schema"] = tool.schema().clone();
        definition
    };
    let tools = runtime.manager().list();
    let tools = tools.iter().filter(|tool| is_meant(tool));
    tools.map(|tool| definition(tool)).collect()
}

/// One tool with its policy, its breaker and its counters.
pub fn one(runtime: &Runtime, name: &str) -> Option<Value> {
    let manager = runtime.manager();
    let (tool, policy) = (manager.find(name)?, manager.policy(name)?);
    let mut described = described(&tool, runtime);
    let policy: Map<String, Value> = policy_rows(runtime, tool.name(), &policy)
        .into_iter()
        .map(|(name, value, origin)| (name, json!({"value": value, "origin": origin})))
        .collect();
    described["policy"] = Value::Object(policy);
    described["breaker"] = breaker(runtime, name);
    described["metrics"] = json!(manager.metrics(name));
    Some(described)
}

/// The name that was perhaps meant.
pub fn near(runtime: &Runtime, name: &str) -> Option<String> {
    let tools = runtime.manager().list();
    near_of(name, tools.iter().map(|tool| tool.name()))
}

/// The same of these names. A tool of a server may be asked for by its bare name.
pub fn near_of<'a>(name: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    let bare = |full: &'a str| full.rsplit_once("__").map_or(full, |(_, bare)| bare);
    let same = names
        .clone()
        .find(|full| bare(full).eq_ignore_ascii_case(name));
    let near = same.or_else(|| nearest(name, names.clone()));
    let near = near.or_else(|| {
        let near = nearest(name, names.clone().map(bare))?;
        names.clone().find(|full| bare(full) == near)
    });
    near.map(str::to_owned)
}

fn described(tool: &Tool, runtime: &Runtime) -> Value {
    let unavailable = runtime.unavailable(tool.name());
    let mut described = json!({
        "name": tool.name(),
        "description": tool.description(),
        "schema": tool.schema(),
        "kind": tool.kind(),
        "source": tool.source(),
        "available": unavailable.is_none(),
        "state": runtime.state_of(tool.name()),
    });
    if let Some(alias) = tool.lc_name() {
        described["lc_name"] = json!(alias);
    }
    if let Some(reason) = unavailable {
        described["reason"] = json!(reason);
    }
    let breaker = breaker(runtime, tool.name());
    if breaker["state"].as_str().is_some_and(|it| it != "closed") {
        described["breaker"] = breaker;
    }
    described
}

/// How often it is tried. What is not safe to repeat is tried again only where it was certainly not run.
fn attempts(policy: &Policy) -> String {
    let attempts = policy.retry.attempts;
    match policy.safe_to_repeat || attempts <= 1 {
        true => attempts.to_string(),
        false => format!("{attempts}, only after failures that prove it was not run"),
    }
}

/// The breaker of a tool as it is now; nothing where it has none.
fn breaker(runtime: &Runtime, name: &str) -> Value {
    let mut breaker = json!(runtime.manager().breaker(name));
    if let Some(rest) = runtime.manager().rest_of_breaker(name) {
        breaker["trialInMs"] = json!(rest.as_millis() as u64);
    }
    breaker
}

/// The policy in force, each value with its origin.
fn policy_rows(runtime: &Runtime, tool: &str, policy: &Policy) -> Vec<(String, String, String)> {
    let time = |duration: std::time::Duration| humantime::format_duration(duration).to_string();
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let size = |bytes: usize| bytesize::ByteSize(bytes as u64).display().iec().to_string();
    let breaker = |pick: fn(&steadyhand::BreakerPolicy) -> String| {
        policy.breaker.as_ref().map_or("off".to_owned(), pick)
    };
    let fallback = policy
        .fallback
        .as_ref()
        .map_or("none".to_owned(), ToString::to_string);
    let settings = runtime.settings_of(tool);
    let set =
        |pick: &dyn Fn(&PolicySettings) -> Option<String>| settings.iter().rev().find_map(pick);
    let approval = set(&|settings| Some(format!("{:?}", settings.approval?).to_lowercase()));
    let rate = set(&|settings| Some(settings.limits.as_ref()?.rate?.to_string()));
    let codes: Vec<&str> = policy
        .retry
        .on
        .iter()
        .map(|code| retry_word(*code))
        .collect();
    let rows = [
        (
            "approval",
            "approval",
            approval.unwrap_or("never".to_owned()),
        ),
        ("timeout", "timeout", time(policy.timeout)),
        ("deadline", "deadline", time(policy.deadline)),
        ("retry.attempts", "retry/attempts", attempts(policy)),
        (
            "retry.backoff",
            "retry/backoff",
            time(policy.retry.first_wait),
        ),
        ("retry.on", "retry/on", codes.join(" ")),
        ("retry.jitter", "retry/jitter", yes(policy.retry.jitter)),
        (
            "breaker.failures",
            "breaker/failures",
            breaker(|breaker| breaker.failures.to_string()),
        ),
        (
            "breaker.cooldown",
            "breaker/cooldown",
            breaker(|breaker| {
                humantime::format_duration(std::time::Duration::from_millis(breaker.cooldown_ms))
                    .to_string()
            }),
        ),
        (
            "limits.concurrency",
            "limits/concurrency",
            policy.limit.concurrent.to_string(),
        ),
        (
            "limits.queue",
            "limits/queue",
            policy.limit.queue.to_string(),
        ),
        (
            "limits.rate",
            "limits/rate",
            rate.unwrap_or("none".to_owned()),
        ),
        (
            "limits.result",
            "limits/result",
            size(policy.output_bytes_max),
        ),
        ("idempotent", "idempotent", yes(policy.safe_to_repeat)),
        ("fallback", "fallback", fallback),
        ("coerce", "coerce", yes(policy.coerce)),
        ("strict", "strict", yes(policy.strict)),
    ];
    let row = |(name, pointer, value): (&str, &str, String)| {
        (
            name.to_owned(),
            value,
            runtime.origin_of_policy(tool, pointer),
        )
    };
    rows.into_iter().map(row).collect()
}
