//! Variables, secrets and faults, whatever the program.

use std::fs;

use steadyhand_config::import::{Client, Importer};

use super::{exposed, import, line, lines, notes, problems, surroundings};

const FILE: &str = "/work/app/.mcp.json";

#[test]
fn variables_are_replaced_once_and_a_shell_s_forms_are_left_alone() {
    for (written, expected) in [
        ("${REGION}", "north-europe"),
        ("${env:REGION}", "north-europe"),
        ("${REGION:-x}", "north-europe"),
        ("${NOT_SET:-x y}", "x y"),
        ("${env:NOT_SET:-x}", "x"),
        ("${EMPTY:-x}", ""),
        ("${NOT_SET:-a$5}", "a$5"),
        (
            "${x%y} ${x#y} ${#x} ${x/a/b} ${!x} ${x:?no} ${x:1:2}",
            "${x%y} ${x#y} ${#x} ${x/a/b} ${!x} ${x:?no} ${x:1:2}",
        ),
        (
            "$REGION $$ $ ${ ${} $(id) `id` {a}",
            "$REGION $$ $ ${ ${} $(id) `id` {a}",
        ),
        ("${userHome}/x", "/home/ada/x"),
        ("ä${REGION}ö", "änorth-europeö"),
    ] {
        let text = serde_json::json!({"mcpServers": {"s": {"command": "c", "args": [written]}}});
        let imported = import(Client::ClaudeCode, FILE, &text.to_string());
        assert_eq!(
            lines(&imported),
            [format!("s: stdio c [{expected}]")],
            "{written}"
        );
    }
}

#[test]
fn one_variable_inside_another_is_refused() {
    let text = r#"{"mcpServers": {"s": {"command": "${NOT_SET:-${REGION}}"}}}"#;
    let imported = import(Client::ClaudeCode, FILE, text);
    let (field, unresolved) = &imported.servers[0].unresolved[0];
    assert_eq!(field, "command");
    assert!(unresolved.reason.contains("inside another"), "{unresolved}");
}

#[test]
fn an_answered_input_is_used_and_hidden() {
    let text = r#"{"inputs": [{"id": "key", "type": "promptString"}],
                   "servers": {"s": {"command": "c", "env": {"K": "${input:key}"}}}}"#;
    let importer = Importer::new(surroundings()).answering("key", "my-answer-1");
    let imported = importer.read_text(text, FILE.as_ref(), Client::VsCode);
    assert_eq!(lines(&imported), ["s: stdio c [] K=my-answer-1"]);
    assert_eq!(exposed(&imported.secrets), ["my-answer-1"]);
    assert!(!format!("{importer:?} {imported:?}").contains("my-answer-1"));
}

#[test]
fn an_env_file_is_read_and_a_missing_one_is_the_server_s_fault_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let content = "# a comment\nexport A=1\nB = \"two\\nlines\"\nC='x y'\nno line\nAPI_KEY=abcdefgh\nD=over\n=x\n";
    fs::write(folder.path().join(".env"), content).expect("a file");
    let file = folder.path().join(".vscode/mcp.json");
    let text = r#"{"servers": {
      "a": {"command": "c", "envFile": "${workspaceFolder}/.env", "env": {"D": "own"}},
      "b": {"command": "c", "envFile": "missing.env"}}}"#;
    let imported = Importer::new(surroundings()).read_text(text, &file, Client::VsCode);
    assert_eq!(
        line(&imported.servers[0]),
        "a: stdio c [] A=1 B=two\nlines C=x y API_KEY=abcdefgh D=own"
    );
    let (field, unresolved) = &imported.servers[1].unresolved[0];
    assert_eq!(field, "envFile");
    assert!(
        unresolved.reason.contains("missing.env cannot be read"),
        "{unresolved}"
    );
    assert_eq!(exposed(&imported.secrets), ["abcdefgh"]);
}

#[test]
fn secrets_are_known_to_the_importer_and_in_no_debug_text() {
    let text = r#"{"mcpServers": {
      "a": {"command": "c", "args": ["--api-key", "literal-argument", "--token=literal-token-1", "plain-argument"],
            "env": {"MY_SECRET": "literal-secret", "T": "${TOKEN}", "D": "${PASSWORD:-literal-default}"},
            "oauth": {"client_secret": "literal-client"}},
      "b": {"url": "https://me:literal-pw@h.example/?api_key=literal-query&x=shown-value",
            "headers": {"Authorization": "Bearer literal-bearer", "X-Trace": "shown-header"}}}}"#;
    let imported = import(Client::ClaudeCode, FILE, text);
    let shown = format!("{imported:?}");
    for hidden in [
        "literal-argument",
        "literal-token-1",
        "literal-secret",
        "tok-123456789",
        "literal-default",
        "literal-client",
        "literal-pw",
        "literal-query",
        "literal-bearer",
    ] {
        assert!(!shown.contains(hidden), "{hidden} in {shown}");
    }
    for visible in ["plain-argument", "shown-value", "shown-header", "${TOKEN}"] {
        assert!(shown.contains(visible), "{visible} not in {shown}");
    }
    assert_eq!(
        exposed(&imported.secrets),
        [
            "literal-argument",
            "literal-secret",
            "tok-123456789",
            "literal-default",
            "literal-query",
            "Bearer literal-bearer",
            "literal-bearer",
        ]
    );
}

