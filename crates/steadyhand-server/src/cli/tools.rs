//! `steadyhand tools`: which tools there are, and everything about one of them.

use clap::Subcommand;
use clap_complete::engine::ArgValueCandidates;
use serde_json::{Value, json};
use steadyhand::{Policy, Tool};

use super::error::{Exit, Failed};
use super::{Session, complete, value};
use crate::config::PolicySettings;
use crate::runtime::Runtime;

#[derive(Subcommand)]
pub(super) enum ToolsCommand {
    /// All tools
    List,
    /// One tool: its arguments, its policy, where each value comes from
    Show {
        /// The tool
        #[arg(add = ArgValueCandidates::new(complete::tool_names))]
        tool: String,
    },
}

pub(super) async fn run(
    session: &Session<'_>,
    command: Option<&ToolsCommand>,
) -> Result<(), Failed> {
    let runtime = session.runtime(|_| {}).await?;
    match command {
        None | Some(ToolsCommand::List) => {
            session.tell_problems(&runtime);
            list(session, &runtime)
        }
        Some(ToolsCommand::Show { tool }) => show(session, &runtime, tool),
    }
}

fn list(session: &Session<'_>, runtime: &Runtime) -> Result<(), Failed> {
    let tools = runtime.manager().list();
    if session.screen.json {
        let tools: Vec<Value> = tools.iter().map(|tool| described(tool, runtime)).collect();
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
        session.screen.json(&json!({
            "count": tools.len(),
            "tools": tools,
            "problems": problems,
            "left_out": left_out,
        }));
        return Ok(());
    }
    let mut rows = Vec::new();
    if session.screen.stdout_is_terminal {
        rows.push(
            ["TOOL", "KIND", "STATE", "DESCRIPTION"]
                .map(str::to_owned)
                .to_vec(),
        );
    }
    for tool in &tools {
        let state = if runtime.unavailable(tool.name()).is_some() {
            "disabled"
        } else {
            "ready"
        };
        let first_line = tool.description().lines().next().unwrap_or_default();
        rows.push(
            [tool.name(), tool.kind(), state, first_line]
                .map(str::to_owned)
                .to_vec(),
        );
    }
    session.screen.answer(&value::columns(session.screen, rows));
    for (source, it) in runtime.left_out() {
        session
            .screen
            .note(&format!("{source}: {} is no tool: {}", it.name, it.reason));
    }
    let servers = runtime.generation().configuration.imported.servers.len();
    if tools.is_empty() && servers > 0 {
        let servers = value::counted(servers, "MCP server");
        session.screen.note(&format!(
            "No tools yet: {servers} found, for a later version to connect."
        ));
    } else if tools.is_empty() {
        session
            .screen
            .note("No tools. Add a [tools.name] table to steadyhand.toml");
    } else if runtime.generation().configuration.file.is_none() {
        session
            .screen
            .note("No steadyhand.toml here, so these are the builtins.");
    }
    Ok(())
}

/// A tool as `GET /v1/tools` gives it.
fn described(tool: &Tool, runtime: &Runtime) -> Value {
    let unavailable = runtime.unavailable(tool.name());
    let mut described = json!({
        "name": tool.name(),
        "description": tool.description(),
        "schema": tool.schema(),
        "kind": tool.kind(),
        "source": tool.source(),
        "available": unavailable.is_none(),
    });
    if let Some(alias) = tool.lc_name() {
        described["lc_name"] = json!(alias);
    }
    if let Some(reason) = unavailable {
        described["reason"] = json!(reason);
    }
    described
}

