//! smoke
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use steadyhand::{Call, CallContext, Tool, ToolError, ToolExecutor, ToolManager, tool};

#[derive(Deserialize, JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

/// Adds two numbers
#[tool]
async fn sum(_cx: CallContext, args: Sum) -> Result<i64, ToolError> {
    Ok(args.a + args.b)
}

#[tokio::test]
async fn it_runs() {
    let tools = ToolManager::new();
    tools.add(sum::tool()).unwrap();
    tools
        .add(Tool::function("boom", "Panics", |_: Sum| async move {
            if true {
                panic!("boom");
            }
            Ok::<i64, ToolError>(1)
        }))
        .unwrap();
    let executor = ToolExecutor::new(tools);
    for (name, args) in [
        ("sum", json!({"a": 1, "b": 2})),
        ("sum", json!({"a": 1.0, "b": 2})),
        ("sum", json!({"a": "x"})),
        ("boom", json!({"a": 1, "b": 2})),
        ("summ", json!({})),
    ] {
        let outcome = executor.execute(Call::new(name, args).no_retry()).await;
        println!("{}", serde_json::to_string(&outcome.structured()).unwrap());
        println!("{}", serde_json::to_string(&outcome.flat()).unwrap());
        println!("{:?}", outcome.message().content);
    }
    println!(
        "{}",
        serde_json::to_string(&executor.tools().metrics("sum")).unwrap()
    );
}
