"""Reads OTLP with OpenTelemetry's own Python messages: one request on stdin, its spans or metrics as JSON on stdout."""
import json
import sys

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


def attributes(pairs):
    values = {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
    assert len(values) == len(pairs), "an attribute is there twice"
    return values


def span(it):
    assert len(it.trace_id) == 16 and len(it.span_id) == 8 and len(it.parent_span_id) in (0, 8)
    return {
        "trace": it.trace_id.hex(),
        "id": it.span_id.hex(),
        "parent": it.parent_span_id.hex(),
        "name": it.name,
        "kind": Span.SpanKind.Name(it.kind),
        "start": it.start_time_unix_nano,
        "end": it.end_time_unix_nano,
        "attributes": attributes(it.attributes),
        "events": [
            {"name": e.name, "at": e.time_unix_nano, "attributes": attributes(e.attributes)} for e in it.events
        ],
        "status": Status.StatusCode.Name(it.status.code),
        "message": it.status.message,
    }


def point(it):
    read = {"attributes": attributes(it.attributes), "start": it.start_time_unix_nano, "time": it.time_unix_nano}
    if hasattr(it, "bucket_counts"):
        assert len(it.bucket_counts) == len(it.explicit_bounds) + 1
        assert sum(it.bucket_counts) == it.count
        return {**read, "count": it.count, "sum": it.sum, "bounds": list(it.explicit_bounds)}
    return {**read, "value": getattr(it, it.WhichOneof("value"))}


def metric(it):
    kind = it.WhichOneof("data")
    data = getattr(it, kind)
    read = {"name": it.name, "unit": it.unit, "kind": kind, "points": [point(p) for p in data.data_points]}
    if hasattr(data, "aggregation_temporality"):
        read["temporality"] = AggregationTemporality.Name(data.aggregation_temporality)
    if hasattr(data, "is_monotonic"):
        read["monotonic"] = data.is_monotonic
    return read


body = sys.stdin.buffer.read()
if sys.argv[1] == "traces":
    request = ExportTraceServiceRequest.FromString(body)
    print(json.dumps([
        {
            "resource": attributes(r.resource.attributes),
            "scope": s.scope.name,
            "spans": [span(it) for it in s.spans],
        }
        for r in request.resource_spans for s in r.scope_spans
    ]))
else:
    request = ExportMetricsServiceRequest.FromString(body)
    print(json.dumps([
        {
            "resource": attributes(r.resource.attributes),
            "scope": s.scope.name,
            "metrics": [metric(it) for it in s.metrics],
        }
        for r in request.resource_metrics for s in r.scope_metrics
    ]))
