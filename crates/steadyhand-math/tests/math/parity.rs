//! Every example of mathjs's own documentation, through both: agreement per category, and every difference.
//! The examples are read from the installed package when the test runs; none is kept here.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use steadyhand_math::Session;

use crate::peer;

/// Symbolic algebra is left out of the language; what it would take is counted apart.
const SYMBOLIC: [&str; 6] = [
    "derivative",
    "simplify",
    "simplifyConstant",
    "simplifyCore",
    "symbolicEqual",
    "rationalize",
];

/// These agree completely; the rest, symbolic algebra aside, to 95 %.
const COMPLETE: [&str; 11] = [
    "Arithmetic",
    "Operators",
    "Trigonometry",
    "Statistics",
    "Relational",
    "Logical",
    "Bitwise",
    "Combinatorics",
    "Units",
    "Constants",
    "Physical constants",
];

/// Why an item differs, where it does.
const WHY: &[(&str, &str)] = &[
    ("slu", "left out; `lup` factors sparse matrices too"),
    ("help", "left out; the texts are mathjs's own"),
    (
        "eigs",
        "an eigenvalue that is zero, up to rounding errors of another method",
    ),
    (
        "matrixFromFunction",
        "of random lists: mathjs fills in zeros, here the lists stay",
    ),
    (
        "partitionSelect",
        "mathjs leaves the rest of the list in random order, here it is sorted",
    ),
    (
        "solveODE",
        "rounding errors that add up over the steps, below 1e-12",
    ),
    (
        "freqz",
        "the last of 14 digits in a few of hundreds of numbers",
    ),
    ("lgamma", "the last of 14 digits; ours is the nearer one"),
    ("zeta", "mathjs is exact to 12 digits there, ours to 15"),
];

#[derive(Default)]
struct Tally {
    agreed: usize,
    total: usize,
}

#[derive(Default)]
struct Report {
    categories: BTreeMap<String, Tally>,
    /// One per expression, for whoever runs the comparison.
    differences: Vec<String>,
    /// How many expressions of an item differ; the expressions themselves are mathjs's and are not kept.
    items: BTreeMap<String, usize>,
}

fn compare(items: &Value) -> Report {
    let mut report = Report::default();
    for item in items.as_array().into_iter().flatten() {
        let name = item["item"].as_str().unwrap_or_default();
        let category = if SYMBOLIC.contains(&name) {
            "Algebra (symbolic)"
        } else {
            item["category"].as_str().unwrap_or_default()
        };
        let mut session = Session::new().seeded(1);
        for statement in item["statements"].as_array().into_iter().flatten() {
            let expression = statement["expression"].as_str().unwrap_or_default();
            let ours = session.evaluate(expression);
            // Some documented examples do not run in mathjs itself.
            if statement.get("error").is_some() {
                continue;
            }
            let tally = report.categories.entry(category.into()).or_default();
            tally.total += 1;
            match peer::agree(expression, statement, &ours) {
                Ok(()) => tally.agreed += 1,
                Err(own) => {
                    let theirs = statement
                        .get("number")
                        .map_or_else(|| statement["text"].to_string(), ToString::to_string);
                    let (expression, theirs, own) = (cell(expression), cell(&theirs), cell(&own));
                    report.differences.push(format!(
                        "{category}, {name}: {expression}\n    mathjs {theirs}\n    here   {own}"
                    ));
                    *report.items.entry(name.into()).or_default() += 1;
                }
            }
        }
    }
    report
}

/// In one line, and not too long.
fn cell(text: &str) -> String {
    let line = text.replace('\n', " ");
    if line.chars().count() > 160 {
        line.chars().take(160).chain("…".chars()).collect()
    } else {
        line
    }
}

impl Report {
    fn share(&self, wanted: impl Fn(&str) -> bool) -> (usize, usize) {
        let chosen = self
            .categories
            .iter()
            .filter(|(name, _)| wanted(name))
            .map(|(_, tally)| tally);
        chosen.fold((0, 0), |(agreed, total), tally| {
            (agreed + tally.agreed, total + tally.total)
        })
    }

    fn to_markdown(&self) -> String {
        let mut text = String::from(
            "# Parity with mathjs\n\n`math_eval` speaks the language of mathjs 15.2.0. Here are both, expression by expression. A number agrees within 1e-12\n\
             relative, other values when their kind, their words and their numbers do; random ones when their kind and shape are the\n\
             same. Whether a matrix is written dense or sparse, and how an `index()` is written, does not count. `scripts/math-parity`\n\
             prints this page and every difference, `scripts/math-parity --write` keeps the page.\n\n\
             What `math_eval` answers: numbers, booleans, texts and null as JSON; everything else (units, matrices, complex numbers, big\n\
             numbers, fractions, big integers, `NaN`, `Infinity`) as the text mathjs's `format(value)` writes, with all its digits, and\n\
             `type` beside it: `{\"result\": \"1.267650600228229401496703205376e+30\", \"type\": \"BigNumber\"}`.\n\n\
             ## The documented examples\n\nEvery example of mathjs's embedded documentation that runs there.\n\n| category | agree | of | share |\n| --- | ---: | ---: | ---: |\n",
        );
        let mut row = |name: &str, agreed: usize, total: usize| {
            let _ = writeln!(
                text,
                "| {name} | {agreed} | {total} | {:.1} % |",
                100.0 * agreed as f64 / total.max(1) as f64
            );
        };
        for (name, tally) in &self.categories {
            row(name, tally.agreed, tally.total);
        }
        let (agreed, total) = self.share(|name| name != "Algebra (symbolic)");
        row("**all but symbolic algebra**", agreed, total);
        let (agreed, total) = self.share(|_| true);
        row("**all**", agreed, total);
        text.push_str(
            "\n### What differs, and why\n\n| item | examples | why |\n| --- | ---: | --- |\n",
        );
        for (item, count) in &self.items {
            let why = WHY
                .iter()
                .find(|(name, _)| name == item)
                .map(|(_, why)| *why);
            let why = why.or_else(|| {
                SYMBOLIC
                    .contains(&item.as_str())
                    .then_some("symbolic algebra is left out, and says so")
            });
            let _ = writeln!(
                text,
                "| `{item}` | {count} | {} |",
                why.unwrap_or("**not explained yet**")
            );
        }
        text
    }
}

#[test]
fn f11_the_documented_examples_of_mathjs_give_what_mathjs_gives() {
    let Some(items) = peer::run("examples", &Value::Null) else {
        return;
    };
    let report = compare(&items);
    if let Some(folder) = std::env::var_os("STEADYHAND_MATH_PARITY") {
        let folder = std::path::Path::new(&folder);
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text);
        write("table.md", &report.to_markdown()).expect("the table can be written");
        write("differences.txt", &report.differences.join("\n"))
            .expect("the differences can be written");
    }
    let shown = report.differences.join("\n");
    let (agreed, total) = report.share(|name| name != "Algebra (symbolic)");
    assert!(
        total > 800,
        "mathjs documents more than {total} examples that run"
    );
    for name in COMPLETE {
        let (agreed, total) = report.share(|category| category == name);
        assert_eq!(agreed, total, "{name} must agree completely:\n{shown}");
    }
    assert!(
        agreed * 100 >= total * 95,
        "{agreed} of {total} agree, less than 95 %:\n{shown}"
    );
}
