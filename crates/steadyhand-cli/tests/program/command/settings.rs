//! Faults in the settings, each with its place and what to do.

use std::path::Path;

use serde_json::{Value, json};
use steadyhand_runtime::source::KINDS;

use super::{faults, tool_in};

fn check(settings: Value, at: &str, message: &str, help: Option<&str>) {
    let found = faults(settings);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].at, at);
    assert_eq!(found[0].message, message);
    assert_eq!(found[0].help.as_deref(), help);
}

#[test]
fn v06_faults_of_a_command_are_named_with_their_place() {
    let example = Some("write the program first, such as [\"git\", \"log\", \"-n\", \"{count}\"]");
    check(json!({"command": []}), "/command", "is empty", example);
    check(
        json!({"command": [["git"]]}),
        "/command/0",
        "is no name of a program",
        example,
    );
    check(
        json!({"command": ["{program}", "x"]}),
        "/command/0",
        "the program itself cannot be an argument",
        example,
    );
    check(
        json!({"command": ["git", "log {"]}),
        "/command/1",
        "a { without its }; write {{ for the brace itself",
        None,
    );
    check(
        json!({"command": ["git", ["add", "x{files...}"]]}),
        "/command/1/1",
        "{name...} takes a list and must be an element of its own",
        None,
    );
    check(
        json!({"command": ["git"], "ok": []}),
        "/ok",
        "no exit code means success",
        Some("leave it out for [0]"),
    );
    check(
        json!({"command": ["git"], "stdin": "x", "stdin_json": true}),
        "/stdin",
        "`stdin` and `stdin_json` exclude each other",
        Some("keep `stdin` for a text of your own, or `stdin_json` for the arguments"),
    );
    check(
        json!({"command": ["git"], "env": {"A=B": "x"}}),
        "/env/A=B",
        "cannot be a variable: an empty name, a = in it, or a NUL byte",
        Some("rename it"),
    );
}

#[test]
fn v06_a_place_that_no_argument_fills_is_a_fault() {
    check(
        json!({
            "command": ["git", "log", "--max-count={cuont}"],
            "input": {"type": "object", "properties": {"count": {"type": "integer"}}}
        }),
        "/command/2",
        "{cuont} is no argument: `input` has no property of that name",
        Some("did you mean {count}?"),
    );
}

#[test]
fn v06_an_option_that_may_lose_its_value_is_a_fault() {
    let settings = |count: Value| {
        json!({
            "command": ["git", "log", "-n", "{count}"],
            "input": {"type": "object", "properties": {"count": count}}
        })
    };
    check(
        settings(json!({"type": "integer"})),
        "/command/3",
        "{count} may be absent, and the option before it would then stand alone",
        Some(
            "write the two as a list of their own, [\"-x\", \"{count}\"], and both are left out; or make `count` required or give it a default in `input`",
        ),
    );
    assert_eq!(
        faults(settings(json!({"type": "integer", "default": 10}))),
        []
    );
}

#[test]
fn wrong_types_are_named() {
    let found = faults(json!({"command": ["git", 5]}));
    assert_eq!(
        found[0].message,
        "command[1]: it is a whole number (5), and must be a text, or a list of texts that are left out together"
    );
    let found = faults(json!({"command": ["git"], "inherit_env": "some"}));
    assert_eq!(
        found[0].message,
        "inherit_env: it is \"some\", and must be a list of names of variables, or \"all\""
    );
}

#[tokio::test]
async fn the_schema_is_made_from_the_places() {
    let settings = json!({"command": ["tool", "{a}", ["-b", "{b}"], "{c...}"], "stdin": "{a}{d}"});
    let tool = tool_in(Path::new("/"), settings).await;
    assert_eq!(
        tool.schema(),
        &json!({
            "type": "object",
            "properties": {
                "a": {"type": "string"},
                "b": {"type": "string"},
                "c": {"type": "array", "items": {"type": "string"}},
                "d": {"type": "string"}
            },
            "required": ["a", "c", "d"]
        })
    );
    assert_eq!(tool.kind(), "command");
    assert_eq!(tool.description(), "Runs the program tool");
}