fn show(session: &Session<'_>, runtime: &Runtime, name: &str) -> Result<(), Failed> {
    let manager = runtime.manager();
    let (Some(tool), Some(policy)) = (manager.find(name), manager.policy(name)) else {
        let names: Vec<String> = manager
            .list()
            .iter()
            .map(|tool| tool.name().to_owned())
            .collect();
        let near = crate::config::words::nearest(name, names.iter().map(String::as_str));
        return Err(Failed::new(
            Exit::ToolError,
            "TOOL_NOT_FOUND",
            format!("there is no tool {name}"),
        )
        .help(match near {
            Some(near) => format!("Did you mean {near}?\nsteadyhand tools list"),
            None => "steadyhand tools list".to_owned(),
        }));
    };
    let settings = policy_rows(runtime, tool.name(), &policy);
    if session.screen.json {
        let mut described = described(&tool, runtime);
        let policy: serde_json::Map<String, Value> = settings
            .iter()
            .map(|(name, value, origin)| (name.clone(), json!({"value": value, "origin": origin})))
            .collect();
        described["policy"] = Value::Object(policy);
        described["breaker"] = json!(manager.breaker(name));
        described["metrics"] = json!(manager.metrics(name));
        session.screen.json(&described);
        return Ok(());
    }
    let screen = session.screen;
    let mut text = format!(
        "{}  {}\n",
        screen.bold(tool.name()),
        screen.dim(tool.kind())
    );
    text.push_str(&format!("{}\n", screen.foreign(tool.description())));
    if let Some(reason) = runtime.unavailable(tool.name()) {
        text.push_str(&format!("\n{reason}\n"));
    }
    text.push_str(&format!("\n{}\n", screen.bold("Arguments")));
    text.push_str(&indented(&value::columns(
        screen,
        argument_rows(tool.schema()),
    )));
    text.push_str(&format!("\n{}\n", screen.bold("Policy")));
    let rows = settings
        .into_iter()
        .map(|(name, value, origin)| vec![name, value, origin]);
    text.push_str(&indented(&value::columns(screen, rows.collect())));
    if let Some(example) = steadyhand::example_arguments(tool.schema()) {
        text.push_str(&format!(
            "\n{}\n  {}\n",
            screen.bold("Try"),
            value::as_command(tool.name(), &example)
        ));
    }
    screen.answer(&text);
    Ok(())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// Name, type, required, description: one row for each argument.
fn argument_rows(schema: &Value) -> Vec<Vec<String>> {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut rows = Vec::new();
    for (name, property) in properties.into_iter().flatten() {
        let kind = match property.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            Some(Value::Array(kinds)) => kinds
                .iter()
                .filter_map(Value::as_str)
                .collect::<Vec<_>>()
                .join(" or "),
            _ => "any".to_owned(),
        };
        let need = if required.contains(&name.as_str()) {
            "required"
        } else {
            ""
        };
        let mut about: Vec<String> = Vec::new();
        about.extend(
            property
                .get("description")
                .and_then(Value::as_str)
                .map(str::to_owned),
        );
        if let Some(options) = property.get("enum").and_then(Value::as_array) {
            let options: Vec<String> = options
                .iter()
                .map(|option| {
                    option
                        .as_str()
                        .map_or_else(|| option.to_string(), str::to_owned)
                })
                .collect();
            about.push(format!("one of {}", options.join(", ")));
        }
        for (key, words) in [
            ("minimum", "at least"),
            ("maximum", "at most"),
            ("default", "default"),
        ] {
            about.extend(property.get(key).map(|limit| format!("{words} {limit}")));
        }
        rows.push(vec![name.clone(), kind, need.to_owned(), about.join("; ")]);
    }
    if rows.is_empty() {
        rows.push(vec!["(none declared)".to_owned()]);
    }
    rows
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
    let codes: Vec<&str> = policy.retry.on.iter().map(|code| code.as_str()).collect();
    let rows = [
        (
            "approval",
            "approval",
            approval.unwrap_or("never".to_owned()),
        ),
        ("timeout", "timeout", time(policy.timeout)),
        ("deadline", "deadline", time(policy.deadline)),
        (
            "retry.attempts",
            "retry/attempts",
            policy.retry.attempts.to_string(),
        ),
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
