//! Export to a collector: what arrives there, and what happens when nothing can.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::testing::script;
use steadyhand::{
    Call, Category, Fallback, RetryPolicy, Tool, ToolError, ToolExecutor, ToolManager,
};
use steadyhand_config::settings::TelemetrySettings;
use steadyhand_runtime::net::Client;
use steadyhand_server::telemetry::{Figures, Otlp, ProcessFigures};
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};

use super::collector::Collector;
use crate::support::PATIENCE;

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test]
async fn a_call_is_a_span_below_its_callers_and_each_attempt_is_one_below_it() {
    let collector = Collector::start().await;
    let flaky = script("flaky")
        .fails(ToolError::of(Category::Network, "gone"))
        .answers("secret-result");
    let place = Place::with([flaky.tool().retry(quick(3))], &collector.url());
    let call = Call::with_id("call-7", "flaky", json!({"q": "secret-argument"}));
    place
        .executor
        .execute(call.traceparent(CALLER).caller("tests"))
        .await;
    assert!(place.otlp.flush(PATIENCE).await);

    let spans = collector.spans().await;
    assert_eq!(spans.len(), 3);
    let call = named(&spans, "execute_tool flaky");
    assert_eq!(call["trace"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(call["parent"], "00f067aa0ba902b7");
    assert_eq!(call["kind"], "SPAN_KIND_INTERNAL");
    assert_eq!(call["status"], "STATUS_CODE_UNSET");
    let attributes = &call["attributes"];
    for (name, value) in [
        ("gen_ai.operation.name", json!("execute_tool")),
        ("gen_ai.tool.name", json!("flaky")),
        ("gen_ai.tool.call.id", json!("call-7")),
        ("gen_ai.tool.type", json!("function")),
        ("steadyhand.attempts", json!(2)),
        ("steadyhand.caller", json!("tests")),
    ] {
        assert_eq!(attributes[name], value, "{name}");
    }
    assert_eq!(attributes.get("error.type"), None);
    assert_eq!(call["events"][0]["name"], "steadyhand.retry");
    assert_eq!(
        call["events"][0]["attributes"]["error.type"],
        "NETWORK_ERROR"
    );

    let attempts: Vec<&Value> = spans
        .iter()
        .filter(|span| span["name"] == "attempt flaky")
        .collect();
    for (number, attempt) in attempts.iter().enumerate() {
        assert_eq!(attempt["parent"], call["id"]);
        assert_eq!(attempt["trace"], call["trace"]);
        assert_eq!(attempt["attributes"]["steadyhand.attempt"], number + 1);
        let time = |span: &Value, end: &str| span[end].as_u64().unwrap();
        assert!(time(call, "start") <= time(attempt, "start"));
        assert!(time(attempt, "start") <= time(attempt, "end"));
        assert!(time(attempt, "end") <= time(call, "end"));
    }
    assert_eq!(attempts[0]["status"], "STATUS_CODE_ERROR");
    assert_eq!(attempts[0]["message"], "gone");
    assert_eq!(attempts[1]["status"], "STATUS_CODE_UNSET");
    for (_, _, body) in collector.requests() {
        let text = String::from_utf8_lossy(&body).into_owned();
        assert!(!text.contains("secret-"), "arguments and results stay here");
    }
}

#[tokio::test]
async fn failures_fallbacks_and_breakers_are_in_the_spans() {
    let collector = Collector::start().await;
    let tools = [
        // What an MCP `isError` becomes.
        script("says_no")
            .fails(ToolError::answer("no such page"))
            .tool()
            .of_kind("mcp")
            .from_source("calendar"),
        script("ill")
            .fails(ToolError::new("broken"))
            .tool()
            .no_retry()
            .breaker(1, Duration::from_secs(60))
            .fallback(Fallback::tool("backup")),
        script("backup").answers(1).tool(),
    ];
    let place = Place::with(tools, &collector.url());
    for name in ["says_no", "ill", "ill", "nowhere"] {
        place.executor.execute(Call::new(name, json!({}))).await;
    }
    assert!(place.otlp.flush(PATIENCE).await);

    let spans = collector.spans().await;
    let no = named(&spans, "execute_tool says_no");
    assert_eq!(no["attributes"]["error.type"], "tool_error");
    assert_eq!(no["attributes"]["steadyhand.tool.source"], "calendar");
    let asked = named(&spans, "tools/call says_no");
    assert_eq!(asked["kind"], "SPAN_KIND_CLIENT");
    assert_eq!(asked["attributes"]["mcp.method.name"], "tools/call");
    assert_eq!(asked["attributes"]["error.type"], "tool_error");
    assert_eq!(
        (&no["status"], &no["message"]),
        (
            &json!("STATUS_CODE_ERROR"),
            &json!("no such page. It ran, and failed.")
        )
    );
    let nowhere = named(&spans, "execute_tool nowhere");
    assert_eq!(nowhere["attributes"]["error.type"], "TOOL_NOT_FOUND");
    let ill: Vec<&Value> = spans
        .iter()
        .filter(|span| span["name"] == "execute_tool ill")
        .collect();
    assert_eq!(ill.len(), 2);
    assert_eq!(ill[0]["attributes"]["error.type"], "TOOL_EXECUTION_ERROR");
    assert_eq!(ill[0]["attributes"]["steadyhand.fallback_used"], true);
    let events: Vec<&str> = ill[0]["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        events,
        ["steadyhand.breaker_changed", "steadyhand.fallback"]
    );
    assert_eq!(ill[1]["attributes"]["error.type"], "CIRCUIT_OPEN");
    // Each fallback is a call of its own, below the one it answers for.
    let backups: Vec<&Value> = spans
        .iter()
        .filter(|span| span["name"] == "execute_tool backup")
        .collect();
    assert_eq!(backups.len(), 2);
    for (backup, ill) in backups.iter().zip(ill) {
        assert_eq!(
            (&backup["parent"], &backup["trace"]),
            (&ill["id"], &ill["trace"])
        );
    }
}

#[tokio::test]
async fn a_trace_that_its_beginner_does_not_record_is_not_exported() {
    let collector = Collector::start().await;
    let place = Place::with([script("t").answers(1).tool()], &collector.url());
    let unrecorded = CALLER.replace("-01", "-00");
    let call = Call::new("t", json!({})).traceparent(unrecorded);
    place.executor.execute(call).await;
    place.executor.execute(Call::new("t", json!({}))).await;
    assert!(place.otlp.flush(PATIENCE).await);
    let spans = collector.spans().await;
    assert_eq!(spans.len(), 2, "the second call and its attempt: {spans:?}");
    assert_eq!(named(&spans, "execute_tool t")["parent"], "");
}

#[tokio::test]
async fn r08_the_figures_are_exported_as_they_are() {
    let collector = Collector::start().await;
    let flaky = script("flaky")
        .answers(1)
        .fails(ToolError::answer("no"))
        .answers(1);
    let place = Place::with([flaky.tool()], &collector.url());
    for _ in 0..3 {
        place.executor.execute(Call::new("flaky", json!({}))).await;
    }
    assert!(place.otlp.flush(PATIENCE).await);
    let scopes = collector.read("metrics").await;
    let scope = scopes.last().unwrap();
    assert_eq!(scope["resource"]["service.name"], "tests");
    assert_eq!(scope["scope"], "steadyhand");
    let metrics: BTreeMap<&str, &Value> = scope["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|metric| (metric["name"].as_str().unwrap(), metric))
        .collect();
    let calls = metrics["steadyhand.tool.calls"];
    assert_eq!(
        (&calls["kind"], &calls["monotonic"], &calls["temporality"]),
        (
            &json!("sum"),
            &json!(true),
            &json!("AGGREGATION_TEMPORALITY_CUMULATIVE")
        )
    );
    let with = |result: &str| {
        let mut points = calls["points"].as_array().unwrap().iter();
        let found = points.find(|point| point["attributes"]["result"] == result);
        found.unwrap()["value"].clone()
    };
    assert_eq!((with("success"), with("error")), (json!(2), json!(1)));
    let errors = &metrics["steadyhand.tool.errors"]["points"][0];
    assert_eq!(
        errors["attributes"],
        json!({"gen_ai.tool.name": "flaky", "error.type": "TOOL_EXECUTION_ERROR"})
    );
    let duration = metrics["gen_ai.execute_tool.duration"];
    assert_eq!(
        (&duration["unit"], &duration["kind"]),
        (&json!("s"), &json!("histogram"))
    );
    let point = &duration["points"][0];
    assert_eq!(point["count"], 3);
    assert_eq!(
        point["attributes"],
        json!({"gen_ai.tool.name": "flaky", "gen_ai.operation.name": "execute_tool"})
    );
    assert!(point["start"].as_u64().unwrap() <= point["time"].as_u64().unwrap());
    assert_eq!(metrics["steadyhand.uptime"]["unit"], "s");
}

#[tokio::test]
async fn headers_go_along_and_no_text_shows_them() {
    let collector = Collector::start().await;
    let place = Place::with([script("t").answers(1).tool()], "");
    let mut settings = settings(&format!("{}/collect/", collector.url()));
    settings
        .headers
        .insert("x-key".to_owned(), "very-secret".into());
    place.otlp.apply(&settings).unwrap();
    place.executor.execute(Call::new("t", json!({}))).await;
    assert!(place.otlp.flush(PATIENCE).await);
    let requests = collector.requests();
    let paths: Vec<&str> = requests.iter().map(|(path, _, _)| path.as_str()).collect();
    assert_eq!(paths, ["/collect/v1/traces", "/collect/v1/metrics"]);
    for (_, headers, _) in &requests {
        assert_eq!(headers["x-key"], "very-secret");
        assert_eq!(headers["content-type"], "application/x-protobuf");
    }
    assert!(!format!("{settings:?}{:?}", place.otlp).contains("very-secret"));
    for wrong in ["ftp://x", "127.0.0.1:4318", "http://user:very-secret@", ""] {
        let refused = place.otlp.apply(&self::settings(wrong)).unwrap_err();
        assert!(
            refused.contains("telemetry.otlp") && !refused.contains("very-secret"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn what_a_collector_refuses_for_a_moment_is_sent_again_and_what_it_refuses_is_dropped() {
    // The first try is turned away, the second is taken.
    let busy = Collector::refusing([503]).await;
    let place = Place::with([script("t").answers(1).tool()], &busy.url());
    place.executor.execute(Call::new("t", json!({}))).await;
    assert!(place.otlp.flush(PATIENCE).await);
    let traces = busy
        .requests()
        .iter()
        .filter(|(path, _, _)| path.ends_with("traces"))
        .count();
    assert_eq!((traces, place.otlp.spans_dropped()), (2, 0));

    let angry = Collector::refusing([400]).await;
    let place = Place::with([script("t").answers(1).tool()], &angry.url());
    place.executor.execute(Call::new("t", json!({}))).await;
    assert!(place.otlp.flush(PATIENCE).await);
    let traces = angry
        .requests()
        .iter()
        .filter(|(path, _, _)| path.ends_with("traces"))
        .count();
    assert_eq!((traces, place.otlp.spans_dropped()), (1, 2));
}

#[tokio::test]
async fn a_collector_that_is_away_or_says_nothing_never_holds_up_a_call() {
    const CALLS: usize = 3000;
    // One port where nobody listens, one that takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let urls =
        [&silent, &gone].map(|listener| format!("http://{}", listener.local_addr().unwrap()));
    drop(gone);
    for url in urls {
        let place = Place::with([script("t").answers(1).tool()], &url);
        for _ in 0..CALLS {
            assert!(
                place
                    .executor
                    .execute(Call::new("t", json!({})))
                    .await
                    .is_success()
            );
        }
        let metrics = place.executor.tools().metrics("t").unwrap();
        assert_eq!(metrics.success_count, CALLS as u64);
        // Two spans a call are far more than what may wait: the others are counted.
        let until = Instant::now() + PATIENCE;
        while place.otlp.spans_dropped() == 0 {
            assert!(Instant::now() < until, "nothing was dropped");
            place.executor.execute(Call::new("t", json!({}))).await;
        }
        let end = place.otlp.shut_down(Duration::from_millis(200));
        timeout(PATIENCE, end).await.expect("the end is bounded");
    }
}

#[tokio::test]
async fn what_cannot_be_sent_is_one_line_of_log_in_a_minute() {
    const TRIES: usize = 10;
    // Tests beside this one have no subscriber: without one for all, they could switch the line off for us, too.
    let for_all = tracing_subscriber::fmt().with_writer(std::io::sink);
    let _ = tracing::subscriber::set_global_default(for_all.finish());
    let log = Log::default();
    let to_log = {
        let log = log.clone();
        tracing_subscriber::fmt()
            .with_writer(move || log.clone())
            .finish()
    };
    let angry = Collector::refusing([400; 2 * TRIES]).await;
    let mut settings = settings(&angry.url());
    settings
        .headers
        .insert("x-key".to_owned(), "very-secret".into());
    let place = Place::with([script("t").answers(1).tool()], "");
    // The test's runtime has one thread, so that this is where the exporter logs.
    let logging = tracing::subscriber::set_default(to_log);
    let begun = Instant::now();
    place.otlp.apply(&settings).unwrap();
    for _ in 0..TRIES {
        place.executor.execute(Call::new("t", json!({}))).await;
        assert!(place.otlp.flush(PATIENCE).await);
    }
    drop(logging);
    let minutes = begun.elapsed().as_secs() as usize / 60;
    let text = log.text();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("telemetry cannot be sent"))
        .collect();
    assert!((1..=1 + minutes).contains(&lines.len()), "{text}");
    assert!(
        lines[0].contains(&angry.address.to_string()) && lines[0].contains("400"),
        "{text}"
    );
    assert!(!text.contains("very-secret"), "{text}");
    assert_eq!(place.otlp.spans_dropped(), 2 * TRIES as u64);
}

#[tokio::test]
async fn it_can_be_turned_off_and_on_while_the_program_runs() {
    let (first, second) = (Collector::start().await, Collector::start().await);
    let place = Place::with([script("t").answers(1).tool()], &first.url());
    let call = || place.executor.execute(Call::new("t", json!({})));
    call().await;
    assert!(place.otlp.flush(PATIENCE).await);
    place.otlp.apply(&TelemetrySettings::default()).unwrap();
    call().await;
    assert!(place.otlp.flush(PATIENCE).await);
    place.otlp.apply(&settings(&second.url())).unwrap();
    call().await;
    assert!(place.otlp.flush(PATIENCE).await);
    assert_eq!(
        (first.spans().await.len(), second.spans().await.len()),
        (2, 2)
    );
    place.otlp.shut_down(PATIENCE).await;
    call().await;
    assert_eq!(second.spans().await.len(), 2);
}

/// An executor whose calls are exported.
struct Place {
    executor: ToolExecutor,
    otlp: Otlp,
}

impl Place {
    fn with(tools: impl IntoIterator<Item = Tool>, url: &str) -> Place {
        let manager = ToolManager::new();
        let refused = manager.add_all(tools);
        assert!(refused.is_empty(), "{refused:?}");
        let executor = ToolExecutor::new(manager.clone());
        let figures = Arc::new(Figures::new(manager, ProcessFigures::default));
        let otlp = Otlp::new(executor.clone(), figures, Client::new());
        if !url.is_empty() {
            otlp.apply(&settings(url)).unwrap();
        }
        Place { executor, otlp }
    }
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn settings(url: &str) -> TelemetrySettings {
    TelemetrySettings {
        otlp: Some(url.into()),
        service: Some("tests".to_owned()),
        ..TelemetrySettings::default()
    }
}

fn quick(attempts: u32) -> RetryPolicy {
    RetryPolicy {
        attempts,
        first_wait: Duration::from_millis(1),
        ..RetryPolicy::default()
    }
}

/// The one span of this name.
fn named<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    let found: Vec<&Value> = spans.iter().filter(|span| span["name"] == name).collect();
    assert_eq!(found.len(), 1, "{name} in {spans:#?}");
    found[0]
}
