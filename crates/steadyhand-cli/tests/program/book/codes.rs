//! Every code that the program can say has a page, and every page says what the program does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use steadyhand::FailureCode;

use crate::support::{Workplace, parts};

/// What `steadyhand explain` knows, by code.
fn explained() -> BTreeMap<String, Value> {
    let pages = Workplace::new().json("explain --json");
    let pages = pages.as_array().expect("a list").clone();
    let by_code = pages.into_iter().map(|page| {
        let code = page["code"].as_str().expect("a code").to_owned();
        (code, page)
    });
    by_code.collect()
}

/// The text of all files below a folder of the sources, white space made one.
fn sources(folder: &str) -> String {
    let mut folders = vec![
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("src")
            .join(folder),
    ];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            match path.is_dir() {
                // The pages themselves.
                true if path.ends_with("codes") => {}
                true => folders.push(path),
                false => text += &std::fs::read_to_string(&path).expect("a file"),
            }
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text literal that an expression begins with, if it is one.
fn literal(text: &str) -> Option<&str> {
    let inside = text.trim_start().strip_prefix('"')?;
    let (code, _) = inside.split_once('"')?;
    let is_code = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    (!code.is_empty() && code.chars().all(is_code)).then_some(code)
}

/// The codes of commands as the sources write them: `Failed::new(exit, "code"`, `(Exit::Usage, "code"`.
fn said_by_commands() -> BTreeSet<(Option<u64>, String)> {
    let exits = [
        ("Unexpected", 1),
        ("Usage", 2),
        ("SignIn", 3),
        ("NotReachable", 4),
        ("ToolError", 5),
        ("TimedOut", 6),
        ("Refused", 7),
        ("Config", 8),
    ];
    let source = sources(".");
    let mut said = BTreeSet::new();
    for piece in source.split("Exit::").skip(1) {
        let end = piece.find(|letter: char| !letter.is_alphanumeric());
        let (name, rest) = piece.split_at(end.unwrap_or(piece.len()));
        let code = rest.strip_prefix(',').and_then(literal);
        let exit = exits.iter().find(|(known, _)| *known == name);
        if let (Some(code), Some((_, exit))) = (code, exit) {
            said.insert((Some(*exit), code.to_owned()));
        }
    }
    for piece in source.split("Failed::new(").skip(1) {
        let second = piece.split_once(", ").map(|(_, second)| second);
        if let Some(code) = second.and_then(literal) {
            said.insert((None, code.to_owned()));
        }
    }
    said
}

#[test]
fn r07_every_code_of_a_failed_call_has_a_page() {
    let explained = explained();
    for code in FailureCode::ALL {
        let page = explained.get(code.as_str());
        let page = page.unwrap_or_else(|| panic!("src/codes has no page for {code}"));
        assert_eq!(page["retryable"], code.is_retryable(), "{code}");
        assert_eq!(page["in_outcomes"], true, "{code}");
    }
}

#[test]
fn every_code_that_a_command_fails_with_has_a_page_that_names_its_exit_code() {
    let explained = explained();
    let said = said_by_commands();
    assert!(said.len() > 40, "the sources are read wrongly: {said:?}");
    for (exit, code) in said {
        let page = explained.get(&code);
        let page = page.unwrap_or_else(|| panic!("src/codes has no page for {code}"));
        let exits = page["exit_codes"].as_array().expect("a list");
        let is_named = exit.is_none_or(|exit| exits.contains(&exit.into()));
        assert!(
            is_named,
            "{code} ends with {exit:?}, its page says {exits:?}"
        );
    }
}

#[test]
fn every_refusal_over_http_has_a_page() {
    let source = include_str!("../../../../steadyhand-server/src/http/status.rs");
    let (_, codes) = source.split_once("fn code(self)").expect("codes");
    let (codes, _) = codes.split_once("_passing").expect("the next function");
    let codes: Vec<&str> = codes.split("=>").skip(1).filter_map(literal).collect();
    assert!(codes.len() > 20, "{codes:?}");
    let explained = explained();
    for code in codes {
        let page = explained.get(code);
        let page = page.unwrap_or_else(|| panic!("src/codes has no page for {code}"));
        assert!(page["http_status"].is_u64(), "{code} has no status");
    }
}

#[test]
fn an_error_told_with_v_names_its_page_and_the_page_is_there() {
    let workplace = Workplace::with_config("[tools.a]\nkind = \"mokc\"\n");
    let (exit, _, stderr) = parts(&workplace.run("tools list -v"));
    assert_eq!(exit, 8);
    assert!(
        stderr.contains("steadyhand explain config_invalid"),
        "{stderr}"
    );
    let (exit, page, _) = parts(&workplace.run("explain CONFIG_INVALID"));
    assert_eq!(exit, 0);
    assert!(page.starts_with("# `config_invalid`"), "{page}");
    assert!(page.contains("exit code 8"), "{page}");
    let (exit, _, stderr) = parts(&workplace.run("explain config_invlaid"));
    assert_eq!(exit, 2);
    assert!(stderr.contains("Is it config_invalid?"), "{stderr}");
}
