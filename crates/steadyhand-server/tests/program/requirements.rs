//! Every requirement has a test that carries its id.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The ids of SPEC.md: the letter of a chapter, and how many rows it has.
const CHAPTERS: [(char, u32); 4] = [('f', 15), ('v', 21), ('l', 7), ('r', 15)];

/// Not proved yet: scripts/coverage measures, and no figure for all crates is published (docs/coverage.md). It needs a test
/// as soon as there is one.
const OPEN: [&str; 1] = ["r15"];

fn ids() -> BTreeSet<String> {
    let ids = CHAPTERS
        .iter()
        .flat_map(|(letter, last)| (1..=*last).map(move |number| format!("{letter}{number:02}")));
    ids.collect()
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository")
}

/// The texts of all Rust files below a folder.
fn rust_files(folder: &Path, found: &mut Vec<String>) {
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
        let digits = part.strip_prefix(['f', 'v', 'l', 'r', 'd']);
        digits.is_some_and(|digits| {
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        })
    })
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
    names.flat_map(ids_of).map(str::to_owned).collect()
}

#[test]
fn every_requirement_has_a_test_that_carries_its_id() {
    let tested = tested();
    let ids = ids();
    let is_open = |id: &&String| OPEN.contains(&id.as_str());
    let missing = ids.difference(&tested).filter(|id| !is_open(id));
    let missing: Vec<&String> = missing.collect();
    assert!(
        missing.is_empty(),
        "no test carries {missing:?}: name one `fn {}_…`, and let it prove the row of SPEC.md",
        missing[0]
    );
    let proved: Vec<&String> = tested.iter().filter(is_open).collect();
    assert!(proved.is_empty(), "{proved:?} is no longer open: strike it");
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
        (is_id && !lower.starts_with('d')).then_some(lower)
    });
    assert_eq!(rows.collect::<BTreeSet<String>>(), ids());
}
