//! Command lines of the pages: run and compared, or at least understood by the program.

use std::path::Path;

use snapbox::cmd::Command;

use super::fences::Fence;
use crate::support::{PATIENCE, Workplace};

/// A line behind `$ `, and what is shown below it.
pub(super) struct Step {
    pub(super) line: String,
    pub(super) shown: String,
}

/// The steps of a transcript.
pub(super) fn steps(transcript: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in transcript.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push(Step {
                line: command.to_owned(),
                shown: String::new(),
            }),
            // A line that ends with a backslash goes on.
            (None, Some(step)) if step.shown.is_empty() && step.line.ends_with('\\') => {
                step.line += "\n";
                step.line += line;
            }
            (None, Some(step)) => {
                step.shown += line;
                step.shown += "\n";
            }
            (None, None) => {}
        }
    }
    steps
}

/// Runs a line as a person would type it, in the folder of a page, and gives back what appears.
pub(super) fn typed(workplace: &Workplace, line: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_steadyhand"));
    let folder = program.parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let assert = Command::new("sh")
        .args(["-c", &format!("{{ {line}\n}} 2>&1")])
        .current_dir(workplace.path())
        .env_clear()
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("HOME", workplace.path())
        .env("LANG", "C.UTF-8")
        .timeout(PATIENCE)
        .assert();
    String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
}

/// Holds what appeared against what is shown: `[..]` stands for anything in a line, a line of `...` for any lines.
pub(super) fn compare(step: &Step, printed: &str) -> Result<(), String> {
    // At a terminal columns are filled up with spaces, in a pipe they are tabs.
    let columns = |line: &str| {
        let words = line.trim_end().replace('\t', "  ");
        let words = words
            .split("  ")
            .map(str::trim)
            .filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join("  ")
    };
    let tidy = |text: &str| {
        let lines: Vec<String> = text.lines().map(columns).collect();
        lines.join("\n").trim_matches('\n').to_owned()
    };
    let (printed, shown) = (tidy(printed), tidy(&step.shown));
    let assert = snapbox::Assert::new();
    let compared = assert.try_eq(
        Some(&step.line),
        snapbox::Data::text(printed).raw(),
        snapbox::Data::text(shown),
    );
    compared.map_err(|difference| difference.to_string())
}

/// The lines of a block that somebody types: all of a script, those behind `$ ` of a transcript.
pub(super) fn typed_lines(block: &Fence) -> String {
    match block.text.lines().any(|line| line.starts_with("$ ")) {
        true => steps(&block.text)
            .iter()
            .map(|step| format!("{}\n", step.line))
            .collect(),
        false => block.text.clone(),
    }
}

/// The words of every `steadyhand …` in lines of a shell, comments left out.
pub(super) fn in_shell(lines: &str) -> Vec<Vec<String>> {
    let joined = lines.replace("\\\n", " ");
    let mut found = Vec::new();
    for line in joined.lines() {
        let line = line.strip_prefix("$ ").unwrap_or(line);
        // Comments go, and so do what follows a pipe, a redirection, or the command.
        let words = shlex::split(line).unwrap_or_default();
        let mut current: Vec<String> = Vec::new();
        for word in words {
            let ends = matches!(word.as_str(), "|" | "&&" | "||" | "&" | ";")
                || word.starts_with('>')
                || word.starts_with("2>");
            match ends {
                true => found.extend(Some(std::mem::take(&mut current))),
                false => current.push(word),
            }
        }
        found.push(current);
    }
    found.retain(|words| words.first().is_some_and(|word| word == "steadyhand"));
    for words in &mut found {
        words.remove(0);
    }
    found
}

/// Whether the program takes these words: with `--help` among them it reads them and does nothing.
pub(super) fn is_understood(words: &[String]) -> Result<(), String> {
    let end = words.iter().position(|word| word == "--");
    let (mine, rest) = words.split_at(end.unwrap_or(words.len()));
    let workplace = Workplace::new();
    let mut all: Vec<&str> = mine.iter().map(String::as_str).collect();
    all.push("--help");
    all.extend(rest.iter().map(String::as_str));
    let run = workplace.run_words(&all);
    let output = run.get_output();
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "`steadyhand {}` is not understood: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

#[test]
fn what_is_no_command_is_refused_even_when_only_understood() {
    let lines = "steadyhand calls list 'state:failed since:1h' | wc -l   # how many\nsteadyhand calls lits\ncurl -s localhost";
    let found = in_shell(lines);
    assert_eq!(
        found,
        [
            vec!["calls", "list", "state:failed since:1h"],
            vec!["calls", "lits"]
        ]
    );
    is_understood(&found[0]).expect("it is a command");
    let why = is_understood(&found[1]).expect_err("it is none");
    assert!(why.contains("lits"), "{why}");
}

#[test]
fn what_differs_from_the_page_is_told() {
    let step = &steps("$ echo a\na [..] c\n...\nend\n")[0];
    assert_eq!(step.line, "echo a");
    compare(step, "a b c\nx\ny\nend\n").expect("it fits");
    compare(step, "a b d\nend\n").expect_err("it does not");
}
