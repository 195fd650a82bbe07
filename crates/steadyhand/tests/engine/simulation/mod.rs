//! The whole path of a call, millions of times, on a virtual clock, with faults of every kind from
//! one seed: no call lost, none doubled, nothing left behind, and the breaker in step with its model.

mod driver;
mod report;
mod world;

use std::thread;

use report::Report;

/// 32 × 64,000 calls.
const SEEDS: u64 = 32;
const CALLS_PER_SEED: u32 = 64_000;

#[test]
fn i01_to_i18_hold_over_two_million_calls_with_faults_of_every_kind() {
    crate::quiet::about_panics_on_purpose();
    let threads = thread::available_parallelism().map_or(2, |cores| cores.get() as u64);
    let mut whole = Report::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|first| {
                scope.spawn(move || {
                    let mut part = Report::default();
                    for seed in (first..SEEDS).step_by(threads as usize) {
                        part.add(&driver::simulate(seed, CALLS_PER_SEED));
                    }
                    part
                })
            })
            .collect();
        for worker in workers {
            whole.add(&worker.join().expect("the seed is in the panic's text"));
        }
    });
    whole.print();
    whole.check_that_it_has_been_everywhere();
}

#[test]
fn the_same_seed_gives_the_same_run() {
    crate::quiet::about_panics_on_purpose();
    assert_eq!(driver::simulate(7, 4_000), driver::simulate(7, 4_000));
}
