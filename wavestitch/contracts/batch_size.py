"""How many offsets a batch may cover, so that what they hold stays within its bytes (I5).

An estimate, no promise: the reader counts what it stores and stops at its share of the budget. What it had seen then
teaches the next plan, so that the stream gets on however far the estimate was off. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wavestitch.contracts.offset_range import OffsetRange, Unit, without
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import Limits
from wavestitch.contracts.versioned import Versioned

OVER_BUDGET = "limits.max_batch_bytes"
"""The fact `over` of a refusal that a reader makes at its budget."""
INGEST = "ingest"
BACKFILL = "backfill"
RECORD_HEADERS = 256
"""What a chunk's record brings beside value and metadata, and its rows take."""
METADATA_WEIGHT = 16
"""Each text of metadata counts so often where it comes first: it is in memory until the commit, and payload is not."""
_BYTES_A_START, _RECORDS_A_START = 32 << 20, 20_000
"""What reading takes as long for as a reader's start."""
_FILL = 0.8
"""Of the budget: records differ, and a reader that stops has read for nothing."""


@dataclass(frozen=True, slots=True)
class ReaderStop:
    """What a reader had seen when it stopped at its budget: of `unit`, `records` of `offsets`, `bytes` as stored.

    `kind`, `ranges`: what the whole plan read, and `planned` its offsets; `limit`: the bytes it was allowed, for all of
    it. `positions`: where the stream stood, by partition.
    """

    plan_id: str
    kind: str
    ranges: tuple[OffsetRange, ...]
    limit: int
    unit: int
    records: int
    offsets: int
    bytes: int
    planned: int
    positions: dict[Partition, Offset]

    @property
    def mean(self) -> float:
        return self.bytes / max(self.records, 1)


READER_STOP = Versioned(ReaderStop, "what a stopped reader had seen", "remove that file")


def worth_starting(records: int, size: int) -> int:
    """How many readers so many records of so many bytes are worth, at least one: starting one costs as much as reading
    some ten thousand records, or some ten MiB."""
    return 1 + max(size // _BYTES_A_START, records // _RECORDS_A_START)


def stops_of(stops: Iterable[ReaderStop], *, kind: str, wanted: Sequence[OffsetRange]) -> list[ReaderStop]:
    """Those that say something of a plan of this kind over what is wanted: its own kind's, over offsets of it.

    An ingest's begin where it begins; of a backfill, those that it is about to read again; of any other plan, only the
    very same ranges are the same records.
    """
    if kind == INGEST:
        starts = {(r.partition, r.start) for r in wanted}
        return [s for s in stops if s.kind == kind and starts.issuperset((r.partition, r.start) for r in s.ranges)]
    if kind == BACKFILL:
        return [s for s in stops if s.kind == kind and not without(s.ranges, wanted)]
    return [s for s in stops if s.kind == kind and set(s.ranges) == set(wanted)]


def batch_offsets(limits: Limits, *, mean: float, stops: Iterable[ReaderStop]) -> int:
    """Offsets that a batch may cover. `stops`: those that say something of it (`stops_of`).

    Each stop of an ingest allows at most half of what was planned, and no more than what it saw would fill: one offset
    in the end, and of one record every budget has room (`Limits`). A plan that names what it reads cannot be halved:
    of its stops the mean counts alone, so that a raised limit is believed.
    """
    stopped = list(stops)
    largest = max([mean, *(s.mean for s in stopped), 1.0])
    halves = [s.planned // 2 for s in stopped if s.kind == INGEST and s.limit >= limits.max_batch_bytes]
    return max(1, min([limits.max_batch_records, int(limits.max_batch_bytes * _FILL / largest), *halves]))


def needed_bytes(offsets: int, *, mean: float) -> int:
    """The least `max_batch_bytes` under which `batch_offsets` allows so many."""
    return math.ceil((offsets + 1) * max(mean, 1.0) / _FILL)


def unit_budget(limits: Limits, unit: Unit, *, planned: int) -> int:
    """Bytes that the reader of this unit may store: its share of the batch's, by offsets."""
    return max(1, limits.max_batch_bytes * sum(r.size for r in unit) // max(planned, 1))
