//! `GET /metrics`: the figures as text for Prometheus, in its own format or as OpenMetrics.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};
use steadyhand::Times;
use steadyhand_mcp::measures::BOUNDS_SECONDS;

use super::figures::{Family, Figures, Points};

/// The handler of `GET /metrics`.
pub async fn metrics(State(figures): State<Arc<Figures>>, headers: HeaderMap) -> Response {
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let format = Format::wanted(accepts.unwrap_or_default());
    match text(&figures.read(), format) {
        Ok(text) => ([(CONTENT_TYPE, format.content_type())], text).into_response(),
        Err(error) => {
            let why = format!("the metrics cannot be written down: {error}\n");
            (StatusCode::INTERNAL_SERVER_ERROR, why).into_response()
        }
    }
}

/// The two text formats that Prometheus reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' own, version 0.0.4: what everything reads.
    Plain,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    /// The one an `Accept` header prefers. Where it says nothing of the kind: the plain one.
    pub fn wanted(accept: &str) -> Format {
        let mut best = (0.0, Format::Plain);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let format = match parts.next().map(str::to_ascii_lowercase).as_deref() {
                Some("application/openmetrics-text") => Format::OpenMetrics,
                Some("text/plain" | "text/*" | "*/*") => Format::Plain,
                _ => continue,
            };
            let quality = parts
                .find_map(|part| part.strip_prefix("q="))
                .map_or(1.0, |quality| quality.parse().unwrap_or(0.0));
            if quality > best.0 {
                best = (quality, format);
            }
        }
        best.1
    }

    fn content_type(self) -> &'static str {
        match self {
            Format::Plain => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The figures in one of the formats.
pub fn text(families: &[Family], format: Format) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("steadyhand");
    registry.register_collector(Box::new(Page(families.to_vec())));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(match format {
        Format::OpenMetrics => text,
        Format::Plain => plain(&text),
    })
}

/// What the library calls while it writes.
#[derive(Debug)]
struct Page(Vec<Family>);

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.0 {
            let name = family.name.replace('.', "_");
            let (unit, kind) = match &family.points {
                Points::Counter(_) => (None, MetricType::Counter),
                Points::Gauge(_) => (None, MetricType::Gauge),
                Points::Seconds(_) => (Some(&Unit::Seconds), MetricType::Gauge),
                Points::Times(_) | Points::Durations(_) => {
                    (Some(&Unit::Seconds), MetricType::Histogram)
                }
                Points::Info(_) => (None, MetricType::Info),
            };
            let metric = encoder.encode_descriptor(&name, family.help, unit, kind)?;
            points(metric, &family.points)?;
        }
        Ok(())
    }
}

fn points(mut metric: MetricEncoder<'_>, points: &Points) -> fmt::Result {
    match points {
        Points::Counter(points) => points.iter().try_for_each(|(labels, value)| {
            let mut metric = metric.encode_family(labels)?;
            metric.encode_counter(value, None::<&Exemplar<NoLabelSet, u64>>)
        }),
        Points::Gauge(points) => points
            .iter()
            .try_for_each(|(labels, value)| metric.encode_family(labels)?.encode_gauge(value)),
        Points::Seconds(value) => metric.encode_gauge(value),
        Points::Times(points) => points.iter().try_for_each(|(labels, times)| {
            let spans = spans(times);
            let sum = times.sum.as_secs_f64();
            let mut metric = metric.encode_family(labels)?;
            metric.encode_histogram::<NoLabelSet>(sum, times.count(), &spans, None)
        }),
        Points::Durations(points) => points.iter().try_for_each(|(labels, durations)| {
            // Prometheus has no dots in names.
            let plain = |(name, value): &(&str, String)| (name.replace('.', "_"), value.clone());
            let labels: Vec<(String, String)> = labels.iter().map(plain).collect();
            let bounds = BOUNDS_SECONDS.into_iter().chain([f64::INFINITY]);
            let spans: Vec<(f64, u64)> = bounds.zip(durations.counts).collect();
            let mut metric = metric.encode_family(&labels)?;
            let (sum, count) = (durations.sum_seconds, durations.count());
            metric.encode_histogram::<NoLabelSet>(sum, count, &spans, None)
        }),
        Points::Info(labels) => metric.encode_info(labels),
    }
}

/// Bounds in powers of two of nanoseconds, where the engine's own time spans end: what is said of them is
/// exact. 16 µs to 69 s.
pub const BOUNDS_BITS: [u32; 20] = [
    14, 16, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36,
];

/// Calls by the upper bound of their time in seconds, each counted once; the last bound is infinite.
pub fn spans(times: &Times) -> Vec<(f64, u64)> {
    let mut below = 0;
    let mut spans = Vec::with_capacity(BOUNDS_BITS.len() + 1);
    for bits in BOUNDS_BITS {
        let bound = Duration::from_nanos(1 << bits);
        let shorter = times.shorter_than(bound);
        spans.push((bound.as_secs_f64(), shorter - below));
        below = shorter;
    }
    spans.push((f64::INFINITY, times.count() - below));
    spans
}

/// OpenMetrics as Prometheus' own format, which puts `_total` and `_info` into the name of the family and
/// knows neither units, info nor an end. Labels cannot hold a line break, so lines are what they seem.
fn plain(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["#", "HELP", ..] => help = line,
            ["#", "TYPE", name, kind] => {
                let (suffix, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    kind => ("", kind),
                };
                let said = help.splitn(4, ' ').nth(3).unwrap_or_default();
                text.push_str(&format!(
                    "# HELP {name}{suffix} {said}\n# TYPE {name}{suffix} {kind}\n"
                ));
            }
            ["#", ..] => {}
            _ => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}
