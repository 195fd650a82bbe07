//! Trace context through the program's own tools: from the caller to the service that a tool calls.

use std::sync::Arc;

use serde_json::json;
use steadyhand::{Call, ToolExecutor, ToolManager, Traceparent};
use steadyhand_config::settings::TelemetrySettings;
use steadyhand_runtime::net::Client;
use steadyhand_runtime::source::KINDS;
use steadyhand_server::telemetry::{Figures, Otlp, ProcessFigures};

use super::collector::Collector;
use crate::http::server::{Server, json_answer};
use crate::support::{self, PATIENCE};

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test]
async fn http_and_openapi_tools_carry_the_callers_trace_on() {
    let service = Service::start().await;
    for tool in ["probe", "shop_list"] {
        service.call(tool, Some(CALLER)).await;
        service.call(tool, None).await;
        service.call(tool, Some("nonsense")).await;
    }
    let expected = [Some(CALLER), None, None, Some(CALLER), None, None];
    assert_eq!(service.told(), expected.map(|told| told.map(str::to_owned)));
}

#[tokio::test]
async fn they_carry_our_own_span_where_spans_are_exported() {
    let collector = Collector::start().await;
    let service = Service::start().await;
    let figures = Figures::new(service.executor.tools().clone(), ProcessFigures::default);
    let otlp = Otlp::new(service.executor.clone(), Arc::new(figures), Client::new());
    let settings = TelemetrySettings {
        otlp: Some(collector.url().as_str().into()),
        ..TelemetrySettings::default()
    };
    otlp.apply(&settings).unwrap();
    for tool in ["probe", "shop_list"] {
        service.call(tool, Some(CALLER)).await;
    }
    assert!(otlp.flush(PATIENCE).await);
    let spans = collector.spans().await;
    let told = service.told();
    assert_eq!(told.len(), 2);
    for (told, tool) in told.iter().zip(["probe", "shop_list"]) {
        let told = Traceparent::parse(told.as_deref().expect("it is told")).unwrap();
        let name = format!("attempt {tool}");
        let attempt = spans.iter().find(|span| span["name"] == name.as_str());
        let attempt = attempt.expect("the attempt is exported");
        assert_eq!(attempt["id"], format!("{:016x}", told.span_id));
        assert_eq!(attempt["trace"], format!("{:032x}", told.trace_id));
        assert_eq!(attempt["trace"], "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(attempt["kind"], "SPAN_KIND_CLIENT");
    }
    let call = spans
        .iter()
        .find(|span| span["name"] == "execute_tool probe")
        .unwrap();
    assert_eq!(call["attributes"]["gen_ai.tool.type"], "extension");
    assert_eq!(call["attributes"]["steadyhand.tool.kind"], "http");
}

/// A service on loopback, and tools of two kinds that call it.
struct Service {
    server: Server,
    executor: ToolExecutor,
}

impl Service {
    async fn start() -> Service {
        let server = Server::start(vec![json_answer("[]")]).await;
        let folder = tempfile::tempdir().unwrap();
        let document = json!({
            "openapi": "3.1.0",
            "info": {"title": "shop", "version": "1"},
            "paths": {"/things": {"get": {"operationId": "list", "summary": "All things", "responses": {}}}},
        });
        let path = folder.path().join("shop.json");
        std::fs::write(&path, document.to_string()).unwrap();
        let manager = ToolManager::new();
        for (kind, name, settings) in [
            ("http", "probe", json!({"url": server.url("/probe")})),
            (
                "openapi",
                "shop",
                json!({"spec": path, "base": server.url(""), "prefix": "shop_"}),
            ),
        ] {
            let kind = KINDS.iter().find(|it| it.settings.name == kind).unwrap();
            let context = support::context(folder.path());
            let source = (kind.build)(name, settings, &context).expect("it can be built");
            let refused = manager.load(&*source).await.expect("it loads");
            assert!(refused.is_empty(), "{refused:?}");
        }
        Service {
            server,
            executor: ToolExecutor::new(manager),
        }
    }

    async fn call(&self, tool: &str, traceparent: Option<&str>) {
        let mut call = Call::new(tool, json!({}));
        call.traceparent = traceparent.map(str::to_owned);
        let outcome = self.executor.execute(call).await;
        assert!(outcome.is_success(), "{outcome:?}");
    }

    /// The trace that each request carried.
    fn told(&self) -> Vec<Option<String>> {
        let seen = self.server.seen();
        seen.iter()
            .map(|seen| seen.header("traceparent").map(str::to_owned))
            .collect()
    }
}