#[test]
fn every_setting_is_described() {
    let kind = KINDS
        .iter()
        .find(|kind| kind.settings.name == "command")
        .expect("there");
    let schema = (kind.settings.schema)(&mut schemars::SchemaGenerator::default()).to_value();
    let properties = schema["properties"].as_object().expect("properties");
    assert_eq!(properties.len(), 13);
    for (name, property) in properties {
        assert!(property["description"].is_string(), "{name}: {property}");
    }
}

/// Each is a program whose script would have a value of the call in it.
#[test]
fn s07_a_value_inside_a_script_of_an_interpreter_is_refused_and_the_safe_way_is_told() {
    for command in [
        json!(["sh", "-c", "echo {value}"]),
        json!(["/bin/bash", "-lc", "echo '{value}'"]),
        json!(["bash", "-o", "pipefail", "-c", "echo {value} | cat"]),
        json!(["dash", "-e", "-c", "{value}"]),
        json!(["zsh", ["-c", "echo {value}"]]),
        json!(["fish", "--command=echo {value}"]),
        json!(["env", "A=b", "sh", "-c", "echo {value}"]),
        json!(["env", "-S", "sh -c 'echo {value}'"]),
        json!([
            "/usr/bin/timeout",
            "5",
            "busybox",
            "sh",
            "-c",
            "echo {value}"
        ]),
        json!(["sudo", "-n", "bash", "-c", "echo {value}"]),
        json!(["xargs", "-0", "sh", "-c", "echo {value}"]),
        json!(["docker", "exec", "box", "sh", "-c", "echo {value}"]),
        json!(["python3.12", "-Ic", "print('{value}')"]),
        json!(["python3", "-cprint('{value}')"]),
        json!(["node", "-r", "fs", "-e", "console.log('{value}')"]),
        json!(["node", "--print", "{value}"]),
        json!(["perl", "-lane", "print '{value}'"]),
        json!(["ruby", "-e", "puts '{value}'"]),
        json!(["php", "-r", "echo '{value}';"]),
        json!(["deno", "eval", "console.log('{value}')"]),
        json!(["awk", "-F", ":", "{{print \"{value}\"}}", "file"]),
        json!(["ssh", "-p", "22", "host", "ls {value}"]),
        json!(["ssh", "host", "ls", "--", "{value}"]),
        json!(["ssh", "-o", "ProxyCommand=nc {value} 22", "host", "ls"]),
        json!(["cmd.exe", "/d", "/s", "/c", "echo {value}"]),
        json!(["PowerShell.exe", "-NoProfile", "-Command", "echo {value}"]),
        json!(["pwsh", "-c", "echo", "{value}"]),
        json!(["su", "-c", "echo {value}", "nobody"]),
        json!(["watch", "echo {value}"]),
    ] {
        let found = faults(json!({"command": command}));
        let message = found.first().map(|fault| fault.message.as_str());
        let message = message.unwrap_or_else(|| panic!("{command} passes"));
        assert!(
            message.contains("{value} stands inside a script"),
            "{command}: {message}"
        );
        let help = found[0].help.as_deref().unwrap_or_default();
        assert!(help.contains(r#"\"$1\"", "sh", "{value}""#), "{help}");
    }
    let piped = faults(json!({"command": ["sh"], "stdin": "echo {value}"}));
    assert_eq!(piped[0].at, "/stdin", "{piped:?}");
}

#[test]
fn a_value_that_is_an_argument_of_its_own_is_no_part_of_a_script() {
    for settings in [
        json!({"command": ["sh", "-c", "echo \"$1\"", "sh", "{value}"]}),
        json!({"command": ["python3", "report.py", "-c", "{value}"]}),
        json!({"command": ["python3", "-c", "import sys; print(sys.argv[1])", "{value}"]}),
        json!({"command": ["env", "LANG=C", "sort", "--", "{value}"]}),
        json!({"command": ["grep", "-c", "--", "{value}", "sh"]}),
        json!({"command": ["ssh", "-p", "22", "--", "{value}", "uptime"]}),
        json!({"command": ["ssh", "host", "cat"], "stdin": "{value}"}),
        json!({"command": ["docker", "run", "--rm", "node", "{value}"]}),
        json!({"command": ["awk", "-v", "name={value}", "{{print name}}"]}),
        json!({"command": ["sh", "-c", "cat"], "stdin": "Dear {value}"}),
        json!({"command": ["sh"], "stdin": "{value}"}),
    ] {
        assert_eq!(faults(settings.clone()), [], "{settings}");
    }
}
