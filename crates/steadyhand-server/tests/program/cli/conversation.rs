//! `validate`, `repair` and `error-response` on histories that died in public.

use serde_json::{Value, json};
use snapbox::str;

use crate::support::{Workplace, parts};

/// anthropics/claude-code#5989: interrupted with two calls in flight.
const INTERRUPTED: &str = r#"[
  {"role": "user", "content": "Run the tests and look at the log"},
  {"role": "assistant", "content": [
    {"type": "tool_use", "id": "toolu_A", "name": "run", "input": {"command": "make test"}},
    {"type": "tool_use", "id": "toolu_B", "name": "read", "input": {"path": "test.log"}}]},
  {"role": "user", "content": "Stop, that takes too long"}]"#;

/// github/copilot-sdk#1922: an image between the results.
const IMAGE_BETWEEN: &str = r#"[
  {"role": "user", "content": "Compare the two pages"},
  {"role": "assistant", "content": null, "tool_calls": [
    {"id": "call_A", "type": "function", "function": {"name": "search", "arguments": "{}"}},
    {"id": "call_B", "type": "function", "function": {"name": "search", "arguments": "{}"}}]},
  {"role": "tool", "tool_call_id": "call_A", "content": "page one"},
  {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
  {"role": "tool", "tool_call_id": "call_B", "content": "page two"}]"#;

/// google-gemini/gemini-cli#16415: fewer responses than calls.
const FEWER_RESPONSES: &str = r#"[
  {"role": "user", "parts": [{"text": "What is in these files?"}]},
  {"role": "model", "parts": [
    {"functionCall": {"name": "read", "args": {"path": "a"}}},
    {"functionCall": {"name": "read", "args": {"path": "b"}}}]},
  {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "A"}}}]}]"#;

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
