"""A transaction that has not ended, and what of a partition waits behind it: no batch may read it yet. Pure.

It is unread all the same, and retention takes it all the same: Kafka deletes up to the high watermark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wavestitch.contracts.quantities import Milliseconds, Offset, Partition
from wavestitch.contracts.rewind_preview import length

LONG = Milliseconds(60_000)
"""As long as a producer's transaction may take by default; one that is younger is a producer at work."""
WAY_OUT = "its producer has to commit or to time out; look for it with kafka-transactions.sh find-hanging"
_MOST = 8


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """`age_ms`: how long ago the newest record up to its first one was written; None where no record has a time."""

    partition: Partition
    stable_end: Offset
    high_watermark: Offset
    age_ms: Milliseconds | None = None

    @property
    def waiting(self) -> int:
        return self.high_watermark - self.stable_end

    @property
    def said(self) -> str:
        since = "" if self.age_ms is None else f", open for {length(self.age_ms / 1000)}"
        return f"partition {self.partition} ({self.waiting} offsets from {self.stable_end} on{since})"


def said_of_open(topic: str, found: Sequence[OpenTransaction]) -> tuple[str, ...]:
    """A sentence for each partition; of many, one for those behind the first few."""
    said = [f"topic {topic} {t.said}: an open transaction keeps it from being read; {WAY_OUT}" for t in found[:_MOST]]
    rest = ", ".join(str(t.partition) for t in found[_MOST:])
    return (*said, *([f"topic {topic}: so it is in partitions {rest}"] if rest else []))
