//! `llms.txt`: the table of contents for models, each page with its first sentence.

use super::{Made, read};

const FILE: &str = "docs/llms.txt";

pub(super) fn file() -> Made {
    let mut text = String::from(
        "# Steadyhand\n\n\
         > Runs the tools of AI applications: a call goes in, exactly one outcome comes out. One binary: command line, REST, MCP gateway, provider proxy, dashboard; also a Rust library.\n\n\
         Configuration is `steadyhand.toml`; `steadyhand config schema` prints its JSON Schema, `steadyhand config check` says everything that is wrong with a file. \
         Every command has `--json`. `steadyhand explain CODE` says what an error means and what to do.\n",
    );
    for line in read("docs/SUMMARY.md").lines() {
        if let Some(title) = line.strip_prefix("# ") {
            if title != "Summary" {
                text += &format!("\n## {title}\n\n");
            }
            continue;
        }
        // The pages of single error codes are found from their index.
        let is_code = line.starts_with("  - [`");
        let link = line.trim_start().trim_start_matches("- ");
        let parts = link
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]("));
        let Some((title, rest)) = parts.filter(|_| !is_code) else {
            continue;
        };
        let path = rest.trim_end().trim_end_matches(')');
        let said = first_sentence(&read(&format!("docs/{path}")));
        let page = path.replace("README.md", "index.md");
        text += &format!("- [{title}]({page}): {said}\n");
    }
    Made {
        path: FILE.to_owned(),
        text,
    }
}

/// The first sentence of a page, below its title.
fn first_sentence(page: &str) -> String {
    let paragraphs = page.split("\n\n").skip(1);
    let mut words = paragraphs.filter(|text| {
        let is_prose =
            |letter: char| letter.is_alphanumeric() || matches!(letter, '*' | '`' | '[' | '(');
        text.starts_with(is_prose) && !text.starts_with("```")
    });
    let first = words.next().unwrap_or_default();
    let one_line = first.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.split_once(". ") {
        Some((sentence, _)) => format!("{sentence}."),
        None => one_line,
    }
}
