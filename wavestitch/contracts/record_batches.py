"""What the broker's own record batches say of offsets: which it covers, who wrote it, whether it is a control batch.

Kafka's clients hide all of that; a raw fetch shows it. Pure values, the same for a real log and one in memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import NamedTuple, Protocol

from wavestitch.contracts.quantities import LeaderEpoch, Offset
from wavestitch.contracts.written import NO_EPOCH


class Control(StrEnum):
    """What a control batch says. `other`: one of a kind that brokers write for themselves."""

    COMMIT = "commit"
    ABORT = "abort"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """The head of one record batch, which covers the offsets `[start, end)`.

    `missing`: those of them that have no record in it (a cleaner took it out), empty for a whole one. `producer_id`: -1
    where the producer has none. `control`: None where it holds records. `leader_epoch`: in which it was written.
    """

    start: Offset
    end: Offset
    producer_id: int
    transactional: bool
    control: Control | None
    missing: Collection[int] = ()
    leader_epoch: LeaderEpoch = NO_EPOCH


class AllBut(Collection[int]):
    """The offsets `[start, end)` but for some, which are given rising: memory grows with the gaps alone."""

    __slots__ = ("_gaps",)

    def __init__(self, start: int, end: int, present: Iterable[int]) -> None:
        self._gaps: list[range] = []
        expected = start
        for offset in present:
            if offset > expected:
                self._gaps.append(range(expected, offset))
            expected = offset + 1
        if expected < end:
            self._gaps.append(range(expected, end))

    def __contains__(self, offset: object) -> bool:
        if not isinstance(offset, int):
            return False
        at = bisect_right(self._gaps, offset, key=lambda gap: gap.start)
        return at > 0 and offset in self._gaps[at - 1]

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._gaps)

    def __len__(self) -> int:
        return sum(len(gap) for gap in self._gaps)


class AbortedTransaction(NamedTuple):
    """A transaction that was aborted: whose, and its first offset in the partition."""

    producer_id: int
    first_offset: Offset


@dataclass(frozen=True, slots=True)
class RawFetch:
    """Whole batches in order, the first one the one that holds the offset that was asked for, or else the next one;
    and every aborted transaction that reaches into them."""

    batches: Sequence[RecordBatch]
    aborted: Sequence[AbortedTransaction]


class FetchRaw(Protocol):
    """Where raw batches come from: one partition of a log, as far as committed readers may see it."""

    def __call__(self, offset: Offset, most_bytes: int, /) -> RawFetch:
        """At least one whole batch at or behind `offset`, unless the log ends before it; else about `most_bytes`."""


def told_apart(
    batches: Sequence[RecordBatch], aborted: Sequence[AbortedTransaction]
) -> Iterator[tuple[RecordBatch, bool]]:
    """Each batch of one fetch, and whether its records were aborted: as Kafka's own consumer tells it."""
    begun = sorted(aborted, key=lambda t: t.first_offset, reverse=True)
    aborting: set[int] = set()
    for batch in batches:
        while begun and begun[-1].first_offset < batch.end:
            aborting.add(begun.pop().producer_id)
        if batch.control is Control.ABORT:
            aborting.discard(batch.producer_id)
        yield batch, batch.control is None and batch.transactional and batch.producer_id in aborting
