//! The pages that are made from the code: keys of the configuration, commands, REST, limits, a page per error code, llms.txt, and the list of
//! error codes in the table of contents. They are in the tree, for readers without a compiler; a test fails when one is out of date.
//! `scripts/reference` (SNAPSHOTS=overwrite) writes them.

mod commands;
mod config;
mod errors;
mod limits;
mod llms;
mod rest;

use super::{pages, read, root};
use crate::serve::Served;
use crate::support::Workplace;

/// Stands below the title of what nobody should edit by hand.
const MADE: &str = "<!-- Made from the code by scripts/reference: edit there, not here. -->";

/// A file of the book as it should be.
struct Made {
    path: String,
    text: String,
}

impl Made {
    fn new(path: &str, title: &str, text: &str) -> Made {
        Made {
            path: path.to_owned(),
            text: format!("# {title}\n\n{MADE}\n\n{}\n", text.trim()),
        }
    }
}

#[tokio::test]
async fn the_reference_says_what_the_code_does() {
    let workplace = Workplace::new();
    let schema = workplace.json("config schema");
    let served = Served::start().await;
    let document = served.get("/openapi.json").await.json();
    served.killed().await;
    let codes = workplace.json("explain --json");

    let mut made = vec![
        config::page(&schema),
        commands::page(&workplace),
        rest::page(&document),
        limits::page(),
    ];
    made.extend(errors::pages(&workplace, &codes));
    made.push(errors::contents(&codes));
    let is_wanted = std::env::var("SNAPSHOTS").is_ok_and(|action| action == "overwrite");
    let mut stale = compare_or_write(&made, is_wanted);
    // What is made of all pages comes after them.
    stale.extend(compare_or_write(&[llms::file()], is_wanted));

    let expected: Vec<&str> = made.iter().map(|file| file.path.as_str()).collect();
    for page in pages() {
        let is_leftover =
            page.starts_with("docs/reference/errors/") && !expected.contains(&page.as_str());
        match (is_leftover, is_wanted) {
            (true, true) => std::fs::remove_file(root().join(&page)).expect("a page"),
            (true, false) => stale.push(format!("{page} (of a code that is gone)")),
            (false, _) => {}
        }
    }
    assert!(
        stale.is_empty(),
        "run scripts/reference: these are not as the code is\n{}",
        stale.join("\n")
    );
}

/// Writes what is to be written, and gives back what is not as it should be.
fn compare_or_write(made: &[Made], is_to_write: bool) -> Vec<String> {
    let mut stale = Vec::new();
    for file in made {
        let path = root().join(&file.path);
        let is_same = std::fs::read_to_string(&path).is_ok_and(|text| text == file.text);
        if is_same {
            continue;
        }
        if is_to_write {
            let folder = path.parent().expect("a folder");
            std::fs::create_dir_all(folder).expect("a folder of the book");
            std::fs::write(&path, &file.text).expect("a page of the book");
        } else {
            stale.push(file.path.clone());
        }
    }
    stale
}

/// For a cell of a table.
fn cell(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    one_line.replace('|', "\\|").replace('<', "\\<")
}
