//! How fast the history of calls is: writes 1,000,000 calls of a week, then times pages, filters, single calls and trends.
//!
//! Run: `cargo run --release -p steadyhand-server --example history_speed [CALLS] [RUNS] [FOLDER]`
//! With a folder, the file is kept and used again.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use steadyhand::redact::Secrets;
use steadyhand::{
    Event, FailureCode, Observer, Outcome, Output, Tool, ToolError, ToolExecutor, ToolManager,
};
use steadyhand_server::history::{Filter, History, HistoryError, HistoryOptions, Window};
use tokio::time::Instant;

const TOOLS: usize = 40;
const WEEK_MS: u64 = 7 * 24 * 60 * 60 * 1000;
const GIB: u64 = 1 << 30;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let calls = words.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let runs = words.next().map_or(Ok(200), |text| text.parse())?;
    let kept = words.next().map(PathBuf::from);
    let own = tempfile::tempdir()?;
    let folder = kept.unwrap_or_else(|| own.path().to_owned());
    let path = folder.join("calls.db");
    let now_ms = steadyhand::clock::wall_ms();
    if !path.exists() {
        fill(&path, calls, now_ms).await?;
    }
    for state in ["cold", "warm"] {
        if state == "cold" {
            forget_pages(&folder)?;
        }
        say(&format!("{state}: median, worst of {runs}"));
        read(&path, if state == "cold" { 1 } else { runs }, now_ms)?;
    }
    Ok(())
}

fn open(path: &Path) -> History {
    let mut options = HistoryOptions::new(path);
    options.max_bytes = 8 * GIB;
    options.keep = Duration::from_millis(2 * WEEK_MS);
    History::open(options)
}

/// A week of calls, told as an executor tells them.
async fn fill(path: &Path, calls: u64, now_ms: u64) -> Result<(), Box<dyn Error>> {
    let history = open(path);
    let recorder = history.recorder();
    let outcomes = Outcomes::make().await;
    let cpu = cpu_ms();
    let began = Instant::now();
    for number in 0..calls {
        let at_ms = now_ms - WEEK_MS + number * WEEK_MS / calls;
        tell(&recorder, &outcomes, number, at_ms);
        // As much as the queue holds.
        if number % 4096 == 4095 && !history.flush(Duration::from_secs(60)) {
            return Err(format!("not written: {:?}", history.health()).into());
        }
    }
    history.flush(Duration::from_secs(60));
    let health = history.health();
    say(&format!(
        "{calls} calls written in {:.1?} ({:.1} µs of CPU each, recorder and writer), {} dropped, {} MiB",
        began.elapsed(),
        (cpu_ms() - cpu) as f64 * 1e3 / calls as f64,
        health.dropped,
        health.bytes >> 20,
    ));
    Ok(())
}

struct Outcomes {
    works: Outcome,
    fails: Outcome,
}

impl Outcomes {
    async fn make() -> Outcomes {
        let answer = json!({"forecast": "rain in the evening, clear at night".repeat(4), "temp_c": [4, 5, 6]});
        let works = Tool::function("t", "d", move |_: serde_json::Value| {
            let answer = answer.clone();
            async move { Ok::<Output, ToolError>(Output::json(answer)) }
        });
        let fails = Tool::function("f", "d", |_: serde_json::Value| async {
            Err::<Output, ToolError>(ToolError::answer("the device does not answer"))
        });
        let manager = ToolManager::new();
        let _ = manager.add_all([works, fails]);
        let executor = ToolExecutor::new(manager);
        Outcomes {
            works: executor
                .execute(steadyhand::Call::new("t", json!({})))
                .await,
            fails: executor
                .execute(steadyhand::Call::new("f", json!({})))
                .await,
        }
    }
}

/// One call in 20 fails, one in 100 runs out of time; most are quick, some are slow.
fn tell(recorder: &impl Observer, outcomes: &Outcomes, number: u64, at_ms: u64) {
    let tool = (number * 7919) as usize % TOOLS;
    let tool_name = format!("{}_{tool}", ["home", "web", "notes", "mail"][tool % 4]);
    let micros = 500
        + (number * 104_729) % 40_000
        + if number.is_multiple_of(97) {
            800_000
        } else {
            0
        };
    let mut outcome = match number % 20 {
        7 => outcomes.fails.clone(),
        _ => outcomes.works.clone(),
    };
    if let (Err(failure), 0) = (&mut outcome.result, number % 5) {
        failure.code = FailureCode::Timeout;
    }
    outcome.call_id = steadyhand::clock::new_id();
    outcome.tool_name.clone_from(&tool_name);
    outcome.execution_time = Duration::from_micros(micros);
    let caller = format!("chat {}", number % 500);
    recorder.observe(&Event::Started {
        number: number + 1,
        call_id: outcome.call_id.clone(),
        tool_name: tool_name.clone(),
        at_ms,
        caller: Some(caller),
        traceparent: None,
        replay_of: None,
        source: Some("demo".into()),
        deadline_ms: Some(60_000.0),
    });
    let args = Arc::new(json!({"area": "kitchen", "n": number, "text": "turn the lights on"}));
    recorder.observe(&Event::AttemptStarted {
        number: number + 1,
        call_id: outcome.call_id.clone(),
        tool_name,
        attempt: 1,
        elapsed_ms: 0.1,
        waited_ms: 0.0,
        args: Some(Arc::clone(&args)),
    });
    recorder.observe(&Event::Finished {
        number: number + 1,
        at_ms: at_ms + micros / 1000,
        args: Some(args),
        sent: None,
        source: Some("demo".into()),
        kind: Some("function"),
        caller: None,
        traceparent: None,
        replay_of: None,
        secrets: Secrets::default(),
        outcome: Arc::new(outcome),
    });
}

