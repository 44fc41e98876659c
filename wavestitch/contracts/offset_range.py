"""Half-open offset ranges, how they are cut into slices, and how slices are packed into units of work.

Pure arithmetic. Keeps I1: whatever is cut or packed, the union is the input, without gap or overlap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple


class OffsetRange(NamedTuple):
    """`[start, end)` of one partition."""

    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start

    def cut(self, within: OffsetRange) -> OffsetRange:
        """What of it lies in another range of its partition; empty where nothing does."""
        start = min(max(self.start, within.start), within.end)
        return OffsetRange(self.partition, start, max(start, min(self.end, within.end)))

    def __str__(self) -> str:
        return f"partition {self.partition} [{self.start}, {self.end})"


_PLACE = re.compile(r"(?:([^:]*):)?([0-9]{1,9}):([0-9]{1,18})")


def parse_place(text: str) -> tuple[str, int, int] | None:
    """`[TOPICID:]PARTITION:OFFSET`, the topic id empty where none is named; None for anything else."""
    found = _PLACE.fullmatch(text)
    return (found[1] or "", int(found[2]), int(found[3])) if found else None


Unit = tuple[OffsetRange, ...]
"""Slices that one consumer run reads one after another."""


def without(ranges: Iterable[OffsetRange], gone: Sequence[OffsetRange]) -> list[OffsetRange]:
    """What is left of these ranges, in order."""
    left: list[OffsetRange] = []
    for r in sorted(ranges):
        start = r.start
        for hole in sorted(gone):
            if hole.partition == r.partition and start < hole.end and hole.start < r.end:
                if start < hole.start:
                    left.append(OffsetRange(r.partition, start, hole.start))
                start = hole.end
        if start < r.end:
            left.append(OffsetRange(r.partition, start, r.end))
    return left


def bound_ranges(backlog: Sequence[OffsetRange], *, max_records: int) -> list[OffsetRange]:
    """The first part of each range, together at most `max_records` offsets, shared out fairly.

    Small backlogs are taken whole and what they leave goes to the others; empty ranges are dropped.
    """
    left = max_records
    bounded = []
    waiting = sorted((r for r in backlog if r.size > 0), key=lambda r: (r.size, r.partition))
    for i, r in enumerate(waiting):
        take = min(r.size, left // (len(waiting) - i))
        left -= take
        if take > 0:
            bounded.append(OffsetRange(r.partition, r.start, r.start + take))
    return sorted(bounded)


def cut_slices(ranges: Sequence[OffsetRange], *, workers: int, min_slice: int) -> list[OffsetRange]:
    """Ranges cut so that `workers` can read side by side; no slice below `min_slice` offsets unless a range is.

    Where there are at least as many ranges as workers, nothing is cut: more slices would only split waveforms.
    """
    if not ranges or len(ranges) >= workers:
        return list(ranges)
    total = sum(r.size for r in ranges)
    slices = []
    for r in ranges:
        pieces = max(1, min(round(workers * r.size / total), r.size // max(min_slice, 1)))
        cuts = [r.start + r.size * i // pieces for i in range(pieces + 1)]
        slices += [OffsetRange(r.partition, a, b) for a, b in pairwise(cuts)]
    return slices


def pack_units(slices: Sequence[OffsetRange], *, workers: int, weight: Mapping[int, float]) -> list[Unit]:
    """At most `workers` units of about equal weight (offsets x `weight[partition]`, e.g. mean record bytes)."""
    bins: list[tuple[float, list[OffsetRange]]] = [(0.0, []) for _ in range(max(1, min(workers, len(slices))))]
    for s in sorted(slices, key=lambda s: (-s.size * weight.get(s.partition, 1.0), s)):
        i = min(range(len(bins)), key=lambda i: bins[i][0])
        load, items = bins[i]
        bins[i] = (load + s.size * weight.get(s.partition, 1.0), [*items, s])
    return [tuple(sorted(items)) for _, items in bins if items]
