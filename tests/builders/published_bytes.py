"""What a table of waveforms gives back, as the bytes that a producer has sent: read on its own, not by the product's
conversion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from wavestitch.tables.read_waveforms import read_waveforms
from wavestitch.tables.stream_tables import StreamTables

_LETTERS = {"i16le": "<i2", "i32le": "<i4", "i64le": "<i8", "f32le": "<f4", "f64le": "<f8"}


def bytes_of(samples: Any, sample_format: str) -> bytes:
    """Of one row's samples, as Arrow has them."""
    return samples.values.to_numpy(zero_copy_only=False).astype(_LETTERS[sample_format]).tobytes()


def rows_with_bytes(found: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows as dictionaries, `samples` as the bytes that were sent. Needs `sample_format`."""
    for n, row in enumerate(found.drop_columns(["samples"]).to_pylist()):
        yield {**row, "samples": bytes_of(found["samples"][n], row["sample_format"])}


def published_bytes(tables: StreamTables) -> list[tuple[str, bytes]]:
    """Id and bytes of every row."""
    found = read_waveforms(tables, columns=["waveform_id", "sample_format", "samples"])
    return [(r["waveform_id"], r["samples"]) for r in rows_with_bytes(found)]
