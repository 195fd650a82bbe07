//! What a query finds, in which order, and what the answer says.

use serde_json::json;

use super::{Library, answer, error, sources};
use steadyhand::Call;

const THERMOSTAT: &str = "---\ntitle: \"Thermostat guide\"\ntags: [home]\n---\n\n\
    # Thermostat guide\n\nGeneral words about warmth.\n\n\
    ## Setup\n\n### Reset\n\nHold the **button** for ten seconds to reset the device.\n\n\
    ## Schedule\n\nSet the weekly heating plan here.\n";

#[tokio::test]
async fn f13_rag_query_returns_passages_with_source_title_heading_line_and_score() {
    let library = Library::of(&[
        ("heating/thermostat.md", THERMOSTAT),
        ("lamps.txt", "Lamps are switched on by the wall switch."),
    ])
    .await;
    let answer = library.search("How do I reset the device?").await;
    let first = &answer["results"][0];
    assert_eq!(first["source"], "heating/thermostat.md");
    assert_eq!(first["title"], "Thermostat guide");
    assert_eq!(first["heading"], "Setup > Reset");
    assert_eq!(first["line"], 14);
    assert_eq!(
        first["text"],
        "Hold the **button** for ten seconds to reset the device."
    );
    assert!(first["score"].as_f64().expect("a number") > 0.0);
    assert_eq!(answer["indexed"], 2);
    assert_eq!(answer["has_all_words"], true);
}

#[tokio::test]
async fn scores_fall_from_the_first_result_to_the_last() {
    let files: Vec<(String, String)> = (0..30)
        .map(|n| {
            let words = "cable ".repeat(n % 7 + 1) + &"other words here ".repeat(n);
            (format!("{n}.md"), words)
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (&**n, &**t)).collect();
    let library = Library::of(&files).await;
    let answer = library.ask(json!({"query": "cable", "limit": 20})).await;
    let scores: Vec<f64> = answer["results"]
        .as_array()
        .expect("results")
        .iter()
        .map(|result| result["score"].as_f64().expect("a score"))
        .collect();
    assert_eq!(scores.len(), 20);
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    assert!(answer["total"].as_u64() >= Some(30), "{}", answer["total"]);
}

#[tokio::test]
async fn words_are_found_in_other_forms_without_accents_and_by_their_beginning() {
    let library = Library::of(&[
        ("a.md", "The café serves crème brûlée."),
        ("b.md", "Running processes are restarted automatically."),
        ("c.md", "東京の天気は晴れです。"),
        ("d.md", "Größe und Gewicht stehen auf der Rückseite."),
    ])
    .await;
    for (query, source) in [
        ("cafe", "a.md"),
        ("CREME BRULEE", "a.md"),
        ("process restarting", "b.md"),
        ("autom", "b.md"),
        ("天気", "c.md"),
        ("größe", "d.md"),
        ("cafe\u{301}", "a.md"),
    ] {
        assert_eq!(library.sources(query).await, [source], "{query}");
    }
    let text = &library.search("東京").await["results"][0]["text"];
    assert_eq!(text, "東京の天気は晴れです。");
}

#[tokio::test]
async fn titles_and_headings_count_more_than_text() {
    let library = Library::of(&[
        (
            "text.md",
            "# Notes\n\nSomething on backup and other things of the house and garden.",
        ),
        (
            "heading.md",
            "# House\n\n## Backup\n\nSomething on other things of the garden and more.",
        ),
        (
            "title.md",
            "# Backup\n\nSomething on other things of the house and garden and more.",
        ),
        ("none.md", "# Else\n\nNothing of the kind."),
        ("none2.md", "# Else\n\nNothing of the kind."),
        ("none3.md", "# Else\n\nNothing of the kind."),
        ("none4.md", "# Else\n\nNothing of the kind."),
    ])
    .await;
    assert_eq!(
        library.sources("backup").await,
        ["title.md", "heading.md", "text.md"]
    );
}

#[tokio::test]
async fn passages_with_any_of_the_words_are_found_where_none_has_all() {
    let library = Library::of(&[
        ("a.md", "The pump is in the cellar."),
        ("b.md", "The valve is under the roof."),
    ])
    .await;
    let answer = library.search("pump valve attic").await;
    assert_eq!(answer["has_all_words"], false);
    assert_eq!(answer["total"], 2);
    let none = library.search("submarine").await;
    assert_eq!(none["results"], json!([]));
    assert_eq!(none["total"], 0);
    assert_eq!(none["indexed"], 2);
}

#[tokio::test]
async fn the_right_one_of_a_thousand_documents_comes_first() {
    let subjects = [
        "pump", "valve", "lamp", "door", "sensor", "window", "fan", "meter", "relay", "gate",
    ];
    let rooms = [
        "kitchen", "cellar", "attic", "garage", "bath", "hall", "studio", "porch", "office",
        "nursery",
    ];
    let tasks = [
        "install",
        "repair",
        "clean",
        "replace",
        "calibrate",
        "paint",
        "inspect",
        "order",
        "lock",
        "seal",
    ];
    let mut files = Vec::new();
    for (s, subject) in subjects.iter().enumerate() {
        for (r, room) in rooms.iter().enumerate() {
            for (t, task) in tasks.iter().enumerate() {
                let text = format!(
                    "# Manual {s}{r}{t}\n\nThis page is about one thing. To {task} the {subject} in the {room}, \
                     read all of it first.\n\nSee also {subject} {subject} {subject} and, elsewhere, {room}.\n",
                );
                files.push((format!("{room}/{subject}/{task}.md"), text));
            }
        }
    }
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (&**name, &**text))
        .collect();
    let library = Library::of(&files).await;
    for n in (0..1000).step_by(37) {
        let (subject, room, task) = (subjects[n / 100], rooms[n / 10 % 10], tasks[n % 10]);
        let answer = library
            .search(&format!("how to {task} a {subject} in the {room}?"))
            .await;
        assert_eq!(answer["indexed"], 1000);
        assert_eq!(sources(&answer)[0], format!("{room}/{subject}/{task}.md"));
    }
}

