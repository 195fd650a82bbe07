//! How fast the history of calls is: writes 1,000,000 calls of a week, then times pages, filters, single calls and trends;
//! and what writing a call down costs. Prints the tables of docs/benchmarks.md.
//!
//! Run: `cargo run --release --workspace --example history_speed -- [CALLS] [RUNS] [FOLDER]`
//! With a folder, the file is kept and used again; `--cost` alone tells what writing a call down costs.

mod ask;
mod calls;
mod cost;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use steadyhand_store::history::{History, HistoryOptions};

const GIB: u64 = 1 << 30;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "--ask") {
        return ask::answer(&words[1..]);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let own = tempfile::tempdir()?;
    if words.first().is_some_and(|word| word == "--cost") {
        return runtime.block_on(cost::measure(own.path()));
    }
    words.reverse();
    let calls = words.pop().map_or(Ok(1_000_000), |text| text.parse())?;
    let runs = words.pop().map_or(Ok(100), |text| text.parse())?;
    let folder = words.pop().map_or(own.path().to_owned(), PathBuf::from);
    let path = folder.join("calls.db");
    runtime.block_on(cost::measure(own.path()))?;
    if !path.exists() {
        calls::fill(&path, calls)?;
    }
    ask::measure(&path, runs)
}

/// A history that forgets nothing meanwhile.
fn open(path: &Path) -> History {
    let mut options = HistoryOptions::new(path);
    options.max_bytes = 8 * GIB;
    options.keep = Duration::from_secs(21 * 24 * 60 * 60);
    History::open(options)
}

/// CPU time of the threads of this process whose name begins so.
fn cpu(name: &str) -> Duration {
    let of_task = |task: PathBuf| {
        let comm = std::fs::read_to_string(task.join("comm")).ok()?;
        let stat = std::fs::read_to_string(task.join("schedstat")).ok()?;
        let nanos = stat.split(' ').next()?.parse().ok()?;
        comm.starts_with(name).then(|| Duration::from_nanos(nanos))
    };
    let tasks = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    tasks.filter_map(|task| of_task(task.path())).sum()
}

#[allow(clippy::print_stdout, reason = "an example prints what it found")]
fn say(line: &str) {
    println!("{line}");
}
