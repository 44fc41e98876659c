"""Where figures go: into a file for node-exporter's textfile collector, or to a receiver of OpenTelemetry's metrics.

Says what it was given, under the same names. Decides nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from wavestitch.batch.call_out import Callee, call_out
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.metrics import METRICS, MetricKind, Sample, labels_of, text_of
from wavestitch.contracts.quantities import EpochMs
from wavestitch.settings_sections import Metrics
from wavestitch.write_once import disk_errors, scratch_file

_FOR_EVERYBODY = 0o644
"""The collector is somebody else's program. Who gets at the file is a matter of the folder's mode."""
_UNITS = {"seconds": "s", "bytes": "By"}


def write_textfile(folder: Path, stream: str, samples: Sequence[Sample]) -> None:
    """All at once: the collector never sees a half. Not durable, as the figures of yesterday are worth nothing."""
    if not folder.is_dir():
        raise BadInput(
            f"there is no folder {folder}: make the one that `textfile` of [metrics] names, for the collector"
        )
    with disk_errors("writing the metrics"), scratch_file(folder) as scratch:
        scratch.write_text(text_of(stream, samples), encoding="utf-8")
        os.chmod(scratch, _FOR_EVERYBODY)
        scratch.replace(folder / f"wavestitch_{stream}.prom")


def send_otlp(ways: Metrics, stream: str, samples: Sequence[Sample], *, since: EpochMs, now: EpochMs) -> None:
    """`since`: when counting began. Raises as `call_out`."""
    if ways.otlp is None:
        return
    callee = Callee("receiver", "[metrics]", ways.otlp, ways.token, ways.timeout)
    call_out(callee, otlp_request(stream, samples, since=since, now=now), "application/x-protobuf")


def otlp_request(stream: str, samples: Sequence[Sample], *, since: EpochMs, now: EpochMs) -> bytes:
    # Slow to load, and there for whoever wants it.
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: PLC0415
        ExportMetricsServiceRequest,
    )
    from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality  # noqa: PLC0415

    request = ExportMetricsServiceRequest()
    resource = request.resource_metrics.add()
    service = resource.resource.attributes.add(key="service.name")
    service.value.string_value = "wavestitch"
    scope = resource.scope_metrics.add()
    scope.scope.name = "wavestitch"
    for metric, own in groupby(sorted(samples, key=lambda s: METRICS.index(s.metric)), key=lambda s: s.metric):
        unit = next((unit for word, unit in _UNITS.items() if word in metric.name), "")
        said = scope.metrics.add(name=metric.name, description=metric.says, unit=unit)
        if metric.kind is MetricKind.COUNTER:
            said.sum.is_monotonic = True
            said.sum.aggregation_temporality = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
        for sample in own:
            points = said.sum.data_points if metric.kind is MetricKind.COUNTER else said.gauge.data_points
            point = points.add(time_unix_nano=now * 1_000_000, as_double=sample.value)
            if metric.kind is MetricKind.COUNTER:
                point.start_time_unix_nano = since * 1_000_000
            for name, value in labels_of(stream, sample).items():
                point.attributes.add(key=name).value.string_value = value
    sent: bytes = request.SerializeToString()
    return sent
