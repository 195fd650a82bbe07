//! The layers of DESIGN.md, as `cargo metadata` and the sources have them: which crate may depend on what, no import cycles
//! between the top-level modules of a crate, no crate that grows without a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use serde_json::Value;

/// Crates, and what they must not depend on: by themselves or through others of ours. Dependencies of tests do not count.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "steadyhand",
        &[
            "axum",
            "hyper",
            "reqwest",
            "rusqlite",
            "clap",
            "steadyhand-process",
        ],
    ),
    (
        "steadyhand-conversation",
        &[
            "axum",
            "hyper",
            "reqwest",
            "rusqlite",
            "clap",
            "steadyhand-process",
        ],
    ),
    (
        "steadyhand-math",
        &["steadyhand", "axum", "reqwest", "rusqlite", "clap", "tokio"],
    ),
    (
        "steadyhand-process",
        &["axum", "hyper", "reqwest", "rusqlite", "clap"],
    ),
    (
        "steadyhand-mcp",
        &["axum", "rusqlite", "clap", "steadyhand-models"],
    ),
    (
        "steadyhand-models",
        &["steadyhand-mcp", "axum", "rusqlite", "clap"],
    ),
    (
        "steadyhand-config",
        &[
            "steadyhand-runtime",
            "steadyhand-store",
            "steadyhand-server",
            "axum",
            "rusqlite",
            "clap",
            "reqwest",
        ],
    ),
    (
        "steadyhand-store",
        &[
            "steadyhand-runtime",
            "steadyhand-server",
            "axum",
            "reqwest",
            "clap",
        ],
    ),
    (
        "steadyhand-runtime",
        &[
            "steadyhand-store",
            "steadyhand-server",
            "axum",
            "rusqlite",
            "clap",
        ],
    ),
    (
        "steadyhand-server",
        &["steadyhand-dashboard", "steadyhand-proxy", "clap"],
    ),
    (
        "steadyhand-proxy",
        &["steadyhand-dashboard", "steadyhand-cli", "clap"],
    ),
    (
        "steadyhand-dashboard",
        &["steadyhand-proxy", "steadyhand-cli", "clap"],
    ),
    (
        "steadyhand-voice",
        &["steadyhand-dashboard", "axum", "clap"],
    ),
];

/// The only crates that name these.
const ONLY: &[(&str, &[&str])] = &[
    ("rusqlite", &["steadyhand-store"]),
    (
        "axum",
        &[
            "steadyhand-server",
            "steadyhand-proxy",
            "steadyhand-dashboard",
            "steadyhand-cli",
            "steadyhand-strict",
        ],
    ),
    ("clap", &["steadyhand-cli"]),
    ("reqwest", &["steadyhand-models", "steadyhand-runtime"]),
];

/// Lines of a crate's sources, tests in them included.
const LINES_MAX: usize = 20_000;

/// Crates that are larger, how large they may be, and why.
const LARGER: &[(&str, usize, &str)] = &[
    (
        "steadyhand-runtime",
        26_500,
        "every kind of source, with all of OpenAPI: none of them is of use without the others",
    ),
    (
        "steadyhand-mcp",
        25_000,
        "the gateway's half is to become a crate of its own (step 4)",
    ),
    (
        "steadyhand-conversation",
        23_500,
        "eight providers, each with a strict stand-in for tests",
    ),
];

/// Crates whose modules still import each other in circles.
const WITH_CYCLES: &[&str] = &[
    "steadyhand-cli",
    "steadyhand-dashboard",
    "steadyhand-proxy",
    "steadyhand-runtime",
    "steadyhand-server",
];

#[test]
fn no_crate_depends_on_what_its_layer_must_not_know() {
    let graph = dependencies();
    for (name, forbidden) in FORBIDDEN {
        let reached = reached(&graph, name);
        assert!(reached.len() > 1, "{name} is not in the graph");
        for other in *forbidden {
            assert!(!reached.contains(*other), "{name} depends on {other}");
        }
    }
}

#[test]
fn a_library_that_one_crate_keeps_to_itself_is_named_by_no_other() {
    let graph = dependencies();
    for (library, allowed) in ONLY {
        let ours = graph
            .iter()
            .filter(|(name, _)| name.starts_with("steadyhand"));
        let who = ours.filter(|(_, uses)| uses.contains(*library));
        let who: Vec<&str> = who.map(|(name, _)| name.as_str()).collect();
        assert!(!who.is_empty(), "nobody uses {library}");
        let others: Vec<_> = who.iter().filter(|name| !allowed.contains(name)).collect();
        assert!(others.is_empty(), "{library} is used by {others:?}");
    }
}

#[test]
fn no_crate_grows_over_its_limit() {
    for (name, folder) in crates() {
        let lines: usize = sources(&folder)
            .iter()
            .map(|(_, text)| text.lines().count())
            .sum();
        let larger = LARGER.iter().find(|(of, _, _)| *of == name);
        let max = larger.map_or(LINES_MAX, |(_, max, _)| *max);
        assert!(lines <= max, "{name} has {lines} lines, and may have {max}");
        if let Some((_, _, why)) = larger {
            assert!(lines > LINES_MAX, "{name} is small again: {why}");
        }
    }
}

