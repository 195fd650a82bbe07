//! mathjs itself, run in Node, and what counts as the same answer.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use steadyhand_math::{Answer, MathError};

use crate::compare::{Verdict, describe, judge, same_answer};

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

pub(crate) fn announce(message: &str) {
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
        // What mathjs does not finish in time is no answer of either kind.
        if theirs.get("endless").is_some() {
            continue;
        }
        let (verdict, own) = judge(expression, theirs);
        if !matches!(verdict, Verdict::Agree | Verdict::BothRefuse) && !is_left_out(theirs) {
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
    match ours {
        Ok(answer) if same_answer(expression, theirs, answer) => Ok(()),
        ours => Err(describe(ours)),
    }
}
