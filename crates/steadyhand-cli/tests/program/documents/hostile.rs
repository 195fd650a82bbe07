//! No text is a wrong query, however it is meant.

use proptest::prelude::*;
use serde_json::json;
use steadyhand_store::documents::Words;

use super::Library;

/// Words, operators and signs of FTS5 and SQL, in any order, and anything else.
fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "\"",
            "'",
            "*",
            "^",
            "+",
            "-",
            ":",
            "(",
            ")",
            "{",
            "}",
            "AND",
            "OR",
            "NOT",
            "NEAR",
            "NEAR(",
            ",5)",
            "title:",
            "passage",
            "pump",
            "--",
            ";",
            "DROP TABLE",
            "\0",
            "\u{200b}",
            "é",
            "東",
            "\\",
            "%",
            "_",
            " ",
            "\n",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.join(" "))
}

#[test]
fn f13_no_query_text_is_a_syntax_error() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let library = runtime.block_on(Library::of(&[
        ("a.md", "the pump AND the valve"),
        ("b.md", "NEAR the title"),
    ]));
    let config = ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&hostile_text(), |text| {
        let outcome = runtime.block_on(library.call(json!({ "query": text })));
        prop_assert!(outcome.is_success(), "{:?}: {:?}", text, outcome.failure());
        Ok(())
    });
    assert!(result.is_ok(), "{result:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_query_never_has_more_quotes_than_it_needs(text in any::<String>()) {
        let words = Words::of(&text);
        for query in [words.all(), words.any()] {
            // Between the quotes only letters, digits and what keeps signs apart.
            for (n, part) in query.split('"').enumerate() {
                let inside = n % 2 == 1;
                let is_quiet = |c: char| c.is_alphanumeric() || matches!(c, '\u{200b}' | '\u{300}'..='\u{36f}');
                prop_assert!(!inside || part.chars().all(is_quiet), "{query}");
            }
            prop_assert_eq!(query.matches('"').count() % 2, 0);
        }
    }
}

#[test]
fn words_are_taken_once_common_ones_left_out_and_the_last_may_be_a_beginning() {
    let check = |text: &str, all: &str| assert_eq!(Words::of(text).all(), all);
    check(
        "How do I reset the Reset button?",
        "\"reset\" AND \"button\"",
    );
    check("thermos", "(\"thermos\" OR \"thermos\"*)");
    check("to be or not to be", "(\"not\")".trim_matches(['(', ')']));
    check("to be", "\"to\" AND \"be\"");
    check("", "");
    check("?!", "");
    assert!(Words::of("?!").is_empty());
    let many: String = (0..100).map(|n| format!("w{n} ")).collect();
    assert_eq!(Words::of(&many).any().matches(" OR ").count(), 31);
}

#[tokio::test]
async fn a_query_without_words_finds_nothing_and_says_why() {
    let library = Library::of(&[("a.md", "word")]).await;
    let answer = library.search("?!").await;
    assert_eq!(answer["results"], json!([]));
    assert_eq!(
        answer["notes"],
        json!(["the query has no words or numbers to search for"])
    );
}

#[tokio::test]
async fn a_very_long_query_is_answered() {
    let library = Library::of(&[("a.md", "needle in a haystack")]).await;
    let query = format!("needle {}", "\"hay* NEAR( ".repeat(50_000));
    assert_eq!(library.sources(&query).await, ["a.md"]);
}
