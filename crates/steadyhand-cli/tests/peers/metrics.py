"""Reads metrics with Prometheus' own Python library: text on stdin, samples as JSON on stdout."""
import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain

read = {"openmetrics": open_metrics, "plain": plain}[sys.argv[1]]
families = list(read(sys.stdin.read()))
print(json.dumps([
    {
        "name": family.name,
        "type": family.type,
        "help": family.documentation,
        "samples": [{"name": s.name, "labels": s.labels, "value": str(s.value)} for s in family.samples],
    }
    for family in families
]))
