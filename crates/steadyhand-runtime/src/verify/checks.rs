//! What can be said of a tool without running anything: its words, its schema, its policy.

use std::time::Duration;

use serde_json::Value;
use steadyhand::{Policy, Tool};

use super::{Example, Finding, Level, Probe, Verdict};
use crate::runtime::Runtime;
use steadyhand_config::settings::Approval;

/// Nobody waits longer than this for one attempt without wondering.
const TIMEOUT_LONG: Duration = Duration::from_secs(300);
/// A model cannot choose by less.
const DESCRIPTION_CHARS_MIN: usize = 8;

/// Whether a person must say yes.
pub(super) fn approval(runtime: &Runtime, tool: &str) -> &'static str {
    let settings = runtime.settings_of(tool);
    match settings.iter().rev().find_map(|settings| settings.approval) {
        None | Some(Approval::Never) => "never",
        Some(Approval::Ask) => "ask",
        Some(Approval::Always) => "always",
    }
}

/// What is to be said of one tool.
pub(super) fn of_tool(runtime: &Runtime, tool: &Tool, policy: &Policy) -> Vec<Finding> {
    let mut findings = Vec::new();
    let name = tool.name();
    let mut find = |level, about: &str, message: String, help: &str| {
        findings.push(Finding::new(level, about, message, help.to_owned()));
    };
    if let Some(reason) = runtime.unavailable(name) {
        find(
            Level::Fail,
            "availability",
            reason,
            "mend its settings; steadyhand config check",
        );
    }
    if tool.description().trim().chars().count() < DESCRIPTION_CHARS_MIN {
        let message = format!("its description is \"{}\"", tool.description());
        find(
            Level::Note,
            "description",
            message,
            "say what it does: models choose by it",
        );
    }
    let properties = tool.schema().get("properties").and_then(Value::as_object);
    if properties.is_none_or(|properties| properties.is_empty()) {
        let message = "its schema declares no arguments, so none can be checked".to_owned();
        find(
            Level::Note,
            "schema",
            message,
            "give it input = { … } if it takes any",
        );
    }
    if policy.timeout > policy.deadline {
        let message = format!(
            "one attempt may take {}, the whole call {}: the time limit is never reached",
            humantime::format_duration(policy.timeout),
            humantime::format_duration(policy.deadline)
        );
        find(
            Level::Note,
            "time limit",
            message,
            "set timeout below deadline",
        );
    }
    if policy.timeout > TIMEOUT_LONG {
        let message = format!(
            "one attempt may take {}",
            humantime::format_duration(policy.timeout)
        );
        find(
            Level::Note,
            "time limit",
            message,
            "an agent waits that long; set a shorter timeout",
        );
    }
    if policy.breaker.is_none() {
        let message = "it has no breaker: it is called however often it fails".to_owned();
        find(
            Level::Note,
            "breaker",
            message,
            "breaker = { failures = 5 } gives it a rest",
        );
    }
    if !policy.safe_to_repeat && approval(runtime, name) == "never" {
        let message =
            "it is not known to be safe to repeat, and runs without a person's yes".to_owned();
        find(
            Level::Note,
            "approval",
            message,
            "approval = \"ask\" if it can do harm",
        );
    }
    let fallback = policy.fallback.as_ref();
    if let Some(target) = fallback.and_then(|fallback| fallback.tool_name())
        && runtime.manager().find(target).is_none()
    {
        let message = format!("its fallback {target} does not exist");
        find(
            Level::Fail,
            "fallback",
            message,
            "name a tool that is there",
        );
    }
    findings
}

/// What failed of what was run.
pub(super) fn of_runs(tool: &str, probes: &[Probe], examples: &[Example]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for probe in probes {
        if let Verdict::Failed(why) = &probe.verdict {
            let about = format!("probe {}, {}", probe.number, probe.name);
            let help = "this is not as it should be: please report it with steadyhand tools show";
            let help = format!("{help} {tool}");
            findings.push(Finding::new(Level::Fail, &about, why.clone(), help));
        }
    }
    for (place, example) in examples.iter().enumerate() {
        if let Verdict::Failed(why) = &example.verdict {
            let about = format!("example {}", place + 1);
            let message = format!("{}: {why}", example.arguments);
            let help = format!("steadyhand call {tool} --args '{}'", example.arguments);
            findings.push(Finding::new(Level::Fail, &about, message, help));
        }
    }
    findings
}

/// What is missing from the tools, and why.
pub(super) fn of_sources(runtime: &Runtime) -> Vec<Finding> {
    let generation = runtime.generation();
    let manager = runtime.manager();
    let problems = generation.problems.iter();
    // A tool that is listed and cannot be called says so itself.
    let problems = problems.filter(|problem| runtime.unavailable(&problem.name).is_none());
    let problems = problems.map(|problem| {
        let level = match manager.find(&problem.name) {
            Some(_) => Level::Note,
            None => Level::Fail,
        };
        let place = problem.place.clone().unwrap_or_default();
        let help = format!("steadyhand config check {place}")
            .trim_end()
            .to_owned();
        Finding::new(level, &problem.name, problem.reason.clone(), help)
    });
    let not_started = runtime.servers().into_iter().filter_map(|server| {
        let failure = server.failure?;
        let help = format!("steadyhand mcp test {}", server.name);
        let message = failure.to_string();
        Some(Finding::new(Level::Fail, &server.name, message, help))
    });
    problems.chain(not_started).collect()
}
