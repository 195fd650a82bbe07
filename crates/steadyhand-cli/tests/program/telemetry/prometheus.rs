//! `GET /metrics` over a real socket, read with Prometheus' own Python library.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};
use steadyhand::testing::script;
use steadyhand::{Call, Category, RetryPolicy, Tool, ToolError, ToolExecutor, ToolManager};
use steadyhand_server::telemetry::prometheus::{self, Format};
use steadyhand_server::telemetry::{Figures, HistoryFigures, ProcessFigures, ServerFigures};

use super::peer;
use crate::support;

/// What Prometheus 3 sends.
const ACCEPT: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                      application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";

#[tokio::test]
async fn r08_prometheus_reads_every_count_in_both_formats() {
    let executor = used_tools().await;
    let address = serve(executor.tools().clone()).await;
    for (accept, format) in [(ACCEPT, "openmetrics"), ("text/plain", "plain")] {
        let page = Page::read(address, accept, format).await;
        let flaky = |name: &str, extra: &[(&str, &str)]| {
            let mut labels = vec![("tool", "flaky")];
            labels.extend_from_slice(extra);
            page.value(name, &labels)
        };
        for (result, calls) in [
            ("success", 1.0),
            ("error", 2.0),
            ("timeout", 0.0),
            ("invalid", 1.0),
        ] {
            assert_eq!(
                flaky("steadyhand_tool_calls_total", &[("result", result)]),
                calls
            );
        }
        for (code, calls) in [
            ("NETWORK_ERROR", 1.0),
            ("TOOL_EXECUTION_ERROR", 1.0),
            ("VALIDATION_ERROR", 1.0),
        ] {
            assert_eq!(
                flaky("steadyhand_tool_errors_total", &[("code", code)]),
                calls
            );
        }
        assert_eq!(flaky("steadyhand_tool_retries_total", &[]), 1.0);
        assert_eq!(flaky("steadyhand_tool_fallbacks_total", &[]), 2.0);
        assert_eq!(flaky("steadyhand_tool_in_flight", &[]), 0.0);
        assert_eq!(flaky("steadyhand_tool_queued", &[]), 0.0);
        assert_eq!(
            flaky("steadyhand_tool_breaker_state", &[("state", "closed")]),
            1.0
        );
        assert_eq!(
            flaky("steadyhand_tool_breaker_state", &[("state", "open")]),
            0.0
        );
        assert_eq!(flaky("steadyhand_tool_breaker_trips_total", &[]), 0.0);
        assert_eq!(flaky("steadyhand_tool_duration_seconds_count", &[]), 3.0);
        assert_eq!(
            flaky("steadyhand_tool_duration_seconds_bucket", &[("le", "+Inf")]),
            3.0
        );
        assert!(flaky("steadyhand_tool_duration_seconds_sum", &[]) > 0.0);
        assert_eq!(page.value("steadyhand_unknown_tool_calls_total", &[]), 1.0);
        // Never called: no page of zeros.
        assert!(!page.labels_of("tool").contains(&"idle".to_owned()));
    }
}

#[tokio::test]
async fn r08_the_program_tells_of_itself() {
    let address = serve(ToolManager::new()).await;
    let page = Page::read(address, ACCEPT, "openmetrics").await;
    for (name, labels, value) in [
        ("steadyhand_config_generation", vec![], 3.0),
        ("steadyhand_history_queued", vec![], 7.0),
        ("steadyhand_history_dropped_total", vec![], 2.0),
        ("steadyhand_events_readers", vec![], 4.0),
        (
            "steadyhand_mcp_server_state",
            vec![("server", "calendar"), ("state", "ready")],
            1.0,
        ),
        (
            "steadyhand_mcp_server_starts_total",
            vec![("server", "calendar")],
            2.0,
        ),
        (
            "steadyhand_build_info",
            vec![("version", env!("CARGO_PKG_VERSION"))],
            1.0,
        ),
        ("steadyhand_tools", vec![], 0.0),
    ] {
        assert_eq!(page.value(name, &labels), value, "{name}");
    }
    assert!(page.value("steadyhand_uptime_seconds", &[]) >= 0.0);
    let types: Vec<(&str, &str)> = page
        .families
        .iter()
        .map(|family| {
            (
                family["name"].as_str().unwrap(),
                family["type"].as_str().unwrap(),
            )
        })
        .collect();
    for expected in [
        ("steadyhand_tool_calls", "counter"),
        ("steadyhand_tool_duration_seconds", "histogram"),
        ("steadyhand_tool_in_flight", "gauge"),
        ("steadyhand_build", "info"),
    ] {
        assert!(types.contains(&expected), "{expected:?} in {types:?}");
    }
}

