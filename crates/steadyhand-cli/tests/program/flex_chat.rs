//! A Flex Chat tools file runs as it is.

use serde_json::json;

use crate::support::{Workplace, parts};

const TOOLS: &str = r#"{"tools":{"max_iterations":5,"default_timeout_ms":30000,"registry":[{"name":"get_weather","description":"Weather","parameters":{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]},"implementation":{"type":"mock","mock_response":{"temperature":22}}},{"name":"calculate","description":"Math","parameters":{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]},"implementation":{"type":"builtin","handler":"math_eval"}},{"name":"search_documents","description":"Search","parameters":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]},"implementation":{"type":"internal","handler":"rag_query"}},{"name":"calculator"}]}}"#;

#[test]
fn f09_f10_f13_a_flex_chat_file_runs_unchanged() {
    let workplace = Workplace::new();
    workplace.write("tools.json", TOOLS);
    let listed = workplace.json("tools list --json -c tools.json");
    assert_eq!(listed["count"], 4);
    let flat = workplace.json("call get_weather location=Oslo -c tools.json --json --view flat");
    assert_eq!(flat["result"], json!({"temperature": 22}));
    assert_eq!(flat["success"], true);
    let flat = workplace.json("call calculate expression=2+2 -c tools.json --json --view flat");
    assert_eq!(flat["result"], json!({"result": 4}));
    let flat = workplace.json("call calculator expression=6*7 -c tools.json --json --view flat");
    assert_eq!(flat["result"], json!({"result": 42}));
    let missing = workplace.json("call get_weather -c tools.json --json --view flat");
    assert_eq!(missing["error"], "Invalid parameters: missing 'location'");
    let shown = workplace.json("tools show get_weather --json -c tools.json");
    assert_eq!(shown["policy"]["timeout"]["value"], "30s");
}

#[test]
fn f13_the_document_search_of_a_flex_chat_file_needs_folders_and_says_so() {
    let workplace = Workplace::new();
    workplace.write("tools.json", TOOLS);
    let (code, _, stderr) =
        parts(&workplace.run("call search_documents query=leave -c tools.json"));
    assert_eq!(code, 5);
    assert!(stderr.contains("[documents]"), "{stderr}");

    workplace.write(
        "steadyhand.toml",
        "[import]\nflex_chat = [\"tools.json\"]\n[documents]\nfolders = [\"docs\"]\n",
    );
    workplace.write(
        "docs/leave.md",
        "# Leave\n\nEverybody has 28 days of leave.\n",
    );
    let (code, stdout, stderr) = parts(&workplace.run("call search_documents query=leave --json"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("28 days"), "{stdout}");
}

#[test]
fn f10_f13_handlers_nobody_has_are_errors_of_the_call() {
    let workplace = Workplace::new();
    workplace.write(
        "tools.json",
        r#"{"registry":[{"name":"a","description":"A","parameters":{"type":"object"},"implementation":{"type":"builtin","handler":"no_such"}},{"name":"b","description":"B","parameters":{"type":"object"},"implementation":{"type":"internal","handler":"no_such"}}]}"#,
    );
    let flat = workplace.json("call a -c tools.json --json --view flat");
    assert_eq!(flat["error"], "Builtin handler 'no_such' not found");
    let flat = workplace.json("call b -c tools.json --json --view flat");
    assert_eq!(flat["error"], "Internal handler 'no_such' not found");
}

#[test]
fn one_bad_entry_does_not_lose_the_others() {
    let workplace = Workplace::new();
    workplace.write(
        "tools.json",
        r#"{"tools":{"registry":[{"name":"calculater"},{"name":"calculator"}]}}"#,
    );
    let listed = workplace.json("tools list --json -c tools.json");
    assert_eq!(listed["count"], 1);
    let checked = workplace.json("config check --json -c tools.json");
    assert!(
        checked["warnings"].to_string().contains("calculater"),
        "{checked}"
    );
}
