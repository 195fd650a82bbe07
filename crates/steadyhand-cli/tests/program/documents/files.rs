//! Which files are read, and how: kinds, encodings, limits, links, globs.

use serde_json::{Value, json};
use steadyhand_config::documents::DocumentsSettings;

use super::{Library, sources, write};

const PAGE: &str = r#"<!DOCTYPE html>
<html><head><title>Garden &amp; Pond</title>
<style>.secretstyle { color: red }</style>
<script>var secretscript = "<p>no text</p>";</script></head>
<body>
<nav><a href="/">Home</a></nav>
<h1>Garden &amp; Pond</h1>
<p>Fish like <b>clean</b> water&nbsp;&mdash; see below.</p>
<h2>Pump <svg><text>secretsvg</text></svg></h2>
<p>The pump runs
at night.</p>
<ul><li>first item</li><li>second item</li></ul>
<pre>line one
  line two</pre>
<table><tr><th>Part</th><th>Price</th></tr><tr><td>Filter</td><td>12</td></tr></table>
<!-- secretcomment --><noscript>secretnoscript</noscript>
</body></html>"#;

#[tokio::test]
async fn html_is_read_as_text_with_title_headings_and_lines() {
    let library = Library::of(&[("pond.html", PAGE)]).await;
    let answer = library.search("night pump").await;
    let first = &answer["results"][0];
    assert_eq!(first["title"], "Garden & Pond");
    assert_eq!(first["heading"], "Pump");
    assert_eq!(first["line"], 10);
    let text = first["text"].as_str().expect("text");
    assert_eq!(
        text,
        "The pump runs at night.\n\nfirst item\nsecond item\n\nline one\n  line two\n\nPart Price\nFilter 12"
    );
    let water = library.search("clean water").await;
    let text = water["results"][0]["text"].as_str().expect("text");
    assert!(
        text.contains("Fish like clean water — see below."),
        "{text}"
    );
    for hidden in [
        "secretscript",
        "secretstyle",
        "secretsvg",
        "secretcomment",
        "secretnoscript",
    ] {
        assert_eq!(library.search(hidden).await["total"], 0, "{hidden}");
    }
}

#[tokio::test]
async fn broken_and_hostile_html_is_read_as_far_as_it_goes() {
    let deep = "<div>".repeat(200_000) + "deepest<p>";
    let unclosed =
        "<h1>Broken<p>visibleword <b>bold <table><td>cell &unknown; &#x110000; <a href='";
    let attributes: String = (0..3_000).map(|n| format!(" a{n}")).collect();
    let wide = format!("<p{attributes}>wideword");
    let library = Library::of(&[
        ("deep.html", &deep),
        ("unclosed.htm", unclosed),
        ("wide.html", &wide),
    ])
    .await;
    assert_eq!(library.search("deepest").await["indexed"], 3);
    assert_eq!(library.sources("deepest").await, ["deep.html"]);
    assert_eq!(library.sources("visibleword").await, ["unclosed.htm"]);
}

#[tokio::test]
async fn a_page_made_to_keep_its_readers_busy_is_given_up() {
    let attributes: String = (0..400_000).map(|n| format!(" a{n}")).collect();
    let wide = format!("<p{attributes}>wideword");
    let library = Library::of(&[("good.md", "findme"), ("wide.html", &wide)]).await;
    let answer = library.search("findme").await;
    assert_eq!(sources(&answer), ["good.md"]);
    assert_eq!(answer["skipped"], json!({"too_large": 1}));
}

#[tokio::test]
async fn markdown_is_cut_at_headings_but_not_inside_code() {
    let text = "Intro wordzero.\n\nUnderlined\n==========\n\nwordone\n\nSecond\n------\n\nwordtwo\n\n\
                ```sh\n# wordthree is no heading\n```\n\n### Deep ###\n\nwordfour\n\n## Empty wordfive\n";
    let library = Library::of(&[("a.md", text)]).await;
    for (word, heading) in [
        ("wordzero", ""),
        ("wordone", ""),
        ("wordtwo", "Second"),
        ("wordthree", "Second"),
        ("wordfour", "Second > Deep"),
        ("wordfive", "Empty wordfive"),
    ] {
        let answer = library.search(word).await;
        assert_eq!(answer["results"][0]["heading"], heading, "{word}");
        assert_eq!(answer["results"][0]["title"], "Underlined");
    }
}

