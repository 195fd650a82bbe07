//! What it costs a call to be written down: on its own path, on the recorder's thread, on the writer's.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use steadyhand::{Call, ToolExecutor, ToolManager};
use steadyhand_store::history::History;
use tokio::time::sleep;

use crate::calls::forecast;
use crate::{cpu, open, say};

const BLOCKS: usize = 40;
/// As many as a busy server has in the time that rows gather.
const CALLS: usize = 1000;
const PATIENCE: Duration = Duration::from_secs(60);

/// CPU of one call, in microseconds, thread by thread.
#[derive(Clone, Copy)]
struct Cost {
    path: f64,
    recorder: f64,
    writer: f64,
}

pub(crate) async fn measure(folder: &Path) -> Result<(), Box<dyn Error>> {
    let bare = executor();
    let kept = executor();
    let history = open(&folder.join("cost.db"));
    history.attach(&kept)?;
    history.flush(PATIENCE);
    let (mut without, mut with, mut seldom) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..BLOCKS {
        without.push(block(&bare, &history, CALLS).await);
        with.push(block(&kept, &history, CALLS).await);
        // Rows gather for a tenth of a second: these are written alone, or nearly so.
        seldom.push(block(&kept, &history, 3).await);
    }
    if history.health().dropped > 0 {
        return Err(format!("not all is written: {:?}", history.health()).into());
    }
    say(&format!(
        "| CPU of one call, µs (median of {BLOCKS} blocks) | its own path | recorder | writer |"
    ));
    say("| --- | ---: | ---: | ---: |");
    row("nobody watches", &mut without);
    row(&format!("written down, {CALLS} at a time"), &mut with);
    row("written down, 3 at a time", &mut seldom);
    say("");
    Ok(())
}

fn executor() -> ToolExecutor {
    let manager = ToolManager::new();
    let _ = manager.add_all([forecast()]);
    ToolExecutor::new(manager)
}

async fn block(executor: &ToolExecutor, history: &History, calls: usize) -> Cost {
    let names = ["history_speed", "steadyhand-obse", "steadyhand-hist"];
    let before = names.map(cpu);
    for number in 0..calls {
        let args = json!({"area": "kitchen", "n": number, "text": "turn the lights on"});
        let outcome = executor
            .execute(Call::new("forecast", args).caller("cli"))
            .await;
        assert!(outcome.is_success());
    }
    let path = cpu(names[0]) - before[0];
    // Not in a hurry: that would be another cost.
    let written = || history.health().queued == 0;
    sleep(Duration::from_millis(250)).await;
    while !written() {
        sleep(Duration::from_millis(10)).await;
    }
    let micros = |spent: Duration| spent.as_secs_f64() * 1e6 / calls as f64;
    Cost {
        path: micros(path),
        recorder: micros(cpu(names[1]) - before[1]),
        writer: micros(cpu(names[2]) - before[2]),
    }
}

fn row(what: &str, costs: &mut [Cost]) {
    let mut median = |of: fn(&Cost) -> f64| {
        costs.sort_by(|a, b| of(a).total_cmp(&of(b)));
        of(&costs[costs.len() / 2])
    };
    let (path, recorder, writer) = (
        median(|cost| cost.path),
        median(|cost| cost.recorder),
        median(|cost| cost.writer),
    );
    say(&format!(
        "| {what} | {path:.2} | {recorder:.2} | {writer:.2} |"
    ));
}