#[tokio::test]
async fn r08_a_tools_name_cannot_break_the_page_and_arguments_are_not_on_it() {
    let name = r#"say"hi"\n{x="y"}"#;
    let executor = executor([script(name).answers("secret-answer").tool()]);
    let call = Call::with_id(
        "id-that-is-nowhere",
        name,
        json!({"key": "secret-argument"}),
    );
    assert!(executor.execute(call).await.is_success());
    let address = serve(executor.tools().clone()).await;
    for (accept, format) in [(ACCEPT, "openmetrics"), ("*/*", "plain")] {
        let page = Page::read(address, accept, format).await;
        let labels = [("tool", name), ("result", "success")];
        assert_eq!(page.value("steadyhand_tool_calls_total", &labels), 1.0);
        for hidden in ["secret-answer", "secret-argument", "id-that-is-nowhere"] {
            assert!(!page.text.contains(hidden), "{hidden}");
        }
    }
}

#[tokio::test]
async fn r08_more_than_a_thousand_tools_share_a_label_and_no_call_is_lost() {
    let names: Vec<String> = (0..1100).map(|number| format!("tool{number:04}")).collect();
    let executor = executor(names.iter().map(|name| script(name).answers(1).tool()));
    let address = serve(executor.tools().clone()).await;
    // The last hundred are called first: they have their labels when the others come.
    for name in &names[1000..] {
        executor.execute(Call::new(name, json!({}))).await;
    }
    let first = Page::read(address, ACCEPT, "openmetrics").await;
    assert_eq!(first.labels_of("tool").len(), 100);
    for name in &names {
        executor.execute(Call::new(name, json!({}))).await;
    }
    let second = Page::read(address, ACCEPT, "openmetrics").await;
    let labels = second.labels_of("tool");
    assert_eq!(labels.len(), 1001);
    let calls = |tool: &str| {
        second.value(
            "steadyhand_tool_calls_total",
            &[("tool", tool), ("result", "success")],
        )
    };
    assert_eq!(
        (calls("tool1099"), calls("tool0000"), calls("other")),
        (2.0, 1.0, 100.0)
    );
    let all: f64 = second
        .samples()
        .filter(|sample| sample["name"] == "steadyhand_tool_calls_total")
        .map(|sample| sample["value"].as_str().unwrap().parse::<f64>().unwrap())
        .sum();
    assert_eq!(all, 1200.0);
    let others = second.value(
        "steadyhand_tool_duration_seconds_count",
        &[("tool", "other")],
    );
    assert_eq!(others, 100.0);
}

#[test]
fn r08_the_format_is_the_one_that_is_asked_for() {
    for (accept, expected) in [
        ("", Format::Plain),
        ("*/*", Format::Plain),
        ("text/html,application/xml;q=0.9,*/*;q=0.8", Format::Plain),
        (ACCEPT, Format::OpenMetrics),
        ("application/openmetrics-text", Format::OpenMetrics),
        (
            "application/openmetrics-text;q=0.1, text/plain;q=0.9",
            Format::Plain,
        ),
        ("application/openmetrics-text;q=0", Format::Plain),
        ("application/openmetrics-text;q=nonsense", Format::Plain),
        ("APPLICATION/OPENMETRICS-TEXT", Format::OpenMetrics),
    ] {
        assert_eq!(Format::wanted(accept), expected, "{accept}");
    }
}

