//! The builtin `math_eval` (SPEC F11): an expression in the language of mathjs.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use steadyhand::{Tool, ToolError};
use steadyhand_math::{Answer, ErrorKind};

/// What to evaluate.
#[derive(Debug, Deserialize, JsonSchema)]
struct MathArgs {
    /// Such as 2 + 2, sqrt(3^2 + 4^2), 5.4 cm to inch or det([1, 2; 3, 4])
    #[schemars(example = "2 + 2")]
    expression: String,
}

/// The tool `math_eval`.
pub(super) fn tool() -> Tool {
    let description = "Evaluates a mathematical expression in the language of mathjs: arithmetic, functions, units, matrices, complex and big numbers";
    // On a thread of its own: a long expression uses up its step budget without holding up other calls.
    Tool::blocking("math_eval", description, evaluate)
}

/// Numbers, booleans, texts and null as themselves. Everything else is the text mathjs writes, with all its digits, and
/// `type` says what it is: a big number is not read as a float, nor a `NaN` as a word.
fn result(answer: &Answer) -> Value {
    let value = answer.to_json();
    if value.is_string() && answer.type_name() != "string" {
        return json!({ "result": value, "type": answer.type_name() });
    }
    json!({ "result": value })
}

fn evaluate(args: MathArgs) -> Result<Value, ToolError> {
    match steadyhand_math::evaluate(&args.expression) {
        Ok(answer) => Ok(result(&answer)),
        Err(error) => {
            let answer = ToolError::answer(error.to_string());
            match error.kind() {
                // What is no expression is not evaluated.
                ErrorKind::Syntax { .. } => Err(answer.never_started()),
                _ => Err(answer),
            }
        }
    }
}
