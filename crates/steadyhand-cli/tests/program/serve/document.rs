//! `/openapi.json`: every route is in it, and every answer fits it, as a peer finds.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Served, TOOLS};
use crate::book::root;
use crate::requirements::rust_files;

/// Every operation: its name, which generators make a function of, and where it is. Clients break when a name changes.
const OPERATIONS: [(&str, &str, &str); 52] = [
    (
        "accept_tool_change",
        "post",
        "/v1/tool-changes/{name}/accept",
    ),
    ("acknowledge_alert", "post", "/v1/alerts/{id}/ack"),
    (
        "allow_breaker_trial",
        "post",
        "/v1/tools/{name}/breaker/trial",
    ),
    ("cancel_call", "delete", "/v1/calls/{id}"),
    ("create_batch", "post", "/v1/batches"),
    ("create_call", "post", "/v1/calls"),
    ("create_error_response", "post", "/v1/error-response"),
    ("create_key", "post", "/v1/keys"),
    ("create_turn", "post", "/v1/turns"),
    ("decide_approval", "post", "/v1/approvals/{id}"),
    ("disable_tool", "post", "/v1/tools/{name}/disable"),
    ("enable_tool", "post", "/v1/tools/{name}/enable"),
    ("export_calls", "get", "/v1/calls.ndjson"),
    ("get_call", "get", "/v1/calls/{id}"),
    ("get_caller", "get", "/v1/whoami"),
    ("get_config", "get", "/v1/config"),
    ("get_conversation", "get", "/v1/conversations/{id}"),
    ("get_liveness", "get", "/health/live"),
    (
        "get_oauth_metadata",
        "get",
        "/.well-known/oauth-protected-resource",
    ),
    (
        "get_oauth_metadata_of_mcp",
        "get",
        "/.well-known/oauth-protected-resource/mcp",
    ),
    ("get_openapi_document", "get", "/openapi.json"),
    ("get_overview", "get", "/v1/overview"),
    ("get_prometheus_metrics", "get", "/metrics"),
    ("get_readiness", "get", "/health/ready"),
    ("get_server_logs", "get", "/v1/servers/{name}/logs"),
    ("get_tool", "get", "/v1/tools/{name}"),
    ("get_tool_metrics", "get", "/v1/metrics/{tool}"),
    ("get_trends", "get", "/v1/trends"),
    ("list_alerts", "get", "/v1/alerts"),
    ("list_approvals", "get", "/v1/approvals"),
    ("list_audit_records", "get", "/v1/audit"),
    ("list_callers", "get", "/v1/callers"),
    ("list_calls", "get", "/v1/calls"),
    ("list_conversations", "get", "/v1/conversations"),
    ("list_exchanges", "get", "/v1/exchanges"),
    ("list_keys", "get", "/v1/keys"),
    ("list_metrics", "get", "/v1/metrics"),
    ("list_refusals", "get", "/v1/refusals"),
    ("list_servers", "get", "/v1/servers"),
    ("list_tool_changes", "get", "/v1/tool-changes"),
    ("list_tools", "get", "/v1/tools"),
    (
        "reject_tool_change",
        "post",
        "/v1/tool-changes/{name}/reject",
    ),
    ("reload_config", "post", "/v1/config/reload"),
    ("repair_conversation", "post", "/v1/repair"),
    ("replay_call", "post", "/v1/calls/{id}/replay"),
    ("request_approval", "post", "/v1/approvals"),
    ("reset_breaker", "post", "/v1/tools/{name}/breaker/reset"),
    ("restart_server", "post", "/v1/servers/{name}/restart"),
    ("revoke_key", "delete", "/v1/keys/{id}"),
    ("silence_alert", "post", "/v1/alerts/{id}/silence"),
    ("stream_events", "get", "/v1/events"),
    ("validate_conversation", "post", "/v1/validate"),
];

