//! SPEC V12: what a server prints on stdout beside its messages is named, and the next line works.

use super::{Bench, hostile};
use crate::support::parts;

#[test]
fn v12_the_log_names_the_content_that_failed_to_parse_and_the_next_line_works() {
    let bench = Bench::with(&hostile("noisy", "plain_text"));
    let (code, stdout, stderr) = parts(&bench.run("call noisy__trouble -v"));
    assert_eq!(
        (code, stdout.as_str()),
        (0, "after the noise\n"),
        "{stderr}"
    );
    let parsing: Vec<&str> = stderr
        .lines()
        .filter(|line| line.contains("failed to parse a line of an MCP server's stdout"))
        .collect();
    assert!(
        parsing
            .iter()
            .any(|line| line.contains("content=\"Hello! I print to stdout\"")),
        "{stderr}"
    );
    assert!(
        parsing.iter().all(|line| line.contains("server=\"noisy\"")),
        "{stderr}"
    );
}

#[test]
fn v12_what_would_steer_a_terminal_or_is_no_text_is_shown_harmless() {
    for mode in ["ansi", "invalid_utf8", "line_20mb"] {
        let bench = Bench::with(&hostile("noisy", mode));
        let (code, stdout, stderr) = parts(&bench.run("call noisy__trouble -v"));
        assert_eq!(code, 0, "{mode}: {stderr}");
        assert!(!stdout.is_empty(), "{mode}");
        assert!(!stderr.contains('\u{1b}'), "{mode}: {stderr}");
        assert!(stderr.len() < 100_000, "{mode}: {} bytes", stderr.len());
    }
}

#[test]
fn v12_mcp_test_counts_what_was_no_message_and_mcp_logs_shows_it() {
    let bench = Bench::with(&hostile("noisy", "plain_text"));
    let (code, _, stderr) = parts(&bench.run("mcp test noisy"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("2 lines on stdout that are no MCP"),
        "{stderr}"
    );
    let (code, stdout, _) = parts(&bench.run("mcp logs noisy"));
    assert_eq!(code, 0);
    let line = stdout
        .lines()
        .find(|line| line.ends_with("Hello! I print to stdout"));
    assert!(
        line.is_some_and(|line| line.contains("  stdout  ")),
        "{stdout}"
    );
}
