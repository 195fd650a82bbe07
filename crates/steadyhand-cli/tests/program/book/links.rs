//! No link of the book leads nowhere, and no page of docs/ is missing from its table of contents.

use std::collections::BTreeSet;
use std::path::Path;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::{pages, read, root};

/// Where the links and pictures of a page lead to.
fn links(text: &str) -> Vec<String> {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES);
    let targets = events.filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Some(dest_url.into_string())
        }
        _ => None,
    });
    targets.collect()
}

/// The anchors that the headings of a page get, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let words = heading.take().unwrap_or_default().to_lowercase();
                let kept = words.chars().filter_map(|letter| match letter {
                    ' ' => Some('-'),
                    '-' | '_' => Some(letter),
                    _ => letter.is_alphanumeric().then_some(letter),
                });
                found.insert(kept.collect());
            }
            _ => {}
        }
    }
    found
}

#[test]
fn no_link_of_the_book_leads_nowhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = read(&page);
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let folder = root().join(&page);
            let folder = folder.parent().expect("a folder");
            let target = match path.is_empty() {
                true => root().join(&page),
                false => folder.join(path),
            };
            let is_there = match anchor.is_empty() || target.is_dir() {
                true => target.exists(),
                false => std::fs::read_to_string(&target)
                    .is_ok_and(|text| anchors(&text).contains(anchor)),
            };
            if !is_there {
                broken.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(
        broken.is_empty(),
        "links to nothing:\n{}",
        broken.join("\n")
    );
}

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let listed = links(&read("docs/SUMMARY.md"));
    let mut seen = BTreeSet::new();
    for link in &listed {
        assert!(seen.insert(link.as_str()), "{link} is there twice");
    }
    for page in pages() {
        let Some(page) = page.strip_prefix("docs/") else {
            continue;
        };
        let is_listed = page == "SUMMARY.md" || seen.contains(page);
        assert!(is_listed, "docs/SUMMARY.md does not have {page}");
    }
}

#[test]
fn a_page_that_names_another_file_of_the_project_names_one_that_is_there() {
    // In code spans, such as `crates/steadyhand/src/failure.rs`: they are no links, and rot as easily.
    let mut wrong = Vec::new();
    for page in pages() {
        let text = read(&page);
        for event in Parser::new(&text) {
            let Event::Code(code) = event else { continue };
            let is_path = ["crates/", "scripts/", "docs/", "benches/"]
                .iter()
                .any(|start| code.starts_with(start));
            let path = code.split([' ', ':']).next().unwrap_or_default();
            let is_plain = !path.contains(['*', '{', '…']);
            if is_path && is_plain && !Path::new(&root()).join(path).exists() {
                wrong.push(format!("{page}: {code}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "files that are not there:\n{}",
        wrong.join("\n")
    );
}
