"""Held records that are no chunks, made at once instead of by a flood: real files of the real columns.

Offsets lie far from whatever a batch reads, as those of a flood that is over do; all else is as a batch or a compaction
would have written it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from wavestitch.contracts.ports import HeldStaging
from wavestitch.contracts.position import HeadKind
from wavestitch.contracts.quantities import epoch_ms
from wavestitch.contracts.reasons import Reason
from wavestitch.tables.commit.table_layout import HELD
from wavestitch.tables.held.held_staging import stage_rows
from wavestitch.tables.stream_tables import StreamTables

_REASONS = (Reason.NOT_A_CHUNK, Reason.NOT_A_CHUNK, Reason.NULL_VALUE, Reason.BAD_HEADER)
_FAR = 1 << 40
_VALUE = b"a line of somebody's log file\n"
_PARTITIONS = 4


def hold_junk(tables: StreamTables, *, topic_id: str, rows: int, file_rows: int, held_ms: int) -> int:
    """One head that names so many rows more, in files of `file_rows`; returns how many files. Every tenth row has its
    bytes: the quota was reached early."""
    head = tables.head()
    if head is None:
        raise RuntimeError("there is no head yet")
    files = rows // file_rows
    counts: dict[str, int] = dict(head.held.counts) if head.held is not None else {}
    chunk_bytes = head.held.chunk_bytes if head.held is not None else 0
    for n in range(files):
        reason = _REASONS[n % len(_REASONS)].value
        counts[reason] = counts.get(reason, 0) + file_rows
    name = hashlib.sha256(f"{rows} {file_rows}".encode()).hexdigest()[:32]

    def encode() -> Iterator[tuple[str, list[pa.RecordBatch]]]:
        for n in range(files):
            yield "", [_junk(n * file_rows, file_rows, _REASONS[n % len(_REASONS)], topic_id, head.sequence, held_ms)]

    staging = HeldStaging(
        "0" * 32, name, head.generation, head.sequence + 1, counts, chunk_bytes, clock_ms=epoch_ms(held_ms)
    )
    mark = stage_rows(tables.stored()[1], head.held, encode, staging)
    tables.commit(head, head.next(kind=HeadKind.MAINTENANCE, held=mark, note="junk for a benchmark"), [])
    tables.settle_held()
    return files


def _junk(first: int, rows: int, reason: Reason, topic_id: str, sequence: int, held_ms: int) -> pa.RecordBatch:
    numbers = np.arange(first, first + rows, dtype=np.int64)
    partitions = ((numbers * _PARTITIONS) // max(1, rows) % _PARTITIONS).astype(np.int32)
    stored = numbers % 10 == 0
    digests = np.random.default_rng(first).bytes(32 * rows)
    value = None if reason is Reason.NULL_VALUE else _VALUE
    constant = {
        "topic_id": topic_id,
        "crc": 0,
        "length": len(value or b""),
        "record_reason": reason.value,
        "evidence_of_record": "no ws-version header; a chunk has the headers of the chunk contract",
        "reason": reason.value,
        "evidence": "no ws-version header; a chunk has the headers of the chunk contract",
        "decision": "0" * 32,
        "sequence": sequence,
        "plan_id": "0" * 32,
        "proof": "none",
        "held_ms": held_ms,
    }
    given = {
        "partition": pa.array(partitions),
        "offset": pa.array(numbers + _FAR),
        "timestamp_ms": pa.array(numbers + held_ms),
        "piece": pa.array([digests[32 * n : 32 * (n + 1)] for n in range(rows)], pa.binary()),
        "raw_headers": pa.array([b"" if s else None for s in stored], pa.binary()),
        "payload": pa.array([value if s else None for s in stored], pa.binary()),
        "stored": pa.array(stored),
    }
    columns = [
        given[f.name].cast(f.type) if f.name in given else pa.repeat(pa.scalar(constant.get(f.name), f.type), rows)
        for f in HELD
    ]
    return pa.record_batch(columns, schema=HELD)
