//! One question, one answer: prompt or stdin, for people and for programs.

use serde_json::Value;
use steadyhand_models::Dialect;
use steadyhand_models::testing::{Line, Said, StrictProvider};

use super::{strict, workplace};
use crate::support::{Workplace, parts};

#[test]
fn the_demo_model_reckons_with_a_tool_and_nothing_configured() {
    let workplace = Workplace::new();
    let run = workplace.run_words(&["chat", "--model", "demo", "What is 12 * 34?"]);
    let (code, stdout, stderr) = parts(&run);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stdout, "calculator says: 408\n");
    assert!(
        stderr.contains("demo (demo model, a fixed script, not an AI)"),
        "{stderr}"
    );
    assert!(stderr.contains("tool ok calculator "), "{stderr}");
}

#[test]
fn without_any_configuration_the_demo_answers_and_says_what_it_is() {
    let workplace = Workplace::new();
    let (code, stdout, stderr) = parts(&workplace.run_words(&["chat", "hello"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("not an AI"), "{stdout}");
}

#[test]
fn the_prompt_comes_from_stdin_where_there_is_none() {
    let workplace = Workplace::new();
    let run = workplace
        .command(&["chat", "-q"])
        .stdin("What is 2 + 3?\n")
        .assert();
    let (code, stdout, stderr) = parts(&run);
    assert_eq!(
        (code, stdout.as_str()),
        (0, "calculator says: 5\n"),
        "{stderr}"
    );
    assert_eq!(stderr, "", "quiet means quiet");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stdin_is_added_to_the_prompt() {
    let provider = StrictProvider::start(Dialect::OpenAi, [Line::says("A log.")]).await;
    let workplace = workplace(&strict("openai", &provider.url()));
    let run = workplace
        .command(&["chat", "Summarise this"])
        .stdin("line one\nline two\n")
        .assert();
    let (code, stdout, stderr) = parts(&run);
    assert_eq!((code, stdout.as_str()), (0, "A log.\n"), "{stderr}");
    let asked = &provider.requests()[0]["messages"][0]["content"];
    assert_eq!(*asked, "Summarise this\n\nline one\nline two");
}

#[test]
fn nothing_asked_is_a_question_of_usage() {
    let workplace = Workplace::new();
    let run = workplace.command(&["chat"]).stdin("  \n").assert();
    let (code, _, stderr) = parts(&run);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("nothing is asked"), "{stderr}");
}

#[test]
fn with_json_there_is_one_value_with_all_there_is_to_know() {
    let workplace = workplace("");
    let prompt = "home_lights {\"area\": \"kitchen\", \"state\": \"on\"} and door_open {}";
    let run = workplace.run_words(&["chat", "--json", prompt]);
    let (code, stdout, stderr) = parts(&run);
    assert_eq!(code, 0, "{stderr}");
    let value: Value = serde_json::from_str(&stdout).expect("one JSON value");
    assert_eq!(value["stop_reason"], "end_turn");
    assert_eq!(value["model"], "demo");
    assert_eq!(value["note"], "demo model, a fixed script, not an AI");
    assert_eq!(value["rounds"], 1);
    assert_eq!(value["calls"][0]["name"], "home_lights");
    assert_eq!(value["calls"][0]["args"]["area"], "kitchen");
    assert_eq!(value["calls"][0]["ok"], true);
    assert_eq!(value["calls"][1]["error"], "NETWORK_ERROR");
    let kinds: Vec<&str> = value["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .filter_map(|message| message["type"].as_str())
        .collect();
    assert_eq!(kinds, ["human", "ai", "tool", "tool", "ai"]);
    // A log has the lines in the order in which calls end.
    let line = |start: &str| stderr.lines().find(|line| line.starts_with(start));
    assert!(line("tool ok home_lights ").is_some(), "{stderr}");
    let failed = line("tool error door_open network_error ").expect("a line");
    // The call is in the history under the id that the line names.
    let id = failed.rsplit_once("call=").expect("an id").1;
    let shown = workplace.json(&format!("calls show {id} --json"));
    assert_eq!(shown["tool"], "door_open", "{shown}");
}

#[test]
fn with_events_each_is_a_line_of_json_and_the_end_is_the_last() {
    let workplace = workplace("");
    let run = workplace.run_words(&["chat", "--json", "--events", "What is 6 * 7?"]);
    let (code, stdout, stderr) = parts(&run);
    assert_eq!(code, 0, "{stderr}");
    let events: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let kinds: Vec<&str> = events.iter().filter_map(|it| it["type"].as_str()).collect();
    assert_eq!(kinds.first(), Some(&"asked"));
    assert_eq!(kinds.last(), Some(&"end"));
    for kind in ["call_started", "call_finished", "message", "text"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v10_every_provider_of_the_configuration_answers_with_a_tool() {
    for (dialect, name) in [
        (Dialect::Anthropic, "anthropic"),
        (Dialect::Ollama, "ollama"),
        (Dialect::OpenAi, "openai"),
        (Dialect::OpenAiResponses, "openai-responses"),
    ] {
        let said = Said::text("Let me see.")
            .call("math_eval", serde_json::json!({"expression": "12 * 34"}));
        let provider =
            StrictProvider::start(dialect, [Line::Says(said), Line::says("It is **408**.")]).await;
        let workplace = workplace(&strict(name, &provider.url()));
        let (code, stdout, stderr) = parts(&workplace.run_words(&["chat", "What is 12 * 34?"]));
        assert_eq!(code, 0, "{name}: {stderr}");
        // Not a terminal: Markdown stays as it is.
        assert_eq!(stdout, "Let me see.\nIt is **408**.\n", "{name}");
        assert!(stderr.contains("tool ok math_eval "), "{name}: {stderr}");
        assert_eq!(provider.refused(), Vec::<String>::new(), "{name}");
        assert!(provider.requests()[1].to_string().contains("408"), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_nobody_has_is_one_line_and_the_loop_goes_on() {
    let provider = StrictProvider::start(
        Dialect::Anthropic,
        [
            Line::calls("nonesuch", serde_json::json!({})),
            Line::says("There is no such tool."),
        ],
    )
    .await;
    let workplace = workplace(&strict("anthropic", &provider.url()));
    let (code, stdout, stderr) = parts(&workplace.run_words(&["chat", "Use nonesuch"]));
    assert_eq!(
        (code, stdout.as_str()),
        (0, "There is no such tool.\n"),
        "{stderr}"
    );
    assert!(
        stderr.contains("tool error nonesuch tool_not_found"),
        "{stderr}"
    );
    let told = provider.requests()[1].to_string();
    assert!(told.contains("Unknown tool"), "{told}");
}

#[test]
fn a_provider_that_does_not_answer_is_named_with_its_address() {
    let workplace = Workplace::with_config(
        "[models.local]\nprovider = \"ollama\"\nmodel = \"qwen3:8b\"\nurl = \"http://127.0.0.1:9\"\nattempts = 1\n",
    );
    let (code, stdout, stderr) = parts(&workplace.run_words(&["chat", "hi"]));
    assert_eq!(code, 4, "{stderr}");
    assert_eq!(stdout, "");
    assert!(stderr.contains("127.0.0.1:9"), "{stderr}");
    assert!(stderr.contains("help: "), "{stderr}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_a_provider_refuses_is_told_with_its_place_and_kept_as_a_copy() {
    let said = "messages.0.content: this provider wants cats";
    let refuses = || Line::refuses(400, said);
    let provider = StrictProvider::start(Dialect::Anthropic, [refuses(), refuses()]).await;
    let workplace = workplace(&strict("anthropic", &provider.url()));
    let prompt = "my password: hunter2hunter2";
    let (code, stdout, stderr) = parts(&workplace.run_words(&["chat", prompt]));
    assert_eq!((code, stdout.as_str()), (4, ""), "{stderr}");
    let refused = format!("anthropic refused the request (400): {said}");
    assert!(stderr.contains(&refused), "{stderr}");
    assert!(
        stderr.contains("place    /messages/0/content\n"),
        "{stderr}"
    );
    let path = stderr
        .lines()
        .find_map(|line| line.strip_prefix("  request  "));
    let copy = std::fs::read_to_string(path.expect("a copy")).expect("the copy");
    let copy: Value = serde_json::from_str(&copy).expect("JSON");
    assert_eq!(copy["messages"][0]["role"], "user", "{copy}");
    assert!(!copy.to_string().contains("hunter2"), "{copy}");
    // With --no-save nothing is kept.
    let run = workplace.run_words(&["chat", "--json", "--no-save", "hi"]);
    let (code, _, stderr) = parts(&run);
    assert_eq!(code, 4, "{stderr}");
    let told = stderr.lines().last().expect("a line");
    let told: Value = serde_json::from_str(told).expect("JSON");
    assert_eq!(told["error"]["place"], "/messages/0/content", "{told}");
    assert_eq!(told["error"].get("request"), None, "{told}");
    let folder = workplace.file(".local/state/steadyhand/refused");
    assert_eq!(std::fs::read_dir(folder).expect("a folder").count(), 1);
}

#[test]
fn a_model_that_takes_too_long_ends_with_the_commands_time() {
    let workplace = workplace("");
    let run = workplace.run_words(&["chat", "--timeout", "2s", "notes_find {}"]);
    let (code, _, stderr) = parts(&run);
    assert_eq!(code, 6, "{stderr}");
    assert!(stderr.contains("tool cancelled notes_find"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_may_be_used_so_often_and_then_an_answer_is_asked_for() {
    let call = || {
        Line::calls(
            "home_lights",
            serde_json::json!({"area": "hall", "state": "on"}),
        )
    };
    let other = Line::calls(
        "home_lights",
        serde_json::json!({"area": "hall", "state": "off"}),
    );
    let provider =
        StrictProvider::start(Dialect::OpenAi, [call(), other, Line::says("Enough.")]).await;
    let workplace = workplace(&strict("openai", &provider.url()));
    let run = workplace.run_words(&["chat", "--max-iterations", "2", "Blink"]);
    let (code, stdout, stderr) = parts(&run);
    assert_eq!((code, stdout.as_str()), (0, "Enough.\n"), "{stderr}");
    assert_eq!(provider.requests().len(), 3);
}

#[test]
fn v16_an_answer_does_not_wait_for_an_mcp_server_that_hangs() {
    let hanging = crate::mcp::hostile("hanging", "silent_init").replace("10s", "10m");
    let config = format!("[server]\nfirst_list_wait = \"100ms\"\n{hanging}");
    let workplace = workplace(&config);
    let run = workplace.run_words(&["chat", "--timeout", "50s", "What is 12 * 34?"]);
    let (code, stdout, stderr) = parts(&run);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("408"), "{stdout}");
    assert!(stderr.contains("(hanging is starting)"), "{stderr}");
}

#[test]
fn v16_the_model_hears_of_the_tools_of_a_server_that_was_starting() {
    let workplace = workplace(&crate::mcp::named("slow", "1", "search"));
    let (code, stdout, stderr) = parts(&workplace.run_words(&["chat", "search {}"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("slow"), "{stdout}{stderr}");
}
