//! A page per error code, as `steadyhand explain` prints it; their index, and their place in the table of contents.

use serde_json::Value;

use super::{MADE, Made, cell, read};
use crate::support::{Workplace, parts};

const FOLDER: &str = "docs/reference/errors";
const CONTENTS: &str = "docs/SUMMARY.md";
/// The line of the table of contents below which the codes stand.
const ABOVE: &str = "- [Error codes](reference/errors/README.md)";

/// Whether a page belongs to a group of the index.
type Belongs = fn(&Value) -> bool;

fn all(codes: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let pages = codes.as_array().expect("a list").iter();
    pages.map(|page| (page["code"].as_str().expect("a code"), page))
}

pub(super) fn pages(workplace: &Workplace, codes: &Value) -> Vec<Made> {
    let mut made = vec![index(codes)];
    for (code, _) in all(codes) {
        let (exit, page, stderr) = parts(&workplace.run_words(&["explain", code]));
        assert_eq!(exit, 0, "{code}: {stderr}");
        made.push(Made {
            path: format!("{FOLDER}/{code}.md"),
            text: page.replacen("\n\n", &format!("\n\n{MADE}\n\n"), 1),
        });
    }
    made
}

fn index(codes: &Value) -> Made {
    let mut text = String::from(
        "The code of an error is in its JSON (`--json`, REST, the outcome of a call), and with `-v` a command names it. `steadyhand explain CODE` prints its page without a network.\n",
    );
    let groups: [(&str, Belongs); 3] = [
        ("How a call ended", |page| page["in_outcomes"] == true),
        ("Why a command failed", |page| {
            page["in_outcomes"] == false && page["exit_codes"][0].is_u64()
        }),
        ("Why a request was refused", |page| {
            page["http_status"].is_u64()
        }),
    ];
    for (title, belongs) in groups {
        text += &format!("\n## {title}\n\n| code | |\n|---|---|\n");
        for (code, page) in all(codes).filter(|(_, page)| belongs(page)) {
            let means = page["means"].as_str().unwrap_or_default();
            let first = means.split_once(". ").map_or(means, |(first, _)| first);
            text += &format!(
                "| [`{code}`]({code}.md) | {} |\n",
                cell(first.trim_end_matches('.'))
            );
        }
    }
    Made::new(&format!("{FOLDER}/README.md"), "Error codes", &text)
}

/// The table of contents, with all codes below their index.
pub(super) fn contents(codes: &Value) -> Made {
    let now = read(CONTENTS);
    let mut text = String::new();
    for line in now.lines() {
        let is_code = line.starts_with("  - [`") && line.contains("reference/errors/");
        if !is_code {
            text += line;
            text += "\n";
        }
        if line == ABOVE {
            for (code, _) in all(codes) {
                text += &format!("  - [`{code}`](reference/errors/{code}.md)\n");
            }
        }
    }
    Made {
        path: CONTENTS.to_owned(),
        text,
    }
}
