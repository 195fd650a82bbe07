//! A week of calls, told as an executor tells them.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::redact::Secrets;
use steadyhand::{
    Call, Event, FailureCode, Observer, Outcome, Output, Tool, ToolError, ToolExecutor, ToolManager,
};
use tokio::time::Instant;

use crate::{cpu, open, say};

pub(crate) const WEEK_MS: u64 = 7 * 24 * 60 * 60 * 1000;
const TOOLS: usize = 40;
const CALLERS: u64 = 500;
/// As much as the queue of a history holds.
const BATCH: u64 = 4096;
const PATIENCE: Duration = Duration::from_secs(120);

/// Writes a week of calls that ends now.
pub(crate) fn fill(path: &Path, calls: u64) -> Result<(), Box<dyn Error>> {
    let now_ms = steadyhand::clock::wall_ms();
    let history = open(path);
    let recorder = history.recorder();
    let outcomes = Outcomes::make()?;
    history.flush(PATIENCE);
    let (began, recorded, written) = (Instant::now(), cpu("history_speed"), cpu("steadyhand-hist"));
    for number in 0..calls {
        let at_ms = now_ms - WEEK_MS + number * WEEK_MS / calls;
        tell(&recorder, &outcomes, number, at_ms);
        while number % 256 == 255 && history.health().queued > BATCH {
            history.flush(PATIENCE);
        }
    }
    let is_written = history.flush(PATIENCE);
    let (took, health) = (began.elapsed(), history.health());
    if !is_written || health.dropped > 0 {
        return Err(format!("not written: {health:?}").into());
    }
    let each =
        |before: Duration, name: &str| (cpu(name) - before).as_secs_f64() * 1e6 / calls as f64;
    say("| writing |  |");
    say("| --- | ---: |");
    say(&format!(
        "| calls of {TOOLS} tools by {CALLERS} callers, over a week | {calls} |"
    ));
    say(&format!(
        "| written, one after the other | {:.0} calls a second |",
        calls as f64 / took.as_secs_f64()
    ));
    say(&format!(
        "| CPU of the recorder, told and made into rows | {:.1} µs a call |",
        each(recorded, "history_speed")
    ));
    say(&format!(
        "| CPU of the writer | {:.1} µs a call |",
        each(written, "steadyhand-hist")
    ));
    say(&format!(
        "| the file | {:.0} bytes a call |\n",
        health.bytes as f64 / calls as f64
    ));
    Ok(())
}

pub(crate) struct Outcomes {
    works: Outcome,
    fails: Outcome,
}

impl Outcomes {
    pub(crate) fn make() -> Result<Outcomes, Box<dyn Error>> {
        let manager = ToolManager::new();
        let fails = Tool::function("f", "d", |_: Value| async {
            Err::<Output, ToolError>(ToolError::answer("the device does not answer"))
        });
        let _ = manager.add_all([forecast(), fails]);
        let executor = ToolExecutor::new(manager);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let run = |name| runtime.block_on(executor.execute(Call::new(name, json!({}))));
        Ok(Outcomes {
            works: run("forecast"),
            fails: run("f"),
        })
    }
}

/// A tool that answers with some 200 bytes.
pub(crate) fn forecast() -> Tool {
    let answer =
        json!({"forecast": "rain in the evening, clear at night".repeat(4), "temp_c": [4, 5, 6]});
    Tool::function("forecast", "d", move |_: Value| {
        let answer = answer.clone();
        async move { Ok::<Output, ToolError>(Output::json(answer)) }
    })
}

/// One call in 20 fails, one in 100 runs out of time; most are quick, one in 97 is slow.
pub(crate) fn tell(recorder: &impl Observer, outcomes: &Outcomes, number: u64, at_ms: u64) {
    let tool = (number * 7919) as usize % TOOLS;
    let tool_name = format!("{}_{tool}", ["home", "web", "notes", "mail"][tool % 4]);
    let slow = if number.is_multiple_of(97) {
        800_000
    } else {
        0
    };
    let micros = 500 + (number * 104_729) % 40_000 + slow;
    let mut outcome = match number % 20 {
        7 => outcomes.fails.clone(),
        _ => outcomes.works.clone(),
    };
    if let (Err(failure), 7) = (&mut outcome.result, number % 100) {
        failure.code = FailureCode::Timeout;
    }
    outcome.call_id = steadyhand::clock::new_id();
    outcome.tool_name.clone_from(&tool_name);
    outcome.execution_time = Duration::from_micros(micros);
    let caller = format!("chat {}", (number * 31) % CALLERS);
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
