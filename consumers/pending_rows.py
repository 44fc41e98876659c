"""The rows of one record batch while they are collected: payload in one buffer, the rest in a list a column.

Memory is bounded by `BATCH_BYTES` and `BATCH_ROWS` plus the one record that fills it. Pure; writing is `landing`'s.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, islice
from operator import add
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from consumers.arrow_columns import ends_to_offsets, to_column, validity_of
from wavestitch.contracts.chunk_columns import ChunkColumns
from wavestitch.contracts.chunk_header import Chunk, Rejection, crc32, record_digest
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.raw_headers import encode_raw_headers
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.rows import LANDING, texts_once

BATCH_BYTES = 4 << 20
BATCH_ROWS = 1 << 16
"""Records without payload must not pile up, either."""

_COLUMNS = [n for n in LANDING.names if n not in ("partition", "meta_row", "payload")]
_ROW_TYPES = [LANDING.field(n).type for n in _COLUMNS]
_META = _COLUMNS.index("meta")

RawHeaders = Sequence[tuple[str, bytes | None]]


class RowRun(NamedTuple):
    """Rows of chunks by column, their payloads, and what all up to each of them take, as `PendingRows.size` counts
    it."""

    columns: tuple[Sequence[Any], ...]
    values: Sequence[bytes]
    reach: list[int]

    @classmethod
    def of(cls, offsets: Sequence[int], times_ms: Sequence[int], chunks: ChunkColumns, values: Sequence[Any]) -> RowRun:
        nothing = [None] * len(values)
        sizes = map(add, chunks.lengths, map(add, map(len, chunks.metas), map(len, chunks.waveform_ids)))
        return cls((offsets, times_ms, *chunks, *[nothing] * 4), values, list(accumulate(sizes)))


class PendingRows:
    """Rows in, one Arrow record batch out. `size`: payload bytes and other variable bytes that wait, metadata as often
    as they came: so what reads a record batch is bounded, too, although they are stored once."""

    __slots__ = ("_aside", "_columns", "_ends", "_nulls", "_partition", "_payload", "_used")

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._columns: list[list[Any]]
        self._payload = bytearray(BATCH_BYTES)
        self._used = 0
        self._aside = 0
        self.clear()

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def size(self) -> int:
        return self._used + self._aside

    @property
    def is_full(self) -> bool:
        return self._used + self._aside >= BATCH_BYTES or len(self) >= BATCH_ROWS

    def add_chunk(self, offset: Offset, timestamp_ms: int, chunk: Chunk, value: bytes) -> bool:
        """Whether it is full now."""
        self._add_row((offset, timestamp_ms, *chunk, None, None, None, None))
        self._aside += len(chunk.meta) + len(chunk.waveform_id)
        begin = self._used
        # Copied at once, while the bytes are in the processor's cache; the buffer grows where a record does not fit.
        self._used = end = begin + len(value)
        self._payload[begin:end] = value
        self._ends.append(end)
        return end + self._aside >= BATCH_BYTES or len(self._ends) >= BATCH_ROWS

    def add_run(self, run: RowRun, begin: int) -> int:
        """Add the rows of a run from `begin` on, until they end or it is full; which one is next."""
        before = run.reach[begin - 1] if begin else 0
        fills = bisect_left(run.reach, before + BATCH_BYTES - self.size, begin)
        end = min(fills + 1, len(run.values), begin + BATCH_ROWS - len(self))
        for column, more in zip(self._columns, run.columns, strict=True):
            column.extend(more[begin:end])
        together = b"".join(run.values[begin:end])
        self._ends += islice(accumulate(map(len, run.values[begin:end]), initial=self._used), 1, None)
        self._aside += run.reach[end - 1] - before - len(together)
        self._payload[self._used : self._ends[-1]] = together
        self._used = self._ends[-1]
        return end

    def add_rejection(
        self,
        offset: Offset,
        timestamp_ms: int,
        rejection: Rejection,
        *,
        key: bytes | None,
        headers: RawHeaders | None,
        value: bytes | None,
    ) -> None:
        raw = None if headers is None else encode_raw_headers(headers)
        crc = crc32(value) & 0xFFFFFFFF if value else 0
        piece = record_digest(key, headers, value)
        kept = len(key or b"") + len(raw or b"") + len(value or b"")
        claims = (rejection.waveform_id, rejection.seq, None, crc, kept, None, None, piece)
        self._add_row((offset, timestamp_ms, *claims, rejection.reason.value, rejection.evidence, key, raw))
        self._aside += len(key or b"") + len(raw or b"") + len(rejection.evidence)
        if value is None:
            self._nulls.append(len(self))
        self._append(value or b"")

    def to_batch(self) -> pa.RecordBatch:
        """A record batch over this object's own buffer: to be written and dropped before the next row is added.

        A row that no column can hold becomes one that is held by its coordinates: one record stops nothing.
        """
        try:
            return self._build()
        except (ArithmeticError, ValueError, TypeError):
            rows = zip(*self._columns, strict=True)
            fitting = [row if (why := _misfit(row)) is None else _held_row(row, why) for row in rows]
            self._columns = list(map(list, zip(*fitting, strict=True)))
            return self._build()

    def _build(self) -> pa.RecordBatch:
        rows, columns = len(self), list[Sequence[Any]](self._columns)
        columns[_META], meta_rows = texts_once(columns[_META])
        arrays = [to_column(values, type_) for values, type_ in zip(columns, _ROW_TYPES, strict=True)]
        arrays.insert(_META + 1, to_column(meta_rows, pa.int32()))
        validity, nulls = (None, 0)
        if self._nulls:
            missing = set(self._nulls)
            validity, nulls = validity_of([i not in missing for i in range(rows)])
        payload = pa.py_buffer(memoryview(self._payload)[: self._used])
        values = pa.Array.from_buffers(pa.binary(), rows, [validity, ends_to_offsets(self._ends), payload], nulls)
        partition = pa.Array.from_buffers(
            pa.int32(), rows, [None, pa.py_buffer(np.full(rows, self._partition, np.int32))], 0
        )
        return pa.RecordBatch.from_arrays([partition, *arrays, values], schema=LANDING)

    def clear(self) -> None:
        self._columns = [[] for _ in _COLUMNS]
        self._ends: list[int] = []
        self._nulls: list[int] = []
        self._used = 0
        self._aside = 0
        if len(self._payload) > 2 * BATCH_BYTES:
            self._payload = bytearray(BATCH_BYTES)  # one huge record must not cost memory for the rest of the slice

    def _add_row(self, row: tuple[Any, ...]) -> None:
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)

    def _append(self, value: bytes) -> None:
        end = self._used + len(value)
        self._payload[self._used : end] = value
        self._used = end
        self._ends.append(end)


def _misfit(row: tuple[Any, ...]) -> str | None:
    """Which column cannot hold the row's value."""
    for name, value, type_ in zip(_COLUMNS, row, _ROW_TYPES, strict=True):
        try:
            to_column([value], type_)
        except (ArithmeticError, ValueError, TypeError) as error:
            return f"its {name} cannot be stored: {type(error).__name__}"
    return None


def _held_row(row: tuple[Any, ...], why: str) -> tuple[Any, ...]:
    """Of what the row said, its offset, its length, the CRC and the digest of what it is."""
    kept = dict(zip(_COLUMNS, row, strict=True))
    new = dict.fromkeys(_COLUMNS)
    new |= {name: kept[name] for name in ("offset", "crc", "length", "piece")}
    return tuple((new | {"timestamp_ms": 0, "reason": Reason.UNREADABLE.value, "evidence": why}).values())
