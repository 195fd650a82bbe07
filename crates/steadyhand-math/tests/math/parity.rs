//! Every example of mathjs's own documentation, through both: agreement per category, and every difference.

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

#[derive(Default)]
struct Tally {
    agreed: usize,
    total: usize,
}

#[derive(Default)]
struct Report {
    categories: BTreeMap<String, Tally>,
    differences: Vec<String>,
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
                    report.differences.push(format!(
                        "| {category} | {name} | `{}` | {} | {} |",
                        cell(expression),
                        cell(&theirs),
                        cell(&own)
                    ));
                }
            }
        }
    }
    report
}

/// Short enough for a table, and without what would break it.
fn cell(text: &str) -> String {
    let line = text.replace('\n', " ").replace('|', "\\|");
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
            "# Parity with mathjs\n\nEvery example of mathjs's embedded documentation that runs there, through mathjs and through `steadyhand-math`. A number\n\
             agrees within 1e-12 relative, other values when their kind and text (14 digits) are equal; random ones when their kind and shape are.\n\
             `scripts/math-parity` prints this page, `scripts/math-parity --write` keeps it.\n\n| category | agree | of | share |\n| --- | ---: | ---: | ---: |\n",
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
        text.push_str("\n## Differences\n\n| category | item | expression | mathjs | here |\n| --- | --- | --- | --- | --- |\n");
        text.push_str(&self.differences.join("\n"));
        text.push('\n');
        text
    }
}

#[test]
fn f11_the_documented_examples_of_mathjs_give_what_mathjs_gives() {
    let Some(items) = peer::run("examples", &Value::Null) else {
        return;
    };
    let report = compare(&items);
    if let Some(path) = std::env::var_os("STEADYHAND_MATH_PARITY") {
        std::fs::write(path, report.to_markdown()).expect("the report can be written");
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
