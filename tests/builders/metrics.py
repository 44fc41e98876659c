"""Metrics as those who take them read them: Prometheus' own parser, and OTLP's own messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families

Figures = dict[tuple[str, ...], float]
"""By the metric's name and the values of its labels but `stream`."""


def in_textfile(folder: Path, stream: str) -> Figures:
    """What a collector reads there of this stream; each name and set of labels once, each with its kind."""
    (path,) = [p for p in folder.iterdir() if p.suffix == ".prom"]
    found: Figures = {}
    for family in text_string_to_metric_families(path.read_text(encoding="utf-8")):
        assert family.type in ("gauge", "counter"), family
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, *(v for k, v in sample.labels.items() if k != "stream"))
            assert key not in found
            assert sample.labels["stream"] == stream
            found[key] = sample.value
    return found


def in_request(body: bytes, stream: str) -> Figures:
    """What a receiver of OpenTelemetry gets."""
    return dict(_points(ExportMetricsServiceRequest.FromString(body), stream))


def _points(request: ExportMetricsServiceRequest, stream: str) -> Iterator[tuple[tuple[str, ...], float]]:
    (resource,) = request.resource_metrics
    assert [(a.key, a.value.string_value) for a in resource.resource.attributes] == [("service.name", "wavestitch")]
    (scope,) = resource.scope_metrics
    for metric in scope.metrics:
        counter = metric.WhichOneof("data") == "sum"
        assert counter == metric.name.endswith("_total"), metric.name
        if counter:
            assert metric.sum.is_monotonic
            assert metric.sum.aggregation_temporality == 2, "cumulative"
        for point in metric.sum.data_points if counter else metric.gauge.data_points:
            assert point.time_unix_nano >= point.start_time_unix_nano
            assert bool(point.start_time_unix_nano) == counter
            labels = {a.key: a.value.string_value for a in point.attributes}
            assert labels.pop("stream") == stream
            yield (metric.name, *labels.values()), point.as_double
