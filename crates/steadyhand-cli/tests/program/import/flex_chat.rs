//! Flex Chat's tools, run unchanged.

use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::source::definition;
use steadyhand::source::internal::InternalHandlers;
use steadyhand::{Call, ToolError, ToolExecutor, ToolManager};
use steadyhand_config::flex_chat::{self, FlexChat, Implementation, Shape, recognise};

/// As the project's own description has it.
const EXAMPLE: &str = r#"{"tools":{"max_iterations":5,"default_timeout_ms":30000,"registry":[{"name":"get_weather","description":"Weather","parameters":{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]},"implementation":{"type":"mock","mock_response":{"temperature":22}}},{"name":"calculate","description":"Math","parameters":{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]},"implementation":{"type":"builtin","handler":"math_eval"}},{"name":"search_documents","description":"Search","parameters":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]},"implementation":{"type":"internal","handler":"rag_query"}},{"name":"calculator"}]}}"#;

fn problems(flex: &FlexChat) -> Vec<String> {
    let problems = flex.problems.iter();
    problems
        .map(|one| format!("{}:{} {}", one.place.line, one.place.column, one.message))
        .collect()
}

fn executor(flex: &FlexChat, internal: &InternalHandlers) -> ToolExecutor {
    let tools = ToolManager::new();
    for tool in &flex.tools {
        let tool = definition::tool(&tool.definition(), internal).expect("a good definition");
        tools.add(tool).expect("a good tool");
    }
    ToolExecutor::new(tools)
}

async fn flat(executor: &ToolExecutor, name: &str, args: Value) -> Value {
    let outcome = executor.execute(Call::new(name, args).no_retry()).await;
    serde_json::to_value(outcome.flat()).expect("a view is JSON")
}

