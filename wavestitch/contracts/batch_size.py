"""How many offsets a batch may cover, so that what they hold stays within its bytes (I5).

An estimate, no promise: the reader counts what it stores and stops at its share of the budget. What it had seen then
teaches the next plan, so that the stream gets on however far the estimate was off. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wavestitch.contracts.offset_range import Unit
from wavestitch.contracts.stream import Limits
from wavestitch.contracts.versioned import Versioned

RECORD_HEADERS = 256
"""What a chunk's record brings beside value and metadata, and its rows take."""
_FILL = 0.8
"""Of the budget: records differ, and a reader that stops has read for nothing."""


@dataclass(frozen=True, slots=True)
class ReaderStop:
    """What a reader had seen when it stopped at its budget: of `unit`, `records` of `offsets`, `bytes` as stored.

    `planned`: offsets of the whole plan; `positions`: where the stream stood, by partition.
    """

    plan_id: str
    unit: int
    records: int
    offsets: int
    bytes: int
    planned: int
    positions: dict[int, int]

    @property
    def mean(self) -> float:
        return self.bytes / max(self.records, 1)


READER_STOP = Versioned(ReaderStop, "what a stopped reader had seen", "remove that file")


def batch_offsets(limits: Limits, *, mean: float, stops: Iterable[ReaderStop]) -> int:
    """Offsets that a batch may cover. `stops`: of earlier plans from where the stream stands now.

    Each stop allows at most half of what was planned, and no more than what it saw would fill: one offset in the end,
    and of one record every budget has room (`Limits`).
    """
    stopped = list(stops)
    largest = max([mean, *(s.mean for s in stopped), 1.0])
    fits = [limits.max_batch_records, int(limits.max_batch_bytes * _FILL / largest), *(s.planned // 2 for s in stopped)]
    return max(1, min(fits))


def unit_budget(limits: Limits, unit: Unit, *, planned: int) -> int:
    """Bytes that the reader of this unit may store: its share of the batch's, by offsets."""
    return max(1, limits.max_batch_bytes * sum(r.size for r in unit) // max(planned, 1))
