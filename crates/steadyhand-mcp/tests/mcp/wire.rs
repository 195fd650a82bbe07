//! Bytes to messages and noise: whatever surrounds a message, and however the bytes are cut.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use steadyhand_mcp::wire::{Incoming, Line, Lines};

const LINE_BYTES_MAX: usize = 4096;

/// What is read, in short: `1` an answer to request 1, `!m` a notification, `?m` a request, `"…"` noise,
/// `1>` an answer to request 1 that was too long, `>` anything else that was.
fn read(pieces: &[&[u8]]) -> Vec<String> {
    let mut lines = Lines::new(LINE_BYTES_MAX);
    let mut all = Vec::new();
    for piece in pieces {
        lines.buffer().extend_from_slice(piece);
        while let Some(line) = lines.next_line() {
            tell(&line, &mut all);
        }
    }
    while let Some(line) = lines.last_line() {
        tell(&line, &mut all);
    }
    all
}

fn tell(line: &Line<'_>, all: &mut Vec<String>) {
    let noise = |bytes: &[u8]| format!("\"{}\"", String::from_utf8_lossy(bytes));
    match line {
        Line::Message(message) => all.push(short(message)),
        Line::Batch(messages) => all.extend(messages.iter().map(short)),
        Line::Salvaged {
            noise: before,
            message,
        } => all.extend([noise(before), short(message)]),
        Line::Noise(bytes) => all.push(noise(bytes)),
        Line::TooLong {
            answers: Some(id), ..
        } => all.push(format!("{id}>")),
        Line::TooLong { .. } => all.push(">".to_owned()),
    }
}

fn short(message: &Incoming<'_>) -> String {
    match message {
        Incoming::Response { id: Some(id), .. } => id.to_string(),
        Incoming::Response { id: None, .. } => "none of ours".to_owned(),
        Incoming::Request { method, .. } => format!("?{method}"),
        Incoming::Notification { method, .. } => format!("!{method}"),
    }
}

fn check(input: &str, expected: &[&str]) {
    assert_eq!(read(&[input.as_bytes()]), expected, "{input}");
}

#[test]
fn v12_messages_are_found_in_whatever_surrounds_them() {
    let rust = r#"{"jsonrpc":"2.0","id":1,"result":{"a":{"id":9}}}"#;
    let typescript = r#"{"result":{"a":{"id":9}},"jsonrpc":"2.0","id":2}"#;
    let notice = r#"{"method":"m","jsonrpc":"2.0"}"#;
    check(
        &format!("{rust}\n{typescript}\r\n{notice}\n"),
        &["1", "2", "!m"],
    );
    check(
        &format!("text {rust}\nmore: {typescript}\n"),
        &["\"text \"", "1", "\"more: \"", "2"],
    );
    check(&format!("{rust}{typescript} {notice}\n"), &["1", "2", "!m"]);
    check(&format!("[{rust},{notice}]\n"), &["1", "!m"]);
    check(
        &format!("{{\"log\":1}}{typescript}\n"),
        &["\"{\"log\":1}\"", "2"],
    );
    check(typescript, &["2"]);
    check(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"resul",
        &["\"{\"jsonrpc\":\"2.0\",\"id\":1,\"resul\""],
    );
}

#[test]
fn v12_a_message_over_several_lines_is_one() {
    let pretty =
        "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 3,\n  \"result\": {\n    \"a\": {}\n  }\n}\n";
    check(pretty, &["3"]);
    check(&pretty.repeat(2), &["3", "3"]);
}

#[test]
fn v12_an_object_that_is_no_json_swallows_no_message() {
    let typescript = r#"{"result":{},"jsonrpc":"2.0","id":2}"#;
    check(
        &format!("{{\n  a: 1\n}}\n{typescript}\n"),
        &["\"{ a: 1 }\"", "2"],
    );
    check(
        &format!("{{\n  a: 1\n{typescript}\n}}\n"),
        &["\"{ a: 1\"", "2", "\"}\""],
    );
    check(&format!("{{\n{typescript}\n"), &["\"{\"", "2"]);
    check("{\n  a: 1\n", &["\"{ a: 1\""]);
}

#[test]
fn v12_of_an_answer_that_is_too_long_is_known_whose_it_is() {
    let long = "y".repeat(3 * LINE_BYTES_MAX);
    let next = r#"{"jsonrpc":"2.0","id":8,"result":{}}"#;
    let cases = [
        (
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{long}"}}"#),
            "7>",
        ),
        (
            format!(r#"{{"jsonrpc":"2.0","id":"7","error":"{long}"}}"#),
            "7>",
        ),
        (
            format!(r#"{{"result":"{long}","jsonrpc":"2.0","id":7}}"#),
            "7>",
        ),
        (
            format!(r#"{{"jsonrpc":"2.0","result":"{long}","id":7}}"#),
            "7>",
        ),
        (
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{long}"}}"#),
            ">",
        ),
        (format!(r#"{{"result":{{"b":"{long}","id":7}}}}"#), ">"),
        (long, ">"),
    ];
    for (line, expected) in &cases {
        let input = format!("{line}\n{next}\n");
        check(&input, &[expected, "8"]);
        let pieces: Vec<&[u8]> = input.as_bytes().chunks(1000).collect();
        assert_eq!(read(&pieces), [expected, "8"]);
    }
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("{\n".to_owned()),
        Just("}\n".to_owned()),
        Just("  \"a\": 1,\n".to_owned()),
        Just("noise\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("é\u{1b}[0m".to_owned()),
        Just("z".repeat(LINE_BYTES_MAX / 2)),
        (1..5u64).prop_map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n")),
        (1..5u64).prop_map(|id| format!("{{\"result\":{{}},\"jsonrpc\":\"2.0\",\"id\":{id}}}\n")),
        Just("{\"method\":\"m\",\"jsonrpc\":\"2.0\"}".to_owned()),
    ]
}

proptest! {
    /// Where the pieces are cut does not matter.
    #[test]
    fn v12_however_the_bytes_are_cut_the_same_is_read(pieces in vec(piece(), 0..20), cuts in vec(any::<Index>(), 0..8)) {
        let whole = pieces.concat();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len() + 1)).collect();
        cuts.sort_unstable();
        let mut parts = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([whole.len()]) {
            parts.push(&whole.as_bytes()[from..cut]);
            from = cut;
        }
        prop_assert_eq!(read(&parts), read(&[whole.as_bytes()]));
    }

    /// A message on a line of its own is always read, whatever stands before it.
    #[test]
    fn v12_a_message_on_a_line_of_its_own_is_never_lost(before in vec(piece(), 0..20)) {
        let input = format!("{}\n{{\"result\":{{}},\"jsonrpc\":\"2.0\",\"id\":77}}\n", before.concat());
        let all = read(&[input.as_bytes()]);
        prop_assert!(all.contains(&"77".to_owned()), "{:?}", all);
    }
}
