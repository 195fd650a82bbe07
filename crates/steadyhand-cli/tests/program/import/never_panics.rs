//! Whatever stands in a file, reading it ends in an answer.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use steadyhand_config::flex_chat;
use steadyhand_config::import::{Client, Importer};
use steadyhand_config::reference::Resolver;
use steadyhand_config::secret::looks_like_a_key;

use super::surroundings;

const CLIENTS: [Client; 12] = [
    Client::ClaudeDesktop,
    Client::ClaudeCode,
    Client::Cursor,
    Client::VsCode,
    Client::Windsurf,
    Client::Gemini,
    Client::Goose,
    Client::Codex,
    Client::Crush,
    Client::Cline,
    Client::Copilot,
    Client::Other,
];

/// Texts that are nearly what the readers look for.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        prop::sample::select(vec![
            "$",
            "${",
            "}",
            "${env:",
            "${file:",
            "${keyring:",
            ":-",
            "TOKEN",
            "NOT_SET",
            "$${",
            "${input:",
            "$(",
            "~/",
            "stdio",
            "http",
            "sse",
            "mock",
            "builtin",
            "calculator",
            "--token",
            "=",
            "ü",
            "\u{feff}",
            "https://a:b@c/?key=",
        ])
        .prop_map(str::to_owned),
    ];
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn key() -> impl Strategy<Value = String> {
    let known = vec![
        "mcpServers",
        "servers",
        "mcp_servers",
        "mcp",
        "extensions",
        "projects",
        "/work/app",
        "inputs",
        "id",
        "default",
        "command",
        "args",
        "env",
        "envs",
        "env_keys",
        "env_vars",
        "envFile",
        "cwd",
        "url",
        "headers",
        "http_headers",
        "env_http_headers",
        "bearer_token_env_var",
        "type",
        "transport",
        "disabled",
        "enabled",
        "timeout",
        "autoApprove",
        "trust",
        "tools",
        "registry",
        "name",
        "description",
        "parameters",
        "implementation",
        "mock_response",
        "handler",
        "max_iterations",
        "default_timeout_ms",
        "excluded",
        "allowed",
    ];
    prop_oneof![4 => prop::sample::select(known).prop_map(str::to_owned), 1 => text()]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((key(), inner), 0..8).prop_map(|fields| Value::Object(Map::from_iter(fields))),
        ]
    })
}

fn read_as_everything(text: &str) {
    let importer = Importer::new(surroundings());
    for client in CLIENTS {
        for file in ["/x/a.json", "/x/a.toml", "/x/a.yaml"] {
            let imported = importer.read_text(text, Path::new(file), client);
            let shown = format!("{imported:?}");
            assert!(!shown.contains("tok-123456789"), "{shown}");
        }
    }
    let flex = flex_chat::read(text);
    assert!(
        !flex.tools.is_empty() || !flex.problems.is_empty() || flex_chat::recognise(text).is_some()
    );
    flex_chat::recognise(text);
}

proptest! {
    #[test]
    fn arbitrary_text_is_read_or_refused(text in any::<String>()) {
        read_as_everything(&text);
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        read_as_everything(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn arbitrary_json_is_read_or_refused(value in value()) {
        read_as_everything(&value.to_string());
        read_as_everything(&json!({"mcpServers": {"a": value}}).to_string());
        read_as_everything(&json!({"tools": {"registry": [value]}}).to_string());
    }

    #[test]
    fn arbitrary_references_are_resolved_or_named(text in text()) {
        let resolver = Resolver::new(surroundings(), "/nowhere");
        match resolver.resolve(&text) {
            Ok(resolved) if !text.contains("${") => prop_assert_eq!(&resolved.text, &text),
            Ok(_) => {}
            Err(unresolved) => prop_assert!(unresolved.column <= text.chars().count()),
        }
        looks_like_a_key(&text);
    }

    #[test]
    fn an_escaped_text_comes_back_as_it_was(text in "[^$]{0,20}") {
        let resolver = Resolver::new(surroundings(), "/nowhere");
        let resolved = resolver.resolve(&format!("$${{{text}")).expect("nothing to resolve");
        prop_assert_eq!(resolved.text, format!("${{{text}"));
    }
}