/// One tool that answers, fails after a retry, says no, and is asked for nonsense; one that is never called.
async fn used_tools() -> ToolExecutor {
    let flaky = script("flaky")
        .schema(json!({"type": "object", "properties": {"bad": false}}))
        .answers(1)
        .fails(ToolError::of(Category::Network, "gone"))
        .fails(ToolError::of(Category::Network, "gone"))
        .fails(ToolError::answer("no such thing"));
    let flaky = flaky
        .tool()
        .retry(RetryPolicy {
            attempts: 2,
            ..RetryPolicy::default()
        })
        .fallback_value(json!("backup"));
    let executor = executor([flaky, script("idle").answers(1).tool()]);
    for args in [json!({}), json!({}), json!({}), json!({"bad": 1})] {
        executor.execute(Call::new("flaky", args)).await;
    }
    executor.execute(Call::new("nowhere", json!({}))).await;
    executor
}

fn executor(tools: impl IntoIterator<Item = Tool>) -> ToolExecutor {
    let manager = ToolManager::new();
    let refused = manager.add_all(tools);
    assert!(refused.is_empty(), "{refused:?}");
    ToolExecutor::new(manager)
}

async fn serve(manager: ToolManager) -> std::net::SocketAddr {
    let figures = Arc::new(Figures::new(manager, || ProcessFigures {
        generation: 3,
        history: Some(HistoryFigures {
            queued: 7,
            dropped: 2,
        }),
        event_readers: 4,
        servers: vec![ServerFigures {
            name: "calendar".to_owned(),
            state: "ready".to_owned(),
            starts: 2,
        }],
        ..ProcessFigures::default()
    }));
    let app = Router::new()
        .route("/metrics", get(prometheus::metrics))
        .with_state(figures);
    support::serve(app).await
}

/// A page as Prometheus' own library understands it.
struct Page {
    text: String,
    families: Vec<Value>,
}

impl Page {
    async fn read(address: std::net::SocketAddr, accept: &str, format: &str) -> Page {
        let response = support::client()
            .get(format!("http://{address}/metrics"))
            .header("accept", accept)
            .timeout(support::PATIENCE)
            .send()
            .await
            .expect("the page is served");
        assert_eq!(response.status(), 200);
        let content_type = response.headers()["content-type"]
            .to_str()
            .unwrap()
            .to_owned();
        assert_eq!(
            content_type.contains("openmetrics"),
            format == "openmetrics",
            "{content_type}"
        );
        let text = response.text().await.expect("it is text");
        let (input, format) = (text.clone().into_bytes(), format.to_owned());
        let families = tokio::task::spawn_blocking(move || {
            peer::python("prometheus-client", "metrics.py", &[&format], &input)
        });
        let families = families.await.expect("the peer does not panic");
        Page {
            text,
            families: families.as_array().expect("a list of families").clone(),
        }
    }

    fn samples(&self) -> impl Iterator<Item = &Value> {
        self.families
            .iter()
            .flat_map(|family| family["samples"].as_array().expect("samples"))
    }

    /// The one sample of this name with exactly these labels.
    fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let wanted: Value = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        let found: Vec<&Value> = self
            .samples()
            .filter(|sample| sample["name"] == name && sample["labels"] == wanted)
            .collect();
        assert_eq!(found.len(), 1, "{name} {labels:?} in:\n{}", self.text);
        found[0]["value"]
            .as_str()
            .unwrap()
            .parse()
            .expect("a number")
    }

    fn labels_of(&self, name: &str) -> Vec<String> {
        let labels = self
            .samples()
            .filter_map(|sample| sample["labels"][name].as_str());
        let mut labels: Vec<String> = labels.map(str::to_owned).collect();
        labels.sort_unstable();
        labels.dedup();
        labels
    }
}