#[test]
fn one_bad_server_does_not_lose_the_others_and_every_fault_has_its_place() {
    let text = r#"{"mcpServers": {
  "good": {"command": "c"},
  "number": 5,
  "nothing": {},
  "args": {"command": "c", "args": "one two"},
  "arg": {"command": "c", "args": ["a", ["b"]]},
  "env": {"command": "c", "env": ["A=1"]},
  "command": {"command": {"x": 1}},
  "empty": {"command": []},
  "flag": {"command": "c", "disabled": "yes"},
  "ws": {"type": "ws", "url": "ws://h"},
  "http": {"type": "http", "command": null},
  "": {"command": "c"},
  "also good": {"url": "http://h/mcp"}
}}"#;
    let imported = import(Client::ClaudeCode, FILE, text);
    assert_eq!(
        lines(&imported),
        ["good: stdio c []", "also good: http|sse http://h/mcp"]
    );
    assert_eq!(
        problems(&imported),
        [
            "3:13 'number': expected a table, found a number",
            "4:14 'nothing': it has neither 'command' nor 'url'",
            "5:36 'args': 'args' must be a list, not a text",
            "6:41 'arg': 'args[1]' must be a text, not a list",
            "7:34 'env': 'env' must be a table, not a list",
            "8:26 'command': 'command' must be a text, not a table",
            "9:24 'empty': 'command' is empty",
            "10:40 'flag': 'disabled' must be true or false, not a text",
            "11:18 'ws': type 'ws' is not supported; there are stdio, http and sse",
            "12:11 'http': it has no 'url'",
            "13:3 '': a server without a name",
        ]
    );
}

#[test]
fn keys_of_another_program_are_remarks() {
    let text = r#"{"mcpServers": {"s": {"command": "c", "description": "d", "colour": "red", "type": "quantum",
                   "timeout": -1, "url": "http://h"}}}"#;
    let imported = import(Client::ClaudeCode, FILE, text);
    assert_eq!(lines(&imported), ["s: stdio c []"]);
    assert_eq!(
        notes(&imported),
        [
            "1:84 's': unknown type 'quantum': taken by 'command' or 'url'; there are stdio, http and sse",
            "2:42 's': 'url' is not used: 'command' says it is a program",
            "2:31 's': 'timeout' is no time that can be used: it is ignored",
            "1:59 's': 'colour' means nothing to Steadyhand",
        ]
    );
    let extra: Vec<&String> = imported.servers[0].extra.keys().collect();
    assert_eq!(extra, ["description", "colour"]);
}

#[test]
fn a_broken_file_says_where() {
    for (file, text, expected) in [
        ("a.json", "{\n  \"mcpServers\": {\n    \"a\" 5\n", "3:9 "),
        ("a.json", "", "1:1 it is empty"),
        ("a.json", "{'mcpServers': {}}", "1:2 "),
        ("a.json", "[1]", "1:1 no MCP servers in this file"),
        (
            "a.json",
            "{\"mcpServers\": []}",
            "1:16 expected a table of servers, found a list",
        ),
        ("a.toml", "x = 1\n[mcp_servers.a\n", "2:"),
        ("a.yaml", "extensions:\n  a: [1\n", ""),
    ] {
        let found = problems(&import(Client::Other, file, text));
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].starts_with(expected), "{text}: {found:?}");
    }
}

#[test]
fn a_name_twice_in_one_table_belongs_to_the_last_as_in_javascript() {
    let text =
        "{\"mcpServers\": {\n\"a\": {\"command\": \"one\"},\n\"a\": {\"command\": \"two\"}}}";
    let imported = import(Client::ClaudeCode, FILE, text);
    assert_eq!(lines(&imported), ["a: stdio two []"]);
    let loser = &imported.not_used[0];
    assert_eq!((loser.origin.line, loser.used.line), (2, 3));
}

#[test]
fn depth_and_number_of_servers_are_bounded() {
    let deep = format!("{{\"mcpServers\": {}{}}}", "[".repeat(200), "]".repeat(200));
    let found = problems(&import(Client::Other, "a.json", &deep));
    assert!(
        found[0].contains("nested more than 128 levels"),
        "{found:?}"
    );
    let deeper = "[".repeat(1_000_000);
    assert_eq!(problems(&import(Client::Other, "a.json", &deeper)).len(), 1);
    assert_eq!(problems(&import(Client::Other, "a.yaml", &deeper)).len(), 1);
    assert_eq!(
        problems(&import(Client::Other, "a.toml", &format!("a = {deeper}"))).len(),
        1
    );
    let servers: Vec<String> = (0..1001)
        .map(|number| format!("\"s{number}\": {{\"command\": \"c\"}}"))
        .collect();
    let many = format!("{{\"mcpServers\": {{{}}}}}", servers.join(","));
    let imported = import(Client::Other, "a.json", &many);
    assert_eq!(imported.servers.len(), 1000);
    assert!(
        problems(&imported)[0].contains("more than 1000 servers"),
        "{:?}",
        problems(&imported)
    );
}

#[test]
fn columns_are_characters_and_a_mark_at_the_start_is_not_one() {
    let text = "\u{feff}{\"ü€😀\": 1, \"mcpServers\": {\"a\": {\"command\": \"c\"}}}";
    let imported = import(Client::Other, "a.json", text);
    let origin = &imported.servers[0].origin;
    assert_eq!((origin.line, origin.column), (1, 27));
    let padding = "ü".repeat(10_000);
    let text =
        format!("{{\"x\": \"{padding}\",\n \"y\": \"{padding}\", \"mcpServers\": {{\"a\": 1}}}}");
    assert_eq!(
        problems(&import(Client::Other, "a.json", &text)),
        ["2:10031 'a': expected a table, found a number"]
    );
}
