//! `validate`, `repair` and `error-response` on histories that died in public.

use serde_json::{Value, json};
use snapbox::str;

use crate::support::{Workplace, parts};

/// anthropics/claude-code#5989: interrupted with two calls in flight.
const INTERRUPTED: &str = include_str!("../../../../../docs/histories/claude-code-5989.json");

/// github/copilot-sdk#1922: an image between the results.
const IMAGE_BETWEEN: &str = include_str!("../../../../../docs/histories/copilot-sdk-1922.json");

/// google-gemini/gemini-cli#16415: fewer responses than calls.
const FEWER_RESPONSES: &str = include_str!("../../../../../docs/histories/gemini-cli-16415.json");

#[test]
fn r02_validate_names_every_fault_with_its_place_and_the_providers_words() {
    let workplace = Workplace::new();
    workplace.write("history.json", INTERRUPTED);
    workplace
        .run("validate history.json --provider anthropic")
        .code(5)
        .stdout_eq(str![[r#"
/1/content/0  missing_result  the call toolu_A of run has no result
    the provider would say: messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_A, toolu_B. Each `tool_use` block must have a corresponding `tool_result` block in the next message.
/1/content/1  missing_result  the call toolu_B of read has no result
    the provider would say: messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_A, toolu_B. Each `tool_use` block must have a corresponding `tool_result` block in the next message.

"#]])
        .stderr_eq(str![[r#"
Error: anthropic would refuse history.json: 2 problems
  help: steadyhand repair history.json --provider anthropic

"#]]);
}

#[test]
fn t06_a_host_that_takes_what_its_provider_refuses_is_given_it() {
    let workplace = Workplace::new();
    let said = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello", "tool_calls": null}]);
    workplace.write("history.json", &said.to_string());
    workplace
        .run("validate history.json --provider openai --host compatible")
        .code(0);
    workplace
        .run("validate history.json --provider openai -q")
        .code(5);
    let (code, _, told) =
        parts(&workplace.run("validate history.json --provider openai --host nowhere"));
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("deepseek"), "{told}");
}

#[test]
fn t06_what_is_not_mended_keeps_its_bytes() {
    let workplace = Workplace::new();
    // Numbers that no double holds, spaces, letters written as escapes, a field that is there twice.
    let call = r#"{ "type":"tool_use", "id":"t1", "name":"look", "input":{"id":12345678901234567890123, "x":1e0, "x":1.50} }"#;
    let asked = r#"{"role" : "user", "content": "\u00e9 \/"}"#;
    let sound = format!(r#"{{"max_tokens":9, "n":1.0, "messages":[{asked}]}}"#);
    workplace.write("sound.json", &format!("{sound}\n"));
    workplace.write("sound.jsonl", &format!("{sound}\n{sound}\n"));
    for (file, printed) in [
        ("sound.json", format!("{sound}\n")),
        ("sound.jsonl", format!("{sound}\n{sound}\n")),
    ] {
        let run = workplace.run(&format!("repair {file} --provider anthropic"));
        let (code, stdout, stderr) = parts(&run);
        assert_eq!((code, stdout), (0, printed), "{stderr}");
    }
    // Beside what is mended, also in the same message.
    let broken = format!(
        r#"[{asked}, {{"role":"assistant", "content":[{{"type":"text","text":""}}, {call}]}}, {asked}]"#
    );
    workplace.write("broken.json", &broken);
    let run = workplace.run("repair broken.json --provider anthropic");
    let (code, stdout, stderr) = parts(&run);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stdout.matches(asked).count(), 2, "{stdout}");
    assert_eq!(stdout.matches(call).count(), 1, "{stdout}");
    assert!(stdout.contains("tool_result"), "{stdout}");
}

#[test]
fn r03_repair_says_what_it_changed_and_the_provider_then_accepts_it() {
    let workplace = Workplace::new();
    for (provider, history) in [
        ("anthropic", INTERRUPTED),
        ("openai", IMAGE_BETWEEN),
        ("gemini", FEWER_RESPONSES),
    ] {
        workplace.write("broken.json", history);
        workplace
            .run(&format!("validate broken.json --provider {provider} -q"))
            .code(5);
        let (code, repaired, explained) =
            parts(&workplace.run(&format!("repair broken.json --provider {provider}")));
        assert_eq!(code, 0, "{explained}");
        assert!(!explained.trim().is_empty());
        workplace.write("repaired.json", &repaired);
        workplace
            .run(&format!("validate repaired.json --provider {provider}"))
            .code(0);
        let again = workplace.json(&format!(
            "repair repaired.json --provider {provider} --json"
        ));
        assert_eq!(again["fixes"], json!([]));
        assert_eq!(
            again["messages"],
            serde_json::from_str::<Value>(&repaired).expect("JSON")
        );
    }
}

#[test]
fn r03_the_printed_explanation_reads_well() {
    let workplace = Workplace::new();
    workplace.write("broken.json", INTERRUPTED);
    workplace
        .run("repair broken.json --provider anthropic")
        .code(0)
        .stderr_eq(str![[r#"
2 fixes, so that anthropic takes this conversation:

  /1/content/0  missing_result
    the call toolu_A of run has no result; a placeholder says that it may or may not have run

  /1/content/1  missing_result
    the call toolu_B of read has no result; a placeholder says that it may or may not have run

    … 2 messages as they were
  + {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_A","content":"Error: the result of this call is missing from the conversation; the tool may…
    … 1 message as it was

"#]]);
}

#[test]
fn r01_a_file_with_one_conversation_a_line_is_read_line_by_line() {
    let workplace = Workplace::new();
    let line = |text: &str| {
        serde_json::from_str::<Value>(text)
            .expect("JSON")
            .to_string()
    };
    let good = r#"[{"role":"user","content":"Hello"}]"#;
    workplace.write("many.jsonl", &format!("{good}\n{}\n", line(INTERRUPTED)));
    let (code, stdout, _) = parts(&workplace.run("validate many.jsonl --provider anthropic"));
    assert_eq!(code, 5);
    assert!(stdout.starts_with("2:/1/content/0"), "{stdout}");
    let (_, stdout, _) = parts(&workplace.run("repair many.jsonl --provider anthropic -q"));
    assert_eq!(stdout.lines().count(), 2);
    assert_eq!(stdout.lines().next(), Some(good));
    workplace.write("broken.jsonl", &format!("{good}\n{{\n"));
    let (code, _, stderr) = parts(&workplace.run("validate broken.jsonl --provider anthropic"));
    assert_eq!(code, 2);
    assert!(stderr.contains("line 2 is no JSON"), "{stderr}");
}

#[test]
fn r01_lines_are_counted_as_the_file_has_them() {
    let workplace = Workplace::new();
    let broken = serde_json::from_str::<Value>(INTERRUPTED).expect("JSON");
    workplace.write("gaps.jsonl", &format!("\n\n{broken}\r\n\n{broken}"));
    let (code, stdout, _) = parts(&workplace.run("validate gaps.jsonl --provider anthropic"));
    assert_eq!(code, 5);
    let starts = |number: usize| {
        stdout
            .lines()
            .filter(|line| line.starts_with(&format!("{number}:/1")))
            .count()
    };
    assert_eq!((starts(3), starts(5)), (2, 2), "{stdout}");
    let (_, _, stderr) = parts(&workplace.run("repair gaps.jsonl --provider anthropic"));
    assert!(stderr.starts_with("line 3:\n2 fixes"), "{stderr}");
}

#[test]
fn r03_with_one_line_broken_nothing_is_printed() {
    let workplace = Workplace::new();
    let good = r#"[{"role":"user","content":"Hello"}]"#;
    workplace.write("some.jsonl", &format!("{good}\n[{{\n{good}\n"));
    for command in ["repair", "validate", "repair --json", "validate --json"] {
        let run = workplace.run(&format!("{command} some.jsonl --provider anthropic"));
        let (code, stdout, stderr) = parts(&run);
        assert_eq!(code, 2, "{stderr}");
        assert!(!stdout.contains("Hello"), "{stdout}");
        assert!((stdout + &stderr).contains("line 2 is no JSON"), "{stderr}");
    }
}

#[test]
fn r03_what_is_no_conversation_is_not_said_to_be_in_order() {
    let workplace = Workplace::new();
    for odd in [
        "5",
        "null",
        "\"x\"",
        "{}",
        r#"{"messages": 5}"#,
        r#"{"role": "user", "content": "Hello"}"#,
    ] {
        workplace.write("odd.json", odd);
        let (code, stdout, stderr) = parts(&workplace.run("repair odd.json --provider anthropic"));
        assert_eq!((code, stdout.as_str()), (2, ""), "{odd}: {stderr}");
        assert!(
            stderr.contains("there is no list of messages in odd.json"),
            "{stderr}"
        );
        let (code, _, _) = parts(&workplace.run("validate odd.json --provider anthropic"));
        assert_eq!(code, 5, "{odd}");
    }
    // One message a line is what many logs have.
    let message = r#"{"role": "user", "content": "Hello"}"#;
    workplace.write("log.jsonl", &format!("{message}\n{message}\n"));
    let (code, _, stderr) = parts(&workplace.run("repair log.jsonl --provider openai"));
    assert_eq!(code, 2);
    assert!(stderr.contains("line 1 of log.jsonl"), "{stderr}");
    assert!(
        stderr.contains("jq -s . log.jsonl | steadyhand repair - --provider openai"),
        "{stderr}"
    );
}

#[test]
fn r01_a_file_that_cannot_be_read_is_named_with_the_reason() {
    let workplace = Workplace::new();
    workplace.write("empty.json", "");
    workplace.write("blank.json", " \n\n");
    std::fs::write(workplace.file("latin.json"), b"[\"\xe9\"]").expect("a file");
    std::fs::create_dir(workplace.file("folder")).expect("a folder");
    let huge = std::fs::File::create(workplace.file("huge.json")).expect("a file");
    huge.set_len(256 * 1024 * 1024 + 1)
        .expect("a file with a hole");
    let table = [
        ("empty.json", "it is empty"),
        ("blank.json", "it is empty"),
        ("latin.json", "UTF-8"),
        ("folder", "directory"),
        ("nowhere.json", "No such file"),
        ("huge.json", "larger than 256 MiB"),
    ];
    for (file, reason) in table {
        for command in ["repair", "validate"] {
            let run = workplace.run(&format!("{command} {file} --provider openai"));
            let (code, stdout, stderr) = parts(&run);
            assert_eq!((code, stdout.as_str()), (2, ""), "{file}: {stderr}");
            assert!(
                stderr.contains(file) && stderr.to_lowercase().contains(&reason.to_lowercase()),
                "{file}: {stderr}"
            );
        }
    }
}

#[test]
fn r03_a_conversation_comes_from_stdin_and_with_a_mark_of_its_encoding() {
    let workplace = Workplace::new();
    let text = format!("\u{feff}{INTERRUPTED}");
    let run = workplace
        .command(&["repair", "-", "--provider", "anthropic", "--json"])
        .stdin(text)
        .assert();
    let (code, stdout, stderr) = parts(&run);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let repaired: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(repaired["fixes"].as_array().map(Vec::len), Some(2));
    assert_eq!(repaired["fixes"][0]["at"], "/1/content/0");
}

#[test]
fn r03_with_json_each_line_gets_one() {
    let workplace = Workplace::new();
    let broken = serde_json::from_str::<Value>(INTERRUPTED).expect("JSON");
    workplace.write("two.jsonl", &format!("{broken}\n{broken}\n"));
    let (code, stdout, stderr) =
        parts(&workplace.run("repair two.jsonl --provider anthropic --json"));
    assert_eq!((code, stderr.as_str()), (0, ""));
    let lines: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0], lines[1]);
    let (code, stdout, _) = parts(&workplace.run("validate two.jsonl --provider anthropic --json"));
    assert_eq!(code, 5);
    let first: Value = serde_json::from_str(stdout.lines().next().expect("a line")).expect("JSON");
    assert_eq!(first["valid"], false);
    assert!(first["problems"][0]["provider_text"].is_string());
}

#[test]
fn r03_what_no_repair_can_mend_is_said() {
    let workplace = Workplace::new();
    workplace.write(
        "request.json",
        r#"{"messages": [{"role": "user", "content": "Hello"}]}"#,
    );
    let (code, _, stderr) = parts(&workplace.run("repair request.json --provider anthropic"));
    assert_eq!(code, 0);
    assert!(
        stderr.contains("2 problems left that no repair can mend"),
        "{stderr}"
    );
    let (code, stdout, _) =
        parts(&workplace.run("validate request.json --provider anthropic --what request"));
    assert_eq!(code, 5);
    assert!(stdout.contains("max_tokens: Field required"), "{stdout}");
}

/// Runs the commands of the document and holds what they print against it.
#[test]
fn r03_the_document_shows_what_is_printed() {
    let workplace = Workplace::new();
    for (name, history) in [
        ("claude-code-5989", INTERRUPTED),
        ("copilot-sdk-1922", IMAGE_BETWEEN),
        ("gemini-cli-16415", FEWER_RESPONSES),
    ] {
        workplace.write(&format!("docs/histories/{name}.json"), history);
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = std::fs::read_to_string(root.join("../../docs/repair.md")).expect("a document");
    let blocks = document.split("```console\n").skip(1);
    let mut commands = 0;
    for block in blocks.filter_map(|block| block.split("```").next()) {
        for shown in block.split("$ steadyhand ").skip(1) {
            let (command, expected) = shown.split_once('\n').expect("a command and its output");
            let (arguments, target) = match command.split_once(" >") {
                Some((arguments, target)) => (arguments, Some(target)),
                None => (command, None),
            };
            let (_, stdout, stderr) = parts(&workplace.run(arguments));
            let printed = match target {
                Some(target) => {
                    workplace.write(target, &stdout);
                    stderr
                }
                None => stdout + &stderr,
            };
            assert_eq!(printed.trim(), expected.trim(), "{command}");
            commands += 1;
        }
    }
    assert!(commands >= 6, "the document has {commands} commands");
}

#[test]
fn r03_with_json_what_was_mended_is_named_what_it_is() {
    let workplace = Workplace::new();
    let messages = r#"[{"role": "user", "content": "Hello"}]"#;
    workplace.write("list.json", messages);
    workplace.write(
        "request.json",
        &format!(r#"{{"model": "m", "messages": {messages}}}"#),
    );
    for (file, name) in [("list.json", "messages"), ("request.json", "request")] {
        for what in ["".to_owned(), format!(" --what {name}")] {
            let command = format!("repair {file} --provider openai --json{what}");
            let (code, stdout, stderr) = parts(&workplace.run(&command));
            assert_eq!(code, 0, "{stderr}");
            let answer: Value = serde_json::from_str(&stdout).expect("JSON");
            let keys: Vec<&String> = answer.as_object().expect("an object").keys().collect();
            assert_eq!(keys, [name, "fixes"]);
        }
    }
    let (code, _, stderr) =
        parts(&workplace.run("repair list.json --provider openai --what request"));
    assert_eq!(code, 2);
    assert!(
        stderr.contains("there is no list of messages in list.json"),
        "{stderr}"
    );
}

#[test]
fn r03_r14_a_models_response_is_mended_and_an_error_written_as_one() {
    let workplace = Workplace::new();
    workplace.write(
        "answer.json",
        r#"{"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "look", "args": "{\"at\": 1}"}}]}}]}"#,
    );
    let command = "repair answer.json --provider gemini --what response";
    let (code, stdout, stderr) = parts(&workplace.run(command));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains(r#""args":{"at":1}"#), "{stdout}");
    assert!(stderr.starts_with("1 fix in this response:"), "{stderr}");
    let (code, stdout, _) = parts(&workplace.run(&format!("{command} --json")));
    assert_eq!(code, 0);
    let answer: Value = serde_json::from_str(&stdout).expect("JSON");
    let keys: Vec<&String> = answer.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["response", "fixes"]);

    let words = [
        "error-response",
        "--provider",
        "ollama",
        "--what",
        "response",
        "--model",
        "qwen",
        "it broke",
    ];
    let (code, stdout, stderr) = parts(&workplace.run_words(&words));
    assert_eq!(code, 0, "{stderr}");
    let response: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(response["message"]["content"], "Error: it broke");
    assert_eq!(response["model"], "qwen");
    // The result of a call needs to know which.
    let words = ["error-response", "--provider", "ollama", "it broke"];
    let (code, _, stderr) = parts(&workplace.run_words(&words));
    assert_eq!(code, 2);
    assert!(stderr.contains("--id"), "{stderr}");
}

#[test]
fn r01_what_a_provider_takes_and_its_model_misreads_is_not_called_refused() {
    let workplace = Workplace::new();
    workplace.write(
        "request.json",
        r#"{"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": [{"type": "function", "function": {"name": "look", "description": "", "parameters": {"type": "object", "properties": {}}}}]}"#,
    );
    let (code, stdout, stderr) =
        parts(&workplace.run("validate request.json --provider openai --what request"));
    assert_eq!(code, 5);
    assert!(
        stdout.starts_with("/tools/0/function/description  missing_description"),
        "{stdout}"
    );
    assert!(
        stderr.contains("openai would accept request.json, and its model misread it: 1 problem"),
        "{stderr}"
    );
    // There is nothing that a repair would change.
    assert!(!stderr.contains("steadyhand repair"), "{stderr}");
    workplace.write("none.json", r#"{"model": "m"}"#);
    let (code, _, stderr) = parts(&workplace.run("validate none.json --provider openai"));
    assert_eq!(code, 5);
    assert!(stderr.contains("would refuse none.json"), "{stderr}");
}

#[test]
fn r14_an_error_response_has_the_providers_shape() {
    let workplace = Workplace::new();
    let words = [
        "error-response",
        "--provider",
        "anthropic",
        "--id",
        "toolu_A",
        "--name",
        "run",
        "it broke",
    ];
    let (code, stdout, stderr) = parts(&workplace.run_words(&words));
    assert_eq!(code, 0, "{stderr}");
    let result: Value = serde_json::from_str(&stdout).expect("JSON");
    assert!(
        result.to_string().contains("\"tool_use_id\":\"toolu_A\""),
        "{result}"
    );
    assert!(result.to_string().contains("\"is_error\":true"), "{result}");
}

#[test]
fn a_provider_nobody_knows_is_refused_with_the_ones_there_are() {
    let workplace = Workplace::new();
    let (code, _, stderr) = parts(&workplace.run("repair x.json --provider nobody"));
    assert_eq!(code, 2);
    assert!(stderr.contains("anthropic"), "{stderr}");
}
