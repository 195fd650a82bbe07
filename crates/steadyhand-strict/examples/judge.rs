//! Lets our repair and our strict Anthropic be used by a script: one request per line in, one answer out.

#![allow(clippy::print_stdout, reason = "a program answers")]

use std::io::{BufRead, stdin};

use serde_json::{Value, json};
use steadyhand_conversation::strict;
use steadyhand_conversation::{Provider, repair};

fn main() {
    for line in stdin().lock().lines() {
        let line = line.expect("a line can be read");
        let request: Value = serde_json::from_str(&line).expect("a request is JSON");
        let refused = |request: &Value| {
            let verdict = strict::check(Provider::Anthropic, request);
            verdict
                .err()
                .map(|(_, body)| body["error"]["message"].clone())
        };
        let (repaired, fixes) = repair(Provider::Anthropic, request.clone());
        let answer = json!({
            "refused": refused(&request),
            "repaired": repaired,
            "repaired_refused": refused(&repaired),
            "fixes": fixes.len(),
        });
        println!("{answer}");
    }
}
