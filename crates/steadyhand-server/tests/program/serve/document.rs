//! `/openapi.json`: every route is in it, and every answer fits it, as a peer finds.

use serde_json::Value;

use super::{Served, TOOLS};

/// What API.md fixes, as far as it is there.
const ROUTES: [(&str, &str); 45] = [
    ("get", "/v1/tools"),
    ("get", "/v1/tools/{name}"),
    ("post", "/v1/tools/{name}/breaker/reset"),
    ("post", "/v1/tools/{name}/breaker/trial"),
    ("get", "/v1/overview"),
    ("post", "/v1/calls"),
    ("get", "/v1/calls"),
    ("get", "/v1/calls/{id}"),
    ("delete", "/v1/calls/{id}"),
    ("post", "/v1/calls/{id}/replay"),
    ("post", "/v1/batches"),
    ("post", "/v1/turns"),
    ("get", "/v1/metrics"),
    ("get", "/v1/metrics/{tool}"),
    ("get", "/metrics"),
    ("post", "/v1/validate"),
    ("post", "/v1/repair"),
    ("post", "/v1/error-response"),
    ("get", "/v1/trends"),
    ("get", "/v1/conversations"),
    ("get", "/v1/conversations/{id}"),
    ("get", "/v1/config"),
    ("post", "/v1/config/reload"),
    ("get", "/v1/servers"),
    ("get", "/v1/events"),
    ("post", "/v1/servers/{name}/restart"),
    ("get", "/v1/servers/{name}/logs"),
    ("get", "/health/live"),
    ("get", "/health/ready"),
    ("get", "/openapi.json"),
    ("get", "/v1/alerts"),
    ("post", "/v1/alerts/{id}/ack"),
    ("post", "/v1/alerts/{id}/silence"),
    ("get", "/v1/approvals"),
    ("post", "/v1/approvals"),
    ("post", "/v1/approvals/{id}"),
    ("get", "/.well-known/oauth-protected-resource"),
    ("get", "/.well-known/oauth-protected-resource/mcp"),
    ("get", "/v1/tool-changes"),
    ("post", "/v1/tool-changes/{name}/accept"),
    ("get", "/v1/keys"),
    ("post", "/v1/keys"),
    ("delete", "/v1/keys/{id}"),
    ("get", "/v1/whoami"),
    ("get", "/v1/refusals"),
];

#[tokio::test]
async fn the_document_is_openapi_3_1_and_has_every_route() {
    let served = Served::start().await;
    let document = served.get("/openapi.json").await.json();
    let version = document["openapi"].as_str().unwrap_or_default();
    assert!(version.starts_with("3.1"), "{version}");
    for (method, path) in ROUTES {
        let operation = &document["paths"][path][method];
        assert!(operation["summary"].is_string(), "{method} {path}");
        assert!(operation["responses"]["200"].is_object(), "{method} {path}");
    }
    let mut missing = Vec::new();
    references(&document, &mut |name| {
        if document.pointer(name.trim_start_matches('#')).is_none() {
            missing.push(name.to_owned());
        }
    });
    assert_eq!(missing, Vec::<String>::new());
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
    let known = "[parameters]\nname = \"weather\"\ntool = \"weather\"\nid = \"c1\"\n";
    served.workplace.write("schemathesis.toml", known);
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
