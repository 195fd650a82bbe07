//! Prints figures: a table for people, or one line of JSON for programs (`--json`).

use crate::measure::Figure;

/// Prints the figures the way the command line asks for.
pub fn print(figures: &[Figure]) {
    if std::env::args().any(|argument| argument == "--json") {
        let text = serde_json::to_string(figures).expect("figures are JSON");
        return println!("{text}");
    }
    println!(
        "{:<58} {:>11} {:>11} {:>11}",
        "", "CPU ns min", "CPU ns med", "wall ns min"
    );
    for figure in figures {
        println!(
            "{:<58} {:>11.0} {:>11.0} {:>11.0}",
            figure.name, figure.cpu_ns_min, figure.cpu_ns_median, figure.wall_ns_min
        );
    }
}
