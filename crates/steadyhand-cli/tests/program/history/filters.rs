//! The words people type to say which calls they mean.

use steadyhand::FailureCode;
use steadyhand_store::history::{Filter, StateWord};

const NOW: u64 = 1_800_000_000_000;

fn parse(words: &str) -> Filter {
    Filter::parse(words, NOW).unwrap_or_else(|error| panic!("{words}: {error}"))
}

#[test]
fn words_mean_what_they_say() {
    let all = parse(
        r#"tool:home_* state:failed,running error:timeout server:github caller:"voice, kitchen" since:1h >500ms oslo "two words""#,
    );
    let expected = Filter {
        tool: vec!["home_*".to_owned()],
        state: vec![StateWord::Failed, StateWord::Running],
        error: vec![FailureCode::Timeout],
        server: Some("github".to_owned()),
        caller: Some("voice, kitchen".to_owned()),
        owner: None,
        since_ms: Some(NOW - 3_600_000),
        until_ms: None,
        slower_ms: Some(500.0),
        text: vec!["oslo".to_owned(), "two words".to_owned()],
    };
    assert_eq!(all, expected);
    assert_eq!(parse("  "), Filter::default());
    assert_eq!(parse("error:network").error, [FailureCode::NetworkError]);
    assert_eq!(
        parse("error:rate-limit-error").error,
        [FailureCode::RateLimitError]
    );
    assert_eq!(
        parse("until:2026-01-31T14:00:00Z").until_ms,
        Some(1_769_868_000_000)
    );
    assert_eq!(
        parse("since:1769868000000").since_ms,
        Some(1_769_868_000_000)
    );
    assert_eq!(parse("http://x").text, ["http://x"], "no name of ours");
    assert_eq!(
        parse("\"state:failed\"").text,
        ["state:failed"],
        "in quotation marks"
    );
}

#[test]
fn a_query_means_the_same_as_the_words() {
    let pairs = [
        ("tool", "home_*"),
        ("state", "failed"),
        ("since", "1h"),
        ("slower", "500ms"),
    ];
    let query = Filter::from_pairs(pairs, NOW).unwrap();
    assert_eq!(query, parse("tool:home_* state:failed since:1h >500ms"));
    let both = Filter::from_pairs([("q", "state:failed oslo"), ("tool", "a")], NOW).unwrap();
    assert_eq!(both, parse("tool:a state:failed oslo"));
}

#[test]
fn a_filter_is_written_as_words_that_mean_it() {
    for words in [
        "",
        "tool:home_* tool:b state:failed state:ok",
        r#"caller:"voice, kitchen" oslo "two words""#,
        "since:2026-01-31T14:00:00Z until:2026-02-01T00:00:00Z >500ms",
        "error:timeout error:network_error server:git*",
        r#"text:state:ok text:">5""#,
        r#"caller:"say \"hi\" twice" "C:\dir \"x\\" \"" caller:"//x""#,
    ] {
        let filter = parse(words);
        assert_eq!(
            parse(&filter.to_string()),
            filter,
            "{words} became {filter}"
        );
        let json = serde_json::to_string(&filter).unwrap();
        assert_eq!(serde_json::from_str::<Filter>(&json).unwrap(), filter);
    }
}

#[test]
fn what_means_nothing_is_told_with_what_would() {
    let check = |words: &str, says: &[&str]| {
        let error = Filter::parse(words, NOW).expect_err(words).to_string();
        for part in says {
            assert!(error.contains(part), "{words}: {error}");
        }
    };
    check("tol:x", &["no filter \"tol\"", "did you mean tool?"]);
    check(
        "colour:red",
        &["no filter \"colour\"", "tool, state, error"],
    );
    check(
        "state:faild",
        &["no state \"faild\"", "did you mean failed?"],
    );
    check(
        "error:timeot",
        &["no error \"timeot\"", "did you mean timeout?"],
    );
    check("since:yesterday", &["since:yesterday", "2h", "2026-01-31"]);
    check(">fast", &["\"fast\" is no duration"]);
    check("tool:", &["tool: has nothing after it"]);
    check(
        &format!("text:{}", "x".repeat(300)),
        &["longer than 256 bytes"],
    );
    check(&"a ".repeat(100), &["more than 32"]);
}