#[tokio::test]
async fn the_limit_is_five_if_not_said_and_twenty_at_most() {
    let files: Vec<(String, String)> = (0..25)
        .map(|n| (format!("{n}.md"), "same word".into()))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(n, t): &(String, String)| (&**n, &**t))
        .collect();
    let library = Library::of(&files).await;
    let count = |answer: serde_json::Value| sources(&answer).len();
    assert_eq!(count(library.search("word").await), 5);
    assert_eq!(
        count(library.ask(json!({"query": "word", "limit": 1})).await),
        1
    );
    assert_eq!(
        count(library.ask(json!({"query": "word", "limit": 20})).await),
        20
    );
}

#[tokio::test]
async fn f13_a_tool_whose_schema_only_has_query_works_and_bad_extras_are_named() {
    let library = Library::of(&[("a.md", "some word")]).await;
    let definition = json!({
        "name": "search_documents", "description": "Search",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        "implementation": {"type": "internal", "handler": "rag_query"}
    });
    let context = crate::support::context(library.home.path());
    let folder = library.home.path();
    let settings = super::DocumentsSettings::of(["docs"]);
    super::documents::register(
        &context.internal,
        Some(settings),
        folder,
        &context.state,
        &context.progress,
    );
    let tool =
        steadyhand::source::definition::tool(&definition, &context.internal).expect("a tool");
    library.executor.tools().add(tool).expect("accepted");
    let call = |args| {
        library
            .executor
            .execute(Call::new("search_documents", args))
    };
    assert_eq!(
        sources(&answer(call(json!({"query": "word"})).await)),
        ["a.md"]
    );
    assert_eq!(
        sources(&answer(
            call(json!({"query": "word", "limit": 3.0, "x": 1})).await
        )),
        ["a.md"]
    );
    for (args, text) in [
        (
            json!({"query": "word", "limit": 0}),
            "Invalid parameters: 'limit' is a number from 1 to 20, not 0",
        ),
        (
            json!({"query": "word", "limit": 21}),
            "Invalid parameters: 'limit' is a number from 1 to 20, not 21",
        ),
        (
            json!({"query": "word", "limit": 2.5}),
            "Invalid parameters: 'limit' is a number from 1 to 20, not 2.5",
        ),
        (
            json!({"query": "word", "collection": "x"}),
            "Invalid parameters: there is no collection 'x'; there is 'documents'",
        ),
        (json!({}), "Invalid parameters: missing 'query'"),
    ] {
        let outcome = call(args).await;
        assert_eq!(error(&outcome), text);
        assert_eq!(
            outcome.failure().expect("failed").code.as_str(),
            "VALIDATION_ERROR"
        );
    }
}

