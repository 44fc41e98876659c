"""Published files made at once instead of by thousands of batches: real Parquet of the real columns, tiny samples."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wavestitch.contracts.rows import CHUNK_STRUCT, published_schema
from wavestitch.contracts.sample_types import samples_list
from wavestitch.parquet.published_file import PublishedFile
from wavestitch.parquet.sample_pages import SamplePages, typed_samples

DAY = datetime(2026, 1, 1, tzinfo=UTC)
DAY_US = 86_400 * 10**6
_FIRST_US = int(DAY.timestamp() * 10**6)
_SCHEMA = published_schema("int")
_META = '{"adc_gain":200,"baseline":0,"channel":"II","sample_format":"i16le","sampling_rate_hz":1000}'


def published_table(ids: list[str], *, start_us: int, step_us: int, samples: list[bytes]) -> pa.Table:
    """One row an id, `step_us` apart from `start_us` after the first day's begin, one chunk each."""
    n = len(ids)
    offset = _FIRST_US + start_us
    starts = np.arange(offset, offset + n * step_us, step_us, dtype=np.int64)[:n]
    chunks = pa.StructArray.from_arrays(
        [
            pa.repeat("synthetic", n),
            pa.array(np.zeros(n, np.int32)),
            pa.array(np.arange(n, dtype=np.int64)),
            pa.array([len(s) for s in samples], pa.int32()),
            pa.array([hashlib.sha256(i.encode()).digest() for i in ids], pa.binary()),
        ],
        fields=list(CHUNK_STRUCT),
    )
    times = pa.array(starts).view(pa.timestamp("us", tz="UTC"))
    constant = {
        "source": "monitor-1",
        "channel": "II",
        "sampling_rate_hz": 1000.0,
        "sample_format": "i16le",
        "units": "mV",
        "adc_gain": 200.0,
        "baseline": 0.0,
        "meta": _META,
        "digest": "0" * 32,
        "sample_min": 0.0,
        "sample_max": 1.0,
        "nonfinite_count": 0,
        "chunk_count": 1,
        "topic_id": "synthetic",
        "plan_id": "0" * 32,
    }
    given: dict[str, Any] = {
        "waveform_id": pa.array(ids, pa.string()),
        "start_time": times,
        "start_time_ns": pa.array(starts * 1000),
        "end_time": times,
        "first_record_time": times,
        "last_record_time": times,
        "sample_count": pa.array([len(s) // 2 for s in samples], pa.int64()),
        "samples": _lists(samples),
        "chunks": pa.ListArray.from_arrays(
            pa.array(np.arange(n + 1, dtype=np.int32)), chunks, type=_SCHEMA.field("chunks").type
        ),
    }
    columns = [given[f.name] if f.name in given else pa.repeat(pa.scalar(constant[f.name], f.type), n) for f in _SCHEMA]
    return pa.table(columns, schema=_SCHEMA)


def write_published(path: Path, table: pa.Table, *, group_rows: int = 1 << 20) -> str:
    """As the stitching writes them. Returns the path as Iceberg names it."""
    with path.open("wb") as sink:
        file = PublishedFile(sink, SamplePages("int", "fast"))
        for start in range(0, len(table), group_rows):
            some = table.slice(start, group_rows).combine_chunks()
            file.write_group(some, typed_samples(some["samples"].combine_chunks()))
        file.close()
    return f"file://{path}"


def _lists(samples: list[bytes]) -> pa.Array:
    """16-bit samples as the table has them."""
    ends = np.cumsum([0, *(len(s) // 2 for s in samples)]).astype(np.int32)
    values = np.frombuffer(b"".join(samples), "<i2").astype("<i4")
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values), type=samples_list("int"))
