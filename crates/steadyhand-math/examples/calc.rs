//! A calculator for the terminal: `calc '5.4 cm to inch'`, or lines from standard input that share their variables.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is what a calculator does"
)]

use std::io::{BufRead, stdin};
use std::process::ExitCode;

use steadyhand_math::Session;

fn main() -> ExitCode {
    let mut session = Session::new();
    let mut answered = |line: &str| match session.evaluate(line) {
        Ok(answer) => {
            println!("{answer}");
            true
        }
        Err(error) => {
            eprintln!("{error}");
            false
        }
    };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.is_empty() {
        return if answered(&arguments.join(" ")) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    for line in stdin().lock().lines().map_while(Result::ok) {
        answered(&line);
    }
    ExitCode::SUCCESS
}