fn read(path: &Path, runs: usize, now_ms: u64) -> Result<(), Box<dyn Error>> {
    let history = open(path);
    history.flush(Duration::from_secs(60));
    let middle = format!("until:{}", now_ms - WEEK_MS / 2);
    for (what, words) in [
        ("the newest page of 50", ""),
        ("a page in the middle", middle.as_str()),
        ("a tool", "tool:home_4"),
        ("tools by pattern", "tool:home_*"),
        ("failed", "state:failed"),
        (
            "failed, by pattern, slow",
            "tool:home_* state:failed >500ms",
        ),
        ("slow", ">500ms"),
        ("so slow that there is none", ">1m"),
        ("slower than most", ">39ms"),
        ("a caller", "caller:\"chat 77\""),
        ("an error", "error:timeout"),
        ("a text that many have", "kitchen"),
        ("a text that none has", "no-such-text"),
        ("the last hour", "since:1h state:failed"),
    ] {
        let filter = Filter::parse(words, now_ms)?;
        let mut found = String::new();
        let took = times(runs, || {
            let page = history.page(&filter, None, 50)?;
            let days = page
                .searched_to_ms
                .map(|ms| (now_ms - ms) as f64 / 86_400_000.0);
            found = match days {
                None => format!("{} calls", page.calls.len()),
                Some(days) => format!("{} calls, searched {days:.1} days back", page.calls.len()),
            };
            Ok::<(), HistoryError>(())
        })?;
        show(what, words, &took, &found);
    }
    let page = history.page(&Filter::parse(&middle, now_ms)?, None, 50)?;
    let ids: Vec<String> = page.calls.into_iter().map(|call| call.id).collect();
    let mut next = 0;
    let took = times(runs, || {
        next += 1;
        history.call(&ids[next % ids.len()]).map(drop)
    })?;
    show("one call by its id", "", &took, "");
    for (window, tool) in [
        (Window::Hour, None),
        (Window::Day, None),
        (Window::Week, None),
        (Window::Week, Some("home_4")),
    ] {
        let took = times(runs, || history.trends(tool, window).map(drop))?;
        show(
            "trends",
            &format!("{} {}", window.as_str(), tool.unwrap_or("all")),
            &took,
            "",
        );
    }
    Ok(())
}

fn times<E: Error + 'static>(
    runs: usize,
    mut work: impl FnMut() -> Result<(), E>,
) -> Result<Vec<Duration>, Box<dyn Error>> {
    let mut took = Vec::with_capacity(runs);
    for _ in 0..runs {
        let began = Instant::now();
        work()?;
        took.push(began.elapsed());
    }
    took.sort();
    Ok(took)
}

fn show(what: &str, words: &str, took: &[Duration], found: &str) {
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
    let (median, worst) = (took[took.len() / 2], took[took.len() - 1]);
    say(&format!(
        "  {:7.2} ms {:7.2} ms  {what:28} {words:34} {found}",
        ms(median),
        ms(worst)
    ));
}

/// The pages of the file leave the memory of the system, so that the next reader waits for the disk.
fn forget_pages(folder: &Path) -> Result<(), Box<dyn Error>> {
    for file in std::fs::read_dir(folder)? {
        let path = file?.path();
        let _ = Command::new("sync").arg("-d").arg(&path).status();
        let from = format!("if={}", path.display());
        let _ = Command::new("dd")
            .args([&from, "iflag=nocache", "count=0", "status=none"])
            .status();
    }
    Ok(())
}

/// CPU time of this process so far.
fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split(' ')
        .collect();
    let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok());
    (ticks(12).unwrap_or(0) + ticks(13).unwrap_or(0)) * 10
}

#[allow(clippy::print_stdout, reason = "an example prints what it found")]
fn say(line: &str) {
    println!("{line}");
}
