"""One partition of the log in memory: its records, who may see them, and the epochs in which they were written."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum

from wavestitch.contracts.position import LastBatch
from wavestitch.contracts.quantities import EpochMs, LeaderEpoch, Offset, Partition
from wavestitch.contracts.record_batches import Control

Headers = tuple[tuple[str, bytes | None], ...]


class Visibility(StrEnum):
    COMMITTED = "committed"
    OPEN = "open"
    ABORTED = "aborted"
    MARKER = "marker"
    GONE = "gone"
    """There for nobody: cleaned away, or lost by a broker."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record as a consumer gets it; a marker has neither key nor value."""

    topic_id: str
    partition: Partition
    offset: Offset
    timestamp_ms: int
    key: bytes | None
    headers: Headers
    value: bytes | None

    @property
    def coordinate(self) -> tuple[str, Partition, Offset]:
        return self.topic_id, self.partition, self.offset


_BEGINNING = Offset(0)


@dataclass
class KeptPartition:
    records: list[Record] = field(default_factory=list)
    seen: list[Visibility] = field(default_factory=list)
    heads: list[tuple[int, Control | None]] = field(default_factory=list)
    """Per offset the producer's id, -1 outside of transactions, and what a control batch says."""
    begins: dict[int, Offset] = field(default_factory=dict)
    """By producer, its first offset."""
    open: set[Offset] = field(default_factory=set)
    """Offsets of transactions that have not ended."""
    log_start: Offset = _BEGINNING
    epoch: int = 0
    epochs: list[int] = field(default_factory=list)
    """The leader epoch in which each record was written."""
    cuts: list[tuple[int, Offset]] = field(default_factory=list)
    """Epochs that ended by an unclean election, and where the log was cut off then."""
    cut_off: list[tuple[Record, Visibility, int, int]] = field(default_factory=list)
    """With the leader epochs in which it was written, and after which it was there no more."""

    @property
    def end(self) -> Offset:
        return Offset(len(self.records))

    @property
    def stable_end(self) -> Offset:
        return max(self.log_start, min(self.open, default=self.end))

    def end_of_epoch(self, epoch: int) -> Offset:
        """Where what was written up to this epoch ends today; of what retention took the log knows no epoch."""
        later = next((Offset(o) for o, written in enumerate(self.epochs) if written > epoch), self.end)
        return max(self.log_start, min([later, *(at for cut, at in self.cuts if cut >= epoch)]))

    def time_at(self, offset: Offset) -> EpochMs | None:
        there = range(offset, self.end) if offset >= self.log_start else ()
        return next((EpochMs(self.records[o].timestamp_ms) for o in there if self.seen[o] is not Visibility.GONE), None)

    def batch_at(self, offset: Offset) -> LastBatch | None:
        """Which here is one record; the same one in the same epoch is the same."""
        if not self.log_start <= offset < self.end or self.seen[offset] is Visibility.GONE:
            return None
        said = self.records[offset], self.heads[offset]
        return LastBatch(LeaderEpoch(self.epochs[offset]), hashlib.sha256(repr(said).encode()).hexdigest()[:32])


def stored_size(record: Record) -> int:
    """What a record takes: key, headers and value."""
    headers = sum(len(name.encode()) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + headers + len(record.value or b"")
