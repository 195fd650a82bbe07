//! The figures as OTLP's metrics. Counters are cumulative: one that is lost on the way is in the next one.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use steadyhand::Times;

use steadyhand_mcp::measures::{BOUNDS_SECONDS, Durations};

use super::message::{number, scope, text};
use crate::telemetry::figures::{Family, Labels, Points};
use crate::telemetry::prometheus::spans;

/// What the GenAI conventions call the time of a tool.
const TOOL_DURATION: &str = "gen_ai.execute_tool.duration";

/// From when to when, in nanoseconds since 1970.
#[derive(Clone, Copy)]
pub(super) struct Period {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// All figures in one request.
pub(super) fn request(
    families: &[Family],
    resource: &Resource,
    period: Period,
) -> ExportMetricsServiceRequest {
    let metrics = families
        .iter()
        .filter_map(|family| metric(family, period))
        .collect();
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource.clone()),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope()),
                metrics,
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

/// `None` for facts: the resource has them.
fn metric(family: &Family, period: Period) -> Option<Metric> {
    let (unit, data) = match &family.points {
        Points::Counter(points) => ("1", counter(points, period)),
        Points::Gauge(points) => ("1", gauge(points, period)),
        Points::Seconds(value) => ("s", gauge(&[(Vec::new(), *value)], period)),
        Points::Times(points) => ("s", histogram(points, period)),
        Points::Durations(points) => ("s", durations(points, period)),
        Points::Info(_) => return None,
    };
    let name = match &family.points {
        Points::Times(_) => TOOL_DURATION.to_owned(),
        // They are named by the conventions already.
        Points::Durations(_) => family.name.to_owned(),
        _ => format!("steadyhand.{}", family.name),
    };
    Some(Metric {
        name,
        description: family.help.to_owned(),
        unit: unit.to_owned(),
        data: Some(data),
        ..Metric::default()
    })
}

fn counter(points: &[(Labels, u64)], period: Period) -> Data {
    let points = points.iter();
    Data::Sum(Sum {
        data_points: points
            .map(|(labels, value)| point(labels, Value::AsInt(*value as i64), period))
            .collect(),
        aggregation_temporality: AggregationTemporality::Cumulative.into(),
        is_monotonic: true,
    })
}

fn gauge(points: &[(Labels, f64)], period: Period) -> Data {
    let points = points.iter();
    Data::Gauge(Gauge {
        data_points: points
            .map(|(labels, value)| point(labels, Value::AsDouble(*value), period))
            .collect(),
    })
}

fn point(labels: &Labels, value: Value, period: Period) -> NumberDataPoint {
    NumberDataPoint {
        attributes: attributes(labels),
        start_time_unix_nano: period.start,
        time_unix_nano: period.end,
        value: Some(value),
        ..NumberDataPoint::default()
    }
}

fn histogram(points: &[(Labels, Times)], period: Period) -> Data {
    let one = |(labels, times): &(Labels, Times)| {
        let spans = spans(times);
        let mut attributes = attributes(labels);
        attributes.push(text("gen_ai.operation.name", "execute_tool"));
        HistogramDataPoint {
            attributes,
            start_time_unix_nano: period.start,
            time_unix_nano: period.end,
            count: times.count(),
            sum: Some(times.sum.as_secs_f64()),
            bucket_counts: spans.iter().map(|(_, calls)| *calls).collect(),
            // The last one, which is infinite, is not written down.
            explicit_bounds: spans[..spans.len() - 1]
                .iter()
                .map(|(bound, _)| *bound)
                .collect(),
            ..HistogramDataPoint::default()
        }
    };
    Data::Histogram(Histogram {
        data_points: points.iter().map(one).collect(),
        aggregation_temporality: AggregationTemporality::Cumulative.into(),
    })
}

fn durations(points: &[(Labels, Durations)], period: Period) -> Data {
    let one = |(labels, durations): &(Labels, Durations)| HistogramDataPoint {
        attributes: attributes(labels),
        start_time_unix_nano: period.start,
        time_unix_nano: period.end,
        count: durations.count(),
        sum: Some(durations.sum_seconds),
        bucket_counts: durations.counts.to_vec(),
        explicit_bounds: BOUNDS_SECONDS.to_vec(),
        ..HistogramDataPoint::default()
    };
    Data::Histogram(Histogram {
        data_points: points.iter().map(one).collect(),
        aggregation_temporality: AggregationTemporality::Cumulative.into(),
    })
}

/// Labels under the names that the conventions have for them.
fn attributes(labels: &Labels) -> Vec<KeyValue> {
    let named = |(name, value): &(&str, String)| {
        let name = match *name {
            "tool" => "gen_ai.tool.name",
            "code" => "error.type",
            other => other,
        };
        match (name, value.parse()) {
            ("server.port", Ok(port)) => number(name, port),
            _ => text(name, value),
        }
    };
    labels.iter().map(named).collect()
}
