//! Every fenced block of the README and of docs/: configurations are loaded by the real loader, transcripts are run
//! and compared, command lines are understood by the program, JSON is JSON; Rust is compiled as a test of its crate.

use std::collections::BTreeMap;
use std::io::Write;

use super::commands::{self, Step};
use super::fences::{Fence, fences};
use super::{pages, read, root};
use crate::serve::Served;
use crate::support::Workplace;

/// Pages that a test of their own runs from beginning to end, against a server or with their files.
const RUN_ELSEWHERE: [(&str, &str); 2] = [
    ("docs/rest.md", "serve::rest"),
    ("docs/repair.md", "cli::conversation"),
];

/// Its transcript is run in an empty home without a network, step by step: by scripts/newcomer.
const README: &str = "README.md";

/// Pages whose Rust is compiled: `#[doc = include_str!(…)]` in the crate named behind it.
const RUST: [(&str, &str); 3] = [
    ("README.md", "crates/steadyhand/src/lib.rs"),
    ("docs/library.md", "crates/steadyhand/src/lib.rs"),
    ("docs/models.md", "crates/steadyhand-models/src/lib.rs"),
];

/// What was done with how many blocks.
#[derive(Default)]
struct Count(BTreeMap<&'static str, usize>);

impl Count {
    fn add(&mut self, what: &'static str, count: usize) {
        *self.0.entry(what).or_default() += count;
    }
}

#[tokio::test]
async fn every_block_of_the_book_is_run_loaded_or_parsed() {
    let mut count = Count::default();
    let mut faults = Vec::new();
    let mut left_out = Vec::new();
    let pages = pages();
    for page in &pages {
        let blocks = fences(page, &read(page));
        if RUN_ELSEWHERE.iter().any(|(known, _)| known == page) {
            count.add("in pages with a test of their own", blocks.len());
            continue;
        }
        let mut workplace = Some(workplace());
        for block in blocks {
            if let Some(reason) = block.reason_not_to_run() {
                left_out.push(format!("{}: {reason}", block.place()));
                count.add("marked norun", 1);
            }
            if let Err(why) = check(&block, &mut workplace, &mut count).await {
                faults.push(format!("{} ({}): {why}", block.place(), block.language));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{} blocks are not true\n\n{}",
        faults.len(),
        faults.join("\n\n")
    );
    let counts: Vec<String> = count
        .0
        .iter()
        .map(|(what, n)| format!("{n} {what}"))
        .collect();
    // Past the test runner, which keeps what tests print to itself: how much is not run is no secret.
    let mut log = std::io::stderr();
    let _ = writeln!(
        log,
        "the book: {} pages; {}",
        pages.len(),
        counts.join(", ")
    );
    for one in left_out {
        let _ = writeln!(log, "  not run: {one}");
    }
}

/// A folder for the commands of a page, with the files that pages speak of.
fn workplace() -> Workplace {
    let workplace = Workplace::new();
    for file in ["specs/petstore.yaml", "flex-chat.json"] {
        let text = std::fs::read_to_string(root().join("docs/sample").join(file));
        workplace.write(file, &text.expect("a file of the sample"));
    }
    workplace
}

async fn check(
    block: &Fence,
    place: &mut Option<Workplace>,
    count: &mut Count,
) -> Result<(), String> {
    let is_run = block.reason_not_to_run().is_none();
    let workplace = place.as_ref().expect("a workplace");
    match block.language.as_str() {
        "toml" if is_run => {
            count.add("configurations loaded", 1);
            workplace.write("steadyhand.toml", &block.text);
            let ran = workplace.run("config check");
            let output = ran.get_output();
            let said = String::from_utf8_lossy(&output.stderr);
            match (output.status.success(), block.is_wrong_on_purpose()) {
                (true, false) | (false, true) => Ok(()),
                (false, false) => Err(said.into_owned()),
                (true, true) => Err("it should be wrong, and is taken".to_owned()),
            }
        }
        "console" if is_run && block.page != README => {
            let steps = commands::steps(&block.text);
            count.add("command lines run and compared", steps.len());
            if !block.wants_a_server() {
                return steps.iter().try_for_each(|step| run(workplace, step));
            }
            let served = Served::in_place(place.take().expect("a workplace")).await;
            let there = served.workplace.shared();
            let ran = steps.iter().try_for_each(|step| run(&there, step));
            *place = Some(served.killed().await);
            ran
        }
        "console" | "sh" => {
            let lines = commands::in_shell(&commands::typed_lines(block));
            count.add("command lines understood", lines.len());
            lines
                .iter()
                .try_for_each(|words| commands::is_understood(words))
        }
        "json" if is_run => {
            count.add("JSON parsed", 1);
            let values = serde_json::Deserializer::from_str(&block.text);
            let mut values = values.into_iter::<serde_json::Value>();
            let wrong = values.find_map(Result::err);
            wrong.map_or(Ok(()), |error| Err(error.to_string()))
        }
        "rust" => {
            count.add("Rust compiled as tests of their crate", 1);
            let compiled = RUST.iter().find(|(page, _)| *page == block.page);
            let (page, file) =
                compiled.ok_or("its page is compiled by no crate; add it to RUST")?;
            let is_included = read(file).contains(&format!("../../../{page}\")"));
            is_included
                .then_some(())
                .ok_or(format!("{file} does not include it"))
        }
        "text" if block.page != README && block.text.contains("$ steadyhand") => {
            Err("a transcript: say console, and norun: with the reason if it cannot run".to_owned())
        }
        "text" | "toml" | "json" | "yaml" | "ini" => Ok(()),
        other => Err(format!(
            "a block of the language {other:?}: say toml, console, sh, json, rust or text"
        )),
    }
}

fn run(workplace: &Workplace, step: &Step) -> Result<(), String> {
    let printed = commands::typed(workplace, &step.line);
    commands::compare(step, &printed)
}

#[test]
fn the_configuration_of_the_debian_package_is_right_and_so_are_its_examples() {
    let packaged = read("crates/steadyhand-cli/debian/steadyhand.toml");
    let shown: Vec<String> = packaged.split("\n\n").map(with_its_example).collect();
    for text in [packaged, shown.join("\n\n")] {
        let mut workplace = Workplace::with_config(&text);
        workplace.set("HASS_TOKEN", "t");
        let ran = workplace.run("config check");
        let said = String::from_utf8_lossy(&ran.get_output().stderr).into_owned();
        assert!(ran.get_output().status.success(), "{said}\n{text}");
    }
}

/// A paragraph in which the table that stands behind `#` counts.
fn with_its_example(paragraph: &str) -> String {
    let mut is_table = false;
    let lines = paragraph.lines().map(|line| {
        is_table |= line.starts_with("# [");
        match line.strip_prefix("# ").filter(|_| is_table) {
            Some(rest) => rest,
            None => line,
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}
