//! Export to an OpenTelemetry collector (OTLP over HTTP): a span for each call and each attempt, and the same
//! figures that `/metrics` shows. The messages are the ones OpenTelemetry generates (`opentelemetry-proto`);
//! the rest of its SDK is not used: its batches do not say how many spans they dropped, its exporters bring a
//! thread each and read settings from the environment, and it cannot take counters that exist already.
//!
//! Nothing here is on the path of a call: spans are made from events on the observer's thread, and sent by a
//! task. A collector that does not answer costs dropped spans and one line of log in a minute.

mod export;
mod message;
mod metrics;
mod spans;
mod target;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use opentelemetry_proto::tonic::trace::v1::Span;
use steadyhand::{Event, ToolExecutor, Watch};
use steadyhand_mcp::serve::ServedOperation;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::Figures;
use export::Exporter;
use spans::Traces;
use steadyhand_config::settings::TelemetrySettings;
use steadyhand_runtime::net::Client;
use target::Target;
pub use target::check;

/// Calls whose spans wait to be sent; those of further ones are dropped, and counted.
const CALLS_WAITING_MAX: usize = 1024;
/// How often it is looked whether the observer has seen everything, at the end.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The export, which may be off. There is one for a process.
pub struct Otlp {
    executor: ToolExecutor,
    figures: Arc<Figures>,
    http: Client,
    sink: Arc<Sink>,
    watch: OnceLock<Watch>,
    running: Mutex<Option<Running>>,
}

struct Running {
    settings: TelemetrySettings,
    /// Cancelled when there is no time left for second tries.
    hurry: CancellationToken,
}

/// Where finished spans go.
struct Sink {
    queue: ArcSwapOption<mpsc::Sender<Order>>,
    dropped: Arc<AtomicU64>,
}

/// What the exporting task is asked to do.
enum Order {
    /// Send these, some time.
    Spans(Vec<Span>),
    /// Send everything now, then say so.
    Flush(oneshot::Sender<()>),
}

impl Otlp {
    /// Off, until settings say where to.
    pub fn new(executor: ToolExecutor, figures: Arc<Figures>, http: Client) -> Otlp {
        let sink = Sink {
            queue: ArcSwapOption::empty(),
            dropped: Arc::clone(figures.spans_dropped()),
        };
        Otlp {
            executor,
            figures,
            http,
            sink: Arc::new(sink),
            watch: OnceLock::new(),
            running: Mutex::new(None),
        }
    }

    /// Does what these settings say from here on; the error says what is wrong with them, and leaves
    /// everything as it was. Must be called within a runtime.
    pub fn apply(&self, settings: &TelemetrySettings) -> Result<(), String> {
        let target = Target::read(settings)?;
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running
            .as_ref()
            .is_some_and(|running| same(&running.settings, settings))
        {
            return Ok(());
        }
        let Some(target) = target else {
            self.executor.stop_recording_spans();
            self.sink.queue.store(None);
            *running = None;
            return Ok(());
        };
        if self.watch.get().is_none() {
            let watch = self.watch();
            let watch = watch.map_err(|error| format!("no thread for telemetry: {error}"))?;
            let _ = self.watch.set(watch);
        }
        let (queue, inbox) = mpsc::channel(CALLS_WAITING_MAX);
        let hurry = CancellationToken::new();
        let exporter = Exporter::new(
            target,
            self.http.clone(),
            Arc::clone(&self.figures),
            Arc::clone(&self.sink),
            hurry.clone(),
        );
        tokio::spawn(exporter.run(inbox));
        // The task before, if there was one, sends what it has and ends.
        self.sink.queue.store(Some(Arc::new(queue)));
        self.executor.record_spans();
        *running = Some(Running {
            settings: settings.clone(),
            hurry,
        });
        Ok(())
    }

    /// Sends what there is, within this time. Gives back whether all of it was sent or given up.
    pub async fn flush(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let all = async {
            while !self.watch.get().is_none_or(Watch::is_up_to_date) {
                sleep(LOOK_EVERY).await;
            }
            let Some(queue) = self.sink.queue.load_full() else {
                return;
            };
            let (done, told) = oneshot::channel();
            if queue.send(Order::Flush(done)).await.is_ok() {
                let _ = told.await;
            }
        };
        timeout_at(until, all).await.is_ok()
    }

    /// The last flush: nothing is tried twice, and nothing is exported from here on.
    pub async fn shut_down(&self, limit: Duration) {
        let running = self
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(running) = running else {
            return;
        };
        running.hurry.cancel();
        self.flush(limit).await;
        self.executor.stop_recording_spans();
        self.sink.queue.store(None);
    }

    /// Where spans of requests to our MCP server go.
    pub fn server_spans(&self) -> ServerSpans {
        ServerSpans(Arc::clone(&self.sink))
    }

    /// Spans that were not exported: the collector was away, refused them, or was too slow.
    pub fn spans_dropped(&self) -> u64 {
        self.sink.dropped.load(Ordering::Relaxed)
    }

    /// Makes spans of what happens, on a thread of its own.
    fn watch(&self) -> std::io::Result<Watch> {
        let sink = Arc::clone(&self.sink);
        let traces = Mutex::new(Traces::new(self.executor.record_spans()));
        self.executor.observe(move |event: &Event| {
            if sink.queue.load().is_none() {
                return;
            }
            let mut traces = traces.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(spans) = traces.observe(event) {
                sink.take(spans);
            }
        })
    }
}

/// Takes the spans of requests to our MCP server.
#[derive(Clone)]
pub struct ServerSpans(Arc<Sink>);

impl ServerSpans {
    /// Never waits.
    pub fn take(&self, ended: &ServedOperation) {
        if self.0.queue.load().is_some() {
            self.0.take(vec![spans::of_request(ended)]);
        }
    }
}

impl Drop for Otlp {
    fn drop(&mut self) {
        // The observer's thread has the sink too: without this the task would wait for it for ever.
        self.sink.queue.store(None);
    }
}

impl fmt::Debug for Otlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Otlp({} spans dropped)", self.spans_dropped())
    }
}

impl Sink {
    /// Never waits: it is called on the observer's thread.
    fn take(&self, spans: Vec<Span>) {
        let count = spans.len();
        let queue = self.queue.load();
        let Some(queue) = queue.as_ref() else {
            return;
        };
        if queue.try_send(Order::Spans(spans)).is_err() {
            self.drop_spans(count);
        }
    }

    fn drop_spans(&self, count: usize) {
        self.dropped.fetch_add(count as u64, Ordering::Relaxed);
    }
}

fn same(one: &TelemetrySettings, other: &TelemetrySettings) -> bool {
    let url = |settings: &TelemetrySettings| {
        let otlp = settings.otlp.as_ref();
        otlp.map(|text| text.expose().to_owned())
    };
    let headers = |settings: &TelemetrySettings| -> Vec<(String, String)> {
        let all = settings.headers.iter();
        all.map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .collect()
    };
    url(one) == url(other)
        && headers(one) == headers(other)
        && one.service == other.service
        && one.metrics_every == other.metrics_every
}
