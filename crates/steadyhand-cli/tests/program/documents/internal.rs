//! The kind `internal`: handlers of the host application, by name.

use serde_json::{Value, json};
use steadyhand::{Call, ToolError};
use steadyhand_config::extensions::Fault;
use steadyhand_runtime::source::KINDS;

use super::{answer, error, tools};
use crate::support::context;

async fn history(args: Value) -> Result<Value, ToolError> {
    Ok(json!({"asked": args, "messages": ["hello"]}))
}

#[tokio::test]
async fn f13_a_registered_handler_is_called_by_the_tools_own_name() {
    let home = tempfile::tempdir().expect("a folder");
    let context = context(home.path());
    context.internal.register("lookup_order", history);
    let executor = tools(json!({}), "lookup_order", &context).await;
    let outcome = executor
        .execute(Call::new("lookup_order", json!({"id": 7})))
        .await;
    assert_eq!(answer(outcome)["asked"], json!({"id": 7}));
    let tool = executor.tools().find("lookup_order").expect("there");
    assert_eq!(tool.kind(), "internal");
    assert_eq!(
        tool.description(),
        "Calls the service 'lookup_order' of the application"
    );
}

#[tokio::test]
async fn f13_a_handler_by_another_name_with_description_and_schema() {
    let home = tempfile::tempdir().expect("a folder");
    let context = context(home.path());
    context.internal.register("history", history);
    let settings = json!({
        "handler": "history", "description": "What was said before",
        "input": {"type": "object", "properties": {"last": {"type": "integer"}}, "required": ["last"]}
    });
    let executor = tools(settings, "remember", &context).await;
    let outcome = executor
        .execute(Call::new("remember", json!({"last": 3})))
        .await;
    assert_eq!(answer(outcome)["messages"], json!(["hello"]));
    let outcome = executor.execute(Call::new("remember", json!({}))).await;
    assert_eq!(error(&outcome), "Invalid parameters: missing 'last'");
    assert_eq!(
        executor
            .tools()
            .find("remember")
            .expect("there")
            .description(),
        "What was said before"
    );
}

#[tokio::test]
async fn f13_an_absent_handler_is_named_and_found_once_registered_and_replaced() {
    let home = tempfile::tempdir().expect("a folder");
    let context = context(home.path());
    let executor = tools(json!({"handler": "late"}), "service", &context).await;
    let call = || executor.execute(Call::new("service", json!({})));
    let outcome = call().await;
    assert_eq!(error(&outcome), "Internal handler 'late' not found");
    let failure = outcome.failure().expect("failed");
    assert_eq!(failure.code.as_str(), "TOOL_EXECUTION_ERROR");
    assert_eq!(failure.effect, steadyhand::Effect::None);
    assert_eq!(outcome.attempts, 1);
    for version in [1, 2] {
        context
            .internal
            .register("late", move |_: Value| async move {
                Ok::<_, ToolError>(version)
            });
        assert_eq!(answer(call().await), version);
    }
}

#[test]
fn faults_in_the_settings_are_named_with_their_place() {
    let kind = KINDS
        .iter()
        .find(|kind| kind.settings.name == "internal")
        .expect("in the table");
    let places = |settings: Value| -> Vec<String> {
        (kind.settings.check)(&settings)
            .into_iter()
            .map(|fault: Fault| fault.at)
            .collect()
    };
    assert_eq!(places(json!({})), [""; 0]);
    assert_eq!(places(json!({"handler": " "})), ["/handler"]);
    let unknown = (kind.settings.check)(&json!({"handlr": "x"}));
    assert!(
        unknown[0].message.contains("there is no field \"handlr\""),
        "{unknown:?}"
    );
}

#[tokio::test]
async fn f13_rag_query_has_a_definition_of_its_own() {
    let home = tempfile::tempdir().expect("a folder");
    let context = context(home.path());
    let executor = tools(json!({}), "rag_query", &context).await;
    let tool = executor.tools().find("rag_query").expect("there");
    assert_eq!(tool.schema()["required"], json!(["query"]));
    assert!(tool.description().starts_with("Searches documents"));
    let outcome = executor
        .execute(Call::new("rag_query", json!({"query": "x"})))
        .await;
    assert_eq!(error(&outcome), "Internal handler 'rag_query' not found");
}
