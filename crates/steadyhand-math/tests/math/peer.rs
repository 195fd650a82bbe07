//! mathjs itself, run in Node, and what counts as the same answer.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use steadyhand_math::{Answer, MathError, evaluate};

/// Where `./test` installed mathjs; `None`, said aloud, where nobody did.
fn home() -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|directory| directory.join("target/peers/mathjs"))
        .find(|home| home.join("node_modules/mathjs").is_dir());
    if home.is_none() {
        announce("skipped: mathjs is not installed; ./test or scripts/math-parity installs it");
    }
    home
}

fn announce(message: &str) {
    // Straight to the terminal's standard error, past the test harness's capture.
    let _ = writeln!(std::io::stderr(), "steadyhand-math: {message}");
}

/// Runs one task of `mathjs.mjs`; `None` where mathjs is not installed.
pub(crate) fn run(task: &str, input: &Value) -> Option<Value> {
    let home = home()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/mathjs.mjs");
    let mut node = Command::new("node")
        .args([script.as_os_str(), home.as_os_str(), task.as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node starts where mathjs was installed by npm");
    let mut stdin = node.stdin.take().expect("node has a standard input");
    stdin
        .write_all(input.to_string().as_bytes())
        .expect("node reads its input");
    drop(stdin);
    let output = node.wait_with_output().expect("node ends");
    assert!(output.status.success(), "mathjs.mjs {task} failed");
    Some(serde_json::from_slice(&output.stdout).expect("mathjs.mjs prints JSON"))
}

/// Each of these gets the answer of mathjs, or is refused by both.
pub(crate) fn all_agree(questions: &[&str]) {
    let differences = differences(questions, |_| false);
    assert!(
        differences.is_empty(),
        "{} of {} differ:\n{}",
        differences.len(),
        questions.len(),
        differences.join("\n")
    );
}

/// Where we give another answer than mathjs, but for those of its answers that do not count. None where it is not installed.
pub(crate) fn differences(
    questions: &[impl AsRef<str>],
    is_left_out: impl Fn(&Value) -> bool,
) -> Vec<String> {
    let questions: Vec<&str> = questions.iter().map(AsRef::as_ref).collect();
    let answers = run("evaluate", &Value::from(questions.clone())).unwrap_or_else(|| json!([]));
    let answers = answers.as_array().expect("a list of answers");
    let mut differences = Vec::new();
    for (expression, theirs) in questions.into_iter().zip(answers) {
        let ours = evaluate(expression);
        let verdict = match (theirs.get("error"), &ours) {
            (Some(_), Err(_)) => Ok(()),
            (Some(error), Ok(answer)) => Err(format!("{answer}, where mathjs says {error}")),
            (None, _) => agree(expression, theirs, &ours),
        };
        if let Err(own) = verdict
            && !is_left_out(theirs)
        {
            differences.push(format!(
                "{expression}\n    mathjs {theirs}\n    here   {own}"
            ));
        }
    }
    differences
}

/// Whether ours is the answer mathjs gave; otherwise what ours was.
pub(crate) fn agree(
    expression: &str,
    theirs: &Value,
    ours: &Result<Answer, MathError>,
) -> Result<(), String> {
    if let Some(number) = theirs["number"].as_f64() {
        return match ours.as_ref().map(Answer::as_number) {
            Ok(Some(own)) if is_random(expression) => {
                let same = own.is_finite() && number.is_finite();
                if same { Ok(()) } else { Err(own.to_string()) }
            }
            Ok(Some(own)) if same_number(own, number) => Ok(()),
            Ok(Some(own)) => Err(own.to_string()),
            _ => Err(describe(ours)),
        };
    }
    let text = theirs["text"].as_str().unwrap_or_default();
    match ours {
        Ok(answer)
            if answer.to_string() == text
                && Some(answer.type_name()) == theirs["type"].as_str() =>
        {
            Ok(())
        }
        Ok(answer) if is_random(expression) && shape(&answer.to_string()) == shape(text) => Ok(()),
        _ => Err(describe(ours)),
    }
}

pub(crate) fn same_number(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}

fn describe(ours: &Result<Answer, MathError>) -> String {
    match ours {
        Ok(answer) => format!("{answer} ({})", answer.type_name()),
        Err(error) => format!("error: {error}"),
    }
}

/// Chance decides the numbers; only their kind and arrangement can be compared.
fn is_random(expression: &str) -> bool {
    expression.to_lowercase().contains("random") || expression.contains("distribution")
}

fn shape(text: &str) -> String {
    let mut shape = String::new();
    for c in text.chars() {
        let c = if c.is_ascii_digit() || matches!(c, '.' | 'e' | '-' | '+') {
            '0'
        } else {
            c
        };
        if c != '0' || !shape.ends_with('0') {
            shape.push(c);
        }
    }
    shape
}
