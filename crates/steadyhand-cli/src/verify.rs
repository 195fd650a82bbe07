//! `steadyhand verify`: the twelve probes and the declared examples, for every tool of the configuration.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use serde_json::json;

use super::error::{Exit, Failed};
use super::screen::Screen;
use super::{Interrupts, Session, complete, starting, tools, value, written};
use steadyhand_runtime::source::command;
use steadyhand_runtime::verify::{self, Finding, Level, Report, ToolReport, Verdict, Wanted};

#[derive(Args)]
pub(super) struct VerifyArgs {
    /// Tools by name or pattern; all if not said
    #[arg(value_name = "TOOL", add = ArgValueCandidates::new(complete::tool_names))]
    tools: Vec<String>,
    /// Run the examples of this tool although that may change something: a name, or a pattern
    #[arg(long, value_name = "NAME")]
    run_unsafe: Vec<String>,
    /// Run no example: no tool is contacted
    #[arg(long, conflicts_with = "run_unsafe")]
    no_examples: bool,
}

pub(super) async fn run(session: &Session<'_>, args: &VerifyArgs) -> Result<(), Failed> {
    let mut interrupts = Interrupts::listen();
    command::adopt_orphans();
    let runtime = session.runtime(|options| {
        // A stand-in is probed, and needs nobody's yes; examples of such tools are run only by name.
        options.approved = vec!["*".to_owned()];
    });
    let runtime = tokio::select! {
        runtime = runtime => runtime?,
        code = interrupts.next() => return Err(Failed::interrupted(code)),
    };
    starting::waited_for(session, &runtime).await?;
    let history = session.remember(&runtime);
    let wanted = Wanted {
        tools: args.tools.clone(),
        run_unsafe: args.run_unsafe.clone(),
        no_examples: args.no_examples,
    };
    let report = match session.time_left() {
        None => within(verify::run(&runtime, &wanted), &mut interrupts).await,
        Some(left) => {
            let bounded = tokio::time::timeout(left, verify::run(&runtime, &wanted));
            let too_late = |_| Failed::timed_out(session.global.timeout.unwrap_or_default());
            let report = within(bounded, &mut interrupts).await;
            report.and_then(|report| report.map_err(too_late))
        }
    };
    let nobody = args
        .tools
        .iter()
        .find(|pattern| !is_there(&runtime, pattern))
        .map(|pattern| tools::no_such_tool(&runtime, pattern));
    session.stop(&runtime, &mut interrupts).await;
    written(session, history).await;
    let report = report?;
    if let Some(failed) = nobody {
        return Err(failed);
    }
    match session.screen.json {
        true => session.screen.json(&report),
        false => session.screen.answer(&shown(session.screen, &report)),
    }
    match report.safe {
        true => Ok(()),
        false => Err(not_safe(&report)),
    }
}

async fn within<T>(work: impl Future<Output = T>, by: &mut Interrupts) -> Result<T, Failed> {
    tokio::select! {
        done = work => Ok(done),
        code = by.next() => Err(Failed::interrupted(code)),
    }
}

fn is_there(runtime: &steadyhand_runtime::runtime::Runtime, pattern: &str) -> bool {
    let tools = runtime.manager().list();
    let mut names = tools.iter().map(|tool| tool.name());
    names.any(|name| steadyhand::wildcard::wild(pattern, name))
}

fn not_safe(report: &Report) -> Failed {
    let unsafe_tools: Vec<&str> = report
        .tools
        .iter()
        .filter(|tool| !tool.safe)
        .map(|tool| tool.name.as_str())
        .collect();
    let of_sources = report.problems.iter();
    let failing = of_sources.filter(|problem| problem.level == Level::Fail);
    let names: Vec<&str> = unsafe_tools
        .into_iter()
        .chain(failing.map(|problem| problem.about.as_str()))
        .collect();
    let message = match names.len() {
        1 => format!("{} is not safe yet", names[0]),
        count => format!("{count} are not safe yet: {}", names.join(", ")),
    };
    Failed::new(Exit::ToolError, "not_safe", message)
        .detail("tools", json!(names))
        .help("Each line above marked as failed says what to mend; then: steadyhand verify")
}

fn shown(screen: &Screen, report: &Report) -> String {
    let head = [
        "TOOL",
        "VERDICT",
        "PROBES",
        "EXAMPLES",
        "REPEATABLE",
        "LIMIT",
        "FALLBACK",
        "APPROVAL",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(report.tools.iter().map(row));
    let mut text = value::columns(screen, rows);
    text.push('\n');
    let (fail, note) = match screen.plain {
        true => ("x", "!"),
        false => ("✗", "▲"),
    };
    let mut told = |tool: &str, finding: &Finding| {
        let mark = match finding.level {
            Level::Fail => fail,
            Level::Note => note,
        };
        let about = match tool == finding.about {
            true => tool.to_owned(),
            false => format!("{tool}, {}", finding.about),
        };
        let message = screen.foreign(&finding.message);
        text.push_str(&format!(
            "\n{mark} {about}: {message}\n  -> {}",
            finding.help
        ));
    };
    for tool in &report.tools {
        for finding in &tool.findings {
            told(&tool.name, finding);
        }
    }
    for problem in &report.problems {
        told(&problem.about, problem);
    }
    let skipped = report.tools.iter().flat_map(|tool| {
        let examples = tool.examples.iter().enumerate();
        examples.filter_map(move |(place, example)| match &example.verdict {
            Verdict::Skipped(why) => Some((&tool.name, place + 1, why)),
            Verdict::Passed | Verdict::Failed(_) => None,
        })
    });
    for (tool, number, why) in skipped {
        text.push_str(&format!("\n- {tool}, example {number} was not run: {why}"));
    }
    let safe = report.tools.iter().filter(|tool| tool.safe).count();
    let all = value::counted(report.tools.len(), "tool");
    text.push_str(&format!("\n\n{safe} of {all} safe."));
    text
}

fn row(tool: &ToolReport) -> Vec<String> {
    let of = |done: usize, all: usize, nothing: &str| match all {
        0 => nothing.to_owned(),
        _ => format!("{done} of {all}"),
    };
    let skipped = |verdict: &Verdict| matches!(verdict, Verdict::Skipped(_));
    let probes = tool.probes.iter().map(|probe| &probe.verdict);
    let applied = probes.clone().filter(|verdict| !skipped(verdict)).count();
    let passed = probes.filter(|verdict| verdict.passed()).count();
    let examples = tool.examples.iter().map(|example| &example.verdict);
    let ran = examples.clone().filter(|verdict| !skipped(verdict)).count();
    let worked = examples.filter(|verdict| verdict.passed()).count();
    let undone = match tool.examples.is_empty() {
        true => "none",
        false => "not run",
    };
    let time =
        |ms: u64| humantime::format_duration(std::time::Duration::from_millis(ms)).to_string();
    let yes = match (tool.only_reads, tool.safe_to_repeat) {
        (true, _) => "reads",
        (false, true) => "yes",
        (false, false) => "no",
    };
    vec![
        tool.name.clone(),
        if tool.safe { "safe" } else { "not safe" }.to_owned(),
        of(passed, applied, "none"),
        of(worked, ran, undone),
        yes.to_owned(),
        format!("{} of {}", time(tool.timeout_ms), time(tool.deadline_ms)),
        tool.fallback.clone().unwrap_or_else(|| "none".to_owned()),
        tool.approval.to_owned(),
    ]
}
