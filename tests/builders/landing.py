"""Landing files of tests: records, parsed and landed as the slice reader does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from consumers.landing import LandingWriter
from wavestitch.contracts.chunk_header import Chunk, parse_chunk
from wavestitch.contracts.holes import Hole
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.receipt import LandedSlice
from wavestitch.payload_store import BatchPayload


class AnyRecord(Protocol):
    """What is sent and what is read alike."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...
    @property
    def value(self) -> bytes | None: ...


def land_records(
    folder: Path,
    slice_: OffsetRange,
    records: Iterable[tuple[int, int, AnyRecord]],
    *,
    holes: Sequence[Hole] = (),
    payload: BatchPayload | None = None,
) -> LandedSlice:
    """`records`: each with its offset and record time (ms)."""
    with LandingWriter(folder, slice_, payload=payload) as writer:
        for offset, time_ms, r in records:
            found = parse_chunk(r.key, r.headers, r.value)
            if isinstance(found, Chunk):
                writer.add_chunk(Offset(offset), time_ms, found, r.value or b"")
            else:
                writer.add_rejection(Offset(offset), time_ms, found, key=r.key, headers=list(r.headers), value=r.value)
        return writer.finish(list(holes))