#[tokio::test]
async fn long_texts_are_cut_into_passages_of_bounded_length_and_nothing_is_lost() {
    let paragraph = |n: usize| format!("Paragraph word{n} {}", "of some length. ".repeat(n % 40));
    let mut text: Vec<String> = (0..200).map(paragraph).collect();
    text.push(format!("{} lastword", "x".repeat(50_000)));
    text.push("é".repeat(3_000));
    let library = Library::of(&[("long.txt", &text.join("\n\n"))]).await;
    for n in (0..200).step_by(11) {
        let answer = library.search(&format!("word{n}.")).await;
        let text = answer["results"][0]["text"].as_str().expect("a passage");
        let is_word = |word: &str| word == format!("word{n}");
        assert!(text.split_whitespace().any(is_word), "{n}: {text}");
        assert!(text.chars().count() <= 1_200, "{}", text.chars().count());
    }
    let answer = library.search("lastword").await;
    assert!(
        answer["results"][0]["text"]
            .as_str()
            .expect("a passage")
            .chars()
            .count()
            <= 1_200
    );
}

#[tokio::test]
async fn old_and_wide_encodings_are_read() {
    let library = Library::of(&[]).await;
    let utf16 = |bom: [u8; 2], text: &str, bytes: fn(u16) -> [u8; 2]| {
        let mut file = bom.to_vec();
        file.extend(text.encode_utf16().flat_map(bytes));
        file
    };
    write(
        &library.path("le.md"),
        utf16([0xff, 0xfe], "größe eins", u16::to_le_bytes),
    );
    write(
        &library.path("be.txt"),
        utf16([0xfe, 0xff], "größe zwei", u16::to_be_bytes),
    );
    write(
        &library.path("latin.txt"),
        b"gr\xf6\xdfe drei \x80".as_slice(),
    );
    write(&library.path("bom.md"), "\u{feff}# größe vier".as_bytes());
    let cyrillic = b"<meta charset=\"windows-1251\"><p>\xf0\xe0\xe7\xec\xe5\xf0</p>".as_slice();
    write(&library.path("cyrillic.html"), cyrillic);
    for (query, source) in [
        ("größe eins", "le.md"),
        ("größe zwei", "be.txt"),
        ("größe drei", "latin.txt"),
        ("größe vier", "bom.md"),
        ("размер", "cyrillic.html"),
    ] {
        let found = library.until(query, |answer| answer["indexed"] == 5).await;
        assert_eq!(sources(&found)[0], source, "{query}");
    }
}

#[tokio::test]
async fn binary_huge_empty_and_hidden_files_are_left_out_and_counted() {
    let library = Library::new(
        &[
            ("good.md", "findme"),
            ("huge.md", &"findme ".repeat(2_000)),
            ("empty.md", "  \n\n"),
            (".hidden.md", "findme"),
            (".git/notes.md", "findme"),
            ("picture.png", "findme"),
            ("node_modules/readme.md", "findme"),
        ],
        json!({"folders": ["docs"], "max_file": "10KiB"}),
    )
    .await;
    write(
        &library.path("binary.md"),
        [b"findme ".as_slice(), &[0, 1, 2]].concat(),
    );
    let answer = library.search("findme").await;
    assert_eq!(sources(&answer), ["good.md"]);
    assert_eq!(answer["indexed"], 1);
    assert_eq!(
        answer["skipped"],
        json!({"binary": 1, "empty": 1, "too_large": 1})
    );
}

