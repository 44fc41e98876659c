"""What a batch's index says of chunks: as landing lands their records, and as the index is read again; held chunks."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from consumers.pending_rows import PendingRows
from tests.builders.records import Letter, letter, metadata
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.chunk_header import Chunk, parse_chunk
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.reasons import Reason

NOON = 1_767_614_400_000
"""When waveforms of tests start, and what time their records have, unless a test says another."""


def make_chunk(
    waveform_id: str = "w",
    seq: int = 0,
    value: bytes = b"\1\0\2\0",
    *,
    count: int | None = 2,
    meta: bytes | None = None,
    digest: str | None = None,
    at: tuple[int, int] = (0, 0),
    time_ms: int = NOON,
    **index: Any,
) -> ChunkFacts:
    """A chunk at a place (partition and offset). `index`: what the index adds, such as `carried`, `file`, `row`."""
    record = letter(waveform_id, seq, value, meta=metadata(NOON) if meta is None else meta, count=count, digest=digest)
    return index_record(record, at=at, time_ms=time_ms)._replace(**index)


def index_record(record: Letter, *, at: tuple[int, int] = (0, 0), time_ms: int = NOON) -> ChunkFacts:
    """The same of any record, also of one that is no chunk."""
    partition, offset = at
    rows = _rows(partition)
    rows.clear()
    found = parse_chunk(record.key, record.headers, record.value)
    if isinstance(found, Chunk):
        rows.add_chunk(Offset(offset), time_ms, found, record.value or b"")
    else:
        rows.add_rejection(Offset(offset), time_ms, found, key=record.key, headers=record.headers, value=record.value)
    (row,) = rows.to_batch().to_pylist()
    return ChunkFacts(**{name: row[name] for name in ChunkFacts._fields if name in row})


@lru_cache
def _rows(partition: int) -> PendingRows:
    """Made once: it has room for a whole record batch."""
    return PendingRows(Partition(partition))


def make_held(chunk: ChunkFacts, reason: Reason = Reason.OPEN, **changes: Any) -> HeldChunk:
    """Held for this, since the first decision."""
    known: dict[str, Any] = {"evidence": "why", "decision": "d", "sequence": 1}
    return HeldChunk(chunk._replace(carried=True), reason, **{**known, **changes})
