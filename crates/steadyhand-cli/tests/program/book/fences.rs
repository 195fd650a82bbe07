//! The fenced blocks of a page: language, what else stands behind it, and the text.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// One block.
pub(super) struct Fence {
    pub(super) page: String,
    pub(super) line: usize,
    /// The first word behind the fence: `toml`, `console`, `sh` …
    pub(super) language: String,
    /// What stands behind the language.
    words: String,
    pub(super) text: String,
}

impl Fence {
    /// Why it is not run, where it says so: ```` ```console norun: needs two terminals ````.
    pub(super) fn reason_not_to_run(&self) -> Option<&str> {
        let reason = self.words.strip_prefix("norun:")?.trim();
        assert!(
            !reason.is_empty(),
            "{}: norun without a reason",
            self.place()
        );
        Some(reason)
    }

    /// Whether a server of the page's configuration runs meanwhile: ```` ```console serve ````.
    pub(super) fn wants_a_server(&self) -> bool {
        self.words == "serve"
    }

    /// Whether a configuration is there to be refused: ```` ```toml wrong ````.
    pub(super) fn is_wrong_on_purpose(&self) -> bool {
        self.words == "wrong"
    }

    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

pub(super) fn fences(page: &str, text: &str) -> Vec<Fence> {
    let mut found: Vec<Fence> = Vec::new();
    let mut is_inside = false;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let (language, words) = info.split_once(' ').unwrap_or((&info, ""));
                found.push(Fence {
                    page: page.to_owned(),
                    line: text[..range.start].matches('\n').count() + 1,
                    language: language.to_owned(),
                    words: words.trim().to_owned(),
                    text: String::new(),
                });
                is_inside = true;
            }
            Event::Text(part) if is_inside => {
                found.last_mut().expect("a block").text += &part;
            }
            Event::End(TagEnd::CodeBlock) => is_inside = false,
            _ => {}
        }
    }
    found
}

#[test]
fn a_block_is_found_with_its_line_and_what_stands_behind_its_language() {
    let page = "# A\n\n```toml\na = 1\n```\n\n- b\n\n  ```console norun: it waits\n  $ steadyhand\n  ```\n";
    let found = fences("a.md", page);
    let seen: Vec<_> = found
        .iter()
        .map(|it| (it.place(), it.language.as_str(), it.text.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            ("a.md:3".to_owned(), "toml", "a = 1\n"),
            ("a.md:9".to_owned(), "console", "$ steadyhand\n")
        ]
    );
    assert_eq!(found[1].reason_not_to_run(), Some("it waits"));
}