#[test]
fn v05_the_registry_keeps_its_order_and_its_definitions_unconverted() {
    let flex = flex_chat::read(EXAMPLE);
    assert_eq!(problems(&flex), Vec::<String>::new());
    assert_eq!(flex.notes, []);
    assert_eq!(flex.max_iterations, Some(5));
    assert_eq!(flex.default_timeout, Some(Duration::from_secs(30)));
    let tools: Vec<(&str, Option<&str>, &Implementation)> = flex
        .tools
        .iter()
        .map(|tool| {
            (
                tool.name.as_str(),
                tool.description.as_deref(),
                &tool.implementation,
            )
        })
        .collect();
    assert_eq!(
        tools,
        [
            (
                "get_weather",
                Some("Weather"),
                &Implementation::Mock(json!({"temperature": 22}))
            ),
            (
                "calculate",
                Some("Math"),
                &Implementation::Builtin("math_eval".to_owned())
            ),
            (
                "search_documents",
                Some("Search"),
                &Implementation::Internal("rag_query".to_owned())
            ),
            (
                "calculator",
                None,
                &Implementation::Builtin("math_eval".to_owned())
            ),
        ]
    );
    let schema = json!({"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]});
    assert_eq!(flex.tools[0].schema.as_ref(), Some(&schema));
    let executor = executor(&flex, &InternalHandlers::new());
    let listed: Vec<String> = executor
        .tools()
        .list()
        .iter()
        .map(|tool| tool.name().to_owned())
        .collect();
    assert_eq!(
        listed,
        ["get_weather", "calculate", "search_documents", "calculator"]
    );
    assert_eq!(
        executor
            .tools()
            .find("get_weather")
            .expect("there")
            .schema(),
        &schema
    );
}

#[tokio::test]
async fn f09_a_mock_of_flex_chat_answers_what_the_file_says() {
    let executor = executor(&flex_chat::read(EXAMPLE), &InternalHandlers::new());
    let answer = flat(&executor, "get_weather", json!({"location": "Oslo"})).await;
    assert_eq!(answer["success"], true);
    assert_eq!(answer["result"], json!({"temperature": 22}));
    let refused = flat(&executor, "get_weather", json!({})).await;
    assert_eq!(refused["error"], "Invalid parameters: missing 'location'");
}

#[tokio::test]
async fn f10_a_name_alone_activates_a_builtin_under_that_name() {
    let text = r#"[{"name": "generate_uuid"}, {"name": "get_current_datetime", "description": "The time"},
                   {"name": "none", "implementation": {"type": "builtin", "handler": "nothing"}}]"#;
    let flex = flex_chat::read(text);
    assert_eq!(problems(&flex), Vec::<String>::new());
    let executor = executor(&flex, &InternalHandlers::new());
    let uuid = flat(&executor, "generate_uuid", json!({})).await;
    assert_eq!(
        uuid["result"]["uuid"].as_str().map(str::len),
        Some(36),
        "{uuid}"
    );
    let time = flat(
        &executor,
        "get_current_datetime",
        json!({"at": "2026-01-31T12:00:00Z"}),
    )
    .await;
    assert_eq!(time["result"]["weekday"], "Saturday", "{time}");
    let described = executor
        .tools()
        .find("get_current_datetime")
        .expect("there");
    assert_eq!(described.description(), "The time");
    let missing = flat(&executor, "none", json!({})).await;
    assert_eq!(missing["error"], "Builtin handler 'nothing' not found");
}

#[tokio::test]
async fn f13_an_internal_tool_of_flex_chat_reaches_the_service_of_that_name() {
    let internal = InternalHandlers::new();
    let flex = flex_chat::read(EXAMPLE);
    let unserved = executor(&flex, &internal);
    let missing = flat(&unserved, "search_documents", json!({"query": "x"})).await;
    assert_eq!(missing["error"], "Internal handler 'rag_query' not found");
    internal.register("rag_query", |args: Value| async move {
        Ok::<Value, ToolError>(json!({"asked": args["query"]}))
    });
    let found = flat(
        &executor(&flex, &internal),
        "search_documents",
        json!({"query": "x"}),
    )
    .await;
    assert_eq!(found["result"], json!({"asked": "x"}));
}

#[test]
fn bare_forms_are_read_too() {
    for text in [
        r#"{"tools": {"registry": [{"name": "calculator"}]}}"#,
        r#"{"llms": {}, "tools": {"registry": [{"name": "calculator"}]}}"#,
        r#"{"registry": [{"name": "calculator"}]}"#,
        r#"{"tools": [{"name": "calculator"}]}"#,
        r#"[{"name": "calculator"},]"#,
    ] {
        let flex = flex_chat::read(text);
        assert_eq!(problems(&flex), Vec::<String>::new(), "{text}");
        assert_eq!(flex.tools.len(), 1, "{text}");
        assert_eq!(recognise(text), Some(Shape::FlexChat), "{text}");
    }
}

#[test]
fn what_a_file_holds_is_recognised() {
    for (text, shape) in [
        (EXAMPLE, Some(Shape::FlexChat)),
        (r#"{"mcpServers": {}}"#, Some(Shape::Mcp)),
        (
            r#"{/* c */ "servers": {"a": {"command": "x"}}, }"#,
            Some(Shape::Mcp),
        ),
        (r#"{"mcp": {"a": {"command": "x"}}}"#, Some(Shape::Mcp)),
        (r#"{"a": {"url": "http://h"}}"#, Some(Shape::Mcp)),
        (r#"{"tools": {"max_iterations": 5}}"#, None),
        (
            r#"{"extensions": {"recommendations": []}, "servers": [{"url": "http://h"}]}"#,
            None,
        ),
        (r#"{"name": "package", "version": "1.0.0"}"#, None),
        ("[1, 2]", None),
        ("not json", None),
        ("", None),
    ] {
        assert_eq!(recognise(text), shape, "{text}");
    }
}

#[test]
fn one_bad_entry_does_not_lose_the_others_and_every_fault_has_its_place() {
    let text = r#"{"tools": {"max_iterations": 0, "default_timeout_ms": "30s", "registry": [
  {"name": "calculator"},
  {"name": "calculater"},
  {"description": "nameless"},
  "generate_uuid",
  {"name": "a", "description": "d", "implementation": {"type": "moch", "mock_response": 1}},
  {"name": "b", "description": "d", "implementation": {"type": "mock"}},
  {"name": "c", "description": "d", "implementation": {"type": "builtin"}},
  {"name": "d", "implementation": {"type": "mock", "mock_response": 1}},
  {"name": "e", "description": "d", "parameters": "x", "implementation": {"type": "mock", "mock_response": null}},
  {"name": "f", "description": 5, "implementation": {"type": "mock", "mock_response": 1}},
  {"name": "g", "description": "d", "implementation": {"type": "mock", "mock_response": null}, "colour": 1},
  {"name": "g", "description": "d", "implementation": {"type": "mock", "mock_response": 2}}
]}}"#;
    let flex = flex_chat::read(text);
    let names: Vec<&str> = flex.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["calculator", "g", "g"]);
    assert_eq!((flex.max_iterations, flex.default_timeout), (None, None));
    assert_eq!(
        problems(&flex),
        [
            "1:30 'max_iterations' must be a whole number from 1 to 10000",
            "1:55 'default_timeout_ms' must be a number of milliseconds, a day at most",
            "3:3 registry[1] 'calculater': it has no implementation, and is none of the tools that need only a name",
            "4:3 registry[2]: it has no name",
            "5:3 registry[3]: expected a table, found a text",
            "6:64 registry[4] 'a': there is no implementation of type 'moch'",
            "7:55 registry[5] 'b': its implementation 'mock' has no answer",
            "8:55 registry[6] 'c': its implementation 'builtin' names no handler",
            "9:3 registry[7] 'd': it has no description: a model could not tell what it is for",
            "10:51 registry[8] 'e': 'parameters' must be a JSON Schema, not a text",
            "11:32 registry[9] 'f': 'description' must be a text, not a number",
        ]
    );
    let help = |index: usize| flex.problems[index].help.as_deref().expect("a way out");
    assert!(help(2).starts_with(
        "those are calculator, get_current_datetime, generate_uuid (did you mean 'calculator'?)"
    ));
    assert_eq!(
        help(5),
        "there are mock, builtin, internal (did you mean 'mock'?)"
    );
    let notes: Vec<&str> = flex
        .notes
        .iter()
        .map(|note| note.message.as_str())
        .collect();
    assert_eq!(
        notes,
        [
            "registry[10] 'g': 'colour' means nothing to Steadyhand",
            "registry[11] 'g' replaces the one on line 12",
        ]
    );
    assert_eq!(
        (flex.tools[0].place.line, flex.tools[0].place.column),
        (2, 3)
    );
}

#[test]
fn a_file_without_tools_says_what_was_expected() {
    let flex = flex_chat::read("{\"tools\": {}}");
    assert_eq!(problems(&flex), ["1:1 no list of tools in this file"]);
    let broken = flex_chat::read("{\"tools\": ");
    assert_eq!(broken.problems.len(), 1);
    assert!(
        broken.problems[0].message.starts_with("this is no JSON: "),
        "{broken:?}"
    );
}
