//! Runs one kind of call so many times and nothing else, for callgrind to count: `instructions guarded 2000`.

use std::hint::black_box;

use steadyhand_benches::floor::Floor;
use steadyhand_benches::{
    TEXT, as_text, bare, call_with_text, call_with_value, executor, one_thread, parsed,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: instructions input|bare|floor|guarded|guarded-text <times>";
    let mode = arguments.next().expect(usage);
    let times: u64 = arguments
        .next()
        .and_then(|times| times.parse().ok())
        .expect(usage);
    let args = parsed();
    let floor = Floor::new();
    let executor = executor();
    one_thread().block_on(async {
        match mode.as_str() {
            // The value that a caller makes and hands over, with no one to take it.
            "input" => {
                for _ in 0..times {
                    black_box(black_box(&args).clone());
                }
            }
            "bare" => {
                for _ in 0..times {
                    black_box(bare(black_box(&args).clone()).await);
                }
            }
            "floor" => {
                for _ in 0..times {
                    black_box(floor.call(black_box("sum"), black_box(TEXT)).await);
                }
            }
            "guarded" => {
                for _ in 0..times {
                    let call = call_with_value(black_box("sum"), black_box(&args));
                    black_box(executor.execute(call).await);
                }
            }
            "guarded-text" => {
                for _ in 0..times {
                    let call = call_with_text(black_box("sum"), black_box(TEXT));
                    black_box(as_text(&executor.execute(call).await));
                }
            }
            _ => panic!("{usage}"),
        }
    });
}
