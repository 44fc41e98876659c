"""In which leader epochs a log was written, by runs of offsets.

An offset is one record within an epoch: where an election cuts a log off, another one takes its offset, in a later one.
So both together say which record it was that somebody has read, unless brokers were put back from a backup, which use
epochs again (docs/guarantees.md). Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wavestitch.contracts.quantities import LeaderEpoch, Offset

NO_EPOCH = LeaderEpoch(-1)
"""Where the broker gave none."""


class Written(NamedTuple):
    """What lies from this offset on, up to where the next run begins, was written in this leader epoch."""

    start: Offset
    epoch: LeaderEpoch


class WrittenHole(NamedTuple):
    """Offsets `[start, end)` without a record, and when what proves that was written."""

    start: Offset
    end: Offset
    epoch: LeaderEpoch


def epoch_of(given: int | None) -> LeaderEpoch:
    """As a client or a batch gives it."""
    return NO_EPOCH if given is None or given < 0 else LeaderEpoch(given)


def runs_of(found: Iterable[Written]) -> list[Written]:
    """Of these, in order, each that is of another epoch than the one before it."""
    runs: list[Written] = []
    for one in found:
        if not runs or runs[-1].epoch != one.epoch:
            runs.append(one)
    return runs


def beside_holes(records: Sequence[Written], holes: Sequence[WrittenHole], end: Offset) -> list[Written]:
    """Of what was read up to `end`, records and holes; each in order."""
    edges = sorted({r.start for r in records} | {e for h in holes for e in (h.start, h.end) if e < end})
    starts = [h.start for h in holes]

    def epoch(edge: Offset) -> LeaderEpoch:
        n = bisect_right(starts, edge)
        return holes[n - 1].epoch if n and edge < holes[n - 1].end else epoch_at(records, edge)

    return runs_of(Written(edge, epoch(edge)) for edge in edges)


def epoch_at(runs: Sequence[Written], offset: Offset) -> LeaderEpoch:
    """Of what was read at an offset."""
    n = bisect_right(runs, offset, key=lambda run: run.start)
    return runs[n - 1].epoch if n else NO_EPOCH