#[tokio::test]
async fn the_document_is_openapi_3_1_and_has_every_route() {
    let served = Served::start().await;
    let document = served.get("/openapi.json").await.json();
    let version = document["openapi"].as_str().unwrap_or_default();
    assert!(version.starts_with("3.1"), "{version}");
    for (name, method, path) in OPERATIONS {
        let operation = &document["paths"][path][method];
        assert!(operation["summary"].is_string(), "{name}");
        assert!(operation["responses"]["200"].is_object(), "{name}");
    }
    let mut missing = Vec::new();
    references(&document, &mut |name| {
        if document.pointer(name.trim_start_matches('#')).is_none() {
            missing.push(name.to_owned());
        }
    });
    assert_eq!(missing, Vec::<String>::new());
}

#[tokio::test]
async fn t05_every_operation_has_the_name_that_clients_know_it_by() {
    let served = Served::start().await;
    let document = served.get("/openapi.json").await.json();
    let mut found = Vec::new();
    for (method, path, operation) in operations(&document) {
        let name = operation["operationId"].as_str().unwrap_or_default();
        found.push((name, method, path));
    }
    found.sort_unstable();
    assert_eq!(found, OPERATIONS, "add new ones; keep the others");
    let names: BTreeSet<&str> = found.iter().map(|(name, _, _)| *name).collect();
    assert_eq!(names.len(), found.len(), "each name is there once");
}

#[tokio::test]
async fn t05_every_operation_says_its_group_its_errors_their_headers_and_whether_it_wants_credentials()
 {
    let served = Served::start().await;
    let document = served.get("/openapi.json").await.json();
    let groups = document["tags"].as_array().expect("tags");
    let bearer = &document["components"]["securitySchemes"]["bearer"];
    assert_eq!(bearer["scheme"], "bearer");
    assert_eq!(document["security"], json!([{}, {"bearer": []}]));
    for (method, path, operation) in operations(&document) {
        let group = &operation["tags"][0];
        assert!(
            groups.iter().any(|known| known["name"] == *group),
            "{method} {path}: {group}"
        );
        let is_open = path.starts_with("/health/") || path.starts_with("/.well-known/");
        assert_eq!(operation["security"] == json!([]), is_open, "{path}");
        let answers = operation["responses"].as_object().expect("answers");
        assert_eq!(answers.contains_key("401"), !is_open, "{path}");
        for (status, answer) in answers
            .iter()
            .filter(|(status, _)| *status >= &"4".to_owned())
        {
            // Not ready is an answer of its own.
            if path == "/health/ready" && status == "503" {
                continue;
            }
            let place = answer["$ref"].as_str().unwrap_or_default();
            let answer = document.pointer(place.trim_start_matches('#'));
            let answer = answer.unwrap_or_else(|| panic!("{path} {status}: {place}"));
            let schema = &answer["content"]["application/json"]["schema"]["$ref"];
            assert_eq!(schema, "#/components/schemas/ApiError", "{path} {status}");
            let header = match status.as_str() {
                "401" => "www-authenticate",
                "429" | "503" => "retry-after",
                _ => continue,
            };
            assert!(answer["headers"][header].is_object(), "{path} {status}");
        }
    }
    for (method, path) in [("post", "/v1/calls"), ("post", "/v1/calls/{id}/replay")] {
        let operation = &document["paths"][path][method];
        for header in ["outcome", "code", "fallback", "call-id"] {
            let header = format!("steadyhand-{header}");
            let headers = &operation["responses"]["200"]["headers"];
            assert!(headers[&header].is_object(), "{path} {header}");
        }
        let parameters = operation["parameters"].as_array().expect("parameters");
        let takes = |name: &str| parameters.iter().any(|it| it["name"] == name);
        assert!(takes("steadyhand-caller") && takes("traceparent"), "{path}");
    }
}

