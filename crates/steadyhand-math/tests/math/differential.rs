//! Every function of mathjs with every kind of argument, through both: what agrees, what is refused, what differs.
//! A sample runs with the tests; `scripts/math-parity` runs all of it, and the expressions of a file if there is one.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::compare::{Verdict, judge};
use crate::peer;

/// One of each kind, and the corners: nothing, not a number, infinite, too large, too long, singular.
const ALONE: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3.5",
    "-2.5",
    "0.1",
    "1e21",
    "NaN",
    "Infinity",
    "-Infinity",
    "-0",
    "bignumber(0)",
    "bignumber(3)",
    "bignumber(-2.5)",
    "bignumber(\"1e25\")",
    "bignumber(NaN)",
    "bigint(0)",
    "bigint(3)",
    "bigint(-7)",
    "bigint(\"123456789012345678901\")",
    "fraction(1,3)",
    "fraction(-7,2)",
    "fraction(4)",
    "i",
    "2+3i",
    "complex(-4,0)",
    "5 cm",
    "-3 kg",
    "45 deg",
    "20 degC",
    "(2+i) ohm",
    "m",
    "unit(bignumber(2),\"m\")",
    "unit(fraction(1,3),\"m\")",
    "\"3\"",
    "\"abc\"",
    "\"\"",
    "\"2+3i\"",
    "true",
    "false",
    "null",
    "undefined",
    "[1,2,3]",
    "[[1,2],[3,4]]",
    "sparse([[1,2],[0,4]])",
    "[]",
    "[[[1,2],[3,4]],[[5,6],[7,8]]]",
    "[1,NaN,2]",
    "[bignumber(1),bignumber(2)]",
    "[fraction(1,2),fraction(3,4)]",
    "[[1,i],[-i,2]]",
    "[\"a\",\"b\"]",
    "[true,false]",
    "[1 m,2 m]",
    "{a:1}",
    "[[2]]",
    "[1,2;3,4;5,6]",
    "[0,1;0,0]",
];

/// Those that are combined in pairs.
const PAIRED: &[&str] = &[
    "0",
    "2",
    "-3",
    "2.5",
    "NaN",
    "Infinity",
    "bignumber(4)",
    "bignumber(-1.5)",
    "bigint(5)",
    "bigint(\"123456789012345678901\")",
    "fraction(2,3)",
    "2+3i",
    "5 cm",
    "2 kg",
    "\"2\"",
    "\"ab\"",
    "true",
    "null",
    "[1,2]",
    "[[1,2],[3,4]]",
    "sparse([[1,2],[0,4]])",
    "[4,5,6]",
    "[bignumber(2),fraction(1,2)]",
    "{a:1}",
    "[[2],[3]]",
];

const OPERATORS: &[&str] = &[
    "+", "-", "*", "/", "^", ".*", "./", ".^", "mod", "%", "==", "!=", "<", ">", "<=", ">=", "&",
    "|", "^|", "<<", ">>", ">>>", "and", "or", "xor", "to", "??", ":",
];

/// Functions whose answer depends on chance, changes the settings, or is left out.
const NOT_COMPARED: &[&str] = &[
    "derivative",
    "simplify",
    "simplifyCore",
    "simplifyConstant",
    "rationalize",
    "symbolicEqual",
    "random",
    "randomInt",
    "pickRandom",
    "distribution",
    "help",
    "import",
    "config",
    "createUnit",
    "parser",
    "chain",
    "reviver",
    "replacer",
    "typed",
    "parse",
    "compile",
    "evaluate",
    "resolve",
    "leafCount",
    "solveODE",
];

fn grid(functions: &[&str]) -> Vec<String> {
    let mut expressions = Vec::new();
    for name in functions {
        expressions.push(format!("{name}()"));
        expressions.extend(ALONE.iter().map(|a| format!("{name}({a})")));
        for a in PAIRED {
            expressions.extend(PAIRED.iter().map(|b| format!("{name}({a}, {b})")));
        }
    }
    for operator in OPERATORS {
        for a in PAIRED {
            expressions.extend(PAIRED.iter().map(|b| format!("({a}) {operator} ({b})")));
        }
    }
    for a in ALONE {
        for around in ["-", "+", "~", "not "] {
            expressions.push(format!("{around}({a})"));
        }
        for behind in ["!", "'", " ? 1 : 2", "[1]", "[1, 1]"] {
            expressions.push(format!("({a}){behind}"));
        }
    }
    expressions
}

/// The functions of mathjs that are compared; `None` where it is not installed.
fn functions() -> Option<Vec<String>> {
    let names = peer::run("functions", &Value::Null)?;
    let names = names.as_array()?.iter().filter_map(Value::as_str);
    let compared = names.filter(|name| {
        let asks_kind = name.starts_with("is") && name[2..].starts_with(char::is_uppercase);
        let is_question = matches!(
            *name,
            "isNaN"
                | "isInteger"
                | "isPositive"
                | "isNegative"
                | "isZero"
                | "isNumeric"
                | "isPrime"
        );
        !NOT_COMPARED.contains(name) && (!asks_kind || is_question)
    });
    Some(compared.map(String::from).collect())
}