#[tokio::test]
async fn collections_are_searched_together_or_one_by_name() {
    let library = Library::new(
        &[
            ("main/a.md", "a word about pumps"),
            ("more/b.md", "a word about valves"),
        ],
        json!({"folders": ["docs/main"], "collections": {"manuals": {"folders": ["docs/more"]}}}),
    )
    .await;
    let both = library.search("word").await;
    assert_eq!(both["total"], 2);
    assert_eq!(both["indexed"], 2);
    let mut names: Vec<&str> = both["results"]
        .as_array()
        .expect("results")
        .iter()
        .map(|result| result["collection"].as_str().expect("a collection"))
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["documents", "manuals"]);
    let one = library
        .ask(json!({"query": "word", "collection": "manuals"}))
        .await;
    assert_eq!(sources(&one), ["b.md"]);
}

#[tokio::test]
async fn with_several_folders_the_source_begins_with_the_folder() {
    let library = Library::new(
        &[("main/a.md", "a word"), ("more/a.md", "another word")],
        json!({"folders": ["./docs/main/", "docs/more"]}),
    )
    .await;
    let mut found = library.sources("word").await;
    found.sort();
    assert_eq!(found, ["docs/main/a.md", "docs/more/a.md"]);
}

#[tokio::test]
async fn f13_without_a_section_the_error_says_which_lines_to_add() {
    let home = tempfile::tempdir().expect("a folder");
    let (executor, _) = super::open(home.path(), None, super::Progress::silent()).await;
    let outcome = executor
        .execute(Call::new("search", json!({"query": "x"})))
        .await;
    assert!(
        error(&outcome).ends_with("\n\n[documents]\nfolders = [\"docs\"]\n"),
        "{}",
        error(&outcome)
    );
    assert_eq!(outcome.attempts, 1);
    assert!(!home.path().join("state").exists());
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named_and_found_once_it_is() {
    let library = Library::new(&[], json!({"folders": ["docs/later"], "watch": false})).await;
    let outcome = library.call(json!({"query": "word"})).await;
    let missing = library.path("later");
    assert_eq!(
        error(&outcome),
        format!(
            "the folder {} does not exist; create it, or change folders in [documents]",
            missing.display()
        )
    );
    super::write(&missing.join("a.md"), "the word");
    let asking = async {
        while !library.call(json!({"query": "word"})).await.is_success() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(super::LONG, asking)
        .await
        .expect("found in the end");
}

#[tokio::test]
async fn one_missing_folder_of_two_is_a_note() {
    let library = Library::new(&[("a.md", "word")], json!({"folders": ["docs", "gone"]})).await;
    let answer = library.search("word").await;
    assert_eq!(sources(&answer), ["docs/a.md"]);
    let note = answer["notes"][0].as_str().expect("a note");
    assert!(note.contains("gone does not exist"), "{note}");
}
