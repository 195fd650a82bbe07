//! Measures cases in interleaved rounds of blocks; CPU time of the process is the figure that counts.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// A block lasts about this long: far above the clock's grain, below a scheduler's patience.
const BLOCK: Duration = Duration::from_millis(4);
const WARM_UP: Duration = Duration::from_millis(100);
const ROUNDS: usize = 7;
const BLOCKS_PER_ROUND: usize = 8;

/// Something to measure: runs itself as often as it is told.
pub struct Case<'a> {
    name: String,
    run: Box<dyn FnMut(u64) + 'a>,
    iterations: u64,
    cpu_ns: Vec<f64>,
    wall_ns: Vec<f64>,
}

/// What one iteration of a case costs.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    pub name: String,
    /// Of the cheapest block.
    pub cpu_ns_min: f64,
    /// Of all blocks.
    pub cpu_ns_median: f64,
    pub wall_ns_min: f64,
    pub iterations_per_block: u64,
}

impl<'a> Case<'a> {
    /// A case on this thread; `run(n)` does its work `n` times.
    pub fn new(name: impl Into<String>, run: impl FnMut(u64) + 'a) -> Case<'a> {
        Case {
            name: name.into(),
            run: Box::new(run),
            iterations: 1,
            cpu_ns: Vec::new(),
            wall_ns: Vec::new(),
        }
    }

    fn warm_up(&mut self) {
        let began = Instant::now();
        let mut took = Duration::ZERO;
        while began.elapsed() < WARM_UP {
            let block = Instant::now();
            (self.run)(self.iterations);
            took = block.elapsed();
            if took < BLOCK / 2 {
                self.iterations *= 2;
            }
        }
        let ratio = BLOCK.as_secs_f64() / took.as_secs_f64();
        self.iterations = (self.iterations as f64 * ratio).max(1.0) as u64;
    }

    fn block(&mut self) {
        let (began, cpu_began) = (Instant::now(), cpu_time(ClockId::ProcessCPUTime));
        (self.run)(self.iterations);
        let cpu = cpu_time(ClockId::ProcessCPUTime) - cpu_began;
        let wall = began.elapsed();
        let each = |took: Duration| took.as_nanos() as f64 / self.iterations as f64;
        self.cpu_ns.push(each(cpu));
        self.wall_ns.push(each(wall));
    }

    fn figure(mut self) -> Figure {
        self.cpu_ns.sort_by(f64::total_cmp);
        self.wall_ns.sort_by(f64::total_cmp);
        Figure {
            name: self.name,
            cpu_ns_min: self.cpu_ns[0],
            cpu_ns_median: self.cpu_ns[self.cpu_ns.len() / 2],
            wall_ns_min: self.wall_ns[0],
            iterations_per_block: self.iterations,
        }
    }
}

/// Measures all cases, taking turns, so that a noisy neighbour disturbs them alike.
pub fn measure(mut cases: Vec<Case<'_>>) -> Vec<Figure> {
    cases.iter_mut().for_each(Case::warm_up);
    for _ in 0..ROUNDS {
        for case in &mut cases {
            for _ in 0..BLOCKS_PER_ROUND {
                case.block();
            }
        }
    }
    cases.into_iter().map(Case::figure).collect()
}

/// CPU time of the thread that asks. The process's clock is late by a tick for other threads.
pub fn thread_cpu_time() -> Duration {
    cpu_time(ClockId::ThreadCPUTime)
}

fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
