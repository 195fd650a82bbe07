//! Nanoseconds per parse and evaluation of each expression in a JSON list on standard input: the best of many short rounds.
//! `scripts/math-speed` runs it beside mathjs.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement prints what the real clock says"
)]

use std::hint::black_box;
use std::io::stdin;
use std::time::Instant;

use serde_json::{Value, json};
use steadyhand_math::evaluate;

const ROUNDS: usize = 60;
const TIMES: u32 = 400;

fn main() {
    let expressions: Vec<Value> = serde_json::from_reader(stdin()).unwrap_or_default();
    let measured = expressions
        .iter()
        .filter_map(Value::as_str)
        .map(|expression| {
            let round = || {
                let start = Instant::now();
                for _ in 0..TIMES {
                    let _ = black_box(evaluate(black_box(expression)));
                }
                start.elapsed().as_nanos() as f64 / f64::from(TIMES)
            };
            let best = (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min);
            json!({"expression": expression, "nanoseconds": best})
        });
    println!("{}", Value::from(measured.collect::<Vec<_>>()));
}
