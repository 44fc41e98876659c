"""Places of the log, as a set of coordinates that makes no object of each: those that a batch read, those of ranges.

Pure; decides nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import cast

import numpy as np

from wavestitch.contracts.assembly import Coordinate
from wavestitch.contracts.chunk_table import ChunkTable, Column
from wavestitch.contracts.offset_range import OffsetRange, joined
from wavestitch.contracts.quantities import Offset, Partition

Spans = dict[Partition, tuple[Offset, Offset]]
"""Offsets `[start, end)` by partition."""


class ReadPlaces(AbstractSet[Coordinate]):
    """Of all rows of a batch's index. `topic_id`: of the plan's own topic, which is the only one that it reads."""

    def __init__(self, topic_id: str, chunks: ChunkTable) -> None:
        self.topic_id = topic_id
        # In order, as nearly all are, they are cut where the partition changes, and each is there once.
        p, o = chunks.partition, chunks.offset
        if not chunks.is_in_order:
            order = np.lexsort((o, p))
            order = order[np.append(True, (np.diff(p[order]) != 0) | (np.diff(o[order]) != 0))[: len(order)]]
            p, o = p[order], o[order]
        first = np.flatnonzero(np.append(True, p[1:] != p[:-1])[: len(p)])
        self._offsets: dict[int, Column] = dict(zip(p[first].tolist(), np.split(o, first[1:]), strict=len(p) > 0))

    def __len__(self) -> int:
        return sum(map(len, self._offsets.values()))

    def __iter__(self) -> Iterator[Coordinate]:
        places = ((self.topic_id, p, o) for p, offsets in self._offsets.items() for o in offsets.tolist())
        return cast(Iterator[Coordinate], places)  # there may be a million

    def __contains__(self, place: object) -> bool:
        topic_id, partition, offset = place if isinstance(place, tuple) else ("", -1, -1)
        mine = self._offsets.get(partition)
        if mine is None or topic_id != self.topic_id:
            return False
        at = int(np.searchsorted(mine, offset))
        return at < len(mine) and bool(mine[at] == offset)

    def spans(self) -> Spans:
        return {
            Partition(p): (Offset(int(offsets[0])), Offset(int(offsets[-1]) + 1))
            for p, offsets in self._offsets.items()
        }


class RangePlaces(AbstractSet[Coordinate]):
    """All offsets of these ranges, which are not many."""

    def __init__(self, topic_id: str, ranges: Iterable[OffsetRange]) -> None:
        self.topic_id = topic_id
        self._ranges = joined(ranges)

    def __len__(self) -> int:
        return sum(r.size for r in self._ranges)

    def __iter__(self) -> Iterator[Coordinate]:
        return ((self.topic_id, r.partition, Offset(o)) for r in self._ranges for o in range(r.start, r.end))

    def __contains__(self, place: object) -> bool:
        topic_id, partition, offset = place if isinstance(place, tuple) else ("", -1, -1)
        at = bisect_right(self._ranges, (partition, offset), key=lambda r: (r.partition, r.start)) - 1
        inside = at >= 0 and self._ranges[at].partition == partition and offset < self._ranges[at].end
        return inside and topic_id == self.topic_id

    def spans(self) -> Spans:
        found: Spans = {}
        for r in self._ranges:
            start, end = found.get(r.partition, (r.start, r.end))
            found[r.partition] = min(start, r.start), max(end, r.end)
        return found


def spans_of(places: Collection[Coordinate]) -> tuple[set[str], Spans]:
    """The topics of these places, and by partition from the first to the last of their offsets."""
    if isinstance(places, ReadPlaces | RangePlaces):
        return {places.topic_id}, places.spans()
    found: Spans = {}
    for _, partition, offset in places:
        following = Offset(offset + 1)
        start, end = found.get(partition, (offset, following))
        found[partition] = min(start, offset), max(end, following)
    return {topic for topic, _, _ in places}, found
