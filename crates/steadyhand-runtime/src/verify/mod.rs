//! `steadyhand verify`: which tools of a configuration are safe to give to an agent. Each goes through the twelve
//! probes with a stand-in in its place, under its own schema and policy; what is declared as an example is run for real.

mod checks;
mod examples;
mod probes;
mod stand_in;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde::Serialize;
use serde_json::Value;
use steadyhand::wildcard::wild;
use steadyhand::{Policy, Tool};

use crate::runtime::Runtime;

/// Tools that are looked at at the same time.
const AT_ONCE: usize = 4;

/// What is to be verified.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Names or patterns; all tools if there are none.
    pub tools: Vec<String>,
    /// Tools whose examples are run although that may change something.
    pub run_unsafe: Vec<String>,
    /// Run no example at all.
    pub no_examples: bool,
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whether everything passed.
    pub safe: bool,
    pub tools: Vec<ToolReport>,
    /// What is wrong beside the tools: sources that could not be loaded, policies that mean nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Finding>,
}

/// What was found about one tool.
#[derive(Debug, Serialize)]
pub struct ToolReport {
    pub name: String,
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    pub safe: bool,
    pub safe_to_repeat: bool,
    pub only_reads: bool,
    pub approval: &'static str,
    pub timeout_ms: u64,
    pub deadline_ms: u64,
    pub attempts: u32,
    pub breaker: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    pub probes: Vec<Probe>,
    pub examples: Vec<Example>,
    pub findings: Vec<Finding>,
}

/// One of the twelve.
#[derive(Debug, Serialize)]
pub struct Probe {
    pub number: u8,
    pub name: &'static str,
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// A declared call.
#[derive(Debug, Serialize)]
pub struct Example {
    /// Secrets hidden.
    pub arguments: Value,
    pub declared_by: &'static str,
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// How something went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "why", rename_all = "snake_case")]
pub enum Verdict {
    Passed,
    Failed(String),
    /// It says nothing about this tool, or was not run.
    Skipped(String),
}

/// Something to mend, or to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub level: Level,
    pub about: String,
    pub message: String,
    pub help: String,
}

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The tool is not safe.
    Fail,
    /// Somebody should know.
    Note,
}

impl Verdict {
    pub fn passed(&self) -> bool {
        *self == Verdict::Passed
    }
}

impl Finding {
    fn new(level: Level, about: &str, message: String, help: String) -> Finding {
        Finding {
            level,
            about: about.to_owned(),
            message,
            help,
        }
    }
}

/// Looks at all tools that are wanted.
pub async fn run(runtime: &Runtime, wanted: &Wanted) -> Report {
    let is_wanted = |name: &str| {
        let mut patterns = wanted.tools.iter();
        wanted.tools.is_empty() || patterns.any(|pattern| wild(pattern, name))
    };
    let tools = runtime.manager().list();
    let tools = tools.into_iter().filter(|tool| is_wanted(tool.name()));
    let looks = tools.filter_map(|tool| {
        let policy = runtime.manager().policy(tool.name())?;
        Some(look(runtime, wanted, tool, policy))
    });
    let looks: Vec<_> = looks.collect();
    let tools: Vec<ToolReport> = futures_util::stream::iter(looks)
        .buffered(AT_ONCE)
        .collect()
        .await;
    let problems: Vec<Finding> = checks::of_sources(runtime)
        .into_iter()
        .filter(|problem| is_wanted(&problem.about))
        .collect();
    let is_sound = problems.iter().all(|problem| problem.level != Level::Fail);
    Report {
        safe: is_sound && tools.iter().all(|tool| tool.safe),
        tools,
        problems,
    }
}

async fn look(runtime: &Runtime, wanted: &Wanted, tool: Arc<Tool>, policy: Policy) -> ToolReport {
    let declared = examples::declared(runtime, &tool);
    let only_reads = runtime.only_reads(&tool);
    let approval = checks::approval(runtime, tool.name());
    let arguments = declared.first().map(|one| one.arguments.clone());
    let probes = probes::run(&tool, &policy, arguments).await;
    let mut findings = checks::of_tool(runtime, &tool, &policy);
    let consent = examples::Consent {
        safe_to_repeat: policy.safe_to_repeat,
        only_reads,
        asks: approval != "never",
        named: wanted
            .run_unsafe
            .iter()
            .any(|pattern| wild(pattern, tool.name())),
        none: wanted.no_examples,
    };
    let examples = examples::run(runtime, &tool, declared, &consent).await;
    findings.extend(checks::of_runs(tool.name(), &probes, &examples));
    findings.sort_by_key(|finding| finding.level);
    ToolReport {
        name: tool.name().to_owned(),
        kind: tool.kind(),
        source: tool.source().map(str::to_owned),
        safe: findings.iter().all(|finding| finding.level != Level::Fail),
        safe_to_repeat: policy.safe_to_repeat,
        only_reads,
        approval,
        timeout_ms: milliseconds(policy.timeout),
        deadline_ms: milliseconds(policy.deadline),
        attempts: policy.retry.attempts,
        breaker: policy.breaker.is_some(),
        fallback: policy.fallback.as_ref().map(ToString::to_string),
        probes,
        examples,
        findings,
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
