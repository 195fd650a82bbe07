//! Markdown as it is spoken, and as a terminal shows it while it comes.

use proptest::prelude::*;
use steadyhand_cli::markdown::Stream;
use steadyhand_voice::spoken;

#[test]
fn a_voice_says_words_and_nothing_else() {
    for (written, said) in [
        ("**Yes**, it _is_.", "Yes, it is."),
        (
            "# News\n\nThere is [one](https://a.example/b?c=d).",
            "News. There is one.",
        ),
        ("- milk\n- bread\n- 9 eggs", "milk, bread, 9 eggs."),
        ("1. First\n2. Then", "First, Then."),
        (
            "Run `ls`:\n\n```sh\nrm -r /\n```\n\nDone",
            "Run ls: There is some code. Done.",
        ),
        (
            "| City | Sky |\n|---|---|\n| Oslo | snow |",
            "City, Sky. Oslo, snow.",
        ),
        ("It is on 💡 now ✅!", "It is on now !"),
        ("Two\nlines", "Two lines."),
        ("![a cat](cat.png)", "a cat."),
        ("<b>bold</b>", "bold."),
        ("What?", "What?"),
        ("", ""),
    ] {
        assert_eq!(spoken(written), said, "{written:?}");
    }
}

/// A text as a terminal shows it, without its colours.
fn shown(pieces: &[&str]) -> String {
    let mut stream = Stream::default();
    let mut out = String::new();
    for piece in pieces {
        out.push_str(&stream.push(piece));
    }
    out.push_str(&stream.finish());
    out
}

#[test]
fn words_between_stars_are_bold_when_they_are_complete() {
    assert_eq!(
        shown(&["It is **4", "08** now"]),
        "It is \u{1b}[1m408\u{1b}[0m now"
    );
    assert_eq!(
        shown(&["# Title\n", "text"]),
        "\u{1b}[1mTitle\u{1b}[0m\ntext"
    );
    assert_eq!(shown(&["a * b and 2 ", "* 3"]), "a * b and 2 * 3");
    assert_eq!(shown(&["- one\n- tw", "o\n"]), "- one\n- two\n");
}

#[test]
fn words_come_as_they_come_and_not_line_by_line() {
    let mut stream = Stream::default();
    assert_eq!(stream.push("Hello, "), "Hello, ");
    assert_eq!(stream.push("how are"), "how are");
    assert_eq!(stream.push(" **you"), " ");
    assert_eq!(stream.push("**?"), "\u{1b}[1myou\u{1b}[0m?");
}

proptest! {
    /// However a plain text is cut into pieces, all of it is shown, once and in order.
    #[test]
    fn no_word_is_lost_or_doubled(text in "[a-z .,\n*`#_-]{0,80}", cuts in prop::collection::vec(0usize..80, 0..6)) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&str> = cuts.windows(2).map(|two| &text[two[0]..two[1]]).collect();
        let words = |text: &str| -> String {
            let mut plain = String::new();
            let mut letters = text.chars();
            while let Some(letter) = letters.next() {
                match letter {
                    '\u{1b}' => { let _ = letters.by_ref().find(|end| end.is_ascii_alphabetic()); }
                    letter if letter.is_ascii_lowercase() => plain.push(letter),
                    _ => {}
                }
            }
            plain
        };
        prop_assert_eq!(words(&shown(&pieces)), words(&text));
    }

    /// What is spoken has no marks of Markdown that a voice would read out.
    #[test]
    fn a_voice_never_fails(text in "\\PC{0,200}") {
        let _ = spoken(&text);
    }
}
