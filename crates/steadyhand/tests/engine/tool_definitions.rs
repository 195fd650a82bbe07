//! Which tools there are: their definitions, names, order, and what replaces what.

use std::sync::Arc;

use serde_json::{Value, json};
use steadyhand::testing::script;
use steadyhand::{RefusedTool, Tool, ToolError, ToolManager};
use tracing::Level;

use crate::logs;
use crate::support::{call, executor, flat, once, secs};

// D3: the same name twice
#[tokio::test(start_paused = true)]
async fn d03_the_newer_tool_of_a_name_replaces_the_older_with_a_warning_and_keeps_its_place() {
    let logs = logs::capture();
    let executor = executor(["a", "b", "c"].map(|name| script(name).answers("old").tool()));
    executor.execute(once("b")).await;
    assert!(
        logs.of(
            Level::WARN,
            "a tool of this name is replaced by a newer one"
        )
        .is_empty()
    );
    executor
        .tools()
        .add(script("b").answers("new").tool())
        .unwrap();
    let line = logs.only(
        Level::WARN,
        "a tool of this name is replaced by a newer one",
    );
    assert_eq!(line.field("tool"), "b");
    assert_eq!(
        executor.execute(once("b")).await.output().unwrap().value(),
        "new"
    );
    let names: Vec<String> = executor
        .tools()
        .list()
        .iter()
        .map(|tool| tool.name().to_owned())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(executor.tools().metrics("b").unwrap().success_count, 2);
}

#[test]
fn d03_a_refused_newer_tool_leaves_the_older_in_place() {
    let tools = ToolManager::new();
    tools.add(script("t").tool()).unwrap();
    tools.add(script("t").schema(json!(5)).tool()).unwrap_err();
    assert_eq!(
        tools.find("t").unwrap().schema(),
        &json!({"type": "object"})
    );
}

#[test]
fn d14_a_tool_of_our_own_without_description_is_refused() {
    let mute = Tool::with_schema("t", "", json!({}), |_: Value| async {
        Ok::<(), ToolError>(())
    });
    let refused = ToolManager::new().add(mute).unwrap_err();
    assert!(refused.fault.contains("description"), "{refused}");
}

#[test]
fn v05_tools_stand_in_one_ordered_collection_and_are_found_by_either_name() {
    let tools = ToolManager::new();
    let names = ["zeta", "alpha", "mid"];
    for name in names {
        let source = if name == "alpha" { "mcp" } else { "own" };
        let tool = script(name)
            .tool()
            .alias(format!("lc_{name}"))
            .from_source(source);
        tools.add(tool).unwrap();
    }
    let listed = tools.list();
    assert_eq!(
        listed.iter().map(|tool| tool.name()).collect::<Vec<_>>(),
        names
    );
    for (place, name) in names.into_iter().enumerate() {
        for used in [name.to_owned(), format!("lc_{name}")] {
            let found = tools.find(&used).expect("it is there");
            // The definition exists once: finding and listing hand out the same one.
            assert!(Arc::ptr_eq(&found, &listed[place]), "{used}");
        }
    }
    assert!(tools.find("beta").is_none());
    assert!(tools.metrics("beta").is_none());
    assert_eq!((tools.len(), tools.is_empty()), (3, false));
}

#[tokio::test(start_paused = true)]
async fn v05_a_call_by_alias_runs_the_tool_and_is_answered_under_the_name_it_used() {
    let executor = executor([script("search").answers(1).tool().alias("lc_search")]);
    let outcome = executor.execute(call("lc_search", json!({}))).await;
    assert_eq!(flat(&outcome)["tool_name"], "lc_search");
    assert!(outcome.is_success());
    assert_eq!(executor.tools().metrics("search").unwrap().success_count, 1);
}

#[test]
fn v05_listing_gives_definitions_as_they_were_made() {
    let schema = json!({"type": "object", "properties": {"z": {}, "a": {}}, "x-own": true});
    let tools = ToolManager::new();
    tools
        .add(script("t").schema(schema.clone()).tool().alias("lc_t"))
        .unwrap();
    let tool = &tools.list()[0];
    let described = (
        tool.name(),
        tool.lc_name(),
        tool.description(),
        tool.schema(),
    );
    assert_eq!(described, ("t", Some("lc_t"), "A scripted tool", &schema));
}

