//! Every command with its own help, as clap prints it; options that all commands have are shown once.

use super::Made;
use crate::support::{Workplace, parts};

const PAGE: &str = "docs/reference/commands.md";

pub(super) fn page(workplace: &Workplace) -> Made {
    let whole = help(workplace, &[]);
    let global = options(&whole);
    let mut text = format!(
        "Every command takes the options below. What each prints goes to stdout, what it has to say goes to stderr. \
         Exit codes: 0 done · 1 a bug or a full disk · 2 arguments · 3 a key is missing · 4 not reachable · 5 the tool says no · 6 timed out · 7 refused by policy · 8 configuration · 130 Ctrl-C; \
         [error codes](errors/README.md) say more.\n\n```text\n{}\n```\n",
        whole.trim()
    );
    let mut stack: Vec<Vec<String>> = commands(&whole)
        .into_iter()
        .rev()
        .map(|name| vec![name])
        .collect();
    while let Some(words) = stack.pop() {
        let help = help(workplace, &words);
        let depth = "#".repeat(1 + words.len());
        text += &format!(
            "\n{depth} `steadyhand {}`\n\n```text\n{}\n```\n",
            words.join(" "),
            own(&help, &global).trim()
        );
        for name in commands(&help).into_iter().rev() {
            let mut deeper = words.clone();
            deeper.push(name);
            stack.push(deeper);
        }
    }
    Made::new(PAGE, "Commands", &text)
}

fn help(workplace: &Workplace, words: &[String]) -> String {
    let mut all: Vec<&str> = words.iter().map(String::as_str).collect();
    all.push("--help");
    let (exit, stdout, stderr) = parts(&workplace.run_words(&all));
    assert_eq!(exit, 0, "{words:?}: {stderr}");
    stdout
}

/// The names under `Commands:`.
fn commands(help: &str) -> Vec<String> {
    let below = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let rows = below.take_while(|line| !line.is_empty());
    let names = rows.filter_map(|row| {
        let row = row.strip_prefix("  ")?;
        let is_name = row.starts_with(|letter: char| letter.is_ascii_lowercase());
        is_name.then(|| row.split(' ').next().unwrap_or_default().to_owned())
    });
    names.collect()
}

/// The long name of an option, if a line begins one.
fn option_of(line: &str) -> Option<&str> {
    let entry = line.trim_start();
    let depth = line.len() - entry.len();
    if !entry.starts_with('-') || depth > 6 {
        return None;
    }
    let long = entry
        .split([' ', ',', '=', '['])
        .find(|word| word.starts_with("--"));
    long.or_else(|| entry.split([' ', ',']).next())
}

fn options(help: &str) -> Vec<String> {
    help.lines()
        .filter_map(option_of)
        .map(str::to_owned)
        .collect()
}

/// The help without the options that every command has.
fn own(help: &str, global: &[String]) -> String {
    let mut kept = String::new();
    let mut is_global = false;
    for line in help.lines() {
        match option_of(line) {
            Some(option) => is_global = global.iter().any(|known| known == option),
            // What goes on below an option stands deeper than any option does.
            None if line.is_empty() || !line.starts_with("          ") => is_global = false,
            None => {}
        }
        if !is_global {
            kept += line;
            kept += "\n";
        }
    }
    kept.trim_end()
        .trim_end_matches("Options:")
        .trim_end()
        .to_owned()
}