#[derive(Default)]
struct Tally {
    counts: BTreeMap<Verdict, usize>,
    lines: Vec<String>,
}

impl Tally {
    fn add(&mut self, expression: &str, theirs: &Value) {
        if theirs.get("endless").is_some() {
            return;
        }
        let (verdict, own) = judge(expression, theirs);
        *self.counts.entry(verdict).or_default() += 1;
        if !matches!(
            verdict,
            Verdict::Agree | Verdict::BothRefuse | Verdict::LeftOut
        ) {
            let said = theirs
                .get("error")
                .or_else(|| theirs.get("full"))
                .or_else(|| theirs.get("text"))
                .unwrap_or(&theirs["number"]);
            self.lines.push(format!(
                "[{verdict:?}] {expression}\n    mathjs {} {said}\n    here   {own}",
                theirs["type"]
            ));
        }
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.counts.get(&verdict).copied().unwrap_or(0)
    }

    /// Of those that mathjs answers and that are not left out, the share with its value.
    fn agreement(&self) -> f64 {
        let agreed = self.count(Verdict::Agree) as f64;
        let others = self.count(Verdict::ValueDiffers)
            + self.count(Verdict::DiffersOnPurpose)
            + self.count(Verdict::FailsOnlyHere);
        agreed / (agreed + others as f64).max(1.0)
    }

    fn to_markdown(&self) -> String {
        let mut text = String::from("| | expressions |\n| --- | ---: |\n");
        for (verdict, name) in Verdict::ALL {
            let _ = writeln!(text, "| {name} | {} |", self.count(verdict));
        }
        let _ = writeln!(
            text,
            "| **agreement**, of what mathjs answers | **{:.1} %** |",
            100.0 * self.agreement()
        );
        text
    }

    fn write(&self, name: &str) {
        if let Some(folder) = std::env::var_os("STEADYHAND_MATH_PARITY") {
            let folder = std::path::Path::new(&folder);
            let write = |file: String, text: &str| std::fs::write(folder.join(file), text);
            write(format!("{name}.md"), &self.to_markdown()).expect("the table can be written");
            write(format!("{name}.txt"), &self.lines.join("\n"))
                .expect("the differences can be written");
        }
    }
}

#[test]
fn f11_every_function_with_every_kind_of_argument_answers_or_refuses_like_mathjs() {
    let Some(functions) = functions() else {
        return;
    };
    let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
    let all = grid(&functions);
    // A prime step visits every function, and other pairs in each; the script takes them all.
    let step = if std::env::var_os("STEADYHAND_MATH_PARITY").is_some() {
        1
    } else {
        23
    };
    let chosen: Vec<&str> = all.iter().step_by(step).map(String::as_str).collect();
    let mut tally = Tally::default();
    // What mathjs did not finish keeps its memory: a new process for each part.
    for part in chosen.chunks(10_000) {
        let answers = peer::run("evaluate", &Value::from(part.to_vec())).unwrap_or_default();
        for (expression, theirs) in part.iter().zip(answers.as_array().into_iter().flatten()) {
            tally.add(expression, theirs);
        }
    }
    tally.write("grid");
    let shown = tally.lines.join("\n");
    assert!(chosen.len() > 5000, "only {} were compared", chosen.len());
    assert_eq!(
        tally.count(Verdict::ValueDiffers),
        0,
        "values differ that are not listed as differences on purpose:\n{shown}"
    );
    assert!(
        tally.count(Verdict::AnsweredWhereRefused) * 100 <= chosen.len(),
        "more than 1 % are answered where mathjs refuses:\n{shown}"
    );
}

/// Expressions with mathjs's answers, one JSON object a line, outside of this repository: only the script names such a file.
#[test]
fn f11_the_expressions_of_a_file_get_the_answers_in_it() {
    let Some(path) = std::env::var_os("STEADYHAND_MATH_CASES") else {
        peer::announce("skipped: STEADYHAND_MATH_CASES names no file of expressions");
        return;
    };
    let text = std::fs::read_to_string(path).expect("the file of expressions can be read");
    let mut tally = Tally::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let case: Value = serde_json::from_str(line).expect("each line is a JSON object");
        let expression = case["expression"].as_str().expect("with an expression");
        if case["type"] == "symbolic" {
            continue;
        }
        tally.add(expression, &case);
    }
    tally.write("cases");
    assert!(
        tally.agreement() >= 0.98,
        "less than 98 % agree:\n{}",
        tally.lines.join("\n")
    );
}
