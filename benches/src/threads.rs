//! Measures calls on threads that run side by side, which on a busy machine they seldom do.

use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use steadyhand::ToolExecutor;
use tokio::runtime::Runtime;

use crate::measure::{Figure, thread_cpu_time};
use crate::{call_with_value, parsed};

/// Short enough that the scheduler often leaves both threads alone for as long.
const CALLS_PER_BLOCK: u64 = 1000;
const BLOCKS_MAX: usize = 3000;
const TIME_MAX: Duration = Duration::from_secs(10);

/// The cost of a call when each executor is called from a thread of its own. Blocks in which the
/// threads took turns on one core show no contention, so they are left out.
pub fn side_by_side(name: &str, runtime: &Runtime, executors: &[&ToolExecutor]) -> Option<Figure> {
    let began = Instant::now();
    let mut blocks: Vec<Block> = (0..BLOCKS_MAX)
        .take_while(|_| began.elapsed() < TIME_MAX)
        .map(|_| block(runtime, executors))
        .filter(|block| block.wall_ns < block.cpu_ns * 1.1)
        .collect();
    blocks.sort_by(|a, b| a.cpu_ns.total_cmp(&b.cpu_ns));
    let cheapest = blocks.first()?;
    Some(Figure {
        name: format!("{name} ({} blocks side by side)", blocks.len()),
        cpu_ns_min: cheapest.cpu_ns,
        cpu_ns_median: blocks[blocks.len() / 2].cpu_ns,
        wall_ns_min: cheapest.wall_ns,
        iterations_per_block: CALLS_PER_BLOCK,
    })
}

/// Per call of one thread.
struct Block {
    cpu_ns: f64,
    wall_ns: f64,
}

fn block(runtime: &Runtime, executors: &[&ToolExecutor]) -> Block {
    let missing = Arc::new(AtomicUsize::new(executors.len()));
    let tasks: Vec<_> = executors
        .iter()
        .map(|executor| runtime.spawn(calls((*executor).clone(), Arc::clone(&missing))))
        .collect();
    let spans: Vec<Span> = tasks
        .into_iter()
        .map(|task| runtime.block_on(task).expect("it ends well"))
        .collect();
    let cpu: Duration = spans.iter().map(|span| span.cpu).sum();
    let began = spans.iter().map(|span| span.began).min();
    let ended = spans.iter().map(|span| span.ended).max();
    let wall = ended.zip(began).map(|(ended, began)| ended - began);
    let calls = CALLS_PER_BLOCK as f64;
    Block {
        cpu_ns: cpu.as_nanos() as f64 / calls / spans.len() as f64,
        wall_ns: wall.unwrap_or_default().as_nanos() as f64 / calls,
    }
}

struct Span {
    cpu: Duration,
    began: Instant,
    ended: Instant,
}

async fn calls(executor: ToolExecutor, missing: Arc<AtomicUsize>) -> Span {
    let args = parsed();
    // Holds its worker until the others hold theirs, so that the tasks cannot share one.
    missing.fetch_sub(1, Ordering::AcqRel);
    while missing.load(Ordering::Acquire) > 0 {
        spin_loop();
    }
    let (began, cpu_began) = (Instant::now(), thread_cpu_time());
    for _ in 0..CALLS_PER_BLOCK {
        let call = call_with_value(black_box("sum"), black_box(&args));
        black_box(executor.execute(call).await);
    }
    Span {
        cpu: thread_cpu_time() - cpu_began,
        began,
        ended: Instant::now(),
    }
}
