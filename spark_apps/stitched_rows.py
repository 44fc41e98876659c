"""Rows out of stitched waveforms: what is published, and the slim row that the gate sees. Samples never pass here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_apps.assignment import Assignment, Ints
from spark_apps.gathering import Group, Refusal
from wavestitch.contracts.chunk_metadata import Metadata, parse_metadata
from wavestitch.contracts.errors import Altered
from wavestitch.contracts.metadata_columns import MetadataColumns, read_metadata
from wavestitch.contracts.row_proof import FROM_METADATA
from wavestitch.contracts.rows import CHUNK_STRUCT, STITCHED, published_schema
from wavestitch.contracts.sample_metrics import MetricColumns

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Of any type: without samples all are the same.
_WITHOUT_SAMPLES = pa.schema([f for f in published_schema("int") if f.name != "samples"])
_DAY_NS = 86_400 * 10**9
# A waveform's own times are bounded where it is judged, a record's are whatever its producer set: readers turn them
# into calendar dates, and calendars end. What lies outside is null, not a crash downstream.
_LEAST_MS = int((datetime.min.replace(tzinfo=UTC) - _EPOCH).total_seconds()) * 1000
_END_MS = int((datetime.max.replace(tzinfo=UTC) - _EPOCH).total_seconds()) * 1000


@dataclass(frozen=True, slots=True, eq=False)
class Waveforms:
    """What an assignment says of its waveforms, by ordinal, before a byte of payload is touched."""

    assignment: Assignment
    said: MetadataColumns
    formats: npt.NDArray[np.str_]
    sample_counts: Ints

    def texts(self, what: Callable[[Metadata], str]) -> pa.Array:
        """Of every waveform, what its metadata say beside the start."""
        return pa.array([what(m) for m in self.said.said], pa.string()).take(pa.array(self.said.form))

    def numbers(self, what: Callable[[Metadata], float]) -> npt.NDArray[np.float64]:
        return self.said.of_each(what, np.float64)


def describe_waveforms(assignment: Assignment) -> Waveforms:
    """Raises `Altered` where the metadata are not what a reader lets through."""
    said = read_metadata(assignment.metas)
    if len(wrong := np.flatnonzero(said.form < 0)):
        found = parse_metadata(assignment.metas[int(wrong[0])].as_py())
        raise Altered(f"an assignment has metadata that no reader lets through ({found}); run the step again")
    formats = said.of_each(lambda m: m.sample_format, np.str_, "")
    return Waveforms(assignment, said, formats, assignment.sizes // said.of_each(lambda m: m.sample_bytes, np.int64))


def published_rows(waves: Waveforms, group: Group, metrics: MetricColumns, *, topic_id: str, plan_id: str) -> pa.Table:
    """The proven waveforms of a group, in order, as `published_schema` has them, but for their samples."""
    kept = group.waveforms
    a, measured = waves.assignment, metrics.taken(kept)
    least_time, greatest_time = (_timestamps(_within_calendar(t[kept]), "ms") for t in a.record_times())
    columns: dict[str, Any] = {
        "waveform_id": a.waveform_ids.take(pa.array(kept)),
        **from_metadata(waves.said.taken(kept), waves.sample_counts[kept]),
        "sample_count": waves.sample_counts[kept],
        "meta": a.metas.take(pa.array(kept)),
        "digest": group.digests,
        "sample_min": _ends(measured.least),
        "sample_max": _ends(measured.greatest),
        "nonfinite_count": measured.nonfinite,
        "chunk_count": np.diff(a.first)[kept],
        "chunks": _chunks(a, kept, topic_id),
        "topic_id": pa.repeat(pa.scalar(topic_id, pa.string()), len(kept)),
        "first_record_time": least_time,
        "last_record_time": greatest_time,
        "plan_id": pa.repeat(pa.scalar(plan_id, pa.string()), len(kept)),
    }
    return _table(columns, _WITHOUT_SAMPLES)


def from_metadata(said: MetadataColumns, counts: Ints) -> dict[str, Any]:
    """The columns of `FROM_METADATA`, of waveforms of so many samples."""
    lasts = said.start_ns + _lengths_ns(said, counts)
    found: dict[str, Any] = {
        "start_time": said.start_ns // 1000,
        "start_time_ns": said.start_ns,
        "end_time": lasts // 1000,
    }
    at = pa.array(said.form)
    for name, of in FROM_METADATA.items():
        if name not in found:
            kind = _WITHOUT_SAMPLES.field(name).type
            found[name] = pa.array([of(m, 0) for m in said.said], kind).take(at)
    return found


def _lengths_ns(said: MetadataColumns, counts: Ints) -> Ints:
    """From the first sample to the last one, by the rule of `Metadata`, of each form and number of samples once."""
    most = int(counts.max(initial=0)) + 1
    pairs, at = np.unique(said.form * most + counts, return_inverse=True)
    each = ((said.said[p // most], p % most) for p in pairs.tolist())
    # One from the least start to the latest end is 2^63 long: start and length come round to the end all the same.
    return np.array([(m.end_time_ns(n) - m.start_time_ns) % (1 << 64) for m, n in each], np.uint64).view(np.int64)[at]


def stitched_rows(
    waves: Waveforms, metrics: MetricColumns, *, rows: Ints, refused: Mapping[int, Refusal], file: str | None
) -> pa.Table:
    """One `STITCHED` row per waveform of the assignment; `rows` says where in `file` each is, and is negative of what
    was not written."""
    a, said = waves.assignment, waves.said
    low, high = metrics.in_units(waves.numbers(lambda m: m.baseline), waves.numbers(lambda m: m.adc_gain))
    rates, none, unwritten = waves.numbers(lambda m: m.sampling_rate_hz), np.isnan(metrics.least), rows < 0
    columns: dict[str, Any] = {
        "waveform_id": a.waveform_ids,
        "reason": _of_some(len(rows), {w: r.reason.value for w, r in refused.items()}),
        "evidence": _of_some(len(rows), {w: r.evidence for w, r in refused.items()}),
        "file": pa.array([file], pa.string()).take(pa.array(np.zeros(len(rows), np.int64), mask=unwritten)),
        "row": pa.array(rows, mask=unwritten),
        "day": pa.array((said.start_ns // _DAY_NS).astype(np.int32)).view(pa.date32()),
        "byte_length": a.sizes,
        "source": waves.texts(lambda m: m.source),
        "channel": waves.texts(lambda m: m.channel),
        "start_time": said.start_ns // 1000,
        "duration_s": waves.sample_counts / rates,
        "sampling_rate_hz": rates,
        "sample_format": waves.texts(lambda m: m.sample_format),
        "units": waves.texts(lambda m: m.units),
        "sample_count": waves.sample_counts,
        "nonfinite_count": pa.array(metrics.nonfinite, mask=metrics.nonfinite < 0),
        "sample_min": _ends(metrics.least),
        "sample_max": _ends(metrics.greatest),
        "physical_min": pa.array(low, mask=none),
        "physical_max": pa.array(high, mask=none),
        "chunk_count": np.diff(a.first),
    }
    return _table(columns, STITCHED)


def _of_some(count: int, texts: Mapping[int, str]) -> pa.Array:
    found = np.full(count, -1, np.int64)
    found[list(texts)] = np.arange(len(texts))
    return pa.array([*texts.values()], pa.string()).take(pa.array(found, mask=found < 0))


def _ends(found: npt.NDArray[np.float64]) -> pa.Array:
    return pa.array(found, mask=np.isnan(found))


def _within_calendar(times_ms: Ints) -> pa.Array:
    return pa.array(times_ms, mask=(times_ms < _LEAST_MS) | (times_ms >= _END_MS))


def _timestamps(times: pa.Array, unit: str) -> pa.Array:
    return times.view(pa.timestamp(unit, tz="UTC"))


def _table(columns: Mapping[str, Any], schema: Any) -> pa.Table:
    """Of each column an array of its type, or numbers and texts to be one."""
    return pa.table([_ready(columns[f.name], f.type) for f in schema], schema=schema)


def _ready(values: Any, kind: Any) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if pa.types.is_timestamp(kind):
        return _timestamps(pa.array(values, pa.int64()), kind.unit)
    return pa.array(values, kind)


def _column(values: Any, kind: Any) -> Any:
    if values.ndim == 1:
        return pa.array(values, kind)
    # Digests, one a row.
    ends = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
    return pa.BinaryArray.from_buffers(kind, len(values), [None, pa.py_buffer(ends), pa.py_buffer(values.tobytes())])


def _chunks(assignment: Assignment, kept: Ints, topic_id: str) -> Any:
    """Of what was held before the batch the topic may be another one than the batch's."""
    sizes = np.diff(assignment.first)[kept]
    ends = np.concatenate(([0], np.cumsum(sizes)))
    pieces = np.repeat(assignment.first[kept] - ends[:-1], sizes) + np.arange(ends[-1])
    topics = assignment.pieces["topic_id"].take(pa.array(pieces)).fill_null(topic_id)
    others = [_column(assignment.pieces[f.name][pieces], f.type) for f in CHUNK_STRUCT if f.name != "topic_id"]
    fields = [topics, *others]
    return pa.ListArray.from_arrays(
        pa.array(ends, pa.int32()),
        pa.StructArray.from_arrays(fields, fields=list(CHUNK_STRUCT)),
        type=_WITHOUT_SAMPLES.field("chunks").type,
    )
