//! Secrets by reference: an unset one disables what needs it, a set one is never seen again.

use crate::support::{Workplace, parts};

/// Long enough to be looked for, and in no other text.
const SECRET: &str = "zebra-crossing-4711";

const CONFIG: &str = r#"
[tools.needs_key]
kind = "mock"
description = "answers ${env:SOME_API_KEY}"
answers = [
  { when = { how = "result" }, result = { echoed = "key ${env:SOME_API_KEY}!" } },
  { when = { how = "fail" }, fail = "unknown", message = "bad key ${env:SOME_API_KEY}" },
]

[tools.free]
kind = "mock"
mock_response = "free"
"#;

#[test]
fn an_unset_secret_disables_only_the_tool_that_needs_it_and_names_field_and_line() {
    let workplace = Workplace::with_config(CONFIG);
    let listed = workplace.json("tools list --json");
    assert_eq!(listed["tools"][0]["available"], false);
    assert_eq!(listed["tools"][1]["available"], true);
    let (code, stdout, stderr) = parts(&workplace.run("call needs_key how=result"));
    assert_eq!((code, stdout.as_str()), (3, ""));
    for part in ["needs_key", "SOME_API_KEY", "steadyhand.toml:4"] {
        assert!(stderr.contains(part), "{part} in {stderr}");
    }
    workplace.run("call free").code(0);
}

#[test]
fn a_secret_appears_in_no_output_no_error_no_log_and_no_listing() {
    let mut workplace = Workplace::with_config(CONFIG);
    workplace.set("SOME_API_KEY", SECRET);
    for command in [
        "call needs_key how=result -vv",
        "call needs_key how=result --json",
        "call needs_key how=fail -vv",
        "call needs_key how=fail --json --view flat",
        "config show",
        "config show --json",
        "config check -vv",
    ] {
        let (_, stdout, stderr) = parts(&workplace.run(command));
        assert!(!stdout.contains(SECRET), "{command}: {stdout}");
        assert!(!stderr.contains(SECRET), "{command}: {stderr}");
    }
    let (code, stdout, _) = parts(&workplace.run("call needs_key how=result --json"));
    assert_eq!(code, 0);
    assert!(stdout.contains("key [redacted]!"), "{stdout}");
}

#[test]
fn a_secret_is_hidden_by_any_name_and_in_any_coat() {
    let mut workplace = Workplace::with_config(
        r#"
[tools.echoes]
kind = "command"
command = ["sh", "-c", "printf '%s\n' \"$PLAIN\"; printf '%s' \"user:$PLAIN\" | base64; printf 'p%%40ss%%20word%%2F1\n'"]
env = { PLAIN = "${env:SOME_WORD}" }
"#,
    );
    workplace.set("SOME_WORD", "p@ss word/1");
    let (code, stdout, stderr) = parts(&workplace.run("call echoes"));
    assert_eq!(code, 0, "{stderr}");
    for form in ["p@ss word/1", "cEBzcyB3b3JkLz", "p%40ss%20word%2F1"] {
        assert!(!stdout.contains(form), "{form} in {stdout}");
    }
}

#[test]
fn secrets_come_from_files_too() {
    let workplace = Workplace::with_config(
        r#"
[tools.a]
kind = "mock"
mock_response = "got ${file:secret.txt}"
[tools.b]
kind = "mock"
mock_response = "got ${file:missing.txt}"
"#,
    );
    workplace.write("secret.txt", &format!("{SECRET}\n"));
    let (code, stdout, _) = parts(&workplace.run("call a"));
    assert_eq!((code, stdout.as_str()), (0, "got [redacted]\n"));
    let (code, _, stderr) = parts(&workplace.run("call b"));
    assert_eq!(code, 3);
    assert!(stderr.contains("missing.txt"), "{stderr}");
}

#[test]
fn a_default_is_used_where_the_variable_is_unset() {
    let workplace = Workplace::with_config(
        "[tools.a]\nkind = \"mock\"\nmock_response = \"${env:WHO:-nobody}\"\n",
    );
    let (_, stdout, _) = parts(&workplace.run("call a"));
    assert_eq!(stdout, "nobody\n");
}

#[test]
fn a_brace_in_a_secret_is_no_place_for_an_argument() {
    let mut workplace = Workplace::with_config(
        "[tools.a]\nkind = \"command\"\ncommand = [\"echo\", \"${env:WORD}\", \"{what}\"]\n",
    );
    workplace.set("WORD", "{what}-{{x}}");
    let (code, stdout, stderr) = parts(&workplace.run("call a what=hello"));
    assert_eq!(
        (code, stdout.as_str()),
        (0, "[redacted] hello\n"),
        "{stderr}"
    );
}

#[test]
fn a_key_written_out_is_not_quoted_by_the_report_about_its_neighbour() {
    let workplace = Workplace::with_config(
        "[tools.a]\nkind = \"http\"\nurl = \"http://localhost/\"\nheaders = { Authorization = \"Bearer zebra-crossing-4711\" }\ntimeuot = \"1s\"\napi_key = \"zebra-crossing-4711\"\n",
    );
    for command in [
        "config check",
        "config check --json",
        "config check --plain -vv",
    ] {
        let (code, stdout, stderr) = parts(&workplace.run(command));
        assert_eq!(code, 8);
        assert!(
            !stdout.contains(SECRET) && !stderr.contains(SECRET),
            "{command}: {stderr}"
        );
    }
}

#[test]
fn names_of_ones_own_are_hidden_too() {
    let workplace = Workplace::with_config(
        "[defaults]\nredact = [\"*badge*\"]\n[tools.a]\nkind = \"mock\"\nmock_response = 1\n",
    );
    let (_, _, stderr) = parts(&workplace.run("call a staff_badge=zebra-crossing-4711 -vv"));
    assert!(stderr.contains("staff_badge"), "{stderr}");
    assert!(!stderr.contains(SECRET), "{stderr}");
}