/// Of two types with one name, a document has only one, and whoever means the other gets its fields.
#[test]
fn t05_no_two_types_have_the_same_name_in_the_document() {
    let mut texts = Vec::new();
    for name in ["config", "store", "runtime", "server"] {
        let folder = format!("crates/steadyhand-{name}/src");
        rust_files(&root().join(folder), &mut texts);
    }
    let mut names: Vec<String> = texts.iter().flat_map(|text| schema_names(text)).collect();
    assert!(names.len() > 100, "{names:?}");
    names.sort_unstable();
    let twice = names.windows(2).filter(|pair| pair[0] == pair[1]);
    let twice: Vec<&String> = twice.map(|pair| &pair[0]).collect();
    assert!(
        twice.is_empty(),
        "give one another name: #[schema(as = …)] {twice:?}"
    );
}

/// The names of the types that a file derives `ToSchema` for.
fn schema_names(text: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        let letters = text.chars().take_while(char::is_ascii_alphanumeric);
        letters.collect()
    };
    let derived = text.split("ToSchema").skip(1).filter_map(|rest| {
        // The derive ends with `)]`, perhaps after more names; a `use` does not.
        let (more, rest) = rest.split_once(")]")?;
        if more.contains(';') {
            return None;
        }
        let ends = ["struct ", "enum "].map(|kind| rest.find(kind).map(|at| at + kind.len()));
        let start = ends.into_iter().flatten().min()?;
        let renamed = rest[..start].split_once("(as = ");
        Some(word(renamed.map_or(&rest[start..], |(_, name)| name)))
    });
    derived.collect()
}

fn operations(document: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.map(move |(method, operation)| (method.as_str(), path.as_str(), operation))
    })
}

fn references(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::Object(fields) => {
            if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
                found(name);
            }
            fields.values().for_each(|field| references(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

/// Also used by `scripts/standards`.
const SCHEMATHESIS: &str = include_str!("clients/schemathesis.toml");

#[tokio::test]
async fn schemathesis_finds_no_server_error_and_no_answer_that_does_not_fit_the_document() {
    let peer = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/peers/schemathesis/bin/schemathesis"
    );
    assert!(
        std::path::Path::new(peer).exists(),
        "schemathesis is missing: ./test installs it (or: . scripts/peers.sh; install_peers target/peers)"
    );
    // Tools that answer at once: it makes thousands of requests.
    let tools = TOOLS
        .replace("delay = \"40s\"", "delay = \"1ms\"")
        .replace("delay = \"300ms\"", "delay = \"1ms\"");
    let served = Served::with_config(&tools).await;
    // Names that are there, where a path wants one.
    served.workplace.write("schemathesis.toml", SCHEMATHESIS);
    let call = serde_json::json!({"name": "weather", "id": "c1", "args": {"city": "Oslo"}});
    served.post("/v1/calls", call).await;
    let checks = [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
        "negative_data_rejection",
        "unsupported_method",
    ];
    let mut run = tokio::process::Command::new(peer);
    run.args(["run", &format!("http://{}/openapi.json", served.address)])
        // Its answer has no end.
        .args(["--exclude-path", "/v1/events"])
        .args(["--checks", &checks.join(",")])
        .args(["--phases", "examples,coverage,fuzzing"])
        .args(["--max-examples", "15", "--seed", "1", "--workers", "1"])
        .args(["--request-timeout", "30", "--suppress-health-check", "all"])
        .args(["--no-color", "--continue-on-failure"])
        .current_dir(served.workplace.path())
        .env("HOME", served.workplace.path())
        .kill_on_drop(true);
    let ended = tokio::time::timeout(crate::support::PATIENCE * 5, run.output()).await;
    let ended = ended.expect("it ends in time").expect("it starts");
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(
        ended.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    let cases = said.lines().find(|line| line.contains("generated, "));
    let generated = cases.and_then(|line| line.split_whitespace().next()?.parse::<u32>().ok());
    assert!(generated > Some(300), "{said}");
    assert_eq!(served.get("/health/live").await.status, 200);
}
