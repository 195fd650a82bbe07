//! What a program prints and reads, whatever and however much it is.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use steadyhand::{Call, Effect, Status};

use super::{call, escaped, executor, message, script, tool_in, value, with};

#[tokio::test]
async fn f01_a_program_answers_with_what_it_prints() {
    let outcome = call(
        json!({"command": ["printf", "%s\\n\\n", "{text}"]}),
        json!({"text": "a  b"}),
    )
    .await;
    assert_eq!(value(&outcome), "a  b");
}

#[tokio::test]
async fn output_is_read_as_json_where_the_configuration_says_so() {
    let settings = with(script(r#"echo '{"a": [1, 2]}'"#), "output", json!("json"));
    assert_eq!(
        value(&call(settings, json!({})).await),
        &json!({"a": [1, 2]})
    );
}

#[tokio::test]
async fn output_is_read_as_lines_where_the_configuration_says_so() {
    let settings = with(script("printf 'a\\n\\nb\\n'"), "output", json!("lines"));
    assert_eq!(
        value(&call(settings, json!({})).await),
        &json!(["a", "", "b"])
    );
}

#[tokio::test]
async fn r07_output_that_is_no_json_says_how_it_began_and_that_the_program_ran() {
    let settings = with(script("echo Usage: tool"), "output", json!("json"));
    let outcome = call(settings, json!({})).await;
    assert_eq!(
        message(&outcome),
        "`sh` ran, but its output is no JSON (this is where a value should be, at line 1, column 1); it began with \"Usage: tool\"; correct the program, or set `output = \"text\"`"
    );
    assert_eq!(outcome.failure().expect("a failure").effect, Effect::Done);
}

#[tokio::test]
async fn a_hundred_megabytes_are_read_but_not_kept() {
    let outcome = call(script("yes | head -c 104857600"), json!({})).await;
    let text = value(&outcome).as_str().expect("a text");
    assert!(text.starts_with("[cut: the first 1048576 of 104857600 bytes]\ny\ny\n"));
    assert!(text.len() <= 256 * 1024);
    assert!(outcome.output().expect("output").cut().is_some());
}

#[tokio::test]
async fn a_hundred_megabytes_of_complaints_are_read_but_not_kept() {
    let outcome = call(
        script("yes | head -c 104857600 >&2; echo the end >&2; exit 3"),
        json!({}),
    )
    .await;
    let text = message(&outcome);
    assert!(
        text.starts_with("`sh` exited with code 3: … y\ny\n"),
        "{text}"
    );
    assert!(text.ends_with("y\nthe end"), "{text}");
    assert!(text.len() < 5 * 1024);
}

#[tokio::test]
async fn a_program_that_never_stops_printing_is_stopped() {
    let tool = tool_in(Path::new("/"), json!({"command": ["yes"]})).await;
    let call = Call::new("program", "{}").timeout(Duration::from_millis(300));
    assert_eq!(executor(tool).execute(call).await.status(), Status::Timeout);
}

#[tokio::test]
async fn json_that_is_too_large_is_not_half_read() {
    let settings = with(script("echo '[1, 2, 3]'"), "output", json!("json"));
    let outcome = call(with(settings, "limits", json!({"output": "4B"})), json!({})).await;
    assert_eq!(
        message(&outcome),
        "`sh` ran, but its output of 10 bytes is larger than the 4 that are read; raise `limits.output`"
    );
}

#[tokio::test]
async fn invalid_utf8_becomes_text_with_a_note() {
    let outcome = call(script("printf 'a\\377b'"), json!({})).await;
    assert_eq!(
        value(&outcome),
        "[note: the output is not valid UTF-8; � stands for what could not be read]\na�b"
    );
}

#[tokio::test]
async fn a_character_that_the_limit_cuts_through_is_left_out() {
    let settings = with(script("printf 'aaaé'"), "limits", json!({"output": "4B"}));
    assert_eq!(
        value(&call(settings, json!({})).await),
        "[cut: the first 3 of 5 bytes]\naaa"
    );
}

#[tokio::test]
async fn a_text_is_written_to_the_programs_input() {
    let settings = json!({"command": ["tr", "a-z", "A-Z"], "stdin": "<{text}>"});
    assert_eq!(
        value(&call(settings, json!({"text": "-x 'y'"})).await),
        "<-X 'Y'>"
    );
}

#[tokio::test]
async fn the_arguments_are_written_as_json() {
    let settings = json!({"command": ["cat"], "stdin_json": true, "output": "json"});
    let args = json!({"b": [1, "x"], "a": null});
    assert_eq!(value(&call(settings, args.clone()).await), &args);
}

#[tokio::test]
async fn input_is_empty_where_the_configuration_has_none() {
    assert_eq!(
        value(&call(json!({"command": ["cat"]}), json!({})).await),
        ""
    );
}

#[tokio::test]
async fn a_program_that_does_not_read_its_input_ends_as_it_likes() {
    let settings =
        json!({"command": ["sh", "-c", escaped("exec <&-; echo ok")], "stdin": "{text}"});
    let outcome = call(settings, json!({"text": "x".repeat(900_000)})).await;
    assert_eq!(value(&outcome), "ok");
}

#[tokio::test]
async fn v07_a_program_that_never_reads_its_input_does_not_hang_the_call() {
    let settings = json!({"command": ["sleep", "60"], "stdin": "{text}"});
    let tool = tool_in(Path::new("/"), settings).await;
    let call = Call::new("program", json!({"text": "x".repeat(900_000)}));
    let outcome = executor(tool)
        .execute(call.timeout(Duration::from_millis(300)))
        .await;
    assert_eq!(outcome.status(), Status::Timeout);
}