#[test]
fn v05_a_tool_that_is_taken_out_is_gone_and_the_order_stays() {
    let tools = ToolManager::new();
    assert!(
        tools
            .add_all(["a", "b", "c"].map(|name| script(name).tool().alias(format!("lc_{name}"))))
            .is_empty()
    );
    assert_eq!(tools.remove("b").unwrap().name(), "b");
    assert!(tools.remove("b").is_none());
    assert!(tools.find("lc_b").is_none());
    assert_eq!(
        tools
            .list()
            .iter()
            .map(|tool| tool.name())
            .collect::<Vec<_>>(),
        ["a", "c"]
    );
    assert_eq!(tools.find("lc_c").unwrap().name(), "c");
}

#[tokio::test(start_paused = true)]
async fn v05_a_call_that_runs_goes_on_when_its_tool_is_taken_out_or_replaced() {
    let old = script("t").answers("old").taking(secs(5));
    let executor = executor([old.tool()]);
    let change = async {
        tokio::time::sleep(secs(1)).await;
        executor
            .tools()
            .add(script("t").answers("new").tool())
            .unwrap();
        let outcome = executor.execute(call("t", json!({}))).await;
        executor.tools().remove("t").unwrap();
        outcome
    };
    let (slow, new) = tokio::join!(executor.execute(call("t", json!({}))), change);
    assert_eq!(slow.output().unwrap().value(), "old");
    assert_eq!(new.output().unwrap().value(), "new");
}

/// How fast is measured in `benches/`; here, that each is the right one.
#[test]
fn v05_each_of_ten_thousand_tools_is_found_by_its_name() {
    let tools = ToolManager::new();
    let many = (0..10_000).map(|number| script(format!("tool_{number}")).tool());
    assert!(tools.add_all(many).is_empty());
    for number in 0..10_000 {
        let name = format!("tool_{number}");
        assert_eq!(tools.find(&name).unwrap().name(), name);
    }
}

#[test]
fn v06_a_bad_definition_is_refused_with_its_name_and_its_fault() {
    let any = || json!({"type": "object"});
    let tool = |name: &str, description: &str, schema: Value| {
        Tool::with_schema(name, description, schema, |_: Value| async {
            Ok::<(), ToolError>(())
        })
    };
    let too_deep = (0..200).fold(any(), |inner, _| json!({"not": inner}));
    let too_large = json!({"type": "object", "description": "x".repeat(300_000)});
    for (tool, name, fault) in [
        (tool("", "d", any()), "", "name"),
        (tool("  ", "d", any()), "  ", "name"),
        (tool("t", "", any()), "t", "description"),
        (tool("t", " \n", any()), "t", "description"),
        (
            tool("t", "d", json!("no")),
            "t",
            "schema must be a JSON object",
        ),
        (
            tool("t", "d", json!(true)),
            "t",
            "schema must be a JSON object",
        ),
        (
            tool("t", "d", json!({"type": "array"})),
            "t",
            "\"type\": \"object\"",
        ),
        (tool("t", "d", json!({"type": "objekt"})), "t", "object"),
        (
            tool("t", "d", json!({"properties": {"a": {"type": "int"}}})),
            "t",
            "/properties/a/type",
        ),
        (
            tool("t", "d", json!({"properties": {"a": {"minimum": "1"}}})),
            "t",
            "/properties/a/minimum",
        ),
        (tool("t", "d", json!({"required": "a"})), "t", "/required"),
        (
            tool("t", "d", json!({"properties": {"a": {"pattern": "(("}}})),
            "t",
            "((",
        ),
        (tool("t", "d", too_deep), "t", "deep"),
        (tool("t", "d", too_large), "t", "larger"),
        (tool("t", "d", any()).alias(""), "t", "lc_name"),
    ] {
        let tools = ToolManager::new();
        let refused = tools.add(tool).unwrap_err();
        assert_eq!(refused.name, name);
        assert!(refused.fault.contains(fault), "{fault} in {refused}");
        assert_eq!(
            refused.to_string(),
            format!("tool '{name}' was refused: {}", refused.fault)
        );
        assert!(tools.is_empty());
    }
}

#[test]
fn v06_one_refusal_leaves_the_others_in() {
    let tools = ToolManager::new();
    let bad = script("bad").schema(json!([])).tool();
    let refused = tools.add_all([script("a").tool(), bad, script("b").tool()]);
    assert_eq!(
        refused
            .iter()
            .map(|RefusedTool { name, .. }| name)
            .collect::<Vec<_>>(),
        ["bad"]
    );
    assert_eq!(tools.len(), 2);
}