#[tokio::test]
async fn globs_choose_what_is_read() {
    let files = [
        ("a.md", "findme"),
        ("b.TXT", "findme"),
        ("guides/c.md", "findme"),
        ("guides/drafts/d.md", "findme"),
        ("drafts/e.md", "findme"),
        ("code/f.rs", "findme"),
    ];
    let check = async |include: Value, exclude: Value, expected: &[&str]| {
        let settings = json!({"folders": ["docs"], "include": include, "exclude": exclude});
        let library = Library::new(&files, settings).await;
        let mut found = library.sources("findme").await;
        found.sort();
        assert_eq!(found, expected);
    };
    check(
        json!(["*.md"]),
        json!([]),
        &["a.md", "drafts/e.md", "guides/c.md", "guides/drafts/d.md"],
    )
    .await;
    check(
        json!(["*.md", "*.txt"]),
        json!(["drafts/"]),
        &["a.md", "b.TXT", "guides/c.md"],
    )
    .await;
    check(
        json!(["guides/**", "*.rs"]),
        json!([]),
        &["code/f.rs", "guides/c.md", "guides/drafts/d.md"],
    )
    .await;
    check(
        json!(["*.md"]),
        json!(["/drafts"]),
        &["a.md", "guides/c.md", "guides/drafts/d.md"],
    )
    .await;
}

#[cfg(unix)]
#[tokio::test]
async fn links_lead_nowhere_and_pipes_do_not_block() {
    let library = Library::of(&[("good.md", "findme")]).await;
    let outside = library.home.path().join("outside");
    write(&outside.join("private.md"), "findme");
    std::os::unix::fs::symlink(outside.join("private.md"), library.path("link.md"))
        .expect("a link");
    std::os::unix::fs::symlink(&outside, library.path("folder")).expect("a link");
    let made = std::process::Command::new("mkfifo")
        .arg(library.path("pipe.md"))
        .status();
    assert!(made.expect("mkfifo runs").success());
    assert_eq!(library.sources("findme").await, ["good.md"]);
}

#[tokio::test]
async fn more_files_than_allowed_are_left_out_and_that_is_said() {
    let files: Vec<(String, String)> = (0..20)
        .map(|n| (format!("{n:02}.md"), "word".to_owned()))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (&**n, &**t)).collect();
    let library = Library::new(&files, json!({"folders": ["docs"], "max_files": 7})).await;
    let answer = library.ask(json!({"query": "word", "limit": 20})).await;
    assert_eq!(sources(&answer).len(), 7);
    let note = answer["notes"][0].as_str().expect("a note");
    assert!(note.contains("more files than the 7"), "{note}");
}

#[test]
fn faults_in_the_section_are_named_with_their_place() {
    let check = |settings: Value, expected: &[(&str, &str)]| {
        let settings: DocumentsSettings = serde_json::from_value(settings).expect("settings");
        let faults = settings.check();
        let found: Vec<(&str, &str)> = faults.iter().map(|f| (&*f.at, &*f.message)).collect();
        assert_eq!(found, expected);
        assert!(faults.iter().all(|fault| fault.help.is_some()));
    };
    check(json!({"folders": ["docs"]}), &[]);
    check(json!({}), &[("/folders", "there is no folder to search")]);
    check(
        json!({"folders": ["docs"], "include": ["*.md", "a{b"], "max_files": 0}),
        &[
            (
                "/include/1",
                "\"a{b\" is no glob: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)",
            ),
            ("/max_files", "no file would be indexed"),
        ],
    );
    check(
        json!({"collections": {"a/b": {"folders": [], "exclude": ["/"]}}}),
        &[
            ("/collections/a~1b/exclude/0", "\"/\" is no glob"),
            ("/collections/a~1b/folders", "there is no folder to search"),
        ],
    );
    let unknown: Result<DocumentsSettings, _> = serde_json::from_value(json!({"folder": "docs"}));
    let text = unknown.expect_err("unknown key").to_string();
    assert!(
        text.contains("unknown field `folder`, expected one of `folders`"),
        "{text}"
    );
}
