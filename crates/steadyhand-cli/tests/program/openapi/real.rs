//! Three real documents of three vendors, as their npm packages ship them (scripts/peers.sh): GitHub's REST API
//! (`@octokit/openapi`, 3.0 in JSON, over a thousand operations), Twilio's (`@twilio/cli-core`, 3.0 in JSON, forms
//! and servers by path), Figma's (`@figma/rest-api-spec`, 3.1 in YAML).

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use steadyhand::{Tool, ToolManager, ToolSource};
use steadyhand_config::progress::{Progress, Watcher};
use steadyhand_runtime::source::openapi::{OpenapiSettings, OpenapiSource};

use super::{Server, call, context, executor};

#[tokio::test]
async fn v06_github_loads_whole() {
    let (source, tools) = load("github.json", json!({})).await;
    // Counted in the package by another program than ours.
    whole(&source, &tools, 1223);
    let long = tools.iter().filter(|tool| tool.name().len() > 64).count();
    assert_eq!(
        long, 0,
        "25 of its operationIds are longer than providers allow"
    );
}

#[tokio::test]
async fn v06_twilio_loads_whole() {
    let (source, tools) = load("twilio.json", json!({})).await;
    whole(&source, &tools, 197);
    let calls = tool(&tools, "ListCall");
    let properties = calls.schema()["properties"].as_object().unwrap();
    for name in ["AccountSid", "StartTime", "StartTime_lt", "StartTime_gt"] {
        assert!(properties.contains_key(name), "{name} in {properties:?}");
    }
}

#[tokio::test]
async fn v06_figma_loads_whole() {
    let (source, tools) = load("figma.yaml", json!({})).await;
    whole(&source, &tools, 54);
}

#[tokio::test]
async fn v01_a_call_to_github_arrives_as_github_documents_it() {
    let server = Server::answering(json!({ "number": 1 })).await;
    let folder = tempfile::tempdir().unwrap();
    let settings = json!({ "base": server.url, "include": ["issues/*"], "prefix": "gh_", "auth": { "bearer": "t" } });
    let source = super::source(with_spec("github.json", settings), folder.path());
    let executor = executor(&source).await;
    let args =
        json!({ "owner": "octo", "repo": "hello world", "title": "It breaks", "labels": ["bug"] });
    let outcome = call(&executor, "gh_issues_create", args).await;
    assert_eq!(
        outcome.output().map(|output| output.value()),
        Some(&json!({ "number": 1 })),
        "{outcome:?}"
    );
    let arrived = server.last();
    assert_eq!(arrived.line, "POST /repos/octo/hello%20world/issues");
    assert_eq!(arrived.body, r#"{"title":"It breaks","labels":["bug"]}"#);
    assert_eq!(arrived.header("authorization"), Some("Bearer t"));
    let report = source.report().unwrap();
    assert_eq!(report.left_out + report.operations.len(), 1223);
    assert_eq!(
        source.tools_meant_by("POST /repos/{owner}/{repo}/issues"),
        ["gh_issues_create"]
    );
}

#[tokio::test]
async fn v01_a_call_to_twilio_arrives_as_a_form() {
    let server = Server::answering(json!({})).await;
    let folder = tempfile::tempdir().unwrap();
    let settings =
        json!({ "base": server.url, "auth": { "basic": { "user": "AC1", "password": "t" } } });
    let executor = executor(&super::source(
        with_spec("twilio.json", settings),
        folder.path(),
    ))
    .await;
    let account = format!("AC{}", "0".repeat(32));
    let args = json!({ "AccountSid": account, "To": "+15550100", "Body": "Hi & bye", "MediaUrl": ["https://a.example/1"] });
    let outcome = call(&executor, "CreateMessage", args).await;
    assert!(outcome.failure().is_none(), "{outcome:?}");
    let arrived = server.last();
    assert_eq!(
        arrived.line,
        format!("POST /2010-04-01/Accounts/{account}/Messages.json")
    );
    assert_eq!(
        arrived.header("content-type"),
        Some("application/x-www-form-urlencoded")
    );
    let mut fields: Vec<&str> = arrived.body.split('&').collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "Body=Hi%20%26%20bye",
            "MediaUrl=https%3A%2F%2Fa.example%2F1",
            "To=%2B15550100"
        ]
    );

    let nobody = call(
        &executor,
        "CreateMessage",
        json!({ "AccountSid": account, "Body": "Hi" }),
    )
    .await;
    assert_eq!(
        nobody.failure().map(|failure| failure.code.as_str()),
        Some("VALIDATION_ERROR"),
        "{nobody:?}"
    );
}

#[tokio::test]
async fn loading_a_large_document_says_how_far_it_is() {
    #[derive(Default)]
    struct Steps(Mutex<Vec<String>>);
    impl Watcher for Steps {
        fn step(&self, what: &str, done: u64, total: u64) {
            self.0
                .lock()
                .unwrap()
                .push(format!("{what} {done}/{total}"));
        }
        fn finished(&self, what: &str) {
            self.0.lock().unwrap().push(format!("{what} finished"));
        }
    }
    let steps = Arc::new(Steps::default());
    let folder = tempfile::tempdir().unwrap();
    let mut context = context(folder.path());
    context.progress = Progress::to(steps.clone());
    let settings: OpenapiSettings =
        serde_json::from_value(with_spec("github.json", json!({}))).unwrap();
    settings
        .open("github", &context)
        .unwrap()
        .tools()
        .await
        .unwrap();
    let steps = steps.0.lock().unwrap();
    assert_eq!(steps[0], "loading github 0/0");
    assert!(
        steps.contains(&"loading github 640/1223".to_owned()),
        "{steps:?}"
    );
    assert_eq!(
        steps[steps.len() - 2..],
        ["loading github 1223/1223", "loading github finished"]
    );
}

/// Every operation is a tool, and the manager takes each of them.
fn whole(source: &OpenapiSource, tools: &[Tool], operations: usize) {
    let report = source.report().expect("it was loaded");
    assert_eq!(report.skipped, []);
    assert_eq!(report.left_out, 0);
    assert_eq!(tools.len(), operations);
    assert_eq!(report.operations.len(), operations);
    let manager = ToolManager::new();
    let refused = manager.add_all(tools.iter().cloned());
    assert!(refused.is_empty(), "{refused:?}");
    assert_eq!(manager.len(), operations, "no two tools share a name");
    assert!(tools.iter().all(|tool| tool.kind() == "openapi"));
}

fn tool<'a>(tools: &'a [Tool], name: &str) -> &'a Tool {
    tools
        .iter()
        .find(|tool| tool.name() == name)
        .unwrap_or_else(|| panic!("{name} is a tool"))
}

async fn load(file: &str, settings: Value) -> (OpenapiSource, Vec<Tool>) {
    let folder = tempfile::tempdir().unwrap();
    let source = super::source(with_spec(file, settings), folder.path());
    let tools = source.tools().await.expect("a real document loads");
    (source, tools)
}

fn with_spec(file: &str, mut settings: Value) -> Value {
    settings["spec"] = json!(document(file));
    settings
}

/// A document in `target/peers` of the workspace, which is above this crate's folder.
fn document(file: &str) -> PathBuf {
    let found = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("target/peers/openapi").join(file))
        .find(|candidate| candidate.exists());
    found.unwrap_or_else(|| {
        panic!("{file} is missing: run ./test once, it installs the vendors' documents")
    })
}
