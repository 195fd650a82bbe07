//! Telemetry of the whole program: what its settings say is done, and nothing is lost at its end.

use serde_json::json;
use tokio::time::Instant;

use super::collector::Collector;
use crate::serve::Served;
use crate::support::{PATIENCE, Workplace, parts};

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test]
async fn a_server_exports_its_calls_and_says_its_last_words() {
    let collector = Collector::start().await;
    let mut workplace = Workplace::with_config(&format!(
        r#"
[telemetry]
otlp = "{}"
headers = {{ x-key = "${{env:COLLECTOR_KEY}}" }}
service = "kitchen"

[tools.echo]
kind = "builtin"
use = "echo"
"#,
        collector.url()
    ));
    workplace.set("COLLECTOR_KEY", "very-secret");
    let served = Served::in_place(workplace).await;
    // Exporting begins a moment after serving does.
    let until = Instant::now() + PATIENCE;
    let body = json!({"name": "echo", "args": {"message": "hello"}}).to_string();
    while collector.requests().is_empty() {
        assert!(
            Instant::now() < until,
            "nothing is exported: {}",
            served.stderr()
        );
        let headers = [
            ("traceparent", CALLER),
            ("content-type", "application/json"),
        ];
        let reply = served.send("POST", "/v1/calls", &headers, &body).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    }
    let early = collector.requests().len();
    served.signal(rustix::process::Signal::TERM);
    let (_, stderr) = served.ended().await;
    assert!(
        !stderr.contains("very-secret") && !stderr.contains("telemetry"),
        "{stderr}"
    );

    let requests = collector.requests();
    assert!(requests.len() > early, "the last ones came along");
    for (_, headers, _) in &requests {
        assert_eq!(headers["x-key"], "very-secret");
    }
    let scopes = collector.read("traces").await;
    assert_eq!(scopes[0]["resource"]["service.name"], "kitchen");
    let spans = collector.spans().await;
    let call = spans
        .iter()
        .find(|span| span["name"] == "execute_tool echo")
        .expect("a call was exported");
    assert_eq!(call["trace"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(call["parent"], "00f067aa0ba902b7");
    assert!(!collector.read("metrics").await.is_empty());
}

#[test]
fn a_collector_that_cannot_be_one_is_found_before_anything_starts() {
    let workplace = Workplace::with_config(
        "[telemetry]\notlp = \"localhost:4318\"\n[tools.echo]\nkind = \"builtin\"\nuse = \"echo\"\n",
    );
    let (code, _, stderr) = parts(&workplace.run("config check"));
    assert_ne!(code, 0);
    assert!(
        stderr.contains("telemetry.otlp") && stderr.contains("http://127.0.0.1:4318"),
        "{stderr}"
    );
}
