//! SPEC section 2, one executor for everything: rows V01 to V09.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use serde_json::{Value, json};
use steadyhand::testing::script;
use steadyhand::{
    CallContext, Category, Effect, FailureCode, Policy, RefusedTool, Status, Tool, ToolError,
    ToolManager,
};
use tokio::time::Instant;
use tracing::Level;

use crate::logs;
use crate::support::{
    ON_PURPOSE, call, code, content, executor, failure, flat, ms, once, run, run_once, secs,
};

#[tokio::test(start_paused = true)]
async fn v01_a_tool_asked_for_by_name_runs_with_the_arguments_and_its_result_comes_back() {
    let tools = ["a", "b", "c"].map(|name| script(name).answers(format!("I am {name}")));
    let executor = executor(tools.iter().map(|tool| tool.tool()));
    let outcome = executor
        .execute(call("b", json!({"x": [1, "two", null]})))
        .await;
    assert_eq!(outcome.output().unwrap().value(), "I am b");
    assert_eq!(tools.each_ref().map(|tool| tool.starts()), [0, 1, 0]);
    assert_eq!(tools[1].seen()[0].args, json!({"x": [1, "two", null]}));
}

#[tokio::test(start_paused = true)]
async fn v02_a_run_is_logged_with_name_arguments_time_and_result() {
    let logs = logs::capture();
    let tool = script("weather")
        .answers(json!({"degrees": 21}))
        .taking(ms(40));
    run(tool.tool(), json!({"city": "Oslo"})).await;
    let line = logs.only(Level::INFO, "call succeeded");
    assert_eq!(line.field("tool"), "weather");
    assert_eq!(line.field("args"), r#"{"city":"Oslo"}"#);
    assert_eq!(line.field("ms"), "40.0");
    assert_eq!(line.field("result"), r#"{"degrees":21}"#);
}

#[tokio::test(start_paused = true)]
async fn v02_secrets_in_arguments_and_results_are_not_logged() {
    let logs = logs::capture();
    let answer = json!({"token": "t0ps3cret", "note": "use Bearer abcdefgh12345678"});
    run(
        script("login").answers(answer).tool(),
        json!({
            "user": "ann",
            "password": "hunter22",
            "apiKey": "k-123456",
            "nested": {"client_secret": "s-123456", "list": [{"pin": 9876}]},
            "url": "https://ann:hunter33@example.com/",
            "max_tokens": 100,
        }),
    )
    .await;
    let args = logs
        .only(Level::INFO, "call succeeded")
        .field("args")
        .to_owned();
    assert!(args.contains("\"ann\"") && args.contains("100"), "{args}");
    let hidden = [
        "hunter22",
        "k-123456",
        "s-123456",
        "9876",
        "hunter33",
        "t0ps3cret",
        "abcdefgh12345678",
    ];
    for secret in hidden {
        assert!(!logs.text().contains(secret), "{secret} in {}", logs.text());
    }
}

#[tokio::test(start_paused = true)]
async fn v02_what_is_logged_has_a_bounded_size() {
    let logs = logs::capture();
    let long = "æ".repeat(50_000);
    run(
        script("t").answers(long.clone()).tool(),
        json!({"text": long}),
    )
    .await;
    let line = logs.only(Level::INFO, "call succeeded");
    for field in ["args", "result"] {
        let shown = line.field(field);
        assert!(
            shown.starts_with("{\"text\":\"æ") || shown.starts_with("\"æ"),
            "{shown}"
        );
        assert!(shown.len() < 4096, "{field}: {} bytes", shown.len());
    }
}

#[tokio::test(start_paused = true)]
async fn v03_an_unknown_tool_is_warned_about_and_the_model_reads_which() {
    let logs = logs::capture();
    let outcome = executor([]).execute(call("teleport", json!({}))).await;
    assert_eq!(
        content(&outcome),
        "Error: Unknown tool \"teleport\"\nIt was not run."
    );
    assert!(outcome.message().is_error);
    assert_eq!(
        logs.only(Level::WARN, "unknown tool").field("tool"),
        "teleport"
    );
}

#[tokio::test(start_paused = true)]
async fn v02_v03_arguments_that_no_tool_got_are_logged_too() {
    let logs = logs::capture();
    let schema =
        json!({"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}});
    let tool = script("weather").schema(schema).tool();
    let executor = executor([tool]);
    let args = json!({"cty": "Oslo", "password": "hunter22"});
    executor.execute(call("weather", args.clone())).await;
    executor.execute(call("teleport", args)).await;
    let shown = r#"{"cty":"Oslo","password":"[redacted]"}"#;
    assert_eq!(logs.only(Level::WARN, "unknown tool").field("args"), shown);
    for line in logs.of(Level::WARN, "call failed") {
        assert_eq!(line.field("args"), shown);
    }
}

#[tokio::test(start_paused = true)]
async fn v02_a_success_after_a_failure_says_on_which_attempt() {
    let logs = logs::capture();
    let tool = script("bus")
        .fails(ToolError::new("no signal"))
        .answers("14:05");
    run(tool.tool(), json!({})).await;
    let line = logs.only(Level::INFO, "succeeded on attempt 2");
    assert_eq!(line.field("tool"), "bus");
}

#[tokio::test(start_paused = true)]
async fn v04_a_failure_is_logged_with_context_and_the_person_reads_a_friendly_text() {
    let logs = logs::capture();
    let tool = script("mailer").fails(ToolError::new("SMTP 554 <ann@example.com>: rejected"));
    let outcome = run(tool.tool(), json!({"to": "ann", "password": "hunter22"})).await;
    let line = logs.only(Level::WARN, "call failed");
    for (field, expected) in [
        ("tool", "mailer"),
        ("call_id", "mailer"),
        ("code", "TOOL_EXECUTION_ERROR"),
        ("attempts", "4"),
        ("ms", "700.0"),
        ("args", r#"{"to":"ann","password":"[redacted]"}"#),
    ] {
        assert_eq!(line.field(field), expected, "{field}");
    }
    assert!(
        line.fields
            .values()
            .any(|value| value == "SMTP 554 <ann@example.com>: rejected")
    );
    let friendly = &failure(&outcome).user_message;
    assert!(
        friendly.contains("mailer") && !friendly.contains("SMTP"),
        "{friendly}"
    );
}

#[tokio::test(start_paused = true)]
async fn v04_each_failed_attempt_is_logged_at_debug() {
    let logs = logs::capture();
    run(script("t").fails(ToolError::new("no")).tool(), json!({})).await;
    let attempts: Vec<String> = logs
        .of(Level::DEBUG, "attempt failed")
        .iter()
        .map(|line| line.field("attempt").to_owned())
        .collect();
    assert_eq!(attempts, ["1", "2", "3", "4"]);
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

#[tokio::test(start_paused = true)]
async fn v07_the_limit_is_thirty_seconds_unless_tool_or_call_say_otherwise() {
    for (tool_limit, call_limit, expected) in [
        (None, None, secs(30)),
        (Some(secs(2)), None, secs(2)),
        (None, Some(ms(150)), ms(150)),
        (Some(secs(2)), Some(secs(9)), secs(9)),
    ] {
        let mut tool = script("t").hangs().tool();
        if let Some(limit) = tool_limit {
            tool = tool.timeout(limit);
        }
        let call = steadyhand::Call {
            timeout: call_limit,
            ..once("t")
        };
        let outcome = executor([tool]).execute(call).await;
        assert_eq!(outcome.execution_time, expected);
        assert_eq!(
            (outcome.status(), code(&outcome)),
            (Status::Timeout, "TIMEOUT")
        );
        assert_eq!(failure(&outcome).effect, Effect::Unknown);
    }
}

#[tokio::test(start_paused = true)]
async fn v07_the_manager_can_set_another_limit_for_all() {
    let policy = Policy {
        timeout: secs(3),
        ..Policy::default()
    };
    let tools = ToolManager::new().with_defaults(policy);
    tools.add(script("t").hangs().tool()).unwrap();
    let outcome = steadyhand::ToolExecutor::new(tools)
        .execute(once("t"))
        .await;
    assert_eq!(outcome.execution_time, secs(3));
}

#[tokio::test(start_paused = true)]
async fn v07_a_tool_that_ends_just_in_time_succeeds() {
    for (takes, status) in [(29_999, Status::Success), (30_001, Status::Timeout)] {
        let outcome = run_once(script("t").answers(1).taking(ms(takes)).tool()).await;
        assert_eq!(outcome.status(), status, "{takes} ms");
    }
}

/// Says when it is dropped.
struct Alarm(Arc<AtomicBool>);

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn v07_on_expiry_the_work_is_dropped() {
    let dropped = Arc::new(AtomicBool::new(false));
    let went_on = Arc::new(AtomicU32::new(0));
    let (flag, count) = (Arc::clone(&dropped), Arc::clone(&went_on));
    let tool = Tool::with_schema("t", "d", json!({"type": "object"}), move |_: Value| {
        let (alarm, count) = (Alarm(Arc::clone(&flag)), Arc::clone(&count));
        async move {
            let _alarm = alarm;
            tokio::time::sleep(secs(40)).await;
            count.fetch_add(1, Ordering::Relaxed);
            Ok::<(), ToolError>(())
        }
    });
    let outcome = run_once(tool).await;
    assert_eq!(outcome.status(), Status::Timeout);
    assert!(dropped.load(Ordering::Relaxed));
    tokio::time::sleep(secs(100)).await;
    assert_eq!(went_on.load(Ordering::Relaxed), 0);
}

/// A tool that hangs, and tells when the work it left elsewhere was told to stop.
fn delegating(stopped: tokio::sync::mpsc::UnboundedSender<Instant>) -> Tool {
    let any = json!({"type": "object"});
    Tool::with_schema("t", "d", any, move |cx: CallContext, _: Value| {
        let (token, stopped) = (cx.cancellation().clone(), stopped.clone());
        tokio::spawn(async move {
            token.cancelled().await;
            let _ = stopped.send(Instant::now());
        });
        async { std::future::pending::<Result<(), ToolError>>().await }
    })
}

#[tokio::test(start_paused = true)]
async fn v07_on_expiry_work_in_other_tasks_is_told_to_stop() {
    let (sender, mut stopped) = tokio::sync::mpsc::unbounded_channel();
    let started = Instant::now();
    run_once(delegating(sender)).await;
    assert_eq!(stopped.recv().await.unwrap() - started, secs(30));
}

#[tokio::test(start_paused = true)]
async fn v07_it_is_told_at_once_and_not_when_the_next_attempt_begins() {
    let (sender, mut stopped) = tokio::sync::mpsc::unbounded_channel();
    let started = Instant::now();
    run(delegating(sender).timeout(secs(1)), json!({})).await;
    assert_eq!(stopped.recv().await.unwrap() - started, secs(1));
}

#[tokio::test(start_paused = true)]
async fn v07_a_panic_while_the_work_is_dropped_is_contained() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                std::panic::panic_any(format!("{ON_PURPOSE} in drop"));
            }
        }
    }
    let logs = logs::capture();
    let tool = Tool::with_schema("t", "d", json!({"type": "object"}), |_: Value| {
        let bomb = Bomb;
        async move {
            let _bomb = bomb;
            std::future::pending::<Result<(), ToolError>>().await
        }
    });
    let executor = executor([tool.limit(1, 0)]);
    for _ in 0..2 {
        // Twice: the first must have left its place.
        let outcome = executor.execute(once("t")).await;
        assert_eq!(outcome.status(), Status::Timeout);
    }
    let dropped = tokio::time::timeout(secs(1), executor.execute(once("t"))).await;
    assert!(dropped.is_err(), "the caller gave up");
    let metrics = executor.tools().metrics("t").unwrap();
    assert_eq!(
        (metrics.in_flight, metrics.timeout_count, metrics.cancelled),
        (0, 2, 1)
    );
    let lines = logs.of(Level::WARN, "a tool panicked while it was being dropped");
    assert_eq!(lines.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn v08_a_call_over_a_second_is_warned_about_and_no_other() {
    for (takes, warnings) in [(999, 0), (1000, 0), (1001, 1), (2500, 1)] {
        let logs = logs::capture();
        run(script("t").answers(1).taking(ms(takes)).tool(), json!({})).await;
        let lines = logs.of(Level::WARN, "slow call");
        assert_eq!(lines.len(), warnings, "{takes} ms");
        for line in lines {
            assert_eq!(line.field("tool"), "t");
            assert_eq!(line.field("ms"), format!("{takes}.0"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn v08_a_slow_failure_is_warned_about_too() {
    let logs = logs::capture();
    run_once(script("t").hangs().tool()).await;
    assert_eq!(logs.only(Level::WARN, "slow call").field("ms"), "30000.0");
}

#[tokio::test(start_paused = true)]
async fn v09_three_failures_have_three_friendly_texts() {
    let strict = json!({
        "type": "object",
        "properties": {"city": {}, "day": {}},
        "required": ["city", "day"],
    });
    let network = run_once(
        script("t")
            .fails(ToolError::of(Category::Network, "ECONNRESET"))
            .tool(),
    );
    let invalid = run_once(script("t").schema(strict).tool());
    let timeout = run_once(script("t").hangs().tool());
    let (network, invalid, timeout) = tokio::join!(network, invalid, timeout);
    for (outcome, code, words) in [
        (&network, FailureCode::NetworkError, vec!["unavailable"]),
        (
            &invalid,
            FailureCode::ValidationError,
            vec!["equired", "city", "day"],
        ),
        (&timeout, FailureCode::Timeout, vec!["timed out"]),
    ] {
        let failure = failure(outcome);
        assert_eq!(failure.code, code);
        for word in words {
            assert!(
                failure.user_message.contains(word),
                "{word}: {}",
                failure.user_message
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn v09_arguments_that_are_no_object_are_told_which_parameters_are_required_too() {
    let strict = json!({"type": "object", "properties": {"city": {}}, "required": ["city"]});
    for args in ["{\"city\": \"Os", "[]", "oslo"] {
        let tool = script("t").schema(strict.clone()).tool();
        let outcome = executor([tool])
            .execute(steadyhand::Call::new("t", args))
            .await;
        let text = &failure(&outcome).user_message;
        assert!(text.contains("city"), "{args}: {text}");
    }
}
