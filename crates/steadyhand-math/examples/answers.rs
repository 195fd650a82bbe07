//! Answers each expression of a JSON list on standard input, each in a session of its own: a JSON list of what mathjs's
//! `typeOf` and `format` would say, or of errors. `scripts/math-parity` compares it with mathjs.
#![allow(clippy::print_stdout, reason = "the answers are printed")]

use std::io::stdin;

use serde_json::{Value, json};
use steadyhand_math::evaluate;

fn main() {
    let expressions: Vec<Value> = serde_json::from_reader(stdin()).unwrap_or_default();
    for expression in expressions.iter().filter_map(Value::as_str) {
        let answer = match std::panic::catch_unwind(|| evaluate(expression))
            .unwrap_or_else(|_| evaluate("PANIC"))
        {
            Ok(answer) => json!({
                "expression": expression,
                "type": answer.type_name(),
                "full": answer.to_string(),
                "json": answer.to_json(),
            }),
            Err(error) => json!({"expression": expression, "error": error.to_string()}),
        };
        println!("{answer}");
    }
}