#[test]
fn the_top_level_modules_of_a_crate_import_each_other_in_no_circle() {
    for (name, folder) in crates() {
        let circle = circle(&imports(&folder));
        match WITH_CYCLES.contains(&name.as_str()) {
            true => assert!(
                circle.is_some(),
                "{name} has no circle any more: take it off the list"
            ),
            false => assert_eq!(circle, None, "modules of {name}"),
        }
    }
}

#[test]
fn a_circle_is_found_where_there_is_one() {
    let edge = |from: &str, to: &[&str]| {
        let to = to.iter().map(|it| (*it).to_owned()).collect();
        (from.to_owned(), to)
    };
    let straight = BTreeMap::from([edge("a", &["b", "c"]), edge("b", &["c"]), edge("c", &[])]);
    assert_eq!(circle(&straight), None);
    let round = BTreeMap::from([edge("a", &["b"]), edge("b", &["c"]), edge("c", &["b"])]);
    assert_eq!(circle(&round), Some(vec!["b".to_owned(), "c".to_owned()]));
}

/// What each package depends on outside of its tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let host = Command::new("rustc")
        .arg("-vV")
        .output()
        .expect("rustc can be run");
    let host = String::from_utf8(host.stdout).expect("a text");
    let host = host.lines().find_map(|line| line.strip_prefix("host: "));
    // Packages for other systems need not be there.
    let asked = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", host.expect("a host")])
        .current_dir(repository())
        .output()
        .expect("cargo can be run");
    assert!(
        asked.status.success(),
        "{}",
        String::from_utf8_lossy(&asked.stderr)
    );
    let metadata: Value = serde_json::from_slice(&asked.stdout).expect("cargo answers JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let name_of: BTreeMap<&str, &str> = packages
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?, package["name"].as_str()?)))
        .collect();
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for node in metadata["resolve"]["nodes"].as_array().expect("nodes") {
        let name = name_of[node["id"].as_str().expect("an id")];
        let uses = graph.entry(name.to_owned()).or_default();
        for dependency in node["deps"].as_array().into_iter().flatten() {
            let kinds = dependency["dep_kinds"].as_array();
            let is_normal =
                kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()));
            if is_normal && let Some(id) = dependency["pkg"].as_str() {
                uses.insert(name_of[id].to_owned());
            }
        }
    }
    graph
}

fn reached(graph: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(name) = open.pop() {
        if reached.insert(name.clone()) {
            open.extend(graph.get(&name).into_iter().flatten().cloned());
        }
    }
    reached
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Our crates, each with its folder.
fn crates() -> Vec<(String, PathBuf)> {
    let folders = fs::read_dir(repository().join("crates")).expect("crates");
    let folders = folders.map(|entry| entry.expect("a folder").path());
    let named = |folder: PathBuf| Some((folder.file_name()?.to_str()?.to_owned(), folder));
    let mut crates: Vec<_> = folders.filter_map(named).collect();
    crates.sort();
    assert!(crates.len() > 8, "{crates:?}");
    crates
}

/// The files below `src`, by their path in it.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let root = folder.join("src");
    let (mut files, mut open) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).expect("a text");
                files.push((path.strip_prefix(&root).expect("within").to_owned(), text));
            }
        }
    }
    files
}

/// Which top-level module names which, outside of tests.
fn imports(folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let files = sources(folder);
    let top = |path: &Path| {
        let first = path.iter().next()?.to_str()?;
        Some(first.trim_end_matches(".rs").to_owned())
    };
    let modules: BTreeSet<String> = files.iter().filter_map(|(path, _)| top(path)).collect();
    let absolute = Regex::new(r"\bcrate::(\{[^;]*?\}|\w+)").expect("an expression");
    let relative =
        Regex::new(r"(?:^|[^\w:])((?:super::)+)(\{[^;]*?\}|\w+)").expect("an expression");
    let word = Regex::new(r"(?:^|[{,])\s*(\w+)").expect("an expression");
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in &files {
        let Some(from) = top(path).filter(|from| from != "lib" && from != "main") else {
            continue;
        };
        if path
            .iter()
            .any(|part| part == "tests" || part == "tests.rs")
        {
            continue;
        }
        let text = without_tests_and_comments(text);
        let is_folder = path.file_name().is_some_and(|name| name == "mod.rs");
        let depth = path.components().count() - usize::from(is_folder);
        let mut named: Vec<&str> = absolute
            .captures_iter(&text)
            .filter_map(|it| Some(it.get(1)?.as_str()))
            .collect();
        for found in relative.captures_iter(&text) {
            let up = found[1].matches("super::").count();
            if up >= depth {
                named.extend(found.get(2).map(|it| it.as_str()));
            }
        }
        let uses = edges.entry(from.clone()).or_default();
        for names in named {
            let all = word.captures_iter(names).map(|it| it[1].to_owned());
            uses.extend(all.filter(|to| *to != from && modules.contains(to)));
        }
    }
    edges
}

/// Rust's own `#[cfg(test)]` blocks stand at the end of our files.
fn without_tests_and_comments(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
    let lines = text[..end].lines();
    let code = lines.filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

/// The modules of the first circle there is.
fn circle(edges: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    edges.keys().find_map(|start| {
        let there: Vec<String> = reached(edges, start).into_iter().collect();
        let back = |it: &String| it == start || reached(edges, it).contains(start);
        let around: Vec<String> = there.into_iter().filter(back).collect();
        (around.len() > 1).then_some(around)
    })
}
