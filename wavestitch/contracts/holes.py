"""Offsets that a slice did not deliver: found while reading, and explained or not. Keeps I8.

Without transactions every hole is a loss. With them, an offset without a record may be a transaction's marker, and
a record that only an uncommitted reader sees one of an aborted transaction. Kafka's clients do not show which, so it is
*inferred*. A single offset between two delivered records can be nothing but a marker that the reader passed; a longer
hole, and one at the end of the slice (where no record vouches that the reader was there), are read again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from wavestitch.contracts.errors import DataLost, Transient
from wavestitch.contracts.offset_range import OffsetRange

Interval = tuple[int, int]
"""Offsets `[start, end)`."""

MOST_ADJACENT_MARKERS = 64
"""So many transactions may end side by side in one partition; a longer run without any record counts as a loss."""


class HoleFinder:
    """Rising offsets in, the intervals between them out; memory grows with the holes, not with the records."""

    __slots__ = ("_expected", "_holes")

    def __init__(self, start: int) -> None:
        self._expected = start
        self._holes: list[Interval] = []

    def add(self, offset: int) -> None:
        if offset != self._expected:
            self._holes.append((self._expected, offset))
        self._expected = offset + 1

    def close(self, end: int) -> list[Interval]:
        """All holes before `end`."""
        return [*self._holes, (self._expected, end)] if self._expected < end else list(self._holes)


def doubtful_holes(holes: Sequence[Interval], *, end: int) -> list[Interval]:
    """The holes that must be read again before they can be believed."""
    return [(a, b) for a, b in holes if b == end or b - a > 1]


def explain_holes(
    holes: Sequence[Interval],
    *,
    topic: str,
    slice_: OffsetRange,
    transactional: bool,
    uncommitted: Mapping[Interval, Sequence[Interval]],
    committed: Collection[Interval],
) -> list[list[int]]:
    """The holes as a receipt keeps them. Raises `DataLost` naming offsets.

    `uncommitted`: per doubtful hole, the runs in it where even an uncommitted reader sees no record. `committed`:
    doubtful holes in which a second committed reader does see records (then the first one jumped: `Transient`).
    """
    if not holes:
        return []
    if not transactional:
        raise DataLost(
            f"topic {topic} {slice_}: offsets {_show(holes)} hold no record although the log still covers them; if "
            "the producers use transactions, set `transactional: true` in the stream's file, otherwise records are "
            "lost: look at the brokers, then rewind past them, naming the loss",
            topic=topic,
            partition=slice_.partition,
            offsets=[list(h) for h in holes[:100]],
        )
    if committed:
        raise Transient(
            f"topic {topic} {slice_}: offsets {_show(sorted(committed))} were skipped by the first reading and "
            "delivered by a second; nothing was kept, try again",
            topic=topic,
            partition=slice_.partition,
        )
    for hole in doubtful_holes(holes, end=slice_.end):
        runs = [r for r in uncommitted[hole] if r[1] - r[0] > MOST_ADJACENT_MARKERS]
        if runs:
            raise DataLost(
                f"topic {topic} {slice_}: offsets {_show(runs)} hold no record for any reader; at most "
                f"{MOST_ADJACENT_MARKERS} in a row can be transaction markers. Look at the brokers, then rewind past "
                "them, naming the loss",
                topic=topic,
                partition=slice_.partition,
                offsets=[list(r) for r in runs[:100]],
            )
    return [[a, b] for a, b in holes]


def lost_to_retention(*, topic: str, slice_: OffsetRange, position: int, log_start: int) -> DataLost:
    """The log begins behind what is still to be read: what was planned and not read before is gone."""
    end = min(log_start, slice_.end)
    return DataLost(
        f"topic {topic} partition {slice_.partition}: offsets [{position}, {end}) were deleted before they were read "
        f"(planned [{slice_.start}, {slice_.end}), the log now begins at {log_start}); lengthen the topic's retention "
        "or run batches more often, and rewind to where the log begins, naming the loss",
        topic=topic,
        partition=slice_.partition,
        offsets=[[position, end]],
        log_start=log_start,
    )


def _show(intervals: Sequence[Interval], most: int = 5) -> str:
    shown = ", ".join(f"[{a}, {b})" for a, b in intervals[:most])
    return shown if len(intervals) <= most else f"{shown} and {len(intervals) - most} more"
