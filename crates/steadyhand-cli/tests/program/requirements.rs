//! Every requirement has a test that carries its id.

use std::collections::BTreeSet;
use std::path::Path;

use crate::book::root;

/// The ids of SPEC.md, decisions included: the letter of a chapter, and how many rows it has. Each step adds its own
/// chapter; those of later steps (H, C, N, K, P, B) are not here yet.
const CHAPTERS: [(char, u32); 7] = [
    ('d', 20),
    ('f', 15),
    ('v', 21),
    ('l', 7),
    ('r', 15),
    ('t', 6),
    ('s', 8),
];

/// The line coverage that the document states for itself, in percent.
const COVERAGE: f64 = 92.64;

fn ids() -> BTreeSet<String> {
    let ids = CHAPTERS
        .iter()
        .flat_map(|(letter, last)| (1..=*last).map(move |number| format!("{letter}{number:02}")));
    ids.collect()
}

/// The texts of all Rust files below a folder.
pub(crate) fn rust_files(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(std::fs::read_to_string(&path).expect("text"));
        }
    }
}

/// The ids a name begins with: `f03_…`, `r02_r03_r14_…`.
fn ids_of(name: &str) -> impl Iterator<Item = &str> {
    name.split('_').take_while(|part| {
        let digits = part.strip_prefix(CHAPTERS.map(|(letter, _)| letter));
        digits.is_some_and(|digits| {
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        })
    })
}

/// `d7` is `d07`.
fn padded(id: &str) -> String {
    format!("{}{:0>2}", &id[..1], &id[1..])
}

/// The names of functions and of the rows of test macros (`name: …`) in the tests of all crates.
fn tested() -> BTreeSet<String> {
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).expect("crates") {
        let tests = entry.expect("a crate").path().join("tests");
        if tests.is_dir() {
            rust_files(&tests, &mut texts);
        }
    }
    let names = texts.iter().flat_map(|text| {
        text.lines().filter_map(|line| {
            let line = line.trim_start();
            let line = line.strip_prefix("async ").unwrap_or(line);
            let name = line.strip_prefix("fn ").unwrap_or(line);
            name.split(['(', ':']).next()
        })
    });
    names.flat_map(ids_of).map(padded).collect()
}

#[test]
fn every_requirement_has_a_test_that_carries_its_id() {
    let tested = tested();
    let ids = ids();
    let missing: Vec<&String> = ids.difference(&tested).collect();
    assert!(
        missing.is_empty(),
        "no test carries {missing:?}: name one `fn {}_…`, and let it prove the row of SPEC.md",
        missing[0]
    );
}

/// Measuring takes as long as all tests (scripts/coverage); what it found is published, for every crate.
#[test]
fn r15_line_coverage_is_published_and_what_the_document_states() {
    let page = std::fs::read_to_string(root().join("docs/coverage.md")).expect("a page");
    let percent = |name: &str| -> f64 {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| {name} |")));
        let row = row.unwrap_or_else(|| panic!("{name} is not in docs/coverage.md"));
        let last = row.split('|').rev().nth(1).expect("a last column");
        let figure = last.trim_matches([' ', '*', '%']);
        figure
            .parse()
            .unwrap_or_else(|_| panic!("no figure: {row}"))
    };
    for entry in std::fs::read_dir(root().join("crates")).expect("crates") {
        let name = entry.expect("a crate").file_name();
        assert!(percent(&name.to_string_lossy()) > 0.0, "{name:?}");
    }
    let all = percent("**all**");
    assert!(all >= COVERAGE, "{all} % of the lines are run by tests");
    assert!(!page.contains("Some tests failed"), "{page}");
}

/// Where the requirements are at hand, their rows are the ones known here.
#[test]
fn the_ids_are_those_of_the_requirements() {
    let Ok(text) = std::fs::read_to_string(root().join("../shared/SPEC.md")) else {
        println!("no ../shared/SPEC.md here: its ids are not compared");
        return;
    };
    let rows = text.lines().filter_map(|line| {
        let id = line.strip_prefix("| ")?.split(' ').next()?;
        let known = ids_of(id).next();
        let lower = id.to_ascii_lowercase();
        let is_id = known.is_none() && ids_of(&lower).next() == Some(lower.as_str());
        is_id.then(|| padded(&lower))
    });
    assert_eq!(rows.collect::<BTreeSet<String>>(), ids());
}
