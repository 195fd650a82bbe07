//! Sends spans and metrics: in batches, within bounds, and without ever being waited for.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::metrics::{self, Period};
use super::target::Target;
use super::{Order, Sink, message};
use crate::telemetry::Figures;
use steadyhand_runtime::net::{Client, Limits, Method, Request, Response, Url, retry_after};

/// Spans of one request.
const BATCH_MAX: usize = 512;
/// How long a span waits for others.
const BATCH_WAIT: Duration = Duration::from_secs(5);
/// How long one request may take.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// Tries for one batch, and the wait after the first; it doubles.
const TRIES_MAX: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(30);
/// What is read of an answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How often it is said that nothing gets through.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

pub(super) struct Exporter {
    target: Target,
    http: Client,
    figures: Arc<Figures>,
    sink: Arc<Sink>,
    hurry: CancellationToken,
    complained_at: Option<Instant>,
}

/// Why something was not taken.
struct Refusal {
    why: String,
    /// Whether it could be taken later, and when, if the collector said so.
    later: Option<Option<Duration>>,
}

impl Exporter {
    pub(super) fn new(
        target: Target,
        http: Client,
        figures: Arc<Figures>,
        sink: Arc<Sink>,
        hurry: CancellationToken,
    ) -> Exporter {
        Exporter {
            target,
            http,
            figures,
            sink,
            hurry,
            complained_at: None,
        }
    }

    /// Works until nobody can give orders any more.
    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Order>) {
        let mut batch: Vec<Span> = Vec::new();
        let mut batch_due: Option<Instant> = None;
        let mut metrics_due = Instant::now() + self.target.metrics_every;
        loop {
            let wake = batch_due.map_or(metrics_due, |due| due.min(metrics_due));
            let order = tokio::select! {
                biased;
                order = inbox.recv() => match order {
                    Some(order) => Some(order),
                    None => break,
                },
                () = sleep_until(wake) => None,
            };
            match order {
                Some(Order::Spans(spans)) => {
                    batch_due.get_or_insert_with(|| Instant::now() + BATCH_WAIT);
                    batch.extend(spans);
                }
                Some(Order::Flush(done)) => {
                    self.send_spans(std::mem::take(&mut batch)).await;
                    self.send_metrics().await;
                    batch_due = None;
                    // Whoever asked may have gone.
                    let _ = done.send(());
                }
                None => {}
            }
            let now = Instant::now();
            if batch.len() >= BATCH_MAX || batch_due.is_some_and(|due| due <= now) {
                self.send_spans(std::mem::take(&mut batch)).await;
                batch_due = None;
            }
            if metrics_due <= now {
                self.send_metrics().await;
                metrics_due = Instant::now() + self.target.metrics_every;
            }
        }
        self.send_spans(batch).await;
    }

    /// Sends a batch, again and again if need be; then it is dropped, and counted.
    async fn send_spans(&mut self, spans: Vec<Span>) {
        if spans.is_empty() {
            return;
        }
        let count = spans.len();
        let body = self.traces(spans).encode_to_vec();
        let mut wait = FIRST_WAIT;
        for tries in 1..=TRIES_MAX {
            let refusal = match self.post(&self.target.traces, body.clone()).await {
                Ok(response) => return self.check_spans(&response),
                Err(refusal) => refusal,
            };
            self.complain(&refusal.why);
            let Some(later) = refusal.later else {
                break;
            };
            if tries == TRIES_MAX || self.hurry.is_cancelled() {
                break;
            }
            let until = Instant::now() + later.unwrap_or(wait).min(WAIT_MAX);
            tokio::select! {
                () = sleep_until(until) => {}
                () = self.hurry.cancelled() => {}
            }
            wait *= 2;
        }
        self.sink.drop_spans(count);
    }

    /// Once: what does not arrive is in the next ones too.
    async fn send_metrics(&mut self) {
        let period = Period {
            start: nanoseconds(self.figures.started_at()),
            end: nanoseconds(jiff::Timestamp::now()),
        };
        let request = metrics::request(&self.figures.read(), &self.target.resource, period);
        match self
            .post(&self.target.metrics, request.encode_to_vec())
            .await
        {
            Err(refusal) => self.complain(&refusal.why),
            Ok(response) => {
                let answer = ExportMetricsServiceResponse::decode(&*response.body);
                let partial = answer.ok().and_then(|answer| answer.partial_success);
                if let Some(partial) = partial.filter(|partial| partial.rejected_data_points > 0) {
                    self.complain(&format!(
                        "{} data points were refused: {}",
                        partial.rejected_data_points, partial.error_message
                    ));
                }
            }
        }
    }

    /// Taken, but perhaps not all of it.
    fn check_spans(&mut self, response: &Response) {
        let answer = ExportTraceServiceResponse::decode(&*response.body);
        let partial = answer.ok().and_then(|answer| answer.partial_success);
        if let Some(partial) = partial.filter(|partial| partial.rejected_spans > 0) {
            self.sink.drop_spans(partial.rejected_spans as usize);
            self.complain(&format!(
                "{} spans were refused: {}",
                partial.rejected_spans, partial.error_message
            ));
        }
    }

    async fn post(&self, url: &Url, body: Vec<u8>) -> Result<Response, Refusal> {
        let mut request = Request::new(Method::POST, url.clone());
        request.headers = self.target.headers.clone();
        request.body = Some(body);
        let limits = Limits {
            until: Instant::now() + REQUEST_MAX,
            response_bytes_max: ANSWER_BYTES_MAX,
        };
        let sent = self.http.send(request, limits, &self.target.reach).await;
        let response = sent.map_err(|error| Refusal {
            why: error.message().to_owned(),
            later: Some(None),
        })?;
        if response.status.is_success() {
            return Ok(response);
        }
        let status = response.status;
        // These four are OTLP's own list of what may be tried again.
        let may_pass = matches!(status.as_u16(), 429 | 502 | 503 | 504);
        Err(Refusal {
            why: format!("{} answered {status}", self.target.site),
            later: may_pass.then(|| retry_after::wait(status, &response.headers)),
        })
    }

    fn traces(&self, spans: Vec<Span>) -> ExportTraceServiceRequest {
        ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.target.resource.clone()),
                scope_spans: vec![ScopeSpans {
                    scope: Some(message::scope()),
                    spans,
                    ..ScopeSpans::default()
                }],
                ..ResourceSpans::default()
            }],
        }
    }

    /// One line in a minute, however much is lost.
    fn complain(&mut self, why: &str) {
        let now = Instant::now();
        if self
            .complained_at
            .is_some_and(|at| now < at + COMPLAIN_EVERY)
        {
            return;
        }
        self.complained_at = Some(now);
        let why = steadyhand::cut::text(why, 500);
        let dropped = self.sink.dropped.load(std::sync::atomic::Ordering::Relaxed);
        tracing::warn!(
            collector = self.target.site,
            why,
            spans_dropped = dropped,
            "telemetry cannot be sent; calls are not affected. Check [telemetry] otlp, or take it out"
        );
    }
}

fn nanoseconds(moment: jiff::Timestamp) -> u64 {
    u64::try_from(moment.as_nanosecond()).unwrap_or(0)
}
