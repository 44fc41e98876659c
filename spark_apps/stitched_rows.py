"""Rows out of stitched waveforms: what is published, and the slim row that the gate sees. Samples never pass here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from spark_apps.assignment import Assignment
from spark_apps.gathering import Group, Refusal
from wavestitch.contracts.chunk_metadata import Metadata, parse_metadata
from wavestitch.contracts.errors import Altered
from wavestitch.contracts.row_proof import FROM_METADATA
from wavestitch.contracts.rows import CHUNK_STRUCT, STITCHED, published_schema
from wavestitch.contracts.sample_metrics import SampleMetrics, physical_range

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Of any type: without samples all are the same.
_WITHOUT_SAMPLES = pa.schema([f for f in published_schema("int") if f.name != "samples"])
_DAY_NS = 86_400 * 10**9
# A waveform's own times are bounded where it is judged, a record's are whatever its producer set: readers turn them
# into calendar dates, and calendars end. What lies outside is null, not a crash downstream.
_LEAST_MS = int((datetime.min.replace(tzinfo=UTC) - _EPOCH).total_seconds()) * 1000
_END_MS = int((datetime.max.replace(tzinfo=UTC) - _EPOCH).total_seconds()) * 1000


@dataclass(frozen=True, slots=True)
class Waveforms:
    """What an assignment says of its waveforms, by ordinal, before a byte of payload is touched."""

    assignment: Assignment
    metadata: list[Metadata]
    sample_counts: list[int]
    piece_counts: list[int]
    record_times: list[tuple[int, int]]


def describe_waveforms(assignment: Assignment) -> Waveforms:
    """Raises `Altered` where the metadata are not what a reader lets through."""
    metadata = [_metadata(m) for m in assignment.metas]
    sizes = assignment.sizes.tolist()
    counts = [size // m.sample_bytes for size, m in zip(sizes, metadata, strict=True)]
    return Waveforms(assignment, metadata, counts, assignment.piece_counts(), assignment.record_times())


def published_rows(
    waves: Waveforms, group: Group, metrics: dict[int, SampleMetrics], *, topic_id: str, plan_id: str
) -> pa.Table:
    """The proven waveforms of a group, in order, as `published_schema` has them, but for their samples."""
    kept = group.waveforms
    about = [waves.metadata[w] for w in kept]
    measured = [metrics[w] for w in kept]
    counts = [waves.sample_counts[w] for w in kept]
    times = [waves.record_times[w] for w in kept]
    columns: dict[str, Any] = {
        "waveform_id": [waves.assignment.waveform_ids[w] for w in kept],
        **{name: [of(m, n) for m, n in zip(about, counts, strict=True)] for name, of in FROM_METADATA.items()},
        "sample_count": counts,
        "meta": [waves.assignment.metas[w] for w in kept],
        "digest": group.digests,
        "sample_min": [m.least for m in measured],
        "sample_max": [m.greatest for m in measured],
        "nonfinite_count": [m.nonfinite for m in measured],
        "chunk_count": [waves.piece_counts[w] for w in kept],
        "chunks": _chunks(waves.assignment, kept, topic_id),
        "topic_id": [topic_id] * len(kept),
        "first_record_time": _timestamps([_within_calendar(t[0]) for t in times], "ms"),
        "last_record_time": _timestamps([_within_calendar(t[1]) for t in times], "ms"),
        "plan_id": [plan_id] * len(kept),
    }
    return _table(columns, _WITHOUT_SAMPLES)


def stitched_rows(
    waves: Waveforms,
    metrics: dict[int, SampleMetrics],
    *,
    rows: dict[int, int],
    refused: dict[int, Refusal],
    file: str | None,
) -> pa.Table:
    """One `STITCHED` row per waveform of the assignment; `rows` says where in `file` those are that were written."""
    ordinals = range(len(waves.metadata))
    nothing = SampleMetrics(None, None, None)
    measured = [metrics.get(w, nothing) for w in ordinals]
    physical = [physical_range(a, m) for a, m in zip(measured, waves.metadata, strict=True)]
    about = waves.metadata
    columns: dict[str, Any] = {
        "waveform_id": waves.assignment.waveform_ids,
        "reason": [refused[w].reason.value if w in refused else None for w in ordinals],
        "evidence": [refused[w].evidence if w in refused else None for w in ordinals],
        "file": [file if w in rows else None for w in ordinals],
        "row": [rows.get(w) for w in ordinals],
        "day": pa.array([m.start_time_ns // _DAY_NS for m in about], pa.int32()).view(pa.date32()),
        "byte_length": waves.assignment.sizes.tolist(),
        "source": [m.source for m in about],
        "channel": [m.channel for m in about],
        "start_time": _timestamps([m.start_time_ns // 1000 for m in about], "us"),
        "duration_s": [n / m.sampling_rate_hz for m, n in zip(about, waves.sample_counts, strict=True)],
        "sampling_rate_hz": [m.sampling_rate_hz for m in about],
        "sample_format": [m.sample_format for m in about],
        "units": [m.units for m in about],
        "sample_count": waves.sample_counts,
        "nonfinite_count": [m.nonfinite for m in measured],
        "sample_min": [m.least for m in measured],
        "sample_max": [m.greatest for m in measured],
        "physical_min": [p[0] for p in physical],
        "physical_max": [p[1] for p in physical],
        "chunk_count": waves.piece_counts,
    }
    return _table(columns, STITCHED)


def _metadata(meta: str) -> Metadata:
    found = parse_metadata(meta)
    if isinstance(found, str):
        raise Altered(f"an assignment has metadata that no reader lets through ({found}); run the step again")
    return found


def _within_calendar(time_ms: int) -> int | None:
    return time_ms if _LEAST_MS <= time_ms < _END_MS else None


def _timestamps(times: Sequence[int | None], unit: str) -> Any:
    return pa.array(times, pa.int64()).view(pa.timestamp(unit, tz="UTC"))


def _table(columns: dict[str, Any], schema: Any) -> pa.Table:
    ready = (pa.Array, pa.ChunkedArray)
    return pa.table(
        [c if isinstance(c := columns[f.name], ready) else pa.array(c, f.type) for f in schema], schema=schema
    )


def _column(values: Any, kind: Any) -> Any:
    if values.ndim == 1:
        return pa.array(values, kind)
    # Digests, one a row.
    ends = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
    return pa.BinaryArray.from_buffers(kind, len(values), [None, pa.py_buffer(ends), pa.py_buffer(values.tobytes())])


def _chunks(assignment: Assignment, kept: Sequence[int], topic_id: str) -> Any:
    """Of what was held before the batch the topic may be another one than the batch's."""
    first = assignment.first
    pieces = np.concatenate([np.arange(first[w], first[w + 1]) for w in kept])
    topics = assignment.pieces["topic_id"].take(pa.array(pieces)).fill_null(topic_id)
    others = [_column(assignment.pieces[f.name][pieces], f.type) for f in CHUNK_STRUCT if f.name != "topic_id"]
    fields = [topics, *others]
    ends = np.cumsum([0, *(first[w + 1] - first[w] for w in kept)])
    return pa.ListArray.from_arrays(
        pa.array(ends, pa.int32()),
        pa.StructArray.from_arrays(fields, fields=list(CHUNK_STRUCT)),
        type=_WITHOUT_SAMPLES.field("chunks").type,
    )
