"""Chunks that are sent to the log in memory, by a producer that keeps the contract."""

from __future__ import annotations

from tests.builders.records import letter, metadata
from tests.fakes.fake_log import FakeLog
from tests.fakes.kept_partition import Visibility
from wavestitch.contracts.quantities import Partition


def send_chunk(
    log: FakeLog,
    waveform_id: str,
    seq: int = 0,
    value: bytes = b"\1\0",
    *,
    at_ms: int,
    start_ms: int | None = None,
    count: int | None = 1,
    partition: int = 0,
    meta: bytes | None = None,
    digest: str | None = None,
    seen: Visibility = Visibility.COMMITTED,
) -> None:
    """`at_ms`: the record's time, and when its waveform starts, unless another start is given."""
    said = metadata(at_ms if start_ms is None else start_ms) if meta is None else meta
    log.append(
        Partition(partition), at_ms, *letter(waveform_id, seq, value, meta=said, count=count, digest=digest), seen
    )
