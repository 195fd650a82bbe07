//! What one call costs in the engine, on each of its ways.

use std::hint::black_box;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::{
    Call, CallContext, Event, Outcome, Tool, ToolError, ToolExecutor, ToolManager, Watch,
};
use steadyhand_benches::floor::Floor;
use steadyhand_benches::measure::{Case, measure};
use steadyhand_benches::threads::side_by_side;
use steadyhand_benches::{
    ID, Sum, TEXT, as_text, bare, call_with_text, call_with_value, executor, one_thread, parsed,
    sum, table,
};
use tokio::runtime::{Builder, Runtime};

const BATCH: usize = 100;
const BAD_TEXT: &str = r#"{"a":"one","b":2}"#;

fn main() {
    let runtime = one_thread();
    let two_threads = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("a runtime can be made");
    let args = parsed();
    let floor = Floor::new();
    let plain = executor();
    let small = catalogue_of(10);
    let large = catalogue_of(10_000);
    let special = special_tools(&runtime);
    let (watched, watch) = watched();
    check(&runtime, &special);

    let mut cases = vec![
        Case::new("bare: value in, no validation, no guard", |times| {
            runtime.block_on(async {
                for _ in 0..times {
                    black_box(bare(black_box(&args).clone()).await);
                }
            });
        }),
        Case::new(
            "string floor: look up, parse, validate, call, serialise",
            |times| {
                runtime.block_on(async {
                    for _ in 0..times {
                        black_box(floor.call(black_box("sum"), black_box(TEXT)).await);
                    }
                });
            },
        ),
    ];
    let mut add = |name: &str, executor: &ToolExecutor, tool: &'static str, input: Input| {
        cases.push(one_call(name, &runtime, executor.clone(), tool, input));
    };
    add(
        "steadyhand: value in, outcome out",
        &plain,
        "sum",
        Input::Value,
    );
    add("steadyhand: text in, text out", &plain, "sum", Input::Text);
    add("  the id made by us", &plain, "sum", Input::TextNoId);
    add("  the tool yields once", &special, "yields", Input::Text);
    add(
        "  the tool asks for its context",
        &special,
        "asks",
        Input::Text,
    );
    add(
        "  the arguments do not fit",
        &special,
        "sum",
        Input::BadText,
    );
    add(
        "  refused by an open breaker",
        &special,
        "broken",
        Input::Text,
    );
    add(
        "  one observer, its thread included",
        &watched,
        "sum",
        Input::Text,
    );
    add("  10 tools", &small, "tool_5", Input::Text);
    add("  10,000 tools", &large, "tool_5000", Input::Text);
    cases.push(batch(
        "batch of 100: values in, outcomes out",
        &runtime,
        &plain,
        Input::Value,
    ));
    cases.push(batch(
        "batch of 100: text in, text out",
        &runtime,
        &plain,
        Input::Text,
    ));
    let mut figures = measure(cases);
    let other = executor();
    let shared = [
        side_by_side("one thread", &two_threads, &[&plain]),
        side_by_side("two threads, a tool each", &two_threads, &[&plain, &other]),
        side_by_side("two threads, one tool", &two_threads, &[&plain, &plain]),
    ];
    figures.extend(shared.into_iter().flatten());
    table::print(&figures);
    eprintln!(
        "{} events were dropped: the observer is slower than the calls",
        watch.dropped()
    );
}

#[derive(Clone, Copy)]
enum Input {
    Value,
    Text,
    TextNoId,
    BadText,
}

impl Input {
    fn call(self, tool: &str, args: &Value) -> Call {
        match self {
            Input::Value => call_with_value(black_box(tool), black_box(args)),
            Input::Text => call_with_text(black_box(tool), black_box(TEXT)),
            Input::TextNoId => Call::new(black_box(tool), black_box(TEXT)),
            Input::BadText => call_with_text(black_box(tool), black_box(BAD_TEXT)),
        }
    }

    /// What a caller does with the outcome: values stay values, text goes out as text.
    fn finish(self, outcome: &Outcome) {
        match self {
            Input::Value => {
                black_box(outcome);
            }
            Input::Text | Input::TextNoId | Input::BadText => {
                black_box(as_text(outcome));
            }
        }
    }
}

fn one_call<'a>(
    name: &str,
    runtime: &'a Runtime,
    executor: ToolExecutor,
    tool: &'static str,
    input: Input,
) -> Case<'a> {
    let args = parsed();
    Case::new(name, move |times| {
        runtime.block_on(async {
            for _ in 0..times {
                let outcome = executor.execute(input.call(tool, &args)).await;
                input.finish(&outcome);
            }
        });
    })
}

fn batch<'a>(
    name: &str,
    runtime: &'a Runtime,
    executor: &'a ToolExecutor,
    input: Input,
) -> Case<'a> {
    let args = parsed();
    Case::new(name, move |times| {
        runtime.block_on(async {
            for _ in 0..times {
                let calls = (0..BATCH).map(|_| input.call("sum", &args)).collect();
                let outcomes = executor.execute_batch(calls).await;
                outcomes.iter().for_each(|outcome| input.finish(outcome));
            }
        });
    })
}

fn catalogue_of(count: usize) -> ToolExecutor {
    let tools = ToolManager::new();
    let many = (0..count).map(|number| Tool::function(format!("tool_{number}"), "Adds", sum));
    let refused = tools.add_all(many);
    assert!(refused.is_empty());
    ToolExecutor::new(tools)
}

/// The tools that go another way than the straight one.
fn special_tools(runtime: &Runtime) -> ToolExecutor {
    let tools = ToolManager::new();
    let yields = |args: Sum| async move {
        tokio::task::yield_now().await;
        sum(args).await
    };
    let asks = |context: CallContext, args: Sum| async move {
        black_box(&context);
        sum(args).await
    };
    let broken = |_: Sum| async move { Err::<i64, _>(ToolError::new("broken")) };
    let refused = tools.add_all([
        sum::tool(),
        Tool::function("yields", "Adds, the second time it is asked", yields),
        Tool::function("asks", "Adds, and looks around", asks),
        Tool::function("broken", "Fails", broken)
            .no_retry()
            .breaker(1, Duration::from_secs(3600)),
    ]);
    assert!(refused.is_empty());
    let executor = ToolExecutor::new(tools);
    runtime.block_on(executor.execute(call_with_text("broken", TEXT)));
    executor
}

fn watched() -> (ToolExecutor, Watch) {
    let executor = executor();
    let watch = executor
        .observe(|event: &Event| {
            black_box(event);
        })
        .expect("a thread can be made");
    (executor, watch)
}

/// Measures nothing: makes sure that what is measured is what the names say.
fn check(runtime: &Runtime, special: &ToolExecutor) {
    let run = |tool: &str, text: &str| {
        let outcome = runtime.block_on(special.execute(call_with_text(tool, text)));
        serde_json::to_value(&outcome).expect("an outcome is JSON")
    };
    for tool in ["sum", "yields", "asks"] {
        let outcome = run(tool, TEXT);
        assert_eq!(outcome["output"], json!(3), "{outcome}");
        assert_eq!(outcome["callId"], json!(ID), "{outcome}");
    }
    let invalid = run("sum", BAD_TEXT);
    assert_eq!(
        invalid["error"]["code"],
        json!("VALIDATION_ERROR"),
        "{invalid}"
    );
    let refused = run("broken", TEXT);
    assert_eq!(refused["error"]["code"], json!("CIRCUIT_OPEN"), "{refused}");
}
