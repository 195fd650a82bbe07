//! What is logged of a call, at which level, and without secrets.

use serde_json::json;
use steadyhand::ToolError;
use steadyhand::testing::script;
use tracing::Level;

use crate::logs;
use crate::support::{call, executor, failure, ms, run, run_once};

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
